//! The arguments of `windlass config`, `windlass init` and `windlass doctor`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::agent::DataDirectory;

#[derive(Debug, Args)]
pub(crate) struct Config {
    #[command(subcommand)]
    pub(crate) command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print the effective configuration and the origin of each value.
    #[command(
        after_help = "Later layers override earlier ones: built-in, the machine's, the user's, the project's, environment \
                      variables, `--set`.\n\n\
                      Exit code: 0 done, 1 if the configuration has errors, 2 for wrong usage."
    )]
    Show {
        /// Only this key and the keys below it, such as `gate`.
        #[arg(value_name = "KEY")]
        key: Option<String>,
        /// Print one JSON object per line.
        #[arg(long)]
        json: bool,
    },
    /// Report every error in the configuration.
    #[command(
        after_help = "Exit code: 0 if the configuration is valid, 1 otherwise, 2 for wrong usage."
    )]
    Check {
        /// Also check it against the tools of these agent files.
        #[arg(long = "agent-file", value_name = "FILE")]
        agent_files: Vec<PathBuf>,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Print the JSON Schema of `windlass.toml`, for editors.
    Schema,
    /// List the files that are read, and whether they exist.
    Files {
        /// Print one JSON object per line.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "Existing files are kept, unless you pass --force.\n\n\
                  Exit code: 0 done, 1 if something cannot be written, 2 for wrong usage.")]
pub(crate) struct Init {
    /// The directory of the project.
    #[arg(value_name = "DIRECTORY", default_value = ".")]
    pub(crate) directory: PathBuf,

    /// Overwrite existing files.
    #[arg(long)]
    pub(crate) force: bool,

    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Exit code: 0 if nothing is wrong, 1 if something must be fixed, 2 for wrong usage."
)]
pub(crate) struct Doctor {
    /// The agent files to check. Default: those in the directory of the project's configuration.
    #[arg(value_name = "FILE")]
    pub(crate) agent_files: Vec<PathBuf>,

    /// Do not connect to servers.
    #[arg(long)]
    pub(crate) offline: bool,

    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) data: DataDirectory,
}
