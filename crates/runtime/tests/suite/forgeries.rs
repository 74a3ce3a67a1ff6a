//! Leave that nobody gave, tried against a run on a real database and with real tools: changed
//! arguments, another person or tenant, too late, replayed, twice at once, and under rules that have
//! changed since. None of it has an effect, each is told, and the journal stays what it was.

use std::sync::Barrier;

use rusqlite::Connection;
use serde_json::json;
use windlass_core::approval::{Digest, Identity, PersonDecision, Principal};
use windlass_core::run::{Event, Run, RunEnd};
use windlass_runtime::{DriveError, DurableError, now};
use windlass_spec::{CallId, CallState, ErrorCategory, NonEmptyText, Timestamp, ToolName};
use windlass_store::{Error, RunState};

use super::office::{Office, finishes, pays, state};
use super::support::{identity, new_task};

/// A run that waits for leave to pay Bob.
async fn asks(office: &Office) -> (Run, CallId) {
    let run = office.driver(pays()).start(new_task("Pay Bob.")).await;
    let run = run.unwrap();
    assert_eq!(run.standing(), Some(RunEnd::WaitingForPerson));
    let call = run.calls().next().unwrap().id().clone();
    (run, call)
}

fn stranger() -> Identity {
    let tenant = NonEmptyText::new("elsewhere").unwrap();
    Identity::new(tenant, Principal::new("bob").unwrap())
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

/// Writes to the database past everything that guards it.
fn tamper(office: &Office, sql: &str) {
    let connection = Connection::open(office.path()).unwrap();
    assert_eq!(connection.execute(sql, []).unwrap(), 1, "{sql}");
}

/// Nothing was paid, and the journal is a run that nobody gave leave to.
fn nothing_happened(office: &Office, run: &Run) {
    assert!(office.done().is_empty(), "{:?}", office.done());
    let events = office.store().events(run.id()).unwrap();
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

/// Taking the run up fails because of what was found, and can be tried as often as one likes.
async fn is_refused(office: &Office, run: &Run, why: &str) {
    for _ in 0..2 {
        let error = office.driver(finishes()).resume(run.id()).await;
        let error = error.unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
        nothing_happened(office, run);
    }
}

/// The run still waits, and a decision in good order still counts.
async fn still_waits(office: &Office, run: &Run) {
    let waits = office.driver(finishes()).resume(run.id()).await.unwrap();
    assert_eq!(waits.standing(), Some(RunEnd::WaitingForPerson));
    nothing_happened(office, run);
    office.decide("bob", PersonDecision::Approve);
    let done = office.driver(finishes()).resume(run.id()).await.unwrap();
    assert_eq!(done.end(), Some(&RunEnd::Completed));
    assert_eq!(office.done(), [r#"pay {"amount":5,"to":"Bob"}"#]);
}

/// A run that cannot be gone on with can be stopped.
async fn can_be_cancelled(office: &Office, run: &Run) {
    let store = office.store();
    store
        .request_cancel(run.id(), &identity("ann"), now())
        .unwrap();
    let done = office.driver(finishes()).resume(run.id()).await.unwrap();
    assert_eq!(done.end(), Some(&RunEnd::Cancelled));
    assert!(office.done().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn leave_for_other_arguments_than_those_asked_about_is_refused() {
    let office = Office::new();
    let (run, call) = asks(&office).await;
    let decided = office.store().decide(
        &call,
        Some(&digest(5_000)),
        &identity("bob"),
        PersonDecision::Approve,
        now(),
    );
    let error = decided.unwrap_err();
    assert!(matches!(error, Error::DigestDiffers { .. }), "{error}");
    still_waits(&office, &run).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_changed_in_the_question_are_noticed_when_somebody_decides() {
    let office = Office::new();
    let (run, call) = asks(&office).await;
    tamper(
        &office,
        r#"UPDATE approvals SET body = replace(body, '"amount":5', '"amount":5000')"#,
    );
    let decision = PersonDecision::Approve;
    let decided = office
        .store()
        .decide(&call, None, &identity("bob"), decision, now());
    let error = decided.unwrap_err();
    assert!(error.to_string().contains("digest"), "{error}");
    nothing_happened(&office, &run);
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_changed_with_their_digest_are_noticed_by_the_run() {
    let office = Office::new();
    let (run, call) = asks(&office).await;
    let (asked, forged) = (digest(5), digest(5_000));
    tamper(
        &office,
        &format!(
            r#"UPDATE approvals SET body = replace(replace(body,
                '"amount":5', '"amount":5000'), '{asked}', '{forged}')"#
        ),
    );
    // The person sees what was forged, and approves of it.
    let decision = PersonDecision::Approve;
    let (store, by) = (office.store(), identity("bob"));
    store
        .decide(&call, Some(&forged), &by, decision, now())
        .unwrap();
    is_refused(&office, &run, "is not what was asked").await;
    can_be_cancelled(&office, &run).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leave_from_another_tenant_is_refused() {
    let office = Office::new();
    let (run, call) = asks(&office).await;
    let store = office.store();
    let decide = || store.decide(&call, None, &stranger(), PersonDecision::Approve, now());
    let error = decide().unwrap_err();
    assert!(matches!(error, Error::NoSuchApproval(_)), "{error}");
    let error = store.request_cancel(run.id(), &stranger(), now());
    assert!(matches!(error, Err(Error::NoSuchRun(_))), "{error:?}");
    still_waits(&office, &run).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_made_over_to_another_tenant_is_noticed_by_the_run() {
    let office = Office::new();
    let (run, call) = asks(&office).await;
    tamper(
        &office,
        r#"UPDATE approvals SET tenant = 'elsewhere',
            body = replace(body, '"tenant":"local"', '"tenant":"elsewhere"')"#,
    );
    let (store, decision) = (office.store(), PersonDecision::Approve);
    store
        .decide(&call, None, &stranger(), decision, now())
        .unwrap();
    is_refused(&office, &run, "is not what was asked").await;
    can_be_cancelled(&office, &run).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leave_that_comes_too_late_is_refused_and_the_call_ends_as_expired() {
    let office = Office::new();
    let (run, call) = asks(&office).await;
    let (store, later) = (office.store(), hours_from_now(25));
    let decision = PersonDecision::Approve;
    let error = store.decide(&call, None, &identity("bob"), decision, later);
    assert!(matches!(error, Err(Error::Expired { .. })), "{error:?}");
    nothing_happened(&office, &run);
    let done = office.driver(finishes()).resume(run.id()).await.unwrap();
    assert_eq!(done.end(), Some(&RunEnd::Completed));
    let (record, _) = done.call(&call).unwrap();
    let failure = record.outcome().unwrap().unwrap_err();
    assert_eq!(failure.category, ErrorCategory::Expired);
    assert!(office.done().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_whose_time_was_prolonged_is_noticed_by_the_run() {
    let office = Office::new();
    let (run, call) = asks(&office).await;
    let asked = office.store().approval(&call, now()).unwrap();
    let expires = asked.request().expires_at;
    let (later, latest) = (hours_from_now(25), hours_from_now(50));
    tamper(
        &office,
        &format!(
            r#"UPDATE approvals SET expires_at = {},
                body = replace(body, '"expires_at":"{expires}"', '"expires_at":"{latest}"')"#,
            latest.as_microseconds()
        ),
    );
    let (store, by) = (office.store(), identity("bob"));
    let decision = PersonDecision::Approve;
    store.decide(&call, None, &by, decision, later).unwrap();
    is_refused(&office, &run, "is not what was asked").await;
    can_be_cancelled(&office, &run).await;
}

/// Copies the leave that was given to one call to another, and sends it.
fn copy_leave(office: &Office, from: &CallId, to: &CallId, body: &str) {
    tamper(
        office,
        &format!(
            "INSERT INTO approvals (run, call, number, tenant, principal, kind, tool, status,
                 asked_at, expires_at, settled_at, body)
             SELECT '{}', '{to}', 2, tenant, principal, kind, tool, status,
                 asked_at, expires_at, settled_at, {body}
             FROM approvals WHERE call = '{from}'",
            to.run
        ),
    );
    send(office, to, 2);
}

/// Tells the owner of a run that a question was settled.
fn send(office: &Office, call: &CallId, number: i64) {
    tamper(
        office,
        &format!(
            "INSERT INTO mailbox (run, tenant, principal, kind, call, number, sent_by, sent_at)
             SELECT run, tenant, principal, 'settled', '{call}', {number}, 'bob', {}
             FROM runs WHERE run = '{}'",
            now().as_microseconds(),
            call.run
        ),
    );
}

/// An office in which Bob was paid once, and somebody asks to pay the same again.
async fn paid_before(office: &Office) -> (CallId, Run, CallId) {
    let (earlier, from) = asks(office).await;
    office.decide("bob", PersonDecision::Approve);
    let done = office.driver(finishes()).resume(earlier.id()).await;
    assert_eq!(done.unwrap().end(), Some(&RunEnd::Completed));
    assert_eq!(office.forget().len(), 1);
    let (run, to) = asks(office).await;
    (from, run, to)
}

#[tokio::test(flavor = "multi_thread")]
async fn leave_copied_from_an_earlier_run_is_refused() {
    let office = Office::new();
    let (from, run, to) = paid_before(&office).await;
    copy_leave(&office, &from, &to, "body");
    is_refused(&office, &run, "its columns and its body do not agree").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leave_copied_and_made_out_to_this_call_is_noticed_by_the_run() {
    let office = Office::new();
    let (from, run, to) = paid_before(&office).await;
    let body = format!("replace(body, '{}', '{}')", from.run, to.run);
    copy_leave(&office, &from, &to, &body);
    is_refused(&office, &run, "is not what was asked").await;
    can_be_cancelled(&office, &run).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leave_sent_twice_counts_once() {
    let office = Office::new();
    let (run, call) = asks(&office).await;
    office.decide("bob", PersonDecision::Approve);
    send(&office, &call, 1);
    send(&office, &call, 1);
    let done = office.driver(finishes()).resume(run.id()).await.unwrap();
    assert_eq!(done.end(), Some(&RunEnd::Completed));
    assert_eq!(office.done().len(), 1);
    // A run that is over takes nothing any more.
    send(&office, &call, 1);
    let again = office.driver(finishes()).resume(run.id()).await.unwrap();
    assert_eq!(again.turns(), done.turns());
    assert_eq!(office.done().len(), 1);
}

/// Rules by which two people have to agree to a payment.
const TWO: &str = r#"
    @id("all") permit (principal, action, resource);
    @id("large") @security_level("CRITICAL")
    forbid (principal, action == Action::"pay", resource) unless { context.approved };
"#;

#[tokio::test(flavor = "multi_thread")]
async fn the_leave_of_one_is_not_enough_when_the_rules_have_come_to_want_two() {
    let mut office = Office::new();
    let (run, call) = asks(&office).await;
    office.decide("bob", PersonDecision::Approve);
    office.governance.policies = TWO.to_owned();
    let waits = office.driver(finishes()).resume(run.id()).await.unwrap();
    assert_eq!(waits.standing(), Some(RunEnd::WaitingForPerson));
    assert!(office.done().is_empty());
    // What Bob said about the earlier question is no answer to this one.
    send(&office, &call, 1);
    let error = office.driver(finishes()).resume(run.id()).await;
    let error = error.unwrap_err();
    assert!(matches!(error, DriveError::Fold(_)), "{error}");
    assert!(office.done().is_empty());
    can_be_cancelled(&office, &run).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leave_under_rules_that_now_forbid_the_call_is_refused() {
    let mut office = Office::new();
    let (run, call) = asks(&office).await;
    office.decide("bob", PersonDecision::Approve);
    office.governance.policies = r#"
        @id("all") permit (principal, action, resource);
        @id("off") @reason("payments are off") forbid (principal, action == Action::"pay", resource);
    "#
    .to_owned();
    let done = office.driver(finishes()).resume(run.id()).await.unwrap();
    let (record, _) = done.call(&call).unwrap();
    assert_eq!(record.state(), CallState::Error);
    let failure = record.outcome().unwrap().unwrap_err();
    assert_eq!(failure.category, ErrorCategory::PermissionDenied);
    assert_eq!(failure.operator_message, "payments are off");
    assert!(office.done().is_empty());
    assert_eq!(state(&office.store(), run.id()), RunState::Ended);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_decisions_submitted_at_once_one_counts_and_runs() {
    for _ in 0..8 {
        let office = Office::new();
        let (run, call) = asks(&office).await;
        let amounts = [5, 4, 3];
        let barrier = Barrier::new(amounts.len());
        let won: Vec<i64> = std::thread::scope(|scope| {
            let decide = |amount: i64| {
                let store = office.store();
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
        let done = office.driver(finishes()).resume(run.id()).await.unwrap();
        assert_eq!(done.end(), Some(&RunEnd::Completed));
        assert_eq!(
            office.done(),
            [format!(r#"pay {{"amount":{},"to":"Bob"}}"#, won[0])]
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_taken_up_twice_at_once_pays_once() {
    for _ in 0..8 {
        let office = Office::new();
        let (run, _) = asks(&office).await;
        office.decide("bob", PersonDecision::Approve);
        let drivers: Vec<_> = (0..3)
            .map(|_| (office.driver(finishes()), run.id().clone()))
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
        assert_eq!(office.done().len(), 1);
    }
}
