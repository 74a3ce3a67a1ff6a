//! The state changes of one call. A refused change leaves no trace.

use serde_json::{Map, json};
use windlass_spec::{NonEmptyText, Signature, ToolName, Type};

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_microseconds(second * 1_000_000)
}

fn id() -> CallId {
    "r1:1:0".parse().unwrap()
}

fn decision(verdict: &str) -> Decision {
    let json = json!({"verdict": verdict, "stage": "policy"});
    serde_json::from_value(json).unwrap()
}

/// One turn with one call of a kind.
fn calls(kind: CallKind) -> Calls {
    let name = ToolName::new("note").unwrap();
    let signature = Signature::new(Vec::new(), Type::Text).unwrap();
    let description = NonEmptyText::new("Writes a note").unwrap();
    let specification = ToolSpecification::new(name.clone(), description, signature);
    let mut calls = Calls::new(id().run);
    calls.push(TurnState {
        turn: Turn::FIRST,
        asked_at: at(0),
        ended_at: at(0),
        answer: ModelAnswer::default(),
        entries: vec![Entry::Call {
            kind,
            specification: Arc::new(specification),
            record: Box::new(CallRecord::requested(id(), name, Map::new(), at(0))),
            decision: None,
            progress: Box::default(),
        }],
    });
    calls
}

fn state(calls: &Calls) -> CallState {
    calls.call(&id()).unwrap().0.state()
}

#[test]
fn call_starts_only_after_the_gate_allowed_it() {
    let mut calls = calls(CallKind::Tool);
    assert_eq!(calls.next(at(1)), Some(Next::Gate(vec![id()])));
    let refused = calls.start(&id(), None, at(1), at(1));
    assert_eq!(refused, Err(FoldError::NotAllowed(id())));
    calls.decide(&id(), &decision("allow"), at(1)).unwrap();
    assert_eq!(calls.next(at(1)), Some(Next::RunCalls(vec![id()])));
    calls.start(&id(), None, at(1), at(1)).unwrap();
    assert_eq!(state(&calls), CallState::Running);
    let end = CallEnd::Success(json!("done"));
    calls.end(&id(), &end, None, true, at(2)).unwrap();
    assert!(!calls.has_open(at(2)));
    let again = calls.clone();
    assert!(calls.end(&id(), &end, None, true, at(2)).is_err());
    assert_eq!(calls, again);
}

#[test]
fn permit_needs_a_decision_and_a_start_and_is_issued_once() {
    let mut calls = calls(CallKind::Tool);
    let refused = calls.permit(&id()).unwrap_err();
    assert!(matches!(refused, PermitError::NotRunning { .. }));
    calls.decide(&id(), &decision("allow"), at(1)).unwrap();
    let refused = calls.permit(&id()).unwrap_err();
    assert!(matches!(refused, PermitError::NotRunning { .. }));
    calls.start(&id(), None, at(1), at(1)).unwrap();
    assert_eq!(calls.permit(&id()).unwrap().tool().as_str(), "note");
    assert_eq!(
        calls.permit(&id()).unwrap_err(),
        PermitError::AlreadyIssued(id())
    );
}

#[test]
fn denial_ends_the_call() {
    let mut calls = calls(CallKind::Tool);
    calls.decide(&id(), &decision("deny"), at(1)).unwrap();
    assert_eq!(state(&calls), CallState::Error);
    assert_eq!(calls.used_calls(), 0);
    let twice = calls.decide(&id(), &decision("deny"), at(1));
    assert_eq!(twice, Err(FoldError::DecidedTwice(id())));
}

#[test]
fn refused_denial_leaves_the_arguments_unchanged() {
    let mut calls = calls(CallKind::Tool);
    let ended = CallEnd::Cancelled(Failure::new(
        ErrorCategory::Cancelled,
        Effect::None,
        "It was withdrawn.",
    ));
    calls.end(&id(), &ended, None, false, at(1)).unwrap();
    let before = calls.clone();
    let setting = json!({"verdict": "deny", "stage": "policy", "set": {"to": "ada"}});
    let setting: Decision = serde_json::from_value(setting).unwrap();
    assert!(calls.decide(&id(), &setting, at(2)).is_err());
    assert_eq!(calls, before);
}

#[test]
fn held_call_can_be_undone_until_it_starts() {
    let mut calls = calls(CallKind::Tool);
    let by = Principal::new("ada").unwrap();
    assert!(calls.undo(&id(), &by, at(1)).is_err(), "it is not held");
    calls.decide(&id(), &decision("hold"), at(1)).unwrap();
    calls.hold(&id(), at(9), false).unwrap();
    assert_eq!(
        calls.hold(&id(), at(9), false),
        Err(FoldError::NotHeld(id()))
    );
    calls.undo(&id(), &by, at(2)).unwrap();
    assert_eq!(state(&calls), CallState::Cancelled);
    assert_eq!(calls.release(&id()), Err(FoldError::NotHeld(id())));
}

#[test]
fn plans_share_with_sub_agents_that_have_not_begun() {
    assert_eq!(calls(CallKind::SubAgent).sharers(), 1);
    assert_eq!(calls(CallKind::Plan(PlanOperation::Create)).sharers(), 1);
    assert_eq!(calls(CallKind::Tool).sharers(), 0);
    let mut begun = calls(CallKind::SubAgent);
    begun.decide(&id(), &decision("allow"), at(1)).unwrap();
    begun.start(&id(), None, at(1), at(1)).unwrap();
    assert_eq!(begun.sharers(), 0);
}
