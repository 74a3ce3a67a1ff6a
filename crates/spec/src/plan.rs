//! Execution plans: tasks that wait for each other, as a model or a person writes them. A [`Plan`] can
//! only hold what can be carried out: every task has a name of its own, waits only for tasks that exist,
//! and never, however indirectly, for itself. Carrying it out is done elsewhere.

mod error;
mod order;
mod raw;
mod references;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::envelope::ExecutionMode;
use crate::names::{AgentName, NonEmptyText, ToolName};
use crate::nearest::nearest;
use crate::records::Confidence;
use crate::tool::ToolSpecification;

pub use error::{PlanError, PlanErrors};
pub use raw::{RawPlan, RawPlanTask};
pub use references::FROM;

/// The tool by which a plan is made and carried out.
pub const CREATE_EXECUTION_PLAN: &str = "create_execution_plan";

/// The tool that says how far a task is that whoever made the plan does themselves.
pub const UPDATE_TASK_STATUS: &str = "update_task_status";

/// The tool that tells how far a plan is.
pub const GET_EXECUTION_STATUS: &str = "get_execution_status";

/// How many tasks a plan has at most. More than that is a program, not a plan.
pub const MAX_TASKS: usize = 1_000;

/// How many tasks run at the same time at most, whatever a plan says.
pub const MAX_PARALLEL: u16 = 64;

/// How many do if a plan does not say.
pub const DEFAULT_PARALLEL: u16 = 8;

/// How often a task is tried again at most.
pub const MAX_RETRIES: u32 = 5;

const LONGEST_ID: usize = 64;

/// The name of a task within its plan: letters, digits, `_` and `-`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PlanTaskId(String);

impl PlanTaskId {
    /// Checks and takes a name.
    ///
    /// # Errors
    /// If it is empty, too long, or has other characters.
    pub fn new(id: impl Into<String>) -> Result<Self, PlanError> {
        let id = id.into();
        let is_good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if id.is_empty() || id.len() > LONGEST_ID || !id.chars().all(is_good) {
            return Err(PlanError::BadId(id.chars().take(LONGEST_ID).collect()));
        }
        Ok(Self(id))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PlanTaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for PlanTaskId {
    type Error = PlanError;

    fn try_from(id: String) -> Result<Self, PlanError> {
        Self::new(id)
    }
}

impl From<PlanTaskId> for String {
    fn from(id: PlanTaskId) -> Self {
        id.0
    }
}

/// What becomes of the rest of a plan when one of its tasks has failed for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// Nothing more is begun.
    #[default]
    Stop,
    /// What waits for it is skipped; the rest goes on.
    SkipDependents,
}

/// What a task consists of.
#[derive(Debug, Clone, PartialEq)]
pub enum Work {
    /// One call of a tool.
    Call {
        /// The tool.
        tool: ToolName,
        /// What it is called with. A value may refer to what came of an earlier task.
        arguments: Map<String, Value>,
        /// How sure whoever wrote the plan is of this call, if they say.
        confidence: Option<Confidence>,
    },
    /// Work that is handed to an agent, which is told what came of the tasks before it.
    Agent(AgentName),
    /// Done by whoever made the plan, who says when it is.
    ByHand,
}

/// One task of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanTask {
    /// Its name.
    pub id: PlanTaskId,
    /// What is to be done, for people and agents.
    pub description: NonEmptyText,
    /// What it consists of.
    pub work: Work,
    /// The tasks it waits for.
    pub depends_on: Vec<PlanTaskId>,
    /// What becomes of the rest if it fails.
    pub on_failure: OnFailure,
    /// How often it is tried again if it failed without having done anything.
    pub retries: u32,
}

/// Tasks that can be carried out in an order that respects what they wait for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "RawPlan", into = "RawPlan")]
pub struct Plan {
    goal: Option<NonEmptyText>,
    execution_mode: ExecutionMode,
    max_parallel: u16,
    tasks: Vec<PlanTask>,
}

impl Plan {
    /// What the plan is for, if it says.
    #[must_use]
    pub fn goal(&self) -> Option<&str> {
        self.goal.as_ref().map(NonEmptyText::as_str)
    }

    /// In which order the tasks run, as far as their dependencies leave that open.
    #[must_use]
    pub const fn execution_mode(&self) -> ExecutionMode {
        self.execution_mode
    }

    /// How many tasks run at the same time at most.
    #[must_use]
    pub fn max_parallel(&self) -> usize {
        match self.execution_mode {
            ExecutionMode::Parallel => self.max_parallel.into(),
            ExecutionMode::Sequential => 1,
        }
    }

    /// The tasks, in the order in which they were written.
    #[must_use]
    pub fn tasks(&self) -> &[PlanTask] {
        &self.tasks
    }

    /// The task of that name.
    #[must_use]
    pub fn task(&self, id: &str) -> Option<&PlanTask> {
        self.tasks.iter().find(|task| task.id.as_str() == id)
    }

    /// For each task that waits, what it waits for.
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

    /// What is wrong with the work of the tasks, given the tools and agents there are.
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
                    // What comes of an earlier task is not known yet; the gate looks at the whole.
                    Some(_) if references::are_in(arguments) => {}
                    Some(tool) => {
                        let misfits = tool.signature().misfits(&Value::Object(arguments.clone()));
                        if !misfits.is_empty() {
                            let told: Vec<String> =
                                misfits.iter().map(ToString::to_string).collect();
                            errors.push(PlanError::Misfits {
                                task: task.id.clone(),
                                tool: tool.name().to_string(),
                                misfits: told.join("; "),
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
                Work::Agent(_) | Work::ByHand => {}
            }
        }
        errors
    }
}

impl PlanTask {
    /// The arguments of its call with what came of earlier tasks put in.
    ///
    /// # Errors
    /// If what is referred to is not there.
    pub fn arguments_with<'r>(
        &self,
        result: impl Fn(&str) -> Option<&'r Value>,
    ) -> Result<Map<String, Value>, String> {
        match &self.work {
            Work::Call { arguments, .. } => references::resolve(arguments, &result),
            Work::Agent(_) | Work::ByHand => Ok(Map::new()),
        }
    }
}

#[cfg(test)]
mod tests;
