//! Runs that wait for people, on a real database: asked, held, undone, cancelled, gone on with by
//! another process or from another hand.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use windlass_core::approval::{Approval, PersonDecision, Reach, Scope, Standing};
use windlass_core::gate::Governance;
use windlass_core::run::{Event, Run, RunEnd};
use windlass_model::ScriptedModel;
use windlass_runtime::{Asked, Crew, Patience, Progress, now};
use windlass_spec::{CallRecord, CallState, NonEmptyText, ToolName};
use windlass_store::{HoldFilter, RunFilter, RunState};

use super::office::{Office, finishes, pays, state};
use super::support::{call, finish, identity, new_task};

#[tokio::test(flavor = "multi_thread")]
async fn a_run_waits_on_disk_for_a_person_and_goes_on_when_they_decided() {
    let office = Office::new();
    let run = office
        .driver(pays())
        .start(new_task("Pay Bob."))
        .await
        .unwrap();
    assert_eq!(run.standing(), Some(RunEnd::WaitingForPerson));
    assert_eq!(state(&office.store(), run.id()), RunState::Waiting);
    assert!(office.done().is_empty());
    // Nobody decided yet: taking it up changes nothing.
    let again = office.driver(finishes()).resume(run.id()).await.unwrap();
    assert_eq!(again.standing(), Some(RunEnd::WaitingForPerson));
    office.decide("bob", PersonDecision::Approve);
    let done = office.driver(finishes()).resume(run.id()).await.unwrap();
    assert_eq!(done.end(), Some(&RunEnd::Completed));
    assert_eq!(office.done(), [r#"pay {"amount":5,"to":"Bob"}"#]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_patient_driver_goes_on_as_soon_as_somebody_elsewhere_decides() {
    let office = Office::new();
    let model = ScriptedModel::answers([
        call("pay", json!({"to": "Bob", "amount": 5})),
        finish("Done."),
    ]);
    let driver = office.driver(model).waiting(Patience::Stay);
    let work = tokio::spawn(async move { driver.start(new_task("Pay Bob.")).await.unwrap() });
    while office.pending().is_empty() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    office.decide("bob", PersonDecision::Approve);
    assert_eq!(work.await.unwrap().end(), Some(&RunEnd::Completed));
    assert_eq!(office.done().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_there_is_asked_and_may_leave_it_open() {
    let office = Office::new();
    let store = office.store();
    let asked = Arc::new(Mutex::new(0));
    let count = Arc::clone(&asked);
    let driver = office.driver(pays()).asking(Arc::new(move |_| {
        *count.lock().unwrap() += 1;
        Box::pin(std::future::ready(Asked::NotDecided))
    }));
    let run = driver.start(new_task("Pay Bob.")).await.unwrap();
    assert_eq!(run.standing(), Some(RunEnd::WaitingForPerson));
    assert_eq!(*asked.lock().unwrap(), 1);
    let driver = office
        .driver(finishes())
        .asking(Arc::new(move |question: Approval| {
            let store = Arc::clone(&store);
            Box::pin(async move {
                let reject = PersonDecision::Reject { message: None };
                store
                    .decide(question.call(), None, &identity("ann"), reject, now())
                    .unwrap();
                Asked::Decided
            })
        }));
    let run = driver.resume(run.id()).await.unwrap();
    assert_eq!(run.end(), Some(&RunEnd::Completed));
    assert_eq!(run.calls().next().unwrap().state(), CallState::Error);
    assert!(office.done().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_person_changed_runs_and_what_does_not_fit_is_denied() {
    for (arguments, is_fine) in [
        (json!({"to": "Bob", "amount": 3}), true),
        (json!({"to": "Bob", "amount": "all"}), false),
    ] {
        let office = Office::new();
        let run = office
            .driver(pays())
            .start(new_task("Pay Bob."))
            .await
            .unwrap();
        let arguments = arguments.as_object().unwrap().clone();
        office.decide("bob", PersonDecision::ApproveEdited { arguments });
        let done = office.driver(finishes()).resume(run.id()).await.unwrap();
        assert_eq!(done.end(), Some(&RunEnd::Completed));
        let expected: &[&str] = match is_fine {
            true => &[r#"pay {"amount":3,"to":"Bob"}"#],
            false => &[],
        };
        assert_eq!(office.done(), expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_that_changed_since_a_person_agreed_still_deny() {
    let mut office = Office::new();
    let run = office
        .driver(pays())
        .start(new_task("Pay Bob."))
        .await
        .unwrap();
    office.decide("bob", PersonDecision::Approve);
    office.governance.policies = r#"
        @id("all") permit (principal, action, resource);
        @id("no-more-payments") @reason("payments are off") forbid (principal, action == Action::"pay", resource);
    "#
    .to_owned();
    let done = office.driver(finishes()).resume(run.id()).await.unwrap();
    let record = done.calls().next().unwrap();
    assert_eq!(record.state(), CallState::Error);
    let failure = record.outcome().unwrap().unwrap_err();
    assert_eq!(failure.operator_message, "payments are off");
    assert!(office.done().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_of_two_peoples_leave_waits_for_the_second() {
    let mut office = Office::new();
    office.governance.policies = r#"
        @id("all") permit (principal, action, resource);
        @id("large") @security_level("CRITICAL")
        forbid (principal, action == Action::"pay", resource) unless { context.approved };
    "#
    .to_owned();
    let run = office
        .driver(pays())
        .start(new_task("Pay Bob."))
        .await
        .unwrap();
    office.decide("bob", PersonDecision::Approve);
    let waits = office.driver(finishes()).resume(run.id()).await.unwrap();
    assert_eq!(waits.standing(), Some(RunEnd::WaitingForPerson));
    office.decide("carol", PersonDecision::Approve);
    let done = office.driver(finishes()).resume(run.id()).await.unwrap();
    assert_eq!(done.end(), Some(&RunEnd::Completed));
    assert_eq!(office.done().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_call_runs_when_its_undo_window_is_over() {
    let office = Office::new();
    let model = ScriptedModel::answers([
        call("note", json!({"text": "Bob called"})),
        finish("Noted."),
    ]);
    let begun = std::time::Instant::now();
    let run = office
        .driver(model)
        .start(new_task("Note it."))
        .await
        .unwrap();
    assert_eq!(run.end(), Some(&RunEnd::Completed));
    assert!(
        begun.elapsed() >= Duration::from_secs(1),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(office.done().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_undo_from_elsewhere_keeps_a_held_call_from_running() {
    let office = Office::new();
    let model = ScriptedModel::answers([
        call("note", json!({"text": "Bob called"})),
        finish("Not noted."),
    ]);
    let driver = office.driver(model);
    let work = tokio::spawn(async move { driver.start(new_task("Note it.")).await.unwrap() });
    let store = office.store();
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
    assert!(office.done().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standing_approval_spares_the_question() {
    let mut office = Office::new();
    // Unsure of it, the model would have to ask about the note.
    let mut unsure = call("note", json!({"text": "Bob called"}));
    unsure.calls[0].confidence = Some(0.1);
    let standing = Standing::new(
        identity("ann"),
        ToolName::new("note").unwrap(),
        Scope::Tool,
        Reach::Until {
            until: windlass_spec::Timestamp::from_microseconds(i64::MAX),
        },
        identity("bob").principal,
        now(),
    );
    office.store().grant_standing(&standing.unwrap()).unwrap();
    let model = ScriptedModel::answers([unsure.clone(), finish("Noted.")]);
    let run = office
        .driver(model)
        .start(new_task("Note it."))
        .await
        .unwrap();
    assert_eq!(run.end(), Some(&RunEnd::Completed));
    assert_eq!(office.done().len(), 1);
    // It covers its own tool and nothing else.
    office.governance = Governance::default();
    let waits = office
        .driver(pays())
        .start(new_task("Pay Bob."))
        .await
        .unwrap();
    assert_eq!(waits.standing(), Some(RunEnd::WaitingForPerson));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancellation_from_elsewhere_reaches_the_running_tool() {
    let office = Office::new();
    let model = ScriptedModel::answers([call("pay", json!({"to": "Slow", "amount": 5}))]);
    let run = office
        .driver(model)
        .start(new_task("Pay Slow."))
        .await
        .unwrap();
    office.decide("bob", PersonDecision::Approve);
    let driver = office.driver(finishes());
    let id = run.id().clone();
    let begun = std::time::Instant::now();
    let work = tokio::spawn(async move { driver.resume(&id).await.unwrap() });
    let store = office.store();
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
    assert!(office.done().is_empty());
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
async fn a_run_that_is_to_be_stopped_begins_no_further_effect() {
    let office = Office::new();
    let run = office
        .driver(pays())
        .start(new_task("Pay Bob."))
        .await
        .unwrap();
    office.decide("bob", PersonDecision::Approve);
    let store = office.store();
    // Nothing is between the leave and the call but this.
    let driver = office
        .driver(finishes())
        .watched_by(Arc::new(move |id, progress| {
            if let Progress::Event(Event::Settled { .. }) = progress {
                store.request_cancel(id, &identity("bob"), now()).unwrap();
            }
        }));
    let run = driver.resume(run.id()).await.unwrap();
    assert_eq!(run.end(), Some(&RunEnd::Cancelled));
    assert!(office.done().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_to_be_stopped_does_not_outlive_the_work_of_its_sub_agent() {
    let office = Office::new();
    let chief =
        || ScriptedModel::answers([call("clerk", json!({"task": "Pay Bob."})), finish("Paid.")]);
    let crew = |chief: ScriptedModel, clerk: ScriptedModel| {
        Crew::new(office.worker("chief", chief)).with(office.worker("clerk", clerk))
    };
    let driver = office.driver_of(crew(chief(), pays()));
    let run = driver.start(new_task("See to it.")).await.unwrap();
    let store = office.store();
    let runs = store.runs(&RunFilter::default()).unwrap();
    for run in &runs {
        let bob = identity("bob");
        store.request_cancel(&run.run, &bob, now()).unwrap();
    }
    // Whoever wanted it stopped died before it was.
    let driver = office.driver_of(crew(finishes(), finishes()));
    let run = driver.resume(run.id()).await.unwrap();
    assert_eq!(run.end(), Some(&RunEnd::Cancelled));
    for run in runs {
        let summary = store.summary(&run.run).unwrap();
        assert_eq!(summary.end, Some(RunEnd::Cancelled), "{}", run.run);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_sub_agent_waits_for_a_person_waits_too() {
    let office = Office::new();
    let chief =
        || ScriptedModel::answers([call("clerk", json!({"task": "Pay Bob."})), finish("Paid.")]);
    let crew = |chief: ScriptedModel, clerk: ScriptedModel| {
        Crew::new(office.worker("chief", chief)).with(office.worker("clerk", clerk))
    };
    let driver = office.driver_of(crew(chief(), pays()));
    let run = driver.start(new_task("See to it.")).await.unwrap();
    assert_eq!(run.standing(), Some(RunEnd::WaitingForPerson));
    let waiting = RunFilter {
        state: Some(RunState::Waiting),
        ..RunFilter::default()
    };
    assert_eq!(office.store().runs(&waiting).unwrap().len(), 2);
    let asked = office.pending().remove(0);
    assert_eq!(asked.run().as_str(), format!("{}.1.0", run.id()));
    let parents: Vec<String> = asked
        .request()
        .parents
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(parents, [format!("{}:1:0", run.id())]);
    office.decide("bob", PersonDecision::Approve);
    let driver = office.driver_of(crew(ScriptedModel::answers([finish("Paid.")]), finishes()));
    let done = driver.resume(run.id()).await.unwrap();
    assert_eq!(done.end(), Some(&RunEnd::Completed));
    assert_eq!(office.done().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_needs_a_person_makes_the_run_wait_for_one() {
    let office = Office::new();
    let model = ScriptedModel::answers([call("look", json!({"what": "captcha"}))]);
    let run = office.driver(model).start(new_task("Look.")).await.unwrap();
    assert_eq!(run.standing(), Some(RunEnd::WaitingForPerson));
    let asked = office.pending().remove(0);
    assert_eq!(asked.question().kind(), "intervene");
    let note = NonEmptyText::new("It was a bus.").ok();
    office.decide("bob", PersonDecision::Done { note });
    let model = ScriptedModel::answers([call("look", json!({"what": "weather"})), finish("Fine.")]);
    let done = office.driver(model).resume(run.id()).await.unwrap();
    assert_eq!(done.end(), Some(&RunEnd::Completed));
    assert_eq!(office.done().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_journal_with_people_in_it_reads_back_as_it_was() {
    let office = Office::new();
    let model = ScriptedModel::answers([
        call("note", json!({"text": "a"})),
        call("ask_human", json!({"question": "How much?"})),
    ]);
    let run = office.driver(model).start(new_task("Ask.")).await.unwrap();
    office.decide(
        "bob",
        PersonDecision::Answer {
            text: NonEmptyText::new("Five.").unwrap(),
        },
    );
    let done = office.driver(finishes()).resume(run.id()).await.unwrap();
    assert_eq!(done.end(), Some(&RunEnd::Completed));
    let events = office.store().events(run.id()).unwrap();
    let events: Vec<Event> = events.into_iter().map(|(_, event)| event).collect();
    let read = Run::fold(&events).unwrap();
    assert_eq!(read.turns(), done.turns());
    assert_eq!(read.response(), done.response());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_have_an_effect_does_not_start_after_the_run_was_stopped() {
    let office = Office::new();
    let payment = json!({"to": "Bob", "amount": 5});
    let leave = json!({"tool_name": "pay", "tool_args": payment, "reason": "It is due."});
    let model = ScriptedModel::answers([call("request_authorization", leave)]);
    let run = office.driver(model).start(new_task("Pay.")).await.unwrap();
    office.decide("bob", PersonDecision::Approve);
    // Somebody stops the run while its model thinks of the call that it has leave for.
    let (store, id) = (office.store(), run.id().clone());
    let model = ScriptedModel::function(move |_| {
        store.request_cancel(&id, &identity("bob"), now()).unwrap();
        Ok(call("pay", payment.clone()))
    });
    let done = office.driver(model).resume(run.id()).await.unwrap();
    assert_eq!(done.end(), Some(&RunEnd::Cancelled));
    assert!(office.done().is_empty());
}
