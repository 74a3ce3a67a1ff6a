//! Execution plans: tasks with dependencies, written by a model or a person. A [`Plan`] is always
//! executable: task ids are unique, every dependency exists, and there are no cycles. Executing a plan
//! is not done here.

mod error;
mod order;
mod raw;
mod references;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::checked_text;
use crate::envelope::ExecutionMode;
use crate::names::{AgentName, NonEmptyText, ToolName};
use crate::nearest::nearest;
use crate::records::Confidence;
use crate::tool::ToolSpecification;

pub use error::{PlanError, PlanErrors};
pub use raw::{RawPlan, RawPlanTask};
pub use references::FROM;

/// The tool that creates and executes a plan.
pub const CREATE_EXECUTION_PLAN: &str = "create_execution_plan";

/// The tool that updates the status of a manual task, which the author of the plan does.
pub const UPDATE_TASK_STATUS: &str = "update_task_status";

/// The tool that reports the progress of a plan.
pub const GET_EXECUTION_STATUS: &str = "get_execution_status";

/// The largest number of tasks of a plan.
pub const MAX_TASKS: usize = 1_000;

/// The largest number of tasks of a plan that run at the same time.
pub const MAX_PARALLEL: u16 = 64;

/// The number of tasks that run at the same time, unless the plan sets another.
pub const DEFAULT_PARALLEL: u16 = 8;

/// The largest number of retries of a task.
pub const MAX_RETRIES: u32 = 5;

const MAX_ID_LENGTH: usize = 64;

checked_text! {
    /// The id of a task within its plan: letters, digits, `_` and `-`.
    PlanTaskId(String), PlanError, check_task_id
}

fn check_task_id(id: &str) -> Result<(), PlanError> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    match (1..=MAX_ID_LENGTH).contains(&id.len()) && id.chars().all(is_allowed) {
        true => Ok(()),
        false => Err(PlanError::BadId(id.chars().take(MAX_ID_LENGTH).collect())),
    }
}

/// What happens to the rest of a plan after one of its tasks fails and has no retries left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// No further task starts.
    #[default]
    Stop,
    /// Tasks that depend on it are skipped; the others continue.
    SkipDependents,
}

/// The work of a task.
#[derive(Debug, Clone, PartialEq)]
pub enum Work {
    /// One call of a tool.
    Call {
        /// The tool.
        tool: ToolName,
        /// The arguments. A value may refer to the result of an earlier task.
        arguments: Map<String, Value>,
        /// The author's confidence in this call, if given.
        confidence: Option<Confidence>,
    },
    /// Delegated to an agent, which gets the results of the tasks this one depends on.
    Agent(AgentName),
    /// Done by the author of the plan, who reports when it is done.
    Manual,
}

/// One task of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanTask {
    /// Its id.
    pub id: PlanTaskId,
    /// What the task does, for people and agents.
    pub description: NonEmptyText,
    /// Its work.
    pub work: Work,
    /// The tasks it depends on.
    pub depends_on: Vec<PlanTaskId>,
    /// What happens to the rest of the plan if it fails.
    pub on_failure: OnFailure,
    /// The number of retries after failures without an effect.
    pub retries: u32,
}

/// Tasks that can be executed in the order of their dependencies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "RawPlan", into = "RawPlan")]
pub struct Plan {
    goal: Option<NonEmptyText>,
    execution_mode: ExecutionMode,
    max_parallel: u16,
    tasks: Vec<PlanTask>,
}

impl Plan {
    /// The goal of the plan, if given.
    #[must_use]
    pub fn goal(&self) -> Option<&str> {
        self.goal.as_ref().map(NonEmptyText::as_str)
    }

    /// Whether independent tasks run in parallel or one after the other.
    #[must_use]
    pub const fn execution_mode(&self) -> ExecutionMode {
        self.execution_mode
    }

    /// The largest number of tasks that run at the same time.
    #[must_use]
    pub fn max_parallel(&self) -> usize {
        match self.execution_mode {
            ExecutionMode::Parallel => self.max_parallel.into(),
            ExecutionMode::Sequential => 1,
        }
    }

    /// The tasks, in the order they are written.
    #[must_use]
    pub fn tasks(&self) -> &[PlanTask] {
        &self.tasks
    }

    /// The task with that id.
    #[must_use]
    pub fn task(&self, id: &str) -> Option<&PlanTask> {
        self.tasks.iter().find(|task| task.id.as_str() == id)
    }

    /// For each task with dependencies, the tasks it depends on.
    #[must_use]
    pub fn dependencies(&self) -> BTreeMap<String, Vec<String>> {
        let waiting = self.tasks.iter().filter(|task| !task.depends_on.is_empty());
        waiting
            .map(|task| {
                let names = task.depends_on.iter().map(ToString::to_string).collect();
                (task.id.to_string(), names)
            })
            .collect()
    }

    /// The errors in the work of the tasks, for the given tools and agents.
    #[must_use]
    pub fn check_work<'t>(
        &self,
        tools: impl IntoIterator<Item = &'t ToolSpecification>,
        agents: &[&str],
    ) -> Vec<PlanError> {
        let tools: BTreeMap<&str, &ToolSpecification> = tools
            .into_iter()
            .map(|tool| (tool.name().as_str(), tool))
            .collect();
        let mut errors = Vec::new();
        for task in &self.tasks {
            match &task.work {
                Work::Call {
                    tool, arguments, ..
                } => match tools.get(tool.as_str()) {
                    None => errors.push(PlanError::UnknownTool {
                        task: task.id.clone(),
                        tool: tool.to_string(),
                        nearest: nearest(tool.as_str(), tools.keys().copied()).map(str::to_owned),
                    }),
                    // The result of an earlier task is not known yet; the gate checks the resolved arguments.
                    Some(_) if references::has_references(arguments) => {}
                    Some(tool) => {
                        let misfits = tool.signature().misfits(&Value::Object(arguments.clone()));
                        if !misfits.is_empty() {
                            let messages: Vec<String> =
                                misfits.iter().map(ToString::to_string).collect();
                            errors.push(PlanError::Misfits {
                                task: task.id.clone(),
                                tool: tool.name().to_string(),
                                misfits: messages.join("; "),
                            });
                        }
                    }
                },
                Work::Agent(agent) if !agents.contains(&agent.as_str()) => {
                    errors.push(PlanError::UnknownAgent {
                        task: task.id.clone(),
                        agent: agent.to_string(),
                        nearest: nearest(agent.as_str(), agents.iter().copied()).map(str::to_owned),
                    });
                }
                Work::Agent(_) | Work::Manual => {}
            }
        }
        errors
    }
}

impl PlanTask {
    /// The arguments of its call, with references replaced by the results of earlier tasks.
    ///
    /// # Errors
    /// If a referenced value does not exist.
    pub fn arguments_with<'r>(
        &self,
        result: impl Fn(&str) -> Option<&'r Value>,
    ) -> Result<Map<String, Value>, String> {
        match &self.work {
            Work::Call { arguments, .. } => references::resolve(arguments, &result),
            Work::Agent(_) | Work::Manual => Ok(Map::new()),
        }
    }
}

#[cfg(test)]
mod tests;
