//! The turns of a run and the calls that were asked for in them: their records, what the gate decided about
//! each, how far it is, and so what can be done about them next. Calls are changed here and nowhere else,
//! each change checked before it is made.

mod settling;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use serde_json::Value;
use windlass_spec::{
    CallChange, CallId, CallRecord, CallState, Effect, ErrorCategory, Failure, RiskLevel, RunId,
    Timestamp, ToolSpecification, Turn,
};

use super::event::{CallEnd, Variant};
use super::mistake::Mistake;
use super::outcome::{FoldError, Next, Waiting};
use super::progress::{CallProgress, Reply, Step};
use crate::approval::{Approval, Principal};
use crate::catalog::{CallKind, PlanOperation};
use crate::gate::{self, Decision, Permit, PermitError, Verdict};
use crate::model::ModelAnswer;

/// One turn: what the model answered and what came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnState {
    /// Its number.
    pub turn: Turn,
    /// When the model was asked.
    pub asked_at: Timestamp,
    /// When the turn was over; the time of the last event until it is.
    pub ended_at: Timestamp,
    /// What the model answered.
    pub answer: ModelAnswer,
    /// What came of each call it asked for, in that order.
    pub entries: Vec<Entry>,
}

/// What came of a call a model asked for.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    /// A call in good order.
    Call {
        /// What it is for.
        kind: CallKind,
        /// What was declared of the tool when it was asked for.
        specification: Arc<ToolSpecification>,
        /// Its record.
        record: Box<CallRecord>,
        /// What the gate decided, once it did.
        decision: Option<Box<Decision>>,
        /// How far it is between the gate, people and time.
        progress: Box<CallProgress>,
    },
    /// Something the model did wrong.
    Mistake {
        /// What.
        mistake: Mistake,
        /// The call that was not made, as far as it could be read.
        record: Box<CallRecord>,
    },
    /// The end of the run.
    Finish,
}

impl Entry {
    /// What the call is for; `None` if it was none.
    #[must_use]
    pub fn kind(&self) -> Option<CallKind> {
        match self {
            Self::Call { kind, .. } => Some(*kind),
            Self::Mistake { .. } => None,
            Self::Finish => Some(CallKind::Finish),
        }
    }

    /// The record of a call in good order.
    pub(super) fn call(&self) -> Option<&CallRecord> {
        match self {
            Self::Call { record, .. } => Some(record),
            Self::Mistake { .. } | Self::Finish => None,
        }
    }

    /// The record of whatever was asked for, also of what was refused at once.
    pub(super) fn record(&self) -> Option<&CallRecord> {
        match self {
            Self::Call { record, .. } | Self::Mistake { record, .. } => Some(record),
            Self::Finish => None,
        }
    }

    /// How reversible a call is: as it was found when it was decided about, else as is declared of
    /// its tool. What is not known is irreversible.
    pub(super) fn risk(&self) -> RiskLevel {
        let Self::Call {
            specification,
            decision,
            ..
        } = self
        else {
            return RiskLevel::Irreversible;
        };
        let decided = decision.as_deref().and_then(Decision::risk_level);
        decided
            .or(specification.attributes().risk)
            .unwrap_or(RiskLevel::Irreversible)
    }

    /// How far a call is. `None` if it is none.
    pub(super) fn step(&self, now: Timestamp) -> Option<Step> {
        let Self::Call {
            kind,
            record,
            decision,
            progress,
            ..
        } = self
        else {
            return None;
        };
        Some(progress.step(*kind, record.state(), decision.as_deref(), now))
    }

    /// Whether it is a call that has run or may yet: what was denied, rejected, undone or too late has not
    /// and will not.
    pub(super) fn is_used(&self) -> bool {
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

/// The turns of a run and their calls.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Calls {
    /// The run, after which calls are named.
    run: RunId,
    turns: Vec<TurnState>,
    /// Whether any call was ever deferred.
    has_deferred: bool,
    /// Calls whose permit was handed out in this process. Not part of the fold: a process that
    /// resumes a run has handed out none.
    permitted: HashSet<CallId>,
}

/// A call that has not come to its end, with what its place in the order goes by.
struct Open<'r> {
    record: &'r CallRecord,
    step: Step,
    risk: RiskLevel,
    is_deferred: bool,
    is_of_last_turn: bool,
}

/// A call that is about to change.
struct CallMut<'c> {
    record: &'c mut CallRecord,
    decision: &'c mut Option<Box<Decision>>,
    progress: &'c mut CallProgress,
}

impl Calls {
    pub(super) fn new(run: RunId) -> Self {
        Self {
            run,
            turns: Vec::new(),
            has_deferred: false,
            permitted: HashSet::new(),
        }
    }

    pub(super) fn turns(&self) -> &[TurnState] {
        &self.turns
    }

    /// The turn the model is asked for next, or was asked for last if that has not been answered.
    pub(super) fn current_turn(&self) -> Turn {
        let last = self.turns.last();
        last.map_or(Turn::FIRST, |turn| turn.turn.next())
    }

    /// The last turn that was answered, else the first.
    pub(super) fn last_turn(&self) -> Turn {
        self.turns.last().map_or(Turn::FIRST, |turn| turn.turn)
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.turns.iter().flat_map(|turn| &turn.entries)
    }

    /// What was asked for before a call, in order.
    pub(super) fn entries_before<'r>(
        &'r self,
        call: &'r CallId,
    ) -> impl Iterator<Item = &'r Entry> {
        self.turns
            .iter()
            .take_while(move |turn| turn.turn <= call.turn)
            .flat_map(move |turn| {
                let limit = match turn.turn == call.turn {
                    true => call.index as usize,
                    false => usize::MAX,
                };
                turn.entries.iter().take(limit)
            })
    }

    pub(super) fn entry(&self, call: &CallId) -> Result<&Entry, FoldError> {
        let turn = self.turns.get(call.turn.number() as usize - 1);
        turn.filter(|_| call.run == self.run)
            .and_then(|turn| turn.entries.get(call.index as usize))
            .ok_or_else(|| FoldError::UnknownCall(call.clone()))
    }

    pub(super) fn call(
        &self,
        call: &CallId,
    ) -> Result<(&CallRecord, Option<&Decision>), FoldError> {
        match self.entry(call)? {
            Entry::Call {
                record, decision, ..
            } => Ok((record, decision.as_deref())),
            _ => Err(FoldError::UnknownCall(call.clone())),
        }
    }

    /// The name of a call in a turn.
    pub(super) fn id_of(&self, turn: Turn, index: usize) -> CallId {
        CallId {
            run: self.run.clone(),
            turn,
            index: u32::try_from(index).unwrap_or(u32::MAX),
        }
    }

    /// How many calls have run or may yet.
    pub(super) fn used(&self) -> u32 {
        let used = self.entries().filter(|entry| entry.is_used()).count();
        u32::try_from(used).unwrap_or(u32::MAX)
    }

    /// How many calls share what is left for runs that work for this one: sub-agents that have not begun,
    /// and plans.
    pub(super) fn sharers(&self) -> usize {
        let shares = |entry: &&Entry| {
            let state = entry.call().map(CallRecord::state);
            matches!(
                (entry.kind(), state),
                (Some(CallKind::SubAgent), Some(CallState::Pending))
                    | (
                        Some(CallKind::Plan(_)),
                        Some(CallState::Pending | CallState::Running)
                    )
            )
        };
        self.entries().filter(shares).count()
    }

    /// Whether a call creates a plan now.
    pub(super) fn is_creating_plan(&self, call: &CallId) -> Result<bool, FoldError> {
        let (record, _) = self.call(call)?;
        let kind = self.entry(call)?.kind();
        let creates = kind == Some(CallKind::Plan(PlanOperation::Create));
        Ok(creates && record.state() == CallState::Running)
    }

    /// Whether the turn is not over: calls the run does not go on without have not ended.
    pub(super) fn has_open(&self, now: Timestamp) -> bool {
        self.open(now)
            .any(|call| call.is_of_last_turn && !call.is_deferred)
    }

    /// Whether calls that run later are yet to run.
    pub(super) fn has_deferred(&self, now: Timestamp) -> bool {
        self.has_deferred && self.open(now).any(|call| call.is_deferred)
    }

    /// What is to be done about the calls now, if anything is: first what the gate has to do, then
    /// what can run, then waiting. Calls run all at once, but what cannot be undone alone, and not
    /// before the calls that were asked for before it.
    pub(super) fn next(&self, now: Timestamp) -> Option<Next> {
        let mut at_gate = Vec::new();
        let mut runnable = Vec::new();
        let mut waiting: Option<Waiting> = None;
        let mut is_behind = false;
        let mut is_barred = false;
        for call in self.open(now) {
            let id = || call.record.id().clone();
            match call.step {
                Step::AtGate => at_gate.push(id()),
                Step::Asks(until) => {
                    waiting = Some(Waiting::and(waiting, until, true));
                }
                Step::Held(until) => {
                    waiting = Some(Waiting::and(waiting, until, false));
                }
                Step::Runs if is_barred => {}
                Step::Runs if call.risk == RiskLevel::Irreversible => {
                    if !is_behind {
                        runnable.push(id());
                    }
                }
                Step::Runs => runnable.push(id()),
                Step::Over => continue,
            }
            if !call.is_deferred {
                is_behind = true;
                is_barred |= call.risk == RiskLevel::Irreversible;
            }
        }
        if !at_gate.is_empty() {
            return Some(Next::Gate(at_gate));
        }
        if !runnable.is_empty() {
            return Some(Next::RunCalls(runnable));
        }
        waiting.map(Next::Wait)
    }

    /// The calls that have not come to their end, in order.
    fn open(&self, now: Timestamp) -> impl Iterator<Item = Open<'_>> {
        let last = self.turns.len().saturating_sub(1);
        // Only what is deferred can be left over from earlier turns.
        let first = if self.has_deferred { 0 } else { last };
        let turns = self.turns.iter().enumerate().skip(first);
        turns.flat_map(move |(turn, state)| {
            state.entries.iter().filter_map(move |entry| {
                let step = entry.step(now)?;
                let Entry::Call {
                    record, progress, ..
                } = entry
                else {
                    return None;
                };
                (step != Step::Over).then(|| Open {
                    record,
                    step,
                    risk: entry.risk(),
                    is_deferred: progress.is_deferred(),
                    is_of_last_turn: turn == last,
                })
            })
        })
    }

    /// Takes a turn that the model answered.
    pub(super) fn push(&mut self, turn: TurnState) {
        self.turns.push(turn);
    }

    /// Takes the time until which the last turn lasts.
    pub(super) fn extend_turn(&mut self, now: Timestamp) {
        if let Some(turn) = self.turns.last_mut() {
            turn.ended_at = now;
        }
    }

    /// Takes a decision of the gate: the first, or a stricter one.
    pub(super) fn decide(
        &mut self,
        call: &CallId,
        decision: &Decision,
        at: Timestamp,
    ) -> Result<(), FoldError> {
        let CallMut {
            record,
            decision: place,
            progress,
        } = self.call_mut(call)?;
        let tightens = |earlier: &Decision| {
            record.state() == CallState::Pending && progress.is_stricter(earlier, decision)
        };
        if place.as_deref().is_some_and(|earlier| !tightens(earlier)) {
            return Err(FoldError::DecidedTwice(call.clone()));
        }
        let (set, failure) = (decision.set(), decision.failure());
        if !set.is_empty() || failure.is_some() {
            let mut changed = with_set(record, set);
            if let Some(failure) = failure {
                advance(&mut changed, CallChange::Fail(failure), at)?;
            }
            if !set.is_empty() {
                progress.keep_requested(record.arguments());
            }
            *record = changed;
        }
        *place = Some(Box::new(decision.clone()));
        progress.decide();
        Ok(())
    }

    /// Takes the question about a call that waits for a person. The gate asks about what it has decided, a
    /// tool while it runs.
    pub(super) fn ask(&mut self, question: Approval, now: Timestamp) -> Result<(), FoldError> {
        let call = question.call().clone();
        let entry = self.entry(&call)?;
        let (record, decision) = self.call(&call)?;
        let may_ask = match entry.step(now) {
            Some(Step::Runs) => record.state() == CallState::Running,
            Some(Step::AtGate) => decision.is_some(),
            _ => false,
        };
        if !may_ask {
            return Err(FoldError::NotToBeAsked(call));
        }
        self.call_mut(&call)?.progress.ask(question);
        Ok(())
    }

    pub(super) fn hold(
        &mut self,
        call: &CallId,
        until: Timestamp,
        is_deferred: bool,
    ) -> Result<(), FoldError> {
        let of_call = self.call_mut(call)?;
        let verdict = of_call.decision.as_deref().map(Decision::verdict);
        if of_call.record.state() != CallState::Pending
            || verdict != Some(Verdict::Hold)
            || of_call.progress.held_until().is_some()
        {
            return Err(FoldError::NotHeld(call.clone()));
        }
        of_call.progress.hold(until, is_deferred);
        self.has_deferred |= is_deferred;
        Ok(())
    }

    pub(super) fn release(&mut self, call: &CallId) -> Result<(), FoldError> {
        let of_call = self.held_mut(call)?;
        of_call.progress.release();
        Ok(())
    }

    pub(super) fn undo(
        &mut self,
        call: &CallId,
        by: &Principal,
        at: Timestamp,
    ) -> Result<(), FoldError> {
        let message = format!(
            "{by} undid this call before it ran; it did nothing. Do not make it again unless the \
             person who gave the task says so."
        );
        let failure = Failure::new(ErrorCategory::Cancelled, Effect::None, message);
        let of_call = self.held_mut(call)?;
        advance(of_call.record, CallChange::Cancel(failure), at)
    }

    pub(super) fn start(
        &mut self,
        call: &CallId,
        variant: Option<&Variant>,
        now: Timestamp,
        at: Timestamp,
    ) -> Result<(), FoldError> {
        let may_start = match self.entry(call)?.step(now) {
            Some(Step::Runs) => true,
            Some(Step::Held(until)) => at >= until,
            _ => false,
        };
        if !may_start {
            return Err(FoldError::NotAllowed(call.clone()));
        }
        let of_call = self.call_mut(call)?;
        advance(of_call.record, CallChange::Start, at)?;
        of_call.progress.start(variant);
        Ok(())
    }

    pub(super) fn end(
        &mut self,
        call: &CallId,
        end: &CallEnd,
        variant: Option<&Variant>,
        is_from_outside: bool,
        at: Timestamp,
    ) -> Result<(), FoldError> {
        let change = match end.clone() {
            CallEnd::Success(result) => CallChange::Succeed(result),
            CallEnd::Error(failure) => CallChange::Fail(failure),
            CallEnd::Timeout(failure) => CallChange::TimeOut(failure),
            CallEnd::Cancelled(failure) => CallChange::Cancel(failure),
            CallEnd::Unknown(failure) => CallChange::LoseTrack(failure),
        };
        let of_call = self.call_mut(call)?;
        advance(of_call.record, change, at)?;
        of_call.progress.end(variant, is_from_outside);
        Ok(())
    }

    /// Takes over which permits were handed out in this process.
    pub(super) fn take_permits_of(&mut self, before: &mut Self) {
        self.permitted = std::mem::take(&mut before.permitted);
    }

    /// The permit of a call whose start has been applied: each gets one.
    pub(super) fn permit(&mut self, call: &CallId) -> Result<Permit, PermitError> {
        let Ok(Entry::Call {
            record,
            decision,
            specification,
            ..
        }) = self.entry(call)
        else {
            return Err(PermitError::UnknownCall(call.clone()));
        };
        let permit = gate::permit(record, decision.as_deref(), specification)?;
        match self.permitted.insert(call.clone()) {
            true => Ok(permit),
            false => Err(PermitError::Given(call.clone())),
        }
    }

    /// The outcome of the form that a call wanted filled in when it last ran.
    pub(super) fn take_reply(&mut self, call: &CallId) -> Option<Reply> {
        self.call_mut(call).ok()?.progress.take_reply()
    }

    fn call_mut(&mut self, call: &CallId) -> Result<CallMut<'_>, FoldError> {
        let unknown = || FoldError::UnknownCall(call.clone());
        let turn = self.turns.get_mut(call.turn.number() as usize - 1);
        let entry = turn
            .filter(|_| call.run == self.run)
            .and_then(|turn| turn.entries.get_mut(call.index as usize));
        match entry {
            Some(Entry::Call {
                record,
                decision,
                progress,
                ..
            }) => Ok(CallMut {
                record,
                decision,
                progress,
            }),
            _ => Err(unknown()),
        }
    }

    /// A call that is held and has not started.
    fn held_mut(&mut self, call: &CallId) -> Result<CallMut<'_>, FoldError> {
        let of_call = self.call_mut(call)?;
        let is_held =
            of_call.record.state() == CallState::Pending && of_call.progress.held_until().is_some();
        match is_held {
            true => Ok(of_call),
            false => Err(FoldError::NotHeld(call.clone())),
        }
    }
}

/// Changes a record, or says why the call cannot change like that; it is then unchanged.
fn advance(record: &mut CallRecord, change: CallChange, at: Timestamp) -> Result<(), FoldError> {
    let advanced = record.advance(change, at);
    advanced.map_err(|error| FoldError::Call(record.id().clone(), error))
}

/// The call with what the operator sets.
pub(super) fn with_set(record: &CallRecord, set: &BTreeMap<String, Value>) -> CallRecord {
    if set.is_empty() {
        return record.clone();
    }
    let mut arguments = record.arguments().clone();
    for (name, value) in set {
        arguments.insert(name.clone(), value.clone());
    }
    record.with_arguments(arguments)
}

#[cfg(test)]
mod tests;
