//! `windlass stop` and `windlass start`, without a server.

use serde_json::json;

use super::acting::{OfficeProject, project_that_writes, word_after};
use super::seeded::CommandOutput;

fn command(office: &OfficeProject, arguments: &[&str]) -> CommandOutput {
    CommandOutput::of(&mut office.command(arguments))
}

fn lines(office: &OfficeProject) -> usize {
    let journal = office.project.path("files/journal.txt");
    std::fs::read_to_string(journal).map_or(0, |text| text.matches("rain").count())
}

/// The arguments of a call that is held for a moment.
const CALL: [&str; 6] = [
    "tools",
    "call",
    "writeNote",
    "--library",
    "tools.toml",
    "--args",
];

#[test]
fn a_run_that_is_stopped_exits_with_4_and_a_worker_resumes_it_after_the_start() {
    let office = project_that_writes();
    let stopped = command(
        &office,
        &["stop", "--agent", "clerk", "--reason", "a review"],
    );
    assert_eq!(stopped.code, 0, "{stopped:?}");
    assert!(
        stopped.err.contains("no run of this store knows"),
        "{stopped:?}"
    );
    let output = office.run(&[]);
    assert_eq!(output.code, 4, "{output:?}");
    assert!(
        output
            .err
            .contains("ann stopped the agent `clerk`: a review"),
        "{output:?}"
    );
    assert!(
        output.err.contains("windlass start --agent clerk"),
        "{output:?}"
    );
    let idle = command(&office, &["worker", "--until-idle"]);
    assert_eq!(idle.code, 0, "{idle:?}");
    let run = word_after(&output.err, "windlass runs resume ");
    let run = run.trim_end_matches('`').to_owned();
    let resumed = command(&office, &["runs", "resume", &run]);
    assert_eq!(resumed.code, 4, "{resumed:?}");
    assert_eq!(lines(&office), 0);
    let started = command(&office, &["start", "--agent", "clerk"]);
    assert_eq!(started.code, 0, "{started:?}");
    let worked = command(&office, &["worker", "--until-idle"]);
    assert_eq!(worked.code, 0, "{worked:?}");
    assert_eq!(lines(&office), 1, "{worked:?}");
}

#[test]
fn a_call_by_hand_is_stopped_too() {
    let office = project_that_writes();
    assert_eq!(command(&office, &["stop", "--tool", "writeNote"]).code, 0);
    let arguments = json!({"file": "journal.txt", "line": "rain"}).to_string();
    let call = [&CALL[..], &[arguments.as_str()]].concat();
    let output = command(&office, &call);
    assert_eq!(output.code, 4, "{output:?}");
    assert!(output.err.contains("the call did not start"), "{output:?}");
    assert_eq!(lines(&office), 0);
}

#[test]
fn nothing_begins_if_the_list_of_stops_was_changed_by_hand() {
    let office = project_that_writes();
    assert_eq!(command(&office, &["stop", "--all"]).code, 0);
    let database = rusqlite::Connection::open(office.project.path("data/windlass.db")).unwrap();
    assert_eq!(database.execute("DELETE FROM stops", []).unwrap(), 1);
    drop(database);
    let output = office.run(&[]);
    assert_eq!(output.code, 1, "{output:?}");
    assert!(
        output.err.contains("changed outside Windlass"),
        "{output:?}"
    );
    assert_eq!(lines(&office), 0);
    let verified = command(&office, &["runs", "verify"]);
    assert_ne!(verified.code, 0, "{verified:?}");
}

#[test]
fn stops_are_listed_and_recorded_with_who_and_why() {
    let office = project_that_writes();
    let nothing = command(&office, &["stop"]);
    assert_eq!(nothing.code, 2, "{nothing:?}");
    assert_eq!(command(&office, &["start", "--all"]).code, 7);
    command(
        &office,
        &[
            "stop",
            "--principal",
            "bob",
            "--reason",
            "left",
            "--every-tenant",
        ],
    );
    let listed = command(&office, &["stop", "--list", "--json"]).json();
    assert_eq!(
        (
            &listed["kind"],
            &listed["name"],
            &listed["tenant"],
            &listed["by"]
        ),
        (
            &json!("principal"),
            &json!("bob"),
            &json!(null),
            &json!("ann")
        )
    );
    let shown = command(&office, &["stop", "--list"]);
    assert!(
        shown.out.contains("every tenant") && shown.out.contains("left"),
        "{shown:?}"
    );
    let own = command(&office, &["start", "--principal", "bob", "--json"]);
    assert_eq!(
        (own.code, own.json()["error"].as_str()),
        (7, Some("not_stopped"))
    );
    let ended = command(&office, &["start", "--principal", "bob", "--every-tenant"]);
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(command(&office, &["stop", "--list"]).out, "");
}
