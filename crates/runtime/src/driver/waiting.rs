//! Waiting: for people, for undo windows, and for commands in the inbox of a run. A command is taken in
//! the transaction that stores its event.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use windlass_core::approval::Approval;
use windlass_core::durable::{AtomicWrite, Durability, InboxAction, InboxCommand};
use windlass_core::redact::RedactedEvent;
use windlass_core::run::{Event, Run, RunEnd, Waiting};
use windlass_spec::{CallId, Timestamp};

use super::{Drive, DriveError, store_applied};
use crate::durable::Journal;
use crate::progress::Progress;

/// How often the inbox is read while a step is in progress.
pub(super) const INBOX_POLL: Duration = Duration::from_millis(250);

/// How often the inbox is read while the run only waits.
pub(super) const INBOX_POLL_IDLE: Duration = Duration::from_millis(100);

/// Asks an approver who is present, for instance at a terminal. The answer is stored like that of any
/// other approver, and the run reads it from its inbox.
pub type Asker = Arc<dyn Fn(Approval) -> BoxFuture<'static, AskOutcome> + Send + Sync>;

/// The result of asking an approver who is present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskOutcome {
    /// This approver decided, or another one had.
    Decided,
    /// The question stays open.
    NotDecided,
}

/// What a driver does when a run can only wait for a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WaitPolicy {
    /// Suspends the run, to be resumed when an approver has decided.
    #[default]
    Suspend,
    /// Waits in this process.
    Wait,
}

/// Whether the driver continues with a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    Continue,
    /// The driver returns and the run stays open.
    Yield,
}

impl Drive<'_> {
    /// Waits for a command, a deadline or a short pause.
    pub(super) async fn wait(&mut self, waiting: Waiting) -> Result<Flow, DriveError> {
        if self.take_commands().await? == InboxState::HadCommands {
            return Ok(Flow::Continue);
        }
        let now = self.driver.durable.now();
        let left = Duration::from_micros(waiting.until.microseconds_since(now));
        if left.is_zero() {
            self.driver.durable.sweep().await?;
            if self.take_commands().await? == InboxState::HadCommands {
                return Ok(Flow::Continue);
            }
            if self.run.held_calls().any(|(_, until)| until <= now) {
                self.record(Event::TimePassed { at: now }, Durability::Relaxed)
                    .await?;
                return Ok(Flow::Continue);
            }
        }
        if waiting.for_person && self.ask_present_approver().await? == AskOutcome::Decided {
            self.take_commands().await?;
            return Ok(Flow::Continue);
        }
        if self.run.outside().is_some() && !waiting.for_person && !left.is_zero() {
            return self.suspend_for_caller(waiting.until).await;
        }
        let may_suspend = self.driver.wait_policy == WaitPolicy::Suspend;
        // An undo window is short: held calls run before the run is suspended.
        let is_held = self.run.held_calls().next().is_some();
        // A call whose server waits for an answer would be lost.
        if waiting.for_person && may_suspend && !is_held && self.parked.is_empty() {
            return self.suspend().await;
        }
        // The deadline has passed without an effect, so only the inbox can change something.
        let pause = match left.is_zero() {
            true => INBOX_POLL_IDLE,
            false => left.min(INBOX_POLL_IDLE),
        };
        let stop = &self.driver.stop;
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = stop.after_step.cancelled() => {}
            () = stop.at_once.cancelled() => {}
        }
        Ok(Flow::Continue)
    }

    /// Suspends the run until a person decides. It then needs no process.
    pub(super) async fn suspend(&mut self) -> Result<Flow, DriveError> {
        self.run.mark_waiting(RunEnd::WaitingForPerson);
        self.journal.end(&RunEnd::WaitingForPerson).await?;
        Ok(Flow::Yield)
    }

    /// Asks the present approver the first question that was not asked yet.
    async fn ask_present_approver(&mut self) -> Result<AskOutcome, DriveError> {
        let Some(asker) = &self.driver.asker else {
            return Ok(AskOutcome::NotDecided);
        };
        let mut questions = self.run.questions();
        let open = questions.find(|question| !self.declined.contains(question.call()));
        let Some(question) = open.cloned() else {
            return Ok(AskOutcome::NotDecided);
        };
        let call = question.call().clone();
        let asked = asker(self.journal.opened(&question)).await;
        if asked == AskOutcome::NotDecided {
            self.declined.insert(call);
        }
        Ok(asked)
    }

    /// Takes the commands in the inbox of the run.
    pub(super) async fn take_commands(&mut self) -> Result<InboxState, DriveError> {
        let mut state = InboxState::Empty;
        for command in self.journal.inbox().await? {
            state = InboxState::HadCommands;
            self.take(command).await?;
        }
        Ok(state)
    }

    pub(super) async fn take(&mut self, command: InboxCommand) -> Result<(), DriveError> {
        let at = self.driver.durable.now();
        // Cancelling a run withdraws its questions, so an answer need not fit any more.
        let is_answer = matches!(command.action, InboxAction::Settled(_));
        let must_fit = is_answer && !self.is_cancel_requested().await?;
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

    /// Cancels the run if that was requested. Returns whether it was.
    pub(super) async fn cancel_if_requested(&mut self) -> Result<bool, DriveError> {
        let is_requested = self.run.end().is_none() && self.is_cancel_requested().await?;
        if is_requested {
            self.take_commands().await?;
        }
        Ok(is_requested)
    }

    /// Whether the inbox has a command to cancel the run.
    pub(super) async fn is_cancel_requested(&self) -> Result<bool, DriveError> {
        let inbox = self.journal.inbox().await?;
        let mut actions = inbox.iter().map(|command| &command.action);
        Ok(actions.any(|action| *action == InboxAction::Cancel))
    }
}

/// Whether to take an inbox command whose event does not fit the run.
pub(crate) enum Misfit {
    /// Take it as [`Event::TimePassed`], so that it does not come again.
    Take,
    /// Stop with the error.
    Stop,
}

/// Takes a command from the inbox of a run and records the event it leads to. One that no longer fits,
/// such as an answer to a question that was withdrawn, is taken as well if `misfit` says so.
pub(crate) async fn take_command(
    run: &mut Run,
    journal: &mut dyn Journal,
    command: InboxCommand,
    at: Timestamp,
    misfit: impl FnOnce(&Run, &Event) -> Misfit,
) -> Result<Option<RedactedEvent>, DriveError> {
    let id = command.id;
    let mut event = journal.redact(command.into_event(at))?;
    if let Err(error) = run.apply(event.event()) {
        if let Misfit::Stop = misfit(run, event.event()) {
            return Err(error.into());
        }
        event = journal.redact(Event::TimePassed { at })?;
        run.apply(event.event())?;
    }
    store_applied(run, journal, event, vec![AtomicWrite::Take(id)]).await
}

/// Whether an event settles an open question. If it then does not fit that question, one of the two was
/// tampered with.
fn settles_open_question(run: &Run, event: &Event) -> bool {
    let Event::Settled { approval, .. } = event else {
        return false;
    };
    let mut questions = run.questions();
    questions.any(|question| question.call() == approval.call())
}

/// Whether the inbox had commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InboxState {
    HadCommands,
    Empty,
}

/// The calls whose questions the present approver left open.
pub(super) type DeclinedQuestions = HashSet<CallId>;
