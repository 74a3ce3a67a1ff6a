//! What a run has left of the calls it may make. The runs that work for it, as sub-agents or for tasks of
//! its plans, make theirs out of the same number: one that begins is lent a share of what is left, and what
//! it did not use comes back when it ends. All of this follows from the events, so whoever folds them finds
//! the same shares.

use windlass_spec::plan::{PlanTaskId, Work};
use windlass_spec::{CallId, CallState, Turn};

use super::plan::PlanState;
use super::state::{Entry, Run, TurnState};
use crate::gate::{Decision, Verdict};

impl Run {
    /// How many of its calls a run has used: its own, also those that are yet to run, and those of the
    /// runs that work for it. What one of these may still make counts until it is over.
    #[must_use]
    pub fn calls_used(&self) -> u32 {
        let of_turns = self.turns.iter().map(TurnState::calls_used);
        of_turns.fold(0, u32::saturating_add)
    }

    /// How many calls are left for whoever begins now.
    pub(super) fn calls_left(&self) -> u32 {
        self.settings.max_calls.saturating_sub(self.calls_used())
    }

    /// The calls of other runs that were made, or may be made, for what earlier turns asked for. Those of
    /// the same turn do not count: a call in it is decided about by its place, whatever ends first.
    pub(super) fn calls_of_others_before(&self, turn: Turn) -> u32 {
        let earlier = self.turns.iter().take_while(|earlier| earlier.turn < turn);
        earlier
            .map(TurnState::calls_of_others)
            .fold(0, u32::saturating_add)
    }

    /// What the run of a sub-agent may use that is about to begin: as much as each of those that share
    /// what is left.
    pub(super) fn share_of_sub_agent(&self) -> u32 {
        let entries = self.turns.iter().flat_map(|turn| &turn.entries);
        let is_sharer = |entry: &&Entry| {
            entry.call().is_some_and(|record| {
                let (name, state) = (record.tool_name().as_str(), record.state());
                match state {
                    CallState::Pending => self.is_sub_agent(name) || self.is_planning(name),
                    CallState::Running => self.is_planning(name),
                    _ => false,
                }
            })
        };
        share(self.calls_left(), entries.filter(is_sharer).count())
    }

    /// What the run of a task may use that is about to begin: one call if that is all it is, else as much
    /// as each of the tasks that may run beside it.
    pub(super) fn share_of_task(&self, plan: &CallId, task: &PlanTaskId) -> u32 {
        let Some(plan) = self.plan(plan) else {
            return 0;
        };
        match plan.task(task.as_str()).map(|(task, _)| &task.work) {
            Some(Work::Call { .. }) => self.calls_left().min(1),
            Some(Work::Agent(_)) => share(self.calls_left(), plan.beside()),
            Some(Work::ByHand) | None => 0,
        }
    }

    /// The task of a plan that is to begin next. One for which no call is left waits as long as some may
    /// come back; when none can, it begins and fails for want of one.
    #[must_use]
    pub fn next_task(&self, plan: &PlanState) -> Option<PlanTaskId> {
        let next = plan.can_begin().first().map(|task| task.id.clone());
        next.filter(|_| self.calls_left() > 0 || !self.has_lent())
    }

    /// Whether tasks of a plan wait for calls to come back.
    #[must_use]
    pub fn waits_for_calls(&self, plan: &PlanState) -> bool {
        !plan.can_begin().is_empty() && self.next_task(plan).is_none()
    }

    /// Whether calls are lent to a run that is not over.
    fn has_lent(&self) -> bool {
        let mut entries = self.turns.iter().flat_map(|turn| &turn.entries);
        let to_sub_agents = entries.any(|entry| match entry {
            Entry::Call { record, stand, .. } => {
                record.state() == CallState::Running && stand.calls > 0
            }
            Entry::Mistake { .. } | Entry::Finish => false,
        });
        to_sub_agents || self.plans.iter().any(PlanState::has_lent)
    }

    /// Lends calls to the run of a task.
    pub(super) fn lend_to_task(&mut self, calls: u32) {
        if let Some(turn) = self.turns.last_mut() {
            turn.calls_of_tasks = turn.calls_of_tasks.saturating_add(calls);
        }
    }

    /// Takes back what the run of a task did not use. A task ends in the turn in which it began, because
    /// the call that carries out its plan does not end before.
    pub(super) fn take_back_from_task(&mut self, lent: u32, used: u32) {
        if let Some(turn) = self.turns.last_mut() {
            let others = turn.calls_of_tasks.saturating_sub(lent);
            turn.calls_of_tasks = others.saturating_add(used);
        }
    }
}

impl TurnState {
    fn calls_used(&self) -> u32 {
        let own = self.entries.iter().filter(|entry| entry.is_used()).count();
        let own = u32::try_from(own).unwrap_or(u32::MAX);
        own.saturating_add(self.calls_of_others())
    }

    fn calls_of_others(&self) -> u32 {
        let of_sub_agents = self.entries.iter().map(|entry| match entry {
            Entry::Call { stand, .. } => stand.calls,
            Entry::Mistake { .. } | Entry::Finish => 0,
        });
        of_sub_agents.fold(self.calls_of_tasks, u32::saturating_add)
    }
}

impl Entry {
    /// Whether it is a call that has run or may yet: what was denied, rejected, undone or too late has not
    /// and will not.
    fn is_used(&self) -> bool {
        let Self::Call {
            record, decision, ..
        } = self
        else {
            return false;
        };
        decision.as_deref().map(Decision::verdict) != Some(Verdict::Deny)
            && (record.was_permitted() || record.state() == CallState::Pending)
    }
}

/// An equal part of what is left for some, of which one begins now. What does not divide goes to the first.
fn share(left: u32, among: usize) -> u32 {
    let among = u32::try_from(among).unwrap_or(u32::MAX);
    left.div_ceil(among.max(1))
}
