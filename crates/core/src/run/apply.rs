//! Applies events to a run. Each part applies an event by itself; what one part needs to know of the
//! others is found before anything changes, and passed to it here. Only `calls` and `plans` can refuse
//! an event, and no event changes both. So a refused event leaves the run unchanged. The end of the run
//! follows from the result.

use std::borrow::Cow;

use windlass_spec::{ErrorCategory, Turn};

use super::calls::TurnState;
use super::event::Event;
use super::outcome::{FoldError, RunEnd};
use super::reading::{Reader, TurnSummary};
use super::settings::Budget;
use super::{CallKind, Run};
use crate::model::ModelErrorKind;

impl Run {
    /// Applies the next event.
    ///
    /// # Errors
    /// If the event does not fit. The run is then unchanged.
    pub fn apply(&mut self, event: &Event) -> Result<(), FoldError> {
        self.check(event)?;
        let was_idle = matches!(event, Event::Resumed { .. }) || self.is_waiting();
        let end = self.end_by(event);
        let share = self.share_for(event);
        let (turn, summary) = self.read_answer(event).unzip();

        let now = self.allowance.now();
        let show = |value: &_| self.transcript.shown(value);
        let grant = self.calls.apply(event, turn, now, &self.history, show)?;
        let returned = self.plans.apply(event, share)?;
        // The other parts refuse nothing.
        self.grants.apply(event, grant);
        self.toolbox.apply(event);
        self.transcript.apply(event, summary);
        if let Event::Resumed { accepted, .. } = event {
            self.accepted_files.extend(accepted.clone());
        }
        if let Event::JournalDamaged { reason, .. } = event {
            self.note_damage(reason);
        }
        let last_turn = self.calls.last_turn();
        self.allowance
            .apply(event, was_idle, last_turn, share.or(returned));
        self.end = end.or(self.end.take());

        if self.end.is_none() {
            self.calls.extend_turn(self.allowance.now());
        }
        self.update_shown(event);
        self.end_turns();
        self.settle();
        Ok(())
    }

    /// Makes the messages again that an event has changed.
    fn update_shown(&mut self, event: &Event) {
        match event {
            Event::Offered { .. } | Event::Recalled { .. } => self.set_system(),
            Event::ModelFailed { .. } => {
                let ended = self.calls.ended_after(self.transcript.left_out());
                self.transcript.show_again(ended);
            }
            _ => {}
        }
    }

    /// Sets the system prompt, after something in it has changed.
    pub(super) fn set_system(&mut self) {
        let (agent, missing) = (self.toolbox.agent(), self.toolbox.missing());
        self.transcript.set_system(agent, &self.task, &missing);
    }

    /// Takes the turns into the history whose calls are all over, and leaves out what the model is not shown
    /// any more.
    fn end_turns(&mut self) {
        let now = self.allowance.now();
        while let Some(turn) = self.calls.next_over(now) {
            for entry in &turn.entries {
                let untrusted = self.untrusted_content(entry).map(Cow::into_owned);
                self.history.add(turn.turn, entry, untrusted.as_ref());
            }
            self.transcript.end_turn(turn);
            self.allowance.end_turn(turn.turn);
            self.calls.end_turn();
        }
        if !self.calls.has_open(now) {
            self.transcript.leave_out(self.calls.open_turns());
        }
    }

    /// Refuses an event that does not fit the run as a whole. What concerns only calls or plans, they
    /// check themselves: a call can end after its run.
    fn check(&self, event: &Event) -> Result<(), FoldError> {
        match event {
            Event::Started { .. } => Err(FoldError::StartedTwice),
            Event::ModelAnswered { turn, .. } | Event::ModelFailed { turn, .. } => {
                self.check_asked(*turn)
            }
            Event::Recalled { .. } => {
                self.check_not_ended()?;
                match self.recalled().is_none() && self.turns().is_empty() {
                    true => Ok(()),
                    false => Err(FoldError::RecalledLate),
                }
            }
            Event::Offered { .. } | Event::TaskStarted { .. } | Event::Cancelled { .. } => {
                self.check_not_ended()
            }
            Event::Decided { .. }
            | Event::Asked { .. }
            | Event::Settled { .. }
            | Event::Held { .. }
            | Event::Released { .. }
            | Event::Undone { .. }
            | Event::CallStarted { .. }
            | Event::CallEnded { .. }
            | Event::Planned { .. }
            | Event::Replanned { .. }
            | Event::TaskEnded { .. }
            | Event::TaskMarked { .. }
            | Event::Resumed { .. }
            | Event::JournalDamaged { .. }
            | Event::TimePassed { .. } => Ok(()),
        }
    }

    fn check_not_ended(&self) -> Result<(), FoldError> {
        match self.end {
            Some(_) => Err(FoldError::Ended),
            None => Ok(()),
        }
    }

    fn check_asked(&self, turn: Turn) -> Result<(), FoldError> {
        self.check_not_ended()?;
        let is_busy = self.calls.has_open(self.allowance.now()) || self.is_finishing();
        if turn != self.current_turn() || is_busy {
            return Err(FoldError::NotAsked(turn));
        }
        Ok(())
    }

    /// Reads the model's answer against the run as it was when the model was asked.
    fn read_answer(&self, event: &Event) -> Option<(TurnState, TurnSummary)> {
        let Event::ModelAnswered { answer, at, .. } = event else {
            return None;
        };
        let reader = Reader {
            toolbox: &self.toolbox,
            calls: &self.calls,
            history: &self.history,
            transcript: &self.transcript,
            max_calls_per_turn: self.settings().max_calls_per_turn,
            asked_at: self.allowance.now(),
            at: *at,
        };
        Some(reader.read(answer.clone()))
    }

    /// The calls to lend to the run that an event starts, if it starts one. They are computed while the
    /// call or task still counts among those that have not started.
    fn share_for(&self, event: &Event) -> Option<u32> {
        match event {
            Event::CallStarted { call, .. } => {
                let is_sub_agent = self.kind(call) == Some(CallKind::SubAgent);
                is_sub_agent.then(|| self.share_of_sub_agent())
            }
            Event::TaskStarted { plan, task, .. } => Some(self.share_of_task(plan, task)),
            _ => None,
        }
    }

    /// The end of the run that an event states, if it does.
    fn end_by(&self, event: &Event) -> Option<RunEnd> {
        let (kind, message) = match event {
            Event::Cancelled { .. } => return Some(RunEnd::Cancelled),
            Event::ModelFailed { kind, message, .. } => (*kind, message),
            _ => return None,
        };
        let category = match kind {
            ModelErrorKind::Cancelled => return Some(RunEnd::Cancelled),
            ModelErrorKind::ContextTooLong if self.transcript.can_shorten() => return None,
            ModelErrorKind::ContextTooLong => ErrorCategory::BudgetExceeded,
            ModelErrorKind::RateLimited => ErrorCategory::RateLimited,
            ModelErrorKind::Overloaded | ModelErrorKind::Unreachable => ErrorCategory::Unavailable,
            ModelErrorKind::Authentication => ErrorCategory::Authentication,
            ModelErrorKind::UnknownModel => ErrorCategory::NotFound,
            ModelErrorKind::Malformed => ErrorCategory::InvalidOutput,
            ModelErrorKind::Timeout => ErrorCategory::Timeout,
        };
        Some(RunEnd::Failed {
            category,
            message: message.clone(),
        })
    }

    /// Ends the run if its events end it. While deferred calls are open it does not end, unless its time
    /// is up.
    pub(super) fn settle(&mut self) {
        if self.end.is_some() {
            return;
        }
        self.end = self.reached_end().filter(|end| {
            let is_out_of_time = matches!(
                end,
                RunEnd::Budget {
                    budget: Budget::Time
                }
            );
            is_out_of_time || !self.calls.has_deferred(self.allowance.now())
        });
    }

    /// Whether the run ends as soon as its deferred calls have.
    pub(super) fn is_finishing(&self) -> bool {
        self.end.is_none()
            && self.calls.has_deferred(self.allowance.now())
            && self.reached_end().is_some()
    }

    fn reached_end(&self) -> Option<RunEnd> {
        let is_answered = self.transcript.answer().is_some();
        if self.allowance.is_out_of_time() && !is_answered {
            return Some(RunEnd::Budget {
                budget: Budget::Time,
            });
        }
        if let Some(message) = self.transcript.too_long(&self.task) {
            return Some(RunEnd::Failed {
                category: ErrorCategory::InvalidArguments,
                message,
            });
        }
        if self.calls.has_open(self.allowance.now()) {
            return None;
        }
        if is_answered {
            return Some(RunEnd::Completed);
        }
        let mistaken_turns = self.transcript.mistaken_turns();
        if mistaken_turns >= self.settings().max_mistaken_turns {
            let message = format!(
                "the model did nothing right in {mistaken_turns} turns in a row; try another model, \
                 or `--dialect structured`"
            );
            return Some(RunEnd::Failed {
                category: ErrorCategory::InvalidOutput,
                message,
            });
        }
        if let Some(budget) = self.allowance.used_up() {
            return Some(RunEnd::Budget { budget });
        }
        let turns = u32::try_from(self.calls.turn_count()).unwrap_or(u32::MAX);
        (turns >= self.settings().max_iterations).then_some(RunEnd::IterationLimit)
    }
}
