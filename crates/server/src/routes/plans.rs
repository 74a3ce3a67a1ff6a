//! Execution plans: tasks with dependencies, carried out by a run.

use axum::http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use windlass_service::types::{CallId, PlanTaskStatus};
use windlass_service::{
    NewRun, PlanChange, RunOptions, Scope, plan_to_json, read_plan, stored_plan_to_json,
};

use crate::call::{Call, Nothing, Reply};
use crate::page::{Page, PageQuery, limit};
use crate::problem::Problem;
use crate::route::Route;
use crate::routes::runs::Limits;
use crate::shapes::{RunDetails, RunStateName, Shape, Time};
use crate::start::{Prepared, start};

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(
            (Method::POST, "/v1/plans"),
            ("start_plan", "Carry out a plan"),
            Scope::Run,
            start_plan,
        )
        .starting_run(),
        Route::new(
            (Method::GET, "/v1/plans"),
            ("list_plans", "List plans, the latest first"),
            Scope::Read,
            list,
        ),
        Route::new(
            (Method::GET, "/v1/plans/{plan}"),
            ("show_plan", "Show a plan with the states of its tasks"),
            Scope::Read,
            show,
        ),
        Route::new(
            (Method::PUT, "/v1/plans/{plan}"),
            ("edit_plan", "Replace the tasks of a plan that are not done"),
            Scope::Operate,
            edit,
        ),
        Route::new(
            (Method::POST, "/v1/plans/{plan}/tasks/{task}/mark"),
            (
                "mark_plan_task",
                "Mark a task of a plan, such as one that people do",
            ),
            Scope::Operate,
            mark,
        ),
    ]
}

/// A plan in a list.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct PlanItem {
    /// Its id: the call that made it.
    plan: String,
    /// The run that carries it out.
    run: String,
    /// Its goal.
    goal: Option<String>,
    /// How many tasks it had when it was made.
    tasks: u32,
    /// When it was made.
    made_at: Time,
    /// Where its run is.
    run_state: RunStateName,
}

/// A task of a plan.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct PlanTaskItem {
    /// Its id.
    id: String,
    /// What to do.
    description: Option<String>,
    /// Where it is.
    status: PlanStatusName,
    /// The tasks that come before.
    depends_on: Vec<String>,
    /// How often it was tried.
    attempts: u32,
    /// When it began.
    started_at: Option<Time>,
    /// When it ended.
    ended_at: Option<Time>,
}

/// Where a task or a plan is.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum PlanStatusName {
    Pending,
    InProgress,
    Success,
    Error,
    Skipped,
    Cancelled,
}

/// A plan.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct PlanDetailsItem {
    /// Its id.
    plan_id: String,
    /// Its goal.
    goal: Option<String>,
    /// Where it is.
    status: PlanStatusName,
    /// `parallel` or `sequential`.
    execution_mode: String,
    /// When it was made.
    made_at: Time,
    /// Its tasks.
    tasks: Vec<PlanTaskItem>,
}

/// A plan to carry out.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StartPlan {
    /// The name of the agent that carries it out.
    agent: String,
    /// The plan: `tasks` with `id`, `tool` or `agent`, and `depends_on`. `docs/plans.md` describes it.
    plan: Map<String, Value>,
    /// Limits of the run.
    #[serde(default)]
    limits: Limits,
}

async fn start_plan(call: Call<Nothing, StartPlan>) -> Result<Reply<Shape<RunDetails>>, Problem> {
    let (agent, text) = (call.body.agent.clone(), json!(call.body.plan).to_string());
    let settings = call.body.limits.settings();
    let has_call_limit = call.body.limits.has_call_limit();
    let started = start(&call, move |service, identity| {
        let plan = read_plan(&text, "the plan")?;
        let found = service.show_agent(identity, &agent)?;
        let bound = service.bind(identity, &found.declared, &RunOptions::default())?;
        bound.check_plan(&plan)?;
        let new = NewRun::of_plan(&plan, settings, has_call_limit)?;
        Ok(Prepared { bound, new })
    });
    started.await?.reply(&call).await
}

async fn list(call: Call<PageQuery>) -> Result<Reply<Page<Shape<PlanItem>>>, Problem> {
    let count = limit(call.query.limit);
    let after = call
        .query
        .after
        .as_deref()
        .map(str::parse::<CallId>)
        .transpose();
    let after = after.map_err(|error| {
        Problem::new(400, "invalid_query", "The query is not valid").with_detail(error.to_string())
    })?;
    let listed = call
        .operate(move |service, identity, _| {
            service.list_plans(identity, count + 1, after.as_ref())
        })
        .await?;
    Ok(Reply::ok(Page::new(
        listed,
        count as usize,
        |plan| plan.plan.to_string(),
        |plan| Shape::of(stored_plan_to_json(&plan)),
    )))
}

async fn show(call: Call) -> Result<Reply<Shape<PlanDetailsItem>>, Problem> {
    let shown = call
        .operate(|service, identity, id| {
            let details = service.show_plan(identity, id)?;
            Ok(Shape::of(details.state().map_or(Value::Null, plan_to_json)))
        })
        .await?;
    Ok(Reply::ok(shown))
}

/// Whether a change of a plan took effect.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct PlanChanged {
    /// Whether it took effect. Otherwise the process that carries out the plan has not taken it yet.
    is_made: bool,
}

fn changed(change: PlanChange) -> PlanChanged {
    PlanChanged {
        is_made: change == PlanChange::Made,
    }
}

async fn edit(call: Call<Nothing, Map<String, Value>>) -> Result<Reply<PlanChanged>, Problem> {
    let text = json!(call.body).to_string();
    let change = call
        .operate(move |service, identity, id| {
            let plan = read_plan(&text, "the plan")?;
            let details = service.show_plan(identity, id)?;
            service.edit_plan(identity, &details, &plan)
        })
        .await?;
    Ok(Reply::ok(changed(change)))
}

/// How a task is marked.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TaskMark {
    /// Where it is.
    status: PlanStatusName,
    /// Its result.
    result: Option<Value>,
}

async fn mark(call: Call<Nothing, TaskMark>) -> Result<Reply<PlanChanged>, Problem> {
    let (mark, task) = (call.body.clone(), call.part(1).to_owned());
    let change = call
        .operate(move |service, identity, id| {
            let details = service.show_plan(identity, id)?;
            let status = match mark.status {
                PlanStatusName::Pending => PlanTaskStatus::Pending,
                PlanStatusName::InProgress => PlanTaskStatus::InProgress,
                PlanStatusName::Success => PlanTaskStatus::Success,
                PlanStatusName::Error => PlanTaskStatus::Error,
                PlanStatusName::Skipped => PlanTaskStatus::Skipped,
                PlanStatusName::Cancelled => PlanTaskStatus::Cancelled,
            };
            service.mark_plan_task(identity, &details, &task, status, mark.result)
        })
        .await?;
    Ok(Reply::ok(changed(change)))
}
