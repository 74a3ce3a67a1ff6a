//! The reference: what must become of runs, calls, questions, holds and mail, as a small pure state.
//! It knows the rules and none of the code. What a driver does with a run is in `hand.rs`.

use super::hand::{Driven, Hand, Incident};
use super::things::{
    Arguments, Ended, Hold, Kind, Live, Mail, Person, Policy, Process, Row, RunModel, Shown,
    Status, Which, Word,
};

/// Why something is refused.
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

/// What came of a transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Came {
    Accepted,
    Refused(Refusal),
    Driven(Driven),
}

/// What happens.
#[derive(Debug, Clone)]
pub(super) enum Transition {
    Start(Process, Vec<Vec<Kind>>, Option<Incident>),
    Resume(Process, usize, Option<Incident>),
    /// Lets the process that has the run go on with it.
    Work(usize, Option<Incident>),
    Decide(Process, Which, Person, Word, Shown),
    Undo(Process, Which, Person),
    Release(Process, Which, Person),
    Cancel(Process, usize, Person),
    Sweep(Process),
    Pass(i64),
    LayDown(Policy),
    /// All that a process has in hand is lost, and it starts anew. Whether what it had written
    /// without waiting reached the disk.
    Kill(Process, bool),
}

/// Everything there is.
#[derive(Debug, Clone)]
pub(super) struct World {
    pub(super) now: i64,
    pub(super) policy: Policy,
    pub(super) runs: Vec<RunModel>,
    /// The calls that had an effect, and with what.
    pub(super) effects: Vec<(Which, Arguments)>,
    /// What came of the last transition.
    pub(super) came: Came,
    /// What came of what somebody did meanwhile.
    pub(super) meanwhile: Option<Came>,
}

impl World {
    pub(super) fn new() -> Self {
        Self {
            now: 0,
            policy: Policy::Usual,
            runs: Vec::new(),
            effects: Vec::new(),
            came: Came::Accepted,
            meanwhile: None,
        }
    }

    pub(super) fn take(&mut self, transition: &Transition) {
        self.meanwhile = None;
        self.came = match transition {
            Transition::Start(process, script, incident) => {
                self.runs.push(RunModel::new(script.clone(), self.now));
                let run = self.runs.len() - 1;
                self.hand_over(run, *process);
                Came::Driven(Hand::new(self, run, incident.clone()).drive())
            }
            Transition::Resume(process, run, incident) => {
                self.resume(*process, *run, incident.clone())
            }
            Transition::Work(run, incident) => {
                Came::Driven(Hand::new(self, *run, incident.clone()).drive())
            }
            other => self.act(other),
        };
    }

    /// What happens without anybody driving a run.
    pub(super) fn act(&mut self, transition: &Transition) -> Came {
        let done = match transition {
            Transition::Start(..) | Transition::Resume(..) | Transition::Work(..) => Ok(()),
            Transition::Decide(_, which, by, word, shown) => {
                self.decide(*which, *by, *word, *shown)
            }
            Transition::Undo(_, which, by) => {
                self.change_hold(*which, *by, Hold::Undone, Mail::Undo(*which))
            }
            Transition::Release(_, which, by) => {
                self.change_hold(*which, *by, Hold::Released, Mail::Release(*which))
            }
            Transition::Cancel(_, run, by) => self.cancel(*run, *by),
            Transition::Sweep(_) => {
                self.sweep();
                Ok(())
            }
            Transition::Pass(seconds) => {
                self.now += seconds;
                Ok(())
            }
            Transition::LayDown(policy) => {
                self.policy = *policy;
                Ok(())
            }
            Transition::Kill(process, keeps) => {
                self.kill(*process, *keeps);
                Ok(())
            }
        };
        match done {
            Ok(()) => Came::Accepted,
            Err(refusal) => Came::Refused(refusal),
        }
    }

    fn kill(&mut self, process: Process, keeps: bool) {
        for run in &mut self.runs {
            if let Some(live) = run.live.take_if(|live| live.process == process)
                && keeps
            {
                run.kept = live.told;
            }
        }
    }

    fn hand_over(&mut self, run: usize, process: Process) {
        let policy = self.policy;
        let run = &mut self.runs[run];
        run.row = Row::Open;
        run.live = Some(Live {
            process,
            policy,
            told: run.kept.clone(),
        });
    }

    fn resume(&mut self, process: Process, run: usize, incident: Option<Incident>) -> Came {
        if self.runs[run].row == Row::Ended {
            let end = self.runs[run].kept.end.unwrap_or(Ended::Completed);
            return Came::Driven(Driven::Ended(end));
        }
        if self.runs[run].live.is_some() {
            return Came::Refused(Refusal::OwnedElsewhere);
        }
        self.hand_over(run, process);
        Came::Driven(Hand::new(self, run, incident).resume())
    }

    pub(super) fn sweep(&mut self) {
        let now = self.now;
        for run in &mut self.runs {
            let mut overdue = Vec::new();
            for (which, asked) in &mut run.questions {
                for (number, question) in asked.iter_mut().enumerate() {
                    if question.status == Status::Pending && question.expires <= now {
                        question.status = Status::Expired;
                        overdue.push((question.expires, *which, number));
                    }
                }
            }
            overdue.sort_unstable();
            let mail = |(_, which, number)| Mail::Settled(which, number);
            run.mail.extend(overdue.into_iter().map(mail));
        }
    }

    fn decide(
        &mut self,
        which: Which,
        by: Person,
        word: Word,
        shown: Shown,
    ) -> Result<(), Refusal> {
        self.sweep();
        let run = &mut self.runs[which.run];
        let asked = run.questions.get_mut(&which);
        let asked = asked.ok_or(Refusal::NoSuchApproval)?;
        let number = asked.len() - 1;
        let question = &mut asked[number];
        if by == Person::Stranger {
            return Err(Refusal::NoSuchApproval);
        }
        match question.status {
            Status::Pending => {}
            Status::Expired => return Err(Refusal::Expired),
            _ => return Err(Refusal::AlreadyDecided),
        }
        let now = question.arguments();
        let saw_it = match shown {
            Shown::Unsaid | Shown::Now => true,
            Shown::Asked => question.asked == now,
            Shown::Other => false,
        };
        if !saw_it {
            return Err(Refusal::DigestDiffers);
        }
        let fits = match word {
            Word::Reject => true,
            Word::Answer => !question.for_leave,
            _ => question.for_leave,
        };
        if !fits {
            return Err(Refusal::Undecided);
        }
        let wanted = match word {
            Word::Edit => Arguments::Edited,
            Word::EditBadly => Arguments::Bad,
            _ => now,
        };
        let lets_run = matches!(word, Word::Approve | Word::Edit | Word::EditBadly);
        if let Some((first, _, agreed)) = question.decided.first()
            && lets_run
        {
            // One person is not two, both must mean the same, and must have seen it.
            let may_be_stale = word == Word::Approve && shown == Shown::Unsaid;
            if *first == by || *agreed != wanted || (may_be_stale && *agreed != question.asked) {
                return Err(Refusal::Undecided);
            }
        }
        question.decided.push((by, word, wanted));
        question.status = match word {
            Word::Reject => Status::Rejected,
            Word::Respond | Word::Answer => Status::Approved,
            _ if question.two && question.decided.len() < 2 => return Ok(()),
            _ => Status::Approved,
        };
        run.mail.push(Mail::Settled(which, number));
        Ok(())
    }

    fn change_hold(
        &mut self,
        which: Which,
        by: Person,
        to: Hold,
        mail: Mail,
    ) -> Result<(), Refusal> {
        let run = &mut self.runs[which.run];
        let hold = run.holds.get_mut(&which).ok_or(Refusal::NoSuchHold)?;
        if by == Person::Stranger {
            return Err(Refusal::NoSuchHold);
        }
        if *hold != Hold::Held {
            return Err(Refusal::TooLate);
        }
        *hold = to;
        run.mail.push(mail);
        Ok(())
    }

    fn cancel(&mut self, run: usize, by: Person) -> Result<(), Refusal> {
        let run = &mut self.runs[run];
        if by == Person::Stranger {
            return Err(Refusal::NoSuchRun);
        }
        if run.row == Row::Ended {
            return Err(Refusal::RunEnded);
        }
        run.withdraw(None);
        if !run.mail.contains(&Mail::Cancel) {
            run.mail.push(Mail::Cancel);
        }
        Ok(())
    }

    /// The moments that whoever drives a run would come by if this happened.
    pub(super) fn moments(&self, transition: &Transition) -> Vec<String> {
        let mut world = self.clone();
        match transition {
            Transition::Start(process, script, _) => {
                world.runs.push(RunModel::new(script.clone(), world.now));
                let run = world.runs.len() - 1;
                world.hand_over(run, *process);
                Hand::new(&mut world, run, None).moments()
            }
            Transition::Resume(process, run, _) => {
                let model = &world.runs[*run];
                if model.row == Row::Ended || model.live.is_some() {
                    return Vec::new();
                }
                world.hand_over(*run, *process);
                Hand::new(&mut world, *run, None).moments_of_resuming()
            }
            Transition::Work(run, _) => Hand::new(&mut world, *run, None).moments(),
            _ => Vec::new(),
        }
    }

    /// All calls that were or may be made.
    pub(super) fn calls(&self) -> Vec<Which> {
        let mut calls = Vec::new();
        for (run, model) in self.runs.iter().enumerate() {
            for (turn, kinds) in model.script.iter().enumerate() {
                let turn = |index| Which { run, turn, index };
                calls.extend((0..kinds.len()).map(turn));
            }
        }
        calls
    }
}
