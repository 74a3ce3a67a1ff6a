//! The arguments of `windlass intent`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(
    after_help = "Exit code: 0 if the text has an intent that a run would use, 1 if not, 2 for wrong usage."
)]
pub(crate) struct Intent {
    /// The text, such as a task.
    #[arg(value_name = "TEXT")]
    pub(crate) text: String,

    /// Suggest the tools of this agent file. Default: the built-in tools.
    #[arg(long, value_name = "FILE")]
    pub(crate) agent: Option<PathBuf>,

    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}
