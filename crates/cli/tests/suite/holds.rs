//! Held calls are undone and let go from the command line.

use serde_json::json;
use windlass_core::approval::HoldStatus;
use windlass_core::run::Event;
use windlass_store::InboxAction;

use super::program::Place;
use super::seeded::{at, begin, call, hold, leave, open, run_as, who};

const ID: &str = "r1:1:0";

/// A run that waits with a held call, which can be undone for another while.
fn held() -> Place {
    let place = Place::new();
    let store = open(&place);
    let journal = begin(
        &store,
        "r1",
        &[("mail", json!({"to": "bob", "text": "hi"}))],
    );
    hold(&journal, ID, 5, 65);
    leave(journal);
    place
}

fn status(place: &Place) -> HoldStatus {
    open(place).hold(&call(ID)).unwrap().status()
}

#[test]
fn held_calls_are_listed_with_the_time_to_undo_them() {
    let place = held();
    let told = run_as(&place, "bea", &["holds", "list"]);
    let row = told.out.lines().nth(1).unwrap();
    for part in [
        ID,
        "mail",
        "held",
        "5 s ago",
        "5",
        r#"{"to":"bob","text":"hi"}"#,
    ] {
        assert!(row.contains(part), "{part}: {told:?}");
    }
    let listed = run_as(&place, "bea", &["holds", "list", "--json"]).json();
    assert_eq!(
        (&listed["id"], &listed["outermost_run"]),
        (&json!(ID), &json!("r1"))
    );
    let left = listed["seconds_left"].as_f64().unwrap();
    assert!(left > 30.0 && left < 60.0, "{left}");

    assert_eq!(run_as(&place, "bea", &["holds", "undo", ID]).code, 0);
    let told = run_as(&place, "bea", &["holds", "list"]);
    assert_eq!(
        (told.out.as_str(), told.err.as_str()),
        ("", "no calls are held\n")
    );
    assert!(
        run_as(&place, "bea", &["holds", "list", "--all"])
            .out
            .contains("undone")
    );
}

#[test]
fn an_undone_call_never_runs_and_its_run_is_told() {
    let place = held();
    let told = run_as(&place, "bea", &["holds", "undo", "r1"]);
    assert_eq!(
        told.out,
        "undone: mail (r1:1:0); it never runs, and the model is told\n\
         continue it with: windlass runs resume r1\n"
    );
    assert_eq!(status(&place), HoldStatus::Undone);
    let mail = open(&place).inbox(&call(ID).run).unwrap();
    assert_eq!(mail[0].action, InboxAction::Undo(call(ID)));
    assert_eq!(mail[0].by, Some(who("bea").principal));
}

#[test]
fn a_released_call_runs_before_its_time() {
    let place = held();
    let told = run_as(&place, "bea", &["holds", "release", ID, "--json"]).json();
    assert_eq!(
        (&told["status"], &told["decided"]["by"]),
        (&json!("released"), &json!("bea"))
    );
    assert_eq!(told["next"], "windlass runs resume r1");
    assert_eq!(status(&place), HoldStatus::Released);
}

#[test]
fn what_is_too_late_or_not_there_says_so() {
    let place = held();
    run_as(&place, "bea", &["holds", "undo", "r2"]).is_refused(7, "there is no held call `r2`");
    run_as(&place, "bea", &["holds", "undo", ID]);
    for command in ["undo", "release"] {
        let told = run_as(&place, "cem", &["holds", command, ID, "--json"]);
        told.is_refused(8, "it is too late: the call `r1:1:0` is already undone");
        assert_eq!(told.json()["error"], "too_late");
    }
}

#[test]
fn a_call_that_started_cannot_be_undone() {
    let place = Place::new();
    let store = open(&place);
    let journal = begin(
        &store,
        "r1",
        &[("mail", json!({"to": "bob", "text": "hi"}))],
    );
    hold(&journal, ID, 5, 1);
    let told = run_as(&place, "bea", &["holds", "list"]);
    assert!(
        told.out.contains("none"),
        "its time is over, but it has not started: {told:?}"
    );
    let event = journal.redacted(Event::TimePassed { at: at(0) }).unwrap();
    journal.append_starting(&event, &call(ID)).unwrap();
    let told = run_as(&place, "bea", &["holds", "undo", ID]);
    told.is_refused(8, "is already started");
}

#[test]
fn a_part_that_fits_several_held_calls_is_refused() {
    let place = Place::new();
    let store = open(&place);
    let mail = || ("mail", json!({"to": "bob", "text": "hi"}));
    let journal = begin(&store, "r1", &[mail(), mail()]);
    for index in 0..2 {
        hold(&journal, &format!("r1:1:{index}"), 0, 60);
    }
    let told = run_as(&place, "bea", &["holds", "undo", "r1"]);
    told.is_refused(2, "fits 2 held calls:\n  r1:1:0\n  r1:1:1");
}
