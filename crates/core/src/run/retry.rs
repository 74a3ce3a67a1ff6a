//! Which failed calls are tried again, and when. The risk decides: a reversible call is, one with an undo window
//! only if it is idempotent, an irreversible one never.

use std::time::Duration;

use windlass_spec::{CallId, CallState, Failure, RiskLevel};

use super::calls::Entry;
use super::{CallKind, Run};

/// The time before the first retry. It doubles for each further one.
const FIRST_DELAY: Duration = Duration::from_millis(250);

/// A server that wants a longer pause is not asked again; the model gets the error.
const LONGEST_DELAY: Duration = Duration::from_secs(60);

impl Run {
    /// How long to wait before a call is tried again that has failed like that; `None` if it is not.
    #[must_use]
    pub fn retry_delay(&self, call: &CallId, failure: &Failure) -> Option<Duration> {
        let Ok(Entry::Call {
            kind: CallKind::Tool,
            record,
            progress,
            ..
        }) = self.entry(call)
        else {
            return None;
        };
        let may_retry = failure.retryable
            && record.state() == CallState::Running
            && progress.retries() < self.settings().max_retries
            && self.may_be_repeated(call)
            && self.end().is_none();
        let delay = FIRST_DELAY.saturating_mul(1 << progress.retries().min(16));
        let asked = failure.retry_after_seconds.unwrap_or_default();
        let delay = delay.max(Duration::from_secs(asked));
        (may_retry && delay <= LONGEST_DELAY).then_some(delay)
    }
}

impl Entry {
    /// Whether the call may run again, whatever its outcome, if it is at least as risky as that.
    pub(super) fn may_be_repeated_at(&self, assessed: RiskLevel) -> bool {
        let Self::Call { specification, .. } = self else {
            return false;
        };
        match self.risk().max(assessed) {
            RiskLevel::Reversible => true,
            RiskLevel::ReversibleWithDelay => specification.attributes().idempotent == Some(true),
            RiskLevel::Irreversible => false,
        }
    }
}
