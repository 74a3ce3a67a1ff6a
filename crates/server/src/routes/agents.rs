//! Agents of the project.

use axum::http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use windlass_service::types::{Agent, ToolSpecification};
use windlass_service::{ProjectAgent, Scope};

use crate::call::{Call, Reply};
use crate::page::Page;
use crate::problem::Problem;
use crate::route::Route;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(
            (Method::GET, "/v1/agents"),
            ("list_agents", "List the agents"),
            Scope::Read,
            list,
        ),
        Route::new(
            (Method::GET, "/v1/agents/{agent}"),
            ("show_agent", "Show an agent with the schemas of its tools"),
            Scope::Read,
            show,
        ),
    ]
}

/// An agent in a list.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct AgentItem {
    /// Its name, by which runs are started.
    name: String,
    /// What it does.
    description: Option<String>,
    /// The name of the file that declares it.
    file: String,
    /// The names of its tools.
    tools: Vec<String>,
    /// The names of the agents that it may delegate to.
    agents: Vec<String>,
}

/// An agent.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct AgentDetails {
    #[serde(flatten)]
    agent: AgentItem,
    /// The declared model.
    model: String,
    /// Its instruction.
    instruction: String,
    /// Its tools with their schemas.
    specifications: Vec<ToolDeclaration>,
}

/// A tool as an agent declares it.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct ToolDeclaration {
    /// Its name.
    name: String,
    /// What it does.
    description: String,
    /// What it takes and returns.
    signature: String,
    /// The declared risk.
    risk: Option<String>,
    /// The JSON Schema of its arguments.
    arguments: Map<String, Value>,
    /// The JSON Schema of its result.
    returns: Value,
}

impl AgentItem {
    fn of(found: &ProjectAgent) -> Self {
        let agent: &Agent = found.agent();
        let file = found.file.file_name().unwrap_or_default();
        Self {
            name: agent.name().to_string(),
            description: agent.description().map(ToString::to_string),
            file: file.to_string_lossy().into_owned(),
            tools: agent
                .tools()
                .iter()
                .map(|tool| tool.name().to_string())
                .collect(),
            agents: agent.agents().iter().map(ToString::to_string).collect(),
        }
    }
}

impl ToolDeclaration {
    fn of(tool: &ToolSpecification) -> Self {
        Self {
            name: tool.name().to_string(),
            description: tool.description().to_string(),
            signature: tool.signature().to_string(),
            risk: tool.attributes().risk.map(|risk| risk.to_string()),
            arguments: tool.schema().as_object().cloned().unwrap_or_default(),
            returns: tool.returns_schema(),
        }
    }
}

async fn list(call: Call) -> Result<Reply<Page<AgentItem>>, Problem> {
    let found = call
        .operate(|service, identity, _| service.list_agents(identity))
        .await?;
    Ok(Reply::ok(Page::whole(
        found.agents.iter().map(AgentItem::of).collect(),
    )))
}

async fn show(call: Call) -> Result<Reply<AgentDetails>, Problem> {
    let found = call.operate(windlass_service::Service::show_agent).await?;
    let agent = found.agent();
    Ok(Reply::ok(AgentDetails {
        agent: AgentItem::of(&found),
        model: agent.model().to_string(),
        instruction: agent.instruction().to_string(),
        specifications: agent
            .tools()
            .iter()
            .map(|tool| ToolDeclaration::of(tool))
            .collect(),
    }))
}
