//! The reference for whoever drives a run: what is done next, what is safe from a crash at which
//! moment, and where the process may die.

use super::things::{
    Arguments, Call, DAY, End, Ended, Hold, Kind, Live, Mail, Policy, Process, Question, Row,
    RunModel, Stage, Status, Told, WINDOW, Which, Word,
};
use super::world::{Transition, World};

/// Something that happens while a process drives a run, at a moment that it comes by.
#[derive(Debug, Clone)]
pub(super) struct Incident {
    pub(super) at: String,
    pub(super) what: What,
}

#[derive(Debug, Clone)]
pub(super) enum What {
    /// The process dies. Whether what it had written without waiting reaches the disk.
    Dies { keeps: bool },
    /// Somebody elsewhere does something.
    Meanwhile(Box<Transition>),
}

/// How far driving a run came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Driven {
    Ended(Ended),
    /// It was left to wait for a person.
    Left,
    /// It waits, in the hands of its process.
    Stays,
    Died,
}

struct Died {
    keeps: bool,
}

enum Step {
    AtGate,
    Asks(i64),
    Held(i64),
    Runs,
    Over,
}

enum Next {
    Gate(Vec<Which>),
    Run(Vec<Which>),
    Wait { until: i64, for_person: bool },
    Model,
    Done(Ended),
}

/// Whether an event is safe from a crash when it has happened.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Safe {
    AtOnce,
    Later,
}

/// A run in hand.
pub(super) struct Hand<'w> {
    world: &'w mut World,
    run: usize,
    incident: Option<Incident>,
    /// The moments that were passed, in order.
    points: Vec<String>,
}

impl<'w> Hand<'w> {
    pub(super) fn new(world: &'w mut World, run: usize, incident: Option<Incident>) -> Self {
        Self {
            world,
            run,
            incident,
            points: Vec::new(),
        }
    }

    /// Takes the run up and drives it.
    pub(super) fn resume(mut self) -> Driven {
        let taken = self.take_up();
        match taken {
            Ok(()) => self.drive(),
            Err(died) => self.die(&died),
        }
    }

    pub(super) fn drive(mut self) -> Driven {
        match self.until_it_stands() {
            Ok(driven) => driven,
            Err(died) => self.die(&died),
        }
    }

    /// The moments at which a process may die that drives the run.
    pub(super) fn moments(mut self) -> Vec<String> {
        let _ = self.until_it_stands();
        self.points
    }

    /// The same for one that takes it up.
    pub(super) fn moments_of_resuming(mut self) -> Vec<String> {
        let _ = self.take_up();
        self.moments()
    }

    fn die(&mut self, died: &Died) -> Driven {
        let run = self.model();
        if let Some(live) = run.live.take()
            && died.keeps
        {
            run.kept = live.told;
        }
        Driven::Died
    }

    fn take_up(&mut self) -> Result<(), Died> {
        if self.live().told.end.is_none() {
            self.happen("resumed", Safe::Later, |_, _| {})?;
            self.take_mail()?;
        }
        Ok(())
    }

    fn until_it_stands(&mut self) -> Result<Driven, Died> {
        loop {
            match self.next() {
                Next::Done(end) => {
                    self.leave(Row::Ended)?;
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
        let model = &self.world.runs[run];
        let told = &self.live().told;
        if let Some(end) = told.end {
            return Next::Done(end);
        }
        let (mut at_gate, mut runnable) = (Vec::new(), Vec::new());
        let mut wait: Option<(i64, bool)> = None;
        let (mut is_behind, mut is_barred) = (false, false);
        let turn = told.turns.len().saturating_sub(1);
        for (index, call) in told.turns.last().into_iter().flatten().enumerate() {
            let which = Which { run, turn, index };
            let is_final = matches!(call.kind, Kind::Pay | Kind::Wire);
            let mut wait_until = |at: i64, for_person| {
                let (until, person) = wait.unwrap_or((at, false));
                wait = Some((until.min(at), person || for_person));
            };
            match step(call, which, model, told) {
                Step::Over => continue,
                Step::AtGate => at_gate.push(which),
                Step::Asks(until) => wait_until(until, true),
                Step::Held(until) => wait_until(until, false),
                // What cannot be undone runs alone and in its turn.
                Step::Runs if is_barred || (is_final && is_behind) => {}
                Step::Runs => runnable.push(which),
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

    fn ask_model(&mut self) -> Result<(), Died> {
        let turn = self.live().told.turns.len();
        let kinds = self.world.runs[self.run].script.get(turn).cloned();
        self.happen("answered", Safe::Later, |_, told| match kinds {
            Some(kinds) => told.turns.push(
                kinds
                    .into_iter()
                    .map(|kind| Call {
                        kind,
                        stage: Stage::Undecided,
                        arguments: Arguments::AsAsked,
                    })
                    .collect(),
            ),
            None => told.end = Some(Ended::Completed),
        })
    }

    fn pass_gate(&mut self, which: Which) -> Result<(), Died> {
        let (now, policy) = (self.world.now, self.live().policy);
        let Call {
            kind,
            stage,
            arguments,
        } = self.call(which);
        let question = |for_leave, two| Question {
            for_leave,
            two,
            expires: now + DAY,
            status: Status::Pending,
            asked: arguments,
            decided: Vec::new(),
        };
        let (asked, then) = match stage {
            Stage::Undecided => {
                let stage = decided(kind, policy);
                return self.happen(&format!("decided {which}"), Safe::Later, |_, told| {
                    told.call(which).stage = stage;
                });
            }
            Stage::ToHold => {
                return self.happen(&format!("held {which}"), Safe::AtOnce, |run, told| {
                    run.holds.insert(which, Hold::Held);
                    told.call(which).stage = Stage::Held {
                        until: now + WINDOW,
                        released: false,
                    };
                });
            }
            Stage::ToAsk { two } => (question(true, two), Stage::Asked),
            Stage::ToQuestion => (question(false, false), Stage::Asked),
            Stage::Lost => (question(false, false), Stage::LostAsked),
            _ => return Ok(()),
        };
        self.happen(&format!("asked {which}"), Safe::AtOnce, |run, told| {
            run.questions.entry(which).or_default().push(asked);
            told.call(which).stage = then;
        })
    }

    fn run_calls(&mut self, calls: &[Which]) -> Result<(), Died> {
        let mut running = Vec::new();
        for which in calls {
            if self.model().mail.contains(&Mail::Cancel) {
                self.take_mail()?;
                break;
            }
            if self.may_run(*which)? {
                running.push(*which);
            }
        }
        for which in &running {
            self.pass(format!("before effect {which}"))?;
            let arguments = self.call(*which).arguments;
            self.world.effects.push((*which, arguments));
            self.pass(format!("after effect {which}"))?;
        }
        for which in running {
            self.happen(&format!("ended {which}"), Safe::Later, |_, told| {
                told.call(which).stage = Stage::Over(End::Done);
            })?;
        }
        Ok(())
    }

    fn may_run(&mut self, which: Which) -> Result<bool, Died> {
        let policy = self.live().policy;
        let Call {
            kind,
            stage,
            arguments,
        } = self.call(which);
        if stage == Stage::Started {
            self.happen(&format!("ended {which}"), Safe::Later, |_, told| {
                told.call(which).stage = Stage::Lost;
            })?;
            return Ok(false);
        }
        // The rules may have become stricter since a person agreed.
        let again = match decided(kind, policy) {
            _ if arguments == Arguments::Bad => Some(Stage::Over(End::Denied)),
            denied @ Stage::Over(_) => Some(denied),
            Stage::ToAsk { two: true } if stage == (Stage::Approved { two: false }) => {
                Some(Stage::ToAsk { two: true })
            }
            _ => None,
        };
        if let Some(again) = again {
            self.happen(&format!("decided {which}"), Safe::AtOnce, |run, told| {
                run.withdraw(Some(which));
                told.call(which).stage = again;
            })?;
            return Ok(false);
        }
        self.start(which)
    }

    /// Starts a call, unless somebody undid it at the last moment.
    fn start(&mut self, which: Which) -> Result<bool, Died> {
        self.pass(format!("before started {which}"))?;
        let hold = self.model().holds.get(&which).copied();
        let may_start = matches!(hold, None | Some(Hold::Held | Hold::Released));
        if may_start {
            self.change(|run, told| {
                if let Some(hold) = run.holds.get_mut(&which) {
                    *hold = Hold::Started;
                }
                told.call(which).stage = Stage::Started;
            });
        }
        // What came before is safe, also if this is refused.
        self.keep();
        self.pass(format!("after started {which}"))?;
        if !may_start {
            self.take_mail()?;
        }
        Ok(may_start)
    }

    /// Waits, unless there is something to do.
    fn wait(&mut self, until: i64, for_person: bool) -> Result<Option<Driven>, Died> {
        if self.take_mail()? {
            return Ok(None);
        }
        let now = self.world.now;
        let held: Vec<i64> = self.held();
        if until <= now {
            self.world.sweep();
            if self.take_mail()? {
                return Ok(None);
            }
            if held.iter().any(|until| *until <= now) {
                self.happen("passed", Safe::Later, |_, _| {})?;
                return Ok(None);
            }
        }
        let may_leave = self.live().process == Process::Hasty;
        if for_person && may_leave && held.is_empty() {
            self.leave(Row::Waiting)?;
            return Ok(Some(Driven::Left));
        }
        Ok(Some(Driven::Stays))
    }

    /// Until when calls are held.
    fn held(&mut self) -> Vec<i64> {
        let told = &self.live().told;
        let calls = told.turns.last().into_iter().flatten();
        let held = calls.filter_map(|call| match call.stage {
            Stage::Held {
                until,
                released: false,
            } if told.now < until => Some(until),
            _ => None,
        });
        held.collect()
    }

    /// Takes what others want. Whether there was anything.
    fn take_mail(&mut self) -> Result<bool, Died> {
        let mail = self.model().mail.clone();
        for mail in &mail {
            match *mail {
                Mail::Settled(which, number) => {
                    self.take(&format!("settled {which}"), |run, told| {
                        let question = &run.questions[&which][number];
                        settle(told.call(which), question);
                    })?;
                }
                Mail::Undo(which) => self.take(&format!("undone {which}"), |_, told| {
                    told.call(which).stage = Stage::Over(End::Undone);
                })?,
                Mail::Release(which) => self.take(&format!("released {which}"), |_, told| {
                    if let Stage::Held { released, .. } = &mut told.call(which).stage {
                        *released = true;
                    }
                })?,
                Mail::Cancel => self.take("cancelled", |_, told| {
                    told.end = Some(Ended::Cancelled);
                })?,
            }
        }
        Ok(!mail.is_empty())
    }

    fn take(
        &mut self,
        event: &str,
        change: impl FnOnce(&mut RunModel, &mut Told),
    ) -> Result<(), Died> {
        self.happen(event, Safe::AtOnce, |run, told| {
            run.mail.remove(0);
            change(run, told);
        })
    }

    /// Gives the run back.
    fn leave(&mut self, row: Row) -> Result<(), Died> {
        self.pass("before end".to_owned())?;
        self.keep();
        let run = self.model();
        run.row = row;
        if row == Row::Ended {
            run.withdraw(None);
        }
        self.pass("after end".to_owned())?;
        self.model().live = None;
        Ok(())
    }

    fn happen(
        &mut self,
        event: &str,
        safe: Safe,
        change: impl FnOnce(&mut RunModel, &mut Told),
    ) -> Result<(), Died> {
        self.pass(format!("before {event}"))?;
        self.change(change);
        if safe == Safe::AtOnce {
            self.keep();
        }
        self.pass(format!("after {event}"))
    }

    fn change(&mut self, change: impl FnOnce(&mut RunModel, &mut Told)) {
        let now = self.world.now;
        let run = self.model();
        if let Some(mut live) = run.live.take() {
            change(run, &mut live.told);
            live.told.now = live.told.now.max(now);
            live.told.events += 1;
            run.live = Some(live);
        }
    }

    fn keep(&mut self) {
        let told = self.live().told.clone();
        self.model().kept = told;
    }

    fn pass(&mut self, point: String) -> Result<(), Died> {
        let is_now = |incident: &mut Incident| incident.at == point;
        let incident = self.incident.take_if(is_now);
        self.points.push(point);
        match incident.map(|incident| incident.what) {
            None => Ok(()),
            Some(What::Dies { keeps }) => Err(Died { keeps }),
            Some(What::Meanwhile(what)) => {
                self.world.meanwhile = Some(self.world.act(&what));
                Ok(())
            }
        }
    }

    fn model(&mut self) -> &mut RunModel {
        &mut self.world.runs[self.run]
    }

    fn live(&self) -> &Live {
        let live = self.world.runs[self.run].live.as_ref();
        live.expect("a run in hand is live")
    }

    fn call(&self, which: Which) -> Call {
        self.live().told.turns[which.turn][which.index].clone()
    }
}

/// What the gate decides about a call.
fn decided(kind: Kind, policy: Policy) -> Stage {
    match (kind, policy) {
        (Kind::Pay, Policy::NoPay) => Stage::Over(End::Denied),
        (Kind::Pay, Policy::Usual) => Stage::ToAsk { two: false },
        (Kind::Pay, Policy::TwoForPay) | (Kind::Wire, _) => Stage::ToAsk { two: true },
        (Kind::Note, _) => Stage::ToHold,
        (Kind::Ask, _) => Stage::ToQuestion,
    }
}

fn step(call: &Call, which: Which, run: &RunModel, told: &Told) -> Step {
    match call.stage {
        Stage::Undecided
        | Stage::ToAsk { .. }
        | Stage::ToHold
        | Stage::ToQuestion
        | Stage::Lost => Step::AtGate,
        Stage::Asked | Stage::LostAsked => {
            let asked = run.questions.get(&which).and_then(|asked| asked.last());
            Step::Asks(asked.map_or(0, |question| question.expires))
        }
        Stage::Held { until, released } if !released && told.now < until => Step::Held(until),
        Stage::Held { .. } | Stage::Approved { .. } | Stage::Started => Step::Runs,
        Stage::Over(_) => Step::Over,
    }
}

/// What a call becomes when its question is settled.
fn settle(call: &mut Call, question: &Question) {
    let last = question.decided.last().map(|(_, word, _)| *word);
    call.stage = match (question.status, last) {
        _ if call.stage == Stage::LostAsked => Stage::Over(End::Unknown),
        (Status::Rejected, _) => Stage::Over(End::Rejected),
        (Status::Expired, _) => Stage::Over(End::Expired),
        (_, Some(Word::Answer)) => Stage::Over(End::Answered),
        (_, Some(Word::Respond)) => Stage::Over(End::Responded),
        _ => {
            call.arguments = question.arguments();
            Stage::Approved { two: question.two }
        }
    };
}
