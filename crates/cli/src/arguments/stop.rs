//! The arguments of `windlass stop` and `windlass start`.

use clap::Args;

use super::agent::DataDirectory;

#[derive(Debug, Args)]
#[command(
    group(clap::ArgGroup::new("what").required(true).args(["all", "agent", "tool", "principal", "run", "list"])),
    after_help = "From when the command returns, no call with an effect begins that the stop covers, in any process of \
                  this store. Reversible calls and requests to models do not begin after 200 ms. What has begun ends. \
                  The runs are suspended; a worker resumes them after `windlass start`."
)]
pub(crate) struct Stop {
    #[command(flatten)]
    pub(crate) options: StopOptions,

    /// List what is stopped.
    #[arg(long, conflicts_with_all = ["reason", "every_tenant"])]
    pub(crate) list: bool,
}

#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("what").required(true).args(["all", "agent", "tool", "principal", "run"])))]
pub(crate) struct Start {
    #[command(flatten)]
    pub(crate) options: StopOptions,
}

#[derive(Debug, Args)]
pub(crate) struct StopOptions {
    /// Everything.
    #[arg(long)]
    pub(crate) all: bool,

    /// The runs of this agent, and those that work for them.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,

    /// The calls of this tool.
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,

    /// The runs that act for this principal.
    #[arg(long, value_name = "NAME")]
    pub(crate) principal: Option<String>,

    /// This run, and those that work for it.
    #[arg(long, value_name = "ID")]
    pub(crate) run: Option<String>,

    /// Why. It is recorded, and shown with the runs.
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,

    /// For every tenant of the store, not only for yours.
    #[arg(long, conflicts_with = "run")]
    pub(crate) every_tenant: bool,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) data: DataDirectory,
}
