//! Calls that are held so that they can be undone.

use super::*;

const DEFERRED: &str = r#"
[helper:Agent {instruction: "Help people.", model: "OpenAI/gpt-4o-mini"} |
  [later:Tool {description: "Sends a message later", risk: reversible_with_delay, deferred: true} | (to::Text)==>(::Text)],
  [quick:Tool {description: "Writes a note", risk: reversible_with_delay, undo_window_seconds: 0} | (text::Text)==>(::Text)]]
"#;

fn held() -> (Driven, CallId) {
    let mut driven = Driven::start("x", Settings::default());
    driven.says(vec![call("note", json!({"text": "a"}))]);
    held_by(driven)
}

fn held_by(mut driven: Driven) -> (Driven, CallId) {
    while let Next::Gate(calls) = driven.run.next() {
        calls.iter().for_each(|call| driven.pass_gate(call));
    }
    let call = driven.run.calls().next().unwrap().id().clone();
    (driven, call)
}

fn with(agent: &str) -> Driven {
    let agent = windlass_spec::read(agent).file.unwrap().agents()[0].clone();
    let mut driven = Driven::start("x", Settings::default());
    let Event::Started { agent: place, .. } = &mut driven.journal[0] else {
        panic!()
    };
    **place = agent.clone();
    driven.rules = Rules::new(&Governance::default(), &agent, &[]).unwrap();
    driven.run = Run::fold(&driven.journal).unwrap();
    driven
}

#[test]
fn a_call_that_can_be_undone_for_a_while_is_held_for_ten_seconds() {
    let (mut driven, call) = held();
    let Next::Wait(waiting) = driven.run.next() else {
        panic!("{:?}", driven.run.next());
    };
    assert!(!waiting.for_person);
    let (_, until) = driven.run.held_calls().next().unwrap();
    let held = driven.journal.iter().find_map(|event| match event {
        Event::Held { at, .. } => Some(*at),
        _ => None,
    });
    assert_eq!(until.microseconds_since(held.unwrap()), 10_000_000);
    let early = Event::CallStarted {
        call: call.clone(),
        at: driven.now(),
        variant: None,
    };
    assert_eq!(driven.run.apply(&early), Err(FoldError::NotAllowed(call)));
    driven.work(fine);
    assert!(driven.last_observation().contains("result for"));
}

#[test]
fn a_released_call_starts_before_its_time() {
    let (mut driven, call) = held();
    let (by, at) = (Principal::new("bob").unwrap(), driven.now());
    driven.happen(Event::Released { call, by, at });
    assert!(matches!(driven.run.next(), Next::RunCalls(_)));
}

#[test]
fn an_undo_reaches_the_model_and_the_call_never_runs() {
    let (mut driven, call) = held();
    let (by, at) = (Principal::new("bob").unwrap(), driven.now());
    driven.happen(Event::Undone {
        call: call.clone(),
        by: by.clone(),
        at,
    });
    let told = driven.last_observation();
    assert!(
        told.starts_with("bob undid this call before it ran"),
        "{told}"
    );
    let (record, _) = driven.run.call(&call).unwrap();
    assert_eq!(record.state(), CallState::Cancelled);
    let again = Event::Undone {
        call: call.clone(),
        by,
        at,
    };
    assert_eq!(driven.run.apply(&again), Err(FoldError::NotHeld(call)));
}

#[test]
fn an_undo_window_of_zero_turns_holding_off() {
    let mut driven = with(DEFERRED);
    driven.says(vec![call("quick", json!({"text": "a"}))]);
    let (driven, _) = held_by(driven);
    assert!(matches!(driven.run.next(), Next::RunCalls(_)));
}

#[test]
fn a_run_goes_on_while_a_deferred_call_is_held_but_does_not_complete() {
    let mut driven = with(DEFERRED);
    driven.says(vec![call("later", json!({"to": "Ann"}))]);
    let (mut driven, call_id) = held_by(driven);
    let told = driven.last_observation();
    assert!(told.starts_with("The call is scheduled"), "{told}");
    driven.says(vec![finish("done")]);
    assert_eq!(driven.run.end(), None);
    assert!(matches!(driven.run.next(), Next::Wait(_)));
    let late = Event::ModelAnswered {
        turn: driven.run.current_turn(),
        answer: ModelAnswer::default(),
        at: driven.now(),
    };
    assert!(
        driven.run.apply(&late).is_err(),
        "it has said all it had to say"
    );
    driven.work(fine);
    assert_eq!(driven.end(), RunEnd::Completed);
    let (record, _) = driven.run.call(&call_id).unwrap();
    assert_eq!(record.state(), CallState::Success);
}

#[test]
fn a_deferred_call_that_is_due_runs_between_turns() {
    let mut driven = with(DEFERRED);
    driven.says(vec![call("later", json!({"to": "Ann"}))]);
    let (mut driven, _) = held_by(driven);
    driven.second += 60;
    driven.says(vec![call("quick", json!({"text": "a"}))]);
    driven.work(fine);
    let messages = driven.request();
    let told = messages.iter().find_map(|message| match message {
        ChatMessage::Tool { tool, content, .. } if tool == "later" => Some(content.clone()),
        _ => None,
    });
    assert!(
        told.unwrap()
            .starts_with("The call was scheduled and has run since.")
    );
}

#[test]
fn a_held_call_that_the_rules_now_ask_about_is_asked_about() {
    let (mut driven, call) = held();
    let governance = Governance {
        policies: r#"
            @id("all") permit (principal, action, resource);
            @id("notes") forbid (principal, action, resource) unless { context.approved };
        "#
        .to_owned(),
        ..Governance::default()
    };
    driven.rules = Rules::new(&governance, &agent(), &[]).unwrap();
    let ann = identity("ann");
    let decision = driven
        .run
        .decide(&call, &ann, &driven.rules, &Readiness::Ready)
        .unwrap();
    assert_eq!(decision.verdict(), Verdict::Ask);
    let at = driven.now();
    driven.happen(Event::Decided { call, decision, at });
    let (driven, _) = held_by(driven);
    assert!(driven.run.questions().next().is_some());
}
