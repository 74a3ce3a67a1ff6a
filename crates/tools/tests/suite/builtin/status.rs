//! Tests of `check_security_status`.

use serde_json::json;
use windlass_tools::{
    BuiltinSettings, FileSettings, HttpSettings, SecurityFact, WebSearchSettings,
};

use super::done;

#[tokio::test]
async fn the_security_status_has_names_and_limits_but_no_secrets() {
    let directory = tempfile::tempdir().unwrap();
    let notes = directory.path().join("notes");
    let settings = BuiltinSettings {
        files: Some(FileSettings::new([&notes]).unwrap()),
        http: HttpSettings::new(["*.example.org"]).unwrap(),
        search: Some(
            WebSearchSettings::new("https://search.example.org/k3y/search?token=s3cret").unwrap(),
        ),
        environment: Some("production".to_owned()),
        facts: vec![SecurityFact {
            name: "undo_window_seconds".to_owned(),
            value: "10".to_owned(),
        }],
        ..BuiltinSettings::default()
    };
    let status = done(&settings, "check_security_status", json!({})).await;
    let text = status.to_string();
    for secret in ["k3y", "s3cret", directory.path().to_str().unwrap()] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
    insta::assert_snapshot!(serde_json::to_string_pretty(&status).unwrap());
}

#[tokio::test]
async fn the_security_status_needs_no_settings() {
    let status = done(
        &BuiltinSettings::default(),
        "check_security_status",
        json!({}),
    )
    .await;
    assert_eq!(status["environment"], "not stated");
    assert_eq!(status["private_addresses"], "refused");
    assert!(status.get("max_file_bytes").is_none());
}
