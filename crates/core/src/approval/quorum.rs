//! Who has to agree to a call: members of groups, and who else if they do not decide in time.

use serde::{Deserialize, Serialize};
use windlass_spec::Timestamp;

use super::Approval;
use super::decision::Decided;
use super::identity::Principal;

/// Who has to agree to a call. Where more than one approver is needed, the one that the run acts for does not count.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quorum {
    /// The groups that have to agree, all of them. If there is none, every approver may decide.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupQuorum>,
}

/// How many members of a group have to agree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupQuorum {
    /// The name of the group.
    pub group: String,
    /// How many.
    pub count: usize,
    /// Its members when it was asked.
    pub members: Vec<Principal>,
    /// Who may decide too, if the group does not in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalation: Option<Escalation>,
}

/// Who may decide too from some time on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Escalation {
    /// The name of the group.
    pub group: String,
    /// Its members when it was asked.
    pub members: Vec<Principal>,
    /// From when on.
    pub at: Timestamp,
}

impl GroupQuorum {
    /// Whether somebody may decide for the group at that time.
    #[must_use]
    pub fn admits(&self, who: &Principal, at: Timestamp) -> bool {
        let is_in = |members: &[Principal]| members.iter().any(|one| one.is_same_person(who));
        let escalated = self.escalation.as_ref();
        is_in(&self.members)
            || escalated.is_some_and(|escalation| at >= escalation.at && is_in(&escalation.members))
    }

    /// Everybody who may ever decide for the group.
    pub fn everybody(&self) -> impl Iterator<Item = &Principal> {
        let escalated = self.escalation.iter();
        let escalated = escalated.flat_map(|escalation| &escalation.members);
        self.members.iter().chain(escalated)
    }
}

/// Too few of those who could decide about a question.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct TooFewCandidates {
    /// The group, if members of one are needed.
    pub group: Option<String>,
    /// How many approvers are needed.
    pub needed: usize,
    /// How many of them there are.
    pub found: usize,
    /// Whether the one that the run acts for would be one, but does not count.
    pub is_requester_left_out: bool,
}

impl std::fmt::Display for TooFewCandidates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            group,
            needed,
            found,
            is_requester_left_out,
        } = self;
        let approvers = match needed {
            1 => "approver",
            _ => "approvers",
        };
        write!(f, "it needs {needed} {approvers}")?;
        if let Some(group) = group {
            write!(f, " of the group `{group}`")?;
        }
        match found {
            0 => write!(f, ", and there is none")?,
            1 => write!(f, ", and there is only one")?,
            found => write!(f, ", and there are only {found}")?,
        }
        match is_requester_left_out {
            true => f.write_str(" besides the user that the run acts for, who does not count"),
            false => Ok(()),
        }
    }
}

impl Approval {
    /// Whether more than one approver has to agree. The one that the run acts for does not count then.
    #[must_use]
    pub fn needs_several(&self) -> bool {
        let groups = self.groups();
        self.question().needed() > 1 || groups.len() > 1 || groups.iter().any(|one| one.count > 1)
    }

    /// The groups that have to agree.
    #[must_use]
    pub fn groups(&self) -> &[GroupQuorum] {
        let quorum = self.request().quorum.as_ref();
        quorum.map_or(&[], |quorum| &quorum.groups)
    }

    /// How many further approvals are needed at least, after these.
    pub(super) fn missing_after<'d>(
        &self,
        decisions: impl Iterator<Item = &'d Decided> + Clone,
    ) -> usize {
        let total = self
            .question()
            .needed()
            .saturating_sub(decisions.clone().count());
        let of_groups = self.groups().iter().map(|group| {
            let of_group = |decided: &&Decided| group.admits(decided.seat(), decided.at);
            group
                .count
                .saturating_sub(decisions.clone().filter(of_group).count())
        });
        of_groups.fold(total, usize::max)
    }

    /// Whether somebody is one that the run acts for, and therefore does not count.
    pub(super) fn is_left_out(&self, who: &Principal) -> bool {
        self.request().quorum.is_some()
            && self.needs_several()
            && who.is_same_person(&self.request().principal.principal)
    }

    /// Whether somebody may decide about it at that time.
    #[must_use]
    pub fn admits(&self, who: &Principal, at: Timestamp) -> bool {
        let groups = self.groups();
        let approvers = &self.request().approvers;
        (approvers.is_empty() || approvers.contains(who))
            && (groups.is_empty() || groups.iter().any(|group| group.admits(who, at)))
    }

    /// Checks that these people could decide about it before it expires.
    ///
    /// # Errors
    /// If there are too few of them.
    pub fn check_candidates(&self, people: &[Principal]) -> Result<(), TooFewCandidates> {
        let last = self.request().expires_at;
        let mut candidates: Vec<&Principal> = Vec::new();
        let mut is_requester_left_out = false;
        for person in people.iter().filter(|person| self.admits(person, last)) {
            let is_known = candidates.iter().any(|known| known.is_same_person(person));
            match self.is_left_out(person) {
                true => is_requester_left_out = true,
                false if is_known => {}
                false => candidates.push(person),
            }
        }
        let enough = |group: Option<&GroupQuorum>, needed: usize| {
            let of_group =
                |person: &&&Principal| group.is_none_or(|group| group.admits(person, last));
            let found = candidates.iter().filter(of_group).count();
            let left_out = &self.request().principal.principal;
            match found >= needed {
                true => Ok(()),
                false => Err(TooFewCandidates {
                    group: group.map(|group| group.group.clone()),
                    needed,
                    found,
                    is_requester_left_out: is_requester_left_out
                        && group.is_none_or(|group| group.admits(left_out, last)),
                }),
            }
        };
        let mut groups = self.groups().iter();
        groups.try_for_each(|group| enough(Some(group), group.count))?;
        enough(None, self.question().needed())
    }
}
