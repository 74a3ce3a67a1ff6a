//! The steps of a call, depending on decision, approval and time.

use serde_json::json;

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_microseconds(second * 1_000_000)
}

fn decision(verdict: &str) -> Decision {
    let json = json!({"verdict": verdict, "stage": "policy", "security_level": "medium"});
    serde_json::from_value(json).unwrap()
}

fn pending(progress: &CallProgress, kind: CallKind, verdict: &str) -> Step {
    progress.step(kind, CallState::Pending, Some(&decision(verdict)), at(5))
}

fn approved(security_level: SecurityLevel) -> Approved {
    Approved {
        security_level,
        digest: Digest::of_json(&Value::Null),
        groups: Vec::new(),
    }
}

#[test]
fn call_passes_the_gate_before_it_runs() {
    let mut progress = CallProgress::default();
    let undecided = progress.step(CallKind::Tool, CallState::Pending, None, at(5));
    assert_eq!(undecided, Step::AtGate);
    assert_eq!(pending(&progress, CallKind::Tool, "allow"), Step::Runs);
    assert_eq!(pending(&progress, CallKind::Tool, "ask"), Step::AtGate);
    assert_eq!(pending(&progress, CallKind::Tool, "deny"), Step::AtGate);
    progress.approve(approved(SecurityLevel::Medium), None);
    assert_eq!(pending(&progress, CallKind::Tool, "ask"), Step::Runs);
    progress.decide();
    assert_eq!(pending(&progress, CallKind::Tool, "ask"), Step::AtGate);
}

#[test]
fn call_that_a_person_answers_never_runs() {
    let progress = CallProgress::default();
    for kind in [CallKind::Question, CallKind::Authorization] {
        assert_eq!(pending(&progress, kind, "allow"), Step::AtGate);
    }
}

#[test]
fn held_call_runs_when_its_window_is_over_or_it_is_released() {
    let mut progress = CallProgress::default();
    progress.release(&Principal::new("bob").unwrap(), at(5));
    assert_eq!(progress.held_until(), None, "nothing is held");
    assert_eq!(pending(&progress, CallKind::Tool, "hold"), Step::AtGate);
    progress.hold(at(6), true);
    assert_eq!(
        pending(&progress, CallKind::Tool, "hold"),
        Step::Held(at(6))
    );
    assert!(progress.is_deferred());
    let hold = decision("hold");
    let later = progress.step(CallKind::Tool, CallState::Pending, Some(&hold), at(6));
    assert_eq!(later, Step::Runs);
    progress.release(&Principal::new("bob").unwrap(), at(5));
    assert_eq!(pending(&progress, CallKind::Tool, "hold"), Step::Runs);
}

#[test]
fn approval_covers_decisions_up_to_its_security_level() {
    let mut progress = CallProgress::default();
    let ask = decision("ask");
    assert!(progress.is_stricter(&decision("allow"), &ask));
    assert!(!progress.is_stricter(&ask, &ask));
    progress.approve(approved(SecurityLevel::Low), None);
    assert!(progress.is_stricter(&ask, &ask), "medium is more than low");
    progress.approve(approved(SecurityLevel::High), None);
    assert!(!progress.is_stricter(&ask, &ask));
    assert!(progress.is_stricter(&ask, &decision("deny")));
}

#[test]
fn first_requested_arguments_are_kept() {
    let mut progress = CallProgress::default();
    let arguments = |to: &str| Map::from_iter([("to".to_owned(), json!(to))]);
    progress.keep_requested(&arguments("ada"));
    progress.approve(approved(SecurityLevel::Low), Some(&arguments("bob")));
    assert_eq!(progress.before_edit(), Some(&arguments("ada")));
    assert!(progress.is_edited());
}
