//! What can be wrong with a plan, told so that it can be mended: all of it at once, and by name.

use std::fmt;

use super::{LONGEST_ID, MAX_TASKS, PlanTaskId};

/// What is wrong with a plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// There is nothing to do.
    #[error("a plan has at least one task")]
    NoTasks,
    /// There is too much to do.
    #[error("a plan has at most {MAX_TASKS} tasks, this one has {0}; make several plans of it")]
    TooManyTasks(usize),
    /// A name that is none.
    #[error("`{0}` is no name of a task: 1 to {LONGEST_ID} letters, digits, `_` and `-`")]
    BadId(String),
    /// Two tasks have one name.
    #[error("two tasks are called `{0}`")]
    DuplicateId(PlanTaskId),
    /// A task that says nothing.
    #[error("the task `{0}` says neither a `tool` nor, in `description`, what is to be done")]
    NothingToDo(PlanTaskId),
    /// A task that says too much.
    #[error("the task `{0}` names a tool and an agent; it can be the work of one of them")]
    ToolAndAgent(PlanTaskId),
    /// Arguments without a tool.
    #[error("the task `{0}` has {1} but names no tool")]
    WithoutTool(PlanTaskId, &'static str),
    /// A name that no tool or agent can have.
    #[error("the task `{0}`: `{1}` is no name")]
    BadName(PlanTaskId, String),
    /// It waits for something that is not there.
    #[error(
        "the task `{task}` waits for `{dependency}`, which is no task of the plan{}",
        meant(nearest.as_deref())
    )]
    UnknownDependency {
        /// The task.
        task: String,
        /// What it waits for.
        dependency: String,
        /// What was probably meant.
        nearest: Option<String>,
    },
    /// `dependencies` tells what a task waits for that is not there.
    #[error(
        "`dependencies` says what `{task}` waits for, which is no task of the plan{}",
        meant(nearest.as_deref())
    )]
    UnknownDependent {
        /// The name.
        task: String,
        /// What was probably meant.
        nearest: Option<String>,
    },
    /// Tasks that wait for each other.
    #[error("these tasks wait for each other: {}", .0.join(" -> "))]
    Cycle(Vec<String>),
    /// It refers to what it does not wait for.
    #[error(
        "the task `{task}` takes what comes of `{from}` but does not wait for it; add it to `depends_on`"
    )]
    NotWaitedFor {
        /// The task.
        task: PlanTaskId,
        /// What it refers to.
        from: String,
    },
    /// A number out of range.
    #[error("{what} is from {least} to {most}, not {found}")]
    OutOfRange {
        /// Of what.
        what: String,
        /// The least it can be.
        least: u32,
        /// The most it can be.
        most: u32,
        /// What it is.
        found: String,
    },
    /// A word that means nothing here.
    #[error("`execution_mode` is `parallel` or `sequential`, not `{0}`")]
    BadMode(String),
    /// A tool that the agent does not have.
    #[error("the task `{task}` calls `{tool}`, which is no tool here{}", meant(nearest.as_deref()))]
    UnknownTool {
        /// The task.
        task: PlanTaskId,
        /// The tool.
        tool: String,
        /// What was probably meant.
        nearest: Option<String>,
    },
    /// An agent that work cannot be handed to.
    #[error(
        "the task `{task}` is for `{agent}`, which is no agent that work can be handed to here{}",
        meant(nearest.as_deref())
    )]
    UnknownAgent {
        /// The task.
        task: PlanTaskId,
        /// The agent.
        agent: String,
        /// What was probably meant.
        nearest: Option<String>,
    },
    /// Arguments that the tool does not take.
    #[error("the task `{task}`: the arguments of `{tool}` do not fit: {misfits}")]
    Misfits {
        /// The task.
        task: PlanTaskId,
        /// The tool.
        tool: String,
        /// What is wrong with them.
        misfits: String,
    },
}

fn meant(nearest: Option<&str>) -> String {
    nearest.map_or(String::new(), |nearest| {
        format!("; did you mean `{nearest}`?")
    })
}

/// Everything that is wrong with a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanErrors(pub Vec<PlanError>);

impl fmt::Display for PlanErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&told.join("\n"))
    }
}

impl std::error::Error for PlanErrors {}
