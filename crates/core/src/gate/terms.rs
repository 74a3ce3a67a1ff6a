//! What the policies demand of an approval: which groups have to agree, how long they have, and who decides if they do
//! not. Groups are resolved to their members when the gate decides.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use windlass_policy::GroupDemand;
use windlass_spec::Timestamp;

use crate::approval::{Escalation, GroupQuorum, Principal, Quorum, Request};

/// The members of the groups of approvers, by the name of the group.
pub type ApproverGroups = BTreeMap<String, Vec<Principal>>;

/// What the policies demand of an approval.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalTerms {
    /// The groups that have to agree, all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupTerms>,
    /// After how many seconds the question expires, if that is not as usual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_seconds: Option<u64>,
}

/// How many members of a group have to agree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupTerms {
    /// The name of the group.
    pub group: String,
    /// How many.
    pub count: usize,
    /// Its members.
    pub members: Vec<Principal>,
    /// Who may decide too, if the group does not in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalation: Option<EscalationTerms>,
}

/// Who may decide too after some time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EscalationTerms {
    /// The name of the group.
    pub group: String,
    /// Its members.
    pub members: Vec<Principal>,
    /// After how many seconds.
    pub after_seconds: u64,
}

impl ApprovalTerms {
    pub(super) fn new(decided: &windlass_policy::Decision, groups: &ApproverGroups) -> Self {
        let members = |group: &str| groups.get(group).cloned().unwrap_or_default();
        let terms = |demand: &GroupDemand| GroupTerms {
            group: demand.group.clone(),
            count: demand.count,
            members: members(&demand.group),
            escalation: demand
                .escalation
                .as_ref()
                .map(|(group, after)| EscalationTerms {
                    group: group.clone(),
                    members: members(group),
                    after_seconds: *after,
                }),
        };
        Self {
            groups: decided.approvers.iter().map(terms).collect(),
            expires_seconds: decided.expires_seconds,
        }
    }

    /// Whether nothing is demanded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether an approval of these groups satisfies the terms.
    pub(crate) fn is_covered_by(&self, agreed: &[GroupQuorum]) -> bool {
        self.groups.iter().all(|wanted| {
            let is_enough =
                |given: &GroupQuorum| given.group == wanted.group && given.count >= wanted.count;
            agreed.iter().any(is_enough)
        })
    }

    /// Puts the terms into the request of an approval that is asked for.
    pub(crate) fn apply(&self, request: &mut Request) {
        let asked_at = request.asked_at;
        if let Some(seconds) = self.expires_seconds {
            request.expires_at = after(asked_at, Duration::from_secs(seconds));
        }
        if self.groups.is_empty() && request.question.needed() < 2 {
            return;
        }
        let groups = self.groups.iter().map(|terms| GroupQuorum {
            group: terms.group.clone(),
            count: terms.count,
            members: terms.members.clone(),
            escalation: terms.escalation.as_ref().map(|escalation| Escalation {
                group: escalation.group.clone(),
                members: escalation.members.clone(),
                at: after(asked_at, Duration::from_secs(escalation.after_seconds)),
            }),
        });
        request.quorum = Some(Quorum {
            groups: groups.collect(),
        });
    }
}

fn after(at: Timestamp, duration: Duration) -> Timestamp {
    let duration = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
    Timestamp::from_microseconds(at.as_microseconds().saturating_add(duration))
}
