//! Settings explain what is wrong with them.

use std::path::PathBuf;
use std::time::Duration;

use windlass_tools::{
    AutomationSettings, FileSettings, HttpSettings, SearchSettings, SettingsError,
};

fn told<T: std::fmt::Debug>(settings: Result<T, SettingsError>) -> String {
    settings.unwrap_err().to_string()
}

#[test]
fn mistakes_in_settings_say_where_and_what_to_write() {
    let none: [PathBuf; 0] = [];
    let files = || FileSettings::new(["notes"]).unwrap();
    let http = || HttpSettings::new(["example.org"]).unwrap();
    let search = || SearchSettings::new("http://localhost:8080/search").unwrap();
    let mistakes = [
        told(FileSettings::new(none)),
        told(FileSettings::new([""])),
        told(FileSettings::new(["a/notes", "b/notes"])),
        told(FileSettings::new(["/", "notes"])),
        told(FileSettings::named([("a/b", "notes")])),
        told(files().with_max_bytes(0)),
        told(files().with_max_bytes(u64::MAX)),
        told(HttpSettings::new(["example.org", "https://example.org/x"])),
        told(http().with_max_bytes(9_000_000)),
        told(http().with_timeout(Duration::from_millis(10))),
        told(SearchSettings::new("localhost")),
        told(SearchSettings::new("ftp://example.org/")),
        told(SearchSettings::new(
            "https://user:hunter2@example.org/search",
        )),
        told(SearchSettings::new("https://user:hunter2@example.org:x/")),
        told(search().with_max_results(0)),
        told(AutomationSettings::new("/automate")),
        told(AutomationSettings::new("https://example.org/?task={}")),
    ];
    assert!(mistakes.iter().all(|mistake| !mistake.contains("hunter2")));
    insta::assert_snapshot!(mistakes.join("\n"));
}

#[test]
fn the_only_root_may_be_any_directory() {
    for directory in [".", "/", ".."] {
        assert!(FileSettings::new([directory]).is_ok(), "{directory}");
    }
}

#[test]
fn a_relative_root_stays_where_it_was_when_it_was_named() {
    let settings = FileSettings::new(["notes"]).unwrap();
    assert!(settings.roots()[0].directory().is_absolute());
    assert_eq!(settings.roots()[0].name(), "notes");
}
