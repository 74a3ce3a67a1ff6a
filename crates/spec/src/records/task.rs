//! What is asked of an agent. How tasks are read from a file of many is in `task/lines.rs`; what
//! comes back is a [`TaskOutput`](crate::TaskOutput).

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

/// A task. Only its id and description must be given; without tools it is answered by thinking
/// alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "RawTask", into = "RawTask")]
pub struct TaskInput {
    /// Which task; no two of a batch have the same.
    pub task_id: NonEmptyText,
    /// What is asked.
    pub description: NonEmptyText,
    /// What earlier tasks taught about this one.
    pub playbook_bullets: Vec<String>,
    /// The field of work, by which strategies are found; see [`TaskInput::domain`].
    pub domain: Option<NonEmptyText>,
    /// Whatever else belongs to it.
    pub metadata: Map<String, Value>,
    /// The only tools that may be used. `None` means all of the agent's, an empty list none.
    pub available_tools: Option<Vec<ToolName>>,
    /// How many turns it may take, if not as many as usual.
    pub max_iterations: Option<NonZeroU32>,
}

/// The domain of a task that names none.
pub const DEFAULT_DOMAIN: &str = "general";

/// Why a task was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TaskError {
    /// A text that must say something, or a name that is none.
    #[error("{field}: {error}")]
    Text {
        /// Where it stands.
        field: &'static str,
        /// What is wrong with it.
        error: TextError,
    },
    /// A limit that leaves no turn, or more than can be counted.
    #[error("max_iterations is 1 to 4294967295, not {0}")]
    MaxIterations(i64),
}

/// A tool that a task wants and nobody has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingTool {
    /// What the task calls it.
    pub name: ToolName,
    /// What may have been meant, the most likely first.
    pub nearest: Vec<String>,
}

impl fmt::Display for MissingTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no tool `{}`", self.name)?;
        if !self.nearest.is_empty() {
            write!(f, "; did you mean `{}`?", self.nearest.join("` or `"))?;
        }
        Ok(())
    }
}

impl std::error::Error for MissingTool {}

impl TaskInput {
    /// A task with nothing said beyond what is asked.
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

    /// The field of work, by which strategies are found: the one it names, else
    /// [`DEFAULT_DOMAIN`].
    #[must_use]
    pub fn domain(&self) -> &str {
        self.domain
            .as_ref()
            .map_or(DEFAULT_DOMAIN, NonEmptyText::as_str)
    }

    /// Checks that every tool the task wants is among the registered ones.
    ///
    /// # Errors
    /// Every tool that is not, with the names nearest to it.
    pub fn check_tools<'a>(
        &self,
        registered: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), Vec<MissingTool>> {
        missing_tools(self.available_tools.iter().flatten(), registered)
    }
}

/// Which of some names are not among the registered ones, with the names nearest to each.
pub(super) fn missing_tools<'n, 'a>(
    names: impl IntoIterator<Item = &'n ToolName>,
    registered: impl IntoIterator<Item = &'a str>,
) -> Result<(), Vec<MissingTool>> {
    const MAX_NEAREST: usize = 3;
    let registered: Vec<&str> = registered.into_iter().collect();
    let missing: Vec<_> = names
        .into_iter()
        .filter(|name| !registered.contains(&name.as_str()))
        .map(|name| {
            let near = nearest_all(name.as_str(), registered.iter().copied(), MAX_NEAREST);
            MissingTool {
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

/// The JSON form of a task, before it is checked.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RawTask {
    /// Which task; no two of a batch have the same.
    #[schemars(with = "schema::Text")]
    task_id: String,
    /// What is asked.
    #[schemars(with = "schema::Text")]
    description: String,
    /// What earlier tasks taught about this one.
    #[serde(default)]
    playbook_bullets: Vec<String>,
    /// The field of work, by which strategies are found; `general` if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Text>")]
    domain: Option<String>,
    /// Whatever else belongs to it.
    #[serde(default)]
    metadata: Map<String, Value>,
    /// The only tools that may be used; all of the agent's if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<schema::Name>>")]
    available_tools: Option<Vec<String>>,
    /// How many turns it may take.
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
