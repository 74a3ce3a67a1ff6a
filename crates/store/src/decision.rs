//! Decisions of approvers who are enrolled: they are signed when they are stored, and checked when they are stored and
//! again before the call starts. The list of approvers is never in the database.

use std::fmt;
use std::sync::Arc;

use windlass_core::approval::{
    Approval, ApprovalOutcome, Attestation, Decided, DecisionMeans, Digest, PersonDecision,
    Principal, Signer,
};
use windlass_keys::{ApproverKey, ApproverList, InstallationKey, hex};
use windlass_spec::{CallId, SecurityLevel};

use crate::error::Error;
use crate::store::Store;

/// A decision about a question.
#[derive(Debug, Clone, PartialEq)]
pub struct NewDecision {
    /// The call that the question is about.
    pub call: CallId,
    /// The digest of what the approver was shown.
    pub digest: Option<Digest>,
    /// The decision.
    pub decision: PersonDecision,
}

/// Signs decisions for an approver who is authenticated.
#[derive(Clone)]
pub struct DecisionSigner {
    pub(crate) attestation: Attestation,
    key: Key,
}

#[derive(Clone)]
enum Key {
    Approver(Arc<ApproverKey>),
    Server(Arc<InstallationKey>),
}

impl fmt::Debug for DecisionSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DecisionSigner")
            .field("attestation", &self.attestation)
            .finish_non_exhaustive()
    }
}

impl DecisionSigner {
    /// Signs with the approver's own key.
    #[must_use]
    pub const fn of_approver(key: Arc<ApproverKey>, means: DecisionMeans) -> Self {
        Self {
            attestation: Attestation::new(Signer::Approver, means),
            key: Key::Approver(key),
        }
    }

    /// Signs with the key of the installation for approvers that its server has authenticated.
    #[must_use]
    pub const fn of_server(key: Arc<InstallationKey>, means: DecisionMeans) -> Self {
        Self {
            attestation: Attestation::new(Signer::Server, means),
            key: Key::Server(key),
        }
    }

    /// The same for an approver who decides for another one.
    #[must_use]
    pub fn on_behalf_of(mut self, approver: Option<Principal>) -> Self {
        self.attestation.on_behalf_of = approver;
        self
    }

    /// The signature of a text in hexadecimal digits.
    pub(crate) fn sign(&self, text: &str) -> String {
        let signature = match &self.key {
            Key::Approver(key) => key.sign(text.as_bytes()),
            Key::Server(key) => key.sign(text.as_bytes()),
        };
        hex::encode(&signature)
    }
}

impl Store {
    /// The approvers who are enrolled; `None` if this store has no list of them, and every principal may decide.
    ///
    /// # Errors
    /// If the list cannot be used.
    pub fn approvers(&self) -> Result<Option<Vec<Principal>>, Error> {
        let Some(list) = self.approver_list()? else {
            return Ok(None);
        };
        let approvers = list.into_iter().flat_map(|list| list.approvers);
        let names = approvers.filter_map(|approver| Principal::new(approver.name).ok());
        Ok(Some(names.collect()))
    }

    /// Checks that those who decided a question are enrolled approvers and signed their decisions.
    ///
    /// # Errors
    /// If one of them did not, or the list of approvers cannot be used.
    pub fn check_decisions(&self, approval: &Approval) -> Result<(), Error> {
        match approval.outcome() {
            None
            | Some(
                ApprovalOutcome::Rejected { .. }
                | ApprovalOutcome::Expired
                | ApprovalOutcome::Cancelled,
            ) => return Ok(()),
            Some(
                ApprovalOutcome::Run { .. }
                | ApprovalOutcome::Responded(_)
                | ApprovalOutcome::Answered(_)
                | ApprovalOutcome::Done(_),
            ) => {}
        }
        let Some(list) = self.approver_list()? else {
            return Ok(());
        };
        // Before a result was supplied in place of the tool, somebody may have approved: that has no effect then.
        let last = approval.decisions().last();
        let is_approved = last.is_some_and(|last| last.decision.is_approval());
        let counted = approval.decisions().iter().rev();
        for decided in counted.take(if is_approved { usize::MAX } else { 1 }) {
            check(list.as_ref(), approval, decided)?;
        }
        Ok(())
    }

    /// Checks a decision that was just applied.
    pub(crate) fn check_decision(
        list: Option<&Option<ApproverList>>,
        approval: &Approval,
    ) -> Result<(), Error> {
        let last = approval.decisions().last();
        let last = last.filter(|last| !matches!(last.decision, PersonDecision::Reject { .. }));
        match (list, last) {
            (Some(list), Some(last)) => check(list.as_ref(), approval, last),
            _ => Ok(()),
        }
    }

    /// The list of approvers: `None` if this store uses none, `Some(None)` if it does not exist yet.
    pub(crate) fn approver_list(&self) -> Result<Option<Option<ApproverList>>, Error> {
        match &self.approvers {
            Some(approvers) => Ok(Some(approvers.read().map_err(Error::from)?)),
            None => Ok(None),
        }
    }
}

/// Checks that an enrolled approver signed a decision. Without a signature, a decision counts only if question and
/// decision are from before there were approvers, and only where one approver suffices.
fn check(list: Option<&ApproverList>, approval: &Approval, decided: &Decided) -> Result<(), Error> {
    let refused = |reason: String| {
        Err(Error::NotProven {
            call: approval.call().clone(),
            reason,
        })
    };
    let by = &decided.by;
    let (at, asked_at) = (decided.at, approval.request().asked_at);
    let Some(list) = list else {
        return refused("there is no list of approvers yet".to_owned());
    };
    if at < asked_at {
        return refused(format!(
            "it was made at {at}, before it was asked for at {asked_at}: the clock went backwards"
        ));
    }
    let Some(proof) = &decided.proof else {
        let is_older = at.as_microseconds() < list.since;
        return match is_older && !approval.needs_several() {
            true => Ok(()),
            false => refused(format!(
                "`{by}` did not sign it with the key of an approver"
            )),
        };
    };
    let Some(approver) = list.find(by.as_str()) else {
        return refused(format!("`{by}` is not an approver of this installation"));
    };
    let attestation = &proof.attestation;
    let key = match attestation.signer {
        Signer::Approver => approver.key,
        Signer::Server => Some(list.installation),
    };
    let text = approval.signed_text(decided);
    let signature: Option<[u8; 64]> = hex::decode(&proof.signature);
    let is_signed = key
        .zip(signature)
        .is_some_and(|(key, signature)| key.has_signed(text.as_bytes(), &signature));
    if !is_signed {
        return refused(format!("its signature is not one of `{by}`"));
    }
    let is_critical = approval
        .question()
        .authorize()
        .is_some_and(|call| call.security_level == SecurityLevel::Critical);
    if attestation.means == DecisionMeans::Unattended && !approver.unattended {
        return refused(format!(
            "the key of `{by}` must not approve what nobody looked at"
        ));
    }
    if is_critical && attestation.means == DecisionMeans::OwnCall {
        return refused(format!("`{by}` made the call and cannot approve it"));
    }
    if let Some(from) = &attestation.on_behalf_of {
        let may = list.may_decide_for(by.as_str(), from.as_str(), at.as_microseconds());
        if !may {
            return refused(format!("`{from}` has not delegated decisions to `{by}`"));
        }
    }
    Ok(())
}
