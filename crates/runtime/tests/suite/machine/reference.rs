//! The reference: the expected state of runs, calls, questions, holds and inboxes, as a small pure model. It
//! implements the rules independently of the code. The driver of a run is in `reference_driver.rs`.

use super::model::{
    Arguments, CallRef, CallType, DecisionKind, Ended, Hold, InboxEntry, Live, Person, Policy,
    Process, RunModel, Shown, Status, StoredState,
};
use super::reference_driver::{Driven, Incident, ReferenceDriver};

/// Why a transition is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    NoSuchApproval,
    AlreadyDecided,
    Expired,
    DigestDiffers,
    Undecided,
    NoSuchHold,
    TooLate,
    NoSuchRun,
    RunEnded,
    OwnedElsewhere,
}

/// The result of a transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TransitionResult {
    Accepted,
    Refused(Refusal),
    Driven(Driven),
}

/// A transition.
#[derive(Debug, Clone)]
pub(super) enum Transition {
    Start(Process, Vec<Vec<CallType>>, Option<Incident>),
    Resume(Process, usize, Option<Incident>),
    /// Lets the process that owns the run continue it.
    Continue(usize, Option<Incident>),
    Decide(Process, CallRef, Person, DecisionKind, Shown),
    Undo(Process, CallRef, Person),
    Release(Process, CallRef, Person),
    Cancel(Process, usize, Person),
    Sweep(Process),
    AdvanceClock(i64),
    SetPolicy(Policy),
    /// A process is killed with all its runs, and starts again. The flag is whether relaxed writes reached
    /// the disk.
    Kill(Process, bool),
}

/// The state of the reference.
#[derive(Debug, Clone)]
pub(super) struct ReferenceState {
    pub(super) now: i64,
    pub(super) policy: Policy,
    pub(super) runs: Vec<RunModel>,
    /// The calls that had an effect, and their arguments.
    pub(super) effects: Vec<(CallRef, Arguments)>,
    /// The result of the last transition.
    pub(super) result: TransitionResult,
    /// The result of the concurrent transition.
    pub(super) concurrent_result: Option<TransitionResult>,
}

impl ReferenceState {
    pub(super) fn new() -> Self {
        Self {
            now: 0,
            policy: Policy::Standard,
            runs: Vec::new(),
            effects: Vec::new(),
            result: TransitionResult::Accepted,
            concurrent_result: None,
        }
    }

    pub(super) fn take(&mut self, transition: &Transition) {
        self.concurrent_result = None;
        self.result = match transition {
            Transition::Start(process, script, incident) => {
                self.runs.push(RunModel::new(script.clone(), self.now));
                let run = self.runs.len() - 1;
                self.assign(run, *process);
                TransitionResult::Driven(ReferenceDriver::new(self, run, incident.clone()).drive())
            }
            Transition::Resume(process, run, incident) => {
                self.resume(*process, *run, incident.clone())
            }
            Transition::Continue(run, incident) => {
                TransitionResult::Driven(ReferenceDriver::new(self, *run, incident.clone()).drive())
            }
            other => self.act(other),
        };
    }

    /// A transition that drives no run.
    pub(super) fn act(&mut self, transition: &Transition) -> TransitionResult {
        let done = match transition {
            Transition::Start(..) | Transition::Resume(..) | Transition::Continue(..) => Ok(()),
            Transition::Decide(_, call_ref, by, kind, shown) => {
                self.decide(*call_ref, *by, *kind, *shown)
            }
            Transition::Undo(_, call_ref, by) => {
                self.change_hold(*call_ref, *by, Hold::Undone, InboxEntry::Undo(*call_ref))
            }
            Transition::Release(_, call_ref, by) => self.change_hold(
                *call_ref,
                *by,
                Hold::Released,
                InboxEntry::Release(*call_ref),
            ),
            Transition::Cancel(_, run, by) => self.cancel(*run, *by),
            Transition::Sweep(_) => {
                self.sweep();
                Ok(())
            }
            Transition::AdvanceClock(seconds) => {
                self.now += seconds;
                Ok(())
            }
            Transition::SetPolicy(policy) => {
                self.policy = *policy;
                Ok(())
            }
            Transition::Kill(process, flushes) => {
                self.kill(*process, *flushes);
                Ok(())
            }
        };
        match done {
            Ok(()) => TransitionResult::Accepted,
            Err(refusal) => TransitionResult::Refused(refusal),
        }
    }

    fn kill(&mut self, process: Process, flushes: bool) {
        for run in &mut self.runs {
            if let Some(live) = run.live.take_if(|live| live.process == process)
                && flushes
            {
                run.durable = live.progress;
            }
        }
    }

    fn assign(&mut self, run: usize, process: Process) {
        let policy = self.policy;
        let run = &mut self.runs[run];
        run.stored_state = StoredState::Open;
        run.live = Some(Live {
            process,
            policy,
            progress: run.durable.clone(),
        });
    }

    fn resume(
        &mut self,
        process: Process,
        run: usize,
        incident: Option<Incident>,
    ) -> TransitionResult {
        if self.runs[run].stored_state == StoredState::Ended {
            let end = self.runs[run].durable.end.unwrap_or(Ended::Completed);
            return TransitionResult::Driven(Driven::Ended(end));
        }
        if self.runs[run].live.is_some() {
            return TransitionResult::Refused(Refusal::OwnedElsewhere);
        }
        self.assign(run, process);
        TransitionResult::Driven(ReferenceDriver::new(self, run, incident).resume())
    }

    pub(super) fn sweep(&mut self) {
        let now = self.now;
        for run in &mut self.runs {
            let mut overdue = Vec::new();
            for (call_ref, asked) in &mut run.questions {
                for (number, question) in asked.iter_mut().enumerate() {
                    if question.status == Status::Pending && question.expires <= now {
                        question.status = Status::Expired;
                        overdue.push((question.expires, *call_ref, number));
                    }
                }
            }
            overdue.sort_unstable();
            let entry = |(_, call_ref, number)| InboxEntry::Settled(call_ref, number);
            run.inbox.extend(overdue.into_iter().map(entry));
        }
    }

    fn decide(
        &mut self,
        call_ref: CallRef,
        by: Person,
        kind: DecisionKind,
        shown: Shown,
    ) -> Result<(), Refusal> {
        self.sweep();
        let run = &mut self.runs[call_ref.run];
        let asked = run.questions.get_mut(&call_ref);
        let asked = asked.ok_or(Refusal::NoSuchApproval)?;
        let number = asked.len() - 1;
        let question = &mut asked[number];
        if by == Person::OtherTenant {
            return Err(Refusal::NoSuchApproval);
        }
        match question.status {
            Status::Pending => {}
            Status::Expired => return Err(Refusal::Expired),
            _ => return Err(Refusal::AlreadyDecided),
        }
        let now = question.arguments();
        let saw_it = match shown {
            Shown::NotGiven | Shown::Current => true,
            Shown::Asked => question.asked == now,
            Shown::Other => false,
        };
        if !saw_it {
            return Err(Refusal::DigestDiffers);
        }
        let fits = match kind {
            DecisionKind::Reject => true,
            DecisionKind::Answer => !question.for_approval,
            _ => question.for_approval,
        };
        if !fits {
            return Err(Refusal::Undecided);
        }
        let wanted = match kind {
            DecisionKind::Edit => Arguments::Edited,
            DecisionKind::EditInvalid => Arguments::Invalid,
            _ => now,
        };
        let lets_run = matches!(
            kind,
            DecisionKind::Approve | DecisionKind::Edit | DecisionKind::EditInvalid
        );
        if let Some((first, _, agreed)) = question.decided.first()
            && lets_run
        {
            // Two different people must approve the same arguments, and must have seen them.
            let may_be_stale = kind == DecisionKind::Approve && shown == Shown::NotGiven;
            if *first == by || *agreed != wanted || (may_be_stale && *agreed != question.asked) {
                return Err(Refusal::Undecided);
            }
        }
        question.decided.push((by, kind, wanted));
        question.status = match kind {
            DecisionKind::Reject => Status::Rejected,
            DecisionKind::Respond | DecisionKind::Answer => Status::Approved,
            _ if question.two && question.decided.len() < 2 => return Ok(()),
            _ => Status::Approved,
        };
        run.inbox.push(InboxEntry::Settled(call_ref, number));
        Ok(())
    }

    fn change_hold(
        &mut self,
        call_ref: CallRef,
        by: Person,
        to: Hold,
        entry: InboxEntry,
    ) -> Result<(), Refusal> {
        let run = &mut self.runs[call_ref.run];
        let hold = run.holds.get_mut(&call_ref).ok_or(Refusal::NoSuchHold)?;
        if by == Person::OtherTenant {
            return Err(Refusal::NoSuchHold);
        }
        if *hold != Hold::Held {
            return Err(Refusal::TooLate);
        }
        *hold = to;
        run.inbox.push(entry);
        Ok(())
    }

    fn cancel(&mut self, run: usize, by: Person) -> Result<(), Refusal> {
        let run = &mut self.runs[run];
        if by == Person::OtherTenant {
            return Err(Refusal::NoSuchRun);
        }
        if run.stored_state == StoredState::Ended {
            return Err(Refusal::RunEnded);
        }
        run.withdraw(None);
        if !run.inbox.contains(&InboxEntry::Cancel) {
            run.inbox.push(InboxEntry::Cancel);
        }
        Ok(())
    }

    /// The moments that a driver of a run would reach in this transition.
    pub(super) fn moments(&self, transition: &Transition) -> Vec<String> {
        let mut reference = self.clone();
        match transition {
            Transition::Start(process, script, _) => {
                reference
                    .runs
                    .push(RunModel::new(script.clone(), reference.now));
                let run = reference.runs.len() - 1;
                reference.assign(run, *process);
                ReferenceDriver::new(&mut reference, run, None).moments()
            }
            Transition::Resume(process, run, _) => {
                let model = &reference.runs[*run];
                if model.stored_state == StoredState::Ended || model.live.is_some() {
                    return Vec::new();
                }
                reference.assign(*run, *process);
                ReferenceDriver::new(&mut reference, *run, None).moments_of_resume()
            }
            Transition::Continue(run, _) => {
                ReferenceDriver::new(&mut reference, *run, None).moments()
            }
            _ => Vec::new(),
        }
    }

    /// All calls that were or may be made.
    pub(super) fn calls(&self) -> Vec<CallRef> {
        let mut calls = Vec::new();
        for (run, model) in self.runs.iter().enumerate() {
            for (turn, kinds) in model.script.iter().enumerate() {
                let turn = |index| CallRef { run, turn, index };
                calls.extend((0..kinds.len()).map(turn));
            }
        }
        calls
    }
}
