//! The record of a call: its states, its data in each, and its stored form.

use serde_json::{Value, json};

use super::{at, change_to, denied, failure_for, made, pending, read_error, with, without};
use crate::records::{CallChange, CallChangeError, CallRecord, CallState, Confidence};
use crate::{Effect, ErrorCategory, Failure};

const ALLOWED: [(CallState, CallState); 8] = [
    (CallState::Pending, CallState::Running),
    (CallState::Pending, CallState::Error),
    (CallState::Pending, CallState::Cancelled),
    (CallState::Running, CallState::Success),
    (CallState::Running, CallState::Error),
    (CallState::Running, CallState::Timeout),
    (CallState::Running, CallState::Cancelled),
    (CallState::Running, CallState::Unknown),
];

fn every_pair() -> impl Iterator<Item = (CallState, CallState)> {
    let states = CallState::ALL;
    states
        .into_iter()
        .flat_map(move |from| states.into_iter().map(move |to| (from, to)))
}

#[test]
fn only_the_listed_transitions_are_allowed() {
    assert_eq!(every_pair().count(), 49);
    for (from, to) in every_pair() {
        let allowed = ALLOWED.contains(&(from, to));
        assert_eq!(from.may_become(to), allowed, "{from} -> {to}");
    }
}

#[test]
fn a_record_allows_exactly_the_transitions_of_its_state() {
    for (from, to) in every_pair() {
        let Some(change) = change_to(to) else {
            continue;
        };
        let mut call = match from {
            CallState::Pending => pending("r:1:0"),
            state => made("r:1:0", state),
        };
        let before = call.clone();
        let advanced = call.advance(change, at(2_000_000));
        if ALLOWED.contains(&(from, to)) {
            assert_eq!((advanced, call.state()), (Ok(()), to));
        } else {
            assert_eq!(advanced, Err(CallChangeError::NotAllowed { from, to }));
            assert_eq!(call, before, "a rejected change changes nothing");
        }
    }
}

#[test]
fn a_denied_call_cannot_change() {
    for to in CallState::ALL {
        if let Some(change) = change_to(to) {
            assert!(denied("r:1:0").advance(change, at(9)).is_err(), "{to}");
        }
    }
}

#[test]
fn a_state_is_final_if_it_has_no_transitions() {
    for from in CallState::ALL {
        let followed = CallState::ALL.into_iter().any(|to| from.may_become(to));
        assert_eq!(from.is_final(), !followed, "{from}");
    }
}

#[test]
fn a_success_has_a_result_and_every_other_end_a_failure() {
    for state in CallState::ALL.into_iter().filter(|state| state.is_final()) {
        let call = made("r:1:0", state);
        let outcome = call.outcome().unwrap();
        assert_eq!(outcome.is_ok(), state == CallState::Success, "{state}");
        assert_eq!(call.duration().unwrap().as_micros(), 1_234_500);
    }
    assert_eq!(pending("r:1:0").outcome(), None);
    assert_eq!(made("r:1:0", CallState::Running).outcome(), None);
}

#[test]
fn a_call_without_a_permit_has_no_start() {
    let mut undone = pending("r:1:0");
    let cancel = CallChange::Cancel(failure_for(CallState::Cancelled));
    undone.advance(cancel, at(5)).unwrap();
    for call in [pending("r:1:0"), denied("r:1:0"), undone] {
        assert!(!call.was_permitted());
        assert_eq!((call.started_at(), call.duration()), (None, None));
        assert_eq!(call.attempts(), 0);
    }
}

#[test]
fn a_call_that_never_started_has_no_effect() {
    let failure = Failure::new(ErrorCategory::Rejected, Effect::Applied, "no");
    let denied = pending("r:1:0").advance(CallChange::Fail(failure), at(1));
    assert_eq!(denied, Err(CallChangeError::EffectWithoutStart));
}

#[test]
fn the_failure_of_a_call_must_fit_its_state() {
    let failure = |category, effect| Failure::new(category, effect, "it broke");
    let other = failure(ErrorCategory::ToolFailure, Effect::None);
    let mut call = made("r:1:0", CallState::Running);
    assert_eq!(
        call.advance(CallChange::TimeOut(other.clone()), at(9)),
        Err(CallChangeError::Category {
            state: CallState::Timeout,
            expected: ErrorCategory::Timeout
        })
    );
    assert_eq!(
        call.advance(CallChange::Cancel(other.clone()), at(9)),
        Err(CallChangeError::Category {
            state: CallState::Cancelled,
            expected: ErrorCategory::Cancelled
        })
    );
    assert_eq!(
        call.advance(CallChange::MarkUnknown(other), at(9)),
        Err(CallChangeError::EffectOfUnknown)
    );
    assert_eq!(call.state(), CallState::Running);
}

#[test]
fn a_call_never_ends_before_its_start_even_if_the_clock_is_set_back() {
    let mut call = pending("r:1:0");
    call.advance(CallChange::Start, at(-5)).unwrap();
    assert_eq!(call.started_at(), Some(at(0)));
    call.advance(CallChange::Succeed(json!(1)), at(-9)).unwrap();
    assert_eq!(call.duration().unwrap().as_micros(), 0);
    let stored = serde_json::to_value(&call).unwrap();
    assert_eq!(serde_json::from_value::<CallRecord>(stored).unwrap(), call);
}

#[test]
fn attempts_are_counted_while_a_call_runs() {
    let mut call = made("r:1:0", CallState::Running);
    assert_eq!(call.attempts(), 1);
    assert_eq!(call.try_again(), Ok(2));
    call.advance(CallChange::Succeed(json!(1)), at(9_000))
        .unwrap();
    assert_eq!(call.attempts(), 2);
    assert_eq!(
        call.try_again(),
        Err(CallChangeError::NotRunning(CallState::Success))
    );
    let stored = serde_json::to_value(&call).unwrap();
    let read: CallRecord = serde_json::from_value(stored).unwrap();
    assert_eq!(read.attempts(), 2);
}

#[test]
fn a_stored_call_has_these_keys() {
    let confidence = Confidence::try_from(0.9).unwrap();
    let call = made("r:1:0", CallState::Success).with_confidence(confidence);
    assert_eq!(
        serde_json::to_value(&call).unwrap(),
        json!({
            "call_id": "r:1:0",
            "tool_name": "web_search",
            "arguments": { "query": "capital of France", "max_results": 5 },
            "confidence": 0.9,
            "state": "success",
            "permitted": true,
            "attempts": 1,
            "requested_at": "2024-10-17T00:04:16Z",
            "started_at": "2024-10-17T00:04:16.001Z",
            "ended_at": "2024-10-17T00:04:17.2355Z",
            "result": "Paris"
        })
    );
    let denied = serde_json::to_value(denied("r:1:1")).unwrap();
    assert_eq!(denied["permitted"], json!(false));
    assert_eq!(denied["failure"]["category"], json!("rejected"));
    assert_eq!(denied.get("started_at"), None);
}

#[test]
fn a_tool_that_returned_null_succeeded() {
    let mut call = made("r:1:0", CallState::Running);
    call.advance(CallChange::Succeed(Value::Null), at(9_000))
        .unwrap();
    let stored = serde_json::to_value(&call).unwrap();
    assert_eq!(stored["result"], Value::Null);
    let read: CallRecord = serde_json::from_value(stored.clone()).unwrap();
    assert_eq!(read.outcome(), Some(Ok(&Value::Null)));
    assert_eq!(
        read_error::<CallRecord>(without(stored, "result")),
        "a call that is success must have a result"
    );
}

#[test]
fn a_contradictory_stored_call_is_rejected() {
    let success = serde_json::to_value(made("r:1:0", CallState::Success)).unwrap();
    let error = serde_json::to_value(made("r:1:0", CallState::Error)).unwrap();
    let running = serde_json::to_value(made("r:1:0", CallState::Running)).unwrap();
    let pending_call = serde_json::to_value(pending("r:1:0")).unwrap();
    let denied_call = serde_json::to_value(denied("r:1:0")).unwrap();
    let early = json!("2001-01-01T00:00:00Z");
    let broken = [
        with(success.clone(), "failure", error["failure"].clone()),
        with(success.clone(), "permitted", json!(false)),
        with(success.clone(), "attempts", json!(0)),
        with(success.clone(), "ended_at", early.clone()),
        with(success.clone(), "started_at", early.clone()),
        with(success.clone(), "state", json!("pending")),
        with(success.clone(), "state", json!("done")),
        with(success.clone(), "arguments", json!([1])),
        with(success.clone(), "tool_name", json!("")),
        with(success.clone(), "confidence", json!(2)),
        with(success.clone(), "surprise", json!(1)),
        without(success.clone(), "started_at"),
        without(success, "ended_at"),
        with(error.clone(), "result", json!(1)),
        with(error.clone(), "result", json!(null)),
        with(error.clone(), "state", json!("timeout")),
        with(error.clone(), "state", json!("unknown")),
        without(error, "failure"),
        with(running.clone(), "ended_at", json!("2030-01-01T00:00:00Z")),
        with(running.clone(), "state", json!("pending")),
        without(running, "started_at"),
        with(pending_call.clone(), "state", json!("running")),
        with(pending_call, "attempts", json!(1)),
        with(denied_call.clone(), "state", json!("success")),
        with(denied_call.clone(), "permitted", json!(true)),
        with(
            denied_call.clone(),
            "started_at",
            json!("2030-01-01T00:00:00Z"),
        ),
        with(
            denied_call.clone(),
            "failure",
            with(denied_call["failure"].clone(), "effect", json!("applied")),
        ),
    ];
    let errors: Vec<_> = broken.into_iter().map(read_error::<CallRecord>).collect();
    insta::assert_snapshot!(errors.join("\n"));
}
