//! Calls that wait for people: leave, questions of the model and of tools, lost calls.

use windlass_spec::SecurityLevel;
use windlass_spec::envelope::{InterventionStatus, InterventionType};

use super::*;
use crate::approval::{Approval, Intervene, Question, Request};
use crate::gate::Covered;

fn text(text: &str) -> NonEmptyText {
    NonEmptyText::new(text).unwrap()
}

/// A run whose model wants to send something, up to the question about it.
fn asked() -> Driven {
    let mut driven = Driven::start("x", Settings::default());
    driven.says(vec![call("send", json!({"to": "Ann"}))]);
    driven.go_to_question();
    driven
}

impl Driven {
    fn go_to_question(&mut self) {
        while let Next::Gate(calls) = self.run.next() {
            calls.iter().for_each(|call| self.pass_gate(call));
        }
    }

    fn decided(&mut self, decision: PersonDecision) {
        let mut question = self.run.questions().next().unwrap().clone();
        self.settle(&mut question, "bob", decision);
    }

    fn settled(&mut self, approval: Approval) -> Result<(), FoldError> {
        let at = self.now();
        let approval = Box::new(approval);
        self.run.apply(&Event::Settled { approval, at })
    }
}

#[test]
fn an_irreversible_call_waits_for_a_person_and_runs_once_they_agree() {
    let mut driven = asked();
    assert!(matches!(driven.run.next(), Next::Wait(waiting) if waiting.for_person));
    assert!(driven.run.is_waiting());
    let question = driven.run.questions().next().unwrap();
    let wanted = question.question().authorize().unwrap();
    assert_eq!(wanted.tool_name.as_str(), "send");
    assert_eq!(wanted.security_level, SecurityLevel::High);
    assert_eq!(wanted.rule.as_deref(), Some("irreversible-asks"));
    driven.decided(PersonDecision::Approve);
    assert!(matches!(driven.run.next(), Next::RunCalls(_)));
    driven.work(fine);
    assert!(driven.last_observation().contains("result for"));
}

#[test]
fn a_call_that_waits_for_a_person_does_not_start() {
    let mut driven = asked();
    let call = driven.run.calls().next().unwrap().id().clone();
    let started = Event::CallStarted {
        call: call.clone(),
        at: driven.now(),
        variant: None,
    };
    assert_eq!(driven.run.apply(&started), Err(FoldError::NotAllowed(call)));
}

#[test]
fn the_model_is_told_what_really_ran_if_a_person_changed_it() {
    let mut driven = asked();
    let arguments = json!({"to": "Bob"}).as_object().unwrap().clone();
    driven.decided(PersonDecision::ApproveEdited { arguments });
    driven.work(|_, arguments| {
        assert_eq!(*arguments, json!({"to": "Bob"}));
        CallEnd::Success(json!("sent"))
    });
    let told = driven.last_observation();
    assert!(
        told.contains(r#"the call was made with {"to":"Bob"}"#),
        "{told}"
    );
    // Asking for what was changed is asking for the same again.
    driven.says(vec![call("send", json!({"to": "Ann"}))]);
    assert_eq!(driven.run.mistakes()[&MistakeKind::Repeated], 1);
}

#[test]
fn a_rejected_call_ends_with_the_persons_words() {
    let mut driven = asked();
    driven.decided(PersonDecision::Reject {
        message: Some(text("Ann is on holiday.")),
    });
    assert_eq!(driven.last_observation(), "bob said no: Ann is on holiday.");
    let record = driven.run.calls().next().unwrap();
    assert_eq!(record.state(), CallState::Error);
    assert!(!record.was_permitted());
    driven.says(vec![call("send", json!({"to": "Ann"}))]);
    assert_eq!(driven.run.mistakes()[&MistakeKind::Repeated], 1);
}

#[test]
fn a_person_may_answer_in_the_tools_stead() {
    let mut driven = asked();
    driven.decided(PersonDecision::Respond {
        value: json!("I told her myself."),
    });
    let told = driven.last_observation();
    assert!(
        told.ends_with("in the tool's stead: I told her myself."),
        "{told}"
    );
    assert!(driven.run.response().tool_calls.is_empty());
}

#[test]
fn an_expired_question_may_be_asked_once_more() {
    let mut driven = asked();
    for is_last in [false, true] {
        let mut question = driven.run.questions().next().unwrap().clone();
        assert!(question.expire(question.request().expires_at));
        driven.settled(question).unwrap();
        let told = driven.last_observation();
        assert_eq!(told.contains("once more"), !is_last, "{told}");
        driven.says(vec![call("send", json!({"to": "Ann"}))]);
        driven.go_to_question();
    }
    assert_eq!(driven.run.mistakes()[&MistakeKind::Repeated], 1);
}

#[test]
fn what_was_decided_about_another_call_changes_nothing() {
    let mut driven = asked();
    let question = driven.run.questions().next().unwrap().clone();
    let mut wanted = question.request().clone();
    let Question::Authorize(call) = &mut wanted.question else {
        panic!()
    };
    call.tool_args = json!({"to": "Eve"}).as_object().unwrap().clone();
    let mut other = Approval::ask(wanted).unwrap();
    let at = driven.now();
    other
        .decide(&identity("bob"), PersonDecision::Approve, None, at)
        .unwrap();
    let call = question.call().clone();
    let refused = FoldError::NotWhatWasAsked(call);
    assert_eq!(driven.settled(other), Err(refused.clone()));
    // One that is still open says nothing yet.
    assert_eq!(driven.settled(question), Err(refused));
    assert!(driven.run.is_waiting());
}

#[test]
fn what_was_decided_about_another_question_for_the_same_call_changes_nothing() {
    type Change = fn(&mut Request);
    let changes: [Change; 4] = [
        |request| request.expires_at = at(1_000_000_000),
        |request| request.asked_at = at(0),
        |request| request.principal.tenant = text("elsewhere"),
        |request| request.approvers.push(identity("eve").principal),
    ];
    for change in changes {
        let mut driven = asked();
        let mut request = driven.run.questions().next().unwrap().request().clone();
        change(&mut request);
        let mut by = identity("eve");
        by.tenant = request.principal.tenant.clone();
        let mut other = Approval::ask(request).unwrap();
        let now = driven.now();
        other
            .decide(&by, PersonDecision::Approve, None, now)
            .unwrap();
        let call = other.call().clone();
        let refused = driven.settled(other);
        assert_eq!(refused, Err(FoldError::NotWhatWasAsked(call)));
        assert!(matches!(driven.run.next(), Next::Wait(_)));
    }
}

#[test]
fn a_model_may_ask_a_person() {
    let mut driven = Driven::start("x", Settings::default());
    driven.says(vec![call(
        ASK_HUMAN,
        json!({"question": "Which Ann?", "options": ["Ann A.", "Ann B."]}),
    )]);
    driven.go_to_question();
    let question = driven.run.questions().next().unwrap();
    assert_eq!(question.question().kind(), "ask");
    driven.decided(PersonDecision::Answer {
        text: text("Ann B."),
    });
    assert_eq!(driven.last_observation(), "Ann B.");
}

#[test]
fn a_question_that_nobody_can_answer_is_the_models_mistake() {
    let mut driven = Driven::start("x", Settings::default());
    driven.says(vec![
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
    driven.go_to_question();
    let told: Vec<String> = driven
        .run
        .calls()
        .map(|call| call.outcome().unwrap().unwrap_err().model_message.clone())
        .collect();
    assert_eq!(told[0], "`question` is empty");
    assert_eq!(told[1], "there is no tool `sent` to ask leave for");
    assert!(told[2].contains("do not fit"), "{told:?}");
}

#[test]
fn leave_that_was_asked_for_beforehand_covers_exactly_that_call_once() {
    let mut driven = Driven::start("x", Settings::default());
    driven.says(vec![call(
        REQUEST_AUTHORIZATION,
        json!({"tool_name": "send", "tool_args": {"to": "Ann"}, "reason": "She waits for it."}),
    )]);
    driven.go_to_question();
    let question = driven.run.questions().next().unwrap();
    let wanted = question.question().authorize().unwrap();
    assert_eq!(wanted.reason.as_str(), "She waits for it.");
    assert_eq!(wanted.security_level, SecurityLevel::High);
    driven.decided(PersonDecision::Approve);
    let told = driven.last_observation();
    assert!(
        told.contains(r#"`send` now with exactly {"to":"Ann"}"#),
        "{told}"
    );
    driven.says(vec![
        call("send", json!({"to": "Bob"})),
        call("send", json!({"to": "Ann"})),
    ]);
    driven.go_to_question();
    let asked: Vec<u32> = driven.run.questions().map(|q| q.call().index).collect();
    assert_eq!(asked, [0], "only the other call is asked about");
    let covered = driven.run.turns()[1].entries[1].clone();
    let Entry::Call {
        decision: Some(decision),
        ..
    } = covered
    else {
        panic!()
    };
    assert!(matches!(decision.covered_by(), Some(Covered::Request(_))));
}

#[test]
fn without_people_to_ask_the_model_has_no_such_tools() {
    let settings = Settings {
        ask_people: false,
        ..Settings::default()
    };
    let mut driven = Driven::start("x", settings);
    driven.says(vec![call(ASK_HUMAN, json!({"question": "Who?"}))]);
    assert_eq!(driven.run.mistakes()[&MistakeKind::UnknownTool], 1);
}

#[test]
fn a_tool_that_needs_a_person_ends_when_they_are_done_and_may_be_called_again() {
    let mut driven = Driven::start("x", Settings::default());
    driven.says(vec![call("search", json!({"query": "a"}))]);
    driven.go_to_question();
    let call_id = driven.run.calls().next().unwrap().id().clone();
    let at = driven.now();
    driven.happen(Event::CallStarted {
        call: call_id.clone(),
        at,
        variant: None,
    });
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
    driven.happen(Event::Asked { approval, at });
    assert!(driven.run.is_waiting());
    driven.decided(PersonDecision::Done { note: None });
    let told = driven.last_observation();
    assert!(
        told.contains("A person has done it. Call the tool again."),
        "{told}"
    );
    driven.says(vec![call("search", json!({"query": "a"}))]);
    driven.work(fine);
    assert!(driven.last_observation().contains("result for"));
}

#[test]
fn a_lost_call_is_put_to_a_person_before_the_run_goes_on() {
    for (answer, may_repeat) in [("It happened", false), ("It did not happen", true)] {
        let mut driven = asked();
        driven.decided(PersonDecision::Approve);
        let call_id = driven.run.calls().next().unwrap().id().clone();
        let at = driven.now();
        driven.happen(Event::CallStarted {
            call: call_id.clone(),
            at,
            variant: None,
        });
        let lost = Failure::new(ErrorCategory::Internal, Effect::Unknown, "nobody knows");
        driven.happen(ended(&call_id, CallEnd::Unknown(lost), at));
        driven.go_to_question();
        assert!(driven.run.is_waiting());
        driven.decided(PersonDecision::Answer { text: text(answer) });
        let told = driven.last_observation();
        assert!(
            told.ends_with(&format!("A person says: {answer}")),
            "{told}"
        );
        driven.says(vec![call("send", json!({"to": "Ann"}))]);
        assert_eq!(matches!(driven.run.next(), Next::Gate(_)), may_repeat);
    }
}

#[test]
fn a_stricter_decision_takes_leave_back_and_a_weaker_one_is_refused() {
    let mut driven = asked();
    driven.decided(PersonDecision::Approve);
    let call = driven.run.calls().next().unwrap().id().clone();
    let (_, decision) = driven.run.call(&call).unwrap();
    let same = Event::Decided {
        call: call.clone(),
        decision: decision.unwrap().clone(),
        at: driven.now(),
    };
    let refused = Err(FoldError::DecidedTwice(call.clone()));
    assert_eq!(driven.run.apply(&same), refused);
    // The operator's rules changed while somebody was asked.
    let governance = Governance {
        policies: r#"@id("off") forbid (principal, action, resource);"#.to_owned(),
        ..Governance::default()
    };
    driven.rules = Rules::new(&governance, &agent(), &[]).unwrap();
    let ann = identity("ann");
    let decision = driven
        .run
        .decide(&call, &ann, &driven.rules, &Readiness::Ready)
        .unwrap();
    assert_eq!(decision.verdict(), Verdict::Deny);
    let at = driven.now();
    driven.happen(Event::Decided {
        call: call.clone(),
        decision,
        at,
    });
    let (record, _) = driven.run.call(&call).unwrap();
    assert_eq!(record.state(), CallState::Error);
    assert!(driven.run.permit(&call).is_err());
}

#[test]
fn time_spent_waiting_for_people_does_not_count() {
    let settings = Settings {
        max_seconds: Some(60),
        ..Settings::default()
    };
    let mut driven = Driven::start("x", settings);
    driven.says(vec![call("send", json!({"to": "Ann"}))]);
    driven.go_to_question();
    driven.second += 5_000;
    driven.decided(PersonDecision::Approve);
    driven.second += 7_000;
    let at = driven.now();
    driven.happen(Event::Resumed { at });
    driven.work(fine);
    driven.says(vec![finish("done")]);
    assert_eq!(driven.end(), RunEnd::Completed);
}
