//! The arguments of `windlass gaps`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::agent::DataDirectory;

#[derive(Debug, Args)]
pub(crate) struct Gaps {
    #[command(subcommand)]
    pub(crate) command: GapsCommand,

    #[command(flatten)]
    pub(crate) data: DataDirectory,
}

#[derive(Debug, Subcommand)]
pub(crate) enum GapsCommand {
    /// List missing capabilities, the most frequent first. Different wordings of one are grouped.
    List(GapsList),
    /// Show when a capability was missing, for which tasks, and the closest tools.
    Show(GapsShow),
    /// Print the specification of a tool that would provide a missing capability.
    Propose(GapsPropose),
    /// Check whether the tools of an agent cover a task.
    #[command(
        after_help = "Exit code: 0 if they seem to, 1 if a tool is missing, 2 for wrong usage."
    )]
    Check(GapsCheck),
}

#[derive(Debug, Args)]
pub(crate) struct GapsList {
    /// Only what was missing in the last days, up to this number.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) days: Option<u32>,

    /// Only what this agent lacked.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,

    /// Print one JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct GapsShow {
    /// The missing capability, by the tool name that `windlass gaps list` prints.
    #[arg(value_name = "TOOL")]
    pub(crate) capability: String,

    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "The specification is a draft: names and types of parameters are guessed from the tasks. Bind \
                  an implementation to it before an agent uses it.\n\n\
                  Exit code: 0 done, 1 failed or the name is taken, 2 for wrong usage."
)]
pub(crate) struct GapsPropose {
    /// The missing capability, by the tool name that `windlass gaps list` prints.
    #[arg(value_name = "TOOL")]
    pub(crate) capability: String,

    /// Append the specification to this agent file, unless it has a tool of that name.
    #[arg(long, value_name = "FILE")]
    pub(crate) write: Option<PathBuf>,

    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct GapsCheck {
    /// The task.
    #[arg(value_name = "TASK")]
    pub(crate) task: String,

    /// The file that declares the agent.
    #[arg(long, value_name = "FILE")]
    pub(crate) agent: PathBuf,

    /// Print one JSON object: the probability, and the report if there is one.
    #[arg(long)]
    pub(crate) json: bool,
}
