//! Tests of ended executions: counted, listed, and kept when their journal is purged.

use std::time::Duration;

use serde_json::json;
use windlass_core::run::{CallEnd, Event, ExecutedTool, Run};
use windlass_spec::{
    CallState, Effect, ErrorCategory, Failure, Timestamp, ToolExecutionResult, ToolName,
};
use windlass_store::{Durability, ExecutionFilter, Store};

use super::support::{at, id, new_run, next_event, open, started};

/// Drives a run until its calls have ended with these ends.
fn run(store: &Store, name: &str, ends: &[CallEnd]) {
    let first = started(name, "Find it.");
    let journal = store.start(new_run(), &first, Durability::Synced).unwrap();
    let mut run = Run::fold([&first]).unwrap();
    let (mut second, mut ended) = (1, 0);
    while ended < ends.len() {
        let mut event = next_event(&run, second, &ends[ended]);
        if let Event::CallEnded { call, ran, .. } = &mut event {
            let (record, _) = run.call(call).unwrap();
            *ran = Some(ExecutedTool {
                tool: record.tool_name().clone(),
                started_at: record.started_at().unwrap(),
                variant: None,
                notices: Vec::new(),
            });
            ended += 1;
        }
        run.apply(&event).unwrap();
        journal.append(&event, Durability::Synced).unwrap();
        second += 1;
    }
    journal.end(&windlass_core::run::RunEnd::Cancelled).unwrap();
}

fn failed(category: ErrorCategory) -> CallEnd {
    CallEnd::Error(Failure::new(category, Effect::None, "the disk is on fire"))
}

fn search() -> ToolName {
    ToolName::new("search").unwrap()
}

fn all(store: &Store) -> Vec<windlass_store::Execution> {
    store.executions(&ExecutionFilter::default()).unwrap()
}

#[test]
fn successes_and_failures_are_counted_per_tool() {
    let (_directory, store) = open();
    let timeout = CallEnd::Timeout(Failure::new(
        ErrorCategory::Timeout,
        Effect::None,
        "too slow",
    ));
    run(
        &store,
        "r1",
        &[
            CallEnd::Success(json!("found")),
            failed(ErrorCategory::ToolFailure),
            timeout,
            CallEnd::Success(json!("found again")),
        ],
    );
    let statistics = store.tool_statistics(&ExecutionFilter::default()).unwrap();
    assert_eq!(statistics.len(), 1);
    let of = &statistics[0];
    assert_eq!(of.tool, search());
    assert_eq!(
        (
            of.executions,
            of.success_count,
            of.failure_count,
            of.timeout_count
        ),
        (4, 2, 2, 1)
    );
    assert_eq!(of.last_error, Some(ErrorCategory::Timeout));
    assert_eq!(of.median_ms, 1000);
    assert!((of.success_rate() - 0.5).abs() < 1e-9);
    let none = ExecutionFilter {
        tenant: Some("other".to_owned()),
        ..ExecutionFilter::default()
    };
    assert!(store.tool_statistics(&none).unwrap().is_empty());
}

#[test]
fn an_execution_is_listed_with_its_result_or_its_error() {
    let (_directory, store) = open();
    let ends = [
        CallEnd::Success(json!({"hits": 3})),
        failed(ErrorCategory::Unavailable),
    ];
    run(&store, "r1", &ends);
    let listed = all(&store);
    assert_eq!(listed.len(), 2);
    assert_eq!(listed[0].state, CallState::Error);
    assert_eq!(listed[0].error.as_deref(), Some("the disk is on fire"));
    assert_eq!(listed[1].result.as_deref(), Some(r#"{"hits":3}"#));
    assert!(listed[0].ended_at > listed[1].ended_at);
    let latest = ExecutionFilter {
        limit: Some(1),
        ..ExecutionFilter::default()
    };
    assert_eq!(store.executions(&latest).unwrap(), listed[..1]);
}

#[test]
fn a_purge_keeps_executions_without_their_content() {
    let (_directory, store) = open();
    run(
        &store,
        "r1",
        &[
            CallEnd::Success(json!("found")),
            failed(ErrorCategory::ToolFailure),
        ],
    );
    let late = Timestamp::from_microseconds(i64::MAX / 2);
    let purged = store.purge(Duration::ZERO, late).unwrap();
    assert_eq!(purged.removed.len(), 1);
    let listed = all(&store);
    assert_eq!(listed.len(), 2);
    assert!(
        listed
            .iter()
            .all(|one| one.error.is_none() && one.result.is_none())
    );
    assert_eq!(listed[0].category, Some(ErrorCategory::ToolFailure));
    // They cannot be deleted.
    let connection = rusqlite::Connection::open(store.path()).unwrap();
    assert!(connection.execute("DELETE FROM executions", []).is_err());
}

#[test]
fn failures_by_people_or_arguments_do_not_count_for_the_tool() {
    let (_directory, store) = open();
    run(
        &store,
        "r1",
        &[
            failed(ErrorCategory::Unavailable),
            failed(ErrorCategory::NotFound),
            failed(ErrorCategory::InvalidArguments),
            CallEnd::Success(json!("found")),
            failed(ErrorCategory::ToolFailure),
        ],
    );
    let latest = store.latest_ends("acme", &search(), 10).unwrap();
    let failures: Vec<bool> = latest
        .iter()
        .map(|(_, has_failed, _)| *has_failed)
        .collect();
    assert_eq!(failures, [true, false, true]);
    assert_eq!(store.latest_ends("acme", &search(), 1).unwrap().len(), 1);
}

#[test]
fn executions_from_before_the_table_existed_are_counted() {
    let (_directory, store) = open();
    run(&store, "r1", &[CallEnd::Success(json!("found"))]);
    let kept = all(&store);
    let path = store.path().to_owned();
    drop(store);
    // Restores the earlier schema.
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection
        .execute_batch(super::support::WITHOUT_EVIDENCE)
        .unwrap();
    connection
        .execute_batch(
            "DROP VIEW tool_gap_log; DROP VIEW journal_gaps; DROP TABLE tool_gaps; DROP VIEW plans;
             DROP TABLE memory_sources; DROP TABLE memory_term_uses; DROP TABLE memory_terms; DROP TABLE memory_chunks; DROP TABLE memory_documents;
             DROP TABLE memory_scopes; DROP TABLE memory_vectors; DROP TABLE memory_exact_vectors;
             DROP TABLE memory_removed; DROP TABLE memory_settings;
             DROP TABLE pins; DROP TABLE servers; DROP TABLE executions; DROP TABLE rate_limits;
             PRAGMA user_version = 3;",
        )
        .unwrap();
    drop(connection);
    let store = Store::open(path).unwrap();
    assert_eq!(all(&store), kept);
}

#[test]
fn an_execution_from_the_call_record_matches_the_table() {
    let (_directory, store) = open();
    run(&store, "r1", &[CallEnd::Success(json!("found"))]);
    let events: Vec<Event> = store
        .events(&id("r1"))
        .unwrap()
        .into_iter()
        .map(|(_, event)| event)
        .collect();
    let run = Run::fold(&events).unwrap();
    let record = run.calls().next().unwrap();
    let view = ToolExecutionResult::of(record).unwrap();
    let listed = &all(&store)[0];
    let view = serde_json::to_value(view).unwrap();
    assert_eq!(view["execution_id"], listed.call.to_string());
    assert_eq!(view["duration_ms"], 1000);
    assert!(at(0) < listed.started_at && listed.started_at < listed.ended_at);
}
