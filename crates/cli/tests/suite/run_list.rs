//! Listing, showing and cancelling runs.

use std::time::Duration;

use serde_json::{Value, json};
use windlass_core::approval::{ApprovalStatus, HoldStatus};
use windlass_core::run::{Event, RunEnd};
use windlass_spec::{RunId, SecurityLevel};
use windlass_store::{Durability, InboxAction, RunFilter, RunJournal, RunState, Store};

use super::program::TestProject;
use super::seeded::{
    ask, at, authorize, call, hold, open, project_with_pending_payment, request, run_as,
    start_child_run, start_run, stored, suspend,
};

/// Implementations that are never called.
const TOOLS: &str = r#"
name = "tools"
[tools]
pay = { description = "Pays a person", signature = '(to: Text, amount: Int, note: Text = "none") --> IO Text', command = ["false"] }
mail = { description = "Sends a mail", signature = "(to: Text, text: Text) --> IO Text", command = ["false"] }
change = { description = "Changes what is kept", signature = "(sql: Text) --> IO Text", command = ["false"] }
search = { description = "Searches for something", signature = "(query: Text) --> IO Text", command = ["false"] }
"#;

fn id(run: &str) -> RunId {
    RunId::new(run).unwrap()
}

/// A project with an open, a waiting and an ended run.
fn project_with_three_runs() -> TestProject {
    let project = project_with_pending_payment(SecurityLevel::High);
    let store = open(&project);
    drop(start_run(&store, "r2", &[]));
    let journal = start_run(&store, "r3", &[("search", json!({"query": "x"}))]);
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
    project
}

#[test]
fn runs_are_listed_by_state() {
    let project = project_with_three_runs();
    let list = |arguments: &[&str]| {
        let output = run_as(
            &project,
            "bea",
            &[&["runs", "list", "--json"], arguments].concat(),
        );
        let mut runs: Vec<String> = output
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

    let output = run_as(&project, "bea", &["runs", "list"]);
    let row = output
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
        assert!(row.contains(part), "{part}: {output:?}");
    }
    let output = run_as(&project, "bea", &["runs", "list", "--agent", "nobody"]);
    assert_eq!(output.err, "no runs match\n");
    assert_eq!(
        run_as(&project, "bea", &["runs", "list", "--state", "lost"]).code,
        2
    );
}

#[test]
fn a_run_is_shown_with_what_it_waits_for() {
    let project = project_with_three_runs();
    let output = run_as(&project, "bea", &["runs", "show", "r1"]);
    for part in [
        "run r1: waiting for an approval or answer",
        "agent     clerk",
        "task      Settle what is due.",
        "for       ada",
        "turns     1",
        r#"r1:1:0 pay {"to":"bob","amount":10} irreversible, undecided, pending"#,
        "request   r1:1:0 pay, 23 h 5",
        "windlass approvals show r1:1:0",
        "windlass runs cancel r1",
    ] {
        assert!(output.out.contains(part), "{part}:\n{}", output.out);
    }
    assert!(
        !output.out.contains("resume"),
        "a request must be decided first: {}",
        output.out
    );
    run_as(&project, "bea", &["approvals", "reject", "r1"]);
    let output = run_as(&project, "bea", &["runs", "show", "r1"]);
    assert!(
        output.out.contains("windlass runs resume r1"),
        "{}",
        output.out
    );

    let output = run_as(&project, "bea", &["runs", "show", "r3"]);
    assert!(
        output.out.contains("run r3: ended (cancelled)"),
        "{}",
        output.out
    );
    assert!(
        output.out.contains("windlass trace show r3"),
        "{}",
        output.out
    );
    run_as(&project, "bea", &["runs", "show", "r9"]).assert_refused(7, "begins with `r9`");
    run_as(&project, "bea", &["runs", "show", "r"]).assert_refused(2, "several runs");
}

/// Starts the run `r1` and its sub-run `r1.1.0`, which waits for an approval and has a held call.
fn start_waiting_sub_run(store: &Store) -> RunJournal {
    suspend(start_run(store, "r1", &[]));
    let arguments = json!({"to": "bob", "amount": 10});
    let calls = [("pay", arguments.clone())];
    let journal = start_child_run(store, "r1.1.0", Some("r1:1:0"), &calls);
    let question = authorize("pay", arguments, SecurityLevel::High);
    ask(&journal, request("r1.1.0:1:0", question));
    hold(&journal, "r1.1.0:1:1", 0, 60);
    journal
}

#[test]
fn run_waits_for_requests_of_its_sub_agents() {
    let project = TestProject::new();
    let store = open(&project);
    let _journal = start_waiting_sub_run(&store);
    let shown = run_as(&project, "bea", &["runs", "show", "r1", "--json"]).json();
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
    let inner = run_as(&project, "bea", &["runs", "show", "r1.1.0"]);
    assert!(inner.out.contains("works for r1:1:0"), "{inner:?}");
}

#[test]
fn unowned_run_is_cancelled_at_once_with_its_sub_runs() {
    let project = TestProject::new();
    let store = open(&project);
    let journal = start_waiting_sub_run(&store);
    suspend(journal);
    suspend(start_run(&store, "r10", &[]));

    let output = run_as(&project, "bea", &["runs", "cancel", "r1"]);
    assert_eq!(
        (output.out.as_str(), output.code),
        ("cancelled: r1\n", 0),
        "{output:?}"
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
            "the inbox is empty"
        );
    }
    assert_eq!(
        stored(&project, "r1.1.0:1:0").status(),
        ApprovalStatus::Cancelled
    );
    let held = store.hold(&call("r1.1.0:1:1")).unwrap();
    assert_eq!(held.status(), HoldStatus::Cancelled);
    assert_eq!(
        store.summary(&id("r10")).unwrap().state,
        RunState::Waiting,
        "another run"
    );

    let again = run_as(&project, "bea", &["runs", "cancel", "r1", "--json"]);
    again.assert_refused(8, "has ended");
    assert_eq!(again.json()["error"], "ended");
    run_as(&project, "bea", &["runs", "cancel", "r9"]).assert_refused(7, "r9");
}

#[test]
fn decisions_before_a_cancellation_are_in_the_journal() {
    let project = TestProject::new()
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
    let output = run_as(&project, "bea", &run);
    assert_eq!(output.code, 4, "{output:?}");
    let store = open(&project);
    let run = store.runs(&RunFilter::default()).unwrap()[0].run.clone();
    run_as(
        &project,
        "bea",
        &["approvals", "respond", run.as_str(), "this"],
    );
    run_as(&project, "bea", &["runs", "cancel", run.as_str()]);
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
fn run_that_ended_before_the_cancellation_keeps_its_outcome() {
    let project = TestProject::new();
    let store = open(&project);
    let journal = start_run(&store, "r1", &[]);
    // A turn without calls is a mistake. Three in a row end the run.
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
    let output = run_as(&project, "bea", &["runs", "cancel", "r1"]);
    output.assert_refused(8, "ended before it could be cancelled: failed");
    assert_eq!(store.summary(&id("r1")).unwrap().state, RunState::Ended);
}

#[test]
fn cancel_signals_the_owner_and_waits_for_it() {
    let project = TestProject::new();
    let store = open(&project);
    let journal = start_run(&store, "r1", &[]);
    let owner = std::thread::spawn(move || {
        loop {
            let inbox = journal.inbox().unwrap();
            if let Some(inbox) = inbox
                .iter()
                .find(|inbox| inbox.action == InboxAction::Cancel)
            {
                let event = journal
                    .redacted(Event::Cancelled {
                        by: None,
                        at: at(0),
                    })
                    .unwrap();
                journal.append_taking(&event, inbox.id).unwrap();
                journal.end(&RunEnd::Cancelled).unwrap();
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    });
    let output = run_as(&project, "bea", &["runs", "cancel", "r1"]);
    owner.join().unwrap();
    assert_eq!(output.out, "cancelled: r1, by the process that drives it\n");
}

#[test]
fn cancel_times_out_if_the_owner_does_not_stop() {
    let project = TestProject::new();
    let store = open(&project);
    let journal = start_run(&store, "r1", &[]);
    let output = run_as(&project, "bea", &["runs", "cancel", "r1", "--json"]);
    assert_eq!(output.code, 5, "{output:?}");
    assert!(
        output.err.contains("has not stopped within 10 s"),
        "{output:?}"
    );
    assert_eq!(output.json()["state"], "open");
    assert_eq!(journal.inbox().unwrap()[0].action, InboxAction::Cancel);
}
