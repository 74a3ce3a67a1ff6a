//! The arguments of `windlass worker`.

use clap::Args;

use super::agent::DataDirectory;

#[derive(Debug, Args)]
pub(crate) struct Worker {
    /// How many runs are driven at the same time.
    #[arg(long, value_name = "NUMBER", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: u16,

    /// Exit when there is nothing to do.
    #[arg(long)]
    pub(crate) until_idle: bool,

    /// Print the worker's events as JSON Lines on standard output.
    #[arg(long)]
    pub(crate) jsonl: bool,

    #[command(flatten)]
    pub(crate) data: DataDirectory,
}
