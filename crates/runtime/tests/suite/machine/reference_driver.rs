//! The reference driver: the next step of a run, what is durable at which moment, and where the process may
//! crash.

use super::model::{
    Arguments, Call, CallRef, CallType, DAY, DecisionKind, End, Ended, Hold, InboxEntry, Live,
    Policy, Process, Question, RunModel, RunProgress, Stage, Status, StoredState, WINDOW,
};
use super::reference::{ReferenceState, Transition};

/// An incident while a process drives a run, at a moment that it reaches.
#[derive(Debug, Clone)]
pub(super) struct Incident {
    pub(super) at: String,
    pub(super) what: IncidentKind,
}

#[derive(Debug, Clone)]
pub(super) enum IncidentKind {
    /// The process crashes. `flushes`: whether relaxed writes reach the disk.
    Crash { flushes: bool },
    /// A concurrent transition of another process.
    Concurrent(Box<Transition>),
}

/// The result of driving a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Driven {
    Ended(Ended),
    /// It waits for a person, without a process.
    Suspended,
    /// It waits in its process.
    Waiting,
    Crashed,
}

struct Crash {
    flushes: bool,
}

enum Step {
    AtGate,
    Asks(i64),
    Held(i64),
    Runs,
    Over,
}

enum Next {
    Gate(Vec<CallRef>),
    Run(Vec<CallRef>),
    Wait { until: i64, for_person: bool },
    Model,
    Done(Ended),
}

/// Whether an event is durable as soon as it is recorded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EventDurability {
    Synced,
    Relaxed,
}

/// The driver of one run.
pub(super) struct ReferenceDriver<'w> {
    reference: &'w mut ReferenceState,
    run: usize,
    incident: Option<Incident>,
    /// The moments that were passed, in order.
    points: Vec<String>,
}

impl<'w> ReferenceDriver<'w> {
    pub(super) fn new(
        reference: &'w mut ReferenceState,
        run: usize,
        incident: Option<Incident>,
    ) -> Self {
        Self {
            reference,
            run,
            incident,
            points: Vec::new(),
        }
    }

    /// Resumes the run and drives it.
    pub(super) fn resume(mut self) -> Driven {
        let taken = self.begin_resume();
        match taken {
            Ok(()) => self.drive(),
            Err(crash) => self.crash(&crash),
        }
    }

    pub(super) fn drive(mut self) -> Driven {
        match self.drive_until_stopped() {
            Ok(driven) => driven,
            Err(crash) => self.crash(&crash),
        }
    }

    /// The moments at which a process that drives the run may crash.
    pub(super) fn moments(mut self) -> Vec<String> {
        let _ = self.drive_until_stopped();
        self.points
    }

    /// The moments at which a process that resumes the run may crash.
    pub(super) fn moments_of_resume(mut self) -> Vec<String> {
        let _ = self.begin_resume();
        self.moments()
    }

    fn crash(&mut self, crash: &Crash) -> Driven {
        let run = self.model();
        if let Some(live) = run.live.take()
            && crash.flushes
        {
            run.durable = live.progress;
        }
        Driven::Crashed
    }

    fn begin_resume(&mut self) -> Result<(), Crash> {
        if self.live().progress.end.is_none() {
            self.record("resumed", EventDurability::Relaxed, |_, _| {})?;
            self.take_inbox()?;
        }
        Ok(())
    }

    fn drive_until_stopped(&mut self) -> Result<Driven, Crash> {
        loop {
            match self.next() {
                Next::Done(end) => {
                    self.release(StoredState::Ended)?;
                    return Ok(Driven::Ended(end));
                }
                Next::Gate(calls) => {
                    for call in calls {
                        self.pass_gate(call)?;
                    }
                }
                Next::Run(calls) => self.run_calls(&calls)?,
                Next::Wait { until, for_person } => {
                    if let Some(driven) = self.wait(until, for_person)? {
                        return Ok(driven);
                    }
                }
                Next::Model => self.ask_model()?,
            }
        }
    }

    fn next(&mut self) -> Next {
        let run = self.run;
        let model = &self.reference.runs[run];
        let progress = &self.live().progress;
        if let Some(end) = progress.end {
            return Next::Done(end);
        }
        let (mut at_gate, mut runnable) = (Vec::new(), Vec::new());
        let mut wait: Option<(i64, bool)> = None;
        let (mut is_behind, mut is_barred) = (false, false);
        let turn = progress.turns.len().saturating_sub(1);
        for (index, call) in progress.turns.last().into_iter().flatten().enumerate() {
            let call_ref = CallRef { run, turn, index };
            let is_final = matches!(call.kind, CallType::Pay | CallType::Wire);
            let mut wait_until = |at: i64, for_person| {
                let (until, person) = wait.unwrap_or((at, false));
                wait = Some((until.min(at), person || for_person));
            };
            match step(call, call_ref, model, progress) {
                Step::Over => continue,
                Step::AtGate => at_gate.push(call_ref),
                Step::Asks(until) => wait_until(until, true),
                Step::Held(until) => wait_until(until, false),
                // Irreversible calls run alone and in order.
                Step::Runs if is_barred || (is_final && is_behind) => {}
                Step::Runs => runnable.push(call_ref),
            }
            is_behind = true;
            is_barred |= is_final;
        }
        match wait {
            _ if !at_gate.is_empty() => Next::Gate(at_gate),
            _ if !runnable.is_empty() => Next::Run(runnable),
            Some((until, for_person)) => Next::Wait { until, for_person },
            None => Next::Model,
        }
    }

    fn ask_model(&mut self) -> Result<(), Crash> {
        let turn = self.live().progress.turns.len();
        let kinds = self.reference.runs[self.run].script.get(turn).cloned();
        self.record(
            "answered",
            EventDurability::Relaxed,
            |_, progress| match kinds {
                Some(kinds) => progress.turns.push(
                    kinds
                        .into_iter()
                        .map(|kind| Call {
                            kind,
                            stage: Stage::Undecided,
                            arguments: Arguments::AsAsked,
                        })
                        .collect(),
                ),
                None => progress.end = Some(end_of_answered(&progress.turns)),
            },
        )
    }

    fn pass_gate(&mut self, call_ref: CallRef) -> Result<(), Crash> {
        let (now, policy) = (self.reference.now, self.live().policy);
        let Call {
            kind,
            stage,
            arguments,
        } = self.call(call_ref);
        let question = |for_approval, two| Question {
            for_approval,
            two,
            expires: now + DAY,
            status: Status::Pending,
            asked: arguments,
            decided: Vec::new(),
        };
        let (asked, then) = match stage {
            Stage::Undecided => {
                let stage = decided(kind, policy);
                return self.record(
                    &format!("decided {call_ref}"),
                    EventDurability::Relaxed,
                    |_, progress| {
                        progress.call(call_ref).stage = stage;
                    },
                );
            }
            Stage::ToHold => {
                return self.record(
                    &format!("held {call_ref}"),
                    EventDurability::Synced,
                    |run, progress| {
                        run.holds.insert(call_ref, Hold::Held);
                        progress.call(call_ref).stage = Stage::Held {
                            until: now + WINDOW,
                            released: false,
                        };
                    },
                );
            }
            Stage::ToAsk { two } => (question(true, two), Stage::Asked),
            Stage::ToQuestion => (question(false, false), Stage::Asked),
            Stage::Interrupted => (question(false, false), Stage::InterruptedAsked),
            _ => return Ok(()),
        };
        self.record(
            &format!("asked {call_ref}"),
            EventDurability::Synced,
            |run, progress| {
                run.questions.entry(call_ref).or_default().push(asked);
                progress.call(call_ref).stage = then;
            },
        )
    }

    fn run_calls(&mut self, calls: &[CallRef]) -> Result<(), Crash> {
        let mut running = Vec::new();
        for call_ref in calls {
            if self.model().inbox.contains(&InboxEntry::Cancel) {
                self.take_inbox()?;
                break;
            }
            if self.start_if_allowed(*call_ref)? {
                running.push(*call_ref);
            }
        }
        for call_ref in &running {
            self.reach(format!("before effect {call_ref}"))?;
            let arguments = self.call(*call_ref).arguments;
            self.reference.effects.push((*call_ref, arguments));
            self.reach(format!("after effect {call_ref}"))?;
        }
        for call_ref in running {
            self.record(
                &format!("ended {call_ref}"),
                EventDurability::Relaxed,
                |_, progress| {
                    progress.call(call_ref).stage = Stage::Over(End::Done);
                },
            )?;
        }
        Ok(())
    }

    fn start_if_allowed(&mut self, call_ref: CallRef) -> Result<bool, Crash> {
        let policy = self.live().policy;
        let Call {
            kind,
            stage,
            arguments,
        } = self.call(call_ref);
        if stage == Stage::Started {
            self.record(
                &format!("ended {call_ref}"),
                EventDurability::Relaxed,
                |_, progress| {
                    progress.call(call_ref).stage = Stage::Interrupted;
                },
            )?;
            return Ok(false);
        }
        // The rules may have become stricter since the approval.
        let again = match decided(kind, policy) {
            _ if arguments == Arguments::Invalid => Some(Stage::Over(End::Denied)),
            denied @ Stage::Over(_) => Some(denied),
            Stage::ToAsk { two: true } if stage == (Stage::Approved { two: false }) => {
                Some(Stage::ToAsk { two: true })
            }
            _ => None,
        };
        if let Some(again) = again {
            self.record(
                &format!("decided {call_ref}"),
                EventDurability::Synced,
                |run, progress| {
                    run.withdraw(Some(call_ref));
                    progress.call(call_ref).stage = again;
                },
            )?;
            return Ok(false);
        }
        self.start(call_ref)
    }

    /// Starts a call, unless it was undone at the last moment.
    fn start(&mut self, call_ref: CallRef) -> Result<bool, Crash> {
        self.reach(format!("before started {call_ref}"))?;
        let hold = self.model().holds.get(&call_ref).copied();
        let may_start = matches!(hold, None | Some(Hold::Held | Hold::Released));
        if may_start {
            self.change(|run, progress| {
                if let Some(hold) = run.holds.get_mut(&call_ref) {
                    *hold = Hold::Started;
                }
                progress.call(call_ref).stage = Stage::Started;
            });
        }
        // Earlier events are durable, even if this one is refused.
        self.make_durable();
        self.reach(format!("after started {call_ref}"))?;
        if !may_start {
            self.take_inbox()?;
        }
        Ok(may_start)
    }

    /// Waits, unless there is something to do.
    fn wait(&mut self, until: i64, for_person: bool) -> Result<Option<Driven>, Crash> {
        if self.take_inbox()? {
            return Ok(None);
        }
        let now = self.reference.now;
        let held: Vec<i64> = self.held();
        if until <= now {
            self.reference.sweep();
            if self.take_inbox()? {
                return Ok(None);
            }
            if held.iter().any(|until| *until <= now) {
                self.record("passed", EventDurability::Relaxed, |_, _| {})?;
                return Ok(None);
            }
        }
        let may_suspend = self.live().process == Process::Suspending;
        if for_person && may_suspend && held.is_empty() {
            self.release(StoredState::Waiting)?;
            return Ok(Some(Driven::Suspended));
        }
        Ok(Some(Driven::Waiting))
    }

    /// Until when calls are held.
    fn held(&mut self) -> Vec<i64> {
        let progress = &self.live().progress;
        let calls = progress.turns.last().into_iter().flatten();
        let held = calls.filter_map(|call| match call.stage {
            Stage::Held {
                until,
                released: false,
            } if progress.now < until => Some(until),
            _ => None,
        });
        held.collect()
    }

    /// Takes the entries of the inbox. Returns whether there were any.
    fn take_inbox(&mut self) -> Result<bool, Crash> {
        let inbox = self.model().inbox.clone();
        for entry in &inbox {
            match *entry {
                InboxEntry::Settled(call_ref, number) => {
                    self.take(&format!("settled {call_ref}"), |run, progress| {
                        let question = &run.questions[&call_ref][number];
                        settle(progress.call(call_ref), question);
                    })?;
                }
                InboxEntry::Undo(call_ref) => {
                    self.take(&format!("undone {call_ref}"), |_, progress| {
                        progress.call(call_ref).stage = Stage::Over(End::Undone);
                    })?;
                }
                InboxEntry::Release(call_ref) => {
                    self.take(&format!("released {call_ref}"), |_, progress| {
                        if let Stage::Held { released, .. } = &mut progress.call(call_ref).stage {
                            *released = true;
                        }
                    })?;
                }
                InboxEntry::Cancel => self.take("cancelled", |_, progress| {
                    progress.end = Some(Ended::Cancelled);
                })?,
            }
        }
        Ok(!inbox.is_empty())
    }

    fn take(
        &mut self,
        event: &str,
        change: impl FnOnce(&mut RunModel, &mut RunProgress),
    ) -> Result<(), Crash> {
        self.record(event, EventDurability::Synced, |run, progress| {
            run.inbox.remove(0);
            change(run, progress);
        })
    }

    /// Releases the run.
    fn release(&mut self, stored_state: StoredState) -> Result<(), Crash> {
        self.reach("before end".to_owned())?;
        self.make_durable();
        let run = self.model();
        run.stored_state = stored_state;
        if stored_state == StoredState::Ended {
            run.withdraw(None);
        }
        self.reach("after end".to_owned())?;
        self.model().live = None;
        Ok(())
    }

    fn record(
        &mut self,
        event: &str,
        durability: EventDurability,
        change: impl FnOnce(&mut RunModel, &mut RunProgress),
    ) -> Result<(), Crash> {
        self.reach(format!("before {event}"))?;
        self.change(change);
        if durability == EventDurability::Synced {
            self.make_durable();
        }
        self.reach(format!("after {event}"))
    }

    fn change(&mut self, change: impl FnOnce(&mut RunModel, &mut RunProgress)) {
        let now = self.reference.now;
        let run = self.model();
        if let Some(mut live) = run.live.take() {
            change(run, &mut live.progress);
            live.progress.now = live.progress.now.max(now);
            live.progress.events += 1;
            run.live = Some(live);
        }
    }

    fn make_durable(&mut self) {
        let progress = self.live().progress.clone();
        self.model().durable = progress;
    }

    fn reach(&mut self, point: String) -> Result<(), Crash> {
        let is_now = |incident: &mut Incident| incident.at == point;
        let incident = self.incident.take_if(is_now);
        self.points.push(point);
        match incident.map(|incident| incident.what) {
            None => Ok(()),
            Some(IncidentKind::Crash { flushes }) => Err(Crash { flushes }),
            Some(IncidentKind::Concurrent(what)) => {
                self.reference.concurrent_result = Some(self.reference.act(&what));
                Ok(())
            }
        }
    }

    fn model(&mut self) -> &mut RunModel {
        &mut self.reference.runs[self.run]
    }

    fn live(&self) -> &Live {
        let live = self.reference.runs[self.run].live.as_ref();
        live.expect("a driven run is live")
    }

    fn call(&self, call_ref: CallRef) -> Call {
        self.live().progress.turns[call_ref.turn][call_ref.index].clone()
    }
}

/// How a run ends that is answered: rejected, if no call of a later turn than the rejected one succeeded.
fn end_of_answered(turns: &[Vec<Call>]) -> Ended {
    for turn in turns.iter().rev() {
        let has = |ends: &[End]| {
            let mut calls = turn.iter();
            calls.any(|call| matches!(call.stage, Stage::Over(end) if ends.contains(&end)))
        };
        if has(&[End::Rejected]) {
            return Ended::Rejected;
        }
        if has(&[End::Done, End::Answered, End::Responded]) {
            return Ended::Completed;
        }
    }
    Ended::Completed
}

/// The gate's decision about a call.
fn decided(kind: CallType, policy: Policy) -> Stage {
    match (kind, policy) {
        (CallType::Pay, Policy::NoPay) => Stage::Over(End::Denied),
        (CallType::Pay, Policy::Standard) => Stage::ToAsk { two: false },
        (CallType::Pay, Policy::TwoForPay) | (CallType::Wire, _) => Stage::ToAsk { two: true },
        (CallType::Note, _) => Stage::ToHold,
        (CallType::Ask, _) => Stage::ToQuestion,
    }
}

fn step(call: &Call, call_ref: CallRef, run: &RunModel, progress: &RunProgress) -> Step {
    match call.stage {
        Stage::Undecided
        | Stage::ToAsk { .. }
        | Stage::ToHold
        | Stage::ToQuestion
        | Stage::Interrupted => Step::AtGate,
        Stage::Asked | Stage::InterruptedAsked => {
            let asked = run.questions.get(&call_ref).and_then(|asked| asked.last());
            Step::Asks(asked.map_or(0, |question| question.expires))
        }
        Stage::Held { until, released } if !released && progress.now < until => Step::Held(until),
        Stage::Held { .. } | Stage::Approved { .. } | Stage::Started => Step::Runs,
        Stage::Over(_) => Step::Over,
    }
}

/// Updates a call when its question is settled.
fn settle(call: &mut Call, question: &Question) {
    let last = question.decided.last().map(|(_, kind, _)| *kind);
    call.stage = match (question.status, last) {
        _ if call.stage == Stage::InterruptedAsked => Stage::Over(End::Unknown),
        (Status::Rejected, _) => Stage::Over(End::Rejected),
        (Status::Expired, _) => Stage::Over(End::Expired),
        (_, Some(DecisionKind::Answer)) => Stage::Over(End::Answered),
        (_, Some(DecisionKind::Respond)) => Stage::Over(End::Responded),
        _ => {
            call.arguments = question.arguments();
            Stage::Approved { two: question.two }
        }
    };
}
