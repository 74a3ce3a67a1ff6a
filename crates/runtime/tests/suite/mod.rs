//! Whole runs: a scripted model, real tools, a journal in memory or on disk.

use std::sync::Arc;

use serde_json::json;
use windlass_core::model::{ModelAnswer, RequestedArguments, RequestedCall};
use windlass_core::run::{CallEnd, Event, Run, RunEnd, Settings, Task};
use windlass_model::ScriptedModel;
use windlass_runtime::{Driver, Journal, MemoryJournal, Progress, Stop, StoredJournal, now};
use windlass_spec::{Agent, CallState, RunId};
use windlass_store::{Durability, NewRun, Store};
use windlass_tools::{BindingMode, BoundTools, bind, hello};

const AGENT: &str = r#"
[greeter:Agent {instruction: "Greet people.", model: "OpenAI/gpt-4o-mini"} |
  [sayHello:Tool {description: "Returns a friendly greeting message for the given name"} | (name::Text)==>(::Text)]]
"#;

fn agent() -> Agent {
    windlass_spec::read(AGENT).file.unwrap().agents()[0].clone()
}

fn tools() -> BoundTools {
    bind(&agent(), &hello::hello(), BindingMode::Exact).unwrap()
}

fn call(tool: &str, arguments: serde_json::Value) -> ModelAnswer {
    ModelAnswer {
        calls: vec![RequestedCall {
            tool: tool.to_owned(),
            arguments: RequestedArguments::Json(arguments),
            confidence: Some(0.9),
        }],
        ..ModelAnswer::default()
    }
}

fn finish(answer: &str) -> ModelAnswer {
    call(
        "finish",
        json!({"answer": answer, "reasoning": "I greeted.", "confidence": 0.9}),
    )
}

fn greeting() -> ScriptedModel {
    ScriptedModel::answers([
        call("sayHello", json!({"name": "Ada"})),
        finish("Hello, Ada! Nice to meet you."),
    ])
}

fn started(settings: Settings) -> Event {
    Event::Started {
        run: RunId::new("r1").unwrap(),
        agent: Box::new(agent()),
        task: Task {
            description: "Greet Ada.".to_owned(),
            ..Task::default()
        },
        settings,
        at: now(),
    }
}

async fn drive(
    model: ScriptedModel,
    journal: &mut dyn Journal,
    run: &mut Run,
    stop: Stop,
) -> usize {
    let tools = tools();
    let mut seen = 0;
    let mut watch =
        |progress: Progress<'_>| seen += usize::from(matches!(progress, Progress::Event(_)));
    let mut driver = Driver {
        model: Arc::new(model),
        tools: &tools,
        journal,
        stop,
        watch: &mut watch,
    };
    driver.drive(run).await.unwrap();
    seen
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_calls_its_tool_and_answers() {
    let first = started(Settings::default());
    let mut run = Run::fold([&first]).unwrap();
    let mut journal = MemoryJournal {
        events: vec![first],
    };
    let seen = drive(greeting(), &mut journal, &mut run, Stop::default()).await;
    assert_eq!(run.end(), Some(&RunEnd::Completed));
    let response = run.response();
    assert_eq!(response.answer.as_str(), "Hello, Ada! Nice to meet you.");
    assert_eq!(
        response.tool_calls[0].result(),
        Some(&json!("Hello, Ada! Nice to meet you."))
    );
    assert_eq!(journal.events.len(), seen + 1);
    let replayed = Run::fold(&journal.events).unwrap();
    assert_eq!(replayed.response(), response);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stored_run_reads_back_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path().join("windlass.db")).unwrap();
    let first = started(Settings::default());
    let mut run = Run::fold([&first]).unwrap();
    let journal = store
        .start(
            NewRun {
                tenant: "local".to_owned(),
                principal: "tester".to_owned(),
                task_id: None,
            },
            &first,
            Durability::Synced,
        )
        .unwrap();
    drive(
        greeting(),
        &mut StoredJournal::new(journal),
        &mut run,
        Stop::default(),
    )
    .await;
    let read = store.fold(run.id()).unwrap();
    assert_eq!(read.response(), run.response());
    assert_eq!(read.turns(), run.turns());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_under_way_when_the_process_died_is_not_made_again() {
    // The tool declares no risk, so it counts as irreversible: its effect is unknown.
    let first = started(Settings::default());
    let mut run = Run::fold([&first]).unwrap();
    let mut events = vec![first];
    let mut happen = |run: &mut Run, event: Event| {
        run.apply(&event).unwrap();
        events.push(event);
    };
    let turn = run.current_turn();
    happen(
        &mut run,
        Event::ModelAnswered {
            turn,
            answer: call("sayHello", json!({"name": "Ada"})),
            at: now(),
        },
    );
    let id = run.calls().next().unwrap().id().clone();
    let decision = run.decide(&id, &|_| true).unwrap();
    happen(
        &mut run,
        Event::Decided {
            call: id.clone(),
            decision,
            at: now(),
        },
    );
    happen(
        &mut run,
        Event::CallStarted {
            call: id.clone(),
            at: now(),
        },
    );
    let mut resumed = Run::fold(&events).unwrap();
    let mut journal = MemoryJournal { events };
    drive(
        ScriptedModel::answers([finish("I do not know.")]),
        &mut journal,
        &mut resumed,
        Stop::default(),
    )
    .await;
    assert_eq!(resumed.call(&id).unwrap().0.state(), CallState::Unknown);
    assert_eq!(resumed.end(), Some(&RunEnd::Completed));
    let ends = journal.events.iter().filter(|event| {
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
async fn a_run_that_is_stopped_ends_as_cancelled_and_keeps_its_journal() {
    let first = started(Settings::default());
    let mut run = Run::fold([&first]).unwrap();
    let mut journal = MemoryJournal {
        events: vec![first],
    };
    let stop = Stop::default();
    stop.after_step.cancel();
    drive(greeting(), &mut journal, &mut run, stop).await;
    assert_eq!(run.end(), Some(&RunEnd::Cancelled));
    assert_eq!(journal.events.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_has_nothing_to_say_ends_the_run_as_failed() {
    let first = started(Settings::default());
    let mut run = Run::fold([&first]).unwrap();
    let mut journal = MemoryJournal {
        events: vec![first],
    };
    let model = ScriptedModel::answers(std::iter::empty::<ModelAnswer>());
    drive(model, &mut journal, &mut run, Stop::default()).await;
    assert!(
        matches!(run.end(), Some(RunEnd::Failed { .. })),
        "{:?}",
        run.end()
    );
}
