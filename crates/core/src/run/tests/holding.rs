//! Calls with an undo window.

use super::*;

const DEFERRED: &str = r#"
[helper:Agent {instruction: "Help people.", model: "OpenAI/gpt-4o-mini"} |
  [later:Tool {description: "Sends a message later", risk: reversible_with_delay, deferred: true} | (to::Text)==>(::Text)],
  [quick:Tool {description: "Writes a note", risk: reversible_with_delay, undo_window_seconds: 0} | (text::Text)==>(::Text)]]
"#;

fn held() -> (RunHarness, CallId) {
    let mut harness = RunHarness::start("x", Settings::default());
    harness.answer_with(vec![call("note", json!({"text": "a"}))]);
    held_by(harness)
}

fn held_by(mut harness: RunHarness) -> (RunHarness, CallId) {
    while let Next::Gate(calls) = harness.run.next() {
        calls.iter().for_each(|call| harness.pass_gate(call));
    }
    let call = harness.run.calls().next().unwrap().id().clone();
    (harness, call)
}

fn with(agent: &str) -> RunHarness {
    let agent = windlass_spec::read(agent).file.unwrap().agents()[0].clone();
    let mut harness = RunHarness::start("x", Settings::default());
    let Event::Started { agent: place, .. } = &mut harness.journal[0] else {
        panic!()
    };
    **place = agent.clone();
    harness.rules = Rules::new(&Governance::default(), &agent, &[]).unwrap();
    harness.run = Run::fold(&harness.journal).unwrap();
    harness
}

#[test]
fn call_with_an_undo_window_is_held_for_ten_seconds() {
    let (mut harness, call) = held();
    let Next::Wait(waiting) = harness.run.next() else {
        panic!("{:?}", harness.run.next());
    };
    assert!(!waiting.for_person);
    let (_, until) = harness.run.held_calls().next().unwrap();
    let held = harness.journal.iter().find_map(|event| match event {
        Event::Held { at, .. } => Some(*at),
        _ => None,
    });
    assert_eq!(until.microseconds_since(held.unwrap()), 10_000_000);
    let early = Event::CallStarted {
        call: call.clone(),
        at: harness.now(),
        variant: None,
    };
    assert_eq!(harness.run.apply(&early), Err(FoldError::NotAllowed(call)));
    harness.run_open_calls(succeed);
    assert!(harness.last_observation().contains("result for"));
}

#[test]
fn released_call_starts_before_its_undo_window_ends() {
    let (mut harness, call) = held();
    let (by, at) = (Principal::new("bob").unwrap(), harness.now());
    harness.record(Event::Released { call, by, at });
    assert!(matches!(harness.run.next(), Next::RunCalls(_)));
}

#[test]
fn an_undo_reaches_the_model_and_the_call_never_runs() {
    let (mut harness, call) = held();
    let (by, at) = (Principal::new("bob").unwrap(), harness.now());
    harness.record(Event::Undone {
        call: call.clone(),
        by: by.clone(),
        at,
    });
    let observation = harness.last_observation();
    assert!(
        observation.starts_with("bob undid this call before it ran"),
        "{observation}"
    );
    let (record, _) = harness.run.call(&call).unwrap();
    assert_eq!(record.state(), CallState::Cancelled);
    let again = Event::Undone {
        call: call.clone(),
        by,
        at,
    };
    assert_eq!(harness.run.apply(&again), Err(FoldError::NotHeld(call)));
}

#[test]
fn zero_undo_window_disables_holding() {
    let mut harness = with(DEFERRED);
    harness.answer_with(vec![call("quick", json!({"text": "a"}))]);
    let (harness, _) = held_by(harness);
    assert!(matches!(harness.run.next(), Next::RunCalls(_)));
}

#[test]
fn run_continues_during_a_deferred_call_but_does_not_complete() {
    let mut harness = with(DEFERRED);
    harness.answer_with(vec![call("later", json!({"to": "Ann"}))]);
    let (mut harness, call_id) = held_by(harness);
    let observation = harness.last_observation();
    assert!(
        observation.starts_with("The call is scheduled"),
        "{observation}"
    );
    harness.answer_with(vec![finish("done")]);
    assert_eq!(harness.run.end(), None);
    assert!(matches!(harness.run.next(), Next::Wait(_)));
    let late = Event::ModelAnswered {
        turn: harness.run.current_turn(),
        answer: ModelAnswer::default(),
        at: harness.now(),
    };
    assert!(harness.run.apply(&late).is_err(), "the run has its answer");
    harness.run_open_calls(succeed);
    assert_eq!(harness.end(), RunEnd::Completed);
    let (record, _) = harness.run.call(&call_id).unwrap();
    assert_eq!(record.state(), CallState::Success);
}

#[test]
fn a_deferred_call_that_is_due_runs_between_turns() {
    let mut harness = with(DEFERRED);
    harness.answer_with(vec![call("later", json!({"to": "Ann"}))]);
    let (mut harness, _) = held_by(harness);
    harness.second += 60;
    harness.answer_with(vec![call("quick", json!({"text": "a"}))]);
    harness.run_open_calls(succeed);
    let messages = harness.request();
    let observation = messages.iter().find_map(|message| match message {
        ChatMessage::Tool { tool, content, .. } if tool == "later" => Some(content.clone()),
        _ => None,
    });
    assert!(
        observation
            .unwrap()
            .starts_with("The call was scheduled and has run since.")
    );
}

#[test]
fn held_call_needs_approval_after_rules_become_stricter() {
    let (mut harness, call) = held();
    let policies = r#"
        @id("all") permit (principal, action, resource);
        @id("notes") forbid (principal, action, resource) unless { context.approved };
    "#;
    let decision = harness.decide_under(policies, &call);
    assert_eq!(decision.verdict(), Verdict::Ask);
    let at = harness.now();
    harness.record(Event::Decided { call, decision, at });
    let (harness, _) = held_by(harness);
    assert!(harness.run.questions().next().is_some());
}
