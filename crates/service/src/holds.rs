//! Holds: calls that wait out their undo window before they run.

use windlass_core::approval::{Hold, HoldStatus};
use windlass_spec::CallId;
use windlass_store::HoldFilter;

use crate::call_ids::{Candidate, Sought, pick};
use crate::error::ServiceError;
use crate::identity::{Identity, Scope};
use crate::service::Service;

/// What a person does about a held call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldChange {
    /// It never runs.
    Undo,
    /// It need not wait any longer.
    Release,
}

impl Service {
    /// The held calls of the identity's tenant, the oldest first; with `all`, also those that are over.
    ///
    /// # Errors
    /// If the identity may not read.
    pub fn list_holds(&self, identity: &Identity, all: bool) -> Result<Vec<Hold>, ServiceError> {
        identity.require(Scope::Read)?;
        let filter = HoldFilter {
            tenant: Some(identity.tenant().as_str().to_owned()),
            ..HoldFilter::default()
        };
        let mut holds = self.store()?.holds(&filter)?;
        holds.retain(|hold| all || hold.status().is_open());
        Ok(holds)
    }

    /// The held call with an id: of the call, of its run, or a part of either that matches only one.
    ///
    /// # Errors
    /// If the identity may not read, or the id matches no held call or several.
    pub fn show_hold(&self, identity: &Identity, id: &str) -> Result<Hold, ServiceError> {
        let call = self.find_hold(identity, id)?;
        Ok(self.store()?.hold(&call)?)
    }

    /// Undoes or releases a held call. `id` is the id of the call or of its run, or a part of either that
    /// matches only one.
    ///
    /// # Errors
    /// If the identity may not approve, the id matches no held call or several, or it is too late.
    pub fn change_hold(
        &self,
        identity: &Identity,
        id: &str,
        change: HoldChange,
    ) -> Result<Hold, ServiceError> {
        identity.require(Scope::Approve)?;
        let call = self.find_hold(identity, id)?;
        let (store, now) = (self.store()?, self.now());
        Ok(match change {
            HoldChange::Undo => store.undo(&call, identity.person(), now)?,
            HoldChange::Release => store.release(&call, identity.person(), now)?,
        })
    }

    fn find_hold(&self, identity: &Identity, id: &str) -> Result<CallId, ServiceError> {
        let sought = Sought {
            word: "no_such_hold",
            what: "held call",
            listed_by: "`windlass holds list --all` lists all held calls",
        };
        let all = self.list_holds(identity, true)?;
        let candidates = all.into_iter().map(|hold| Candidate {
            call: hold.call().clone(),
            is_open: hold.status() == HoldStatus::Held,
        });
        pick(id, candidates, &sought)
    }
}
