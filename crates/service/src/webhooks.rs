//! Webhooks: who is notified of approvals, ends of runs and gaps. The store keeps what is to be sent, and a worker sends
//! it until it is received.

mod message;
mod receiver;
mod sender;

use std::path::Path;

use serde_json::{Value, json};
use windlass_config::{WebhookSettings, WebhookTarget};
use windlass_keys::WebhookSecrets;
use windlass_spec::Timestamp;
use windlass_store::{DeliveryCounts, DeliveryFilter, DeliveryState, WebhookDelivery};

use crate::error::ServiceError;
use crate::identity::{Identity, Scope};
use crate::service::Service;

pub(crate) use receiver::secrets_of;
pub(crate) use sender::WebhookSender;

/// A webhook, with what is to be sent to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookStatus {
    /// Its name.
    pub name: String,
    /// The file that declares it.
    pub declared_in: String,
    /// The URL or the command line.
    pub target: String,
    /// The names of its events.
    pub events: Vec<&'static str>,
    /// Whether events are sent.
    pub is_enabled: bool,
    /// How many events wait, were received lately, and were given up.
    pub counts: DeliveryCounts,
}

impl WebhookStatus {
    /// The webhook as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "name": self.name, "target": self.target, "events": self.events, "enabled": self.is_enabled,
            "pending": self.counts.pending, "delivered": self.counts.delivered, "dead": self.counts.dead,
        })
    }
}

/// Which events for webhooks are listed, the latest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeliveryQuery {
    /// Only those of the webhook of this name.
    pub webhook: Option<String>,
    /// Only those in this state.
    pub state: Option<DeliveryState>,
    /// Only those after the one with this id in the list.
    pub after: Option<String>,
    /// At most this many.
    pub limit: Option<u32>,
}

/// An event for a webhook as JSON, without what is sent.
#[must_use]
pub fn delivery_to_json(delivery: &WebhookDelivery) -> Value {
    let is_pending = delivery.state == DeliveryState::Pending;
    let due = is_pending.then(|| delivery.due_at.max(delivery.at));
    json!({
        "id": delivery.id, "webhook": delivery.webhook, "event": delivery.event, "state": delivery.state,
        "run": delivery.run, "approval": delivery.call, "at": delivery.at, "attempts": delivery.attempts,
        "attempted_at": delivery.attempted_at, "settled_at": delivery.settled_at, "due_at": due,
        "error": delivery.error,
    })
}

impl Service {
    /// The webhooks of the configuration. Each is known by its name and the whole path of its file.
    pub(crate) fn webhooks(&self) -> Result<Vec<WebhookSettings>, ServiceError> {
        let project = self.project()?;
        let webhooks = project.configuration().webhooks().iter().cloned();
        let webhooks = webhooks.map(|webhook| WebhookSettings {
            declared_in: whole_path(Path::new(&webhook.declared_in)),
            ..webhook
        });
        Ok(webhooks.collect())
    }

    /// The webhooks of the configuration, with how many events of the identity's tenant each has.
    ///
    /// # Errors
    /// If the identity may not read, or configuration or store cannot be read.
    pub fn list_webhooks(&self, identity: &Identity) -> Result<Vec<WebhookStatus>, ServiceError> {
        identity.require(Scope::Read)?;
        let counts = self
            .store()?
            .delivery_counts(Some(identity.tenant().as_str()))?;
        let webhooks = self.webhooks()?;
        Ok(webhooks
            .iter()
            .map(|webhook| WebhookStatus {
                name: webhook.name.clone(),
                declared_in: webhook.declared_in.clone(),
                target: match &webhook.target {
                    WebhookTarget::Url { url, .. } => url.clone(),
                    WebhookTarget::Command { command, .. } => command.join(" "),
                },
                events: webhook.events.iter().map(|event| event.as_str()).collect(),
                is_enabled: webhook.is_enabled,
                counts: counts
                    .iter()
                    .find(|counts| {
                        (&counts.webhook, &counts.declared_in)
                            == (&webhook.name, &webhook.declared_in)
                    })
                    .cloned()
                    .unwrap_or_default(),
            })
            .collect())
    }

    /// The events of the identity's tenant for webhooks, the latest first.
    ///
    /// # Errors
    /// If the identity may not read, or there is none to list after.
    pub fn list_deliveries(
        &self,
        identity: &Identity,
        query: &DeliveryQuery,
    ) -> Result<Vec<WebhookDelivery>, ServiceError> {
        identity.require(Scope::Read)?;
        if let Some(after) = &query.after {
            self.show_delivery(identity, after)?;
        }
        Ok(self.store()?.deliveries(&DeliveryFilter {
            tenant: Some(identity.tenant().to_string()),
            webhook: query.webhook.clone(),
            state: query.state,
            before: query.after.clone(),
            limit: query.limit,
        })?)
    }

    /// The event with that id.
    ///
    /// # Errors
    /// If the identity may not read, or there is none.
    pub fn show_delivery(
        &self,
        identity: &Identity,
        id: &str,
    ) -> Result<WebhookDelivery, ServiceError> {
        identity.require(Scope::Read)?;
        let found = self.store()?.delivery(identity.tenant().as_str(), id)?;
        found.ok_or_else(|| no_such_delivery(id))
    }

    /// What is sent for an event, as a receiver that is configured like its webhook reads it.
    ///
    /// # Errors
    /// If the identity may not read, there is no such event, or what it is about was purged.
    pub fn delivery_message(&self, identity: &Identity, id: &str) -> Result<Value, ServiceError> {
        let delivery = self.show_delivery(identity, id)?;
        let webhooks = self.webhooks()?;
        let webhook = webhooks.iter().find(|webhook| {
            (&webhook.name, &webhook.declared_in) == (&delivery.webhook, &delivery.declared_in)
        });
        let (server, has_arguments) = match webhook {
            Some(webhook) => (webhook.server.as_deref(), webhook.has_arguments),
            None => (None, false),
        };
        let store = self.store()?;
        message::message(&store, &delivery, server, has_arguments)
    }

    /// Sends an event again, now: one that was given up, or that waits for its next attempt.
    ///
    /// # Errors
    /// If the identity is no operator, there is no such event, or it was received.
    pub fn retry_delivery(
        &self,
        identity: &Identity,
        id: &str,
    ) -> Result<WebhookDelivery, ServiceError> {
        identity.require(Scope::Operate)?;
        let retried = self
            .store()?
            .retry_delivery(identity.tenant().as_str(), id)?;
        let retried = retried.ok_or_else(|| no_such_delivery(id))?;
        match retried.state {
            DeliveryState::Delivered => {
                let message = format!("the event `{id}` was received");
                Err(ServiceError::conflict("already_delivered", message))
            }
            DeliveryState::Pending | DeliveryState::Dead => Ok(retried),
        }
    }

    /// A new secret for a webhook.
    ///
    /// # Errors
    /// If the system has no randomness.
    pub fn new_webhook_secret(&self) -> Result<String, ServiceError> {
        WebhookSecrets::generate().map_err(|error| ServiceError::failed(error.to_string()))
    }
}

fn no_such_delivery(id: &str) -> ServiceError {
    let message = format!("there is no event `{id}` of a webhook");
    ServiceError::not_found("no_such_delivery", message)
        .with_hint("`windlass webhooks list` lists them")
}

fn whole_path(path: &Path) -> String {
    let absolute = std::path::absolute(path);
    absolute.map_or_else(
        |_| path.display().to_string(),
        |path| path.display().to_string(),
    )
}

/// The time some while after another one.
fn after(at: Timestamp, wait: std::time::Duration) -> Timestamp {
    let wait = i64::try_from(wait.as_micros()).unwrap_or(i64::MAX);
    Timestamp::from_microseconds(at.as_microseconds().saturating_add(wait))
}
