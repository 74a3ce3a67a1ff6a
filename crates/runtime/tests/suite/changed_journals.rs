//! Journals that were changed behind the program's back, on a real database and with real tools. What runs
//! is what was decided and approved, or nothing.

use rusqlite::Connection;
use serde_json::json;
use windlass_core::approval::{Digest, PersonDecision};
use windlass_core::run::{Event, Run, RunEnd};
use windlass_model::ScriptedModel;
use windlass_spec::{CallId, CallState, ErrorCategory, ToolName};

use super::fixture::{RunFixture, finishing_model, paying_model};
use super::support::{call, new_task};

/// Changes events of one kind, without the checks of the store.
fn change(fixture: &RunFixture, kind: &str, from: &str, to: &str) {
    let connection = Connection::open(fixture.path()).unwrap();
    let changed = connection
        .execute(
            "UPDATE events SET payload = replace(payload, ?2, ?3)
             WHERE kind = ?1 AND instr(payload, ?2) > 0",
            [kind, from, to],
        )
        .unwrap();
    assert_eq!(changed, 1, "{kind} has no {from}");
}

/// Removes the last events of a run, without the checks of the store.
fn truncate(fixture: &RunFixture, run: &Run, kinds: &[&str]) {
    let connection = Connection::open(fixture.path()).unwrap();
    connection
        .execute_batch("DROP TRIGGER decisions_stay")
        .unwrap();
    for kind in kinds {
        let removed = connection
            .execute(
                "DELETE FROM events WHERE run = ?1 AND kind = ?2
                 AND seq = (SELECT max(seq) FROM events WHERE run = ?1)",
                [run.id().as_str(), kind],
            )
            .unwrap();
        assert_eq!(removed, 1, "the last event is not {kind}");
    }
}

async fn start(fixture: &RunFixture, model: ScriptedModel) -> (Run, CallId) {
    let run = fixture.driver(model).start(new_task("Pay Bob.")).await;
    let run = run.unwrap();
    let call = run.calls().next().unwrap().id().clone();
    (run, call)
}

/// Makes one payment. The model asks for another one, so the run waits again. Returns the call of the first.
async fn pay_and_ask_again(fixture: &RunFixture) -> (Run, CallId) {
    let (run, paid) = start(fixture, paying_model()).await;
    fixture.decide("bob", PersonDecision::Approve);
    let next = ScriptedModel::answers([call("pay", json!({"to": "Eve", "amount": 5}))]);
    let run = fixture.driver(next).resume(run.id()).await.unwrap();
    assert_eq!(fixture.take_effects().len(), 1);
    (run, paid)
}

/// Lets the store forget how many events its runs have.
fn forget_count(fixture: &RunFixture) {
    let connection = Connection::open(fixture.path()).unwrap();
    let forget = "UPDATE runs SET event_count = NULL";
    connection.execute_batch(forget).unwrap();
}

async fn resume(fixture: &RunFixture, run: &Run) -> Run {
    let done = fixture.driver(finishing_model()).resume(run.id()).await;
    done.unwrap()
}

/// Checks that the call was denied because it is another one than was authorized, and that nothing was
/// done.
fn assert_denied(fixture: &RunFixture, done: &Run, call: &CallId) {
    assert!(fixture.effects().is_empty(), "{:?}", fixture.effects());
    let (record, _) = done.call(call).unwrap();
    assert_eq!(record.state(), CallState::Error);
    let failure = record.outcome().unwrap().unwrap_err();
    assert_eq!(failure.category, ErrorCategory::PermissionDenied);
    let expected = format!("the call {call} is not the one that was authorized");
    let message = &failure.operator_message;
    assert!(message.starts_with(&expected), "{message}");
    assert_eq!(done.end(), Some(&RunEnd::Completed));
    let events = fixture.store().events(done.id()).unwrap();
    let is_begun = |event: &Event| matches!(event, Event::CallStarted { .. });
    assert!(!events.iter().any(|(_, event)| is_begun(event)));
}

fn digest(amount: i64) -> String {
    let arguments = json!({"to": "Bob", "amount": amount});
    let tool = ToolName::new("pay").unwrap();
    Digest::of_call(&tool, arguments.as_object().unwrap()).to_string()
}

const ASKED: &str = r#""amount":5"#;
const FORGED: &str = r#""amount":777"#;

#[tokio::test(flavor = "multi_thread")]
async fn arguments_changed_after_the_approval_do_not_run() {
    let fixture = RunFixture::new();
    let (run, call) = start(&fixture, paying_model()).await;
    fixture.decide("bob", PersonDecision::Approve);
    change(&fixture, "model_answered", ASKED, FORGED);
    assert_denied(&fixture, &resume(&fixture, &run).await, &call);
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_changed_before_the_approval_do_not_run() {
    let fixture = RunFixture::new();
    let (run, call) = start(&fixture, paying_model()).await;
    change(&fixture, "model_answered", ASKED, FORGED);
    // The approver is shown the call as it was asked.
    fixture.decide("bob", PersonDecision::Approve);
    assert_denied(&fixture, &resume(&fixture, &run).await, &call);
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_and_decision_changed_after_the_approval_do_not_run() {
    let fixture = RunFixture::new();
    let (run, call) = start(&fixture, paying_model()).await;
    fixture.decide("bob", PersonDecision::Approve);
    change(&fixture, "model_answered", ASKED, FORGED);
    change(&fixture, "decided", &digest(5), &digest(777));
    assert_denied(&fixture, &resume(&fixture, &run).await, &call);
}

/// Stops the process after the run took the decision and before the call starts.
async fn take_decision(fixture: &RunFixture, run: &Run) {
    let store = fixture.store();
    let journal = store.take_over(run.id()).unwrap();
    let events = store.events(run.id()).unwrap();
    let events: Vec<Event> = events.into_iter().map(|(_, event)| event).collect();
    let mut run = Run::fold(&events).unwrap();
    let command = store.inbox(run.id()).unwrap().remove(0);
    let id = command.id;
    let at = windlass_runtime::now();
    let event = store.redacted(command.into_event(at)).unwrap();
    run.apply(event.event()).unwrap();
    journal.append_taking(&event, id).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recorded_approval_of_other_arguments_does_not_count() {
    let fixture = RunFixture::new();
    let (run, call) = start(&fixture, paying_model()).await;
    fixture.decide("bob", PersonDecision::Approve);
    take_decision(&fixture, &run).await;
    // All events agree with each other, but not with what was approved.
    for kind in ["model_answered", "asked", "settled"] {
        change(&fixture, kind, ASKED, FORGED);
    }
    for kind in ["decided", "settled"] {
        change(&fixture, kind, &digest(5), &digest(777));
    }
    assert_denied(&fixture, &resume(&fixture, &run).await, &call);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edited_approval_is_for_the_edited_arguments() {
    for is_forged in [false, true] {
        let fixture = RunFixture::new();
        let (run, call) = start(&fixture, paying_model()).await;
        let arguments = json!({"to": "Bob", "amount": 4});
        let arguments = arguments.as_object().unwrap().clone();
        fixture.decide("bob", PersonDecision::ApproveEdited { arguments });
        take_decision(&fixture, &run).await;
        if is_forged {
            change(&fixture, "settled", r#""amount":4"#, FORGED);
            change(&fixture, "settled", &digest(4), &digest(777));
            assert_denied(&fixture, &resume(&fixture, &run).await, &call);
        } else {
            resume(&fixture, &run).await;
            assert_eq!(fixture.effects(), [r#"pay {"amount":4,"to":"Bob"}"#]);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_call_with_changed_arguments_does_not_run() {
    for changes_digest in [false, true] {
        let fixture = RunFixture::new();
        let model = ScriptedModel::answers([call("note", json!({"text": "Milk"}))]);
        let driver = fixture.driver(model);
        let stop = windlass_runtime::Stop::default();
        let after_step = stop.after_step.clone();
        let driver = driver.stopped_by(stop).watched_by(std::sync::Arc::new(
            move |_: &_, progress: windlass_runtime::Progress<'_>| {
                if let windlass_runtime::Progress::Event(Event::Held { .. }) = progress {
                    after_step.cancel();
                }
            },
        ));
        let run = driver.start(new_task("Note it.")).await.unwrap();
        assert_eq!(run.held_calls().count(), 1);
        let call = run.calls().next().unwrap().id().clone();
        change(
            &fixture,
            "model_answered",
            r#""text":"Milk""#,
            r#""text":"Fire""#,
        );
        if changes_digest {
            let tool = ToolName::new("note").unwrap();
            let digest = |text: &str| {
                let arguments = json!({"text": text});
                Digest::of_call(&tool, arguments.as_object().unwrap()).to_string()
            };
            change(&fixture, "decided", &digest("Milk"), &digest("Fire"));
        }
        assert_denied(&fixture, &resume(&fixture, &run).await, &call);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_without_a_digest_permits_nothing() {
    let fixture = RunFixture::new();
    let (run, call) = start(&fixture, paying_model()).await;
    change(
        &fixture,
        "decided",
        r#""verdict":"ask""#,
        r#""verdict":"allow""#,
    );
    change(
        &fixture,
        "decided",
        &format!(r#""digest":"{}","#, digest(5)),
        "",
    );
    let connection = Connection::open(fixture.path()).unwrap();
    connection
        .execute_batch("DROP TRIGGER decisions_stay; DELETE FROM events WHERE kind = 'asked'; UPDATE runs SET event_count = NULL")
        .unwrap();
    drop(connection);
    assert_denied(&fixture, &resume(&fixture, &run).await, &call);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_that_is_missing_in_the_journal_is_not_made_again() {
    let fixture = RunFixture::new();
    let (run, paid) = pay_and_ask_again(&fixture).await;
    truncate(
        &fixture,
        &run,
        &[
            "asked",
            "decided",
            "model_answered",
            "call_ended",
            "call_started",
        ],
    );
    let error = fixture.driver(finishing_model()).resume(run.id()).await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("it has 6 of 11 events"), "{error}");
    forget_count(&fixture);
    let done = resume(&fixture, &run).await;
    assert!(fixture.effects().is_empty());
    let (record, _) = done.call(&paid).unwrap();
    let failure = record.outcome().unwrap().unwrap_err();
    let message = &failure.operator_message;
    assert!(message.contains("has run before"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_started_payment_with_a_changed_risk_is_not_made_again() {
    let fixture = RunFixture::new();
    let (run, paid) = pay_and_ask_again(&fixture).await;
    truncate(
        &fixture,
        &run,
        &["asked", "decided", "model_answered", "call_ended"],
    );
    forget_count(&fixture);
    change(
        &fixture,
        "decided",
        r#""level":"irreversible""#,
        r#""level":"reversible""#,
    );
    let waits = resume(&fixture, &run).await;
    assert!(fixture.effects().is_empty(), "{:?}", fixture.effects());
    let (record, _) = waits.call(&paid).unwrap();
    assert_eq!(record.state(), CallState::Unknown);
    assert_eq!(waits.end_or_waiting(), Some(RunEnd::WaitingForPerson));
}
