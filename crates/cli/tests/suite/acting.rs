//! Agents with tools that change things: reads run, writes can be undone, deletions need approval, with and
//! without a terminal.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::program::{TestProject, example};
use super::seeded::{CommandOutput, run_as};
use super::session::Session;

/// The office example: its agent, its tools, and a scripted model.
pub(super) struct OfficeProject {
    pub(super) project: TestProject,
}

impl OfficeProject {
    pub(super) fn new(turns: &[Value]) -> Self {
        let mut script = String::new();
        for turn in turns {
            script += &format!("{turn}\n");
        }
        let project = TestProject::new()
            .with("agent.gram", example("office/agent.gram"))
            .with("tools.toml", example("office/tools.toml"))
            .with("office.py", example("office/office.py"))
            .with("answers.jsonl", script)
            .with_approvers(&["ann", "bob", "ben"]);
        std::fs::create_dir(project.path("files")).unwrap();
        Self { project }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.project.path("files").join(name)
    }

    /// The arguments that start a run.
    pub(super) const RUN: [&str; 7] = [
        "run",
        "agent.gram",
        "Keep order.",
        "--library",
        "tools.toml",
        "--model",
        "scripted:answers.jsonl",
    ];

    pub(super) fn run(&self, extra: &[&'static str]) -> CommandOutput {
        self.run_command(&[&Self::RUN[..], extra].concat())
    }

    pub(super) fn run_command(&self, arguments: &[&str]) -> CommandOutput {
        CommandOutput::of(&mut self.command(arguments))
    }

    pub(super) fn command(&self, arguments: &[&str]) -> std::process::Command {
        let mut command = self.project.command(arguments);
        command
            .env("OFFICE_FOLDER", self.project.path("files"))
            .env("WINDLASS_TEST_PRINCIPAL", "ann");
        command
    }

    pub(super) fn at_a_terminal(&self) -> Session {
        Session::at_a_terminal(&self.command(&Self::RUN))
    }
}

pub(super) fn call(tool: &str, arguments: Value) -> Value {
    json!({"calls": [{"tool": tool, "arguments": {"json": arguments}, "confidence": 0.95}]})
}

pub(super) fn finish(answer: &str) -> Value {
    call(
        "finish",
        json!({"answer": answer, "reasoning": "So it was.", "confidence": 0.9}),
    )
}

/// The office project with a model that writes a note, which is held.
pub(super) fn project_that_writes() -> OfficeProject {
    OfficeProject::new(&[
        call(
            "writeNote",
            json!({"file": "journal.txt", "line": "Tuesday: rain."}),
        ),
        finish("Done."),
    ])
}

/// A project whose agent deletes a file.
pub(super) fn project_that_deletes() -> OfficeProject {
    OfficeProject::new(&[
        // The tools create the files when they are first listed.
        call("listFiles", json!({})),
        call("deleteFile", json!({"file": "draft.txt"})),
        finish("The draft is gone."),
    ])
}

/// Returns the word after `text` in the output.
pub(super) fn word_after<'t>(output: &'t str, text: &str) -> &'t str {
    let start = output
        .find(text)
        .unwrap_or_else(|| panic!("{text}: {output}"))
        + text.len();
    output[start..].split_whitespace().next().unwrap()
}

#[test]
fn without_a_terminal_a_waiting_run_exits_with_4_and_prints_the_next_commands() {
    let office = project_that_deletes();
    let output = office.run(&[]);
    assert_eq!(output.code, 4, "{output:?}");
    assert!(
        output
            .err
            .contains("the run waits for an approval or answer"),
        "{output:?}"
    );
    assert!(office.file("draft.txt").exists());
    let id = word_after(&output.err, "windlass approvals show ").to_owned();
    let run = word_after(&output.err, "windlass runs resume ").to_owned();
    let approved = run_as(
        &office.project,
        "bob",
        &["approvals", "approve", &id, "--yes"],
    );
    assert_eq!(approved.code, 0, "{approved:?}");
    let done = office.run_command(&["runs", "resume", &run]);
    assert_eq!(
        (done.code, done.out.as_str()),
        (0, "The draft is gone.\n"),
        "{done:?}"
    );
    assert!(!office.file("draft.txt").exists());
    // The run has ended: resuming it prints the result and does nothing.
    let again = office.run_command(&["runs", "resume", &run]);
    assert_eq!((again.code, again.out), (0, done.out));
}

#[test]
fn json_output_reports_a_waiting_run() {
    let office = project_that_deletes();
    let output = office.run(&["--json"]);
    assert_eq!(output.code, 4);
    assert_eq!(output.json()["end"], json!({"end": "waiting_for_person"}));
    let listed = office.run_command(&["runs", "list", "--state", "waiting", "--json"]);
    assert_eq!(listed.out.lines().count(), 1, "{listed:?}");
}

#[test]
fn at_a_terminal_the_user_approves_by_typing_the_tool_name() {
    let office = project_that_deletes();
    let mut session = office.at_a_terminal();
    session.expect("irreversible-asks");
    session.expect("\"file\": \"draft.txt\"");
    session.expect("Type `deleteFile` to approve");
    session.send("yes\r");
    session.expect("`yes` is not one of the choices");
    session.expect("Type `deleteFile` to approve");
    session.send("deleteFile\r");
    session.expect("The draft is gone.");
    assert_eq!(session.end(), 0);
    assert!(!office.file("draft.txt").exists());
}

#[test]
fn at_a_terminal_an_edited_call_is_approved_by_typing_the_tool_name() {
    let office = project_that_deletes();
    let mut session = office.at_a_terminal();
    for attempt in ["yes\r", "deleteFile\r"] {
        session.expect("Type `deleteFile` to approve, or reject, edit");
        session.send("edit\r");
        session.expect("Arguments:");
        // Control-U clears the line.
        session.send("\u{15}{\"file\": \"journal.txt\"}\r");
        session.expect("edited to");
        session.expect("\"file\": \"journal.txt\"");
        session.expect("Type `deleteFile` to approve it with these arguments:");
        assert!(office.file("journal.txt").exists());
        session.send(attempt);
    }
    session.expect("The draft is gone.");
    assert!(session.text().contains("the edited call is not approved"));
    assert_eq!(session.end(), 0);
    assert!(!office.file("journal.txt").exists());
    assert!(office.file("draft.txt").exists());
}

#[test]
fn at_a_terminal_the_user_can_reject_or_postpone() {
    let office = project_that_deletes();
    let mut session = office.at_a_terminal();
    session.expect("Type `deleteFile` to approve");
    session.send("later\r");
    session.expect("the run waits for an approval or answer");
    assert_eq!(session.end(), 4);
    let office = project_that_deletes();
    let mut session = office.at_a_terminal();
    session.expect("Type `deleteFile` to approve");
    session.send("reject\r");
    session.expect("Reason for the model");
    session.send("It is needed.\r");
    session.expect("rejected by ann");
    session.expect("The draft is gone.");
    // The model may say so, but the run did not do its task.
    session.expect("`deleteFile` was not made: ann rejected the call:");
    session.expect("It is needed.");
    assert_eq!(session.end(), 3);
    assert!(office.file("draft.txt").exists());
}

#[test]
fn held_call_can_be_undone() {
    let office = project_that_writes();
    let mut session = Session::start(office.command(&OfficeProject::RUN));
    session.expect("is held for 5 s; undo it with: windlass holds undo ");
    session.expect("\n");
    let id = session
        .last_line()
        .split_whitespace()
        .last()
        .unwrap()
        .to_owned();
    let undone = run_as(&office.project, "bob", &["holds", "undo", &id]);
    assert_eq!(undone.code, 0, "{undone:?}");
    session.expect("undone by bob");
    session.expect("Done.");
    assert_eq!(session.end(), 0);
    assert!(
        !office.file("journal.txt").exists(),
        "the folder was never created"
    );
}

#[test]
fn interrupt_during_a_hold_prints_the_resume_and_undo_commands() {
    let office = project_that_writes();
    let mut session = Session::start(office.command(&OfficeProject::RUN));
    session.expect("is held for 5 s");
    session.interrupt();
    session.expect("windlass holds undo ");
    session.expect("resume with: windlass runs resume ");
    assert_eq!(session.end(), 130);
}

#[test]
fn direct_call_passes_the_gate() {
    let office = project_that_deletes();
    let arguments = [
        "tools",
        "call",
        "deleteFile",
        "--library",
        "tools.toml",
        "--agent-file",
        "agent.gram",
        "file=draft.txt",
    ];
    let waits = office.run_command(&arguments);
    assert_eq!(waits.code, 4, "{waits:?}");
    let mut arguments = arguments.to_vec();
    arguments.push("--yes");
    let done = office.run_command(&arguments);
    assert_eq!(
        (done.code, done.out.as_str()),
        (0, "deleted draft.txt\n"),
        "{done:?}"
    );
}

#[test]
fn operator_policies_apply_and_their_errors_are_reported_before_the_run() {
    let office = project_that_deletes();
    let policy = r#"
        @id("all") permit (principal, action, resource);
        @id("kept") @reason("files of the office are kept")
        forbid (principal, action == Action::"deleteFile", resource);
    "#;
    std::fs::write(office.project.path("policy.cedar"), policy).unwrap();
    let output = office.run(&["--policy", "policy.cedar"]);
    assert_eq!(output.code, 0, "{output:?}");
    assert!(
        output.err.contains("denied: files of the office are kept"),
        "{output:?}"
    );
    assert!(office.file("draft.txt").exists());
    std::fs::write(
        office.project.path("policy.cedar"),
        policy.replace("deleteFile", "delete"),
    )
    .unwrap();
    let output = office.run(&["--policy", "policy.cedar"]);
    assert_eq!(output.code, 1, "{output:?}");
    assert!(
        output.err.contains("the policies do not fit the agent"),
        "{output:?}"
    );
    // A policy file in the data directory applies to all runs.
    std::fs::create_dir_all(office.project.path("data")).unwrap();
    std::fs::write(office.project.path("data").join("policy.cedar"), policy).unwrap();
    let output = office.run(&[]);
    assert!(
        output.err.contains("files of the office are kept"),
        "{output:?}"
    );
}

#[test]
fn model_can_ask_the_user_a_question() {
    let office = OfficeProject::new(&[
        call(
            "ask_human",
            json!({"question": "Which file?", "options": ["draft", "journal"]}),
        ),
        finish("Thank you."),
    ]);
    let output = office.run(&[]);
    assert_eq!(output.code, 4, "{output:?}");
    let id = word_after(&output.err, "windlass approvals show ").to_owned();
    let run = word_after(&output.err, "windlass runs resume ").to_owned();
    let answered = run_as(
        &office.project,
        "bob",
        &["approvals", "respond", &id, "journal"],
    );
    assert_eq!(answered.code, 0, "{answered:?}");
    let done = office.run_command(&["runs", "resume", &run]);
    assert!(done.err.contains("answered by bob"), "{done:?}");
    assert_eq!(done.out, "Thank you.\n");
    let silent = office.run(&["--no-questions"]);
    assert!(
        silent.err.contains("There is no tool `ask_human`") || silent.code != 4,
        "{silent:?}"
    );
}
