//! Held calls are listed, undone and released.

use serde_json::json;
use windlass_core::approval::HoldStatus;
use windlass_core::run::Event;
use windlass_store::{InboxAction, RunJournal, Store};

use super::program::TestProject;
use super::seeded::{at, call, hold, identity, open, run_as, start_run, suspend};

const ID: &str = "r1:1:0";

fn start_mailing_run(store: &Store) -> RunJournal {
    let arguments = json!({"to": "bob", "text": "hi"});
    start_run(store, "r1", &[("mail", arguments)])
}

/// A project with a run that waits with a held call.
fn project_with_held_call() -> TestProject {
    let project = TestProject::new();
    let journal = start_mailing_run(&open(&project));
    hold(&journal, ID, 5, 65);
    suspend(journal);
    project
}

fn status(project: &TestProject) -> HoldStatus {
    open(project).hold(&call(ID)).unwrap().status()
}

#[test]
fn held_calls_are_listed_with_the_time_to_undo_them() {
    let project = project_with_held_call();
    let output = run_as(&project, "bea", &["holds", "list"]);
    let row = output.out.lines().nth(1).unwrap();
    for part in [
        ID,
        "mail",
        "held",
        "5 s ago",
        "5",
        r#"{"to":"bob","text":"hi"}"#,
    ] {
        assert!(row.contains(part), "{part}: {output:?}");
    }
    let listed = run_as(&project, "bea", &["holds", "list", "--json"]).json();
    assert_eq!(
        (&listed["id"], &listed["outermost_run"]),
        (&json!(ID), &json!("r1"))
    );
    let left = listed["seconds_left"].as_f64().unwrap();
    assert!(left > 30.0 && left < 60.0, "{left}");

    assert_eq!(run_as(&project, "bea", &["holds", "undo", ID]).code, 0);
    let output = run_as(&project, "bea", &["holds", "list"]);
    assert_eq!(
        (output.out.as_str(), output.err.as_str()),
        ("", "no calls are held\n")
    );
    assert!(
        run_as(&project, "bea", &["holds", "list", "--all"])
            .out
            .contains("undone")
    );
}

#[test]
fn undone_call_never_runs_and_its_run_gets_an_inbox_command() {
    let project = project_with_held_call();
    let output = run_as(&project, "bea", &["holds", "undo", "r1"]);
    assert_eq!(
        output.out,
        "undone: mail (r1:1:0); it never runs, and the model is informed\n\
         resume with: windlass runs resume r1\n"
    );
    assert_eq!(status(&project), HoldStatus::Undone);
    let inbox = open(&project).inbox(&call(ID).run).unwrap();
    assert_eq!(inbox[0].action, InboxAction::Undo(call(ID)));
    assert_eq!(inbox[0].by, Some(identity("bea").principal));
}

#[test]
fn released_call_runs_before_its_undo_window_ends() {
    let project = project_with_held_call();
    let output = run_as(&project, "bea", &["holds", "release", ID, "--json"]).json();
    assert_eq!(
        (&output["status"], &output["decided"]["by"]),
        (&json!("released"), &json!("bea"))
    );
    assert_eq!(output["next"], "windlass runs resume r1");
    assert_eq!(status(&project), HoldStatus::Released);
}

#[test]
fn late_and_unknown_holds_are_refused() {
    let project = project_with_held_call();
    run_as(&project, "bea", &["holds", "undo", "r2"])
        .assert_refused(7, "there is no held call `r2`");
    run_as(&project, "bea", &["holds", "undo", ID]);
    for command in ["undo", "release"] {
        let output = run_as(&project, "cem", &["holds", command, ID, "--json"]);
        output.assert_refused(8, "it is too late: the call `r1:1:0` is already undone");
        assert_eq!(output.json()["error"], "too_late");
    }
}

#[test]
fn a_call_that_started_cannot_be_undone() {
    let project = TestProject::new();
    let store = open(&project);
    let journal = start_mailing_run(&store);
    hold(&journal, ID, 5, 1);
    let output = run_as(&project, "bea", &["holds", "list"]);
    assert!(
        output.out.contains("none"),
        "its time is over, but it has not started: {output:?}"
    );
    let event = journal.redacted(Event::TimePassed { at: at(0) }).unwrap();
    journal.append_starting(&event, &call(ID)).unwrap();
    let output = run_as(&project, "bea", &["holds", "undo", ID]);
    output.assert_refused(8, "is already started");
}

#[test]
fn ambiguous_id_of_held_calls_is_refused() {
    let project = TestProject::new();
    let store = open(&project);
    let mail = || ("mail", json!({"to": "bob", "text": "hi"}));
    let journal = start_run(&store, "r1", &[mail(), mail()]);
    for index in 0..2 {
        hold(&journal, &format!("r1:1:{index}"), 0, 60);
    }
    let output = run_as(&project, "bea", &["holds", "undo", "r1"]);
    output.assert_refused(2, "matches 2 held calls:\n  r1:1:0\n  r1:1:1");
}
