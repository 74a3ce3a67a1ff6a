//! Tasks of an agent. Reading many tasks from a file is in `task/lines.rs`; the output of a task is a
//! [`TaskOutput`](crate::TaskOutput).

mod lines;

pub use lines::{TaskLineError, TaskLineProblem, TaskLines, read_tasks};

use std::fmt;
use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::schema;
use crate::names::{NonEmptyText, TextError, ToolName};
use crate::nearest::nearest_all;

/// A task. Only its id and description are required. Without tools, the model answers it
/// directly.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "RawTask", into = "RawTask")]
pub struct TaskInput {
    /// The id of the task, unique within a batch.
    pub task_id: NonEmptyText,
    /// The description of the task.
    pub description: NonEmptyText,
    /// Lessons of earlier tasks for this one.
    pub playbook_bullets: Vec<String>,
    /// The domain, by which strategies are found; see [`TaskInput::domain`].
    pub domain: Option<NonEmptyText>,
    /// Further data of the task.
    pub metadata: Map<String, Value>,
    /// The tools that may be used. `None` means all of the agent's tools, an empty list none.
    pub available_tools: Option<Vec<ToolName>>,
    /// The largest number of turns, if not the default.
    pub max_iterations: Option<NonZeroU32>,
}

/// The default domain of a task.
pub const DEFAULT_DOMAIN: &str = "general";

/// Why a task is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TaskError {
    /// An empty text or an invalid name.
    #[error("{field}: {error}")]
    Text {
        /// The field.
        field: &'static str,
        /// Its error.
        error: TextError,
    },
    /// A limit of turns that is out of range.
    #[error("max_iterations must be 1 to 4294967295, not {0}")]
    MaxIterations(i64),
}

/// A tool that a task names and that does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownTool {
    /// The name in the task.
    pub name: ToolName,
    /// The most similar names, best first.
    pub nearest: Vec<String>,
}

impl fmt::Display for UnknownTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no tool `{}`", self.name)?;
        if !self.nearest.is_empty() {
            write!(f, "; did you mean `{}`?", self.nearest.join("` or `"))?;
        }
        Ok(())
    }
}

impl std::error::Error for UnknownTool {}

impl TaskInput {
    /// A task with only an id and a description.
    #[must_use]
    pub fn new(task_id: NonEmptyText, description: NonEmptyText) -> Self {
        Self {
            task_id,
            description,
            playbook_bullets: Vec::new(),
            domain: None,
            metadata: Map::new(),
            available_tools: None,
            max_iterations: None,
        }
    }

    /// The domain, by which strategies are found: the one it names, otherwise
    /// [`DEFAULT_DOMAIN`].
    #[must_use]
    pub fn domain(&self) -> &str {
        self.domain
            .as_ref()
            .map_or(DEFAULT_DOMAIN, NonEmptyText::as_str)
    }

    /// Checks that every tool of the task is registered.
    ///
    /// # Errors
    /// Every tool that is not, with the most similar names.
    pub fn check_tools<'a>(
        &self,
        registered: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), Vec<UnknownTool>> {
        missing_tools(self.available_tools.iter().flatten(), registered)
    }
}

/// Checks that all names are registered; the error has the missing ones with the most similar names.
pub(super) fn missing_tools<'n, 'a>(
    names: impl IntoIterator<Item = &'n ToolName>,
    registered: impl IntoIterator<Item = &'a str>,
) -> Result<(), Vec<UnknownTool>> {
    const MAX_NEAREST: usize = 3;
    let registered: Vec<&str> = registered.into_iter().collect();
    let missing: Vec<_> = names
        .into_iter()
        .filter(|name| !registered.contains(&name.as_str()))
        .map(|name| {
            let near = nearest_all(name.as_str(), registered.iter().copied(), MAX_NEAREST);
            UnknownTool {
                name: name.clone(),
                nearest: near.into_iter().map(str::to_owned).collect(),
            }
        })
        .collect();
    if missing.is_empty() {
        Ok(())
    } else {
        Err(missing)
    }
}

/// The JSON form of a task, before validation.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RawTask {
    /// The id of the task, unique within a batch.
    #[schemars(with = "schema::Text")]
    task_id: String,
    /// The description of the task.
    #[schemars(with = "schema::Text")]
    description: String,
    /// Lessons of earlier tasks for this one.
    #[serde(default)]
    playbook_bullets: Vec<String>,
    /// The domain, by which strategies are found; by default `general`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Text>")]
    domain: Option<String>,
    /// Further data of the task.
    #[serde(default)]
    metadata: Map<String, Value>,
    /// The tools that may be used; by default all of the agent's tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<schema::Name>>")]
    available_tools: Option<Vec<String>>,
    /// The largest number of turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<NonZeroU32>")]
    max_iterations: Option<i64>,
}

impl From<TaskInput> for RawTask {
    fn from(task: TaskInput) -> Self {
        let names = |names: Vec<ToolName>| names.into_iter().map(String::from).collect();
        Self {
            task_id: task.task_id.into(),
            description: task.description.into(),
            playbook_bullets: task.playbook_bullets,
            domain: task.domain.map(String::from),
            metadata: task.metadata,
            available_tools: task.available_tools.map(names),
            max_iterations: task.max_iterations.map(|limit| i64::from(limit.get())),
        }
    }
}

impl TryFrom<RawTask> for TaskInput {
    type Error = TaskError;

    fn try_from(raw: RawTask) -> Result<Self, TaskError> {
        let text =
            |field, text| NonEmptyText::new(text).map_err(|error| TaskError::Text { field, error });
        let name = |name| {
            ToolName::new(name).map_err(|error| TaskError::Text {
                field: "available_tools",
                error,
            })
        };
        let limit = |limit| {
            let number = u32::try_from(limit).ok().and_then(NonZeroU32::new);
            number.ok_or(TaskError::MaxIterations(limit))
        };
        let names = |names: Vec<String>| names.into_iter().map(name).collect();
        Ok(Self {
            task_id: text("task_id", raw.task_id)?,
            description: text("description", raw.description)?,
            playbook_bullets: raw.playbook_bullets,
            domain: raw
                .domain
                .map(|domain| text("domain", domain))
                .transpose()?,
            metadata: raw.metadata,
            available_tools: raw.available_tools.map(names).transpose()?,
            max_iterations: raw.max_iterations.map(limit).transpose()?,
        })
    }
}
