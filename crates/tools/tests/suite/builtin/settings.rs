//! Tests of the errors of settings.

use std::path::PathBuf;
use std::time::Duration;

use windlass_tools::{
    AutomationSettings, FileSettings, HttpSettings, SettingsError, WebSearchSettings,
};

fn error_of<T: std::fmt::Debug>(settings: Result<T, SettingsError>) -> String {
    settings.unwrap_err().to_string()
}

#[test]
fn errors_in_settings_name_the_key_and_the_fix() {
    let none: [PathBuf; 0] = [];
    let files = || FileSettings::new(["notes"]).unwrap();
    let http = || HttpSettings::new(["example.org"]).unwrap();
    let search = || WebSearchSettings::new("http://localhost:8080/search").unwrap();
    let errors = [
        error_of(FileSettings::new(none)),
        error_of(FileSettings::new([""])),
        error_of(FileSettings::new(["a/notes", "b/notes"])),
        error_of(FileSettings::new(["/", "notes"])),
        error_of(FileSettings::named([("a/b", "notes")])),
        error_of(files().with_max_bytes(0)),
        error_of(files().with_max_bytes(u64::MAX)),
        error_of(HttpSettings::new(["example.org", "https://example.org/x"])),
        error_of(http().with_max_bytes(9_000_000)),
        error_of(http().with_timeout(Duration::from_millis(10))),
        error_of(WebSearchSettings::new("localhost")),
        error_of(WebSearchSettings::new("ftp://example.org/")),
        error_of(WebSearchSettings::new(
            "https://user:hunter2@example.org/search",
        )),
        error_of(WebSearchSettings::new(
            "https://user:hunter2@example.org:x/",
        )),
        error_of(search().with_max_results(0)),
        error_of(AutomationSettings::new("/automate")),
        error_of(AutomationSettings::new("https://example.org/?task={}")),
    ];
    assert!(errors.iter().all(|error| !error.contains("hunter2")));
    insta::assert_snapshot!(errors.join("\n"));
}

#[test]
fn a_single_root_may_be_any_directory() {
    for directory in [".", "/", ".."] {
        assert!(FileSettings::new([directory]).is_ok(), "{directory}");
    }
}

#[test]
fn a_relative_root_is_resolved_at_once() {
    let settings = FileSettings::new(["notes"]).unwrap();
    assert!(settings.roots()[0].directory().is_absolute());
    assert_eq!(settings.roots()[0].name(), "notes");
}
