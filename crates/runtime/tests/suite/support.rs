//! Shared helpers of the tests: agents, scripted models, tasks.

use std::sync::Arc;

use serde_json::json;
use windlass_core::approval::{Principal, TenantPrincipal};
use windlass_core::model::{ModelAnswer, RequestedArguments, RequestedCall};
use windlass_core::run::{Event, Settings, Task};
use windlass_model::{ModelClient, ScriptedModel};
use windlass_runtime::{Crew, CrewMember, NewTask, now};
use windlass_spec::{Agent, NonEmptyText, RunId};
use windlass_tools::{BindingMode, bind, hello};

const AGENT: &str = r#"
[greeter:Agent {instruction: "Greet people.", model: "OpenAI/gpt-4o-mini"} |
  [sayHello:Tool {description: "Returns a friendly greeting message for the given name"} | (name::Text)==>(::Text)]]
"#;

pub(crate) fn agent() -> Agent {
    windlass_spec::read(AGENT).file.unwrap().agents()[0].clone()
}

pub(crate) fn identity(name: &str) -> TenantPrincipal {
    let tenant = NonEmptyText::new("local").unwrap();
    TenantPrincipal::new(tenant, Principal::new(name).unwrap())
}

pub(crate) fn member(agent: Agent, model: Arc<dyn ModelClient>) -> CrewMember {
    CrewMember {
        tools: bind(&agent, &hello::hello(), BindingMode::Exact).unwrap(),
        agent,
        model,
    }
}

pub(crate) fn crew_with(model: Arc<dyn ModelClient>) -> Crew {
    Crew::new(member(agent(), model))
}

pub(crate) fn crew(model: ScriptedModel) -> Crew {
    crew_with(Arc::new(model))
}

pub(crate) fn call(tool: &str, arguments: serde_json::Value) -> ModelAnswer {
    ModelAnswer {
        calls: vec![RequestedCall {
            tool: tool.to_owned(),
            arguments: RequestedArguments::Json(arguments),
            confidence: Some(0.9),
        }],
        ..ModelAnswer::default()
    }
}

pub(crate) fn finish(answer: &str) -> ModelAnswer {
    call(
        "finish",
        json!({"answer": answer, "reasoning": "I greeted.", "confidence": 0.9}),
    )
}

pub(crate) fn greeting() -> ScriptedModel {
    ScriptedModel::answers([
        call("sayHello", json!({"name": "Ada"})),
        finish("Hello, Ada! Nice to meet you."),
    ])
}

pub(crate) fn new_task(description: &str) -> NewTask {
    NewTask {
        task: Task {
            description: description.to_owned(),
            ..Task::default()
        },
        ..NewTask::default()
    }
}

pub(crate) fn started() -> Event {
    Event::Started {
        run: RunId::new("r1").unwrap(),
        agent: Box::new(agent()),
        agents: Vec::new(),
        assembly: serde_json::Map::new(),
        parent: None,
        holds: None,
        task: new_task("Greet Ada.").task,
        settings: Settings::default(),
        at: now(),
    }
}
