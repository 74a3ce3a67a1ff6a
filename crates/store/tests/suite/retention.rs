//! Tests of what a purge removes and what it keeps.

use std::time::Duration;

use rusqlite::Connection;
use serde_json::{Value, json};
use windlass_core::approval::{PersonDecision, Principal, Reach, StandingApproval, StandingScope};
use windlass_core::run::{Event, PlanTaskStatus, Run, RunEnd, TaskEnd};
use windlass_spec::plan::{Plan, PlanTaskId, RawPlan};
use windlass_store::{
    Durability, Error, HoldFilter, InboxAction, KeepReason, KeptRun, Purged, Store,
};

use super::holds::hold;
use super::questions::{approval, ask_question, call, event, identity, now, tool};
use super::support::{
    answered, asked, at, contains, drive, file_bytes, id, new_run, open, start, started, success,
    unknown,
};

const DAY: i64 = 24 * 60 * 60;
const WEEK: Duration = Duration::from_secs(7 * DAY as u64);

fn ended(store: &Store, run: &str, end: &RunEnd) {
    let (journal, mut state) = start(store, run);
    drive(&journal, &mut state, 8, &success());
    journal.end(end).unwrap();
}

#[test]
fn a_purge_removes_content_and_keeps_the_record_of_the_run() {
    let (_directory, store) = open();
    let task = "Where did grandmother hide the cutlery?";
    let event = started("r1", task);
    let journal = store.start(new_run(), &event, Durability::Synced).unwrap();
    let mut run = Run::fold([&event]).unwrap();
    drive(&journal, &mut run, 8, &success());
    journal.end(&RunEnd::Completed).unwrap();
    assert!(contains(&file_bytes(&store), task));

    let early = store.purge(WEEK, at(7 * DAY)).unwrap();
    assert!(early.removed.is_empty() && early.kept.is_empty());
    let now = at(7 * DAY + 60);
    let purged = store.purge(WEEK, now).unwrap();
    assert_eq!(purged.removed.len(), 1);
    assert_eq!(
        purged.removed[0].events, 5,
        "the start, two answers, two ends"
    );

    let summary = store.summary(&id("r1")).unwrap();
    let tombstone = summary.purged.unwrap();
    assert_eq!((tombstone.at, tombstone.events), (now, 5));
    assert_eq!(tombstone.bytes, purged.removed[0].bytes);
    assert_eq!((summary.end, summary.task), (Some(RunEnd::Completed), None));
    assert!(!contains(&file_bytes(&store), task));
    assert!(matches!(store.fold(&id("r1")), Err(Error::Purged(_))));
    let left = store.events(&id("r1")).unwrap();
    assert_eq!(left.len(), 4);
    assert!(
        left.iter().all(|(_, event)| {
            matches!(event, Event::Decided { .. } | Event::CallStarted { .. })
        })
    );
    assert!(
        store.purge(WEEK, now).unwrap().removed.is_empty(),
        "a run is purged once"
    );
}

fn plan(tasks: Value) -> Plan {
    let raw: RawPlan = serde_json::from_value(json!({"goal": GOAL, "tasks": tasks})).unwrap();
    Plan::try_from(raw).unwrap()
}

const GOAL: &str = "Sell the cutlery of grandmother";

/// The texts of a run with a plan, one for each kind of event and command.
const TEXTS: [&str; 6] = [
    GOAL,
    "Ask uncle Theodore first",
    "Ask aunt Wilhelmina instead",
    "Theodore wants the spoons",
    "Wilhelmina wants the forks",
    "found in the attic",
];

/// An ended run with a plan that a person marked and changed.
fn ended_with_plan(store: &Store, run: &str) {
    let mut first = started(run, "Sell it by a plan.");
    let Event::Started { settings, .. } = &mut first else {
        panic!("{first:?}");
    };
    settings.plans = true;
    let journal = store.start(new_run(), &first, Durability::Synced).unwrap();
    let mut state = Run::fold([&first]).unwrap();
    let search = json!({"id": "look", "tool": "search", "arguments": {"query": "cutlery"}});
    let first_plan = plan(json!([
        search, {"id": "ask", "description": TEXTS[1]},
        {"id": "last", "description": "Sell it", "depends_on": ["ask"]},
    ]));
    let making = asked("create_execution_plan", json!(first_plan));
    let answer = answered(&state, vec![making], 1);
    state.apply(&answer).unwrap();
    journal.append(&answer, Durability::Relaxed).unwrap();
    drive(&journal, &mut state, 2, &success());
    let id = call(run, 0);
    let task = |name: &str| PlanTaskId::new(name).unwrap();
    for event in [
        Event::Planned {
            call: id.clone(),
            plan: Box::new(first_plan),
            at: at(3),
        },
        Event::TaskStarted {
            plan: id.clone(),
            task: task("look"),
            attempt: 1,
            at: at(4),
        },
        Event::TaskEnded {
            plan: id.clone(),
            task: task("look"),
            attempt: 1,
            end: TaskEnd::Success {
                result: json!(TEXTS[5]),
                tainted: false,
            },
            usage: windlass_core::model::Usage::default(),
            calls: 0,
            at: at(5),
        },
    ] {
        state.apply(&event).unwrap();
        journal.append(&event, Durability::Relaxed).unwrap();
    }
    let by = identity("bea");
    let changed = plan(json!([
        search, {"id": "ask", "description": TEXTS[1]}, {"id": "other", "description": TEXTS[2]},
    ]));
    store.replan(&id, &changed, &by, at(6)).unwrap();
    for (name, result) in [("ask", TEXTS[3]), ("other", TEXTS[4])] {
        let task = task(name);
        let status = (&task, PlanTaskStatus::Success);
        store
            .mark_task(&id, status, Some(json!(result)), &by, at(6))
            .unwrap();
    }
    for command in journal.inbox().unwrap() {
        let event = event_of(&command.action, &by.principal);
        state.apply(&event).unwrap();
        let event = journal.redacted(event).unwrap();
        journal.append_taking(&event, command.id).unwrap();
    }
    assert!(state.plans()[0].is_over());
    drive(&journal, &mut state, 1, &success());
    journal.end(&RunEnd::Completed).unwrap();
}

/// The event that a command about a plan leads to.
fn event_of(message: &InboxAction, by: &Principal) -> Event {
    match message.clone() {
        InboxAction::Mark {
            plan,
            task,
            status,
            result,
        } => Event::TaskMarked {
            plan,
            task,
            status,
            result,
            tainted: false,
            by: Some(by.clone()),
            at: at(7),
        },
        InboxAction::Replan { plan, tasks } => Event::Replanned {
            plan,
            tasks,
            by: by.clone(),
            at: at(7),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_purge_removes_the_content_of_plans_and_keeps_who_changed_them() {
    let (_directory, store) = open();
    ended_with_plan(&store, "r1");
    assert_eq!(store.plans("acme", 10, None).unwrap().len(), 1);
    for text in TEXTS {
        assert!(contains(&file_bytes(&store), text), "{text}");
    }
    assert_eq!(purge_everything(&store).removed.len(), 1);
    for text in TEXTS {
        assert!(!contains(&file_bytes(&store), text), "{text}");
    }
    assert_eq!(store.plans("acme", 10, None).unwrap(), []);
    let connection = other_connection(&store);
    let mut left = connection
        .prepare("SELECT kind || ' by ' || sent_by || ' ' || body FROM mailbox ORDER BY id")
        .unwrap();
    let left = left.query_map([], |row| row.get(0)).unwrap();
    let left: Vec<String> = left.map(Result::unwrap).collect();
    assert_eq!(
        left,
        ["replan by bea {}", "mark by bea {}", "mark by bea {}"]
    );
}

#[test]
fn a_run_that_has_not_ended_is_never_purged() {
    let (_directory, store) = open();
    drop(start(&store, "open"));
    ended(&store, "waiting", &RunEnd::WaitingForPerson);
    ended(&store, "over", &RunEnd::Cancelled);
    let purged = store.purge(Duration::ZERO, at(1000 * DAY)).unwrap();
    let removed: Vec<_> = purged.removed.iter().map(|run| run.run.as_str()).collect();
    assert_eq!(removed, ["over"]);
    assert!(store.fold(&id("open")).is_ok() && store.fold(&id("waiting")).is_ok());
}

#[test]
fn a_run_with_a_call_of_unknown_outcome_is_never_purged() {
    let (_directory, store) = open();
    let (journal, mut run) = start(&store, "unknown");
    drive(&journal, &mut run, 4, &unknown());
    journal.end(&RunEnd::Cancelled).unwrap();
    let (journal, mut run) = start(&store, "interrupted");
    drive(&journal, &mut run, 3, &success());
    journal.end(&RunEnd::Cancelled).unwrap();

    let purged = store.purge(Duration::ZERO, at(1000 * DAY)).unwrap();
    assert!(purged.removed.is_empty());
    assert_eq!(purged.kept.len(), 2);
    assert!(
        purged
            .kept
            .iter()
            .all(|kept| kept.reason == KeepReason::UnknownCall)
    );
    assert_eq!(store.events(&id("unknown")).unwrap().len(), 5);
}

#[test]
fn an_unreadable_journal_is_kept() {
    let (_directory, store) = open();
    ended(&store, "r1", &RunEnd::Completed);
    other_connection(&store)
        .execute("UPDATE events SET payload = '{}' WHERE seq = 3", [])
        .unwrap();
    let purged = store.purge(Duration::ZERO, at(1000 * DAY)).unwrap();
    assert!(matches!(purged.kept[0].reason, KeepReason::Unreadable(_)));
    assert!(matches!(
        store.events(&id("r1")),
        Err(Error::Unreadable { .. })
    ));
}

fn purge_everything(store: &Store) -> Purged {
    store.purge(Duration::ZERO, at(1000 * DAY)).unwrap()
}

/// All rows of a table.
fn rows(store: &Store, table: &str) -> Vec<String> {
    let connection = other_connection(store);
    let query = format!("SELECT * FROM {table} ORDER BY 1, 2, 3");
    let mut select = connection.prepare(&query).unwrap();
    let columns = select.column_count();
    let rows = select.query_map([], |row| {
        let values = (0..columns).map(|column| Ok(format!("{:?}", row.get_ref(column)?)));
        values.collect::<rusqlite::Result<Vec<_>>>()
    });
    rows.unwrap().map(|row| row.unwrap().join("|")).collect()
}

#[test]
fn a_purge_keeps_questions_answers_holds_commands_and_standing_approvals() {
    let (_directory, store) = open();
    let (journal, mut run) = start(&store, "r1");
    drive(&journal, &mut run, 8, &success());
    ask_question(&journal, &approval(call("r1", 0)));
    ask_question(&journal, &approval(call("r1", 1)));
    for index in [2, 3] {
        let held = hold("r1", index);
        journal.append_holding(&event(&journal, 1), &held).unwrap();
    }
    let by = identity("bea");
    let approve = PersonDecision::Approve;
    store
        .decide(&call("r1", 0), None, &by, approve, now())
        .unwrap();
    store.undo(&call("r1", 2), &by, at(2)).unwrap();
    for command in journal.inbox().unwrap() {
        journal
            .append_taking(&event(&journal, 9), command.id)
            .unwrap();
    }
    let until = Reach::Until { until: at(DAY) };
    let standing = StandingApproval::new(
        identity("ada"),
        tool(),
        StandingScope::Tool,
        until,
        by.principal.clone(),
        at(1),
    );
    store.grant_standing(&standing.unwrap()).unwrap();
    journal.end(&RunEnd::Completed).unwrap();

    let tables = ["approvals", "holds", "mailbox", "standing_approvals"];
    let before = tables.map(|table| rows(&store, table));
    assert!(before.iter().all(|rows| !rows.is_empty()), "{before:?}");
    assert_eq!(purge_everything(&store).removed.len(), 1);
    assert_eq!(tables.map(|table| rows(&store, table)), before);
    assert_eq!(store.holds(&HoldFilter::default()).unwrap().len(), 2);
}

fn other_connection(store: &Store) -> Connection {
    Connection::open(store.path()).unwrap()
}

fn kept(store: &Store) -> Vec<(String, KeepReason)> {
    let purged = purge_everything(store);
    assert_eq!(purged.removed, []);
    let kept = |kept: KeptRun| (kept.run.to_string(), kept.reason);
    purged.kept.into_iter().map(kept).collect()
}

#[test]
fn a_run_with_an_unsettled_question_or_hold_is_never_purged() {
    let (_directory, store) = open();
    let (asked, _) = start(&store, "asked");
    ask_question(&asked, &approval(call("asked", 0)));
    let (held, _) = start(&store, "held");
    held.append_holding(&event(&held, 1), &hold("held", 0))
        .unwrap();
    drop((asked, held));
    // Ending the runs with `end` would settle both.
    other_connection(&store)
        .execute_batch(
            r#"UPDATE runs SET state = 'ended', ended_at = started_at, "end" = '{"end":"cancelled"}'"#,
        )
        .unwrap();
    assert_eq!(
        kept(&store),
        [
            ("asked".to_owned(), KeepReason::PendingApproval),
            ("held".to_owned(), KeepReason::OpenHold),
        ]
    );
}

#[test]
fn a_run_whose_parent_has_not_ended_is_never_purged() {
    let (_directory, store) = open();
    let (parent, _) = start(&store, "parent");
    let mut first = started("child", "Find it.");
    let Event::Started { parent: caller, .. } = &mut first else {
        panic!("{first:?}");
    };
    *caller = Some(call("parent", 0));
    let child = store.start(new_run(), &first, Durability::Synced).unwrap();
    child.end(&RunEnd::Completed).unwrap();

    let reason = KeepReason::ParentNotOver(id("parent"));
    assert_eq!(kept(&store), [("child".to_owned(), reason.clone())]);
    parent.end(&RunEnd::WaitingForPerson).unwrap();
    drop(parent);
    assert_eq!(kept(&store), [("child".to_owned(), reason)]);
    let parent = store.take_over(&id("parent")).unwrap();
    parent.end(&RunEnd::Completed).unwrap();
    assert_eq!(purge_everything(&store).removed.len(), 2);
}

#[test]
fn a_run_with_an_unknown_event_is_kept_whole() {
    let (_directory, store) = open();
    ended(&store, "r1", &RunEnd::Completed);
    other_connection(&store)
        .execute_batch(
            r#"INSERT INTO events (run, seq, kind, at, payload, tenant, principal)
               VALUES ('r1', 100, 'foreseen', 0, '{"event":"foreseen"}', 'acme', 'ada')"#,
        )
        .unwrap();
    let kept = kept(&store);
    assert!(
        matches!(&kept[..], [(_, KeepReason::Unreadable(_))]),
        "{kept:?}"
    );
}

#[test]
fn decisions_cannot_be_deleted_by_sql() {
    let (_directory, store) = open();
    ended(&store, "r1", &RunEnd::Completed);
    let error = other_connection(&store)
        .execute_batch("DELETE FROM events")
        .unwrap_err();
    assert!(error.to_string().contains("decisions are kept"), "{error}");
    assert_eq!(store.events(&id("r1")).unwrap().len(), 9);
}
