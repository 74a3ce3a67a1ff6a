//! Retention: what is removed of ended runs, by a person or by the worker, and the legal holds that prevent it.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use serde_json::json;
use windlass_spec::{RunId, Timestamp};
use windlass_store::{
    AdminChange, Error, LegalHold, LegalHoldDecision, Purged, Retained, RetentionPlace,
    RetentionRound, Store,
};

use crate::error::ServiceError;
use crate::identity::{Identity, Scope};
use crate::service::Service;
use crate::traces::remove_trace;

/// The most runs that one round of the retention looks at.
const RUNS_OF_A_ROUND: u32 = 20;

/// A legal hold that was placed or lifted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LegalHoldChange {
    /// The outermost run. The hold covers the runs that work for it too.
    pub run: RunId,
    /// Whether anything changed: false if there was a hold already, or none to lift.
    pub changed: bool,
}

/// A legal hold as JSON.
#[must_use]
pub fn legal_hold_to_json(hold: &LegalHold) -> serde_json::Value {
    json!({
        "run": hold.run, "reason": hold.reason, "placed_by": hold.placed_by, "placed_at": hold.placed_at,
    })
}

impl Service {
    /// Removes the payloads of runs that ended longer ago than `age`, in the whole store.
    ///
    /// # Errors
    /// If the identity is not an administrator, or the store cannot be written.
    pub fn purge_runs(&self, identity: &Identity, age: Duration) -> Result<Purged, ServiceError> {
        identity.require(Scope::Admin)?;
        self.settle_conversations()?;
        let (store, directory) = (self.store()?, self.data_directory()?);
        let purged = store.purge_after(age, self.now(), &forget_files(&directory))?;
        if !purged.removed.is_empty() {
            let runs: Vec<&RunId> = purged.removed.iter().map(|removed| &removed.run).collect();
            self.record_admin_change(identity, "runs_purged", json!({"runs": runs}))?;
        }
        Ok(purged)
    }

    /// What [`Service::purge_runs`] would remove and keep. Nothing is changed.
    ///
    /// # Errors
    /// If the identity is not an administrator, or the store cannot be read.
    pub fn preview_purge(
        &self,
        identity: &Identity,
        age: Duration,
    ) -> Result<Purged, ServiceError> {
        identity.require(Scope::Admin)?;
        Ok(self.store()?.preview_purge(age, self.now())?)
    }

    /// Places legal holds on runs and the runs that work for them: nothing of them is removed until the holds are
    /// lifted. Recorded as a change by an administrator.
    ///
    /// # Errors
    /// If the identity is not an administrator, the reason is blank, an id matches no run or several, or the store cannot
    /// be written. Holds that were placed before the error stay.
    pub fn add_legal_holds(
        &self,
        identity: &Identity,
        runs: &[String],
        reason: &str,
    ) -> Result<Vec<LegalHoldChange>, ServiceError> {
        self.change_legal_holds(identity, runs, reason, |store, run, decision| {
            store.place_legal_hold(run, decision)
        })
    }

    /// Lifts the legal holds on runs. Recorded as a change by an administrator.
    ///
    /// # Errors
    /// As [`Service::add_legal_holds`].
    pub fn remove_legal_holds(
        &self,
        identity: &Identity,
        runs: &[String],
        reason: &str,
    ) -> Result<Vec<LegalHoldChange>, ServiceError> {
        self.change_legal_holds(identity, runs, reason, |store, run, decision| {
            store.lift_legal_hold(run, decision)
        })
    }

    /// The legal holds of the tenant that are in force, the latest first.
    ///
    /// # Errors
    /// If the identity may not read, or a hold was changed outside Windlass.
    pub fn legal_holds(&self, identity: &Identity) -> Result<Vec<LegalHold>, ServiceError> {
        identity.require(Scope::Read)?;
        Ok(self.store()?.legal_holds(identity.tenant().as_str())?)
    }

    fn change_legal_holds(
        &self,
        identity: &Identity,
        runs: &[String],
        reason: &str,
        change: impl Fn(&Store, &RunId, &LegalHoldDecision<'_>) -> Result<bool, Error>,
    ) -> Result<Vec<LegalHoldChange>, ServiceError> {
        identity.require(Scope::Admin)?;
        if reason.trim().is_empty() {
            let message = "the reason is empty";
            return Err(ServiceError::invalid("invalid_reason", message)
                .with_hint("write why the runs are kept, or why no longer"));
        }
        let (store, tenant) = (self.store()?, identity.tenant().as_str());
        // All ids are found before anything is changed.
        let found = runs.iter().map(|run| store.find(tenant, run));
        let found = found.collect::<Result<Vec<_>, _>>()?;
        let decision = LegalHoldDecision {
            tenant,
            by: identity.principal().as_str(),
            reason,
            at: self.now(),
        };
        let changed = found.into_iter().map(|run| {
            let changed = change(&store, &run, &decision)?;
            let outermost = run.as_str().split('.').next().unwrap_or_default();
            let run = RunId::new(outermost).unwrap_or(run);
            Ok(LegalHoldChange { run, changed })
        });
        changed.collect()
    }

    /// Removes what the configured retention does not keep any longer, of a bounded number of runs of the tenant, or of
    /// all. Returns where the next round begins; nothing if all runs were looked at.
    ///
    /// # Errors
    /// If the configuration or the store cannot be used.
    pub(crate) fn retain(
        &self,
        tenant: Option<&str>,
        place: RetentionPlace,
    ) -> Result<RetainedRound, ServiceError> {
        let retention = self.project()?.configuration().retention();
        let now = self.now();
        let before = |age: Option<Duration>| {
            let age = i64::try_from(age?.as_micros()).unwrap_or(i64::MAX);
            let before = now.as_microseconds().saturating_sub(age);
            Some(Timestamp::from_microseconds(before))
        };
        let round = RetentionRound {
            tenant: tenant.map(str::to_owned),
            payloads_before: before(retention.payloads),
            records_before: before(retention.audit),
            place,
            max_runs: RUNS_OF_A_ROUND,
            now,
        };
        self.settle_conversations()?;
        let (store, directory) = (self.store()?, self.data_directory()?);
        let retained = store.retain(&round, &forget_files(&directory))?;
        record_purged(&store, &retained, now)?;
        Ok(RetainedRound {
            has_removed: !retained.purged.removed.is_empty() || !retained.removed.is_empty(),
            next: retained.next,
        })
    }
}

/// What a round of the retention did.
pub(crate) struct RetainedRound {
    pub(crate) has_removed: bool,
    pub(crate) next: Option<RetentionPlace>,
}

/// Removes the files about a run before its payloads.
fn forget_files(directory: &Path) -> impl Fn(&RunId, &str, Option<&str>) -> Result<(), Error> + '_ {
    move |run, tenant, task| {
        remove_trace(directory, tenant, run, task)
            .map_err(|(path, error)| Error::file("remove", &path, error))
    }
}

/// Records which payloads the worker removed, for each tenant. No person did that.
fn record_purged(store: &Store, retained: &Retained, now: Timestamp) -> Result<(), ServiceError> {
    let mut by_tenant: BTreeMap<&str, Vec<&RunId>> = BTreeMap::new();
    for purged in &retained.purged.removed {
        by_tenant
            .entry(&purged.tenant)
            .or_default()
            .push(&purged.run);
    }
    for (tenant, runs) in by_tenant {
        let change = AdminChange {
            kind: "runs_purged".to_owned(),
            by: None,
            at: now,
            subject: json!({"runs": runs}),
        };
        store.record_admin_change(tenant, &change)?;
    }
    Ok(())
}
