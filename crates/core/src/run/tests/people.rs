//! Calls that wait for people: approvals, questions of the model and of tools, unknown outcomes.

use windlass_spec::SecurityLevel;
use windlass_spec::envelope::{InterventionStatus, InterventionType};

use super::*;
use crate::approval::{Approval, Intervene, Question, Request};
use crate::gate::PriorApproval;

fn text(text: &str) -> NonEmptyText {
    NonEmptyText::new(text).unwrap()
}

/// A run whose model calls `send`, up to the approval question.
fn awaiting_approval() -> RunHarness {
    let mut harness = RunHarness::start("x", Settings::default());
    harness.answer_with(vec![call("send", json!({"to": "Ann"}))]);
    harness.advance_to_question();
    harness
}

impl RunHarness {
    /// Starts the first call.
    fn start_first_call(&mut self) -> (CallId, Timestamp) {
        let call = self.run.calls().next().unwrap().id().clone();
        let at = self.now();
        self.record(Event::CallStarted {
            call: call.clone(),
            at,
            variant: None,
        });
        (call, at)
    }

    fn advance_to_question(&mut self) {
        while let Next::Gate(calls) = self.run.next() {
            calls.iter().for_each(|call| self.pass_gate(call));
        }
    }

    fn decide_question(&mut self, decision: PersonDecision) {
        let mut question = self.run.questions().next().unwrap().clone();
        self.settle(&mut question, "bob", decision);
    }

    fn apply_settled(&mut self, approval: Approval) -> Result<(), FoldError> {
        let at = self.now();
        let approval = Box::new(approval);
        self.run.apply(&Event::Settled { approval, at })
    }
}

#[test]
fn irreversible_call_runs_after_approval() {
    let mut harness = awaiting_approval();
    assert!(matches!(harness.run.next(), Next::Wait(waiting) if waiting.for_person));
    assert!(harness.run.is_waiting());
    let question = harness.run.questions().next().unwrap();
    let wanted = question.question().authorize().unwrap();
    assert_eq!(wanted.tool_name.as_str(), "send");
    assert_eq!(wanted.security_level, SecurityLevel::High);
    assert_eq!(wanted.rule.as_deref(), Some("irreversible-asks"));
    harness.decide_question(PersonDecision::Approve);
    assert!(matches!(harness.run.next(), Next::RunCalls(_)));
    harness.run_open_calls(succeed);
    assert!(harness.last_observation().contains("result for"));
}

#[test]
fn call_that_waits_for_approval_does_not_start() {
    let mut harness = awaiting_approval();
    let call = harness.run.calls().next().unwrap().id().clone();
    let started = Event::CallStarted {
        call: call.clone(),
        at: harness.now(),
        variant: None,
    };
    assert_eq!(
        harness.run.apply(&started),
        Err(FoldError::NotAllowed(call))
    );
}

#[test]
fn observation_states_the_edited_arguments() {
    let mut harness = awaiting_approval();
    let arguments = json!({"to": "Bob"}).as_object().unwrap().clone();
    harness.decide_question(PersonDecision::ApproveEdited { arguments });
    harness.run_open_calls(|_, arguments| {
        assert_eq!(*arguments, json!({"to": "Bob"}));
        CallEnd::Success(json!("sent"))
    });
    let observation = harness.last_observation();
    assert!(
        observation.contains(r#"the call was made with {"to":"Bob"}"#),
        "{observation}"
    );
    check_repetition_is_refused(&mut harness);
}

/// Requests the original call again, which is refused as a repetition.
fn check_repetition_is_refused(harness: &mut RunHarness) {
    harness.answer_with(vec![call("send", json!({"to": "Ann"}))]);
    assert_eq!(harness.run.mistakes()[&MistakeKind::Repeated], 1);
}

#[test]
fn rejected_call_ends_with_the_approvers_message() {
    let mut harness = awaiting_approval();
    harness.decide_question(PersonDecision::Reject {
        message: Some(text("Ann is on holiday.")),
    });
    assert_eq!(
        harness.last_observation(),
        "bob rejected the call: Ann is on holiday."
    );
    let record = harness.run.calls().next().unwrap();
    assert_eq!(record.state(), CallState::Error);
    assert!(!record.was_permitted());
    check_repetition_is_refused(&mut harness);
}

#[test]
fn person_can_respond_instead_of_the_tool() {
    let mut harness = awaiting_approval();
    harness.decide_question(PersonDecision::Respond {
        value: json!("I told her myself."),
    });
    let observation = harness.last_observation();
    assert!(
        observation.ends_with("instead of the tool: I told her myself."),
        "{observation}"
    );
    assert!(harness.run.response().tool_calls().is_empty());
}

#[test]
fn an_expired_question_may_be_asked_once_more() {
    let mut harness = awaiting_approval();
    for is_last in [false, true] {
        let mut question = harness.run.questions().next().unwrap().clone();
        assert!(question.expire(question.request().expires_at));
        harness.apply_settled(question).unwrap();
        let observation = harness.last_observation();
        assert_eq!(observation.contains("once more"), !is_last, "{observation}");
        harness.answer_with(vec![call("send", json!({"to": "Ann"}))]);
        harness.advance_to_question();
    }
    assert_eq!(harness.run.mistakes()[&MistakeKind::Repeated], 1);
}

#[test]
fn decision_about_another_call_is_refused() {
    let mut harness = awaiting_approval();
    let question = harness.run.questions().next().unwrap().clone();
    let mut wanted = question.request().clone();
    let Question::Authorize(call) = &mut wanted.question else {
        panic!()
    };
    call.tool_args = json!({"to": "Eve"}).as_object().unwrap().clone();
    let mut other = Approval::ask(wanted).unwrap();
    let at = harness.now();
    other
        .decide(&identity("bob"), PersonDecision::Approve, None, at)
        .unwrap();
    let call = question.call().clone();
    let refused = FoldError::AnswerMismatch(call);
    assert_eq!(harness.apply_settled(other), Err(refused.clone()));
    // A pending question has no outcome.
    assert_eq!(harness.apply_settled(question), Err(refused));
    assert!(harness.run.is_waiting());
}

#[test]
fn decision_about_another_question_of_the_same_call_is_refused() {
    type Change = fn(&mut Request);
    let changes: [Change; 4] = [
        |request| request.expires_at = at(1_000_000_000),
        |request| request.asked_at = at(0),
        |request| request.principal.tenant = text("elsewhere"),
        |request| request.approvers.push(identity("eve").principal),
    ];
    for change in changes {
        let mut harness = awaiting_approval();
        let mut request = harness.run.questions().next().unwrap().request().clone();
        change(&mut request);
        let mut by = identity("eve");
        by.tenant = request.principal.tenant.clone();
        let mut other = Approval::ask(request).unwrap();
        let now = harness.now();
        other
            .decide(&by, PersonDecision::Approve, None, now)
            .unwrap();
        let call = other.call().clone();
        let refused = harness.apply_settled(other);
        assert_eq!(refused, Err(FoldError::AnswerMismatch(call)));
        assert!(matches!(harness.run.next(), Next::Wait(_)));
    }
}

#[test]
fn model_can_ask_a_person() {
    let mut harness = RunHarness::start("x", Settings::default());
    harness.answer_with(vec![call(
        ASK_HUMAN,
        json!({"question": "Which Ann?", "options": ["Ann A.", "Ann B."]}),
    )]);
    harness.advance_to_question();
    let question = harness.run.questions().next().unwrap();
    assert_eq!(question.question().kind(), "ask");
    harness.decide_question(PersonDecision::Answer {
        text: text("Ann B."),
    });
    assert_eq!(harness.last_observation(), "Ann B.");
}

#[test]
fn invalid_question_fails_with_a_message() {
    let mut harness = RunHarness::start("x", Settings::default());
    harness.answer_with(vec![
        call(ASK_HUMAN, json!({"question": " "})),
        call(
            REQUEST_AUTHORIZATION,
            json!({"tool_name": "sent", "tool_args": {}, "reason": "r"}),
        ),
        call(
            REQUEST_AUTHORIZATION,
            json!({"tool_name": "send", "tool_args": {"at": 1}, "reason": "r"}),
        ),
    ]);
    harness.advance_to_question();
    let observation: Vec<String> = harness
        .run
        .calls()
        .map(|call| call.outcome().unwrap().unwrap_err().model_message.clone())
        .collect();
    assert_eq!(observation[0], "`question` is empty");
    assert_eq!(
        observation[1],
        "there is no tool `sent` to request authorization for"
    );
    assert!(observation[2].contains("do not fit"), "{observation:?}");
}

#[test]
fn requested_authorization_covers_exactly_that_call_once() {
    let mut harness = RunHarness::start("x", Settings::default());
    harness.answer_with(vec![call(
        REQUEST_AUTHORIZATION,
        json!({"tool_name": "send", "tool_args": {"to": "Ann"}, "reason": "She waits for it."}),
    )]);
    harness.advance_to_question();
    let question = harness.run.questions().next().unwrap();
    let wanted = question.question().authorize().unwrap();
    assert_eq!(wanted.reason.as_str(), "She waits for it.");
    assert_eq!(wanted.security_level, SecurityLevel::High);
    harness.decide_question(PersonDecision::Approve);
    let observation = harness.last_observation();
    assert!(
        observation.contains(r#"`send` now with exactly {"to":"Ann"}"#),
        "{observation}"
    );
    harness.answer_with(vec![
        call("send", json!({"to": "Bob"})),
        call("send", json!({"to": "Ann"})),
    ]);
    harness.advance_to_question();
    let asked: Vec<u32> = harness.run.questions().map(|q| q.call().index).collect();
    assert_eq!(asked, [0], "only the other call needs approval");
    let authorized = harness.run.turns()[1].entries[1].clone();
    let Entry::Call {
        decision: Some(decision),
        ..
    } = authorized
    else {
        panic!()
    };
    assert!(matches!(
        decision.covered_by(),
        Some(PriorApproval::Request(_))
    ));
}

#[test]
fn model_has_no_question_tools_if_asking_is_disabled() {
    let settings = Settings {
        ask_people: false,
        ..Settings::default()
    };
    let mut harness = RunHarness::start("x", settings);
    harness.answer_with(vec![call(ASK_HUMAN, json!({"question": "Who?"}))]);
    assert_eq!(harness.run.mistakes()[&MistakeKind::UnknownTool], 1);
}

#[test]
fn tool_that_needs_manual_work_can_be_called_again_when_it_is_done() {
    let mut harness = RunHarness::start("x", Settings::default());
    harness.answer_with(vec![call("search", json!({"query": "a"}))]);
    harness.advance_to_question();
    let (call_id, at) = harness.start_first_call();
    let work = Question::Intervene(Intervene {
        status: InterventionStatus::HumanRequired,
        intervention_type: InterventionType::Captcha,
        provider: text("example"),
        message: text("Please solve the captcha."),
        url: None,
        screenshot: None,
        oauth_url: None,
        details: None,
    });
    let request = Request::new(call_id, identity("ann"), work, at);
    let approval = Box::new(Approval::ask(request).unwrap());
    harness.record(Event::Asked { approval, at });
    assert!(harness.run.is_waiting());
    harness.decide_question(PersonDecision::Done { note: None });
    let observation = harness.last_observation();
    assert!(
        observation.contains("A person has done it. Call the tool again."),
        "{observation}"
    );
    harness.answer_with(vec![call("search", json!({"query": "a"}))]);
    harness.run_open_calls(succeed);
    assert!(harness.last_observation().contains("result for"));
}

#[test]
fn call_with_unknown_outcome_is_reported_by_a_person_first() {
    for (answer, may_repeat) in [("It happened", false), ("It did not happen", true)] {
        let mut harness = awaiting_approval();
        harness.decide_question(PersonDecision::Approve);
        let (call_id, at) = harness.start_first_call();
        let lost = Failure::new(ErrorCategory::Internal, Effect::Unknown, "unknown");
        harness.record(ended(&call_id, CallEnd::Unknown(lost), at));
        harness.advance_to_question();
        assert!(harness.run.is_waiting());
        harness.decide_question(PersonDecision::Answer { text: text(answer) });
        let observation = harness.last_observation();
        assert!(
            observation.ends_with(&format!("A person reports: {answer}")),
            "{observation}"
        );
        harness.answer_with(vec![call("send", json!({"to": "Ann"}))]);
        assert_eq!(matches!(harness.run.next(), Next::Gate(_)), may_repeat);
    }
}

#[test]
fn stricter_decision_revokes_the_approval_and_a_weaker_one_is_refused() {
    let mut harness = awaiting_approval();
    harness.decide_question(PersonDecision::Approve);
    let call = harness.run.calls().next().unwrap().id().clone();
    let (_, decision) = harness.run.call(&call).unwrap();
    let same = Event::Decided {
        call: call.clone(),
        decision: decision.unwrap().clone(),
        at: harness.now(),
    };
    let refused = Err(FoldError::DecidedTwice(call.clone()));
    assert_eq!(harness.run.apply(&same), refused);
    // The operator's rules changed while the approval was pending.
    let policies = r#"@id("off") forbid (principal, action, resource);"#;
    let decision = harness.decide_under(policies, &call);
    assert_eq!(decision.verdict(), Verdict::Deny);
    let at = harness.now();
    harness.record(Event::Decided {
        call: call.clone(),
        decision,
        at,
    });
    let (record, _) = harness.run.call(&call).unwrap();
    assert_eq!(record.state(), CallState::Error);
    assert!(harness.run.permit(&call).is_err());
}

#[test]
fn time_spent_waiting_for_people_does_not_count() {
    let settings = Settings {
        max_seconds: Some(60),
        ..Settings::default()
    };
    let mut harness = RunHarness::start("x", settings);
    harness.answer_with(vec![call("send", json!({"to": "Ann"}))]);
    harness.advance_to_question();
    harness.second += 5_000;
    harness.decide_question(PersonDecision::Approve);
    harness.second += 7_000;
    let at = harness.now();
    harness.record(Event::Resumed {
        accepted: [("/tools.toml".to_owned(), "1f".to_owned())].into(),
        at,
    });
    harness.run_open_calls(succeed);
    harness.answer_with(vec![finish("done")]);
    assert_eq!(harness.end(), RunEnd::Completed);
}
