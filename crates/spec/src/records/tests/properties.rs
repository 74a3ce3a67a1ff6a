//! Properties of every call after any changes.

use proptest::prelude::*;
use serde_json::json;

use super::{at, change_to, pending};
use crate::records::{
    CallRecord, CallState, Confidence, ToolCall, ToolCallRecord, ToolExecutionResult,
    ToolInvocation,
};

fn any_state() -> impl Strategy<Value = CallState> {
    proptest::sample::select(CallState::ALL.to_vec())
}

/// Any changes, at any times, allowed or not.
fn any_changes() -> impl Strategy<Value = Vec<(CallState, i64)>> {
    proptest::collection::vec((any_state(), -5_000_000..5_000_000_i64), 0..6)
}

fn call_after(changes: &[(CallState, i64)]) -> CallRecord {
    let mut call = pending("r:1:0");
    for &(state, time) in changes {
        if let Some(change) = change_to(state) {
            // Rejected changes are part of the test.
            let _ = call.advance(change, at(time));
        }
    }
    call
}

proptest! {
    #[test]
    fn a_record_is_always_consistent_and_reads_back(changes in any_changes()) {
        let call = call_after(&changes);
        let state = call.state();
        prop_assert_eq!(call.outcome().is_some(), state.is_final());
        prop_assert_eq!(call.ended_at().is_some(), state.is_final());
        prop_assert_eq!(matches!(call.outcome(), Some(Ok(_))), state == CallState::Success);
        prop_assert_eq!(call.was_permitted(), call.started_at().is_some());
        prop_assert!(call.started_at().is_none_or(|start| start >= call.requested_at()));
        prop_assert!(call.ended_at() >= call.started_at() || call.ended_at().is_none());
        let read: CallRecord = serde_json::from_value(json!(call)).unwrap();
        prop_assert_eq!(read, call);
    }

    #[test]
    fn a_view_exists_exactly_for_a_permitted_call_that_ended(changes in any_changes()) {
        let call = call_after(&changes);
        let made = call.was_permitted() && call.state().is_final();
        prop_assert_eq!(ToolCallRecord::of(&call).is_some(), made);
        prop_assert_eq!(ToolCall::of(&call).is_some(), made);
        prop_assert_eq!(ToolInvocation::of(&call).is_some(), made);
        prop_assert_eq!(ToolExecutionResult::of(&call).is_some(), call.was_permitted());
    }

    #[test]
    fn every_number_clamps_to_a_confidence(number in any::<f64>()) {
        let (confidence, clamped) = Confidence::clamped(number);
        prop_assert!((0.0..=1.0).contains(&confidence.get()));
        prop_assert_eq!(clamped, Confidence::try_from(number).is_err());
    }

    #[test]
    fn a_step_keeps_its_times_to_the_microsecond(
        time in 0..4_102_444_800_000_000_i64,
        duration in 0..10_000_000_000_u64,
    ) {
        let step = crate::ReasoningStep::finish(
            super::turn(1),
            super::text("hm"),
            super::text("ok"),
            crate::Timestamp::from_microseconds(time),
            std::time::Duration::from_micros(duration),
        );
        let text = serde_json::to_string(&step).unwrap();
        prop_assert_eq!(serde_json::from_str::<crate::ReasoningStep>(&text).unwrap(), step);
    }
}
