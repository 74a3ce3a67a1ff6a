//! Complete runs: a scripted model, real tools, runs in memory or on disk.

mod approvals;
mod changed_journals;
mod damaged_logs;
mod durable;
mod fixture;
mod forged_approvals;
mod interrupted_calls;
mod machine;
mod memory;
mod plans;
mod registry;
mod retries;
mod selection;
mod sub_agents;
mod support;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::json;
use windlass_core::approval::{PersonDecision, TenantPrincipal};
use windlass_core::gate::{Governance, Rules};
use windlass_core::model::ModelAnswer;
use windlass_core::run::{CallEnd, Event, GateStep, Run, RunEnd, Settings};
use windlass_model::ScriptedModel;
use windlass_runtime::{Driver, Durable as _, InMemory, Progress, Stop, Stored, frames, now};
use windlass_spec::{CallState, NonEmptyText, RiskLevel, RunId, StreamFrame};
use windlass_store::{Options, Redactor, Store};

use support::{call, crew, finish, greeting, identity, new_task, started};

fn who() -> TenantPrincipal {
    identity("tester")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_calls_its_tool_and_answers() {
    let kept = InMemory::default();
    let seen = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&seen);
    let driver = Driver::new(crew(greeting()), Arc::new(kept.clone())).watched_by(Arc::new(
        move |_: &RunId, progress: Progress<'_>| {
            count.fetch_add(
                usize::from(matches!(progress, Progress::Event(_))),
                Ordering::Relaxed,
            );
        },
    ));
    let run = driver.start(new_task("Greet Ada.")).await.unwrap();
    assert_eq!(run.end(), Some(&RunEnd::Completed));
    let response = run.response();
    assert_eq!(response.answer().as_str(), "Hello, Ada! Nice to meet you.");
    assert_eq!(
        response.tool_calls()[0].result(),
        Some(&json!("Hello, Ada! Nice to meet you."))
    );
    let events = kept.events(run.id());
    assert_eq!(events.len(), seen.load(Ordering::Relaxed));
    assert_eq!(Run::fold(&events).unwrap().response(), response);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stored_run_reads_back_unchanged() {
    let directory = tempfile::tempdir().unwrap();
    let store = Arc::new(Store::open(directory.path().join("windlass.db")).unwrap());
    let stored = Stored::new(Arc::clone(&store), who());
    let driver = Driver::new(crew(greeting()), Arc::new(stored));
    let run = driver.start(new_task("Greet Ada.")).await.unwrap();
    let read = store.fold(run.id()).unwrap();
    assert_eq!(read.response(), run.response());
    assert_eq!(read.turns(), run.turns());
    // Resuming a run that has ended only returns it.
    let again = driver.resume(run.id()).await.unwrap();
    assert_eq!(again.response(), run.response());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_and_its_journal_are_equal_and_contain_no_secret() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options {
        redactor: Redactor::new(["hunter2-hunter2"]),
        ..Options::default()
    };
    let store = Store::open_with(directory.path().join("windlass.db"), options).unwrap();
    let store = Arc::new(store);
    let model = Arc::new(ScriptedModel::answers([
        call("sayHello", json!({"name": "hunter2-hunter2"})),
        finish("The word is hunter2-hunter2."),
    ]));
    let crew = support::crew_with(Arc::clone(&model) as _);
    let driver = Driver::new(crew, Arc::new(Stored::new(Arc::clone(&store), who())));
    let task = new_task("Greet hunter2-hunter2.");
    let run = driver.start(task).await.unwrap();
    assert_eq!(run.response().answer().as_str(), "The word is [redacted].");
    let read = store.fold(run.id()).unwrap();
    assert_eq!(read.turns(), run.turns());
    let shown = format!("{:?}", model.requests());
    assert!(shown.contains("[redacted]"), "{shown}");
    assert!(!shown.contains("hunter2"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_was_running_when_its_process_died_is_not_repeated() {
    // The operator sets the tool to irreversible, so its effect is unknown.
    let kept = InMemory::default();
    let governance = Governance {
        overrides: [("sayHello".to_owned(), RiskLevel::Irreversible)].into(),
        ..Governance::default()
    };
    let crew = |model| crew(model).governed_by(governance.clone());
    let first = started();
    let mut run = Run::fold([&first]).unwrap();
    let (_, mut journal) = kept.start(None, first).await.unwrap();
    let turn = run.current_turn();
    let mut events = vec![Event::ModelAnswered {
        turn,
        answer: call("sayHello", json!({"name": "Ada"})),
        at: now(),
    }];
    run.apply(&events[0]).unwrap();
    let id = run.calls().next().unwrap().id().clone();
    let rules = Rules::new(&governance, run.agent(), &[]).unwrap();
    let decided = Event::Decided {
        call: id.clone(),
        decision: run
            .decide(
                &id,
                &who(),
                &rules,
                &windlass_core::limits::Readiness::Ready,
            )
            .unwrap(),
        at: now(),
    };
    run.apply(&decided).unwrap();
    let Some(GateStep::Ask(approval)) = run.at_gate(&id, &who(), &rules, now()) else {
        panic!("no approval is requested");
    };
    let mut settled = approval.clone();
    let asked = Event::Asked {
        approval,
        at: now(),
    };
    settled
        .decide(&who(), PersonDecision::Approve, None, now())
        .unwrap();
    let settled = Event::Settled {
        approval: settled,
        at: now(),
    };
    let begun = Event::CallStarted {
        call: id.clone(),
        at: now(),
        variant: None,
    };
    events.extend([decided, asked, settled, begun]);
    for event in events {
        let event = journal.redact(event).unwrap();
        journal
            .append(&event, windlass_store::Durability::Synced)
            .await
            .unwrap();
    }
    let model = ScriptedModel::answers([finish("I do not know.")]);
    let driver = Driver::new(crew(model), Arc::new(kept.clone()));
    let resumed = driver.resume(run.id()).await.unwrap();
    assert_eq!(resumed.call(&id).unwrap().0.state(), CallState::Unknown);
    // A person has to give its outcome before the run continues.
    assert_eq!(resumed.end_or_waiting(), Some(RunEnd::WaitingForPerson));
    let text = NonEmptyText::new("It happened").unwrap();
    let answer = PersonDecision::Answer { text };
    kept.decide(&id, &who(), answer, now()).unwrap().unwrap();
    let resumed = driver.resume(run.id()).await.unwrap();
    assert_eq!(resumed.end(), Some(&RunEnd::Completed));
    let ends = kept.events(run.id()).into_iter().filter(|event| {
        matches!(
            event,
            Event::CallEnded {
                end: CallEnd::Unknown(_),
                ..
            }
        )
    });
    assert_eq!(ends.count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_stopped_after_a_step_resumes_where_it_stopped() {
    let directory = tempfile::tempdir().unwrap();
    let store = Arc::new(Store::open(directory.path().join("windlass.db")).unwrap());
    let stored = Stored::new(Arc::clone(&store), who());
    let stop = Stop::default();
    let after_step = stop.after_step.clone();
    let model = ScriptedModel::function(move |_| {
        after_step.cancel();
        Ok(call("sayHello", json!({"name": "Ada"})))
    });
    let driver = Driver::new(crew(model), Arc::new(stored.clone())).stopped_by(stop);
    let run = driver.start(new_task("Greet Ada.")).await.unwrap();
    assert_eq!(run.end(), None);
    // The model was asked, but its call was not made.
    assert_eq!(run.calls().next().unwrap().state(), CallState::Pending);
    let model = ScriptedModel::answers([finish("Hello, Ada! Nice to meet you.")]);
    let driver = Driver::new(crew(model), Arc::new(stored));
    let resumed = driver.resume(run.id()).await.unwrap();
    assert_eq!(resumed.end(), Some(&RunEnd::Completed));
    assert_eq!(resumed.calls().count(), 1);
    assert_eq!(resumed.calls().next().unwrap().state(), CallState::Success);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_stopped_at_once_ends_as_cancelled_and_keeps_its_journal() {
    let kept = InMemory::default();
    let stop = Stop::default();
    stop.at_once.cancel();
    let driver = Driver::new(crew(greeting()), Arc::new(kept.clone())).stopped_by(stop);
    let run = driver.start(new_task("Greet Ada.")).await.unwrap();
    assert_eq!(run.end(), Some(&RunEnd::Cancelled));
    assert_eq!(kept.events(run.id()).len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_without_an_answer_ends_the_run_as_failed() {
    let model = ScriptedModel::answers(std::iter::empty::<ModelAnswer>());
    let driver = Driver::new(crew(model), Arc::new(InMemory::default()));
    let run = driver.start(new_task("Greet Ada.")).await.unwrap();
    let end = run.end();
    assert!(matches!(end, Some(RunEnd::Failed { .. })), "{end:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_are_progress_then_the_answer_then_done() {
    let received = Arc::new(Mutex::new(Vec::new()));
    let listener = Arc::clone(&received);
    let driver = Driver::new(crew(greeting()), Arc::new(InMemory::default())).watched_by(Arc::new(
        move |_: &RunId, progress: Progress<'_>| {
            let frames = frames(progress, &Settings::default());
            listener.lock().unwrap().extend(frames);
        },
    ));
    driver.start(new_task("Greet Ada.")).await.unwrap();
    assert_eq!(
        *received.lock().unwrap(),
        [
            StreamFrame::progress("sayHello", 1, 10).unwrap(),
            StreamFrame::progress("finish", 2, 10).unwrap(),
            StreamFrame::content("Hello, Ada! Nice to meet you."),
            StreamFrame::Done,
        ]
    );
}
