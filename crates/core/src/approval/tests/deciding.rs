use super::*;

const HOUR: i64 = 60 * 60;

#[test]
fn an_approved_call_may_run_with_the_arguments_asked_about() {
    let mut approval = high();
    let digest = approval.digest();
    let changed = approval.decide(
        &identity("bea"),
        PersonDecision::Approve,
        Some(&digest),
        at(5),
    );
    assert_eq!(changed, Ok(DecisionEffect::Settled));
    assert_eq!(approval.status(), ApprovalStatus::Approved);
    assert_eq!(approval.settled_at(), Some(at(5)));
    let outcome = ApprovalOutcome::Run {
        arguments: object(json!({"to": "bob", "amount": 10})),
        digest,
        is_edited: false,
    };
    assert_eq!(approval.outcome(), Some(outcome));
}

#[test]
fn an_edited_call_may_run_with_the_edited_arguments_only() {
    let mut approval = high();
    approval
        .decide(&identity("bea"), edited(7), None, at(5))
        .unwrap();
    let Some(ApprovalOutcome::Run {
        arguments,
        digest,
        is_edited,
    }) = approval.outcome()
    else {
        panic!("{approval:?}")
    };
    assert!(is_edited);
    assert_eq!(arguments["amount"], 7);
    assert_eq!(digest, Digest::of_call(&tool(), &arguments));
    assert_ne!(digest, approval.asked_digest());
}

#[test]
fn edit_with_the_same_arguments_does_not_count_as_edited() {
    let mut approval = high();
    approval
        .decide(&identity("bea"), edited(10), None, at(5))
        .unwrap();
    assert!(matches!(
        approval.outcome(),
        Some(ApprovalOutcome::Run {
            is_edited: false,
            ..
        })
    ));
}

#[test]
fn rejection_has_its_message_and_principal() {
    let mut approval = high();
    approval
        .decide(&identity("bea"), reject(), None, at(5))
        .unwrap();
    assert_eq!(approval.status(), ApprovalStatus::Rejected);
    let outcome = ApprovalOutcome::Rejected {
        by: identity("bea").principal,
        message: Some(text("Too much.")),
    };
    assert_eq!(approval.outcome(), Some(outcome));
}

#[test]
fn response_instead_of_the_tool_runs_nothing() {
    let mut approval = critical();
    let decision = PersonDecision::Respond {
        value: json!({"paid": true}),
    };
    let changed = approval.decide(&identity("bea"), decision, None, at(5));
    assert_eq!(changed, Ok(DecisionEffect::Settled));
    assert_eq!(
        approval.outcome(),
        Some(ApprovalOutcome::Responded(json!({"paid": true})))
    );
}

#[test]
fn a_question_is_answered_with_one_of_its_options_unless_it_takes_free_text() {
    let answer = |content: &str| PersonDecision::Answer {
        text: text(content),
    };
    let mut approval = pending(ask());
    assert_eq!(
        approval.decide(&identity("bea"), answer("trunk"), None, at(1)),
        Err(DecideError::DoesNotFit { decision: "answer" })
    );
    approval
        .decide(&identity("bea"), answer("next"), None, at(2))
        .unwrap();
    assert_eq!(
        approval.outcome(),
        Some(ApprovalOutcome::Answered(text("next")))
    );

    let Question::Ask(mut question) = ask() else {
        panic!()
    };
    question.free_text = true;
    let mut approval = pending(Question::Ask(question));
    approval
        .decide(&identity("bea"), answer("trunk"), None, at(1))
        .unwrap();
    assert_eq!(
        approval.outcome(),
        Some(ApprovalOutcome::Answered(text("trunk")))
    );
}

#[test]
fn manual_work_is_done_or_rejected() {
    let mut approval = pending(intervene());
    let decision = PersonDecision::Done { note: None };
    approval
        .decide(&identity("bea"), decision, None, at(1))
        .unwrap();
    assert_eq!(approval.outcome(), Some(ApprovalOutcome::Done(None)));
    let mut approval = pending(intervene());
    approval
        .decide(&identity("bea"), reject(), None, at(1))
        .unwrap();
    assert_eq!(approval.status(), ApprovalStatus::Rejected);
}

#[test]
fn a_decision_must_fit_the_question() {
    for (question, decision) in [
        (ask(), PersonDecision::Approve),
        (ask(), edited(1)),
        (intervene(), PersonDecision::Respond { value: json!(1) }),
        (
            authorize(SecurityLevel::High),
            PersonDecision::Done { note: None },
        ),
        (
            authorize(SecurityLevel::High),
            PersonDecision::Answer { text: text("yes") },
        ),
    ] {
        let mut approval = pending(question);
        let error = approval
            .decide(&identity("bea"), decision, None, at(1))
            .unwrap_err();
        assert!(matches!(error, DecideError::DoesNotFit { .. }), "{error}");
        assert_eq!(approval.status(), ApprovalStatus::Pending);
    }
}

#[test]
fn a_decided_approval_is_not_decided_again() {
    let mut approval = high();
    approval
        .decide(&identity("bea"), reject(), None, at(5))
        .unwrap();
    let before = approval.clone();
    let error = approval.decide(&identity("cem"), PersonDecision::Approve, None, at(6));
    assert_eq!(
        error,
        Err(DecideError::NotPending(ApprovalStatus::Rejected))
    );
    assert_eq!(approval, before);
}

#[test]
fn a_decision_about_other_arguments_is_refused() {
    let mut approval = high();
    let other = Digest::of_call(&tool(), &object(json!({"to": "bob", "amount": 10_000})));
    let error = approval.decide(
        &identity("bea"),
        PersonDecision::Approve,
        Some(&other),
        at(5),
    );
    let asked = approval.asked_digest();
    assert_eq!(
        error,
        Err(DecideError::DigestDiffers {
            asked,
            found: other
        })
    );
}

#[test]
fn question_expires_after_a_day_by_default() {
    let mut approval = high();
    assert_eq!(approval.request().expires_at, at(24 * HOUR));
    let late = approval.decide(
        &identity("bea"),
        PersonDecision::Approve,
        None,
        at(24 * HOUR),
    );
    assert_eq!(late, Err(DecideError::Expired(at(24 * HOUR))));
    assert!(!approval.expire(at(24 * HOUR - 1)));
    assert!(approval.expire(at(24 * HOUR)));
    assert_eq!(approval.outcome(), Some(ApprovalOutcome::Expired));
    let early = approval.decide(&identity("bea"), PersonDecision::Approve, None, at(1));
    assert_eq!(
        early,
        Err(DecideError::Expired(at(24 * HOUR))),
        "a clock set back does not reopen it"
    );
}

#[test]
fn question_must_expire_after_it_is_asked() {
    let mut request = Request::new(call(), identity("ada"), ask(), at(0));
    request.expires_at = at(0);
    assert_eq!(Approval::ask(request), Err(ApprovalError::ExpiresTooEarly));
}

#[test]
fn cancelled_question_cannot_be_decided() {
    let mut approval = high();
    assert!(approval.cancel(at(1)));
    assert!(!approval.cancel(at(2)) && !approval.expire(at(48 * HOUR)));
    let error = approval.decide(&identity("bea"), PersonDecision::Approve, None, at(2));
    assert_eq!(
        error,
        Err(DecideError::NotPending(ApprovalStatus::Cancelled))
    );
    assert_eq!(approval.settled_at(), Some(at(1)));
}

#[test]
fn critical_call_needs_two_different_approvers() {
    let mut approval = critical();
    let first = approval.decide(&identity("bea"), PersonDecision::Approve, None, at(1));
    assert_eq!(first, Ok(DecisionEffect::NeedsAnotherApprover));
    assert_eq!(
        (approval.status(), approval.still_needed()),
        (ApprovalStatus::Pending, 1)
    );
    assert_eq!(approval.outcome(), None);
    for again in ["bea", "Bea", "BEA"] {
        let same = approval.decide(&identity(again), PersonDecision::Approve, None, at(2));
        assert_eq!(
            same,
            Err(DecideError::SamePrincipal(identity("bea").principal))
        );
    }
    let second = approval.decide(&identity("cem"), PersonDecision::Approve, None, at(3));
    assert_eq!(second, Ok(DecisionEffect::Settled));
    let deciders: Vec<_> = approval.deciders().map(Principal::as_str).collect();
    assert_eq!(deciders, ["bea", "cem"]);
}

#[test]
fn one_rejection_is_enough_even_from_the_first_approver() {
    for second in ["bea", "cem"] {
        let mut approval = critical();
        approval
            .decide(&identity("bea"), PersonDecision::Approve, None, at(1))
            .unwrap();
        approval
            .decide(&identity(second), reject(), None, at(2))
            .unwrap();
        assert_eq!(approval.status(), ApprovalStatus::Rejected);
    }
}

#[test]
fn two_approvers_must_approve_the_same_arguments() {
    let mut approval = critical();
    approval
        .decide(&identity("bea"), edited(7), None, at(1))
        .unwrap();
    let (asked, now) = (approval.asked_digest(), approval.digest());
    assert_ne!(asked, now);
    assert_eq!(approval.arguments().unwrap()["amount"], 7);

    let unaware = approval.decide(&identity("cem"), PersonDecision::Approve, None, at(2));
    assert_eq!(
        unaware,
        Err(DecideError::DigestNeeded(identity("bea").principal))
    );
    let stale = approval.decide(
        &identity("cem"),
        PersonDecision::Approve,
        Some(&asked),
        at(2),
    );
    assert!(matches!(stale, Err(DecideError::DigestDiffers { .. })));
    let other = approval.decide(&identity("cem"), edited(9), Some(&now), at(2));
    assert_eq!(
        other,
        Err(DecideError::OtherArguments(identity("bea").principal))
    );

    approval
        .decide(&identity("cem"), PersonDecision::Approve, Some(&now), at(3))
        .unwrap();
    let Some(ApprovalOutcome::Run {
        arguments, digest, ..
    }) = approval.outcome()
    else {
        panic!("{approval:?}")
    };
    assert_eq!((&arguments["amount"], digest), (&json!(7), now));
}

#[test]
fn only_named_approvers_of_the_tenant_can_decide() {
    let mut request = Request::new(
        call(),
        identity("ada"),
        authorize(SecurityLevel::High),
        at(0),
    );
    request.approvers = vec![identity("bea").principal];
    let mut approval = Approval::ask(request).unwrap();
    for other in ["ada", "Bea"] {
        let error = approval.decide(&identity(other), PersonDecision::Approve, None, at(1));
        assert_eq!(
            error,
            Err(DecideError::NotEntitled(identity(other).principal))
        );
    }
    let outsider = TenantPrincipal::new(text("other"), identity("bea").principal);
    let error = approval.decide(&outsider, PersonDecision::Approve, None, at(1));
    assert_eq!(
        error,
        Err(DecideError::NotEntitled(identity("bea").principal))
    );
    approval
        .decide(&identity("bea"), PersonDecision::Approve, None, at(1))
        .unwrap();
}

#[test]
fn critical_call_needs_at_least_two_named_approvers() {
    let mut request = Request::new(
        call(),
        identity("ada"),
        authorize(SecurityLevel::Critical),
        at(0),
    );
    request.approvers = vec![identity("bea").principal, identity("Bea").principal];
    assert!(matches!(
        Approval::ask(request),
        Err(ApprovalError::TooFewApprovers(_))
    ));
}

#[test]
fn the_security_level_is_never_below_that_of_the_risk() {
    for (level, is_taken) in [
        (SecurityLevel::Low, false),
        (SecurityLevel::Medium, false),
        (SecurityLevel::High, true),
        (SecurityLevel::Critical, true),
    ] {
        let request = Request::new(call(), identity("ada"), authorize(level), at(0));
        assert_eq!(Approval::ask(request).is_ok(), is_taken, "{level}");
    }
    assert_eq!(
        RiskLevel::ALL.map(least_security_level),
        [
            SecurityLevel::Low,
            SecurityLevel::Medium,
            SecurityLevel::High
        ]
    );
}

#[test]
fn question_without_a_possible_answer_is_refused() {
    let question = |options: &[&str], free_text| {
        let question = Question::Ask(Ask {
            question: text("Which?"),
            context: None,
            options: options.iter().map(|option| text(option)).collect(),
            free_text,
            form: None,
        });
        Approval::ask(Request::new(call(), identity("ada"), question, at(0)))
    };
    assert_eq!(question(&[], false), Err(ApprovalError::NoAnswerPossible));
    assert_eq!(
        question(&["a", "b", "a"], true),
        Err(ApprovalError::OptionTwice)
    );
    assert!(question(&[], true).is_ok() && question(&["a"], false).is_ok());
}

#[test]
fn principal_has_only_visible_characters_and_no_surrounding_blanks() {
    for refused in ["", " ", "ada ", " ada", "a\u{200B}da", "ada\n"] {
        assert!(Principal::new(refused).is_err(), "{refused:?}");
    }
    assert!(Principal::new("x".repeat(257)).is_err());
    assert!(Principal::new("Ada Lovelace").is_ok());
}
