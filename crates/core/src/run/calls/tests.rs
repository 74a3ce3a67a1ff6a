//! The state changes of one call. A refused change leaves no trace.

use serde_json::{Map, json};
use windlass_spec::{NonEmptyText, Signature, ToolName, Type};

use super::*;
use crate::run::history::History;

fn at(second: i64) -> Timestamp {
    Timestamp::from_microseconds(second * 1_000_000)
}

fn id() -> CallId {
    "r1:1:0".parse().unwrap()
}

fn decision(verdict: &str) -> Decision {
    let digest = Digest::of_call(&ToolName::new("note").unwrap(), &Map::new());
    let json = json!({"verdict": verdict, "stage": "policy", "digest": digest});
    serde_json::from_value(json).unwrap()
}

/// One turn with one call of a kind.
fn calls(kind: CallKind) -> Calls {
    let name = ToolName::new("note").unwrap();
    let signature = Signature::new(Vec::new(), Type::Text).unwrap();
    let description = NonEmptyText::new("Writes a note").unwrap();
    let specification = ToolSpecification::new(name.clone(), description, signature);
    let mut calls = Calls::new(id().run);
    let answer = ModelAnswer::default();
    let turn = TurnState {
        turn: Turn::FIRST,
        asked_at: at(0),
        ended_at: at(0),
        answer: answer.clone(),
        entries: vec![Entry::Call {
            kind,
            specification: Arc::new(specification),
            record: Box::new(CallRecord::requested(id(), name, Map::new(), at(0))),
            decision: None,
            progress: Box::default(),
        }],
    };
    let answered = Event::ModelAnswered {
        turn: Turn::FIRST,
        answer,
        at: at(0),
    };
    let given = calls.apply(
        &answered,
        Some(turn),
        at(0),
        &History::default(),
        Value::to_string,
    );
    assert_eq!(given, Ok(None));
    calls
}

/// Applies an event that happens at its own time.
fn apply(calls: &mut Calls, event: &Event) -> Result<(), FoldError> {
    let given = calls.apply(
        event,
        None,
        event.at(),
        &History::default(),
        Value::to_string,
    )?;
    assert_eq!(given, None);
    Ok(())
}

fn decided(verdict: &str, second: i64) -> Event {
    Event::Decided {
        call: id(),
        decision: decision(verdict),
        at: at(second),
    }
}

fn started(second: i64) -> Event {
    Event::CallStarted {
        call: id(),
        variant: None,
        at: at(second),
    }
}

fn ended(end: CallEnd, second: i64) -> Event {
    Event::CallEnded {
        call: id(),
        end,
        usage: crate::model::Usage::default(),
        calls: 0,
        ran: None,
        tainted: true,
        at: at(second),
    }
}

fn held(second: i64) -> Event {
    Event::Held {
        call: id(),
        until: at(9),
        deferred: false,
        at: at(second),
    }
}

fn ada() -> Principal {
    Principal::new("ada").unwrap()
}

fn undone(second: i64) -> Event {
    Event::Undone {
        call: id(),
        by: ada(),
        at: at(second),
    }
}

fn state(calls: &Calls) -> CallState {
    calls.call(&id()).unwrap().0.state()
}

#[test]
fn call_starts_only_after_the_gate_allowed_it() {
    let mut calls = calls(CallKind::Tool);
    assert_eq!(calls.next(at(1)), Some(Next::Gate(vec![id()])));
    let refused = apply(&mut calls, &started(1));
    assert_eq!(refused, Err(FoldError::NotAllowed(id())));
    apply(&mut calls, &decided("allow", 1)).unwrap();
    assert_eq!(calls.next(at(1)), Some(Next::RunCalls(vec![id()])));
    apply(&mut calls, &started(1)).unwrap();
    assert_eq!(state(&calls), CallState::Running);
    let end = ended(CallEnd::Success(json!("done")), 2);
    apply(&mut calls, &end).unwrap();
    assert!(!calls.has_open(at(2)));
    let again = calls.clone();
    assert!(apply(&mut calls, &end).is_err());
    assert_eq!(calls, again);
}

#[test]
fn permit_needs_a_decision_and_a_start_and_is_issued_once() {
    let mut calls = calls(CallKind::Tool);
    let refused = calls.permit(&id()).unwrap_err();
    assert!(matches!(refused, PermitError::NotRunning { .. }));
    apply(&mut calls, &decided("allow", 1)).unwrap();
    let refused = calls.permit(&id()).unwrap_err();
    assert!(matches!(refused, PermitError::NotRunning { .. }));
    apply(&mut calls, &started(1)).unwrap();
    assert_eq!(calls.permit(&id()).unwrap().tool().as_str(), "note");
    assert_eq!(
        calls.permit(&id()).unwrap_err(),
        PermitError::AlreadyIssued(id())
    );
}

#[test]
fn denial_ends_the_call() {
    let mut calls = calls(CallKind::Tool);
    apply(&mut calls, &decided("deny", 1)).unwrap();
    assert_eq!(state(&calls), CallState::Error);
    assert_eq!(calls.used_open_calls(), 0);
    let twice = apply(&mut calls, &decided("deny", 1));
    assert_eq!(twice, Err(FoldError::DecidedTwice(id())));
}

#[test]
fn refused_denial_leaves_the_arguments_unchanged() {
    let mut calls = calls(CallKind::Tool);
    let failure = Failure::new(ErrorCategory::Cancelled, Effect::None, "It was withdrawn.");
    apply(&mut calls, &ended(CallEnd::Cancelled(failure), 1)).unwrap();
    let before = calls.clone();
    let setting = json!({"verdict": "deny", "stage": "policy", "set": {"to": "ada"}});
    let setting = Event::Decided {
        call: id(),
        decision: serde_json::from_value(setting).unwrap(),
        at: at(2),
    };
    assert!(apply(&mut calls, &setting).is_err());
    assert_eq!(calls, before);
}

#[test]
fn held_call_can_be_undone_until_it_starts() {
    let mut calls = calls(CallKind::Tool);
    let not_held = Err(FoldError::NotHeld(id()));
    assert_eq!(apply(&mut calls, &undone(1)), not_held);
    apply(&mut calls, &decided("hold", 1)).unwrap();
    apply(&mut calls, &held(1)).unwrap();
    assert_eq!(apply(&mut calls, &held(1)), not_held);
    apply(&mut calls, &undone(2)).unwrap();
    assert_eq!(state(&calls), CallState::Cancelled);
    let released = Event::Released {
        call: id(),
        by: ada(),
        at: at(3),
    };
    assert_eq!(apply(&mut calls, &released), not_held);
}

#[test]
fn plan_is_refused_unless_its_call_creates_one_now() {
    let mut creating = calls(CallKind::Plan(PlanOperation::Create));
    let mut other = calls(CallKind::Tool);
    let raw = json!({"tasks": [{"id": "a", "tool": "note"}]});
    let raw: windlass_spec::plan::RawPlan = serde_json::from_value(raw).unwrap();
    let planned = Event::Planned {
        call: id(),
        plan: Box::new(raw.try_into().unwrap()),
        at: at(1),
    };
    let refused = Err(FoldError::NoPlan(id()));
    assert_eq!(apply(&mut creating, &planned), refused);
    for calls in [&mut creating, &mut other] {
        apply(calls, &decided("allow", 1)).unwrap();
        apply(calls, &started(1)).unwrap();
    }
    assert_eq!(apply(&mut creating, &planned), Ok(()));
    assert_eq!(apply(&mut other, &planned), refused);
}

#[test]
fn plans_share_with_sub_agents_that_have_not_begun() {
    assert_eq!(calls(CallKind::SubAgent).sharers(), 1);
    assert_eq!(calls(CallKind::Plan(PlanOperation::Create)).sharers(), 1);
    assert_eq!(calls(CallKind::Tool).sharers(), 0);
    let mut begun = calls(CallKind::SubAgent);
    apply(&mut begun, &decided("allow", 1)).unwrap();
    apply(&mut begun, &started(1)).unwrap();
    assert_eq!(begun.sharers(), 0);
}
