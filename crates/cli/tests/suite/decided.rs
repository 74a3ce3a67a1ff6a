//! What users see of decisions: those made elsewhere while a prompt waits, those in traces, those of repeated and
//! refused calls, and commands to paste.

use serde_json::{Value, json};

use super::acting::{OfficeProject, call, finish, project_that_deletes, word_after};
use super::seeded::run_as;

/// Makes `name` of the office project with a library that has no agent.
fn waiting(office: &OfficeProject) -> (String, String) {
    let output = office.run(&[]);
    assert_eq!(output.code, 4, "{output:?}");
    (
        word_after(&output.err, "windlass approvals show ").to_owned(),
        word_after(&output.err, "windlass runs resume ").to_owned(),
    )
}

/// The id of the only pending request.
fn pending(office: &OfficeProject) -> String {
    let listed = office.run_command(&["approvals", "list", "--json"]);
    let line = listed.out.lines().next().expect("a pending request");
    let listed: Value = serde_json::from_str(line).unwrap();
    listed["id"]
        .as_str()
        .or(listed["call"].as_str())
        .unwrap_or_else(|| panic!("{listed}"))
        .to_owned()
}

#[test]
fn a_prompt_notices_a_decision_made_elsewhere() {
    let office = project_that_deletes();
    let mut session = office.at_a_terminal();
    session.expect("Type `deleteFile` to approve, or reject");
    session.send("delete");
    let id = pending(&office);
    let approve = ["approvals", "approve", &id, "--yes"];
    assert_eq!(run_as(&office.project, "bob", &approve).code, 0);
    session.expect("no longer open: approved by bob elsewhere");
    session.expect("The draft is gone.");
    assert_eq!(session.end(), 0);

    // The prompt for edited arguments ends, too.
    let office = project_that_deletes();
    let mut session = office.at_a_terminal();
    session.expect("Type `deleteFile` to approve, or reject");
    session.send("edit\r");
    session.expect("Arguments:");
    let id = pending(&office);
    let reject = ["approvals", "reject", &id, "--message", "No."];
    assert_eq!(run_as(&office.project, "bob", &reject).code, 0);
    session.expect("no longer open: rejected by bob elsewhere");
    assert_eq!(session.end(), 3);
}

#[test]
fn a_prompt_can_be_edited_with_the_usual_keys() {
    let office = project_that_deletes();
    let mut session = office.at_a_terminal();
    session.expect("Type `deleteFile` to approve, or reject");
    // Ctrl-U, Ctrl-W, Ctrl-A, the arrows and Delete.
    session.send("nonsense\u{15}other words\u{17}\u{17}File\u{1}delete\u{1b}[Dxe");
    session.send("\u{1b}[D\u{1b}[D\u{1b}[3~\u{1b}[C\u{1b}[3~\r");
    session.expect("The draft is gone.");
    assert_eq!(session.end(), 0);
}

#[test]
fn a_trace_has_who_decided_what_and_the_requested_arguments() {
    let office = project_that_deletes();
    let (id, run) = waiting(&office);
    let edit = [
        "approvals",
        "approve",
        &id,
        "--edit",
        r#"{"file": "journal.txt"}"#,
        "--yes",
    ];
    let approved = run_as(&office.project, "bob", &edit);
    assert_eq!(approved.code, 0, "{approved:?}");
    office.run_command(&["runs", "resume", &run]);
    let trace = office.run_command(&["trace", "show", &run]).out;
    for part in [
        r#"deleteFile {"file":"journal.txt"}"#,
        r#"requested with: {"file":"draft.txt"}"#,
        "by bob at 20",
        "approved with edited arguments",
    ] {
        assert!(trace.contains(part), "{part}: {trace}");
    }
    let trace = office
        .run_command(&["trace", "show", &run, "--json"])
        .json();
    let decided = &trace["decisions"][0];
    assert_eq!(decided["requested_arguments"], json!({"file": "draft.txt"}));
    assert_eq!(decided["arguments"], json!({"file": "journal.txt"}));
    assert_eq!(decided["questions"][0]["status"], "approved");
    assert_eq!(decided["questions"][0]["decisions"][0]["by"], "bob");
}

#[test]
fn output_names_refused_calls_and_shows_arguments() {
    let office = OfficeProject::new(&[
        call("deleteFiles", json!({"file": "draft.txt"})),
        call("writeNote", json!({"file": "journal.txt"})),
        call("listFiles", json!({})),
        call("listFiles", json!({})),
        finish("Done."),
    ]);
    let output = office.run(&[]);
    assert_eq!(output.code, 0, "{output:?}");
    for part in [
        r#"call 0 `deleteFiles` │ {"file":"draft.txt"}"#,
        "call 0 `deleteFiles` refused │ There is no tool `deleteFiles`.",
        "call 0 `writeNote` refused │ The arguments do not fit the tool: - /line: expected Text",
        "call 0: the same call as in turn 3, answered with its result",
    ] {
        assert!(output.err.contains(part), "{part}: {output:?}");
    }
    let run = word_after(&output.err, "windlass trace show ").to_owned();
    let trace = office.run_command(&["trace", "show", &run]).out;
    assert!(
        trace.contains("answered with the result of the call"),
        "{trace}"
    );
}

#[test]
fn reflex_does_not_claim_that_a_rejected_tool_returned_something() {
    let office = project_that_deletes();
    let output = office.run_command(&[
        "run",
        "agent.gram",
        "Delete the file draft.txt",
        "--library",
        "tools.toml",
        "--model",
        "reflex",
    ]);
    assert_eq!(output.code, 4, "{output:?}");
    let id = word_after(&output.err, "windlass approvals show ").to_owned();
    let run = word_after(&output.err, "windlass runs resume ").to_owned();
    run_as(&office.project, "bob", &["approvals", "reject", &id]);
    let output = office.run_command(&["runs", "resume", &run, "--json"]);
    assert_eq!(output.code, 3, "{output:?}");
    let response = output.json()["response"].clone();
    let answer = response["answer"].to_string();
    assert!(
        answer.contains("was not called: bob rejected the call"),
        "{answer}"
    );
    assert_eq!(
        response["reasoning"],
        "The call of `deleteFile` was not made."
    );
}

#[test]
fn a_direct_call_is_resumed_after_its_approval() {
    let office = project_that_deletes();
    let arguments = [
        "tools",
        "call",
        "deleteFile",
        "--library",
        "tools.toml",
        "file=draft.txt",
    ];
    let waits = office.run_command(&arguments);
    assert_eq!(waits.code, 4, "{waits:?}");
    let id = word_after(&waits.err, "windlass approvals show ").to_owned();
    let run = word_after(&waits.err, "windlass runs resume ").to_owned();
    let approved = run_as(
        &office.project,
        "bob",
        &["approvals", "approve", &id, "--yes"],
    );
    assert_eq!(approved.code, 0, "{approved:?}");
    let done = office.run_command(&["runs", "resume", &run]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.out.contains("draft.txt"), "{done:?}");
}

#[test]
fn a_changed_policy_file_is_replayed_against_what_was_decided() {
    let office = project_that_deletes();
    let permit = "@id(\"all\") permit (principal, action, resource);\n";
    let policy = office.project.path("policy.cedar");
    std::fs::write(&policy, permit).unwrap();
    let output = office.run(&["--policy", "policy.cedar"]);
    assert_eq!(output.code, 4, "{output:?}");
    let replay = ["policy", "replay", "policy.cedar"];
    let same = office.run_command(&replay);
    assert!(same.err.contains("0 of 2 decisions"), "{same:?}");
    let forbid = format!(
        "{permit}@id(\"kept\") forbid (principal, action == Action::\"deleteFile\", resource);"
    );
    std::fs::write(&policy, forbid).unwrap();
    let changed = office.run_command(&replay);
    assert!(changed.err.contains("1 of 2 decisions"), "{changed:?}");
    assert!(changed.out.contains("ask -> deny"), "{changed:?}");
}

#[test]
fn explanations_apply_switches_and_permissions_as_the_gate_does() {
    let office = project_that_deletes();
    let configuration = r#"
        permissions = ["files:delete"]
        [categories.office_tools]
        schema = "{region: Maybe Text}"
        [categories.office_tools.tools.deleteFile]
        permissions = ["files:delete"]
        [categories.office_tools.tools.writeNote.environment_overrides.production]
        enabled = false
    "#;
    std::fs::write(office.project.path("windlass.toml"), configuration).unwrap();
    let explain = |tool: &str, arguments: &str, environment: &str| {
        office.run_command(&[
            "policy",
            "explain",
            "--agent",
            "agent.gram",
            "--tool",
            tool,
            "--args",
            arguments,
            "--environment",
            environment,
        ])
    };
    let delete = explain("deleteFile", r#"{"file": "draft.txt"}"#, "production");
    assert!(
        delete
            .out
            .starts_with("deleteFile: deny\n  by the stage `permission`"),
        "{delete:?}"
    );
    assert!(delete.out.contains("requires `files:delete`"), "{delete:?}");
    let note = r#"{"file": "journal.txt", "line": "x"}"#;
    let off = explain("writeNote", note, "production");
    assert!(off.out.contains("by the stage `enabled`"), "{off:?}");
    let on = explain("writeNote", note, "development");
    assert!(on.out.starts_with("writeNote: hold\n  floor"), "{on:?}");
}

#[test]
fn printed_commands_have_the_options_of_the_command() {
    let office = project_that_deletes();
    std::fs::write(office.project.path("other.toml"), "").unwrap();
    let output = office.run(&["--data", "elsewhere", "--config", "other.toml"]);
    assert_eq!(output.code, 4, "{output:?}");
    let command = output
        .err
        .lines()
        .find_map(|line| line.split_once("resume with: windlass "))
        .map(|(_, command)| command.to_owned())
        .unwrap_or_else(|| panic!("{output:?}"));
    let words: Vec<&str> = command.split(' ').collect();
    let directory = tempfile::tempdir().unwrap();
    // It works in another directory.
    let mut resume = office.command(&words);
    resume.current_dir(directory.path());
    let resumed = super::seeded::CommandOutput::of(&mut resume);
    assert_eq!(resumed.code, 4, "{command}: {resumed:?}");
}

#[test]
fn a_rejected_direct_call_ends_as_rejected_when_it_is_resumed() {
    let office = project_that_deletes();
    let waiting = office.run_command(&[
        "tools",
        "call",
        "deleteFile",
        "file=draft.txt",
        "--agent-file",
        "agent.gram",
        "--library",
        "tools.toml",
    ]);
    assert_eq!(waiting.code, 4, "{waiting:?}");
    let id = word_after(&waiting.err, "windlass approvals show ").to_owned();
    let run = word_after(&waiting.err, "windlass runs resume ").to_owned();
    run_as(&office.project, "bob", &["approvals", "reject", &id]);
    let output = office.run_command(&["runs", "resume", &run]);
    assert_eq!((output.code, output.out.as_str()), (3, ""), "{output:?}");
    assert!(output.err.contains("bob rejected the call"), "{output:?}");
    let listed = office.run_command(&["runs", "list", "--json"]).json();
    assert_eq!(listed["end"]["end"], "failed", "{listed}");
}

#[test]
fn numbers_that_cannot_be_kept_are_refused_and_others_stay_as_they_are() {
    let office = project_that_deletes();
    let call = |arguments: &str| {
        office.run_command(&[
            "tools",
            "call",
            "writeNote",
            "--agent-file",
            "agent.gram",
            "--library",
            "tools.toml",
            "--args",
            arguments,
        ])
    };
    let refused = call(r#"{"file": "a.txt", "line": 123456789012345678901234}"#);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(
        refused
            .err
            .contains("the number 123456789012345678901234 cannot be kept exactly"),
        "{refused:?}"
    );
}
