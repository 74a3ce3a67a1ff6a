//! Confidences and ids.

use serde_json::json;

use super::read_error;
use crate::records::{CallId, CallState, Confidence, IdError, RunId, ToolCallStatus, Turn};

#[test]
fn confidence_is_between_0_and_1() {
    for number in [0.0, 0.5, 0.95, 1.0] {
        assert_eq!(Confidence::try_from(number).unwrap().get(), number);
    }
    for number in [-0.1, 1.000_000_1, 1.5, f64::NAN, f64::INFINITY] {
        assert!(Confidence::try_from(number).is_err(), "{number}");
    }
    assert_eq!(
        read_error::<Confidence>(json!(1.5)),
        "a confidence must be between 0.0 and 1.0, not 1.5"
    );
    let whole: Confidence = serde_json::from_str("1").unwrap();
    assert_eq!(whole, Confidence::FULL);
}

#[test]
fn a_confidence_out_of_range_is_clamped_and_flagged() {
    let clamped = |number| {
        let (confidence, was_clamped) = Confidence::clamped(number);
        (confidence.get(), was_clamped)
    };
    assert_eq!(clamped(0.7), (0.7, false));
    assert_eq!(clamped(1.0), (1.0, false));
    assert_eq!(clamped(95.0), (1.0, true));
    assert_eq!(clamped(-3.0), (0.0, true));
    assert_eq!(clamped(f64::INFINITY), (1.0, true));
    assert_eq!(clamped(f64::NEG_INFINITY), (0.0, true));
}

#[test]
fn a_nan_confidence_counts_as_none() {
    assert_eq!(Confidence::clamped(f64::NAN), (Confidence::NONE, true));
}

#[test]
fn negative_zero_becomes_positive_zero() {
    let zero = Confidence::try_from(-0.0).unwrap();
    assert!(zero.get().is_sign_positive());
    assert_eq!(zero.cmp(&Confidence::NONE), std::cmp::Ordering::Equal);
}

#[test]
fn a_call_id_is_its_position() {
    let id: CallId = "r1:2:0".parse().unwrap();
    assert_eq!((id.run.as_str(), id.turn.number(), id.index), ("r1", 2, 0));
    assert_eq!(id.to_string(), "r1:2:0");
    assert_eq!(serde_json::to_value(&id).unwrap(), json!("r1:2:0"));
}

#[test]
fn a_run_may_be_named_after_the_call_that_started_it() {
    let parent: CallId = "r1:2:0".parse().unwrap();
    let run = RunId::new(parent.to_string()).unwrap();
    let child = CallId {
        run: run.clone(),
        turn: Turn::FIRST.next(),
        index: 3,
    };
    assert_eq!(child.to_string(), "r1:2:0:2:3");
    let read: CallId = child.to_string().parse().unwrap();
    assert_eq!(read.run, run);
}

#[test]
fn invalid_call_ids_are_rejected() {
    for text in [
        "",
        "r",
        "r:1",
        "r:1:",
        ":1:0",
        "r:01:0",
        "r:1:00",
        "r:+1:0",
        "r:1:-1",
        "r:1:x",
        "r:0:0",
        "-r:1:0",
        "r s:1:0",
        "r:4294967296:0",
    ] {
        assert!(text.parse::<CallId>().is_err(), "{text}");
    }
}

#[test]
fn calls_are_ordered_by_turn_and_index_as_numbers() {
    let id = |text: &str| text.parse::<CallId>().unwrap();
    assert!(id("r:2:0") < id("r:10:0"));
    assert!(id("r:1:2") < id("r:1:10"));
}

#[test]
fn a_run_id_has_only_safe_characters() {
    for id in ["r", "01J9ZK", "nightly-2026.01_a"] {
        assert_eq!(RunId::new(id).unwrap().as_str(), id);
    }
    assert_eq!(RunId::new(""), Err(IdError::Empty));
    for id in ["..", "-x", "a/b", "a b", "é", "a\n"] {
        assert_eq!(RunId::new(id), Err(IdError::Character), "{id}");
    }
    assert_eq!(RunId::new("x".repeat(129)), Err(IdError::TooLong));
}

#[test]
fn turns_are_counted_from_1() {
    assert_eq!(Turn::FIRST.number(), 1);
    assert_eq!(Turn::try_from(0), Err(IdError::TurnZero));
    assert_eq!(read_error::<Turn>(json!(0)), "turns are counted from 1");
}

#[test]
fn words_are_read_in_any_case_and_written_in_lower_case() {
    for word in ["SUCCESS", "Success", "success"] {
        let status: ToolCallStatus = serde_json::from_value(json!(word)).unwrap();
        assert_eq!(serde_json::to_value(status).unwrap(), json!("success"));
    }
    assert_eq!("RUNNING".parse(), Ok(CallState::Running));
    assert_eq!(
        read_error::<ToolCallStatus>(json!("done")),
        "`done` is not a valid status; write one of success, failed, timeout"
    );
}
