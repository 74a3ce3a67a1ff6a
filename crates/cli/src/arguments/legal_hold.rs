//! The arguments of `windlass legal-hold`.

use clap::{Args, Subcommand};

use super::DataDirectory;

const EXIT_CODES: &str =
    "Exit code: 0 done, 1 failed, 2 wrong usage, 3 not permitted, 7 no such run.";

#[derive(Debug, Args)]
pub(crate) struct LegalHold {
    #[command(subcommand)]
    pub(crate) command: LegalHoldCommand,

    #[command(flatten)]
    pub(crate) data: DataDirectory,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LegalHoldCommand {
    /// Keep everything of runs, and of the runs that work for them, until the hold is removed.
    #[command(after_help = EXIT_CODES)]
    Add(HeldRuns),
    /// List the runs under a legal hold.
    #[command(after_help = EXIT_CODES)]
    List {
        /// Print one JSON object per line.
        #[arg(long)]
        json: bool,
    },
    /// Let the retention apply to runs again.
    #[command(after_help = EXIT_CODES)]
    Remove(HeldRuns),
}

/// The runs of a hold, and why.
#[derive(Debug, Args)]
pub(crate) struct HeldRuns {
    /// The runs, by their ids as `windlass runs list` prints them.
    #[arg(value_name = "RUN", required = true)]
    pub(crate) runs: Vec<String>,

    /// Why. It is recorded with your name.
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: String,

    /// Print one JSON object per run.
    #[arg(long)]
    pub(crate) json: bool,
}
