//! Tools: list, describe and call them; their executions.

use axum::http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use windlass_service::types::{CallId, RequestedArguments, ToolExecutionResult};
use windlass_service::{
    DeclaredTools, ExecutionQuery, Identity, Scope, Service, ServiceError, ToolCallRequest,
    ToolDetails, ToolQuery, execution_result,
};

use crate::call::{Call, Nothing, Reply};
use crate::page::{Page, limit};
use crate::problem::Problem;
use crate::route::Route;
use crate::shapes::{RunDetails, Shape, Time};
use crate::start::{Prepared, start};

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(
            (Method::GET, "/v1/tools"),
            ("list_tools", "List tools, or search them by what they do"),
            Scope::Read,
            list,
        ),
        Route::new(
            (Method::GET, "/v1/tools/{tool}"),
            ("describe_tool", "Describe a tool with its schemas"),
            Scope::Read,
            describe,
        ),
        Route::new(
            (Method::POST, "/v1/tools/{tool}/calls"),
            (
                "call_tool",
                "Call a tool: a run whose only call passes the same gate",
            ),
            Scope::Run,
            call_tool,
        )
        .starting_run(),
        Route::new(
            (Method::GET, "/v1/statistics/tools"),
            ("tool_statistics", "How the calls of each tool ended"),
            Scope::Read,
            statistics,
        ),
        Route::new(
            (Method::GET, "/v1/executions"),
            (
                "list_executions",
                "List ended executions of tools, the latest first",
            ),
            Scope::Read,
            executions,
        ),
        Route::new(
            (Method::GET, "/v1/executions/{call}"),
            ("show_execution", "Show the result of a call"),
            Scope::Read,
            show_execution,
        ),
    ]
}

/// A tool in a list. Searches give `score` instead of settings and statistics.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct ToolItem {
    /// Its name.
    name: String,
    /// The library that implements it.
    library: Option<String>,
    /// What it does.
    description: String,
    /// How well it fits a search.
    score: Option<f64>,
    /// What it takes and returns.
    signature: Option<String>,
    /// Its risk.
    risk: Option<String>,
    /// Its stage in the life cycle.
    state: Option<String>,
    /// Whether it is enabled.
    enabled: Option<bool>,
    /// How many calls succeeded.
    success_count: Option<u64>,
    /// How many calls failed.
    failure_count: Option<u64>,
}

/// Which tools are listed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ToolsQuery {
    /// At most this many items, 50 if absent.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<u32>,
    /// The `next` of the page before.
    after: Option<String>,
    /// Only those of this library. Without library and agent, those that ship with the server.
    library: Option<String>,
    /// The tools that this agent declares.
    agent: Option<String>,
    /// Only those that do something like this, the best first.
    search: Option<String>,
}

async fn list(call: Call<ToolsQuery>) -> Result<Reply<Page<Shape<ToolItem>>>, Problem> {
    let count = limit(call.query.limit) as usize;
    let (library, agent) = (call.query.library.clone(), call.query.agent.clone());
    let (search, after) = (call.query.search.clone(), call.query.after.clone());
    let skipped = match after.as_deref().map(str::parse::<usize>) {
        None => 0,
        Some(Ok(skipped)) => skipped,
        Some(Err(_)) => {
            return Err(Problem::new(400, "invalid_query", "The query is not valid")
                .with_detail("`after` is not the `next` of a page"));
        }
    };
    let tools = call
        .operate(move |service, identity, _| {
            let declared = match &agent {
                Some(agent) => Some(
                    service
                        .show_agent(identity, agent)?
                        .agent()
                        .tools()
                        .to_vec(),
                ),
                None => None,
            };
            let query = ToolQuery { library, declared };
            Ok::<Vec<Value>, ServiceError>(match search {
                Some(search) => {
                    let most = skipped.saturating_add(count + 1).min(1_000);
                    let found = service.find_tools(identity, &search, most, &query)?;
                    found
                        .iter()
                        .map(windlass_service::FoundTool::to_json)
                        .collect()
                }
                None => {
                    let listed = service.list_tools(identity, &query)?;
                    listed
                        .iter()
                        .map(windlass_service::ToolStatus::to_json)
                        .collect()
                }
            })
        })
        .await?;
    let page: Vec<(usize, Value)> = tools
        .into_iter()
        .enumerate()
        .skip(skipped)
        .take(count + 1)
        .collect();
    Ok(Reply::ok(Page::new(
        page,
        count,
        |(place, _)| (place + 1).to_string(),
        |(_, tool)| Shape::of(tool),
    )))
}

/// A tool with its schemas.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct ToolDescription {
    /// Its name.
    name: String,
    /// The library that implements it.
    library: String,
    /// What it does.
    description: String,
    /// What it takes and returns.
    signature: Option<String>,
    /// Why no signature can express it.
    inexpressible: Option<String>,
    /// The JSON Schema of its arguments.
    schema: Value,
    /// The JSON Schema of its result, if it is known.
    returns: Value,
    /// What it declares, such as `risk`.
    attributes: Option<Map<String, Value>>,
}

/// Where a tool is.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ToolPlace {
    /// The library that implements it; the built-in tools if absent.
    #[serde(default = "builtin")]
    library: String,
    /// The agent that declares it. Only declarations state risk and time limits.
    agent: Option<String>,
}

fn builtin() -> String {
    "builtin".to_owned()
}

impl ToolPlace {
    fn describe(
        &self,
        service: &Service,
        identity: &Identity,
        tool: &str,
    ) -> Result<ToolDetails, ServiceError> {
        let declared = match &self.agent {
            Some(name) => {
                let agent = service.show_agent(identity, name)?;
                Some(DeclaredTools {
                    tools: agent.agent().tools().to_vec(),
                    place: name.clone(),
                })
            }
            None => None,
        };
        service.describe_tool(identity, Some(&self.library), tool, declared.as_ref())
    }
}

async fn describe(call: Call<ToolPlace>) -> Result<Reply<Shape<ToolDescription>>, Problem> {
    let place = call.query.clone();
    let shown = call
        .operate(move |service, identity, tool| {
            Ok(Shape::of(
                place.describe(service, identity, tool)?.to_json(),
            ))
        })
        .await?;
    Ok(Reply::ok(shown))
}

/// A call of a tool.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ToolCall {
    /// The library that implements the tool; the built-in tools if absent.
    #[serde(default = "builtin")]
    library: String,
    /// The agent that declares the tool. Only declarations state risk and time limits.
    agent: Option<String>,
    /// The arguments.
    #[serde(default)]
    arguments: Map<String, Value>,
}

async fn call_tool(call: Call<Nothing, ToolCall>) -> Result<Reply<Shape<RunDetails>>, Problem> {
    let ToolCall {
        library,
        agent,
        arguments,
    } = call.body.clone();
    let (place, name) = (ToolPlace { library, agent }, call.part(0).to_owned());
    let started = start(&call, move |service, identity| {
        let request = ToolCallRequest {
            tool: place.describe(service, identity, &name)?,
            arguments: RequestedArguments::Json(Value::Object(arguments)),
            is_approved: false,
        };
        let (bound, new) = service.bind_tool_call(identity, request)?;
        Ok(Prepared { bound, new })
    });
    started.await?.reply(&call).await
}

/// How the calls of a tool ended.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct ToolStatisticsItem {
    /// The tool.
    tool: String,
    /// How many calls were executed.
    executions: u64,
    /// How many succeeded.
    success_count: u64,
    /// How many failed.
    failure_count: u64,
    /// How many of the failures timed out.
    timeout_count: u64,
    /// How many of the failures were cancelled.
    cancelled_count: u64,
    /// How many of the failures have an unknown outcome.
    unknown_count: u64,
    /// The median duration in milliseconds.
    median_ms: u64,
    /// The 95th percentile of the duration in milliseconds.
    p95_ms: u64,
    /// When the last one ended.
    last_at: Time,
    /// The category of the last error.
    last_error: Option<String>,
}

/// Which executions are counted.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StatisticsQuery {
    /// Only those of this tool.
    tool: Option<String>,
    /// Only those of the last hours.
    hours: Option<u32>,
}

async fn statistics(
    call: Call<StatisticsQuery>,
) -> Result<Reply<Page<Shape<ToolStatisticsItem>>>, Problem> {
    let query = ExecutionQuery {
        tool: call.query.tool.clone(),
        hours: call.query.hours,
        ..ExecutionQuery::default()
    };
    let counted = call
        .operate(move |service, identity, _| {
            let counted = service.tool_statistics(identity, &query)?;
            counted
                .iter()
                .map(Shape::from)
                .collect::<Result<Vec<_>, _>>()
        })
        .await?;
    Ok(Reply::ok(Page::whole(counted)))
}

/// Which executions are listed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ExecutionsQuery {
    /// At most this many items, 50 if absent.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<u32>,
    /// The `next` of the page before.
    after: Option<String>,
    /// Only those of this tool.
    tool: Option<String>,
    /// Only those of the last hours.
    hours: Option<u32>,
    /// Only those of this run.
    run: Option<String>,
}

async fn executions(
    call: Call<ExecutionsQuery>,
) -> Result<Reply<Page<ToolExecutionResult>>, Problem> {
    let count = limit(call.query.limit) as usize;
    let after = call
        .query
        .after
        .as_deref()
        .map(str::parse::<CallId>)
        .transpose();
    let query = ExecutionQuery {
        tool: call.query.tool.clone(),
        hours: call.query.hours,
        run: call.query.run.clone(),
        limit: Some(count + 1),
        after: after.map_err(|error| {
            Problem::new(400, "invalid_query", "The query is not valid")
                .with_detail(error.to_string())
        })?,
    };
    let listed = call
        .operate(move |service, identity, _| {
            let listed = service.tool_executions(identity, &query)?;
            let shown = listed
                .iter()
                .map(|one| Ok((one.call.to_string(), execution_result(one)?)));
            shown.collect::<Result<Vec<_>, ServiceError>>()
        })
        .await?;
    Ok(Reply::ok(Page::new(
        listed,
        count,
        |(call, _)| call.clone(),
        |(_, shown)| shown,
    )))
}

async fn show_execution(call: Call) -> Result<Reply<ToolExecutionResult>, Problem> {
    let id: CallId = call.part(0).parse().map_err(|_| {
        let detail = format!("no execution of the call `{}` has ended", call.part(0));
        Problem::new(404, "no_such_execution", "Not found").with_detail(detail)
    })?;
    let shown = call
        .operate(move |service, identity, _| {
            execution_result(&service.show_execution(identity, &id)?)
        })
        .await?;
    Ok(Reply::ok(shown))
}
