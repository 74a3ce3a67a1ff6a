//! Calls that are interrupted after they began, in runs on a real database: the approver is asked what
//! happened, the call is not repeated, and later calls like it say so.

use serde_json::json;
use windlass_core::approval::{PersonDecision, Question};
use windlass_core::gate::ToolRule;
use windlass_core::run::{Run, RunEnd};
use windlass_model::ScriptedModel;
use windlass_runtime::Stop;
use windlass_spec::{CallId, CallState, Effect, ErrorCategory, NonEmptyText, RiskLevel};
use windlass_store::RunState;

use super::fixture::{RunFixture, finishing_model, state};
use super::support::{call, finish, identity, new_task};

const SLOW: &str = "Slow";

/// A fixture whose payments may take one second.
fn fixture() -> RunFixture {
    let mut fixture = RunFixture::new();
    let rule = ToolRule {
        timeout: Some(1.try_into().unwrap()),
        ..ToolRule::default()
    };
    fixture.governance.tools.insert("pay".to_owned(), rule);
    fixture
}

fn pay(amount: i64) -> windlass_core::model::ModelAnswer {
    call("pay", json!({"to": SLOW, "amount": amount}))
}

fn answer(text: &str) -> PersonDecision {
    let text = NonEmptyText::new(text).unwrap();
    PersonDecision::Answer { text }
}

/// Pays, which takes too long. The run then waits for an answer to what happened.
async fn slow_payment(fixture: &RunFixture) -> (Run, CallId) {
    let model = ScriptedModel::answers([pay(5)]);
    let run = fixture.driver(model).start(new_task("Pay Slow.")).await;
    let run = run.unwrap();
    fixture.decide("bob", PersonDecision::Approve);
    let run = resume(fixture, &run, finishing_model()).await;
    let call = run.calls().next().unwrap().id().clone();
    assert_eq!(run.call(&call).unwrap().0.state(), CallState::Unknown);
    assert_eq!(run.end_or_waiting(), Some(RunEnd::WaitingForPerson));
    (run, call)
}

async fn resume(fixture: &RunFixture, run: &Run, model: ScriptedModel) -> Run {
    fixture.driver(model).resume(run.id()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_approver_is_asked_about_a_payment_that_took_too_long() {
    let fixture = fixture();
    let (run, call) = slow_payment(&fixture).await;
    let pending = fixture.pending().remove(0);
    assert_eq!(*pending.call(), call);
    let Question::Ask(asked) = pending.question() else {
        panic!("{pending:?}");
    };
    assert_eq!(
        asked.question.as_str(),
        "It is unknown whether `pay` took effect: it took too long and was stopped. Please find out. \
         What happened?"
    );
    let known = asked.context.as_deref().unwrap();
    for part in [
        r#"It was called with {"amount":5,"to":"Slow"} and started at 20"#,
        "It ran for 1.",
        "the call took longer than 1 s and was stopped",
        "the tool said nothing",
    ] {
        assert!(known.contains(part), "{part}: {known}");
    }
    let (record, _) = run.call(&call).unwrap();
    let failure = record.outcome().unwrap().unwrap_err();
    assert_eq!(failure.category, ErrorCategory::Timeout);
    assert_eq!(failure.effect, Effect::Unknown);
    fixture.decide("bob", answer("It happened"));
    let done = resume(&fixture, &run, finishing_model()).await;
    assert_eq!(done.end(), Some(&RunEnd::Completed));
    assert!(fixture.effects().is_empty(), "it was stopped");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_payment_is_a_mistake_until_a_person_says_that_nothing_happened() {
    for (report, is_repeated) in [
        ("It happened", true),
        ("No idea", true),
        ("It did not happen", false),
    ] {
        let fixture = fixture();
        let (run, _) = slow_payment(&fixture).await;
        fixture.decide("bob", answer(report));
        let model = ScriptedModel::answers([pay(5), finish("Done.")]);
        let run = resume(&fixture, &run, model).await;
        assert_eq!(run.end().is_some(), is_repeated, "{report}");
        let repetitions = run.mistakes().values().sum::<u32>();
        assert_eq!(repetitions, u32::from(is_repeated), "{report}");
        assert_eq!(fixture.pending().len(), usize::from(!is_repeated));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_similar_payment_says_that_the_earlier_one_may_have_taken_effect() {
    for (report, expected) in [
        (
            "No idea",
            Some("may have taken effect: its outcome is unknown"),
        ),
        ("It happened", Some("took effect, as a person reported")),
        ("It did not happen", None),
    ] {
        let fixture = fixture();
        let (run, call) = slow_payment(&fixture).await;
        fixture.decide("bob", answer(report));
        let run = resume(&fixture, &run, ScriptedModel::answers([pay(6)])).await;
        assert_eq!(run.end_or_waiting(), Some(RunEnd::WaitingForPerson));
        let pending = fixture.pending().remove(0);
        let reason = pending.question().authorize().unwrap().reason.to_string();
        let earlier = format!("an earlier call of `pay` ({call}, started at ");
        match expected {
            Some(expected) => {
                assert!(reason.contains(&earlier), "{reason}");
                assert!(reason.contains(expected), "{reason}");
            }
            None => assert!(!reason.contains("earlier call"), "{reason}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_to_somebody_else_says_that_the_earlier_one_may_have_taken_effect() {
    let fixture = fixture();
    let (run, _) = slow_payment(&fixture).await;
    fixture.decide("bob", answer("No idea"));
    let other = call("pay", json!({"to": "Bob", "amount": 7}));
    resume(&fixture, &run, ScriptedModel::answers([other])).await;
    let pending = fixture.pending().remove(0);
    let reason = pending.question().authorize().unwrap().reason.to_string();
    assert!(reason.contains("may have taken effect"), "{reason}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_similar_call_needs_approval_although_it_would_be_allowed() {
    // The second one has no argument in common with the earlier one, and may be the same payment in other words.
    let others = [pay(6), call("pay", json!({"to": "slow", "amount": 7}))];
    for other in others {
        let mut fixture = fixture();
        let (run, _) = slow_payment(&fixture).await;
        fixture.decide("bob", answer("No idea"));
        // The operator now lets payments run after an undo window.
        let level = RiskLevel::ReversibleWithDelay;
        fixture.governance.overrides.insert("pay".to_owned(), level);
        let run = resume(&fixture, &run, ScriptedModel::answers([other])).await;
        assert_eq!(run.end_or_waiting(), Some(RunEnd::WaitingForPerson));
        let pending = fixture.pending().remove(0);
        let reason = pending.question().authorize().unwrap().reason.to_string();
        assert!(reason.contains("may have taken effect"), "{reason}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_outcome_of_a_payment_that_is_cancelled_is_unknown() {
    // By the process that drives the run, and by another one.
    for by_command in [false, true] {
        let fixture = RunFixture::new();
        let model = ScriptedModel::answers([pay(5)]);
        let run = fixture.driver(model).start(new_task("Pay Slow.")).await;
        let run = run.unwrap();
        fixture.decide("bob", PersonDecision::Approve);
        let (stop, store) = (Stop::default(), fixture.store());
        let at_once = stop.at_once.clone();
        let driver = fixture.driver(finishing_model()).stopped_by(stop);
        let cancel = async {
            fixture.has_begun.notified().await;
            match by_command {
                true => {
                    let (by, at) = (identity("bob"), windlass_runtime::now());
                    store.request_cancel(run.id(), &by, at).unwrap();
                }
                false => at_once.cancel(),
            }
        };
        let (done, ()) = tokio::join!(driver.resume(run.id()), cancel);
        let done = done.unwrap();
        assert_eq!(done.end(), Some(&RunEnd::Cancelled));
        assert_eq!(state(&fixture.store(), run.id()), RunState::Ended);
        let record = done.unreported_outcomes().next().unwrap();
        let failure = record.outcome().unwrap().unwrap_err();
        assert_eq!(failure.category, ErrorCategory::Cancelled);
        assert_eq!(failure.effect, Effect::Unknown);
        assert_eq!(record.state(), CallState::Unknown);
    }
}
