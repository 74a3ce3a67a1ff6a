//! The arguments of `windlass plan`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use windlass_core::run::PlanTaskStatus;

use super::agent::{AgentOptions, DataDirectory, Limits};

pub(super) const RUN_HELP: &str = "\
A plan is a JSON object with a list of `tasks`. Each has an `id` and is one of: a call (`tool` and `arguments`), \
work for an agent (`agent` and `description`), or manual work (`description` only; report it as done with \
`windlass plan mark`). `depends_on` lists the tasks it waits for; `on_failure` is `stop` or `skip_dependents`; \
`retries` is the number of retries. {\"$from\": \"id\"} as an argument inserts the result of that task. The plan \
itself may have a `goal`, an `execution_mode` (`parallel` or `sequential`) and `max_parallel`.

Every call passes the gate. The plan is a run: `windlass runs resume` resumes it, `windlass runs cancel` \
cancels it.

Exit code: 0 all tasks done, 1 a task failed or was skipped, 2 wrong usage, 3 denied, 4 waiting for an approval or \
answer, 5 out of time, 6 rate limited, 130 interrupted.";

const NOT_FOUND_HELP: &str =
    "Exit code: 0 done, 1 failed, 2 wrong usage, 7 no such plan or task, 8 too late.";

#[derive(Debug, Args)]
pub(crate) struct Plan {
    #[command(subcommand)]
    pub(crate) command: PlanCommand,

    #[command(flatten)]
    pub(crate) data: DataDirectory,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PlanCommand {
    /// Report every error in a plan, without running it.
    #[command(after_help = "Exit code: 0 the plan is valid, 1 it is not, 2 wrong usage.")]
    Check(PlanCheck),
    /// Run a plan with the tools of an agent.
    #[command(after_help = RUN_HELP)]
    Run(PlanRun),
    /// List plans, the newest first.
    List(PlanList),
    /// Show a plan and the status of each task.
    #[command(after_help = NOT_FOUND_HELP)]
    Show(PlanShow),
    /// Set the status of a manual task, or skip a task.
    #[command(after_help = NOT_FOUND_HELP)]
    Mark(PlanMark),
    /// Replace the tasks that have not started.
    #[command(after_help = NOT_FOUND_HELP)]
    Edit(PlanEdit),
}

/// A plan, and the agent whose tools it uses.
#[derive(Debug, Args)]
pub(crate) struct PlanSource {
    /// The file that declares the agent whose tools the plan uses.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// The plan, a JSON file; `-` reads standard input.
    #[arg(value_name = "PLAN")]
    pub(crate) plan: PathBuf,

    #[command(flatten)]
    pub(crate) agent: AgentOptions,
}

#[derive(Debug, Args)]
pub(crate) struct PlanCheck {
    #[command(flatten)]
    pub(crate) source: PlanSource,

    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PlanRun {
    #[command(flatten)]
    pub(crate) source: PlanSource,

    #[command(flatten)]
    pub(crate) limits: Limits,

    /// Print one JSON object with the run, its outcome and the plan.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PlanList {
    /// The maximum number of plans.
    #[arg(long, value_name = "NUMBER", default_value_t = 20)]
    pub(crate) limit: u32,

    /// Print one JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A plan that was started.
#[derive(Debug, Args)]
pub(crate) struct StoredPlan {
    /// The plan (`RUN:TURN:CALL`), or the run that made it, or a unique prefix of the run's id.
    #[arg(value_name = "PLAN")]
    pub(crate) plan: String,
}

#[derive(Debug, Args)]
pub(crate) struct PlanShow {
    /// The plan (`RUN:TURN:CALL`), or the run that made it, or a unique prefix of the run's id.
    #[arg(value_name = "PLAN", required_unless_present = "last")]
    pub(crate) plan: Option<String>,

    /// The plan that was made last.
    #[arg(long, conflicts_with = "plan")]
    pub(crate) last: bool,

    /// Print the plan as a graph in this language.
    #[arg(long, value_enum, conflicts_with = "json")]
    pub(crate) graph: Option<Graph>,

    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Graph {
    /// Graphviz.
    Dot,
    /// Mermaid.
    Mermaid,
}

#[derive(Debug, Args)]
pub(crate) struct PlanMark {
    #[command(flatten)]
    pub(crate) plan: StoredPlan,

    /// The task.
    #[arg(value_name = "TASK")]
    pub(crate) task: String,

    /// The new status.
    #[arg(value_enum, value_name = "STATUS")]
    pub(crate) status: Mark,

    /// The result, for the tasks that depend on it: JSON, or else a text.
    #[arg(long, value_name = "RESULT")]
    pub(crate) result: Option<String>,

    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mark {
    /// Work on it has started.
    InProgress,
    /// It is done.
    Success,
    /// It failed.
    Error,
    /// It is skipped.
    Skipped,
}

impl From<Mark> for PlanTaskStatus {
    fn from(mark: Mark) -> Self {
        match mark {
            Mark::InProgress => Self::InProgress,
            Mark::Success => Self::Success,
            Mark::Error => Self::Error,
            Mark::Skipped => Self::Skipped,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct PlanEdit {
    #[command(flatten)]
    pub(crate) plan: StoredPlan,

    /// The new plan, a JSON file; `-` reads standard input. It contains the tasks that have started
    /// unchanged.
    #[arg(value_name = "NEW")]
    pub(crate) new: PathBuf,

    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}
