//! The arguments of `windlass webhooks`.

use clap::{Args, Subcommand};
use windlass_service::types::DeliveryState;

use super::agent::DataDirectory;

#[derive(Debug, Args)]
pub(crate) struct Webhooks {
    #[command(subcommand)]
    pub(crate) command: WebhooksCommand,

    #[command(flatten)]
    pub(crate) data: DataDirectory,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WebhooksCommand {
    /// List the webhooks of the configuration, and the events that were not received.
    List(WebhooksList),
    /// Show an event with what is sent.
    Show(WebhooksShow),
    /// Send events again, now: those that were given up, or that wait for their next attempt.
    Retry(WebhooksRetry),
    /// Make a secret for a webhook and print it.
    Secret,
}

#[derive(Debug, Args)]
pub(crate) struct WebhooksList {
    /// List only the events of the webhook of this name.
    #[arg(long, value_name = "NAME")]
    pub(crate) webhook: Option<String>,

    /// List only the events in this state. Default: those that were not received.
    #[arg(long, value_name = "STATE")]
    pub(crate) state: Option<DeliveryState>,

    /// List at most this many events.
    #[arg(long, value_name = "COUNT", default_value = "50")]
    pub(crate) limit: u32,

    /// Print one JSON object per event and line.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct WebhooksShow {
    /// The id of the event, as `windlass webhooks list` shows it.
    #[arg(value_name = "ID")]
    pub(crate) id: String,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct WebhooksRetry {
    /// The ids of the events, as `windlass webhooks list` shows them.
    #[arg(value_name = "ID", required_unless_present = "all")]
    pub(crate) ids: Vec<String>,

    /// Send all events again that were given up.
    #[arg(long, conflicts_with = "ids")]
    pub(crate) all: bool,

    /// Only those of the webhook of this name.
    #[arg(long, value_name = "NAME", requires = "all")]
    pub(crate) webhook: Option<String>,

    /// Print one JSON object per event and line.
    #[arg(long)]
    pub(crate) json: bool,
}
