//! Authorizations that people gave for calls that are yet to be made. Each covers one exact call, once.

use windlass_spec::{CallId, SecurityLevel};

use super::event::Event;
use crate::approval::{Digest, GroupQuorum};
use crate::gate::{ApprovalTerms, PriorApproval};

/// An authorization for a call that is yet to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Grant {
    call: CallId,
    digest: Digest,
    security_level: SecurityLevel,
    /// The groups that agreed.
    groups: Vec<GroupQuorum>,
}

impl Grant {
    /// What a call of `request_authorization` led to: the call of that digest may be made, as far as that
    /// much care is enough.
    pub(super) fn new(
        call: CallId,
        digest: Digest,
        security_level: SecurityLevel,
        groups: Vec<GroupQuorum>,
    ) -> Self {
        Self {
            call,
            digest,
            security_level,
            groups,
        }
    }
}

/// The authorizations that no call has used yet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Grants {
    unused: Vec<Grant>,
}

impl Grants {
    /// Applies an event: a decision uses up the authorization it relies on. `given` is the authorization
    /// that the event gives.
    pub(super) fn apply(&mut self, event: &Event, given: Option<Grant>) {
        if let Event::Decided { decision, .. } = event
            && let Some(PriorApproval::Request(requested_by)) = decision.covered_by()
        {
            self.unused.retain(|grant| grant.call != *requested_by);
        }
        self.unused.extend(given);
    }

    /// The call of `request_authorization` that led to an authorization for such a call.
    pub(super) fn covering(
        &self,
        digest: Option<Digest>,
        security_level: SecurityLevel,
        terms: &ApprovalTerms,
    ) -> Option<&CallId> {
        let covers = |grant: &&Grant| {
            Some(grant.digest) == digest
                && grant.security_level >= security_level
                && terms.is_covered_by(&grant.groups)
        };
        self.unused.iter().find(covers).map(|grant| &grant.call)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};
    use windlass_spec::{Timestamp, ToolName};

    use super::*;

    fn digest(tool: &str) -> Digest {
        Digest::of_call(&ToolName::new(tool).unwrap(), &Map::new())
    }

    /// A decision that relies on the authorization that a call led to.
    fn decided_by(requested_by: &str) -> Event {
        let decision = json!({
            "verdict": "allow",
            "stage": "policy",
            "covered_by": {"request": requested_by},
        });
        Event::Decided {
            call: "r1:2:0".parse().unwrap(),
            decision: serde_json::from_value(decision).unwrap(),
            at: Timestamp::from_microseconds(0),
        }
    }

    #[test]
    fn grant_covers_its_call_until_it_is_used() {
        let asked: CallId = "r1:1:0".parse().unwrap();
        let mut grants = Grants::default();
        let none = ApprovalTerms::default();
        let (send, level) = (digest("send"), SecurityLevel::Medium);
        let time_passed = Event::TimePassed {
            at: Timestamp::from_microseconds(0),
        };
        grants.apply(
            &time_passed,
            Some(Grant::new(asked.clone(), send, level, Vec::new())),
        );
        assert_eq!(grants.covering(Some(send), level, &none), Some(&asked));
        assert_eq!(
            grants.covering(Some(send), SecurityLevel::High, &none),
            None
        );
        assert_eq!(grants.covering(Some(digest("note")), level, &none), None);
        assert_eq!(grants.covering(None, level, &none), None);
        grants.apply(&decided_by("r1:1:1"), None);
        assert_eq!(grants.covering(Some(send), level, &none), Some(&asked));
        grants.apply(&decided_by("r1:1:0"), None);
        assert_eq!(grants.covering(Some(send), level, &none), None);
    }
}
