//! Policies: those of new runs, explanations of decisions, and what changed policies would decide.

use axum::http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use windlass_service::types::Policies;
use windlass_service::{ExplainedCall, PolicySource, Scope, ServiceError};

use crate::call::{Call, Nothing, Reply};
use crate::problem::Problem;
use crate::route::Route;
use crate::shapes::Shape;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(
            (Method::GET, "/v1/policies"),
            ("active_policies", "Show the policies of new runs"),
            Scope::Read,
            active,
        ),
        Route::new(
            (Method::POST, "/v1/policies/explain"),
            (
                "explain_policies",
                "Explain what would be decided about a call; nothing runs",
            ),
            Scope::Read,
            explain,
        ),
        Route::new(
            (Method::POST, "/v1/policies/replay"),
            (
                "replay_policies",
                "Compare changed policies with the present ones on recorded calls",
            ),
            Scope::Read,
            replay,
        ),
    ]
}

/// Policies.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct PolicyText {
    /// The name of the file, or `default policies`.
    name: String,
    /// The policies, in Cedar.
    text: String,
}

fn file_name(source: &PolicySource) -> String {
    let name = std::path::Path::new(&source.name).file_name();
    name.map_or(source.name.clone(), |name| {
        name.to_string_lossy().into_owned()
    })
}

async fn active(call: Call) -> Result<Reply<PolicyText>, Problem> {
    let source = call
        .operate(|service, identity, _| service.active_policies(identity))
        .await?;
    Ok(Reply::ok(PolicyText {
        name: file_name(&source),
        text: source.text,
    }))
}

/// A call to explain.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CallToExplain {
    /// The agent that declares the tool.
    agent: String,
    /// The tool.
    tool: String,
    /// Its arguments.
    #[serde(default)]
    arguments: Map<String, Value>,
    /// How confident the model is.
    #[schemars(range(min = 0.0, max = 1.0))]
    confidence: Option<f64>,
    /// Whether untrusted content may have led to the call.
    #[serde(default)]
    tainted: bool,
}

/// What would be decided about a call, and why.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct CallExplanation {
    /// The name of the policies.
    policies: String,
    /// How the risk was assessed.
    risk: Map<String, Value>,
    /// The decision and the rules that led to it.
    explanation: Map<String, Value>,
    /// The request to the policies.
    request: Map<String, Value>,
}

fn loaded(
    loaded: Result<Policies, Vec<windlass_service::types::PolicyError>>,
) -> Result<Policies, ServiceError> {
    loaded.map_err(|errors| {
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        ServiceError::invalid("invalid_policies", errors.join("; "))
    })
}

async fn explain(
    call: Call<Nothing, CallToExplain>,
) -> Result<Reply<Shape<CallExplanation>>, Problem> {
    let asked = call.body.clone();
    let explained = call
        .operate(move |service, identity, _| {
            let agent = service.show_agent(identity, &asked.agent)?;
            let file = agent.declared.file();
            let source = service.active_policies(identity)?;
            let policies = loaded(service.load_policies(identity, &source, file.tools())?)?;
            let explained = ExplainedCall {
                file,
                place: &asked.agent,
                tool: &asked.tool,
                arguments: &Value::Object(asked.arguments.clone()).to_string(),
                confidence: asked.confidence,
                environment: None,
                is_tainted: asked.tainted,
            };
            let explained = service.explain_call(identity, policies, &explained)?;
            Ok(Shape::of(json!({
                "policies": file_name(&source), "risk": explained.assessment,
                "explanation": explained.explanation, "request": explained.request,
            })))
        })
        .await?;
    Ok(Reply::ok(explained))
}

/// Policies to compare with the present ones.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ChangedPolicies {
    /// The changed policies, in Cedar.
    policies: String,
}

/// A recorded call that changed policies would decide differently.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct ReplayedCall {
    /// The call.
    call: String,
    /// The tool.
    tool: String,
    /// The arguments.
    input: Map<String, Value>,
    /// What the present policies decide.
    before: Map<String, Value>,
    /// What the changed policies would decide.
    after: Map<String, Value>,
    /// Whether that would be less strict.
    weaker: bool,
}

/// What changed policies would decide differently.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Replay {
    /// How many recorded calls were compared.
    compared: u64,
    /// How many were left out because their tools are not declared any more.
    left_out: u64,
    /// The calls that would be decided differently.
    differences: Vec<ReplayedCall>,
}

async fn replay(call: Call<Nothing, ChangedPolicies>) -> Result<Reply<Shape<Replay>>, Problem> {
    let changed = PolicySource {
        name: "the body".to_owned(),
        text: call.body.policies.clone(),
    };
    let replayed = call
        .operate(move |service, identity, _| {
            let recorded = service.recorded_calls(identity)?;
            let tools: Vec<_> = recorded.tools.values().cloned().collect();
            let source = service.active_policies(identity)?;
            let old = loaded(service.load_policies(identity, &source, &tools)?)?;
            let new = loaded(service.load_policies(identity, &changed, &tools)?)?;
            let replay =
                service.replay_policies(identity, (&old, true), &new, &recorded, &tools)?;
            let differences = replay.differences.iter().map(|one| {
                let difference = &one.difference;
                json!({
                    "call": one.call, "tool": difference.tool, "input": one.request.input,
                    "before": difference.before, "after": difference.after,
                    "weaker": difference.is_weaker(),
                })
            });
            Ok(Shape::of(json!({
                "compared": replay.compared, "left_out": replay.left_out,
                "differences": differences.collect::<Vec<_>>(),
            })))
        })
        .await?;
    Ok(Reply::ok(replayed))
}
