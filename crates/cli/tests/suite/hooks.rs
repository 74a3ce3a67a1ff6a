//! `windlass hook`: the tools of coding agents pass the gate.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};

use super::acting::word_after;
use super::program::TestProject;
use super::seeded::{CommandOutput, run_as};

fn project() -> TestProject {
    TestProject::new().with_approvers(&["ann", "bob"])
}

/// Runs a hook with this input.
fn hook_with(
    project: &TestProject,
    arguments: &[&str],
    input: &str,
    variables: &[(&str, &str)],
) -> CommandOutput {
    let mut command = project.command(&[&["hook"], arguments].concat());
    command.env("WINDLASS_TEST_PRINCIPAL", "ann");
    for (name, value) in variables {
        command.env(name, value);
    }
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    CommandOutput {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

fn hook(project: &TestProject, program: &str, input: &Value) -> CommandOutput {
    hook_with(project, &[program, "--wait", "0"], &input.to_string(), &[])
}

fn before(tool: &str, arguments: Value, id: &str) -> Value {
    json!({
        "hook_event_name": "PreToolUse", "session_id": "s1", "transcript_path": "/tmp/t.jsonl", "cwd": "/tmp",
        "tool_name": tool, "tool_input": arguments, "tool_use_id": id,
    })
}

fn after(input: &Value, event: &str, response: Value) -> Value {
    let mut input = input.clone();
    input["hook_event_name"] = json!(event);
    input["tool_response"] = response;
    input
}

/// The states of the calls of all runs, the latest first.
fn states(project: &TestProject) -> Vec<String> {
    let listed = run_as(project, "ann", &["runs", "list", "--json"]);
    let runs = listed
        .out
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    runs.map(|run| {
        let id = run["run"].as_str().unwrap();
        let shown = run_as(project, "ann", &["runs", "show", id, "--json"]).json();
        shown["calls"][0]["state"]
            .as_str()
            .unwrap_or("none")
            .to_owned()
    })
    .collect()
}

fn denial(output: &CommandOutput) -> String {
    assert_eq!(output.code, 0, "{output:?}");
    let answer = &output.json()["hookSpecificOutput"];
    assert_eq!(answer["hookEventName"], "PreToolUse");
    assert_eq!(answer["permissionDecision"], "deny", "{output:?}");
    answer["permissionDecisionReason"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[test]
fn an_allowed_call_is_left_to_the_program_and_its_outcome_is_recorded() {
    for program in ["claude-code", "codex"] {
        let project = project();
        let list = before("Bash", json!({"command": "ls -l"}), "t1");
        let output = hook(&project, program, &list);
        assert_eq!((output.code, output.out.as_str()), (0, ""), "{output:?}");
        assert_eq!(states(&project), ["running"]);
        let reported = hook(
            &project,
            program,
            &after(&list, "PostToolUse", json!({"stdout": "a"})),
        );
        assert_eq!(reported.code, 0, "{reported:?}");
        assert_eq!(states(&project), ["success"]);
        let shown = run_as(&project, "ann", &["runs", "list", "--json"]).json();
        assert_eq!(shown["agent"], program, "{shown}");
    }
}

#[test]
fn claude_code_is_told_to_allow_only_if_that_was_chosen() {
    let project = project();
    let read = before("Read", json!({"file_path": "/etc/hosts"}), "t1");
    let output = hook_with(
        &project,
        &["claude-code", "--allow"],
        &read.to_string(),
        &[],
    );
    assert_eq!(
        output.json()["hookSpecificOutput"]["permissionDecision"],
        "allow"
    );
    let failed = after(&read, "PostToolUseFailure", json!("no such file"));
    assert_eq!(hook(&project, "claude-code", &failed).code, 0);
    assert_eq!(states(&project), ["error"]);
}

#[test]
fn a_call_that_needs_approval_is_refused_until_it_is_given() {
    let project = project();
    let remove = json!({"command": "rm -rf /srv/data"});
    let refused = denial(&hook(
        &project,
        "claude-code",
        &before("Bash", remove.clone(), "t1"),
    ));
    let approval = word_after(&refused, "windlass approvals approve ");
    let approval = approval.trim_end_matches(['`', '.']).to_owned();
    let approved = run_as(
        &project,
        "bob",
        &["approvals", "approve", &approval, "--yes"],
    );
    assert_eq!(approved.code, 0, "{approved:?}");
    // The program tries again, as a new call.
    let again = before("Bash", remove.clone(), "t2");
    let input = again.to_string();
    let allowed = hook_with(&project, &["claude-code", "--wait", "20"], &input, &[]);
    assert_eq!((allowed.code, allowed.out.as_str()), (0, ""), "{allowed:?}");
    assert_eq!(
        hook(
            &project,
            "claude-code",
            &after(&again, "PostToolUse", json!({}))
        )
        .code,
        0
    );
    assert_eq!(states(&project), ["success"]);
    // One approval is for one call.
    denial(&hook(
        &project,
        "claude-code",
        &before("Bash", remove, "t3"),
    ));
}

#[test]
fn tools_of_servers_and_patches_are_judged_by_what_they_are() {
    let project = project();
    let server = before("mcp__db__get_row", json!({"id": 1}), "t1");
    let reason = denial(&hook(&project, "codex", &server));
    assert!(reason.contains("needs approval"), "{reason}");
    let patch = before(
        "apply_patch",
        json!({"command": "*** Begin Patch\n*** End Patch"}),
        "t2",
    );
    let output = hook(&project, "codex", &patch);
    assert_eq!((output.code, output.out.as_str()), (0, ""), "{output:?}");
}

#[test]
fn what_cannot_be_judged_is_refused() {
    let project = project();
    let list = before("Bash", json!({"command": "ls"}), "t1").to_string();
    let refused = |input: &str, variables: &[(&str, &str)]| {
        let output = hook_with(&project, &["claude-code"], input, variables);
        assert_eq!((output.code, output.out.as_str()), (2, ""), "{output:?}");
        assert!(output.err.contains("refused"), "{output:?}");
        output.err
    };
    refused("{", &[]);
    refused("{\"hook_event_name\": \"PreToolUse\"}", &[]);
    refused(&before("Bash", json!("ls"), "t1").to_string(), &[]);
    let nowhere = ("WINDLASS_SERVER", "http://127.0.0.1:9");
    let message = refused(&list, &[nowhere, ("WINDLASS_TOKEN", "x")]);
    assert!(message.contains("cannot be reached"), "{message}");
    let message = refused(&list, &[nowhere]);
    assert!(message.contains("WINDLASS_TOKEN"), "{message}");
    let plain = ("WINDLASS_SERVER", "http://windlass.example.org");
    let message = refused(&list, &[plain, ("WINDLASS_TOKEN", "x")]);
    assert!(message.contains("https://"), "{message}");
    std::fs::write(project.path("file"), "").unwrap();
    let file = project.path("file");
    let message = refused(&list, &[("WINDLASS_DATA", file.to_str().unwrap())]);
    assert!(message.contains("hint:"), "{message}");
    let other = hook_with(
        &project,
        &["claude-code"],
        r#"{"hook_event_name": "Stop"}"#,
        &[],
    );
    assert_eq!((other.code, other.out.as_str()), (0, ""));
}

#[test]
fn a_stopped_program_makes_no_calls() {
    let project = project();
    let stopped = run_as(
        &project,
        "ann",
        &["stop", "--agent", "claude-code", "--reason", "lunch"],
    );
    assert_eq!(stopped.code, 0, "{stopped:?}");
    let reason = denial(&hook(
        &project,
        "claude-code",
        &before("Read", json!({"file_path": "a"}), "t1"),
    ));
    assert!(reason.contains("lunch"), "{reason}");
}

#[test]
fn the_printed_settings_start_this_program() {
    let project = project();
    for program in ["claude-code", "codex"] {
        let printed = run_as(
            &project,
            "ann",
            &["hook", program, "--print", "--wait", "100"],
        );
        assert_eq!(printed.code, 0, "{printed:?}");
        let hook = &printed.json()["hooks"]["PreToolUse"][0]["hooks"][0];
        let command = hook["command"].as_str().unwrap();
        assert!(
            command.ends_with(&format!("hook {program} --wait 100")),
            "{command}"
        );
        assert_eq!(hook["timeout"], 160);
    }
}
