//! Sub-agents: the work of a sub-agent is its own run with its own journal, and is found again.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use windlass_core::model::{ModelAnswer, Usage};
use windlass_core::run::{Event, Run, RunEnd};
use windlass_core::stop::{StopOrder, StopTarget};
use windlass_model::ScriptedModel;
use windlass_runtime::{
    Crew, Driver, Durable as _, InMemory, Progress, STOPS_AGE, Stop, Stored, now,
};
use windlass_spec::{AgentFile, AgentName, CallRecord, CallState, ErrorCategory, Money, RunId};
use windlass_store::Store;

use super::support::{call, finish, greeting, identity, member, new_task};

const FILE: &str = r#"
[host:Agent {description: "Runs the reception", instruction: "Welcome guests.", model: "OpenAI/gpt-4o-mini"} |
  [greeter:Agent {description: "Greets one guest by name", instruction: "Greet people.", model: "OpenAI/gpt-4o-mini"} |
    [sayHello:Tool {description: "Returns a friendly greeting message for the given name"} | (name::Text)==>(::Text)]]]
"#;

fn file() -> AgentFile {
    windlass_spec::read(FILE).file.unwrap()
}

fn crew(host: ScriptedModel, greeter: ScriptedModel) -> Crew {
    let file = file();
    let of = |name: &str| file.agent(name).unwrap().clone();
    Crew::new(member(of("host"), Arc::new(host))).with(member(of("greeter"), Arc::new(greeter)))
}

fn host() -> ScriptedModel {
    ScriptedModel::answers([
        call("greeter", json!({"task": "Greet Ada."})),
        finish("Ada was greeted."),
    ])
}

#[tokio::test(flavor = "multi_thread")]
async fn the_work_of_a_sub_agent_is_a_run_with_a_parent() {
    let kept = InMemory::default();
    let costly = ModelAnswer {
        usage: Usage {
            input_tokens: 7,
            output_tokens: 3,
            microdollars: Some(Money::from_microdollars(2)),
            ..Usage::default()
        },
        ..finish("Hello, Ada! Nice to meet you.")
    };
    let greeter = ScriptedModel::answers([call("sayHello", json!({"name": "Ada"})), costly]);
    let driver = Driver::new(crew(host(), greeter), Arc::new(kept.clone()));
    let run = driver.start(new_task("Welcome Ada.")).await.unwrap();
    assert_eq!(run.end(), Some(&RunEnd::Completed));
    let delegated = run.calls().next().unwrap();
    assert_eq!(
        delegated.outcome(),
        Some(Ok(&json!("Hello, Ada! Nice to meet you.")))
    );
    let child = RunId::new(format!("{}.1.0", run.id())).unwrap();
    let child = Run::fold(&kept.events(&child)).unwrap();
    assert_eq!(child.parent(), Some(delegated.id()));
    assert_eq!(child.agent().name().as_str(), "greeter");
    assert_eq!(child.task().description, "Greet Ada.");
    assert_eq!(child.calls().count(), 1);
    // The usage of the child counts against the parent's budget.
    assert_eq!(run.usage().input_tokens, 7);
    assert_eq!(run.usage().microdollars, Some(Money::from_microdollars(2)));
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_of_a_sub_agent_count_against_its_parent_run() {
    let greet = |name: &str| call("sayHello", json!({ "name": name }));
    let greeter = ScriptedModel::answers([greet("Ada"), greet("Bob"), finish("Hello!")]);
    let host = ScriptedModel::answers([
        call("greeter", json!({"task": "Greet Ada and Bob."})),
        call("greeter", json!({"task": "Greet Eve."})),
        finish("They were greeted."),
    ]);
    let kept = InMemory::default();
    let driver = Driver::new(crew(host, greeter), Arc::new(kept.clone()));
    let mut task = new_task("Welcome them.");
    task.settings.max_calls = 2;
    let run = driver.start(task).await.unwrap();
    let child = RunId::new(format!("{}.1.0", run.id())).unwrap();
    let child = Run::fold(&kept.events(&child)).unwrap();
    let states: Vec<_> = child.calls().map(CallRecord::state).collect();
    assert_eq!(states, [CallState::Success, CallState::Error]);
    let refused = run.calls().nth(1).unwrap().outcome().unwrap().unwrap_err();
    assert_eq!(refused.category, ErrorCategory::BudgetExceeded);
    assert_eq!(run.calls_used(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_run_that_ended_before_a_crash_is_not_repeated() {
    let kept = InMemory::default();
    let driver = Driver::new(crew(host(), greeting()), Arc::new(kept.clone()));
    let run = driver.start(new_task("Welcome Ada.")).await.unwrap();
    // As after a crash between the child's end and the parent's record of it: the same events up to
    // the start of the call, and the complete journal of the child.
    let again = InMemory::default();
    for id in kept.runs() {
        let mut events = kept.events(&id);
        if id == *run.id() {
            let started = |event: &Event| matches!(event, Event::CallStarted { .. });
            let place = events.iter().position(started).unwrap();
            events.truncate(place + 1);
        }
        let mut events = events.into_iter();
        let (_, mut journal) = again.start(None, events.next().unwrap()).await.unwrap();
        for event in events {
            let event = journal.redact(event).unwrap();
            let kept = journal.append(&event, windlass_store::Durability::Synced);
            kept.await.unwrap();
        }
        if id != *run.id() {
            journal.end(&RunEnd::Completed).await.unwrap();
        }
    }
    let nothing = ScriptedModel::answers(std::iter::empty::<ModelAnswer>());
    let host = ScriptedModel::answers([finish("Ada was greeted.")]);
    let driver = Driver::new(crew(host, nothing), Arc::new(again));
    let resumed = driver.resume(run.id()).await.unwrap();
    assert_eq!(resumed.end(), Some(&RunEnd::Completed));
    assert_eq!(
        resumed.calls().next().unwrap().outcome(),
        run.calls().next().unwrap().outcome()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_failure_of_a_child_run_is_reported_to_its_parent() {
    let nothing = ScriptedModel::answers(std::iter::empty::<ModelAnswer>());
    let driver = Driver::new(crew(host(), nothing), Arc::new(InMemory::default()));
    let run = driver.start(new_task("Welcome Ada.")).await.unwrap();
    assert_eq!(run.end(), Some(&RunEnd::Completed));
    let delegated = run.calls().next().unwrap();
    assert_eq!(delegated.state(), CallState::Error);
    let failure = delegated.outcome().unwrap().unwrap_err();
    assert!(
        failure.model_message.contains("the sub-agent failed"),
        "{failure:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_a_run_at_once_cancels_its_child_runs() {
    let stop = Stop::default();
    let at_once = stop.at_once.clone();
    let greeter = ScriptedModel::function(move |_| {
        at_once.cancel();
        Ok(call("sayHello", json!({"name": "Ada"})))
    });
    let kept = InMemory::default();
    let driver = Driver::new(crew(host(), greeter), Arc::new(kept.clone())).stopped_by(stop);
    let run = driver.start(new_task("Welcome Ada.")).await.unwrap();
    assert_eq!(run.end(), Some(&RunEnd::Cancelled));
    for id in kept.runs() {
        let run = Run::fold(&kept.events(&id)).unwrap();
        assert_eq!(run.end(), Some(&RunEnd::Cancelled), "{id}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_run_stopped_after_a_step_resumes_with_its_parent() {
    let stop = Stop::default();
    let after_step = stop.after_step.clone();
    let greeter = ScriptedModel::function(move |_| {
        after_step.cancel();
        Ok(call("sayHello", json!({"name": "Ada"})))
    });
    let kept = InMemory::default();
    let driver = Driver::new(crew(host(), greeter), Arc::new(kept.clone())).stopped_by(stop);
    let run = driver.start(new_task("Welcome Ada.")).await.unwrap();
    assert_eq!(run.end(), None);
    assert_eq!(run.calls().next().unwrap().state(), CallState::Running);
    let host = ScriptedModel::answers([finish("Ada was greeted.")]);
    let greeter = ScriptedModel::answers([finish("Hello, Ada! Nice to meet you.")]);
    let driver = Driver::new(crew(host, greeter), Arc::new(kept.clone()));
    let resumed = driver.resume(run.id()).await.unwrap();
    assert_eq!(resumed.end(), Some(&RunEnd::Completed));
    assert_eq!(kept.runs().len(), 2);
}

#[test]
fn a_sub_agent_is_offered_to_the_model_as_a_tool_that_takes_a_task() {
    let file = file();
    let started = Event::Started {
        run: RunId::new("r1").unwrap(),
        agent: Box::new(file.agent("host").unwrap().clone()),
        agents: vec![file.agent("greeter").unwrap().clone()],
        assembly: serde_json::Map::new(),
        parent: None,
        holds: None,
        task: new_task("Welcome Ada.").task,
        settings: windlass_core::run::Settings::default(),
        at: now(),
    };
    let run = Run::fold([&started]).unwrap();
    let tools = run.tools();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name().as_str()).collect();
    assert_eq!(names, ["greeter", "ask_human", "request_authorization"]);
    assert_eq!(tools[0].description(), "Greets one guest by name");
    assert_eq!(tools[0].schema()["required"], json!(["task"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_of_an_agent_stops_the_sub_agents_that_work_for_it() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path().join("windlass.db")).unwrap();
    let store = Arc::new(store);
    let order = || StopOrder {
        tenant: Some(identity("ann").tenant),
        target: StopTarget::Agent(AgentName::new("host").unwrap()),
        by: identity("bea").principal,
        at: now(),
        reason: None,
    };
    let tenant = identity("bea").tenant;
    let (stopping, recorded) = (Arc::clone(&store), tenant.clone());
    let watch = Arc::new(move |_: &RunId, progress: Progress<'_>| {
        if let Progress::Event(Event::Started {
            parent: Some(_), ..
        }) = progress
        {
            stopping.stop(&recorded, order()).unwrap();
            std::thread::sleep(STOPS_AGE + Duration::from_millis(50));
        }
    });
    let stored = Arc::new(Stored::new(Arc::clone(&store), identity("ann")));
    let driver = Driver::new(crew(host(), greeting()), Arc::<Stored>::clone(&stored));
    let driver = driver.watched_by(watch);
    let run = driver.start(new_task("Welcome Ada.")).await.unwrap();
    assert!(run.stopped().is_some() && run.end_or_waiting().is_none());
    let child = RunId::new(format!("{}.1.0", run.id())).unwrap();
    assert_eq!(
        store.fold(&child).unwrap().turns().len(),
        0,
        "no model was asked"
    );
    let resumable = store.resumable(now()).unwrap();
    assert!(resumable.iter().any(|found| found.run == *run.id()));
    store.start_again(&tenant, order()).unwrap();
    tokio::time::sleep(STOPS_AGE).await;
    let host = ScriptedModel::answers([finish("Ada was greeted.")]);
    let driver = Driver::new(crew(host, greeting()), stored);
    let resumed = driver.resume(run.id()).await.unwrap();
    assert_eq!(resumed.end(), Some(&RunEnd::Completed));
    assert_eq!(store.fold(&child).unwrap().calls().count(), 1);
}
