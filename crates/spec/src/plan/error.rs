//! The errors of a plan. All errors are reported at once, each with the ids of its tasks.

use std::fmt;

use super::{MAX_ID_LENGTH, MAX_TASKS, PlanTaskId};

/// An error in a plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The plan has no tasks.
    #[error("the plan has no tasks; add at least one")]
    NoTasks,
    /// The plan has too many tasks.
    #[error("a plan has at most {MAX_TASKS} tasks, this one has {0}; split it into several plans")]
    TooManyTasks(usize),
    /// An invalid task id.
    #[error("`{0}` is not a valid task id; use 1 to {MAX_ID_LENGTH} letters, digits, `_` and `-`")]
    BadId(String),
    /// Two tasks have the same id.
    #[error("two tasks have the id `{0}`; rename one")]
    DuplicateId(PlanTaskId),
    /// A task without work.
    #[error("the task `{0}` has neither a `tool` nor a `description`; add one of them")]
    NothingToDo(PlanTaskId),
    /// A task with both a tool and an agent.
    #[error("the task `{0}` has a `tool` and an `agent`; remove one of them")]
    ToolAndAgent(PlanTaskId),
    /// Arguments or a confidence without a tool.
    #[error("the task `{0}` has {1} but no `tool`; add the tool")]
    WithoutTool(PlanTaskId, &'static str),
    /// An invalid tool or agent name.
    #[error("the task `{0}`: `{1}` is not a valid tool or agent name")]
    BadName(PlanTaskId, String),
    /// A task depends on a task that does not exist.
    #[error(
        "the task `{task}` depends on `{dependency}`, which is not a task of the plan{}",
        did_you_mean(nearest.as_deref())
    )]
    UnknownDependency {
        /// The task.
        task: String,
        /// The dependency.
        dependency: String,
        /// The most similar known name.
        nearest: Option<String>,
    },
    /// A key of `dependencies` is not a task.
    #[error(
        "`dependencies` has the key `{task}`, which is not a task of the plan{}",
        did_you_mean(nearest.as_deref())
    )]
    UnknownDependent {
        /// The key.
        task: String,
        /// The most similar known name.
        nearest: Option<String>,
    },
    /// Tasks that depend on each other in a cycle.
    #[error("the tasks depend on each other in a cycle: {}", .0.join(" -> "))]
    Cycle(Vec<String>),
    /// A task uses the result of a task it does not depend on.
    #[error(
        "the task `{task}` uses the result of `{from}` but does not depend on it; add it to `depends_on`"
    )]
    MissingDependency {
        /// The task.
        task: PlanTaskId,
        /// The task whose result it uses.
        from: String,
    },
    /// A number out of range.
    #[error("{what} must be from {least} to {most}, not {found}")]
    OutOfRange {
        /// The name of the number.
        what: String,
        /// The smallest allowed value.
        least: u32,
        /// The largest allowed value.
        most: u32,
        /// The given value.
        found: String,
    },
    /// An unknown execution mode.
    #[error("`execution_mode` must be `parallel` or `sequential`, not `{0}`")]
    BadMode(String),
    /// A tool that the agent does not have.
    #[error("the task `{task}` calls `{tool}`, which is not an available tool{}", did_you_mean(nearest.as_deref()))]
    UnknownTool {
        /// The task.
        task: PlanTaskId,
        /// The tool.
        tool: String,
        /// The most similar known name.
        nearest: Option<String>,
    },
    /// An agent that tasks cannot be delegated to.
    #[error(
        "the task `{task}` is for `{agent}`, which is not an available agent{}",
        did_you_mean(nearest.as_deref())
    )]
    UnknownAgent {
        /// The task.
        task: PlanTaskId,
        /// The agent.
        agent: String,
        /// The most similar known name.
        nearest: Option<String>,
    },
    /// Arguments that do not fit the tool.
    #[error("the task `{task}`: the arguments of `{tool}` do not fit: {misfits}")]
    Misfits {
        /// The task.
        task: PlanTaskId,
        /// The tool.
        tool: String,
        /// The reasons why they do not fit.
        misfits: String,
    },
}

fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map_or(String::new(), |nearest| {
        format!("; did you mean `{nearest}`?")
    })
}

/// All errors of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanErrors(pub Vec<PlanError>);

impl fmt::Display for PlanErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let messages: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&messages.join("\n"))
    }
}

impl std::error::Error for PlanErrors {}
