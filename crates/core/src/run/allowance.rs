//! The limits and usage of a run: tokens, money, time, and calls. The runs that work for it, as
//! sub-agents or for tasks of its plans, share its number of calls. A run that starts is lent a share of
//! what is left, and what it did not use is returned when it ends. All of this follows from the events,
//! so each process that folds them finds the same shares.

use std::collections::BTreeMap;
use std::time::Duration;

use windlass_spec::{CallId, Money, Timestamp, Turn};

use super::event::Event;
use super::outcome::RunEnd;
use super::settings::{Budget, Settings};
use crate::model::Usage;

/// The limits of a run and its usage.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Allowance {
    settings: Settings,
    usage: Usage,
    started_at: Timestamp,
    now: Timestamp,
    /// Microseconds in which the run waited for people, or no process drove it.
    waited: u64,
    /// By turn, the calls that other runs have made, plus those they may still make.
    calls_of_others: BTreeMap<Turn, u32>,
    /// The calls that are lent to running sub-agents.
    lent: BTreeMap<CallId, u32>,
    /// The end by a budget that did not allow the last request to the model.
    refused: Option<RunEnd>,
}

impl Allowance {
    pub(super) fn new(settings: Settings, at: Timestamp) -> Self {
        Self {
            settings,
            usage: Usage::default(),
            started_at: at,
            now: at,
            waited: 0,
            calls_of_others: BTreeMap::new(),
            lent: BTreeMap::new(),
            refused: None,
        }
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(super) fn usage(&self) -> Usage {
        self.usage
    }

    /// The time of the last event.
    pub(super) fn now(&self) -> Timestamp {
        self.now
    }

    /// Applies an event: its time, its usage, and the calls it lends or returns. Time in which the run
    /// was idle does not count. `last_turn` is the turn that calls of tasks count in, and `loan` the
    /// number of calls lent to the run that the event starts, or to the task that it ends.
    pub(super) fn apply(
        &mut self,
        event: &Event,
        was_idle: bool,
        last_turn: Turn,
        loan: Option<u32>,
    ) {
        self.pass_time(event.at(), was_idle);
        let loan = loan.unwrap_or(0);
        match event {
            Event::ModelAnswered { answer, .. } => self.usage += answer.usage,
            Event::CostReported { cost, .. } => {
                self.usage += Usage {
                    microdollars: Some(*cost),
                    ..Usage::default()
                };
            }
            Event::BudgetReached {
                budget, message, ..
            } => {
                self.refused = Some(RunEnd::Budget {
                    budget: *budget,
                    message: Some(message.clone()),
                });
            }
            Event::CallStarted { call, .. } if loan > 0 => {
                self.lent.insert(call.clone(), loan);
                self.lend(call.turn, loan);
            }
            Event::CallEnded {
                call, usage, calls, ..
            } => {
                let lent = self.lent.remove(call).unwrap_or(0);
                self.take_back(call.turn, lent, *calls);
                self.usage += *usage;
            }
            Event::TaskStarted { .. } => self.lend(last_turn, loan),
            // A task ends in the turn in which it started, because the call that executes its plan does
            // not end before.
            Event::TaskEnded { usage, calls, .. } => {
                self.take_back(last_turn, loan, *calls);
                self.usage += *usage;
            }
            _ => {}
        }
    }

    /// Advances to the time of an event.
    fn pass_time(&mut self, at: Timestamp, was_idle: bool) {
        if was_idle {
            self.waited += at.microseconds_since(self.now);
        }
        // Clocks can be set back; the time of a run cannot.
        self.now = self.now.max(at);
    }

    /// How long the run has worked.
    pub(super) fn time_used(&self, now: Timestamp) -> Duration {
        let since = now.microseconds_since(self.started_at);
        Duration::from_micros(since.saturating_sub(self.waited))
    }

    /// How long it may still work; `None` if there is no limit.
    pub(super) fn time_left(&self, now: Timestamp) -> Option<Duration> {
        let limit = Duration::from_secs(self.settings.max_seconds?);
        Some(limit.saturating_sub(self.time_used(now)))
    }

    /// Whether the time is used up.
    pub(super) fn is_out_of_time(&self) -> bool {
        self.time_left(self.now) == Some(Duration::ZERO)
    }

    /// The end of the run by a budget of tokens or money that is used up, if any.
    pub(super) fn used_up(&self) -> Option<RunEnd> {
        if self.refused.is_some() {
            return self.refused.clone();
        }
        let budget = if is_reached(self.settings.max_tokens, self.usage.tokens()) {
            Budget::Tokens
        } else if is_reached(self.settings.max_microdollars, self.money()) {
            Budget::Money
        } else {
            return None;
        };
        Some(RunEnd::Budget {
            budget,
            message: None,
        })
    }

    /// The remaining limits, for a run that may make `max_calls` calls on behalf of this one.
    pub(super) fn remaining_limits(&self, max_calls: u32, at: Timestamp) -> Settings {
        let (tokens, money) = (self.usage.tokens(), self.money());
        Settings {
            max_calls,
            max_tokens: (self.settings.max_tokens).map(|limit| limit.saturating_sub(tokens)),
            max_microdollars: (self.settings.max_microdollars)
                .map(|limit| limit.saturating_sub(money)),
            // A started second counts as left, so that a child is never stopped before its parent.
            max_seconds: self.time_left(at).map(|left| left.as_secs() + 1),
            ..self.settings.clone()
        }
    }

    /// The calls that other runs have made, or may still make, on behalf of this one.
    pub(super) fn calls_of_others(&self) -> u32 {
        let calls = self.calls_of_others.values();
        calls.fold(0, |sum, calls| sum.saturating_add(*calls))
    }

    /// The same for earlier turns only. Those of the same turn do not count: the decision about a call
    /// depends on its position, not on what ends first.
    pub(super) fn calls_of_others_before(&self, turn: Turn) -> u32 {
        let earlier = self.calls_of_others.range(..turn);
        earlier.fold(0, |sum, (_, calls)| sum.saturating_add(*calls))
    }

    /// How many calls are left for a run that starts now, if this one has made `own` calls itself.
    pub(super) fn calls_left(&self, own: u32) -> u32 {
        let used = own.saturating_add(self.calls_of_others());
        self.settings.max_calls.saturating_sub(used)
    }

    /// Whether calls are lent to a running sub-agent.
    pub(super) fn has_lent(&self) -> bool {
        self.lent.values().any(|calls| *calls > 0)
    }

    /// How many calls the run of a sub-agent may make.
    pub(super) fn lent_to(&self, call: &CallId) -> u32 {
        self.lent.get(call).copied().unwrap_or(0)
    }

    /// Adds up the calls of others until a turn that has ended: no later call asks for an earlier turn.
    pub(super) fn end_turn(&mut self, turn: Turn) {
        let later = self.calls_of_others.split_off(&turn.next());
        let ended = std::mem::replace(&mut self.calls_of_others, later);
        let ended = ended.values();
        let sum = ended.fold(0, |sum: u32, calls| sum.saturating_add(*calls));
        if sum > 0 {
            self.calls_of_others.insert(turn, sum);
        }
    }

    fn lend(&mut self, turn: Turn, calls: u32) {
        let of_turn = self.calls_of_others.entry(turn).or_default();
        *of_turn = of_turn.saturating_add(calls);
    }

    /// Counts the used calls in place of the lent ones.
    fn take_back(&mut self, turn: Turn, lent: u32, used: u32) {
        let of_turn = self.calls_of_others.entry(turn).or_default();
        *of_turn = of_turn.saturating_sub(lent).saturating_add(used);
    }

    fn money(&self) -> Money {
        self.usage.microdollars.unwrap_or_default()
    }
}

/// Whether a limit is used up.
fn is_reached<T: Ord>(limit: Option<T>, used: T) -> bool {
    limit.is_some_and(|limit| used >= limit)
}

/// An equal share of what is left, rounded up, for one of `among` runs.
pub(super) fn share(left: u32, among: usize) -> u32 {
    let among = u32::try_from(among).unwrap_or(u32::MAX);
    left.div_ceil(among.max(1))
}

#[cfg(test)]
mod tests;
