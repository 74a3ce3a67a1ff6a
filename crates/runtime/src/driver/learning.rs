//! Recalls strategies for a model, and learns from runs that are over.

use windlass_core::durable::Durability;
use windlass_core::run::{Event, Run};
use windlass_model::ModelClient;
use windlass_store::UsagePurpose;

use super::{Drive, DriveError, Driver, MAX_LEARNED_TURNS};
use crate::learning::{Learned, learn, recall};
use crate::money::MeteredModel;
use crate::progress::Progress;

impl Driver {
    /// Whether runs that are over change a playbook.
    pub(super) fn is_learning(&self) -> bool {
        self.playbooks.is_some() && self.crew.learns()
    }

    /// Learns from a run that is over: updates the playbook of its domain, if its crew learns. Errors
    /// become warnings for the watcher and do not change the run.
    pub async fn learn(&self, run: &Run) -> Option<Learned> {
        if run.turn_count() > MAX_LEARNED_TURNS {
            return None;
        }
        let playbooks = self.playbooks.as_ref()?;
        let intake = self.crew.intake();
        let learning = intake
            .learning
            .as_ref()
            .filter(|learning| learning.learns)?;
        let who = self.durable.identity().ok();
        let member = self.crew.get(run.agent().name());
        let model = member.zip(who.as_ref()).map(|(member, who)| MeteredModel {
            model: &*member.model,
            money: &intake.money,
            durable: &*self.durable,
            who,
            agent: run.agent().name(),
            run: run.id(),
            purpose: UsagePurpose::Learning,
        });
        let model = model.as_ref().map(|model| model as &dyn ModelClient);
        let isolation = self.isolation();
        let learned = learn(
            &**playbooks,
            learning,
            run,
            model,
            &isolation,
            self.durable.now(),
        );
        match learned.await {
            Ok(learned) => {
                for warning in learned.iter().flat_map(|learned| &learned.warnings) {
                    (self.watch)(run.id(), Progress::Warning(warning));
                }
                learned
            }
            Err(error) => {
                (self.watch)(run.id(), Progress::Warning(&error.to_string()));
                None
            }
        }
    }
}

impl Drive<'_> {
    /// Recalls strategies before the model is first asked. Returns true if there are any, because the
    /// request then changes.
    pub(super) async fn recall(&mut self) -> Result<bool, DriveError> {
        if std::mem::replace(&mut self.has_recalled, true) {
            return Ok(false);
        }
        let is_new = self.run.turns().is_empty() && self.run.recalled().is_none();
        let intake = self.driver.crew.intake();
        let (Some(playbooks), Some(learning)) = (&self.driver.playbooks, &intake.learning) else {
            return Ok(false);
        };
        // A task that is a single call asks no model.
        if !is_new || self.run.task().call.is_some() || learning.count == 0 {
            return Ok(false);
        }
        let warn = |warning: &str| {
            (self.driver.watch)(self.run.id(), Progress::Warning(warning));
        };
        let strategies = match recall(&**playbooks, learning, &self.run, &self.rules).await {
            Ok((strategies, problems)) => {
                problems.iter().for_each(|problem| warn(problem));
                strategies
            }
            Err(error) => {
                warn(&error.to_string());
                return Ok(false);
            }
        };
        if strategies.is_empty() {
            return Ok(false);
        }
        let at = self.driver.durable.now();
        let event = Event::Recalled { strategies, at };
        self.record(event, Durability::Relaxed).await?;
        Ok(true)
    }
}
