//! Tools that ask a person while they run: what they ask reaches the person, and the answer resumes the call.

use windlass_spec::envelope::{InterventionStatus, InterventionType};
use windlass_spec::{DeprecationCode, SecurityLevel, normalise};

use super::*;
use crate::approval::{Digest, Intervene, NamedCall};

fn text(text: &str) -> NonEmptyText {
    NonEmptyText::new(text).unwrap()
}

/// A run whose tool asks this while it runs, and the call.
fn asking(question: ToolQuestion) -> (RunHarness, CallId) {
    let mut harness = RunHarness::start("x", Settings::default());
    harness.answer_with(vec![call("search", json!({"query": "a"}))]);
    while let Next::Gate(calls) = harness.run.next() {
        calls.iter().for_each(|call| harness.pass_gate(call));
    }
    let call = harness.run.calls().next().unwrap().id().clone();
    let at = harness.now();
    harness.record(Event::CallStarted {
        call: call.clone(),
        variant: None,
        at,
    });
    drop(harness.run.permit(&call).unwrap());
    let at = harness.now();
    let notices = normalise(&json!({"status": "SUCCESS"}), at).notices;
    let step = harness
        .run
        .tool_question(
            &call,
            &identity("ann"),
            &harness.rules,
            (question, notices),
            at,
        )
        .unwrap();
    let GateStep::Ask(approval) = step else {
        panic!("{step:?}");
    };
    harness.record(Event::Asked { approval, at });
    (harness, call)
}

fn decide(harness: &mut RunHarness, decision: PersonDecision) {
    let mut question = harness.run.questions().next().unwrap().clone();
    harness.settle(&mut question, "bob", decision);
}

#[test]
fn an_approved_call_starts_again_with_the_approved_arguments_and_the_proof() {
    for (decision, arguments) in [
        (PersonDecision::Approve, json!({"query": "a"})),
        (
            PersonDecision::ApproveEdited {
                arguments: json!({"query": "b"}).as_object().unwrap().clone(),
            },
            json!({"query": "b"}),
        ),
    ] {
        let question = ToolQuestion::authorization(text("Use the stored login?"));
        let (mut harness, call) = asking(question);
        assert!(harness.run.approval_proof(&call).is_none());
        decide(&mut harness, decision);
        let proof = harness.run.approval_proof(&call).unwrap().clone();
        let tool = ToolName::new("search").unwrap();
        let digest = Digest::of_call(&tool, arguments.as_object().unwrap());
        assert_eq!((proof.call, proof.digest), (call.clone(), digest));
        assert_eq!(harness.run.authorized_by(&call), Some(call.clone()));
        assert_eq!(harness.run.next(), Next::RunCalls(vec![call.clone()]));
        let at = harness.now();
        harness.record(Event::CallStarted {
            call: call.clone(),
            variant: None,
            at,
        });
        let permit = harness.run.permit(&call).unwrap();
        assert_eq!(permit.arguments()["query"], arguments["query"]);
        assert!(harness.run.permit(&call).is_err());
        let at = harness.now();
        harness.record(ended(&call, CallEnd::Success(json!("found")), at));
        let (record, _) = harness.run.call(&call).unwrap();
        assert_eq!(record.outcome(), Some(Ok(&json!("found"))));
        let folded = Run::fold(&harness.journal).unwrap();
        assert_eq!(folded.turns(), harness.run.turns());
    }
}

#[test]
fn any_other_answer_ends_the_call_by_an_event_of_its_own() {
    let work = Intervene {
        status: InterventionStatus::HumanRequired,
        intervention_type: InterventionType::Captcha,
        provider: text("example"),
        message: text("Please solve the captcha."),
        url: None,
        screenshot: None,
        oauth_url: None,
        details: None,
    };
    for (question, decision, is_success) in [
        (
            ToolQuestion::ask(text("Which one?")),
            PersonDecision::Answer {
                text: text("The first."),
            },
            true,
        ),
        (
            ToolQuestion::intervention(work),
            PersonDecision::Done { note: None },
            false,
        ),
        (
            ToolQuestion::authorization(text("Use the stored login?")),
            PersonDecision::Reject { message: None },
            false,
        ),
    ] {
        let (mut harness, call) = asking(question);
        assert!(harness.run.answered_end(&call).is_none());
        decide(&mut harness, decision);
        assert_eq!(harness.run.next(), Next::RunCalls(vec![call.clone()]));
        let end = harness.run.answered_end(&call).unwrap().clone();
        assert_eq!(matches!(end, CallEnd::Success(_)), is_success, "{end:?}");
        let at = harness.now();
        harness.record(ended(&call, end, at));
        assert!(harness.run.answered_end(&call).is_none());
        assert!(matches!(harness.run.next(), Next::CallModel(_)));
    }
}

#[test]
fn what_the_tool_wants_the_person_to_see_is_in_the_request() {
    let soon = at(120);
    for (expires_at, expected) in [
        (Some(soon), Some(soon)),
        (Some(at(10_000_000)), None),
        (None, None),
    ] {
        let question = ToolQuestion {
            user_id: Some("ada".to_owned()),
            instruction: Some("Check the address.".to_owned()),
            message: Some(text("Please look.")),
            named_call: Some(NamedCall {
                tool_name: "delete_file".to_owned(),
                tool_args: Map::new(),
            }),
            expires_at,
            ..ToolQuestion::authorization(text("Use the stored login?"))
        };
        let (harness, call) = asking(question);
        let asked = harness.run.questions().next().unwrap();
        let request = asked.request();
        assert_eq!(request.user_id.as_deref(), Some("ada"));
        assert_eq!(request.instruction.as_deref(), Some("Check the address."));
        assert_eq!(request.message, Some(text("Please look.")));
        assert_eq!(
            request.named_call.as_ref().unwrap().tool_name,
            "delete_file"
        );
        let microseconds = request.expires_at.microseconds_since(request.asked_at);
        match expected {
            Some(expected) => assert_eq!(request.expires_at, expected),
            None => assert_eq!(microseconds, 24 * 60 * 60 * 1_000_000),
        }
        let response = asked.response().for_operator();
        assert_eq!(response["message"], "Please look.");
        assert_eq!(response["data"]["tool_name"], "search");
        assert_eq!(response["data"]["user_id"], "ada");
        assert_eq!(response["data"]["instruction"], "Check the address.");
        assert_eq!(asked.call(), &call);
        let codes = harness
            .run
            .notices()
            .into_iter()
            .map(|(_, notice)| notice.code);
        assert!(
            codes
                .collect::<Vec<_>>()
                .contains(&DeprecationCode::WordSpelling)
        );
    }
}

#[test]
fn the_level_of_a_tool_can_only_raise_the_usual_one() {
    let question = ToolQuestion {
        subject: QuestionSubject::Authorization {
            reason: text("Use the stored login?"),
            security_level: Some(SecurityLevel::High),
            credentials: None,
        },
        ..ToolQuestion::authorization(text("-"))
    };
    let (harness, _) = asking(question);
    let asked = harness.run.questions().next().unwrap();
    let level = asked.question().authorize().unwrap().security_level;
    assert_eq!(level, SecurityLevel::High);
}
