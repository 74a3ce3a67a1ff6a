//! What can be typed after `windlass plan`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use windlass_core::run::PlanTaskStatus;

use super::crew::{CrewOptions, Limits};

pub(super) const RUN_HELP: &str = "\
A plan is a JSON object with a list of `tasks`. Each has an `id` and is one of: a call (`tool` and `arguments`), \
work for an agent (`agent` and `description`), or done by hand (`description` only; say when it is done with \
`windlass plan mark`). `depends_on` lists the tasks it waits for; `on_failure` is `stop` or `skip_dependents`; \
`retries` says how often to try again. {\"$from\": \"id\"} in the place of an argument takes what came of that \
task. The plan itself may have a `goal`, an `execution_mode` (`parallel` or `sequential`) and `max_parallel`.

Every call passes the gate. The plan is a run: `windlass runs resume` goes on with it, `windlass runs cancel` \
stops it.

Exit code: 0 all tasks done, 1 a task failed or was skipped, 2 wrong usage, 3 denied, 4 a person is needed, \
5 out of time, 6 rate limited, 130 interrupted.";

const NOT_FOUND_HELP: &str = "Exit code: 0 done, 1 failed, 2 wrong usage, 7 there is no such plan or task, 8 it is too late.";

#[derive(Debug, Args)]
pub(crate) struct Plan {
    #[command(subcommand)]
    pub(crate) command: PlanCommand,

    /// Where runs are kept, instead of `WINDLASS_DATA` or the user's data directory.
    #[arg(long, value_name = "DIRECTORY", global = true)]
    pub(crate) data: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PlanCommand {
    /// Say what is wrong with a plan, without carrying anything out.
    #[command(after_help = "Exit code: 0 it can be carried out, 1 it cannot, 2 wrong usage.")]
    Check(PlanCheck),
    /// Carry out a plan with the tools of an agent.
    #[command(after_help = RUN_HELP)]
    Run(PlanRun),
    /// List plans, the newest first.
    List(PlanList),
    /// Draw a plan with how far each task is.
    #[command(after_help = NOT_FOUND_HELP)]
    Show(PlanShow),
    /// Say how far a task is that is done by hand, or that a task is not to be done.
    #[command(after_help = NOT_FOUND_HELP)]
    Mark(PlanMark),
    /// Put other tasks in the place of those that have not begun.
    #[command(after_help = NOT_FOUND_HELP)]
    Edit(PlanEdit),
}

#[derive(Debug, Args)]
pub(crate) struct PlanCheck {
    /// The file that declares the agent whose tools the plan uses.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// The plan, a JSON file; `-` reads standard input.
    #[arg(value_name = "PLAN")]
    pub(crate) plan: PathBuf,

    #[command(flatten)]
    pub(crate) crew: CrewOptions,

    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PlanRun {
    /// The file that declares the agent whose tools the plan uses.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// The plan, a JSON file; `-` reads standard input.
    #[arg(value_name = "PLAN")]
    pub(crate) plan: PathBuf,

    #[command(flatten)]
    pub(crate) crew: CrewOptions,

    #[command(flatten)]
    pub(crate) limits: Limits,

    /// Print one JSON object with the run, its end and the plan.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PlanList {
    /// At most so many.
    #[arg(long, value_name = "NUMBER", default_value_t = 20)]
    pub(crate) limit: u32,

    /// Print one JSON object a line.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PlanShow {
    /// The plan (`RUN:TURN:CALL`), or the run that made it, or the start of the run's id.
    #[arg(value_name = "PLAN")]
    pub(crate) plan: String,

    /// Print it as a graph for other programs instead.
    #[arg(long, value_enum, conflicts_with = "json")]
    pub(crate) graph: Option<Graph>,

    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Graph {
    /// For Graphviz.
    Dot,
    /// For Mermaid.
    Mermaid,
}

#[derive(Debug, Args)]
pub(crate) struct PlanMark {
    /// The plan (`RUN:TURN:CALL`), or the run that made it, or the start of the run's id.
    #[arg(value_name = "PLAN")]
    pub(crate) plan: String,

    /// The task.
    #[arg(value_name = "TASK")]
    pub(crate) task: String,

    /// How far it is.
    #[arg(value_enum, value_name = "STATUS")]
    pub(crate) status: Mark,

    /// What came of it, for the tasks that wait for it: JSON, or else a text.
    #[arg(long, value_name = "RESULT")]
    pub(crate) result: Option<String>,

    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mark {
    /// Somebody is at it.
    InProgress,
    /// It is done.
    Success,
    /// It failed.
    Error,
    /// It is not to be done.
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
    /// The plan (`RUN:TURN:CALL`), or the run that made it, or the start of the run's id.
    #[arg(value_name = "PLAN")]
    pub(crate) plan: String,

    /// What it is to consist of, a JSON file; `-` reads standard input. Tasks that have begun stand in it
    /// as they were.
    #[arg(value_name = "NEW")]
    pub(crate) new: PathBuf,

    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}
