//! The turns of a run and the calls requested in them: their records, the gate's decisions, their
//! progress, and which of them can proceed. Calls are changed only here, and each change is checked
//! before it is made.

mod settling;

pub use settling::is_refused_by_person;

/// What a person did to a held call.
const UNDONE: &str = "undid this call";

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use serde_json::Value;
use windlass_spec::{
    CallChange, CallId, CallRecord, CallState, Effect, ErrorCategory, Failure, RiskLevel, RunId,
    Timestamp, ToolSpecification, Turn,
};

use super::event::{CallEnd, Event, ExecutedTool, Variant};
use super::grants::Grant;
use super::history::History;
use super::mistake::Mistake;
use super::outcome::{FoldError, Next, Waiting};
use super::progress::{ApprovalProof, CallProgress, FormReply, Step};
use crate::approval::{Approval, Digest, Principal};
use crate::catalog::{CallKind, PlanOperation};
use crate::gate::{self, Decision, Permit, PermitError, Verdict};
use crate::model::ModelAnswer;

/// One turn: the model's answer and the entries of its calls.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnState {
    /// Its number.
    pub turn: Turn,
    /// When the model was asked.
    pub asked_at: Timestamp,
    /// When the turn ended; the time of the last event while it is open.
    pub ended_at: Timestamp,
    /// What the model answered.
    pub answer: ModelAnswer,
    /// One entry for each requested call, in the same order.
    pub entries: Vec<Entry>,
}

/// The state of a call that a model requested.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    /// A well-formed call.
    Call {
        /// What the call is for.
        kind: CallKind,
        /// The specification of the tool when it was requested.
        specification: Arc<ToolSpecification>,
        /// Its record.
        record: Box<CallRecord>,
        /// The gate's decision, once there is one.
        decision: Option<Box<Decision>>,
        /// Its progress through gate, approval and undo window.
        progress: Box<CallProgress>,
    },
    /// A mistake of the model.
    Mistake {
        /// The mistake.
        mistake: Mistake,
        /// The call that was not made, as far as it could be read.
        record: Box<CallRecord>,
    },
    /// The end of the run.
    Finish,
}

impl Entry {
    /// The kind of the call; `None` for a mistake.
    #[must_use]
    pub fn kind(&self) -> Option<CallKind> {
        match self {
            Self::Call { kind, .. } => Some(*kind),
            Self::Mistake { .. } => None,
            Self::Finish => Some(CallKind::Finish),
        }
    }

    /// The record of a well-formed call.
    pub(super) fn call(&self) -> Option<&CallRecord> {
        match self {
            Self::Call { record, .. } => Some(record),
            Self::Mistake { .. } | Self::Finish => None,
        }
    }

    /// Whether the model may request the same call again: it did nothing, or failed with an error that another
    /// attempt may avoid.
    pub(super) fn may_be_requested_again(&self) -> bool {
        let Self::Call {
            record, progress, ..
        } = self
        else {
            return false;
        };
        let is_retryable = matches!(record.outcome(), Some(Err(failure)) if failure.retryable);
        progress.did_nothing() || is_retryable
    }

    /// The record of any requested call, including mistakes.
    pub(super) fn record(&self) -> Option<&CallRecord> {
        match self {
            Self::Call { record, .. } | Self::Mistake { record, .. } => Some(record),
            Self::Finish => None,
        }
    }

    /// How reversible a call is: by its decision, else by its specification. Unknown means irreversible.
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

    /// The digest of the call that may run: the one that was approved, else the one that was decided.
    pub(super) fn authorized_digest(&self) -> Option<Digest> {
        let Self::Call {
            decision, progress, ..
        } = self
        else {
            return None;
        };
        let decided = || decision.as_deref().and_then(Decision::digest);
        progress.approved_digest().or_else(decided)
    }

    /// The current step of a call; `None` if it is not a call.
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

    /// Whether it is a call that has run or may still run. A call that was denied, rejected, undone or
    /// expired does not count.
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
    /// The run, which is part of the ids of calls.
    run: RunId,
    /// The turns, without the first `released` ones.
    turns: Vec<TurnState>,
    /// How many turns are no longer kept.
    released: usize,
    /// The interrupted calls of turns that are no longer kept.
    kept_interrupted: BTreeMap<CallId, Entry>,
    /// How many turns have ended, with all turns before them: no event can change them any more.
    ended: usize,
    /// Calls whose permit was issued in this process. Not part of the fold: a process that resumes a run
    /// has issued none.
    permitted: HashSet<CallId>,
    /// The calls that were interrupted and may have taken effect, in the order in which they ended.
    interrupted: Vec<CallId>,
    /// How many starts and ends of calls that may change something, and other changes, are known.
    changes: u32,
}

/// A call that has not ended, with what determines its order.
struct Open<'r> {
    record: &'r CallRecord,
    step: Step,
    risk: RiskLevel,
    is_deferred: bool,
    is_in_last_turn: bool,
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
            released: 0,
            kept_interrupted: BTreeMap::new(),
            ended: 0,
            permitted: HashSet::new(),
            interrupted: Vec::new(),
            changes: 0,
        }
    }

    /// How many changes are known that put earlier results out of date.
    pub(super) fn changes(&self) -> u32 {
        self.changes
    }

    /// Puts all earlier results out of date.
    fn note_change(&mut self) {
        self.changes += 1;
    }

    pub(super) fn turns(&self) -> &[TurnState] {
        &self.turns
    }

    /// The calls that were interrupted and may have taken effect.
    pub(super) fn interrupted(&self) -> &[CallId] {
        &self.interrupted
    }

    /// The turn the model is asked for next, or the open one if it has not been answered.
    pub(super) fn current_turn(&self) -> Turn {
        let last = self.turns.last();
        last.map_or(Turn::FIRST, |turn| turn.turn.next())
    }

    /// The last turn that was answered, else the first.
    pub(super) fn last_turn(&self) -> Turn {
        self.turns.last().map_or(Turn::FIRST, |turn| turn.turn)
    }

    /// How many turns were answered.
    pub(super) fn turn_count(&self) -> usize {
        self.released + self.turns.len()
    }

    /// The turns after the first `count` ones, as far as they are kept.
    pub(super) fn turns_after(&self, count: usize) -> &[TurnState] {
        let skipped = count.saturating_sub(self.released);
        self.turns.get(skipped..).unwrap_or_default()
    }

    /// The turns that may still change.
    pub(super) fn open_turns(&self) -> &[TurnState] {
        self.turns_after(self.ended)
    }

    /// How many turns have ended, with all turns before them.
    pub(super) fn ended_turns(&self) -> usize {
        self.ended
    }

    /// Whether a call belongs to a turn that has ended.
    pub(super) fn has_ended(&self, call: &CallId) -> bool {
        call.turn.number() as usize <= self.ended
    }

    /// The turns after the first `count` ones that have ended.
    pub(super) fn ended_after(&self, count: usize) -> &[TurnState] {
        let turns = self.turns_after(count);
        &turns[..turns.len() - self.open_turns().len()]
    }

    /// The first turn that has not ended yet, if all its calls are over now.
    pub(super) fn next_over(&self, now: Timestamp) -> Option<&TurnState> {
        let is_over = |entry: &Entry| entry.step(now).is_none_or(|step| step == Step::Over);
        let turn = self.open_turns().first();
        turn.filter(|turn| turn.entries.iter().all(is_over))
    }

    /// Counts the next turn as ended.
    pub(super) fn end_turn(&mut self) {
        if let Some(turn) = self.open_turns().first().map(|turn| turn.turn) {
            self.ended += 1;
            // Its calls can get no permit any more.
            self.permitted.retain(|call| call.turn != turn);
        }
    }

    /// Drops the first `count` turns, if they have ended. The last one is kept.
    pub(super) fn drop_turns(&mut self, count: usize) {
        let last = self.turn_count().saturating_sub(1);
        let surplus = count.min(self.ended).min(last);
        let surplus = surplus.saturating_sub(self.released);
        // Each drop moves the turns that are kept, so it waits until there are as many to drop.
        if surplus > self.turns.len() / 2 {
            // An interrupted call matters to all later ones.
            for call in &self.interrupted {
                if let Ok(entry) = self.entry(call).cloned() {
                    self.kept_interrupted.insert(call.clone(), entry);
                }
            }
            self.turns.drain(..surplus);
            self.released += surplus;
        }
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.turns.iter().flat_map(|turn| &turn.entries)
    }

    /// The entries of the turns that may still change.
    pub(super) fn open_entries(&self) -> impl Iterator<Item = &Entry> {
        self.open_turns().iter().flat_map(|turn| &turn.entries)
    }

    /// The entries before a call and after the first `count` turns, in order.
    pub(super) fn entries_between<'r>(
        &'r self,
        count: usize,
        call: &'r CallId,
    ) -> impl Iterator<Item = &'r Entry> {
        self.turns_after(count)
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
        self.turn_of(call)
            .filter(|_| call.run == self.run)
            .and_then(|turn| turn.entries.get(call.index as usize))
            .or_else(|| self.kept_interrupted.get(call))
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

    /// The turn of a call, unless it was dropped.
    pub(super) fn turn_of(&self, call: &CallId) -> Option<&TurnState> {
        self.position(call).and_then(|at| self.turns.get(at))
    }

    /// The position of a call's turn among those that are kept.
    fn position(&self, call: &CallId) -> Option<usize> {
        (call.turn.number() as usize).checked_sub(self.released + 1)
    }

    /// The id of a call in a turn.
    pub(super) fn id_of(&self, turn: Turn, index: usize) -> CallId {
        CallId {
            run: self.run.clone(),
            turn,
            index: u32::try_from(index).unwrap_or(u32::MAX),
        }
    }

    /// How many calls of the turns that may still change have run or may still run.
    pub(super) fn used_open_calls(&self) -> u32 {
        let used = self.open_entries().filter(|entry| entry.is_used()).count();
        u32::try_from(used).unwrap_or(u32::MAX)
    }

    /// How many calls share the calls left for other runs: sub-agents that have not started, and plans.
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
        self.open_entries().filter(shares).count()
    }

    /// Whether the turn is open: calls that are not deferred have not ended.
    pub(super) fn has_open(&self, now: Timestamp) -> bool {
        self.open_calls(now)
            .any(|call| call.is_in_last_turn && !call.is_deferred)
    }

    /// Whether deferred calls have not ended.
    pub(super) fn has_deferred(&self, now: Timestamp) -> bool {
        self.open_calls(now).any(|call| call.is_deferred)
    }

    /// Returns what to do about the calls now, if anything: first work for the gate, then calls that can
    /// run, then waiting. Calls run at the same time, except that an irreversible call runs alone and
    /// after all calls before it.
    pub(super) fn next(&self, now: Timestamp) -> Option<Next> {
        let mut at_gate = Vec::new();
        let mut runnable = Vec::new();
        let mut waiting: Option<Waiting> = None;
        let mut is_behind = false;
        let mut is_barred = false;
        let mut ahead: Vec<&CallRecord> = Vec::new();
        for call in self.open_calls(now) {
            let id = || call.record.id().clone();
            let is_same = |earlier: &&CallRecord| {
                earlier.tool_name() == call.record.tool_name()
                    && earlier.arguments() == call.record.arguments()
            };
            match call.step {
                Step::AtGate => at_gate.push(id()),
                Step::Asked(until) => {
                    waiting = Some(Waiting::and(waiting, until, true));
                }
                Step::Held(until) => {
                    waiting = Some(Waiting::and(waiting, until, false));
                }
                Step::Runs if is_barred => {}
                // The result of the same call may answer it.
                Step::Runs
                    if call.record.state() == CallState::Pending && ahead.iter().any(is_same) => {}
                Step::Runs if call.risk == RiskLevel::Irreversible => {
                    if !is_behind {
                        runnable.push(id());
                    }
                }
                Step::Runs => runnable.push(id()),
                Step::Over => continue,
            }
            if call.risk == RiskLevel::Reversible {
                ahead.push(call.record);
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

    /// The calls that have not ended, in order.
    fn open_calls(&self, now: Timestamp) -> impl Iterator<Item = Open<'_>> {
        // Only deferred calls can be left over from earlier turns.
        let turns = self.open_turns();
        let last = turns.len().saturating_sub(1);
        turns.iter().enumerate().flat_map(move |(turn, state)| {
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
                    is_in_last_turn: turn == last,
                })
            })
        })
    }

    /// Applies an event of a call. `turn` is the turn that the model answered, `now` the time of the
    /// event before, and `show` shortens a value to what a model is shown. Returns the authorization for
    /// another call that the event gives, if any.
    pub(super) fn apply(
        &mut self,
        event: &Event,
        turn: Option<TurnState>,
        now: Timestamp,
        history: &History,
        show: impl Fn(&Value) -> String,
    ) -> Result<Option<Grant>, FoldError> {
        match event {
            Event::ModelAnswered { .. } => self.turns.extend(turn),
            Event::Decided { call, decision, at } => self.decide(call, decision, *at)?,
            Event::Asked { approval, .. } => self.ask((**approval).clone(), now)?,
            Event::Settled { approval, at } => return self.settle(approval, *at, history, show),
            Event::Held {
                call,
                until,
                deferred,
                ..
            } => self.hold(call, *until, *deferred)?,
            Event::Released { call, by, at } => self.held_mut(call)?.progress.release(by, *at),
            Event::Undone { call, by, at } => self.undo(call, by, *at)?,
            Event::CallStarted { call, variant, at } => {
                self.start(call, variant.as_ref(), now, *at)?;
            }
            Event::CallEnded {
                call,
                end,
                ran,
                tainted,
                at,
                ..
            } => {
                self.end(call, end, ran.as_ref(), *tainted, *at)?;
            }
            Event::CallRetried { call, .. } => self.retry(call)?,
            Event::Reused { call, of, at } => self.reuse(call, of, now, *at)?,
            Event::Planned { call, .. } => self.check_creates_plan(call)?,
            // Time passed without a process, calls were lost, or a person worked by hand.
            Event::Resumed { .. } | Event::JournalDamaged { .. } | Event::TaskMarked { .. } => {
                self.note_change();
            }
            _ => {}
        }
        Ok(None)
    }

    /// Extends the last turn to a time.
    pub(super) fn extend_turn(&mut self, now: Timestamp) {
        if let Some(turn) = self.turns.last_mut() {
            turn.ended_at = now;
        }
    }

    /// Records a decision of the gate: the first, or a stricter one.
    fn decide(
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

    /// Records the question that waits for a person. The gate asks about a call it has decided, a tool
    /// while it runs.
    fn ask(&mut self, question: Approval, now: Timestamp) -> Result<(), FoldError> {
        let call = question.call().clone();
        let entry = self.entry(&call)?;
        let (record, decision) = self.call(&call)?;
        let can_ask = match entry.step(now) {
            Some(Step::Runs) => record.state() == CallState::Running,
            Some(Step::AtGate) => decision.is_some(),
            _ => false,
        };
        if !can_ask {
            return Err(FoldError::NoQuestionDue(call));
        }
        self.call_mut(&call)?.progress.ask(question);
        Ok(())
    }

    fn hold(
        &mut self,
        call: &CallId,
        until: Timestamp,
        is_deferred: bool,
    ) -> Result<(), FoldError> {
        let target = self.call_mut(call)?;
        let verdict = target.decision.as_deref().map(Decision::verdict);
        if target.record.state() != CallState::Pending
            || verdict != Some(Verdict::Hold)
            || target.progress.held_until().is_some()
        {
            return Err(FoldError::NotHeld(call.clone()));
        }
        target.progress.hold(until, is_deferred);
        Ok(())
    }

    fn undo(&mut self, call: &CallId, by: &Principal, at: Timestamp) -> Result<(), FoldError> {
        let message = format!(
            "{by} {UNDONE} before it ran; it did nothing. Do not make it again unless the \
             person who gave the task says so."
        );
        let failure = Failure::new(ErrorCategory::Cancelled, Effect::None, message);
        let target = self.held_mut(call)?;
        advance(target.record, CallChange::Cancel(failure), at)?;
        target.progress.undo(by, at);
        Ok(())
    }

    fn start(
        &mut self,
        call: &CallId,
        variant: Option<&Variant>,
        now: Timestamp,
        at: Timestamp,
    ) -> Result<(), FoldError> {
        let can_start = match self.entry(call)?.step(now) {
            Some(Step::Runs) => true,
            Some(Step::Held(until)) => at >= until,
            _ => false,
        };
        if !can_start {
            return Err(FoldError::NotAllowed(call.clone()));
        }
        let may_change = self.entry(call)?.may_change();
        let changes = self.changes;
        let target = self.call_mut(call)?;
        advance(target.record, CallChange::Start, at)?;
        target.progress.start(variant, changes);
        if may_change {
            self.note_change();
        }
        Ok(())
    }

    fn end(
        &mut self,
        call: &CallId,
        end: &CallEnd,
        ran: Option<&ExecutedTool>,
        is_from_outside: bool,
        at: Timestamp,
    ) -> Result<(), FoldError> {
        let change = match end.clone() {
            CallEnd::Success(result) => CallChange::Succeed(result),
            CallEnd::Error(failure) => CallChange::Fail(failure),
            CallEnd::Timeout(failure) => CallChange::TimeOut(failure),
            CallEnd::Cancelled(failure) => CallChange::Cancel(failure),
            CallEnd::Unknown(failure) => CallChange::MarkUnknown(failure),
        };
        let may_change = self.entry(call)?.may_change();
        let target = self.call_mut(call)?;
        let had_started = target.record.was_permitted();
        advance(target.record, change, at)?;
        target.progress.end(ran, is_from_outside);
        if may_change && had_started {
            self.note_change();
        }
        let is_interrupted = match end {
            CallEnd::Unknown(_) => true,
            CallEnd::Timeout(failure) | CallEnd::Cancelled(failure) => {
                failure.effect == Effect::Unknown
            }
            // An idempotent call whose connection broke.
            CallEnd::Error(failure) => failure.effect == Effect::Unknown && failure.retryable,
            CallEnd::Success(_) => false,
        };
        if is_interrupted {
            self.interrupted.push(call.clone());
        }
        Ok(())
    }

    /// Lets a call run once more that failed and may be repeated.
    fn retry(&mut self, call: &CallId) -> Result<(), FoldError> {
        let entry = self.entry(call)?;
        let is_running = entry.call().map(CallRecord::state) == Some(CallState::Running);
        if !is_running || !entry.may_be_repeated_at(RiskLevel::Reversible) {
            return Err(FoldError::NotAllowed(call.clone()));
        }
        self.call_mut(call)?.progress.retry();
        self.permitted.remove(call);
        Ok(())
    }

    /// Ends a call with the result of the same call before.
    fn reuse(
        &mut self,
        call: &CallId,
        of: &CallId,
        now: Timestamp,
        at: Timestamp,
    ) -> Result<(), FoldError> {
        let refused = || FoldError::NotAllowed(call.clone());
        let (entry, earlier) = (self.entry(call)?, self.entry(of)?);
        let is_due = entry.step(now) == Some(Step::Runs);
        let result = entry.result_of_same(earlier).filter(|_| is_due);
        let result = result.ok_or_else(refused)?.clone();
        let changes = self.changes;
        let target = self.call_mut(call)?;
        let mut answered = target.record.clone();
        advance(&mut answered, CallChange::Start, at)?;
        advance(&mut answered, CallChange::Succeed(result), at)?;
        *target.record = answered;
        target.progress.reuse(of, changes);
        Ok(())
    }

    /// Refuses a plan of a call that is not creating one now.
    fn check_creates_plan(&self, call: &CallId) -> Result<(), FoldError> {
        let (record, _) = self.call(call)?;
        let kind = self.entry(call)?.kind();
        let creates = kind == Some(CallKind::Plan(PlanOperation::Create));
        match creates && record.state() == CallState::Running {
            true => Ok(()),
            false => Err(FoldError::NoPlan(call.clone())),
        }
    }

    /// Takes over the set of issued permits from an earlier state of the run.
    pub(super) fn take_permits_of(&mut self, before: &mut Self) {
        self.permitted = std::mem::take(&mut before.permitted);
    }

    /// Issues the permit of a call whose start is applied; once for each call.
    pub(super) fn permit(&mut self, call: &CallId) -> Result<Permit, PermitError> {
        let unknown = || PermitError::UnknownCall(call.clone());
        let entry = self.entry(call).map_err(|_| unknown())?;
        let Entry::Call {
            record,
            decision,
            specification,
            ..
        } = entry
        else {
            return Err(unknown());
        };
        let authorized = entry.authorized_digest();
        let permit = gate::permit(record, decision.as_deref(), authorized, specification)?;
        match self.permitted.insert(call.clone()) {
            true => Ok(permit),
            false => Err(PermitError::AlreadyIssued(call.clone())),
        }
    }

    /// The reply to the form that a call asked for when it last ran.
    pub(super) fn take_reply(&mut self, call: &CallId) -> Option<FormReply> {
        self.call_mut(call).ok()?.progress.take_reply()
    }

    /// The approval to prove to the tool of a call, if the tool asked for one.
    pub(super) fn proof(&self, call: &CallId) -> Option<&ApprovalProof> {
        self.progress(call)?.proof()
    }

    /// How a call ends now that a person answered its tool.
    pub(super) fn answered_end(&self, call: &CallId) -> Option<&CallEnd> {
        let progress = self.progress(call)?;
        let (record, _) = self.call(call).ok()?;
        let is_running = record.state() == CallState::Running;
        progress.answered_end().filter(|_| is_running)
    }

    fn progress(&self, call: &CallId) -> Option<&CallProgress> {
        match self.entry(call).ok()? {
            Entry::Call { progress, .. } => Some(progress),
            Entry::Mistake { .. } | Entry::Finish => None,
        }
    }

    fn call_mut(&mut self, call: &CallId) -> Result<CallMut<'_>, FoldError> {
        let unknown = || FoldError::UnknownCall(call.clone());
        let at = self.position(call);
        let turn = at.and_then(|at| self.turns.get_mut(at));
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
        let target = self.call_mut(call)?;
        let is_held =
            target.record.state() == CallState::Pending && target.progress.held_until().is_some();
        match is_held {
            true => Ok(target),
            false => Err(FoldError::NotHeld(call.clone())),
        }
    }
}

/// Advances a record, or returns why the call cannot change like that. A failed change leaves the record
/// as it was.
fn advance(record: &mut CallRecord, change: CallChange, at: Timestamp) -> Result<(), FoldError> {
    let advanced = record.advance(change, at);
    advanced.map_err(|error| FoldError::Call(record.id().clone(), error))
}

/// The call with the arguments that the operator sets.
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
