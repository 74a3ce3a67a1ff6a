//! The serialized form of an approval. Deserializing replays the request and the decisions, so that an
//! approval that could not have been given is refused.

use serde::{Deserialize, Serialize, Serializer};
use windlass_spec::{RunId, Timestamp};

use super::{Approval, ApprovalError, ApprovalStatus, Decided, Digest, Request, TenantPrincipal};

impl Serialize for Approval {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Written<'a> {
            run: &'a RunId,
            #[serde(flatten)]
            request: &'a Request,
            digest: Digest,
            status: ApprovalStatus,
            #[serde(skip_serializing_if = "<[_]>::is_empty")]
            decisions: &'a [Decided],
            #[serde(skip_serializing_if = "Option::is_none")]
            settled_at: Option<Timestamp>,
        }
        let written = Written {
            run: self.run(),
            request: &self.request,
            digest: self.digest,
            status: self.status,
            decisions: &self.decisions,
            settled_at: self.settled_at,
        };
        written.serialize(serializer)
    }
}

/// A deserialized approval that is not checked yet.
#[derive(Deserialize)]
pub(super) struct RawApproval {
    run: RunId,
    #[serde(flatten)]
    request: Request,
    digest: Digest,
    status: ApprovalStatus,
    #[serde(default)]
    decisions: Vec<Decided>,
    #[serde(default)]
    settled_at: Option<Timestamp>,
}

impl TryFrom<RawApproval> for Approval {
    type Error = ApprovalError;

    /// Replays the request and the decisions.
    fn try_from(raw: RawApproval) -> Result<Self, ApprovalError> {
        let mut approval = Self::ask(raw.request)?;
        if raw.run != *approval.run() {
            let call = approval.call().clone();
            return Err(ApprovalError::OtherRun { run: raw.run, call });
        }
        if raw.digest != approval.digest {
            return Err(ApprovalError::OtherDigest);
        }
        let tenant = approval.request.principal.tenant.clone();
        for decided in &raw.decisions {
            let by = TenantPrincipal::new(tenant.clone(), decided.by.clone());
            let shown = approval.digest();
            let proof = decided.proof.as_ref();
            let attestation = proof.map(|proof| proof.attestation.clone());
            let decision = decided.decision.clone();
            approval
                .decide_attested(&by, attestation, decision, Some(&shown), decided.at)
                .map_err(|error| ApprovalError::Impossible(error.to_string()))?;
            if let Some(proof) = proof {
                approval.set_signature(proof.signature.clone());
            }
        }
        if let Some(at) = raw.settled_at {
            match raw.status {
                ApprovalStatus::Expired => _ = approval.expire(at),
                ApprovalStatus::Cancelled => _ = approval.cancel(at),
                ApprovalStatus::Pending | ApprovalStatus::Approved | ApprovalStatus::Rejected => {}
            }
        }
        let is_consistent = approval.status == raw.status
            && approval.settled_at == raw.settled_at
            && approval.decisions == raw.decisions;
        if is_consistent {
            Ok(approval)
        } else {
            let reason = format!(
                "its decisions make it {}, not {}",
                approval.status, raw.status
            );
            Err(ApprovalError::Impossible(reason))
        }
    }
}
