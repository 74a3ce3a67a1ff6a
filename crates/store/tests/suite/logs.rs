//! Tests of the SQL views of the journal: they match the folded journal.
//!
//! The journals come from real runs, in the order of their file names.

use std::process::Command;

use rusqlite::Connection;
use rusqlite::types::Value as SqlValue;
use serde_json::{Value, json};
use tempfile::TempDir;
use windlass_core::model::{RequestedArguments, RequestedCall};
use windlass_core::run::{CallEnd, Event, Next, Run};
use windlass_spec::{Effect, ErrorCategory, Failure};
use windlass_store::{Durability, Store};

use super::holds::hold;
use super::questions::{approval, call, edited, event, identity, now};
use super::support::{answered, asked, at, new_run, next_event, open, start, success, unknown};

const GUIDE: &str = include_str!("../../../../docs/store.md");

const JOURNALS: [&str; 3] = [
    include_str!("../journals/1-hello_world_agent-completed.jsonl"),
    include_str!("../journals/2-hello_world_agent-failed.jsonl"),
    include_str!("../journals/3-editor-completed.jsonl"),
];

/// A store with the journals, and the runs they fold into.
fn stored_journals() -> (TempDir, Store, Vec<Run>) {
    let (directory, store) = open();
    let mut runs = Vec::new();
    for journal in JOURNALS {
        let events: Vec<Event> = journal
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let owned = store
            .start(new_run(), &events[0], Durability::Relaxed)
            .unwrap();
        for event in &events[1..] {
            owned.append(event, Durability::Relaxed).unwrap();
        }
        let run = Run::fold(&events).unwrap();
        let Next::Done(end) = run.next() else {
            panic!("the run has not ended");
        };
        owned.end(&end).unwrap();
        runs.push(run);
    }
    (directory, store, runs)
}

fn query(store: &Store, sql: &str) -> Vec<Vec<SqlValue>> {
    let connection = Connection::open(store.path()).unwrap();
    let mut select = connection.prepare(sql).unwrap();
    let columns = select.column_count();
    let rows = select
        .query_map([], |row| {
            (0..columns).map(|column| row.get(column)).collect()
        })
        .unwrap();
    rows.map(Result::unwrap).collect()
}

/// The rows as the program `sqlite3` prints them.
fn sqlite3_format(rows: &[Vec<SqlValue>]) -> String {
    let show = |value: &SqlValue| match value {
        SqlValue::Null => String::new(),
        SqlValue::Integer(number) => number.to_string(),
        SqlValue::Real(number) => format!("{number:?}"),
        SqlValue::Text(text) => text.clone(),
        SqlValue::Blob(_) => "a blob".to_owned(),
    };
    let line = |row: &Vec<SqlValue>| row.iter().map(show).collect::<Vec<_>>().join("|") + "\n";
    rows.iter().map(line).collect()
}

fn json_of(value: &SqlValue) -> Value {
    let SqlValue::Text(text) = value else {
        panic!("{value:?} is not a text");
    };
    serde_json::from_str(text).unwrap()
}

#[test]
fn agent_executions_match_the_run_response() {
    let (_directory, store, runs) = stored_journals();
    for (index, run) in runs.iter().enumerate() {
        let response = serde_json::to_value(run.response()).unwrap();
        let sql = format!(
            "SELECT answer, reasoning, confidence, tool_calls, tenant, principal, task, run_end
             FROM agent_executions WHERE run = '{}'",
            run.id()
        );
        let rows = query(&store, &sql);
        let [row] = &rows[..] else {
            panic!("{rows:?}");
        };
        assert_eq!(
            row[4..6],
            ["acme".to_owned().into(), "ada".to_owned().into()]
        );
        if index == 1 {
            // The run failed, so it has no answer. The arguments of its only call were not JSON.
            assert_eq!(row[..3], [SqlValue::Null, SqlValue::Null, SqlValue::Null]);
            let mut calls = response["tool_calls"].clone();
            calls[0]["parameters"] = Value::Null;
            assert_eq!(json_of(&row[3]), calls);
            continue;
        }
        assert_eq!(json!(row[0].clone_text()), response["answer"]);
        assert_eq!(
            row[2],
            SqlValue::Real(response["confidence"].as_f64().unwrap())
        );
        assert_eq!(json_of(&row[3]), response["tool_calls"]);
        if index == 0 {
            assert_eq!(json!(row[1].clone_text()), response["reasoning"]);
        } else {
            assert_eq!(
                row[1],
                SqlValue::Null,
                "a run that ends with a text has no reasoning"
            );
        }
    }
}

trait CloneText {
    fn clone_text(&self) -> Option<String>;
}

impl CloneText for SqlValue {
    fn clone_text(&self) -> Option<String> {
        match self {
            SqlValue::Text(text) => Some(text.clone()),
            _ => None,
        }
    }
}

#[test]
fn a_gap_is_a_tool_the_agent_does_not_have() {
    let (_directory, store, _) = stored_journals();
    let sql =
        "SELECT missing_tools, attempted_task, existing_tools_checked, agent, tenant, principal
               FROM tool_gap_log";
    assert_eq!(
        sqlite3_format(&query(&store, sql)),
        "[\"sayHelo\"]|Say hello to Ada|[\"sayHello\"]|hello_world_agent|acme|ada\n",
        "neither `finish` nor a sub-agent is a gap"
    );
}

#[test]
fn a_tool_that_the_gate_knows_is_not_a_gap() {
    let (_directory, store) = open();
    let (journal, run) = start(&store, "r1");
    let calls = ["ask_human", "fly", "fly", "swim"].map(|tool| asked(tool, json!({})));
    let answer = answered(&run, calls.to_vec(), 1);
    journal.append(&answer, Durability::Relaxed).unwrap();
    for (index, stage) in [(0, "passed"), (3, "known_tool")] {
        let decided = json!({
            "event": "decided",
            "call": format!("r1:1:{index}"),
            "decision": {"verdict": "deny", "stage": stage, "reason": "no", "category": "not_found"},
            "at": at(2),
        });
        let decided: Event = serde_json::from_value(decided).unwrap();
        journal.append(&decided, Durability::Synced).unwrap();
    }
    let sql = "SELECT missing_tools, existing_tools_checked FROM tool_gap_log WHERE run = 'r1'";
    assert_eq!(
        sqlite3_format(&query(&store, sql)),
        "[\"fly\",\"swim\"]|[\"search\"]\n"
    );
}

#[test]
fn tool_call_log_has_the_end_of_each_call() {
    let (_directory, store) = open();
    let failure = |category| Failure::new(category, Effect::Unknown, "no luck");
    let ends = [
        ("r1", success()),
        ("r2", CallEnd::Error(failure(ErrorCategory::Internal))),
        ("r3", CallEnd::Timeout(failure(ErrorCategory::Timeout))),
        ("r4", CallEnd::Cancelled(failure(ErrorCategory::Cancelled))),
        ("r5", unknown()),
        ("r6", CallEnd::Success(Value::Null)),
    ];
    for (name, end) in &ends {
        let (journal, mut run) = start(&store, name);
        // The model requests the call, the gate decides, the call starts, and ends a second later.
        for second in 1..=4 {
            let event = next_event(&run, second, end);
            run.apply(&event).unwrap();
            journal.append(&event, Durability::Synced).unwrap();
        }
    }
    let (journal, mut run) = start(&store, "r7");
    for second in 1..=3 {
        let event = next_event(&run, second, &success());
        run.apply(&event).unwrap();
        journal.append(&event, Durability::Synced).unwrap();
    }
    let sql = "SELECT run, turn, tool_name, parameters, result, duration_ms, status,
                   error_category, error, confidence, verdict
               FROM tool_call_log ORDER BY run";
    let call = r#"1|search|{"query":"question 1"}"#;
    assert_eq!(
        sqlite3_format(&query(&store, sql)),
        format!(
            "r1|{call}|\"found\"|1000|success|||0.9|allow\n\
             r2|{call}||1000|failed|internal|no luck|0.9|allow\n\
             r3|{call}||1000|timeout|timeout|no luck|0.9|allow\n\
             r4|{call}||1000|failed|cancelled|no luck|0.9|allow\n\
             r5|{call}||1000|failed|internal|the line went dead|0.9|allow\n\
             r6|{call}|null|1000|success|||0.9|allow\n\
             r7|{call}||||||0.9|allow\n"
        )
    );
}

/// Inserts an event into a journal, of a kind that this version may not know.
fn insert_event(store: &Store, run: &str, seq: i64, payload: &Value) {
    let connection = Connection::open(store.path()).unwrap();
    let kind = payload["event"].as_str().unwrap();
    connection
        .execute(
            "INSERT INTO events (run, seq, kind, at, payload, tenant, principal)
             VALUES (?1, ?2, ?3, 0, ?4, 'acme', 'ada')",
            (run, seq, kind, payload.to_string()),
        )
        .unwrap();
}

#[test]
fn tool_call_log_has_the_decider_and_the_final_arguments() {
    let (_directory, store) = open();
    let (journal, run) = start(&store, "r1");
    let requested = RequestedCall {
        tool: "pay".to_owned(),
        arguments: RequestedArguments::Json(json!({"to": "bob", "amount": 10})),
        confidence: Some(7.0),
    };
    let answer = answered(&run, vec![requested; 3], 1);
    journal.append(&answer, Durability::Synced).unwrap();
    let question = approval(call("r1", 0));
    journal
        .append_asking(&event(&journal, 1), &question)
        .unwrap();
    for index in [1, 2] {
        let held = hold("r1", index);
        journal.append_holding(&event(&journal, 1), &held).unwrap();
    }
    store
        .decide(&call("r1", 0), None, &identity("bea"), edited(9), now())
        .unwrap();
    store
        .undo(&call("r1", 1), &identity("carl"), at(2))
        .unwrap();
    drop(journal);
    for (seq, index) in [(10, 0), (11, 1), (12, 2)] {
        let ask = json!({"verdict": "ask", "stage": "policy"});
        let call = format!("r1:1:{index}");
        insert_event(
            &store,
            "r1",
            seq,
            &json!({"event": "decided", "call": call, "decision": ask}),
        );
    }
    let allow = json!({"verdict": "allow", "stage": "passed"});
    insert_event(
        &store,
        "r1",
        13,
        &json!({"event": "decided", "call": "r1:1:0", "decision": allow}),
    );
    insert_event(
        &store,
        "r1",
        14,
        &json!({"event": "call_started", "call": "r1:1:0"}),
    );

    let sql = "SELECT call, tool_name, parameters, confidence, verdict, approval, hold, decided_by
               FROM tool_call_log ORDER BY call";
    assert_eq!(
        sqlite3_format(&query(&store, sql)),
        "r1:1:0|pay|{\"to\":\"bob\",\"amount\":9}|1.0|allow|approved||bea\n\
         r1:1:1|pay|{\"to\":\"bob\",\"amount\":10}|1.0|ask||undone|carl\n\
         r1:1:2|pay|{\"to\":\"bob\",\"amount\":10}|1.0|ask||held|\n"
    );
}

#[test]
fn a_purged_run_keeps_its_rows_without_content() {
    let (_directory, store, _) = stored_journals();
    let later = at(1_000_000_000);
    store.purge(std::time::Duration::ZERO, later).unwrap();
    let sql = "SELECT agent, state, answer IS NULL, tool_calls FROM agent_executions ORDER BY run";
    assert_eq!(
        sqlite3_format(&query(&store, sql)),
        "hello_world_agent|ended|1|[]\nhello_world_agent|ended|1|[]\neditor|ended|1|[]\n"
    );
    let sql =
        "SELECT call, verdict, tool_name IS NULL FROM tool_call_log ORDER BY run, call LIMIT 1";
    assert_eq!(
        sqlite3_format(&query(&store, sql)),
        "01a1e1d1226870c9a81a75786eae3aa5:1:0|allow|1\n"
    );
    assert_eq!(query(&store, "SELECT * FROM tool_gap_log").len(), 0);
}

/// The examples of the guide: queries and their results.
fn examples() -> Vec<(&'static str, &'static str)> {
    let mut blocks = GUIDE.split("```sql\n").skip(1);
    let example = |block: &'static str| {
        let (sql, rest) = block.split_once("```").unwrap();
        let rest = rest.split_once("```text\n").unwrap().1;
        (sql, rest.split_once("```").unwrap().0)
    };
    blocks.by_ref().map(example).collect()
}

#[test]
fn the_examples_of_the_guide_are_correct() {
    let (_directory, store, _) = stored_journals();
    let examples = examples();
    assert!(examples.len() >= 3, "{examples:?}");
    for (sql, expected) in examples {
        assert_eq!(sqlite3_format(&query(&store, sql)), expected, "{sql}");
    }
}

#[test]
fn the_sqlite3_program_reads_the_tables() {
    let (_directory, store, _) = stored_journals();
    for (sql, expected) in examples() {
        let Ok(output) = Command::new("sqlite3").arg(store.path()).arg(sql).output() else {
            println!("skipped: the program sqlite3 is not installed");
            return;
        };
        let found = String::from_utf8(output.stdout).unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!((found.as_str(), stderr.as_str()), (expected, ""), "{sql}");
    }
}

#[test]
fn a_query_about_one_run_reads_only_that_run() {
    let (_directory, store, _) = stored_journals();
    for view in ["agent_executions", "tool_call_log", "tool_gap_log"] {
        let plan = format!("EXPLAIN QUERY PLAN SELECT * FROM {view} WHERE run = 'r1'");
        for row in query(&store, &plan) {
            let step = row[3].clone_text().unwrap();
            let table = step.strip_prefix("SCAN ").unwrap_or_default();
            let is_of_the_journal = ["events", "runs", "started", "asked", "decided"]
                .iter()
                .any(|name| table.starts_with(name));
            assert!(!is_of_the_journal, "{view}: {step}");
        }
    }
}
