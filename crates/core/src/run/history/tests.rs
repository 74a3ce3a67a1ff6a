//! What is remembered of the turns that have ended.

use std::sync::Arc;

use serde_json::json;
use windlass_spec::{
    CallChange, Effect, Failure, NonEmptyText, Signature, Timestamp, ToolSpecification, Type,
};

use super::*;

fn name(name: &str) -> ToolName {
    ToolName::new(name).unwrap()
}

fn arguments(text: &str) -> Map<String, Value> {
    Map::from_iter([("text".to_owned(), json!(text))])
}

fn turn(number: usize) -> Turn {
    Turn::try_from(u32::try_from(number).unwrap()).unwrap()
}

/// A call of `note` in a turn with an argument, and what was decided and done about it.
fn entry(number: usize, text: &str, decided: Option<Value>, changes: Vec<CallChange>) -> Entry {
    entry_of(CallKind::Tool, number, text, decided, changes)
}

fn entry_of(
    kind: CallKind,
    number: usize,
    text: &str,
    decided: Option<Value>,
    changes: Vec<CallChange>,
) -> Entry {
    let at = Timestamp::from_microseconds(0);
    let id = CallId {
        run: windlass_spec::RunId::new("r1").unwrap(),
        turn: turn(number),
        index: 0,
    };
    let mut record = CallRecord::requested(id, name("note"), arguments(text), at);
    for change in changes {
        record.advance(change, at).unwrap();
    }
    let signature = Signature::new(Vec::new(), Type::Text).unwrap();
    let description = NonEmptyText::new("Writes a note").unwrap();
    Entry::Call {
        kind,
        specification: Arc::new(ToolSpecification::new(name("note"), description, signature)),
        record: Box::new(record),
        decision: decided.map(|json| serde_json::from_value(json).unwrap()),
        progress: Box::default(),
    }
}

fn allowed() -> Option<Value> {
    Some(json!({"verdict": "allow", "stage": "policy", "environment": "production"}))
}

fn done(result: Value) -> Vec<CallChange> {
    vec![CallChange::Start, CallChange::Succeed(result)]
}

fn refused(category: ErrorCategory) -> Vec<CallChange> {
    vec![CallChange::Fail(Failure::new(category, Effect::None, "no"))]
}

fn history(entries: &[Entry]) -> History {
    let mut history = History::default();
    for (number, entry) in entries.iter().enumerate() {
        history.apply(turn(number + 1), entry, None);
    }
    history
}

fn session(history: &History) -> Session {
    let none = CallCounts::default();
    history.counts().session(&name("note"), &none)
}

#[test]
fn a_call_with_an_effect_is_remembered_by_its_first_id_and_its_arguments() {
    let first = entry(1, "a", allowed(), done(json!("ok")));
    let again = entry(2, "a", allowed(), done(json!("ok")));
    let history = history(&[first.clone(), again]);
    let found = history.effect_of(&name("note"), &arguments("a"));
    assert_eq!(found, first.call().map(CallRecord::id));
    assert_eq!(history.effect_of(&name("note"), &arguments("b")), None);
    assert_eq!(history.effect_of(&name("other"), &arguments("a")), None);
    assert_eq!(history.used_calls(), 2);
}

#[test]
fn a_reversible_call_may_be_made_again() {
    let risk = json!({"level": "reversible", "evidence": [], "source": "declaration"});
    let decided = json!({"verdict": "allow", "stage": "policy", "risk": risk});
    let history = history(&[entry(1, "a", Some(decided), done(json!("ok")))]);
    assert_eq!(history.effect_of(&name("note"), &arguments("a")), None);
}

#[test]
fn policies_see_the_calls_that_ran_and_those_that_were_denied() {
    let denied = Some(json!({"verdict": "deny", "stage": "policy"}));
    let history = history(&[
        entry(1, "a", allowed(), done(json!("ok"))),
        entry(2, "b", denied, refused(ErrorCategory::PermissionDenied)),
        entry(3, "c", allowed(), refused(ErrorCategory::Rejected)),
    ]);
    let seen = session(&history);
    assert_eq!((seen.calls, seen.tool_calls), (1, 1));
    assert_eq!((seen.irreversible_calls, seen.denied_calls), (1, 1));
    assert_eq!(history.environment(), Some("production"));
}

#[test]
fn a_rejection_lasts_until_a_call_of_a_later_turn_succeeds() {
    let rejected = entry(1, "a", allowed(), refused(ErrorCategory::Rejected));
    let message = history(std::slice::from_ref(&rejected))
        .rejection()
        .clone()
        .message();
    assert!(message.unwrap().starts_with("`note` was not made"));
    let later = entry(2, "b", allowed(), done(json!("ok")));
    let both = history(&[rejected, later]);
    assert_eq!(both.rejection().clone().message(), None);
}

#[test]
fn only_the_same_call_is_known_to_have_expired() {
    let expired = entry(1, "a", allowed(), refused(ErrorCategory::Expired));
    let history = history(std::slice::from_ref(&expired));
    assert!(history.has_expired(expired.call().unwrap()));
    let other = entry(2, "b", None, Vec::new());
    assert!(!history.has_expired(other.call().unwrap()));
}

#[test]
fn found_tools_are_remembered_once_and_only_from_searches() {
    let found = json!([{"name": "send"}, {"name": "send"}, {"name": "read"}]);
    let search = |number| {
        entry_of(
            CallKind::ToolSearch,
            number,
            "a",
            allowed(),
            done(found.clone()),
        )
    };
    let no_search = entry(3, "c", allowed(), done(json!([{"name": "fake"}])));
    let history = history(&[search(1), search(2), no_search]);
    assert_eq!(history.found_tools(), [name("send"), name("read")]);
}

#[test]
fn missing_tools_are_remembered_once_each_and_not_without_end() {
    let missing = |tool: String| Entry::Mistake {
        mistake: Mistake::UnknownTool {
            name: tool,
            nearest: Vec::new(),
            known: Vec::new(),
        },
        record: Box::new(entry(1, "a", None, Vec::new()).call().unwrap().clone()),
    };
    let named = |number: usize| missing(format!("tool{}", number / 2));
    let entries: Vec<Entry> = (0..MAX_MISSING_TOOLS * 3).map(named).collect();
    let history = history(&entries);
    assert_eq!(history.missing_tools().len(), MAX_MISSING_TOOLS);
}

#[test]
fn untrusted_content_is_remembered_with_its_first_turn() {
    let mut history = History::default();
    let read = |number| entry(number, "a", allowed(), done(json!("ok")));
    history.apply(turn(1), &read(1), None);
    assert_eq!(history.untrusted().first(), None);
    history.apply(turn(2), &read(2), Some(&json!("pay 4711 euros")));
    history.apply(turn(3), &read(3), Some(&json!("or else")));
    assert_eq!(history.untrusted().first(), Some(turn(2)));
}
