//! Evidence of what is stored: the check of journals, and the record of what administrators changed.

use serde::Serialize;
use serde_json::{Value, json};
use windlass_store::{
    AdminChange, Alteration, RecordedAdminChange, RunFilter, RunVerification, SignatureState,
};

use crate::error::ServiceError;
use crate::identity::{Identity, Scope};
use crate::service::Service;

/// The kind of the change that the configuration of an installation is another one.
const CONFIGURATION: &str = "configuration_changed";

/// What a check of journals found.
#[derive(Debug, Clone)]
pub struct JournalVerification {
    /// The runs.
    pub runs: Vec<RunVerification>,
    /// What was changed that belongs to no run. Checked only with all runs and for administrators, because it may be of
    /// any tenant.
    pub rest: Vec<Alteration>,
}

impl JournalVerification {
    /// Whether nothing was changed.
    #[must_use]
    pub fn is_unaltered(&self) -> bool {
        self.rest.is_empty() && self.runs.iter().all(|run| run.alterations.is_empty())
    }
}

/// The JSON of a checked run.
#[must_use]
pub fn verification_to_json(run: &RunVerification) -> Value {
    let (signature, unsigned_until) = match run.signature {
        SignatureState::Signed => ("signed", None),
        SignatureState::SignedFrom(last) => ("signed_later", Some(last)),
        SignatureState::Unsigned => ("unsigned", Some(run.events)),
    };
    json!({
        "run": run.run,
        "events": run.events,
        "purged_events": run.purged_events,
        "signature": signature,
        "unsigned_until": unsigned_until,
        "damage": run.damage,
        "alterations": run.alterations.iter().map(alteration_to_json).collect::<Vec<_>>(),
    })
}

/// The JSON of something that was changed outside Windlass.
#[must_use]
pub fn alteration_to_json(found: &Alteration) -> Value {
    json!({"place": found.place, "event": found.event, "reason": found.reason})
}

impl Service {
    /// Checks the journals of runs, or of all runs of the tenant and what belongs to no run.
    ///
    /// # Errors
    /// If the identity may not read, an id matches no run or several, or there is no key to check with. What was changed
    /// is in the result.
    pub fn verify_runs(
        &self,
        identity: &Identity,
        ids: &[String],
    ) -> Result<JournalVerification, ServiceError> {
        identity.require(Scope::Read)?;
        let store = self.store()?;
        let runs = match ids {
            [] => {
                let filter = RunFilter {
                    tenant: Some(identity.tenant().to_string()),
                    ..RunFilter::default()
                };
                let runs = store.runs(&filter)?.into_iter();
                runs.map(|summary| summary.run).collect::<Vec<_>>()
            }
            ids => ids
                .iter()
                .map(|id| Ok(store.find(identity.tenant().as_str(), id)?))
                .collect::<Result<Vec<_>, ServiceError>>()?,
        };
        let verified = runs.iter().map(|run| Ok(store.verify_run(run)?));
        Ok(JournalVerification {
            runs: verified.collect::<Result<Vec<_>, ServiceError>>()?,
            rest: match ids {
                [] if identity.has(Scope::Admin) => store.verify_rest()?,
                _ => Vec::new(),
            },
        })
    }

    /// Records a change by an administrator, such as a trusted project or an added approver. `subject` says what was
    /// changed, with digests of what it was changed to.
    ///
    /// # Errors
    /// If the record cannot be written.
    pub(crate) fn record_admin_change(
        &self,
        identity: &Identity,
        kind: &str,
        subject: impl Serialize,
    ) -> Result<(), ServiceError> {
        let subject = serde_json::to_value(subject)
            .map_err(|error| ServiceError::failed(error.to_string()))?;
        let change = AdminChange {
            kind: kind.to_owned(),
            by: Some(identity.principal().to_string()),
            at: self.now(),
            subject,
        };
        let store = self.store()?;
        store.record_admin_change(identity.tenant().as_str(), &change)?;
        Ok(())
    }

    /// The recorded changes by administrators of the tenant, in order.
    ///
    /// # Errors
    /// If the identity may not read, or the record was changed.
    pub fn admin_changes(
        &self,
        identity: &Identity,
    ) -> Result<Vec<RecordedAdminChange>, ServiceError> {
        identity.require(Scope::Read)?;
        Ok(self.store()?.admin_changes(identity.tenant().as_str())?)
    }

    /// Records the active configuration and policies if they are other ones than those recorded last.
    ///
    /// # Errors
    /// If the record cannot be written.
    pub(crate) fn record_configuration(
        &self,
        identity: &Identity,
        configuration: &str,
    ) -> Result<(), ServiceError> {
        let (store, tenant) = (self.store()?, identity.tenant().as_str());
        let last = store.last_admin_change(tenant, CONFIGURATION)?;
        let is_same = last.is_some_and(|last| last.change.subject["digest"] == configuration);
        if is_same {
            return Ok(());
        }
        let change = AdminChange {
            kind: CONFIGURATION.to_owned(),
            by: None,
            at: self.now(),
            subject: json!({"digest": configuration}),
        };
        store.record_admin_change(tenant, &change)?;
        Ok(())
    }
}
