//! Runs that wait for people, on a real database: approvals, holds, undo, cancellation, and resumption by
//! another process.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use windlass_core::approval::{Approval, PersonDecision, Reach, StandingApproval, StandingScope};
use windlass_core::gate::Governance;
use windlass_core::run::{Event, Run, RunEnd};
use windlass_model::ScriptedModel;
use windlass_runtime::{AskOutcome, Crew, Progress, WaitPolicy, now};
use windlass_spec::{CallRecord, CallState, ErrorCategory, NonEmptyText, ToolName};
use windlass_store::{HoldFilter, RunFilter, RunState};

use super::fixture::{RunFixture, finishing_model, paying_model, state};
use super::support::{call, finish, identity, new_task};

fn chief_and_clerk(fixture: &RunFixture, chief: ScriptedModel, clerk: ScriptedModel) -> Crew {
    Crew::new(fixture.member("chief", chief)).with(fixture.member("clerk", clerk))
}

/// Starts a run whose agent has its sub-agent pay Bob, which needs an approval.
async fn start_delegating_run(fixture: &RunFixture) -> Run {
    let answers = [call("clerk", json!({"task": "Pay Bob."})), finish("Paid.")];
    let crew = chief_and_clerk(fixture, ScriptedModel::answers(answers), paying_model());
    let driver = fixture.driver_with(crew);
    driver.start(new_task("See to it.")).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspended_run_continues_after_the_decision() {
    let fixture = RunFixture::new();
    let run = fixture.start(paying_model(), new_task("Pay Bob.")).await;
    assert_eq!(run.end_or_waiting(), Some(RunEnd::WaitingForPerson));
    assert_eq!(state(&fixture.store(), run.id()), RunState::Waiting);
    assert!(fixture.effects().is_empty());
    // Without a decision, resuming it changes nothing.
    let again = fixture.resume(finishing_model(), run.id()).await;
    assert_eq!(again.end_or_waiting(), Some(RunEnd::WaitingForPerson));
    fixture.decide("bob", PersonDecision::Approve);
    let done = fixture.resume(finishing_model(), run.id()).await;
    assert_eq!(done.end(), Some(&RunEnd::Completed));
    assert_eq!(fixture.effects(), [r#"pay {"amount":5,"to":"Bob"}"#]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_driver_continues_as_soon_as_another_process_decides() {
    let fixture = RunFixture::new();
    let model = ScriptedModel::answers([
        call("pay", json!({"to": "Bob", "amount": 5})),
        finish("Done."),
    ]);
    let driver = fixture.driver(model).with_wait_policy(WaitPolicy::Wait);
    let work = tokio::spawn(async move { driver.start(new_task("Pay Bob.")).await.unwrap() });
    while fixture.pending().is_empty() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    fixture.decide("bob", PersonDecision::Approve);
    assert_eq!(work.await.unwrap().end(), Some(&RunEnd::Completed));
    assert_eq!(fixture.effects().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_present_approver_is_asked_and_may_leave_the_question_open() {
    let fixture = RunFixture::new();
    let store = fixture.store();
    let asked = Arc::new(Mutex::new(0));
    let count = Arc::clone(&asked);
    let driver = fixture.driver(paying_model()).asking(Arc::new(move |_| {
        *count.lock().unwrap() += 1;
        Box::pin(std::future::ready(AskOutcome::NotDecided))
    }));
    let run = driver.start(new_task("Pay Bob.")).await.unwrap();
    assert_eq!(run.end_or_waiting(), Some(RunEnd::WaitingForPerson));
    assert_eq!(*asked.lock().unwrap(), 1);
    let driver = fixture
        .driver(finishing_model())
        .asking(Arc::new(move |question: Approval| {
            let store = Arc::clone(&store);
            Box::pin(async move {
                let reject = PersonDecision::Reject { message: None };
                store
                    .decide(question.call(), None, &identity("ann"), reject, now())
                    .unwrap();
                AskOutcome::Decided
            })
        }));
    let run = driver.resume(run.id()).await.unwrap();
    let Some(RunEnd::Failed { category, .. }) = run.end() else {
        panic!("{:?}", run.end());
    };
    assert_eq!(*category, ErrorCategory::Rejected);
    assert_eq!(run.calls().next().unwrap().state(), CallState::Error);
    assert!(fixture.effects().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn edited_arguments_run_and_invalid_ones_are_denied() {
    for (arguments, is_fine) in [
        (json!({"to": "Bob", "amount": 3}), true),
        (json!({"to": "Bob", "amount": "all"}), false),
    ] {
        let fixture = RunFixture::new();
        let run = fixture.start(paying_model(), new_task("Pay Bob.")).await;
        let arguments = arguments.as_object().unwrap().clone();
        fixture.decide("bob", PersonDecision::ApproveEdited { arguments });
        let done = fixture.resume(finishing_model(), run.id()).await;
        assert_eq!(done.end(), Some(&RunEnd::Completed));
        let expected: &[&str] = match is_fine {
            true => &[r#"pay {"amount":3,"to":"Bob"}"#],
            false => &[],
        };
        assert_eq!(fixture.effects(), expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_that_changed_after_the_approval_still_deny() {
    let mut fixture = RunFixture::new();
    let run = fixture.start(paying_model(), new_task("Pay Bob.")).await;
    fixture.decide("bob", PersonDecision::Approve);
    fixture.governance.policies = r#"
        @id("all") permit (principal, action, resource);
        @id("no-more-payments") @reason("payments are off") forbid (principal, action == Action::"pay", resource);
    "#
    .to_owned();
    let done = fixture.resume(finishing_model(), run.id()).await;
    let record = done.calls().next().unwrap();
    assert_eq!(record.state(), CallState::Error);
    let failure = record.outcome().unwrap().unwrap_err();
    assert_eq!(failure.operator_message, "payments are off");
    assert!(fixture.effects().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_needs_two_approvers_waits_for_the_second() {
    let mut fixture = RunFixture::new();
    fixture.governance.policies = r#"
        @id("all") permit (principal, action, resource);
        @id("large") @security_level("CRITICAL")
        forbid (principal, action == Action::"pay", resource) unless { context.approved };
    "#
    .to_owned();
    let run = fixture.start(paying_model(), new_task("Pay Bob.")).await;
    fixture.decide("bob", PersonDecision::Approve);
    let waits = fixture.resume(finishing_model(), run.id()).await;
    assert_eq!(waits.end_or_waiting(), Some(RunEnd::WaitingForPerson));
    fixture.decide("carol", PersonDecision::Approve);
    let done = fixture.resume(finishing_model(), run.id()).await;
    assert_eq!(done.end(), Some(&RunEnd::Completed));
    assert_eq!(fixture.effects().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_call_runs_when_its_undo_window_is_over() {
    let fixture = RunFixture::new();
    let model = ScriptedModel::answers([
        call("note", json!({"text": "Bob called"})),
        finish("Noted."),
    ]);
    let begun = std::time::Instant::now();
    let run = fixture.start(model, new_task("Note it.")).await;
    assert_eq!(run.end(), Some(&RunEnd::Completed));
    assert!(
        begun.elapsed() >= Duration::from_secs(1),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(fixture.effects().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_undo_by_another_process_prevents_a_held_call() {
    let fixture = RunFixture::new();
    let model = ScriptedModel::answers([
        call("note", json!({"text": "Bob called"})),
        finish("Not noted."),
    ]);
    let driver = fixture.driver(model);
    let work = tokio::spawn(async move { driver.start(new_task("Note it.")).await.unwrap() });
    let store = fixture.store();
    let hold = loop {
        let mut holds = store.holds(&HoldFilter::default()).unwrap();
        match holds.pop() {
            Some(hold) => break hold,
            None => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    };
    store.undo(hold.call(), &identity("bob"), now()).unwrap();
    let run = work.await.unwrap();
    assert_eq!(run.end(), Some(&RunEnd::Completed));
    assert_eq!(run.calls().next().unwrap().state(), CallState::Cancelled);
    assert!(fixture.effects().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standing_approval_replaces_the_question() {
    let mut fixture = RunFixture::new();
    // With this low confidence, the note would need approval.
    let mut unsure = call("note", json!({"text": "Bob called"}));
    unsure.calls[0].confidence = Some(0.1);
    let standing = StandingApproval::new(
        identity("ann"),
        ToolName::new("note").unwrap(),
        StandingScope::Tool,
        Reach::Until {
            until: windlass_spec::Timestamp::from_microseconds(i64::MAX),
        },
        identity("bob").principal,
        now(),
    );
    fixture.store().grant_standing(&standing.unwrap()).unwrap();
    let model = ScriptedModel::answers([unsure.clone(), finish("Noted.")]);
    let run = fixture.start(model, new_task("Note it.")).await;
    assert_eq!(run.end(), Some(&RunEnd::Completed));
    assert_eq!(fixture.effects().len(), 1);
    // It covers its own tool and nothing else.
    fixture.governance = Governance::default();
    let waits = fixture.start(paying_model(), new_task("Pay Bob.")).await;
    assert_eq!(waits.end_or_waiting(), Some(RunEnd::WaitingForPerson));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancellation_by_another_process_reaches_the_running_tool() {
    let fixture = RunFixture::new();
    let model = ScriptedModel::answers([call("pay", json!({"to": "Slow", "amount": 5}))]);
    let run = fixture.start(model, new_task("Pay Slow.")).await;
    fixture.decide("bob", PersonDecision::Approve);
    let driver = fixture.driver(finishing_model());
    let id = run.id().clone();
    let begun = std::time::Instant::now();
    let work = tokio::spawn(async move { driver.resume(&id).await.unwrap() });
    let store = fixture.store();
    while !matches!(
        store
            .fold(run.id())
            .unwrap()
            .calls()
            .next()
            .map(CallRecord::state),
        Some(CallState::Running)
    ) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    store
        .request_cancel(run.id(), &identity("bob"), now())
        .unwrap();
    let run = work.await.unwrap();
    assert_eq!(run.end(), Some(&RunEnd::Cancelled));
    assert!(begun.elapsed() < Duration::from_secs(10));
    assert!(fixture.effects().is_empty());
    let by = store
        .events(run.id())
        .unwrap()
        .into_iter()
        .find_map(|(_, event)| match event {
            Event::Cancelled { by, .. } => by,
            _ => None,
        });
    assert_eq!(by.unwrap().as_str(), "bob");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_with_a_pending_cancellation_starts_no_further_effect() {
    let fixture = RunFixture::new();
    let run = fixture.start(paying_model(), new_task("Pay Bob.")).await;
    fixture.decide("bob", PersonDecision::Approve);
    let store = fixture.store();
    // The cancellation comes between the approval and the call.
    let driver = fixture
        .driver(finishing_model())
        .watched_by(Arc::new(move |id, progress| {
            if let Progress::Event(Event::Settled { .. }) = progress {
                store.request_cancel(id, &identity("bob"), now()).unwrap();
            }
        }));
    let run = driver.resume(run.id()).await.unwrap();
    assert_eq!(run.end(), Some(&RunEnd::Cancelled));
    assert!(fixture.effects().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pending_cancellation_cancels_a_run_and_its_sub_agent_when_resumed() {
    let fixture = RunFixture::new();
    let run = start_delegating_run(&fixture).await;
    let store = fixture.store();
    let runs = store.runs(&RunFilter::default()).unwrap();
    for run in &runs {
        let bob = identity("bob");
        store.request_cancel(&run.run, &bob, now()).unwrap();
    }
    // The process that requested it died before the runs ended.
    let driver = fixture.driver_with(chief_and_clerk(
        &fixture,
        finishing_model(),
        finishing_model(),
    ));
    let run = driver.resume(run.id()).await.unwrap();
    assert_eq!(run.end(), Some(&RunEnd::Cancelled));
    for run in runs {
        let summary = store.summary(&run.run).unwrap();
        assert_eq!(summary.end, Some(RunEnd::Cancelled), "{}", run.run);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_sub_agent_waits_for_a_person_waits_too() {
    let fixture = RunFixture::new();
    let run = start_delegating_run(&fixture).await;
    assert_eq!(run.end_or_waiting(), Some(RunEnd::WaitingForPerson));
    let waiting = RunFilter {
        state: Some(RunState::Waiting),
        ..RunFilter::default()
    };
    assert_eq!(fixture.store().runs(&waiting).unwrap().len(), 2);
    let asked = fixture.pending().remove(0);
    assert_eq!(asked.run().as_str(), format!("{}.1.0", run.id()));
    let parents: Vec<String> = asked
        .request()
        .parents
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(parents, [format!("{}:1:0", run.id())]);
    fixture.decide("bob", PersonDecision::Approve);
    let driver = fixture.driver_with(chief_and_clerk(
        &fixture,
        ScriptedModel::answers([finish("Paid.")]),
        finishing_model(),
    ));
    let done = driver.resume(run.id()).await.unwrap();
    assert_eq!(done.end(), Some(&RunEnd::Completed));
    assert_eq!(fixture.effects().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_needs_a_person_makes_the_run_wait_for_one() {
    let fixture = RunFixture::new();
    let model = ScriptedModel::answers([call("look", json!({"what": "captcha"}))]);
    let run = fixture.start(model, new_task("Look.")).await;
    assert_eq!(run.end_or_waiting(), Some(RunEnd::WaitingForPerson));
    let asked = fixture.pending().remove(0);
    assert_eq!(asked.question().kind(), "intervene");
    let note = NonEmptyText::new("It was a bus.").ok();
    fixture.decide("bob", PersonDecision::Done { note });
    let model = ScriptedModel::answers([call("look", json!({"what": "weather"})), finish("Fine.")]);
    let done = fixture.resume(model, run.id()).await;
    assert_eq!(done.end(), Some(&RunEnd::Completed));
    assert_eq!(fixture.effects().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_journal_with_decisions_of_people_reads_back_unchanged() {
    let fixture = RunFixture::new();
    let model = ScriptedModel::answers([
        call("note", json!({"text": "a"})),
        call("ask_human", json!({"question": "How much?"})),
    ]);
    let run = fixture.start(model, new_task("Ask.")).await;
    fixture.decide(
        "bob",
        PersonDecision::Answer {
            text: NonEmptyText::new("Five.").unwrap(),
        },
    );
    let done = fixture.resume(finishing_model(), run.id()).await;
    assert_eq!(done.end(), Some(&RunEnd::Completed));
    let events = fixture.store().events(run.id()).unwrap();
    let events: Vec<Event> = events.into_iter().map(|(_, event)| event).collect();
    let read = Run::fold(&events).unwrap();
    assert_eq!(read.turns(), done.turns());
    assert_eq!(read.response(), done.response());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_with_an_effect_does_not_start_after_a_cancellation() {
    let fixture = RunFixture::new();
    let payment = json!({"to": "Bob", "amount": 5});
    let authorization = json!({"tool_name": "pay", "tool_args": payment, "reason": "It is due."});
    let model = ScriptedModel::answers([call("request_authorization", authorization)]);
    let run = fixture.start(model, new_task("Pay.")).await;
    fixture.decide("bob", PersonDecision::Approve);
    // The run is cancelled while its model answers with the authorized call.
    let (store, id) = (fixture.store(), run.id().clone());
    let model = ScriptedModel::function(move |_| {
        store.request_cancel(&id, &identity("bob"), now()).unwrap();
        Ok(call("pay", payment.clone()))
    });
    let done = fixture.resume(model, run.id()).await;
    assert_eq!(done.end(), Some(&RunEnd::Cancelled));
    assert!(fixture.effects().is_empty());
}
