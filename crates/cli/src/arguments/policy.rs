//! The arguments of `windlass policy`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::agent::DataDirectory;

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
    /// Print the built-in policies, as a starting point.
    Show,
    /// Explain the decision about a call: the rule, and what would change it. Nothing runs.
    #[command(
        after_help = "Example: windlass policy explain --agent clerk.gram --tool pay --args '{\"to\": \"bob\", \
                      \"amount\": 10}'\n\n\
                      Exit code: 0 whatever is decided, 1 if a file is not valid, 2 for wrong usage or arguments \
                      that the tool does not accept."
    )]
    Explain(PolicyExplain),
    /// Evaluate changed policies on the calls of past runs and list the decisions that would change.
    /// Nothing runs.
    #[command(
        after_help = "Example: windlass policy replay new.cedar --old current.cedar\n\n\
                      Exit code: 0 whatever differs, 1 if a file is not valid, 2 for wrong usage."
    )]
    Replay(PolicyReplay),
}

#[derive(Debug, Args)]
pub(crate) struct PolicyCheck {
    /// The policy file; `-` reads standard input. Default: the built-in policies.
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// An agent file whose tools the policies apply to. Can be repeated.
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

    /// The arguments of the call, as one JSON object such as `'{"amount": 10}'`.
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub(crate) args: String,

    /// The confidence that the model states, from 0 to 1. Default: none.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) confidence: Option<f64>,

    /// The environment, instead of the configuration's, such as `production`.
    #[arg(long, value_name = "NAME")]
    pub(crate) environment: Option<String>,

    /// Treat the run as tainted by untrusted content.
    #[arg(long)]
    pub(crate) tainted: bool,

    /// The policy file. Default: the built-in policies.
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

    /// The present policy file. Default: the built-in policies.
    #[arg(long, value_name = "FILE")]
    pub(crate) old: Option<PathBuf>,

    /// Only calls of the tools this agent file declares. Can be repeated. Default: all recorded calls, with
    /// the tools as the latest run declared them.
    #[arg(long, value_name = "AGENT_FILE")]
    pub(crate) agent: Vec<PathBuf>,

    /// Print one JSON object per line for each decision that would change.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) data: DataDirectory,
}
