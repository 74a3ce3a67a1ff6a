//! Evidence with the real program: journals that were changed, keys that are missing, and files for auditors.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use rusqlite::Connection;
use serde_json::Value;

use super::acting::finish;
use super::interrupted::{approved_payment, office, pay, run};
use super::program::TestProject;

const KEY: &str = "state/windlass/keys/journal.key";

fn paid() -> (TestProject, String) {
    let project = office(&[pay(5), finish("Done.")]);
    let id = approved_payment(&project);
    let resumed = run(&project, &["runs", "resume", &id]);
    assert_eq!(resumed.code, 0, "{resumed:?}");
    assert_eq!(project.read("effects").lines().count(), 1);
    (project, id)
}

fn change(project: &TestProject, sql: &str) {
    let connection = Connection::open(project.path("data/windlass.db")).unwrap();
    connection.execute_batch(sql).unwrap();
}

#[test]
fn a_journal_verifies_until_it_is_changed_and_also_when_it_is_purged() {
    let (project, id) = paid();
    let verified = run(&project, &["runs", "verify"]);
    assert_eq!(verified.code, 0, "{verified:?}");
    assert!(verified.out.contains("unchanged"), "{verified:?}");
    let purged = run(&project, &["trace", "purge", "--days", "0"]);
    assert!(purged.out.contains("1 run purged"), "{purged:?}");
    let verified = run(&project, &["runs", "verify", &id, "--json"]);
    assert_eq!(verified.code, 0, "{verified:?}");
    let json: Value = serde_json::from_str(&verified.out).unwrap();
    assert_eq!(json["signature"], "signed");
    assert!(json["purged_events"].as_u64().unwrap() > 0, "{json}");
    change(&project, "UPDATE runs SET principal = 'eve'");
    let verified = run(&project, &["runs", "verify"]);
    assert_eq!(verified.code, 1, "{verified:?}");
    assert!(
        verified.out.contains("changed outside Windlass"),
        "{verified:?}"
    );
    // It can still be listed.
    let listed = run(&project, &["runs", "list"]);
    assert_eq!(listed.code, 0, "{listed:?}");
}

#[test]
fn an_approval_that_was_forged_by_sql_permits_nothing() {
    let project = office(&[pay(5), finish("Done.")]);
    let waiting = run(&project, &super::interrupted::RUN);
    assert_eq!(waiting.code, 4, "{waiting:?}");
    let id = super::acting::word_after(&waiting.err, "windlass runs resume ").to_owned();
    change(
        &project,
        r#"UPDATE approvals SET status = 'approved', settled_at = asked_at,
               body = json_set(body, '$.status', 'approved', '$.settled_at', json_extract(body, '$.asked_at'),
                   '$.decisions', json_array(json_object('by', 'bob', 'at', json_extract(body, '$.asked_at'),
                       'digest', json_extract(body, '$.digest'), 'decision', 'approve')));
           INSERT INTO mailbox (run, tenant, principal, kind, call, number, sent_by, sent_at)
               SELECT run, tenant, principal, 'settled', call, number, 'bob', asked_at FROM approvals"#,
    );
    let resumed = run(&project, &["runs", "resume", &id]);
    assert_ne!(resumed.code, 0, "{resumed:?}");
    assert!(
        resumed.err.contains("was changed outside Windlass"),
        "{resumed:?}"
    );
    assert_eq!(project.read("effects"), "");
}

#[test]
fn without_its_key_a_journal_is_listed_and_not_used() {
    let project = office(&[pay(5), finish("Done.")]);
    let id = approved_payment(&project);
    let key = project.path(KEY);
    let content = fs::read(&key).unwrap();
    let assert_unused = |message: &str| {
        for command in [
            &["runs", "resume", &id][..],
            &["runs", "show", &id],
            &["runs", "verify"],
            &["trace", "show", &id],
            &super::interrupted::RUN,
        ] {
            let output = run(&project, command);
            assert_ne!(output.code, 0, "{command:?} {output:?}");
            assert!(output.err.contains(message), "{command:?} {output:?}");
        }
        let listed = run(&project, &["runs", "list"]);
        assert_eq!(listed.code, 0, "{listed:?}");
        assert!(listed.out.contains(&id[..8]), "{listed:?}");
        assert_eq!(project.read("effects"), "");
    };
    fs::remove_file(&key).unwrap();
    assert_unused("journal.key` is missing");
    fs::write(&key, &content).unwrap();
    fs::set_permissions(&key, Permissions::from_mode(0o644)).unwrap();
    assert_unused("other users can read or change");
    fs::write(
        &key,
        format!("windlass-journal-key-1 {}\n", "12".repeat(32)),
    )
    .unwrap();
    fs::set_permissions(&key, Permissions::from_mode(0o600)).unwrap();
    assert_unused("this installation has the key");
    fs::write(&key, &content).unwrap();
    let resumed = run(&project, &["runs", "resume", &id]);
    assert_eq!(resumed.code, 0, "{resumed:?}");
    assert_eq!(project.read("effects").lines().count(), 1);
}

#[test]
fn a_file_for_auditors_is_checked_with_the_public_key_only() {
    let (project, id) = paid();
    let key = run(&project, &["audit", "key"]);
    let key = key.out.trim().to_owned();
    // Another person, with neither data nor keys.
    let auditor = TestProject::new();
    for format in ["jsonl", "csv", "html"] {
        let file = format!("audit.{format}");
        let export = [
            "audit", "export", "--from", "1d", "--format", format, "--output", &file,
        ];
        let exported = run(&project, &export);
        assert_eq!(exported.code, 0, "{exported:?}");
        let text = project.read(&file);
        for part in [
            id.as_str(),
            "pay",
            "approve",
            "call_ended",
            "success",
            "configuration_changed",
        ] {
            assert!(text.contains(part), "{format} has no {part}: {text}");
        }
        let auditor = TestProject::new().with("audit", &text);
        let verify = ["audit", "verify", "audit", "--key", &key];
        let verified = run(&auditor, &verify);
        assert_eq!(verified.code, 0, "{verified:?}");
        assert!(!auditor.path("state/windlass/keys").exists());
        let lines: Vec<&str> = text.lines().collect();
        let without = |left_out: usize| {
            let lines = lines
                .iter()
                .enumerate()
                .filter(|(index, _)| *index != left_out);
            lines
                .map(|(_, line)| format!("{line}\n"))
                .collect::<String>()
        };
        for changed in [
            text.replacen("approve", "reject_", 1),
            text.replacen("success", "failure", 1),
            without(1),
            without(lines.len() - 1),
            without(lines.len() - 2),
            format!("{text}{}\n", lines[1]),
            String::new(),
        ] {
            fs::write(auditor.path("audit"), changed).unwrap();
            let verified = run(&auditor, &verify);
            assert_eq!(verified.code, 8, "{format}: {verified:?}");
        }
    }
    // Another installation signs with another key.
    let own = run(&auditor, &["audit", "key"]).out.trim().to_owned();
    assert_ne!(own, key);
    let auditor = auditor.with("audit", project.read("audit.jsonl"));
    let verified = run(&auditor, &["audit", "verify", "audit", "--key", &own]);
    assert_eq!(verified.code, 8, "{verified:?}");
    let verified = run(&auditor, &["audit", "verify", "audit"]);
    assert!(verified.out.contains("compare it"), "{verified:?}");
}

#[test]
fn an_export_reports_what_was_changed_and_does_not_vouch_for_it() {
    let (project, id) = paid();
    change(
        &project,
        "UPDATE events SET at = at + 1 WHERE kind = 'call_started'",
    );
    let exported = run(&project, &["audit", "export", "--from", "1d"]);
    assert_eq!(exported.code, 1, "{exported:?}");
    assert!(
        exported.out.contains(r#""kind":"alteration""#),
        "{exported:?}"
    );
    assert!(!exported.out.contains("call_ended"), "{exported:?}");
    assert!(exported.out.contains(&id), "{exported:?}");
}
