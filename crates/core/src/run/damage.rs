//! A journal that lost its last events: calls may have been made that it does not know. Those that were about to run
//! count as interrupted, and later ones that have an effect need approval.

use std::collections::BTreeSet;

use windlass_spec::{CallId, CallState};

use super::{CallKind, Entry, Run};

/// What a journal lost.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Damage {
    reason: String,
    /// The calls that had been decided and had not started, as far as the journal knows.
    decided: BTreeSet<CallId>,
}

impl Run {
    /// What the journal of the run lost, if it lost something.
    #[must_use]
    pub fn damage(&self) -> Option<&str> {
        self.damage.as_ref().map(|damage| damage.reason.as_str())
    }

    /// Whether a call of a tool that has not started may have been made before the journal was damaged.
    #[must_use]
    pub fn may_have_run(&self, call: &CallId) -> bool {
        let is_decided = |damage: &Damage| damage.decided.contains(call);
        self.damage.as_ref().is_some_and(is_decided)
    }

    /// Describes the damage to the approver of a call.
    pub(super) fn damage_message(&self) -> Option<String> {
        self.damage().map(|reason| {
            format!("the journal lost entries ({reason}), so this call may have been made before")
        })
    }

    pub(super) fn note_damage(&mut self, reason: &str) {
        let entries = self
            .calls
            .open_turns()
            .iter()
            .flat_map(|turn| &turn.entries);
        let decided = entries.filter_map(|entry| match entry {
            Entry::Call {
                kind: CallKind::Tool,
                record,
                decision: Some(_),
                ..
            } if record.state() == CallState::Pending => Some(record.id().clone()),
            _ => None,
        });
        self.damage = Some(Damage {
            reason: reason.to_owned(),
            decided: decided.collect(),
        });
    }
}
