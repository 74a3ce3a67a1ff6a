//! Reasoning steps.

use std::time::Duration;

use serde_json::{Value, json};

use super::examples::reasoning_step;
use super::{at, denied, made, read_error, text, turn, with, without};
use crate::records::{CallState, ReasoningStep, StepAction, StepCall, StepError};

fn call_step(calls: &[crate::CallRecord]) -> Result<ReasoningStep, StepError> {
    let thought = text("I should look it up");
    ReasoningStep::call_tool(
        turn(1),
        thought,
        calls,
        at(0),
        Duration::from_micros(45_200),
    )
}

fn finish_step() -> ReasoningStep {
    let thought = text("that is all");
    ReasoningStep::finish(turn(2), thought, text("Paris"), at(0), Duration::ZERO)
}

#[test]
fn reasoning_step_keeps_its_documented_form() {
    let step: ReasoningStep = serde_json::from_value(reasoning_step()).unwrap();
    assert_eq!(step.iteration(), turn(1));
    assert_eq!(step.action(), StepAction::CallTool);
    assert_eq!(step.timestamp().as_microseconds(), 1_729_123_456_789_000);
    assert_eq!(step.duration(), Duration::from_micros(45_200));
    assert_eq!(serde_json::to_value(step).unwrap(), reasoning_step());
}

#[test]
fn reasoning_step_needs_a_thought() {
    for empty in ["", "  \n"] {
        let read_error =
            read_error::<ReasoningStep>(with(reasoning_step(), "thought", json!(empty)));
        assert!(read_error.starts_with("thought:"), "{read_error}");
    }
}

#[test]
fn iteration_is_a_positive_integer() {
    for number in [json!(0), json!(-1), json!(4_294_967_296_u64)] {
        let read_error = read_error::<ReasoningStep>(with(reasoning_step(), "iteration", number));
        assert!(
            read_error.starts_with("iteration must be 1 or more"),
            "{read_error}"
        );
    }
}

#[test]
fn call_tool_needs_a_tool_name_and_tool_args() {
    for (key, expected) in [
        ("tool_name", "a call_tool step must have a tool_name"),
        ("tool_args", "a call_tool step must have tool_args"),
    ] {
        assert_eq!(
            read_error::<ReasoningStep>(without(reasoning_step(), key)),
            expected
        );
        read_error::<ReasoningStep>(with(reasoning_step(), key, Value::Null));
    }
    read_error::<ReasoningStep>(with(reasoning_step(), "tool_args", json!([1])));
}

#[test]
fn finish_has_the_answer_as_observation() {
    let step = finish_step();
    assert_eq!(step.observation(), Some("Paris"));
    let written = serde_json::to_value(&step).unwrap();
    assert_eq!(written["action"], json!("finish"));
    assert_eq!(written["tool_name"], Value::Null);
    for empty in [json!(""), Value::Null] {
        assert_eq!(
            read_error::<ReasoningStep>(with(written.clone(), "observation", empty)),
            "a finish step must have the final answer as its observation"
        );
    }
    assert_eq!(
        read_error::<ReasoningStep>(with(written, "tool_name", json!("web_search"))),
        "a finish step must not call a tool"
    );
}

#[test]
fn there_are_two_actions() {
    assert_eq!(
        StepAction::ALL.map(StepAction::as_str),
        ["call_tool", "finish"]
    );
    read_error::<ReasoningStep>(with(reasoning_step(), "action", json!("think")));
}

#[test]
fn times_and_durations_of_a_step_must_be_valid() {
    read_error::<ReasoningStep>(with(reasoning_step(), "duration_ms", json!(-1)));
    read_error::<ReasoningStep>(with(reasoning_step(), "duration_ms", json!(1e300)));
    read_error::<ReasoningStep>(with(reasoning_step(), "timestamp", json!(1e300)));
    read_error::<ReasoningStep>(with(reasoning_step(), "timestamp", json!("today")));
}

#[test]
fn a_step_has_all_calls_of_its_turn_including_denied_ones() {
    let step = call_step(&[denied("r:1:0"), made("r:1:1", CallState::Success)]).unwrap();
    assert_eq!(step.tool_name().unwrap().as_str(), "web_search");
    assert_eq!(
        step.observation(),
        Some("web_search: the approver rejected it\nweb_search: Paris")
    );
    let permitted: Vec<_> = step.calls().iter().map(StepCall::was_permitted).collect();
    assert_eq!(permitted, [false, true]);
    let written = serde_json::to_value(&step).unwrap();
    assert_eq!(
        written["calls"][0],
        json!({
            "call_id": "r:1:0",
            "tool_name": "web_search",
            "tool_args": { "query": "capital of France", "max_results": 5 },
            "state": "error",
            "permitted": false,
            "observation": "the approver rejected it"
        })
    );
    assert_eq!(
        serde_json::from_value::<ReasoningStep>(written).unwrap(),
        step
    );
}

#[test]
fn a_step_never_contains_the_message_for_the_operator() {
    let step = call_step(&[made("r:1:0", CallState::Error)]).unwrap();
    let written = serde_json::to_string(&step).unwrap();
    assert!(!written.contains("10.0.0.7"), "{written}");
}

#[test]
fn a_call_that_has_not_ended_has_no_observation() {
    let step = call_step(&[super::pending("r:1:0")]).unwrap();
    assert_eq!(step.observation(), None);
    let both = [super::pending("r:1:0"), made("r:1:1", CallState::Running)];
    assert_eq!(call_step(&both).unwrap().observation(), None);
}

#[test]
fn a_step_has_only_calls_of_its_own_turn() {
    assert_eq!(call_step(&[]), Err(StepError::NoCalls));
    let stray = call_step(&[
        made("r:1:0", CallState::Success),
        made("r:2:0", CallState::Success),
    ]);
    assert_eq!(
        stray.unwrap_err().to_string(),
        "call r:2:0 does not belong to iteration 1"
    );
}

#[test]
fn the_tool_name_must_be_that_of_the_first_call() {
    let step = serde_json::to_value(call_step(&[made("r:1:0", CallState::Success)]).unwrap());
    let step = step.unwrap();
    for (key, other) in [("tool_name", json!("other")), ("tool_args", json!({}))] {
        assert_eq!(
            read_error::<ReasoningStep>(with(step.clone(), key, other)),
            "tool_name and tool_args must be those of the first entry of `calls`"
        );
    }
    read_error::<ReasoningStep>(with(step, "iteration", json!(2)));
}

#[test]
fn the_state_of_a_call_must_fit_its_permit() {
    let step = call_step(&[made("r:1:0", CallState::Error)]).unwrap();
    let call = serde_json::to_value(&step.calls()[0]).unwrap();
    for state in CallState::ALL {
        for permitted in [true, false] {
            let call = with(call.clone(), "state", json!(state));
            let call = with(call, "permitted", json!(permitted));
            let possible = match state {
                CallState::Pending => !permitted,
                CallState::Error | CallState::Cancelled => true,
                _ => permitted,
            };
            let read = serde_json::from_value::<StepCall>(call);
            assert_eq!(read.is_ok(), possible, "{state} {permitted}");
        }
    }
}
