//! What can be typed after `windlass policy`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct Policy {
    #[command(subcommand)]
    pub(crate) command: PolicyCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Check a policy file against the tools of agents and run its examples.
    #[command(
        after_help = "Exit code: 0 if the policies are valid, 1 otherwise, 2 for wrong usage."
    )]
    Check(PolicyCheck),
    /// Print the policies that hold where no others are given: a place to start from.
    Show,
    /// Say what is decided about a call, by which rule, and what would change it. Nothing runs.
    #[command(
        after_help = "Example: windlass policy explain --agent clerk.gram --tool pay --args '{\"to\": \"bob\", \
                      \"amount\": 10}'\n\n\
                      Exit code: 0 whatever is decided, 1 if a file is not valid, 2 for wrong usage or arguments \
                      that do not fit the tool."
    )]
    Explain(PolicyExplain),
    /// Hold changed policies against the calls of past runs and list what they would decide
    /// differently. Nothing runs.
    #[command(
        after_help = "Example: windlass policy replay new.cedar --old current.cedar\n\n\
                      Exit code: 0 whatever differs, 1 if a file is not valid, 2 for wrong usage."
    )]
    Replay(PolicyReplay),
}

#[derive(Debug, Args)]
pub(crate) struct PolicyCheck {
    /// The policy file; without it, the policies that hold where no others are given. `-` reads
    /// standard input.
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// An agent file whose tools the policies are about; can be given several times.
    #[arg(long, value_name = "AGENT_FILE")]
    pub(crate) agent: Vec<PathBuf>,

    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PolicyExplain {
    /// The agent file that declares the tool.
    #[arg(long, value_name = "AGENT_FILE")]
    pub(crate) agent: PathBuf,

    /// The tool that would be called.
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: String,

    /// What it would be called with, as one JSON object such as `'{"amount": 10}'`.
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub(crate) args: String,

    /// How sure the model says it is, from 0 to 1; not stated if left out.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) confidence: Option<f64>,

    /// Where the run would take place, instead of where the configuration says, such as `production`.
    #[arg(long, value_name = "NAME")]
    pub(crate) environment: Option<String>,

    /// What others wrote may have led to the call.
    #[arg(long)]
    pub(crate) tainted: bool,

    /// A policy file instead of the policies that hold where no others are given.
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: Option<PathBuf>,

    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PolicyReplay {
    /// The changed policy file.
    #[arg(value_name = "NEW")]
    pub(crate) new: PathBuf,

    /// The policy file that decides now; without it, the policies that hold where no others are given.
    #[arg(long, value_name = "FILE")]
    pub(crate) old: Option<PathBuf>,

    /// Only calls of the tools this agent file declares; can be given several times. Without it, all
    /// recorded calls, of the tools as the latest run had them.
    #[arg(long, value_name = "AGENT_FILE")]
    pub(crate) agent: Vec<PathBuf>,

    /// Print one JSON object a line for each call that would be decided differently.
    #[arg(long)]
    pub(crate) json: bool,

    /// Where runs are kept, instead of `WINDLASS_DATA` or the user's data directory.
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) data: Option<PathBuf>,
}
