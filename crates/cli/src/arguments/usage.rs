//! The arguments of `windlass usage`.

use clap::{Args, ValueEnum};
use windlass_service::types::UsageGroup;

use super::DataDirectory;

#[derive(Debug, Args)]
#[command(
    after_help = "Prices are those of the list that ships and of `[prices]` in the configuration, at the time of each \
                  answer. The cost of a model without a price is unknown and not part of a sum.\n\n\
                  Exit code: 0 done, 1 failed, 2 wrong usage."
)]
pub(crate) struct Usage {
    /// By what the usage is summed up.
    #[arg(long, value_enum, default_value_t = UsageBy::Day)]
    pub(crate) by: UsageBy,

    /// From this time on: a time such as 2026-05-01T00:00:00Z, or an age such as 90m, 12h or 7d. Default: all that is
    /// stored.
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,

    /// Only that of this agent.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,

    /// Only that of runs for this principal.
    #[arg(long, value_name = "NAME")]
    pub(crate) principal: Option<String>,

    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) data: DataDirectory,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum UsageBy {
    /// The agent whose run used it up.
    Agent,
    /// The principal that the run is for.
    Principal,
    /// The day in UTC.
    Day,
    /// The model that answered.
    Model,
}

impl From<UsageBy> for UsageGroup {
    fn from(by: UsageBy) -> Self {
        match by {
            UsageBy::Agent => Self::Agent,
            UsageBy::Principal => Self::Principal,
            UsageBy::Day => Self::Day,
            UsageBy::Model => Self::Model,
        }
    }
}
