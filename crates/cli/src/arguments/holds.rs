//! The arguments of `windlass holds`.

use clap::{Args, Subcommand};

use super::agent::DataDirectory;

const EXIT_CODES: &str =
    "Exit code: 0 done, 1 failed, 2 wrong usage, 7 no such held call, 8 too late.";

#[derive(Debug, Args)]
pub(crate) struct Holds {
    #[command(subcommand)]
    pub(crate) command: HoldsCommand,

    #[command(flatten)]
    pub(crate) data: DataDirectory,
}

#[derive(Debug, Subcommand)]
pub(crate) enum HoldsCommand {
    /// List held calls, the oldest first, with the time left to undo each.
    List {
        /// Include those that started, were undone or were abandoned.
        #[arg(long)]
        all: bool,

        /// Print one JSON object per line.
        #[arg(long)]
        json: bool,
    },
    /// Undo a held call. It never runs.
    #[command(after_help = EXIT_CODES)]
    Undo(OneHold),
    /// Run a held call now, without waiting for its undo window to end.
    #[command(after_help = EXIT_CODES)]
    Release(OneHold),
}

/// The options that select one held call.
#[derive(Debug, Args)]
pub(crate) struct OneHold {
    /// The call's id, as `windlass holds list` prints it. A unique prefix, a unique suffix or the run's id
    /// is enough. For example `0198c0ffee:2:0`.
    #[arg(value_name = "ID", required_unless_present = "last")]
    pub(crate) id: Option<String>,

    /// The call that was held last.
    #[arg(long, conflicts_with = "id")]
    pub(crate) last: bool,

    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}
