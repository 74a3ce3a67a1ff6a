//! Waiting: for people, for undo windows, and for commands in the inbox of a run, which are taken in the
//! transaction that stores the event they lead to.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use windlass_core::approval::Approval;
use windlass_core::durable::{Durability, InboxAction, InboxCommand};
use windlass_core::run::{Event, Run, RunEnd, Waiting};
use windlass_spec::CallId;

use super::{Drive, DriveError};
use crate::progress::Progress;
use crate::recording::{Misfit, take_command};

/// How often the inbox is looked at while something else goes on.
pub(super) const LOOK: Duration = Duration::from_millis(250);

/// How often it is looked at while there is nothing else to do.
pub(super) const LOOK_CLOSELY: Duration = Duration::from_millis(100);

/// Puts a question to a person who is there, for instance at a terminal. Whoever answers decides in
/// the same way as everybody else, from wherever they are; the run learns of it from its inbox.
pub type Asker = Arc<dyn Fn(Approval) -> BoxFuture<'static, Asked> + Send + Sync>;

/// What came of putting a question to a person who is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// They decided, or somebody else had.
    Decided,
    /// They did not.
    NotDecided,
}

/// What a driver does when a run can only wait for a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Patience {
    /// It leaves the run, to be taken up again when somebody has decided.
    #[default]
    Leave,
    /// It waits.
    Stay,
}

/// Whether a run goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Goes {
    On,
    /// It is left as it is.
    Away,
}

impl Drive<'_> {
    /// Waits until something of what the run waits for has come about.
    pub(super) async fn wait(&mut self, waiting: Waiting) -> Result<Goes, DriveError> {
        if self.take_commands().await? == Took::Something {
            return Ok(Goes::On);
        }
        let now = self.driver.durable.now();
        let left = Duration::from_micros(waiting.until.microseconds_since(now));
        if left.is_zero() {
            self.driver.durable.sweep().await?;
            if self.take_commands().await? == Took::Something {
                return Ok(Goes::On);
            }
            if self.run.held_calls().any(|(_, until)| until <= now) {
                self.record(Event::TimePassed { at: now }, Durability::Relaxed)
                    .await?;
                return Ok(Goes::On);
            }
        }
        if waiting.for_person && self.ask_whoever_is_there().await? == Asked::Decided {
            self.take_commands().await?;
            return Ok(Goes::On);
        }
        let may_leave = self.driver.patience == Patience::Leave;
        // An undo window is short; what is held runs before the run is left.
        let is_held = self.run.held_calls().next().is_some();
        // Nor is a call left whose server waits for an answer: it would be lost.
        if waiting.for_person && may_leave && !is_held && self.parked.is_empty() {
            return self.leave_waiting().await;
        }
        // Time alone brings nothing any more if it is up and nothing came of it.
        let pause = match left.is_zero() {
            true => LOOK_CLOSELY,
            false => left.min(LOOK_CLOSELY),
        };
        let stop = &self.driver.stop;
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = stop.after_step.cancelled() => {}
            () = stop.at_once.cancelled() => {}
        }
        Ok(Goes::On)
    }

    /// Leaves the run to wait for a person. It costs nothing but its rows then.
    pub(super) async fn leave_waiting(&mut self) -> Result<Goes, DriveError> {
        self.run.leave_waiting();
        self.journal.end(&RunEnd::WaitingForPerson).await?;
        Ok(Goes::Away)
    }

    /// Puts the first question that was not put yet to a person who is there.
    async fn ask_whoever_is_there(&mut self) -> Result<Asked, DriveError> {
        let Some(asker) = &self.driver.asker else {
            return Ok(Asked::NotDecided);
        };
        let mut questions = self.run.questions();
        let open = questions.find(|question| !self.put.contains(question.call()));
        let Some(question) = open.cloned() else {
            return Ok(Asked::NotDecided);
        };
        let call = question.call().clone();
        let asked = asker(question).await;
        if asked == Asked::NotDecided {
            self.put.insert(call);
        }
        Ok(asked)
    }

    /// Takes the commands in the inbox of the run.
    pub(super) async fn take_commands(&mut self) -> Result<Took, DriveError> {
        let mut took = Took::Nothing;
        for command in self.journal.inbox().await? {
            took = Took::Something;
            self.take(command).await?;
        }
        Ok(took)
    }

    pub(super) async fn take(&mut self, command: InboxCommand) -> Result<(), DriveError> {
        let at = self.driver.durable.now();
        // A run that is cancelled has withdrawn its questions, so no answer has to fit any more.
        let is_answer = matches!(command.action, InboxAction::Settled(_));
        let must_fit = is_answer && !self.is_to_be_cancelled().await?;
        let taken = take_command(
            &mut self.run,
            &mut *self.journal,
            command,
            at,
            |run, event| match must_fit && settles_open_question(run, event) {
                true => Misfit::Stop,
                false => Misfit::Take,
            },
        );
        if let Some(event) = taken.await? {
            (self.driver.watch)(self.run.id(), Progress::Event(event.event()));
        }
        Ok(())
    }

    /// Stops the run if somebody wants that. Whether they do.
    pub(super) async fn stop_if_told(&mut self) -> Result<bool, DriveError> {
        let is_told = self.run.end().is_none() && self.is_to_be_cancelled().await?;
        if is_told {
            self.take_commands().await?;
        }
        Ok(is_told)
    }

    /// Whether somebody wants the run to be stopped.
    pub(super) async fn is_to_be_cancelled(&self) -> Result<bool, DriveError> {
        let inbox = self.journal.inbox().await?;
        let mut actions = inbox.iter().map(|command| &command.action);
        Ok(actions.any(|action| *action == InboxAction::Cancel))
    }
}

/// Whether an event settles a question that is open. If it does not fit that question, one of the two was
/// tampered with.
fn settles_open_question(run: &Run, event: &Event) -> bool {
    let Event::Settled { approval, .. } = event else {
        return false;
    };
    let mut questions = run.questions();
    questions.any(|question| question.call() == approval.call())
}

/// Whether there were commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Took {
    Something,
    Nothing,
}

/// The calls whose questions were put to a person who is there and were not decided.
pub(super) type Put = HashSet<CallId>;
