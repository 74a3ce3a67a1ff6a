//! A run that drives itself: in every state there is a valid next event.

use std::path::Path;

use rusqlite::Connection;
use serde_json::{Value, json};
use tempfile::TempDir;
use windlass_core::approval::{PersonDecision, Principal, TenantPrincipal};
use windlass_core::gate::{Governance, Rules};
use windlass_core::model::{ModelAnswer, RequestedArguments, RequestedCall, Usage};
use windlass_core::run::{CallEnd, Event, GateStep, Next, Run, Settings, Task};
use windlass_spec::{
    Agent, CallState, Effect, ErrorCategory, Failure, NonEmptyText, RunId, Timestamp,
};
use windlass_store::{Durability, NewRun, RunJournal, Store};

const AGENT: &str = r#"
[helper:Agent {instruction: "Help people.", model: "OpenAI/gpt-4o-mini"} |
  [search:Tool {description: "Searches for something", risk: reversible} | (query::Text)==>(::Text)]]
"#;

pub(crate) fn agent() -> Agent {
    windlass_spec::read(AGENT).file.unwrap().agents()[0].clone()
}

pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::from_microseconds(1_760_000_000_000_000 + second * 1_000_000)
}

pub(crate) fn id(text: &str) -> RunId {
    RunId::new(text).unwrap()
}

pub(crate) fn started(run: &str, task: &str) -> Event {
    Event::Started {
        run: id(run),
        agent: Box::new(agent()),
        agents: Vec::new(),
        assembly: serde_json::Map::new(),
        parent: None,
        holds: None,
        task: Task {
            description: task.to_owned(),
            ..Task::default()
        },
        settings: Settings {
            max_iterations: u32::MAX,
            max_calls: u32::MAX,
            ..Settings::default()
        },
        at: at(0),
    }
}

pub(crate) fn new_run() -> NewRun {
    NewRun {
        tenant: "acme".to_owned(),
        principal: "ada".to_owned(),
        task_id: Some("t-1".to_owned()),
    }
}

pub(crate) fn time_passed(second: i64) -> Event {
    Event::TimePassed { at: at(second) }
}

pub(crate) fn answered(run: &Run, calls: Vec<RequestedCall>, second: i64) -> Event {
    let answer = ModelAnswer {
        calls,
        ..ModelAnswer::default()
    };
    Event::ModelAnswered {
        turn: run.current_turn(),
        answer,
        at: at(second),
    }
}

pub(crate) fn asked(tool: &str, arguments: Value) -> RequestedCall {
    let arguments = RequestedArguments::Json(arguments);
    RequestedCall {
        tool: tool.to_owned(),
        arguments,
        confidence: Some(0.9),
    }
}

/// The next event of a run whose calls end with `end`.
pub(crate) fn next_event(run: &Run, second: i64, end: &CallEnd) -> Event {
    match run.next() {
        Next::CallModel(_) => {
            // Never the same call twice, which the run counts as a mistake of the model.
            let query = format!("question {}", run.current_turn());
            answered(
                run,
                vec![asked("search", json!({ "query": query }))],
                second,
            )
        }
        Next::Gate(calls) => {
            let rules = Rules::new(&Governance::default(), run.agent(), &[]).unwrap();
            let (call, ada, at) = (calls[0].clone(), ada(), at(second));
            match run.at_gate(&call, &ada, &rules, at) {
                Some(GateStep::Decide) => {
                    let decision = run
                        .decide(
                            &call,
                            &ada,
                            &rules,
                            &windlass_core::limits::Readiness::Ready,
                        )
                        .unwrap();
                    Event::Decided { call, decision, at }
                }
                Some(GateStep::Ask(approval)) => Event::Asked { approval, at },
                other => panic!("{other:?}"),
            }
        }
        Next::Wait(_) => {
            let mut approval = run.questions().next().unwrap().clone();
            let reject = PersonDecision::Reject { message: None };
            approval.decide(&ada(), reject, None, at(second)).unwrap();
            Event::Settled {
                approval: Box::new(approval),
                at: at(second),
            }
        }
        Next::RunCalls(calls) => {
            let call = calls[0].clone();
            let (record, _) = run.call(&call).unwrap();
            match record.state() {
                CallState::Running => Event::CallEnded {
                    call,
                    end: end.clone(),
                    usage: Usage::default(),
                    calls: 0,
                    ran: None,
                    tainted: false,
                    at: at(second),
                },
                _ => Event::CallStarted {
                    call,
                    at: at(second),
                    variant: None,
                },
            }
        }
        Next::Done(end) => panic!("{end:?}"),
    }
}

fn ada() -> TenantPrincipal {
    let tenant = NonEmptyText::new("acme").unwrap();
    TenantPrincipal::new(tenant, Principal::new("ada").unwrap())
}

pub(crate) fn success() -> CallEnd {
    CallEnd::Success(json!("found"))
}

pub(crate) fn unknown() -> CallEnd {
    CallEnd::Unknown(Failure::new(
        ErrorCategory::Internal,
        Effect::Unknown,
        "the line went dead",
    ))
}

/// Advances a run by `count` events and returns them.
pub(crate) fn drive(journal: &RunJournal, run: &mut Run, count: i64, end: &CallEnd) -> Vec<Event> {
    let mut events = Vec::new();
    for second in 1..=count {
        let event = next_event(run, second, end);
        run.apply(&event).unwrap();
        journal.append(&event, Durability::Relaxed).unwrap();
        events.push(event);
    }
    events
}

pub(crate) fn open() -> (TempDir, Store) {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path().join("windlass.db")).unwrap();
    (directory, store)
}

pub(crate) fn start(store: &Store, run: &str) -> (RunJournal, Run) {
    let event = started(run, "Find it.");
    let journal = store.start(new_run(), &event, Durability::Synced).unwrap();
    (journal, Run::fold([&event]).unwrap())
}

/// All bytes of the store on disk, including the write-ahead log.
pub(crate) fn file_bytes(store: &Store) -> Vec<u8> {
    let path = store.path();
    let mut bytes = std::fs::read(path).unwrap();
    let log = path.with_extension("db-wal");
    bytes.extend(std::fs::read(log).unwrap_or_default());
    bytes
}

pub(crate) fn contains(bytes: &[u8], needle: &str) -> bool {
    bytes
        .windows(needle.len())
        .any(|window| window == needle.as_bytes())
}

/// Takes back what the database has had since rows are signed, for tests of older schemas.
pub(crate) const WITHOUT_EVIDENCE: &str = "
    DROP TABLE evidence; DROP TABLE log_position; DROP TABLE purged_events;
    DROP TABLE admin_changes; DROP TABLE admin_heads; DROP INDEX mailbox_by_run;
    DROP TABLE stops; DROP INDEX runs_to_wake; ALTER TABLE runs DROP COLUMN wake_at;
    ALTER TABLE runs DROP COLUMN last_event; ALTER TABLE runs DROP COLUMN head;
    ALTER TABLE runs DROP COLUMN unsigned_events; ALTER TABLE runs DROP COLUMN questions;
    ALTER TABLE runs DROP COLUMN held_calls; ALTER TABLE runs DROP COLUMN commands;
    ALTER TABLE runs DROP COLUMN damage; ALTER TABLE runs DROP COLUMN mac;
    ALTER TABLE events DROP COLUMN digest; ALTER TABLE events DROP COLUMN mac;
    ALTER TABLE approvals DROP COLUMN mac; ALTER TABLE holds DROP COLUMN mac;
    ALTER TABLE mailbox DROP COLUMN digest; ALTER TABLE mailbox DROP COLUMN mac;
    ALTER TABLE standing_approvals DROP COLUMN mac;
    DROP INDEX conversations_open; ALTER TABLE conversations DROP COLUMN open;";

/// All rows of all tables about runs.
pub(crate) fn content(path: &Path) -> String {
    let connection = Connection::open(path).unwrap();
    let mut content = String::new();
    for table in ["runs", "events", "approvals", "holds", "mailbox"] {
        let mut select = connection
            .prepare(&format!("SELECT * FROM {table} ORDER BY 1, 2"))
            .unwrap();
        let columns = select.column_count();
        let mut rows = select.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            for column in 0..columns {
                content += &format!("{:?} ", row.get_ref(column).unwrap());
            }
            content += "\n";
        }
    }
    content
}
