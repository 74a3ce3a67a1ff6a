//! The sender: takes what is due for the webhooks of the configuration and sends it, until it is stopped. It works beside
//! the worker's runs, so that a slow receiver slows nothing but its own webhook.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use reqwest::Client;
use tokio::task::{Id, JoinSet};
use tokio_util::sync::CancellationToken;
use windlass_config::WebhookSettings;
use windlass_keys::{hex, random_bytes};
use windlass_store::{DeliveryClaim, DeliveryOutcome, Store, WebhookDelivery, WebhookRegistration};

use super::receiver::{FailedAttempt, client, send};
use super::{after, message, whole_path};
use crate::error::{ErrorKind, ServiceError};
use crate::options::Notice;
use crate::service::{Service, blocking};

/// How often it looks for events.
const PERIOD: Duration = Duration::from_millis(200);

/// How often it reads the configuration, and announces what will expire.
const CONFIGURATION_PERIOD: Duration = Duration::from_secs(2);
const ANNOUNCE_PERIOD: Duration = Duration::from_secs(1);

/// How many events are sent to a webhook at the same time.
const AT_ONCE: u32 = 4;

/// How much longer than an attempt a claim lasts.
const LEASE_MARGIN: Duration = Duration::from_secs(5);

/// By how much each wait is longer than the one before, and the longest one.
const GROWTH: u32 = 4;
const LONGEST_WAIT: Duration = Duration::from_secs(12 * 3_600);

/// How long attempts under way may take when it stops.
const STOP_TIMEOUT: Duration = Duration::from_secs(3);

/// How long it waits after the store or the configuration could not be used.
const BACK_OFF: Duration = Duration::from_secs(5);

/// Sends the events of a store to the webhooks of the configuration.
pub(crate) struct WebhookSender {
    service: Service,
    store: Arc<Store>,
    /// The tenant whose events it sends; all without one.
    tenant: Option<String>,
    /// Identifies its claims.
    worker: String,
    webhooks: Vec<WebhookSettings>,
    /// Why the changed configuration was last refused.
    refused: Option<String>,
    client: Option<Client>,
    sending: JoinSet<()>,
    /// The webhook of each attempt under way.
    targets: HashMap<Id, (String, String)>,
}

impl WebhookSender {
    pub(crate) fn new(
        service: &Service,
        store: &Arc<Store>,
        tenant: Option<String>,
    ) -> Result<Self, ServiceError> {
        let random = random_bytes().map_err(|error| ServiceError::failed(error.to_string()))?;
        Ok(Self {
            service: service.clone(),
            store: Arc::clone(store),
            tenant,
            worker: hex::encode(random.get(..8).unwrap_or_default()),
            webhooks: Vec::new(),
            refused: None,
            client: None,
            sending: JoinSet::new(),
            targets: HashMap::new(),
        })
    }

    /// Sends events until `stop`, or until nothing is due after `idle`.
    pub(crate) async fn run(mut self, stop: CancellationToken, idle: CancellationToken) {
        let mut configured: Option<Instant> = None;
        let mut announced: Option<Instant> = None;
        let mut has_failed = false;
        while !stop.is_cancelled() {
            let is_last = idle.is_cancelled();
            let worked = self.look(&mut configured, &mut announced).await;
            let pause = match &worked {
                Ok(_) => PERIOD,
                Err(_) => BACK_OFF,
            };
            match worked {
                Ok(found) => {
                    has_failed = false;
                    if is_last && !found && self.sending.is_empty() {
                        return;
                    }
                }
                Err(error) => {
                    if !has_failed {
                        self.service.notify(&Notice::Warning(format!(
                            "warning: no event is sent to webhooks, trying again: {error}"
                        )));
                    }
                    has_failed = true;
                    if is_last {
                        return;
                    }
                }
            }
            tokio::select! {
                Some(done) = self.sending.join_next_with_id() => self.forget(done),
                () = stop.cancelled() => {}
                () = idle.cancelled(), if !is_last => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
        // What is not finished is sent again when its claim has ended.
        let all = async { while self.sending.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(STOP_TIMEOUT, all).await;
        self.sending.shutdown().await;
    }

    fn forget(&mut self, done: Result<(Id, ()), tokio::task::JoinError>) {
        let task = match &done {
            Ok((task, ())) => *task,
            Err(error) => error.id(),
        };
        self.targets.remove(&task);
    }

    /// Takes what is due. Returns whether there was something.
    async fn look(
        &mut self,
        configured: &mut Option<Instant>,
        announced: &mut Option<Instant>,
    ) -> Result<bool, ServiceError> {
        while let Some(done) = self.sending.try_join_next_with_id() {
            self.forget(done);
        }
        if is_due(*configured, CONFIGURATION_PERIOD) {
            self.configure().await?;
            *configured = Some(Instant::now());
        }
        if self.webhooks.is_empty() {
            return Ok(false);
        }
        if is_due(*announced, ANNOUNCE_PERIOD) {
            let (service, store) = (self.service.clone(), Arc::clone(&self.store));
            blocking(move || Ok(store.announce_expiring(service.now())?)).await?;
            *announced = Some(Instant::now());
        }
        let mut found = false;
        for webhook in self.webhooks.clone() {
            found |= webhook.is_enabled && self.take(&webhook).await?;
        }
        Ok(found)
    }

    /// Follows the configuration.
    async fn configure(&mut self) -> Result<(), ServiceError> {
        let (service, store) = (self.service.clone(), Arc::clone(&self.store));
        let (webhooks, reloaded) = blocking(move || {
            let reloaded = service.reload_if_changed();
            let (project, webhooks) = (service.project()?, service.webhooks()?);
            let registrations: Vec<WebhookRegistration> = webhooks
                .iter()
                .map(|webhook| WebhookRegistration {
                    declared_in: webhook.declared_in.clone(),
                    name: webhook.name.clone(),
                    events: webhook.events.iter().map(|event| event.as_str()).collect(),
                    expiring: webhook.expiring,
                })
                .collect();
            let files = project.files.files.iter();
            let files: Vec<String> = files.map(|(_, path)| whole_path(path)).collect();
            store.register_webhooks(&registrations, &files, service.now())?;
            Ok((webhooks, reloaded))
        })
        .await?;
        self.webhooks = webhooks;
        match reloaded {
            // Until the file changes again, it is refused each time.
            Some(Notice::ConfigurationRefused { reason }) => {
                if self.refused.as_ref() != Some(&reason) {
                    let reason = reason.clone();
                    self.service
                        .notify(&Notice::ConfigurationRefused { reason });
                }
                self.refused = Some(reason);
            }
            Some(reloaded) => {
                self.service.notify(&reloaded);
                self.refused = None;
            }
            None => self.refused = None,
        }
        if self.client.is_none() && !self.webhooks.is_empty() {
            self.client = Some(client().map_err(ServiceError::failed)?);
        }
        Ok(())
    }

    /// Takes what is due for a webhook, and begins to send it.
    async fn take(&mut self, webhook: &WebhookSettings) -> Result<bool, ServiceError> {
        let key = (webhook.declared_in.clone(), webhook.name.clone());
        let under_way = self.targets.values().filter(|other| **other == key).count();
        let limit = AT_ONCE.saturating_sub(u32::try_from(under_way).unwrap_or(AT_ONCE));
        let Some(client) = self.client.clone().filter(|_| limit > 0) else {
            return Ok(false);
        };
        let claim = DeliveryClaim {
            worker: self.worker.clone(),
            declared_in: key.0.clone(),
            webhook: key.1.clone(),
            tenant: self.tenant.clone(),
            lease: webhook.timeout + LEASE_MARGIN,
            limit,
        };
        let (service, store) = (self.service.clone(), Arc::clone(&self.store));
        let due = blocking(move || Ok(store.claim_deliveries(&claim, service.now())?)).await?;
        let found = !due.is_empty();
        for delivery in due {
            let attempt = Attempt {
                service: self.service.clone(),
                store: Arc::clone(&self.store),
                worker: self.worker.clone(),
                webhook: webhook.clone(),
                delivery,
            };
            let task = self.sending.spawn(attempt.make(client.clone()));
            self.targets.insert(task.id(), key.clone());
        }
        Ok(found)
    }
}

fn is_due(last: Option<Instant>, period: Duration) -> bool {
    last.is_none_or(|at| at.elapsed() >= period)
}

/// An attempt to send an event.
struct Attempt {
    service: Service,
    store: Arc<Store>,
    worker: String,
    webhook: WebhookSettings,
    delivery: WebhookDelivery,
}

impl Attempt {
    async fn make(self, client: Client) {
        let outcome = self.outcome(&client).await;
        let Self {
            service,
            store,
            worker,
            webhook,
            delivery,
        } = self;
        let (id, name, attempts) = (delivery.id, webhook.name, delivery.attempts);
        let event = delivery.event;
        match &outcome {
            DeliveryOutcome::Received => {
                tracing::debug!(webhook = name, id, event, attempts, "an event was received");
            }
            DeliveryOutcome::Again(reason, at) => {
                tracing::info!(webhook = name, id, event, attempts, reason, next = %at, "an event was not received");
            }
            DeliveryOutcome::Dead(reason) => {
                tracing::warn!(
                    webhook = name,
                    id,
                    event,
                    attempts,
                    reason,
                    "an event was given up"
                );
                service.notify(&Notice::Warning(format!(
                    "warning: the webhook `{name}` did not receive `{event}`: {reason}\n\
                     hint: when that is fixed: windlass webhooks retry {id}"
                )));
            }
        }
        let number = delivery.number;
        let settled = blocking(move || {
            Ok(store.settle_delivery(number, &worker, &outcome, service.now())?)
        });
        // It is sent again when the claim has ended.
        if let Err(error) = settled.await {
            tracing::error!(%error, webhook = name, id, "what became of an event is not recorded");
        }
    }

    async fn outcome(&self, client: &Client) -> DeliveryOutcome {
        let failure = match self.send(client).await {
            Ok(()) => return DeliveryOutcome::Received,
            Err(failure) => failure,
        };
        let FailedAttempt {
            reason,
            wait,
            is_final,
        } = failure;
        if is_final || self.delivery.attempts >= self.webhook.attempts {
            return DeliveryOutcome::Dead(reason);
        }
        let delay = delay(self.webhook.first_retry, self.delivery.attempts);
        let delay = delay.max(wait.unwrap_or_default());
        DeliveryOutcome::Again(reason, after(self.service.now(), delay))
    }

    async fn send(&self, client: &Client) -> Result<(), FailedAttempt> {
        let (store, delivery) = (Arc::clone(&self.store), self.delivery.clone());
        let (server, has_arguments) = (self.webhook.server.clone(), self.webhook.has_arguments);
        let made =
            blocking(move || message::message(&store, &delivery, server.as_deref(), has_arguments));
        let body = made.await.map_err(|error| FailedAttempt {
            is_final: error.kind() == ErrorKind::NotFound,
            ..FailedAttempt::from(error.to_string())
        })?;
        let isolation = match self.service.project() {
            Ok(project) => self.service.isolation(project.configuration()),
            Err(error) => return Err(error.to_string().into()),
        };
        send(
            client,
            &isolation,
            &self.webhook,
            &self.delivery.id,
            self.service.now(),
            &body.to_string(),
        )
        .await
    }
}

/// How long to wait after this many attempts. Up to a tenth more, so that many events do not come at once.
fn delay(first: Duration, attempts: u32) -> Duration {
    let growth = GROWTH.saturating_pow(attempts.saturating_sub(1));
    let delay = first.saturating_mul(growth).min(LONGEST_WAIT);
    let random = random_bytes().map_or(0, |bytes| bytes.first().copied().unwrap_or(0));
    delay + delay / 10 * u32::from(random) / u32::from(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_up_to_half_a_day() {
        let first = Duration::from_secs(5);
        let seconds: Vec<u64> = (1..=10)
            .map(|attempts| delay(first, attempts).as_secs())
            .collect();
        for (found, least) in seconds.iter().zip([5, 20, 80, 320, 1_280, 5_120, 20_480]) {
            assert!(
                (least..=least + least / 10 + 1).contains(found),
                "{seconds:?}"
            );
        }
        let longest = LONGEST_WAIT.as_secs();
        assert!(
            (longest..=longest + longest / 10).contains(&seconds[9]),
            "{seconds:?}"
        );
    }
}
