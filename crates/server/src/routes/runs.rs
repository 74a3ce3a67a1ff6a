//! Runs: start, list, show, cancel and resume them.

use axum::http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_service::types::{Money, RunState, Settings, TaskInput, Timestamp};
use windlass_service::{NewRun, RunOptions, RunQuery, Scope};

use crate::call::{Call, Nothing, Reply};
use crate::page::{Page, limit};
use crate::problem::Problem;
use crate::route::Route;
use crate::shapes::{RunDetails, RunItem, RunStateName, Shape, run_details};
use crate::start::{Prepared, start};

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(
            (Method::POST, "/v1/runs"),
            ("start_run", "Start a run of an agent on a task"),
            Scope::Run,
            start_run,
        )
        .starting_run(),
        Route::new(
            (Method::GET, "/v1/runs"),
            ("list_runs", "List runs, the latest first"),
            Scope::Read,
            list,
        ),
        Route::new(
            (Method::GET, "/v1/runs/{run}"),
            ("show_run", "Show a run, with its answer if it has ended"),
            Scope::Read,
            show,
        ),
        Route::new(
            (Method::POST, "/v1/runs/{run}/cancel"),
            ("cancel_run", "Cancel a run and its sub-agents"),
            Scope::Run,
            cancel,
        ),
        Route::new(
            (Method::POST, "/v1/runs/{run}/resume"),
            ("resume_run", "Let the worker resume a run that was stopped"),
            Scope::Run,
            resume,
        ),
    ]
}

/// A run to start.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StartRun {
    /// The name of the agent.
    agent: String,
    /// The task.
    task: TaskInput,
    /// Limits of the run; the defaults of the server if absent.
    #[serde(default)]
    limits: Limits,
}

/// Limits of a run.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Limits {
    /// The most calls.
    #[schemars(range(min = 1))]
    max_calls: Option<u32>,
    /// The most tokens, of input and output.
    max_tokens: Option<u64>,
    /// The most seconds.
    max_seconds: Option<u64>,
    /// The most US dollars, as a decimal number such as `0.25`.
    max_dollars: Option<Dollars>,
}

/// An amount in US dollars.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Dollars(Money);

impl TryFrom<String> for Dollars {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse().map(Self).map_err(|error| format!("{error}"))
    }
}

impl JsonSchema for Dollars {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Dollars".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "pattern": "^[0-9]{1,9}(\\.[0-9]{1,6})?$"})
    }
}

impl Limits {
    pub(super) fn settings(&self) -> Settings {
        let usual = Settings::default();
        Settings {
            max_calls: self.max_calls.unwrap_or(usual.max_calls),
            max_tokens: self.max_tokens.or(usual.max_tokens),
            max_seconds: self.max_seconds.or(usual.max_seconds),
            max_microdollars: self.max_dollars.map(|dollars| dollars.0),
            ..usual
        }
    }

    pub(super) fn has_call_limit(&self) -> bool {
        self.max_calls.is_some()
    }
}

async fn start_run(call: Call<Nothing, StartRun>) -> Result<Reply<Shape<RunDetails>>, Problem> {
    let StartRun {
        agent,
        task,
        limits,
    } = &call.body;
    let new = NewRun::of_task(task, limits.settings());
    let (agent, tools) = (agent.clone(), task.available_tools.clone());
    let started = start(&call, move |service, identity| {
        let found = service.show_agent(identity, &agent)?;
        if let Some(tools) = tools {
            let names: Vec<String> = tools.iter().map(ToString::to_string).collect();
            found.declared.check_tools(&names)?;
        }
        let bound = service.bind(identity, &found.declared, &RunOptions::default())?;
        Ok(Prepared { bound, new })
    });
    started.await?.reply(&call).await
}

/// Which runs are listed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RunsQuery {
    /// At most this many items, 50 if absent.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<u32>,
    /// The `next` of the page before.
    after: Option<String>,
    /// Only those of the agent of this name.
    agent: Option<String>,
    /// Only those in this state.
    state: Option<RunStateName>,
    /// Only those of the task of this id.
    task_id: Option<String>,
    /// Only those of the principal of this name.
    principal: Option<String>,
    /// Only those that began at this time or later, in RFC 3339.
    since: Option<String>,
}

async fn list(call: Call<RunsQuery>) -> Result<Reply<Page<Shape<RunItem>>>, Problem> {
    let limit = limit(call.query.limit);
    let since = call
        .query
        .since
        .as_deref()
        .map(str::parse::<Timestamp>)
        .transpose();
    let since = since.map_err(|error| {
        Problem::new(400, "invalid_query", "The query is not valid").with_detail(error.to_string())
    })?;
    let query = RunQuery {
        limit: Some(limit + 1),
        after: call.query.after.clone(),
        agent: call.query.agent.clone(),
        state: call.query.state.as_ref().map(|state| match state {
            RunStateName::Open => RunState::Open,
            RunStateName::Waiting => RunState::Waiting,
            RunStateName::Ended => RunState::Ended,
        }),
        task_id: call.query.task_id.clone(),
        principal: call.query.principal.clone(),
        since,
    };
    let runs = call
        .operate(move |service, identity, _| service.list_runs(identity, &query))
        .await?;
    Ok(Reply::ok(Page::new(
        runs,
        limit as usize,
        |run| run.summary.run.to_string(),
        |run| Shape::of(run.to_json()),
    )))
}

async fn show(call: Call) -> Result<Reply<Shape<RunDetails>>, Problem> {
    let shown = call
        .operate(|service, identity, id| run_details(&service.show_run(identity, id)?))
        .await?;
    Ok(Reply::ok(shown))
}

/// A run that was cancelled.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct CancelledRun {
    /// Whether it has ended. Otherwise its process stops it when it reads its inbox.
    has_ended: bool,
    run: RunItem,
}

async fn cancel(call: Call) -> Result<Reply<Shape<CancelledRun>>, Problem> {
    let (app, identity, id) = (
        call.app.clone(),
        call.identity().clone(),
        call.part(0).to_owned(),
    );
    // A task of its own: a client that hangs up does not leave half of the runs.
    let cancelled = tokio::spawn(async move { app.service.cancel_run(&identity, &id).await });
    let cancelled = cancelled
        .await
        .map_err(|error| Problem::internal(&error))??;
    let id = cancelled.summary.run.to_string();
    let shown = call
        .operate(move |service, identity, _| {
            let status = service.show_run(identity, &id)?;
            let mut run = windlass_service::run_to_json(&status.summary);
            run["waits_for_program"] = serde_json::Value::Null;
            let has_ended = status.summary.state == RunState::Ended;
            Ok(Shape::of(
                serde_json::json!({"has_ended": has_ended, "run": run}),
            ))
        })
        .await?;
    Ok(Reply::ok(shown))
}

async fn resume(call: Call) -> Result<Reply<Shape<RunDetails>>, Problem> {
    let resumed = call
        .operate(|service, identity, id| {
            let run = service.leave_to_worker(identity, id)?;
            run_details(&service.show_run(identity, run.as_str())?)
        })
        .await?;
    Ok(Reply::ok(resumed))
}
