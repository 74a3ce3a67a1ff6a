//! Forged approvals, tried against a run on a real database and with real tools: changed arguments, another
//! person or tenant, too late, replayed, concurrent, and under changed rules. None has an effect, each is
//! reported, and the journal is unchanged.

use std::sync::Barrier;

use rusqlite::Connection;
use serde_json::json;
use windlass_core::approval::{Digest, PersonDecision, Principal, TenantPrincipal};
use windlass_core::run::{Event, Run, RunEnd};
use windlass_runtime::{DriveError, DurableError, now};
use windlass_spec::{CallId, CallState, ErrorCategory, NonEmptyText, Timestamp, ToolName};
use windlass_store::{Error, RunState};

use super::fixture::{RunFixture, finishing_model, paying_model, state};
use super::support::{identity, new_task};

/// A run that waits for approval to pay Bob.
async fn waiting_run(fixture: &RunFixture) -> (Run, CallId) {
    let run = fixture
        .driver(paying_model())
        .start(new_task("Pay Bob."))
        .await;
    let run = run.unwrap();
    assert_eq!(run.end_or_waiting(), Some(RunEnd::WaitingForPerson));
    let call = run.calls().next().unwrap().id().clone();
    (run, call)
}

fn other_tenant() -> TenantPrincipal {
    let tenant = NonEmptyText::new("elsewhere").unwrap();
    TenantPrincipal::new(tenant, Principal::new("bob").unwrap())
}

fn digest(amount: i64) -> Digest {
    let arguments = json!({"to": "Bob", "amount": amount});
    Digest::of_call(
        &ToolName::new("pay").unwrap(),
        arguments.as_object().unwrap(),
    )
}

fn hours_from_now(hours: i64) -> Timestamp {
    Timestamp::from_microseconds(now().as_microseconds() + hours * 3_600_000_000)
}

/// Writes to the database directly, without its checks.
fn tamper(fixture: &RunFixture, sql: &str) {
    let connection = Connection::open(fixture.path()).unwrap();
    assert_eq!(connection.execute(sql, []).unwrap(), 1, "{sql}");
}

/// Checks that nothing was paid, and that the journal has no approval.
fn assert_no_effect(fixture: &RunFixture, run: &Run) {
    assert!(fixture.effects().is_empty(), "{:?}", fixture.effects());
    let events = fixture.store().events(run.id()).unwrap();
    let events: Vec<Event> = events.into_iter().map(|(_, event)| event).collect();
    let read = Run::fold(&events).unwrap();
    assert_eq!(read.turns()[0].answer, run.turns()[0].answer);
    let is_taken = |event: &Event| matches!(event, Event::Settled { .. });
    let is_begun = |event: &Event| matches!(event, Event::CallStarted { .. });
    assert!(
        !events
            .iter()
            .any(|event| is_taken(event) || is_begun(event))
    );
}

/// Checks that resuming the run fails with this reason, repeatedly.
async fn assert_refused(fixture: &RunFixture, run: &Run, why: &str) {
    for _ in 0..2 {
        let error = fixture.driver(finishing_model()).resume(run.id()).await;
        let error = error.unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
        assert_no_effect(fixture, run);
    }
}

/// Checks that the run still waits, and that a valid decision still counts.
async fn assert_still_waits(fixture: &RunFixture, run: &Run) {
    let waits = fixture.resume(finishing_model(), run.id()).await;
    assert_eq!(waits.end_or_waiting(), Some(RunEnd::WaitingForPerson));
    assert_no_effect(fixture, run);
    fixture.decide("bob", PersonDecision::Approve);
    let done = fixture.resume(finishing_model(), run.id()).await;
    assert_eq!(done.end(), Some(&RunEnd::Completed));
    assert_eq!(fixture.effects(), [r#"pay {"amount":5,"to":"Bob"}"#]);
}

/// Checks that a run that cannot be resumed can be cancelled.
async fn assert_can_be_cancelled(fixture: &RunFixture, run: &Run) {
    let store = fixture.store();
    store
        .request_cancel(run.id(), &identity("ann"), now())
        .unwrap();
    let done = fixture.resume(finishing_model(), run.id()).await;
    assert_eq!(done.end(), Some(&RunEnd::Cancelled));
    assert!(fixture.effects().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_of_other_arguments_is_refused() {
    let fixture = RunFixture::new();
    let (run, call) = waiting_run(&fixture).await;
    let decided = fixture.store().decide(
        &call,
        Some(&digest(5_000)),
        &identity("bob"),
        PersonDecision::Approve,
        now(),
    );
    let error = decided.unwrap_err();
    assert!(matches!(error, Error::DigestDiffers { .. }), "{error}");
    assert_still_waits(&fixture, &run).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_changed_in_the_question_are_detected_at_the_decision() {
    let fixture = RunFixture::new();
    let (run, call) = waiting_run(&fixture).await;
    tamper(
        &fixture,
        r#"UPDATE approvals SET body = replace(body, '"amount":5', '"amount":5000')"#,
    );
    let decision = PersonDecision::Approve;
    let decided = fixture
        .store()
        .decide(&call, None, &identity("bob"), decision, now());
    let error = decided.unwrap_err();
    assert!(error.to_string().contains("digest"), "{error}");
    assert_no_effect(&fixture, &run);
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_changed_with_their_digest_are_detected_by_the_run() {
    let fixture = RunFixture::new();
    let (run, call) = waiting_run(&fixture).await;
    let (asked, forged) = (digest(5), digest(5_000));
    tamper(
        &fixture,
        &format!(
            r#"UPDATE approvals SET body = replace(replace(body,
                '"amount":5', '"amount":5000'), '{asked}', '{forged}')"#
        ),
    );
    // The person sees the forged arguments and approves them.
    let decision = PersonDecision::Approve;
    let (store, by) = (fixture.store(), identity("bob"));
    store
        .decide(&call, Some(&forged), &by, decision, now())
        .unwrap();
    assert_refused(&fixture, &run, "does not match its open question").await;
    assert_can_be_cancelled(&fixture, &run).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_from_another_tenant_is_refused() {
    let fixture = RunFixture::new();
    let (run, call) = waiting_run(&fixture).await;
    let store = fixture.store();
    let decide = || store.decide(&call, None, &other_tenant(), PersonDecision::Approve, now());
    let error = decide().unwrap_err();
    assert!(matches!(error, Error::NoSuchApproval(_)), "{error}");
    let error = store.request_cancel(run.id(), &other_tenant(), now());
    assert!(matches!(error, Err(Error::NoSuchRun(_))), "{error:?}");
    assert_still_waits(&fixture, &run).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_moved_to_another_tenant_is_detected_by_the_run() {
    let fixture = RunFixture::new();
    let (run, call) = waiting_run(&fixture).await;
    tamper(
        &fixture,
        r#"UPDATE approvals SET tenant = 'elsewhere',
            body = replace(body, '"tenant":"local"', '"tenant":"elsewhere"')"#,
    );
    let (store, decision) = (fixture.store(), PersonDecision::Approve);
    store
        .decide(&call, None, &other_tenant(), decision, now())
        .unwrap();
    assert_refused(&fixture, &run, "does not match its open question").await;
    assert_can_be_cancelled(&fixture, &run).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_after_the_deadline_is_refused_and_the_call_expires() {
    let fixture = RunFixture::new();
    let (run, call) = waiting_run(&fixture).await;
    let (store, later) = (fixture.store(), hours_from_now(25));
    let decision = PersonDecision::Approve;
    let error = store.decide(&call, None, &identity("bob"), decision, later);
    assert!(matches!(error, Err(Error::Expired { .. })), "{error:?}");
    assert_no_effect(&fixture, &run);
    let done = fixture.resume(finishing_model(), run.id()).await;
    assert_eq!(done.end(), Some(&RunEnd::Completed));
    let (record, _) = done.call(&call).unwrap();
    let failure = record.outcome().unwrap().unwrap_err();
    assert_eq!(failure.category, ErrorCategory::Expired);
    assert!(fixture.effects().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_with_an_extended_deadline_is_detected_by_the_run() {
    let fixture = RunFixture::new();
    let (run, call) = waiting_run(&fixture).await;
    let asked = fixture.store().approval(&call, now()).unwrap();
    let expires = asked.request().expires_at;
    let (later, latest) = (hours_from_now(25), hours_from_now(50));
    tamper(
        &fixture,
        &format!(
            r#"UPDATE approvals SET expires_at = {},
                body = replace(body, '"expires_at":"{expires}"', '"expires_at":"{latest}"')"#,
            latest.as_microseconds()
        ),
    );
    let (store, by) = (fixture.store(), identity("bob"));
    let decision = PersonDecision::Approve;
    store.decide(&call, None, &by, decision, later).unwrap();
    assert_refused(&fixture, &run, "does not match its open question").await;
    assert_can_be_cancelled(&fixture, &run).await;
}

/// Copies the approval of one call to another, and sends it.
fn copy_approval(fixture: &RunFixture, from: &CallId, to: &CallId, body: &str) {
    tamper(
        fixture,
        &format!(
            "INSERT INTO approvals (run, call, number, tenant, principal, kind, tool, status,
                 asked_at, expires_at, settled_at, body)
             SELECT '{}', '{to}', 2, tenant, principal, kind, tool, status,
                 asked_at, expires_at, settled_at, {body}
             FROM approvals WHERE call = '{from}'",
            to.run
        ),
    );
    send(fixture, to, 2);
}

/// Sends the owner of a run the command that a question was settled.
fn send(fixture: &RunFixture, call: &CallId, number: i64) {
    tamper(
        fixture,
        &format!(
            "INSERT INTO mailbox (run, tenant, principal, kind, call, number, sent_by, sent_at)
             SELECT run, tenant, principal, 'settled', '{call}', {number}, 'bob', {}
             FROM runs WHERE run = '{}'",
            now().as_microseconds(),
            call.run
        ),
    );
}

/// Pays Bob once, and starts a run that asks to pay the same again.
async fn run_after_payment(fixture: &RunFixture) -> (CallId, Run, CallId) {
    let (earlier, from) = waiting_run(fixture).await;
    fixture.decide("bob", PersonDecision::Approve);
    let done = fixture.driver(finishing_model()).resume(earlier.id()).await;
    assert_eq!(done.unwrap().end(), Some(&RunEnd::Completed));
    assert_eq!(fixture.take_effects().len(), 1);
    let (run, to) = waiting_run(fixture).await;
    (from, run, to)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_copied_from_an_earlier_run_is_refused() {
    let fixture = RunFixture::new();
    let (from, run, to) = run_after_payment(&fixture).await;
    copy_approval(&fixture, &from, &to, "body");
    assert_refused(&fixture, &run, "its columns and its body do not agree").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_copied_and_rewritten_for_this_call_is_detected_by_the_run() {
    let fixture = RunFixture::new();
    let (from, run, to) = run_after_payment(&fixture).await;
    let body = format!("replace(body, '{}', '{}')", from.run, to.run);
    copy_approval(&fixture, &from, &to, &body);
    assert_refused(&fixture, &run, "does not match its open question").await;
    assert_can_be_cancelled(&fixture, &run).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_sent_twice_counts_once() {
    let fixture = RunFixture::new();
    let (run, call) = waiting_run(&fixture).await;
    fixture.decide("bob", PersonDecision::Approve);
    send(&fixture, &call, 1);
    send(&fixture, &call, 1);
    let done = fixture.resume(finishing_model(), run.id()).await;
    assert_eq!(done.end(), Some(&RunEnd::Completed));
    assert_eq!(fixture.effects().len(), 1);
    // A run that is over takes no more commands.
    send(&fixture, &call, 1);
    let again = fixture.resume(finishing_model(), run.id()).await;
    assert_eq!(again.turns(), done.turns());
    assert_eq!(fixture.effects().len(), 1);
}

/// Rules by which a payment needs two approvers.
const TWO_APPROVERS: &str = r#"
    @id("all") permit (principal, action, resource);
    @id("large") @security_level("CRITICAL")
    forbid (principal, action == Action::"pay", resource) unless { context.approved };
"#;

#[tokio::test(flavor = "multi_thread")]
async fn one_approval_is_not_enough_if_the_rules_now_need_two() {
    let mut fixture = RunFixture::new();
    let (run, call) = waiting_run(&fixture).await;
    fixture.decide("bob", PersonDecision::Approve);
    fixture.governance.policies = TWO_APPROVERS.to_owned();
    let waits = fixture.resume(finishing_model(), run.id()).await;
    assert_eq!(waits.end_or_waiting(), Some(RunEnd::WaitingForPerson));
    assert!(fixture.effects().is_empty());
    // Bob's decision about the earlier question does not answer this one.
    send(&fixture, &call, 1);
    let error = fixture.driver(finishing_model()).resume(run.id()).await;
    let error = error.unwrap_err();
    assert!(matches!(error, DriveError::Fold(_)), "{error}");
    assert!(fixture.effects().is_empty());
    assert_can_be_cancelled(&fixture, &run).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_does_not_override_rules_that_now_forbid_the_call() {
    let mut fixture = RunFixture::new();
    let (run, call) = waiting_run(&fixture).await;
    fixture.decide("bob", PersonDecision::Approve);
    fixture.governance.policies = r#"
        @id("all") permit (principal, action, resource);
        @id("off") @reason("payments are off") forbid (principal, action == Action::"pay", resource);
    "#
    .to_owned();
    let done = fixture.resume(finishing_model(), run.id()).await;
    let (record, _) = done.call(&call).unwrap();
    assert_eq!(record.state(), CallState::Error);
    let failure = record.outcome().unwrap().unwrap_err();
    assert_eq!(failure.category, ErrorCategory::PermissionDenied);
    assert_eq!(failure.operator_message, "payments are off");
    assert!(fixture.effects().is_empty());
    assert_eq!(state(&fixture.store(), run.id()), RunState::Ended);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_concurrent_decisions_one_counts_and_runs() {
    for _ in 0..8 {
        let fixture = RunFixture::new();
        let (run, call) = waiting_run(&fixture).await;
        let amounts = [5, 4, 3];
        let barrier = Barrier::new(amounts.len());
        let won: Vec<i64> = std::thread::scope(|scope| {
            let decide = |amount: i64| {
                let store = fixture.store();
                let arguments = json!({"to": "Bob", "amount": amount});
                let arguments = arguments.as_object().unwrap().clone();
                let decision = PersonDecision::ApproveEdited { arguments };
                let by = identity(&format!("p{amount}"));
                barrier.wait();
                match store.decide(&call, Some(&digest(5)), &by, decision, now()) {
                    Ok(_) => Some(amount),
                    Err(Error::AlreadyDecided { .. }) => None,
                    Err(error) => panic!("{error}"),
                }
            };
            let threads = amounts.map(|amount| scope.spawn(move || decide(amount)));
            let decided = threads.map(|thread| thread.join().unwrap());
            decided.into_iter().flatten().collect()
        });
        assert_eq!(won.len(), 1);
        let done = fixture.resume(finishing_model(), run.id()).await;
        assert_eq!(done.end(), Some(&RunEnd::Completed));
        assert_eq!(
            fixture.effects(),
            [format!(r#"pay {{"amount":{},"to":"Bob"}}"#, won[0])]
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_resumed_concurrently_pays_once() {
    for _ in 0..8 {
        let fixture = RunFixture::new();
        let (run, _) = waiting_run(&fixture).await;
        fixture.decide("bob", PersonDecision::Approve);
        let drivers: Vec<_> = (0..3)
            .map(|_| (fixture.driver(finishing_model()), run.id().clone()))
            .map(|(driver, id)| tokio::spawn(async move { driver.resume(&id).await }))
            .collect();
        let mut done = 0;
        for driver in drivers {
            match driver.await.unwrap() {
                Ok(run) => {
                    assert_eq!(run.end(), Some(&RunEnd::Completed));
                    done += 1;
                }
                Err(DriveError::Durable(DurableError::OwnedElsewhere(_))) => {}
                Err(error) => panic!("{error}"),
            }
        }
        assert!(done > 0);
        assert_eq!(fixture.effects().len(), 1);
    }
}
