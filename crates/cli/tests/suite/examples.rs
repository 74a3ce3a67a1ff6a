//! The example agents work with the embedded model.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

#[test]
fn examples_give_the_documented_answers() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let data = tempfile::tempdir().unwrap();
    let checks = std::fs::read_to_string(examples.join("checks.jsonl")).unwrap();
    let mut wrong = Vec::new();
    for line in checks.lines().filter(|line| !line.trim().is_empty()) {
        let check: Value = serde_json::from_str(line).unwrap();
        let of = |name: &str| check[name].as_str().unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_windlass"))
            .args(["run", of("agent"), of("task"), "--library", of("library")])
            // Without learning, so that the examples do not influence each other.
            .arg("--no-learning")
            .args(["--model", "reflex"])
            .current_dir(&examples)
            .env("WINDLASS_DATA", data.path())
            .output()
            .unwrap();
        let answer = String::from_utf8_lossy(&output.stdout);
        let is_answer = check["answer"]
            .as_str()
            .is_none_or(|wanted| answer.trim_end() == wanted);
        let parts = check["contains"].as_array().into_iter().flatten();
        let has_parts = parts
            .clone()
            .all(|part| answer.contains(part.as_str().unwrap()));
        let waits = check["waits"] == true;
        assert!(
            waits || check["answer"].is_string() || parts.count() > 0,
            "{line} checks nothing"
        );
        let code = if waits { 4 } else { 0 };
        if !is_answer || !has_parts || output.status.code() != Some(code) {
            wrong.push(format!(
                "{line}\n{answer}{}",
                String::from_utf8_lossy(&output.stderr)
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn examples_are_in_the_canonical_layout() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut files = vec![
        examples.join("hello.gram"),
        examples.join("newsroom.gram"),
        examples.join("researcher.gram"),
    ];
    for folder in [
        "units", "notes", "sql", "calendar", "lookup", "office", "prices",
    ] {
        files.push(examples.join(folder).join("agent.gram"));
    }
    let output = Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args(["fmt", "--check"])
        .args(files)
        .output()
        .unwrap();
    let unformatted = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{unformatted}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
