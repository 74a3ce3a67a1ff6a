//! Tests of the records, one file per subject, and shared fixtures.

mod answers;
mod calls;
mod conversations;
mod examples;
mod intents;
mod numbers;
mod properties;
pub(crate) mod schemas;
mod steps;
mod strategies;
mod tasks;
mod views;

use serde_json::{Map, Value, json};

use super::{CallChange, CallId, CallRecord, CallState, Turn};
use crate::{Effect, ErrorCategory, Failure, NonEmptyText, Timestamp, ToolName};

fn at(microseconds: i64) -> Timestamp {
    Timestamp::from_microseconds(1_729_123_456_000_000 + microseconds)
}

fn text(text: &str) -> NonEmptyText {
    NonEmptyText::new(text).unwrap()
}

fn tool(name: &str) -> ToolName {
    ToolName::new(name).unwrap()
}

fn turn(number: u32) -> Turn {
    Turn::try_from(number).unwrap()
}

fn call_id(id: &str) -> CallId {
    id.parse().unwrap()
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("not an object: {other}"),
    }
}

/// A pending call of `web_search`.
fn pending(id: &str) -> CallRecord {
    let arguments = object(json!({ "query": "capital of France", "max_results": 5 }));
    CallRecord::requested(call_id(id), tool("web_search"), arguments, at(0))
}

/// A failure that can end a call in this state.
fn failure_for(state: CallState) -> Failure {
    let (category, effect) = match state {
        CallState::Timeout => (ErrorCategory::Timeout, Effect::Unknown),
        CallState::Cancelled => (ErrorCategory::Cancelled, Effect::None),
        CallState::Unknown => (ErrorCategory::Internal, Effect::Unknown),
        _ => (ErrorCategory::Unavailable, Effect::None),
    };
    Failure::foreign(category, effect, "no route to 10.0.0.7")
}

/// The change that leads to a state; nothing leads to `pending`.
fn change_to(state: CallState) -> Option<CallChange> {
    Some(match state {
        CallState::Pending => return None,
        CallState::Running => CallChange::Start,
        CallState::Success => CallChange::Succeed(json!("Paris")),
        CallState::Error => CallChange::Fail(failure_for(state)),
        CallState::Timeout => CallChange::TimeOut(failure_for(state)),
        CallState::Cancelled => CallChange::Cancel(failure_for(state)),
        CallState::Unknown => CallChange::MarkUnknown(failure_for(state)),
    })
}

/// A call that was started, and ended in this state 1234.5 milliseconds later.
fn made(id: &str, state: CallState) -> CallRecord {
    let mut call = pending(id);
    call.advance(CallChange::Start, at(1_000)).unwrap();
    if state != CallState::Running {
        call.advance(change_to(state).unwrap(), at(1_235_500))
            .unwrap();
    }
    call
}

/// A call that was never permitted.
fn denied(id: &str) -> CallRecord {
    let mut call = pending(id);
    let failure = Failure::new(
        ErrorCategory::Rejected,
        Effect::None,
        "the approver rejected it",
    );
    call.advance(CallChange::Fail(failure), at(2_000)).unwrap();
    call
}

/// The error of reading a value as `T`.
fn read_error<T: serde::de::DeserializeOwned + std::fmt::Debug>(value: Value) -> String {
    match serde_json::from_value::<T>(value.clone()) {
        Ok(read) => panic!("{value} was read as {read:?}"),
        Err(error) => error.to_string(),
    }
}

/// The same object with one key set.
fn with(mut value: Value, key: &str, new: Value) -> Value {
    value[key] = new;
    value
}

/// The same object with one key removed.
fn without(mut value: Value, key: &str) -> Value {
    let removed = value.as_object_mut().unwrap().shift_remove(key);
    assert!(removed.is_some(), "there is no {key}");
    value
}
