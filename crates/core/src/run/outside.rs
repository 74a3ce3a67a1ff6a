//! Runs of one call that another program makes: the call is decided here like any other, and waits for that program to
//! begin it and to report its outcome.

use std::time::Duration;

use windlass_policy::Session;
use windlass_spec::{CallId, CallState, Timestamp};

use super::event::OutsideCall;
use super::{Entry, Run};

impl OutsideCall {
    /// What the session did before a call, with what its run did.
    pub(super) fn session_with(&self, own: Session) -> Session {
        let before = self.before;
        Session {
            calls: before.calls.saturating_add(own.calls),
            tool_calls: before.tool_calls.saturating_add(own.tool_calls),
            irreversible_calls: before
                .irreversible_calls
                .saturating_add(own.irreversible_calls),
            denied_calls: before.denied_calls.saturating_add(own.denied_calls),
            sensitive_read: before.sensitive_read || own.sensitive_read,
        }
    }
}

impl Run {
    /// The program that makes the call of this run, if it is not Windlass.
    #[must_use]
    pub fn outside(&self) -> Option<&OutsideCall> {
        self.task.outside.as_deref()
    }

    /// The call that another program makes; `None` before it was read, or if it could not be.
    #[must_use]
    pub fn outside_call(&self) -> Option<(&CallId, &Entry)> {
        self.outside()?;
        let entry = self.turns().first()?.entries.first()?;
        Some((entry.call()?.id(), entry))
    }

    /// Until when the program may begin the call, or report its outcome if it has begun.
    #[must_use]
    pub fn outside_deadline(&self) -> Option<Timestamp> {
        let outside = self.outside()?;
        let (_, entry) = self.outside_call()?;
        let Entry::Call {
            record, progress, ..
        } = entry
        else {
            return None;
        };
        if record.state() == CallState::Running {
            let began = record.started_at()?;
            return Some(later(began, outside.outcome_seconds));
        }
        let settled = progress.settled().iter();
        let approved = settled
            .filter_map(crate::approval::Approval::settled_at)
            .max();
        let since = [Some(record.requested_at()), approved, progress.held_until()];
        let since = since.into_iter().flatten().max()?;
        Some(later(since, outside.begin_seconds))
    }
}

fn later(time: Timestamp, seconds: u32) -> Timestamp {
    let micros = Duration::from_secs(seconds.into()).as_micros();
    let micros = i64::try_from(micros).unwrap_or(i64::MAX);
    Timestamp::from_microseconds(time.as_microseconds().saturating_add(micros))
}
