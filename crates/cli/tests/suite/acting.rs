//! Agents that may act, with the real program: reads run, writes can be undone, deletions wait for a
//! person, at a terminal and off it.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::program::{Place, example};
use super::seeded::{Told, run_as};
use super::session::Session;

/// An office with its agent, its tools, and a script of what the model says.
pub(super) struct Office {
    pub(super) place: Place,
}

impl Office {
    pub(super) fn new(turns: &[Value]) -> Self {
        let mut script = String::new();
        for turn in turns {
            script += &format!("{turn}\n");
        }
        let place = Place::new()
            .with("agent.gram", example("office/agent.gram"))
            .with("tools.toml", example("office/tools.toml"))
            .with("office.py", example("office/office.py"))
            .with("answers.jsonl", script);
        std::fs::create_dir(place.path("files")).unwrap();
        Self { place }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.place.path("files").join(name)
    }

    fn arguments(extra: &[&'static str]) -> Vec<&'static str> {
        let mut arguments = vec![
            "run",
            "agent.gram",
            "Keep order.",
            "--library",
            "tools.toml",
            "--model",
            "scripted:answers.jsonl",
        ];
        arguments.extend(extra);
        arguments
    }

    fn run(&self, extra: &[&'static str]) -> Told {
        self.told(&Self::arguments(extra))
    }

    fn told(&self, arguments: &[&str]) -> Told {
        Told::of(&mut self.command(arguments))
    }

    pub(super) fn command(&self, arguments: &[&str]) -> std::process::Command {
        let mut command = self.place.command(arguments);
        command
            .env("OFFICE_FOLDER", self.place.path("files"))
            .env("WINDLASS_TEST_PRINCIPAL", "ann");
        command
    }

    fn at_a_terminal(&self) -> Session {
        Session::at_a_terminal(&self.command(&Self::arguments(&[])))
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

fn deletes() -> Office {
    Office::new(&[
        call("listFiles", json!({})),
        call("deleteFile", json!({"file": "draft.txt"})),
        finish("The draft is gone."),
    ])
}

/// The word after `text` in what was printed.
fn word_after<'t>(told: &'t str, text: &str) -> &'t str {
    let start = told.find(text).unwrap_or_else(|| panic!("{text}: {told}")) + text.len();
    told[start..].split_whitespace().next().unwrap()
}

#[test]
fn off_a_terminal_a_run_ends_with_code_4_and_says_how_to_decide_and_go_on() {
    let office = deletes();
    let told = office.run(&[]);
    assert_eq!(told.code, 4, "{told:?}");
    assert!(told.err.contains("the run waits for a person"), "{told:?}");
    assert!(office.file("draft.txt").exists());
    let id = word_after(&told.err, "windlass approvals show ").to_owned();
    let run = word_after(&told.err, "windlass runs resume ").to_owned();
    let approved = run_as(
        &office.place,
        "bob",
        &["approvals", "approve", &id, "--yes"],
    );
    assert_eq!(approved.code, 0, "{approved:?}");
    let done = office.told(&["runs", "resume", &run]);
    assert_eq!(
        (done.code, done.out.as_str()),
        (0, "The draft is gone.\n"),
        "{done:?}"
    );
    assert!(!office.file("draft.txt").exists());
    // It is over: going on with it says what came of it, and does nothing.
    let again = office.told(&["runs", "resume", &run]);
    assert_eq!((again.code, again.out), (0, done.out));
}

#[test]
fn a_program_is_told_that_a_run_waits() {
    let office = deletes();
    let told = office.run(&["--json"]);
    assert_eq!(told.code, 4);
    assert_eq!(told.json()["end"], json!({"end": "waiting_for_person"}));
    let listed = office.told(&["runs", "list", "--state", "waiting", "--json"]);
    assert_eq!(listed.out.lines().count(), 1, "{listed:?}");
}

#[test]
fn at_a_terminal_a_person_is_asked_in_place_and_types_the_tools_name() {
    let office = deletes();
    let mut session = office.at_a_terminal();
    session.expect("irreversible-asks");
    session.expect("\"file\": \"draft.txt\"");
    session.expect("Type `deleteFile` to approve");
    session.send("yes\r");
    session.expect("`yes` is none of these");
    session.expect("Type `deleteFile` to approve");
    session.send("deleteFile\r");
    session.expect("The draft is gone.");
    assert_eq!(session.end(), 0);
    assert!(!office.file("draft.txt").exists());
}

#[test]
fn at_a_terminal_a_person_may_say_no_or_leave_it_for_later() {
    let office = deletes();
    let mut session = office.at_a_terminal();
    session.expect("Type `deleteFile` to approve");
    session.send("later\r");
    session.expect("the run waits for a person");
    assert_eq!(session.end(), 4);
    let office = deletes();
    let mut session = office.at_a_terminal();
    session.expect("Type `deleteFile` to approve");
    session.send("reject\r");
    session.expect("Why?");
    session.send("It is needed.\r");
    session.expect("rejected by ann");
    session.expect("The draft is gone.");
    assert_eq!(session.end(), 0);
    assert!(office.file("draft.txt").exists());
}

#[test]
fn a_written_line_can_be_undone_while_it_is_held() {
    let office = Office::new(&[
        call(
            "writeNote",
            json!({"file": "journal.txt", "line": "Tuesday: rain."}),
        ),
        finish("Done."),
    ]);
    let arguments = Office::arguments(&[]);
    let mut session = Session::start(office.command(&arguments));
    session.expect("is held for 5 s; undo it with: windlass holds undo ");
    session.expect("\n");
    let id = session
        .last_line()
        .split_whitespace()
        .last()
        .unwrap()
        .to_owned();
    let undone = run_as(&office.place, "bob", &["holds", "undo", &id]);
    assert_eq!(undone.code, 0, "{undone:?}");
    session.expect("undone by bob");
    session.expect("Done.");
    assert_eq!(session.end(), 0);
    assert!(
        !office.file("journal.txt").exists(),
        "the folder was never furnished"
    );
}

#[test]
fn an_interruption_during_a_hold_says_how_to_go_on_and_how_to_undo() {
    let office = Office::new(&[
        call(
            "writeNote",
            json!({"file": "journal.txt", "line": "Tuesday: rain."}),
        ),
        finish("Done."),
    ]);
    let arguments = Office::arguments(&[]);
    let mut session = Session::start(office.command(&arguments));
    session.expect("is held for 5 s");
    session.interrupt();
    session.expect("windlass holds undo ");
    session.expect("go on with: windlass runs resume ");
    assert_eq!(session.end(), 130);
}

#[test]
fn a_call_by_hand_passes_the_same_gate() {
    let office = deletes();
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
    let waits = office.told(&arguments);
    assert_eq!(waits.code, 4, "{waits:?}");
    let mut arguments = arguments.to_vec();
    arguments.push("--yes");
    let done = office.told(&arguments);
    assert_eq!(
        (done.code, done.out.as_str()),
        (0, "deleted draft.txt\n"),
        "{done:?}"
    );
}

#[test]
fn policies_of_the_operator_hold_and_mistakes_in_them_are_told_before_anything_runs() {
    let office = deletes();
    let policy = r#"
        @id("all") permit (principal, action, resource);
        @id("kept") @reason("files of the office are kept")
        forbid (principal, action == Action::"deleteFile", resource);
    "#;
    std::fs::write(office.place.path("policy.cedar"), policy).unwrap();
    let told = office.run(&["--policy", "policy.cedar"]);
    assert_eq!(told.code, 0, "{told:?}");
    assert!(
        told.err.contains("denied: files of the office are kept"),
        "{told:?}"
    );
    assert!(office.file("draft.txt").exists());
    std::fs::write(
        office.place.path("policy.cedar"),
        policy.replace("deleteFile", "delete"),
    )
    .unwrap();
    let told = office.run(&["--policy", "policy.cedar"]);
    assert_eq!(told.code, 1, "{told:?}");
    assert!(
        told.err.contains("the policies do not fit the agent"),
        "{told:?}"
    );
    // The data directory is where an operator puts them for good.
    std::fs::create_dir_all(office.place.path("data")).unwrap();
    std::fs::write(office.place.path("data").join("policy.cedar"), policy).unwrap();
    let told = office.run(&[]);
    assert!(
        told.err.contains("files of the office are kept"),
        "{told:?}"
    );
}

#[test]
fn a_model_may_ask_the_person_who_is_there() {
    let office = Office::new(&[
        call(
            "ask_human",
            json!({"question": "Which file?", "options": ["draft", "journal"]}),
        ),
        finish("Thank you."),
    ]);
    let told = office.run(&[]);
    assert_eq!(told.code, 4, "{told:?}");
    let id = word_after(&told.err, "windlass approvals show ").to_owned();
    let run = word_after(&told.err, "windlass runs resume ").to_owned();
    let answered = run_as(
        &office.place,
        "bob",
        &["approvals", "respond", &id, "journal"],
    );
    assert_eq!(answered.code, 0, "{answered:?}");
    let done = office.told(&["runs", "resume", &run]);
    assert!(done.err.contains("answered by bob"), "{done:?}");
    assert_eq!(done.out, "Thank you.\n");
    let silent = office.run(&["--no-questions"]);
    assert!(
        silent.err.contains("There is no tool `ask_human`") || silent.code != 4,
        "{silent:?}"
    );
}
