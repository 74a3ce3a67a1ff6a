//! Checks whether events reach the webhooks.

use windlass_config::WebhookTarget;

use super::HealthFinding;
use super::examination::Examination;
use crate::webhooks::secrets_of;

const ABOUT: &str = "webhooks";

impl Examination<'_> {
    pub(super) fn webhooks(&mut self) {
        let configuration = self.configured.configuration.clone();
        for webhook in configuration.webhooks() {
            let name = &webhook.name;
            let secret = match &webhook.target {
                WebhookTarget::Url { secret, .. } => secrets_of(secret).map(drop),
                WebhookTarget::Command { .. } => Ok(()),
            };
            self.add(match secret {
                Ok(()) => HealthFinding::ok(ABOUT, format!("`{name}` can be sent to")),
                Err(why) => HealthFinding::error(
                    ABOUT,
                    format!("`{name}`: {why}"),
                    "make a secret with `windlass webhooks secret`",
                ),
            });
        }
        let Ok(store) = self.service.store() else {
            return;
        };
        let mut pending = 0;
        for counts in store.delivery_counts(None).unwrap_or_default() {
            let name = &counts.webhook;
            pending += counts.pending;
            if counts.dead > 0 {
                self.add(HealthFinding::warning(
                    ABOUT,
                    format!("{} events were given up for `{name}`", counts.dead),
                    format!(
                        "`windlass webhooks list --webhook {name} --state dead` shows why; then `windlass webhooks retry --all`"
                    ),
                ));
            }
        }
        let has_worker = self.service.is_worked().unwrap_or(true);
        if pending > 0 && !has_worker {
            self.add(HealthFinding::warning(
                ABOUT,
                format!("{pending} events wait, and no worker sends them"),
                "start `windlass serve` or `windlass worker`",
            ));
        }
    }
}
