//! Where runs stand, and how they are cancelled.

use std::time::Duration;

use serde_json::{Value, json};
use windlass_core::approval::{ApprovalStatus, HoldStatus};
use windlass_core::run::{Event, RunEnd};
use windlass_spec::{RunId, SecurityLevel};
use windlass_store::{Durability, InboxAction, RunFilter, RunState};

use super::program::Place;
use super::seeded::{
    ask, at, authorize, begin, begin_for, call, hold, leave, open, request, run_as, stored,
    wants_to_pay,
};

/// Implementations that are not called.
const TOOLS: &str = r#"
name = "tools"
[tools.pay]
description = "Pays somebody"
signature = '(to: Text, amount: Int, note: Text = "none") --> IO Text'
command = ["false"]
[tools.mail]
description = "Sends a mail"
signature = "(to: Text, text: Text) --> IO Text"
command = ["false"]
[tools.change]
description = "Changes what is kept"
signature = "(sql: Text) --> IO Text"
command = ["false"]
[tools.search]
description = "Searches for something"
signature = "(query: Text) --> IO Text"
command = ["false"]
"#;

fn id(run: &str) -> RunId {
    RunId::new(run).unwrap()
}

/// A run that is open, one that waits and one that ended.
fn three() -> Place {
    let place = wants_to_pay(SecurityLevel::High);
    let store = open(&place);
    drop(begin(&store, "r2", &[]));
    let journal = begin(&store, "r3", &[("search", json!({"query": "x"}))]);
    journal
        .append(
            &Event::Cancelled {
                by: None,
                at: at(0),
            },
            Durability::Synced,
        )
        .unwrap();
    journal.end(&RunEnd::Cancelled).unwrap();
    place
}

#[test]
fn runs_are_listed_by_where_they_stand() {
    let place = three();
    let list = |arguments: &[&str]| {
        let told = run_as(
            &place,
            "bea",
            &[&["runs", "list", "--json"], arguments].concat(),
        );
        let mut runs: Vec<String> = told
            .out
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .map(|run| {
                format!(
                    "{} {}",
                    run["run"].as_str().unwrap(),
                    run["state"].as_str().unwrap()
                )
            })
            .collect();
        runs.sort();
        runs
    };
    assert_eq!(list(&[]), ["r1 waiting", "r2 open", "r3 ended"]);
    assert_eq!(list(&["--state", "waiting"]), ["r1 waiting"]);
    assert_eq!(list(&["--state", "ended"]), ["r3 ended"]);
    assert_eq!(list(&["--agent", "clerk", "--limit", "2"]).len(), 2);
    assert!(list(&["--agent", "nobody"]).is_empty());

    let told = run_as(&place, "bea", &["runs", "list"]);
    let row = told
        .out
        .lines()
        .find(|line| line.starts_with("r3"))
        .unwrap();
    for part in [
        "ended",
        "cancelled",
        "1 min ago",
        "clerk",
        "Settle what is due.",
    ] {
        assert!(row.contains(part), "{part}: {told:?}");
    }
    let told = run_as(&place, "bea", &["runs", "list", "--agent", "nobody"]);
    assert_eq!(told.err, "there are no such runs\n");
    assert_eq!(
        run_as(&place, "bea", &["runs", "list", "--state", "lost"]).code,
        2
    );
}

#[test]
fn a_run_is_shown_with_what_it_waits_for() {
    let place = three();
    let told = run_as(&place, "bea", &["runs", "show", "r1"]);
    for part in [
        "run r1 is waiting for a person",
        "agent     clerk",
        "task      Settle what is due.",
        "for       ada",
        "turns     1",
        r#"r1:1:0 pay {"to":"bob","amount":10} irreversible, undecided, pending"#,
        "question  r1:1:0 pay, 23 h 5",
        "windlass approvals show r1:1:0",
        "windlass runs cancel r1",
    ] {
        assert!(told.out.contains(part), "{part}:\n{}", told.out);
    }
    assert!(
        !told.out.contains("resume"),
        "there is something to decide first: {}",
        told.out
    );
    run_as(&place, "bea", &["approvals", "reject", "r1"]);
    let told = run_as(&place, "bea", &["runs", "show", "r1"]);
    assert!(told.out.contains("windlass runs resume r1"), "{}", told.out);

    let told = run_as(&place, "bea", &["runs", "show", "r3"]);
    assert!(
        told.out.contains("run r3 is over: cancelled"),
        "{}",
        told.out
    );
    assert!(told.out.contains("windlass trace show r3"), "{}", told.out);
    run_as(&place, "bea", &["runs", "show", "r9"]).is_refused(7, "begins with `r9`");
    run_as(&place, "bea", &["runs", "show", "r"]).is_refused(2, "several runs");
}

#[test]
fn a_run_waits_for_what_its_sub_agents_ask() {
    let place = Place::new();
    let store = open(&place);
    leave(begin(&store, "r1", &[]));
    let arguments = json!({"to": "bob", "amount": 10});
    let journal = begin_for(
        &store,
        "r1.1.0",
        Some("r1:1:0"),
        &[("pay", arguments.clone())],
    );
    ask(
        &journal,
        request(
            "r1.1.0:1:0",
            authorize("pay", arguments, SecurityLevel::High),
        ),
    );
    hold(&journal, "r1.1.0:1:1", 0, 60);
    let shown = run_as(&place, "bea", &["runs", "show", "r1", "--json"]).json();
    assert_eq!(shown["questions"][0]["call"], "r1.1.0:1:0");
    assert_eq!(shown["holds"][0]["call"], "r1.1.0:1:1");
    assert_eq!(
        shown["next"],
        json!([
            "windlass approvals show r1.1.0:1:0",
            "windlass holds undo r1.1.0:1:1",
            "windlass runs cancel r1"
        ])
    );
    let inner = run_as(&place, "bea", &["runs", "show", "r1.1.0"]);
    assert!(inner.out.contains("works for r1:1:0"), "{inner:?}");
}

#[test]
fn a_run_that_nobody_has_in_hand_is_cancelled_at_once_with_all_that_works_for_it() {
    let place = Place::new();
    let store = open(&place);
    leave(begin(&store, "r1", &[]));
    let arguments = json!({"to": "bob", "amount": 10});
    let journal = begin_for(
        &store,
        "r1.1.0",
        Some("r1:1:0"),
        &[("pay", arguments.clone())],
    );
    ask(
        &journal,
        request(
            "r1.1.0:1:0",
            authorize("pay", arguments, SecurityLevel::High),
        ),
    );
    hold(&journal, "r1.1.0:1:1", 0, 60);
    leave(journal);
    leave(begin(&store, "r10", &[]));

    let told = run_as(&place, "bea", &["runs", "cancel", "r1"]);
    assert_eq!(
        (told.out.as_str(), told.code),
        ("cancelled: r1\n", 0),
        "{told:?}"
    );
    for run in ["r1", "r1.1.0"] {
        let summary = store.summary(&id(run)).unwrap();
        assert_eq!(
            (summary.state, summary.end),
            (RunState::Ended, Some(RunEnd::Cancelled))
        );
        assert_eq!(
            store.fold(&id(run)).unwrap().end(),
            Some(&RunEnd::Cancelled)
        );
        assert!(
            store.inbox(&id(run)).unwrap().is_empty(),
            "the mail was taken"
        );
    }
    assert_eq!(
        stored(&place, "r1.1.0:1:0").status(),
        ApprovalStatus::Cancelled
    );
    let held = store.hold(&call("r1.1.0:1:1")).unwrap();
    assert_eq!(held.status(), HoldStatus::Cancelled);
    assert_eq!(
        store.summary(&id("r10")).unwrap().state,
        RunState::Waiting,
        "another run"
    );

    let again = run_as(&place, "bea", &["runs", "cancel", "r1", "--json"]);
    again.is_refused(8, "has ended");
    assert_eq!(again.json()["error"], "ended");
    run_as(&place, "bea", &["runs", "cancel", "r9"]).is_refused(7, "r9");
}

#[test]
fn what_people_decided_before_a_run_is_cancelled_is_in_its_journal() {
    let place = Place::new()
        .with("agent.gram", super::seeded::AGENT)
        .with(
            "answers.jsonl",
            r#"{"calls": [{"tool": "ask_human", "arguments": {"json": {"question": "Which?"}}}]}"#,
        )
        .with("tools.toml", TOOLS);
    let run = [
        "run",
        "agent.gram",
        "Do it.",
        "--library",
        "tools.toml",
        "--model",
        "scripted:answers.jsonl",
    ];
    let told = run_as(&place, "bea", &run);
    assert_eq!(told.code, 4, "{told:?}");
    let store = open(&place);
    let run = store.runs(&RunFilter::default()).unwrap()[0].run.clone();
    run_as(
        &place,
        "bea",
        &["approvals", "respond", run.as_str(), "this"],
    );
    run_as(&place, "bea", &["runs", "cancel", run.as_str()]);
    assert!(store.inbox(&run).unwrap().is_empty());
    let events = store.events(&run).unwrap();
    let last: Vec<&Event> = events
        .iter()
        .rev()
        .map(|(_, event)| event)
        .take(2)
        .collect();
    let is_kept = matches!(last[..], [Event::Cancelled { .. }, Event::Settled { .. }]);
    assert!(is_kept, "{last:#?}");
}

#[test]
fn a_run_that_came_to_its_end_when_its_process_died_keeps_that_end() {
    let place = Place::new();
    let store = open(&place);
    let journal = begin(&store, "r1", &[]);
    // No calls is a mistake; three such turns in a row are the end.
    for second in 1..10 {
        let run = store.fold(&id("r1")).unwrap();
        if run.end().is_some() {
            break;
        }
        let answered = Event::ModelAnswered {
            turn: run.current_turn(),
            answer: windlass_core::model::ModelAnswer::default(),
            at: at(second - 50),
        };
        journal.append(&answered, Durability::Synced).unwrap();
    }
    drop(journal);
    let told = run_as(&place, "bea", &["runs", "cancel", "r1"]);
    told.is_refused(8, "came to its end before it could be cancelled: failed");
    assert_eq!(store.summary(&id("r1")).unwrap().state, RunState::Ended);
}

#[test]
fn a_process_that_has_a_run_in_hand_is_told_and_waited_for() {
    let place = Place::new();
    let store = open(&place);
    let journal = begin(&store, "r1", &[]);
    let owner = std::thread::spawn(move || {
        loop {
            let mail = journal.inbox().unwrap();
            if let Some(mail) = mail.iter().find(|mail| mail.action == InboxAction::Cancel) {
                let event = journal
                    .redacted(Event::Cancelled {
                        by: None,
                        at: at(0),
                    })
                    .unwrap();
                journal.append_taking(&event, mail.id).unwrap();
                journal.end(&RunEnd::Cancelled).unwrap();
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    });
    let told = run_as(&place, "bea", &["runs", "cancel", "r1"]);
    owner.join().unwrap();
    assert_eq!(
        told.out,
        "cancelled: r1, by the process that had it in hand\n"
    );
}

#[test]
fn a_process_that_does_not_stop_its_run_is_not_waited_for_forever() {
    let place = Place::new();
    let store = open(&place);
    let journal = begin(&store, "r1", &[]);
    let told = run_as(&place, "bea", &["runs", "cancel", "r1", "--json"]);
    assert_eq!(told.code, 5, "{told:?}");
    assert!(
        told.err
            .contains("was told to stop, but has not within 10 s"),
        "{told:?}"
    );
    assert_eq!(told.json()["state"], "open");
    assert_eq!(journal.inbox().unwrap()[0].action, InboxAction::Cancel);
}
