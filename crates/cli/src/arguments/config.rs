//! What can be typed after `windlass config`, `windlass init` and `windlass doctor`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct Config {
    #[command(subcommand)]
    pub(crate) command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print what holds and where each value comes from.
    #[command(
        after_help = "Later layers win: built-in, the machine's, the user's, the project's, environment \
                      variables, `--set`.\n\n\
                      Exit code: 0 done, 1 if the configuration has mistakes, 2 for wrong usage."
    )]
    Show {
        /// Only this key and those below it, such as `gate`.
        #[arg(value_name = "KEY")]
        key: Option<String>,
        /// Print one JSON object a line.
        #[arg(long)]
        json: bool,
    },
    /// Point at every mistake in the configuration.
    #[command(
        after_help = "Exit code: 0 if the configuration is valid, 1 otherwise, 2 for wrong usage."
    )]
    Check {
        /// Check it against the tools of these agent files as well.
        #[arg(long = "agent-file", value_name = "FILE")]
        agent_files: Vec<PathBuf>,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Print the JSON Schema of the file, for editors.
    Schema,
    /// Print the files that are looked at, and whether they are there.
    Files {
        /// Print one JSON object a line.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "Files that exist are left as they are.\n\n\
                  Exit code: 0 done, 1 if something cannot be written, 2 for wrong usage.")]
pub(crate) struct Init {
    /// Where; this directory if not said.
    #[arg(value_name = "DIRECTORY", default_value = ".")]
    pub(crate) directory: PathBuf,

    /// Write over files that exist.
    #[arg(long)]
    pub(crate) force: bool,

    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Exit code: 0 if nothing is wrong, 1 if something must be mended, 2 for wrong usage."
)]
pub(crate) struct Doctor {
    /// The agent files to check; without it, those beside the project's configuration.
    #[arg(value_name = "FILE")]
    pub(crate) agent_files: Vec<PathBuf>,

    /// Do not ask servers whether they are there.
    #[arg(long)]
    pub(crate) offline: bool,

    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,

    /// Where runs are kept, instead of `WINDLASS_DATA` or the user's data directory.
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) data: Option<PathBuf>,
}
