//! What can be typed after `windlass gaps`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct Gaps {
    #[command(subcommand)]
    pub(crate) command: GapsCommand,

    /// Where runs are kept, instead of `WINDLASS_DATA` or the user's data directory.
    #[arg(long, value_name = "DIRECTORY", global = true)]
    pub(crate) data: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum GapsCommand {
    /// List what was missing, what was missing most often first; the same wish in other words is one.
    List(GapsList),
    /// Show when something was missing, for which tasks, and which tools come near.
    Show(GapsShow),
    /// Print the specification of a tool that would do what is missing.
    Propose(GapsPropose),
    /// Say whether the tools of an agent do what a task asks.
    #[command(
        after_help = "Exit code: 0 if they seem to, 1 if something is missing, 2 for wrong usage."
    )]
    Check(GapsCheck),
}

#[derive(Debug, Args)]
pub(crate) struct GapsList {
    /// Only what was missing in the last so many days.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) days: Option<u32>,

    /// Only what this agent lacked.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,

    /// Print one JSON object a line.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct GapsShow {
    /// The wish, by the name of the tool that `windlass gaps list` gives it.
    #[arg(value_name = "TOOL")]
    pub(crate) wish: String,

    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "The specification is a start: names and types of parameters are guessed from the tasks. Bind an \
                  implementation to it before an agent uses it.\n\n\
                  Exit code: 0 done, 1 failed or the name is taken, 2 for wrong usage."
)]
pub(crate) struct GapsPropose {
    /// The wish, by the name of the tool that `windlass gaps list` gives it.
    #[arg(value_name = "TOOL")]
    pub(crate) wish: String,

    /// Append the specification to this agent file, unless it has a tool of that name.
    #[arg(long, value_name = "FILE")]
    pub(crate) write: Option<PathBuf>,

    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct GapsCheck {
    /// What is to be done.
    #[arg(value_name = "TASK")]
    pub(crate) task: String,

    /// The file that declares the agent.
    #[arg(long, value_name = "FILE")]
    pub(crate) agent: PathBuf,

    /// Print one JSON object: the probability, and the report if there is one.
    #[arg(long)]
    pub(crate) json: bool,
}
