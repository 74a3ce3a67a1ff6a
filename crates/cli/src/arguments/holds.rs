//! What can be typed after `windlass holds`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

const EXIT_CODES: &str =
    "Exit code: 0 done, 1 failed, 2 wrong usage, 7 there is no such held call, 8 too late.";

#[derive(Debug, Args)]
pub(crate) struct Holds {
    #[command(subcommand)]
    pub(crate) command: HoldsCommand,

    /// Where runs are kept, instead of `WINDLASS_DATA` or the user's data directory.
    #[arg(long, value_name = "DIRECTORY", global = true)]
    pub(crate) data: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum HoldsCommand {
    /// List held calls, the oldest first, with the time in which each can be undone.
    List {
        /// Also those that started, were undone or given up.
        #[arg(long)]
        all: bool,

        /// Print one JSON object a line.
        #[arg(long)]
        json: bool,
    },
    /// Undo a held call, so that it never runs.
    #[command(after_help = EXIT_CODES)]
    Undo(OneHold),
    /// Let a held call run before its time.
    #[command(after_help = EXIT_CODES)]
    Release(OneHold),
}

/// Which held call is meant.
#[derive(Debug, Args)]
pub(crate) struct OneHold {
    /// The call, as `windlass holds list` names it; its start or end, or the id of its run, if that is
    /// enough. For example `0198c0ffee:2:0`.
    #[arg(value_name = "ID")]
    pub(crate) id: String,

    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}
