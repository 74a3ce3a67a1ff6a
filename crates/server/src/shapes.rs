//! The objects of the API that are no public models of `windlass-spec`: what is promised of them. They are made by the
//! service ([`windlass_service::RunStatus::to_json`] and others); these types describe them.

use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value, json};
use windlass_service::types::{AgentResponse, NonEmptyText, Run, TaskOutput};
use windlass_service::{RunStatus, ServiceError};

/// A JSON value that is described by `T`.
pub(crate) struct Shape<T>(pub(crate) Value, PhantomData<fn() -> T>);

impl<T> Shape<T> {
    pub(crate) fn of(value: Value) -> Self {
        Self(value, PhantomData)
    }

    /// The JSON of a value.
    pub(crate) fn from<V: Serialize>(value: &V) -> Result<Self, ServiceError> {
        Ok(Self::of(serde_json::to_value(value)?))
    }
}

impl<T> Serialize for Shape<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<T: JsonSchema> JsonSchema for Shape<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> std::borrow::Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

/// A time in RFC 3339.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Time(pub(crate) String);

impl JsonSchema for Time {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Time".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({"type": "string", "format": "date-time"})
    }
}

/// Where a run is.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RunStateName {
    /// It is under way.
    Open,
    /// It waits for a person.
    Waiting,
    /// It has ended.
    Ended,
}

/// How a run ended, or why it waits.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "end", rename_all = "snake_case")]
pub(crate) enum RunEndName {
    /// The task is done.
    Completed,
    /// All turns are used up.
    IterationLimit,
    /// A budget is used up.
    Budget {
        /// Which one.
        budget: String,
        /// Whose budget it is, if it is not only that of this run.
        message: Option<String>,
    },
    /// It was cancelled.
    Cancelled,
    /// It waits for a person.
    WaitingForPerson,
    /// It waits for the program that makes its call.
    WaitingForCaller {
        /// Until when.
        until: Time,
    },
    /// It failed.
    Failed {
        /// The category of the error.
        category: String,
        /// What happened.
        message: String,
    },
}

/// A run in a list.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct RunItem {
    /// Its id.
    run: String,
    /// The name of its agent.
    agent: String,
    /// The beginning of its task, unless it was purged.
    task: Option<String>,
    /// When it began.
    started_at: Time,
    /// When it ended.
    ended_at: Option<Time>,
    /// How it ended, or that it waits.
    end: Option<RunEndName>,
    /// How many events it has.
    events: u64,
    /// Where it is.
    state: RunStateName,
    /// Why no worker resumes it.
    waits_for_program: Option<String>,
}

/// What is stopped.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct StopItem {
    /// What kind of thing: `all`, `agent`, `tool`, `principal` or `run`.
    kind: String,
    /// Its name, unless it is everything.
    name: Option<String>,
    /// The tenant whose work is stopped; every tenant's if absent.
    tenant: Option<String>,
    /// Who stopped it.
    by: String,
    /// When.
    at: Time,
    /// Why.
    reason: Option<String>,
}

/// Tokens of models, and what models and tools cost.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct UsageItem {
    /// Answers of models.
    answers: u64,
    /// Input tokens, with those from the cache.
    input_tokens: u64,
    /// Input tokens that the provider read from its cache.
    cached_tokens: u64,
    /// Output tokens.
    output_tokens: u64,
    /// The known part of the cost in US dollars, as a decimal number. Absent if nothing of it is known.
    cost_usd: Option<String>,
    /// Whether all of the cost is known.
    is_cost_complete: bool,
    /// The part of the cost that tools state.
    tools_usd: String,
}

/// A call of a run.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct RunCallItem {
    /// Its id.
    call: String,
    /// The tool.
    tool: String,
    /// Its arguments.
    arguments: Map<String, Value>,
    /// Where it is, such as `success`.
    state: String,
    /// Its risk.
    risk: String,
    /// What the gate decided, and why.
    decision: Option<String>,
}

/// A run with what it did and what it waits for.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct RunDetails {
    #[serde(flatten)]
    run: RunItem,
    /// On whose behalf it acts.
    principal: String,
    /// The call that it works for, in the run of a sub-agent.
    parent: Option<String>,
    /// The run that a person or program started.
    outermost_run: String,
    /// How many turns it had, unless its events were purged.
    turns: Option<u64>,
    /// Its calls, unless its events were purged.
    calls: Option<Vec<RunCallItem>>,
    /// The questions that it and its sub-agents wait for.
    questions: Vec<Map<String, Value>>,
    /// The held calls of it and its sub-agents.
    holds: Vec<Map<String, Value>>,
    /// The stop that keeps it from going on.
    stopped: Option<StopItem>,
    /// What it and its sub-agents used up.
    usage: UsageItem,
    /// Its answer, after its end.
    response: Option<AgentResponse>,
    /// Its answer with the whole trace, after its end.
    output: Option<TaskOutput>,
}

/// A run as JSON, with its answer if it has ended.
pub(crate) fn run_details(status: &RunStatus) -> Result<Shape<RunDetails>, ServiceError> {
    let mut object = status.to_json();
    let ended = status.run.as_ref().filter(|run| run.end().is_some());
    object["response"] = json!(ended.map(Run::response));
    object["output"] = match ended {
        Some(run) => {
            let task = status
                .summary
                .task_id
                .as_deref()
                .unwrap_or(run.id().as_str());
            let task = NonEmptyText::new(task).ok();
            json!(task.and_then(|task| run.output(task).ok()))
        }
        None => Value::Null,
    };
    Ok(Shape::of(object))
}
