//! The one record of a call. Every other description of a call is a view of it. It contains what
//! happened, not why it was allowed: decisions, approvals and holds have their own records.

mod raw;

use std::num::NonZeroU32;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::confidence::Confidence;
use super::id::CallId;
use super::state::CallState;
use crate::failure::{Effect, ErrorCategory, Failure};
use crate::names::ToolName;
use crate::time::Timestamp;

/// The record of one tool call, from the model's request to its end.
///
/// A success has a result, every other end has a failure. A call that was never permitted has
/// no start. Starting a call consumes its permit, so "permitted" means "started".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "raw::CallRecord", into = "raw::CallRecord")]
pub struct CallRecord {
    id: CallId,
    tool_name: ToolName,
    arguments: Map<String, Value>,
    confidence: Option<Confidence>,
    requested_at: Timestamp,
    progress: CallLifecycle,
}

/// The progress of a call, with the data of each state.
#[derive(Debug, Clone, PartialEq, Eq)]
enum CallLifecycle {
    Pending,
    Denied(Denial),
    Started(Execution),
}

/// The end of a call that was never permitted.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Denial {
    undone: bool,
    at: Timestamp,
    failure: Failure,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Execution {
    started_at: Timestamp,
    attempts: NonZeroU32,
    end: Option<Ended<Outcome>>,
}

/// When and how something ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ended<O> {
    pub(super) at: Timestamp,
    pub(super) outcome: O,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Outcome {
    Success(Value),
    Error(Failure),
    Timeout(Failure),
    Cancelled(Failure),
    Unknown(Failure),
}

/// A change of a call's state, with the data it requires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallChange {
    /// It got its permit and starts.
    Start,
    /// It ends with this result.
    Succeed(Value),
    /// It is denied, or it fails.
    Fail(Failure),
    /// It takes too long.
    TimeOut(Failure),
    /// It is cancelled, or undone before it runs.
    Cancel(Failure),
    /// Its end is unknown.
    MarkUnknown(Failure),
}

impl CallChange {
    /// The state it leads to.
    #[must_use]
    pub const fn leads_to(&self) -> CallState {
        match self {
            Self::Start => CallState::Running,
            Self::Succeed(_) => CallState::Success,
            Self::Fail(_) => CallState::Error,
            Self::TimeOut(_) => CallState::Timeout,
            Self::Cancel(_) => CallState::Cancelled,
            Self::MarkUnknown(_) => CallState::Unknown,
        }
    }

    fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Start | Self::Succeed(_) => None,
            Self::Fail(failure)
            | Self::TimeOut(failure)
            | Self::Cancel(failure)
            | Self::MarkUnknown(failure) => Some(failure),
        }
    }
}

/// Why a call did not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CallChangeError {
    /// The state cannot change this way.
    #[error("a call that is {from} cannot become {to}")]
    NotAllowed {
        /// The current state.
        from: CallState,
        /// The requested state.
        to: CallState,
    },
    /// Only a running call can be retried.
    #[error("a call that is {0} cannot be retried; only a running call can")]
    NotRunning(CallState),
    /// A call that never ran cannot have an effect.
    #[error("a call that was not started must have the effect `none`")]
    EffectWithoutStart,
    /// The end of the call is unknown, but its effect is not.
    #[error("a call whose end is unknown must have the effect `unknown`")]
    EffectOfUnknown,
    /// The state and the category of the failure contradict each other.
    #[error("the failure of a call that is {state} must have the category {expected}")]
    Category {
        /// The state.
        state: CallState,
        /// The category that the state requires.
        expected: ErrorCategory,
    },
}

impl CallRecord {
    /// A requested call, in the state `pending`.
    #[must_use]
    pub fn requested(
        id: CallId,
        tool_name: ToolName,
        arguments: Map<String, Value>,
        requested_at: Timestamp,
    ) -> Self {
        Self {
            id,
            tool_name,
            arguments,
            confidence: None,
            requested_at,
            progress: CallLifecycle::Pending,
        }
    }

    /// The same call with the model's confidence.
    #[must_use]
    pub fn with_confidence(mut self, confidence: Confidence) -> Self {
        self.confidence = Some(confidence);
        self
    }

    /// The same call with arguments changed by the approver. A started call keeps its arguments.
    #[must_use]
    pub fn with_arguments(&self, arguments: Map<String, Value>) -> Self {
        let mut changed = self.clone();
        if changed.state() == CallState::Pending {
            changed.arguments = arguments;
        }
        changed
    }

    /// Changes the state of the call. A time before the last recorded one counts as that one, because
    /// clocks can be set back and a call cannot end before its start.
    ///
    /// # Errors
    /// If the state cannot follow, or the failure does not fit it. The record then does not change.
    pub fn advance(&mut self, change: CallChange, at: Timestamp) -> Result<(), CallChangeError> {
        let (from, to) = (self.state(), change.leads_to());
        if !from.may_become(to) {
            return Err(CallChangeError::NotAllowed { from, to });
        }
        if let Some(failure) = change.failure() {
            check_failure(to, failure, self.was_permitted())?;
        }
        let at = at.max(self.started_at().unwrap_or(self.requested_at));
        match (&mut self.progress, change) {
            (progress, CallChange::Start) => {
                *progress = CallLifecycle::Started(Execution {
                    started_at: at,
                    attempts: NonZeroU32::MIN,
                    end: None,
                });
            }
            (CallLifecycle::Started(execution), change) => {
                let outcome = match change {
                    CallChange::Succeed(result) => Outcome::Success(result),
                    CallChange::Fail(failure) => Outcome::Error(failure),
                    CallChange::TimeOut(failure) => Outcome::Timeout(failure),
                    CallChange::Cancel(failure) => Outcome::Cancelled(failure),
                    CallChange::MarkUnknown(failure) => Outcome::Unknown(failure),
                    CallChange::Start => return Err(CallChangeError::NotAllowed { from, to }),
                };
                execution.end = Some(Ended { at, outcome });
            }
            (progress, CallChange::Fail(failure)) => {
                *progress = CallLifecycle::Denied(Denial {
                    undone: false,
                    at,
                    failure,
                });
            }
            (progress, CallChange::Cancel(failure)) => {
                *progress = CallLifecycle::Denied(Denial {
                    undone: true,
                    at,
                    failure,
                });
            }
            (_, CallChange::Succeed(_) | CallChange::TimeOut(_) | CallChange::MarkUnknown(_)) => {
                return Err(CallChangeError::NotAllowed { from, to });
            }
        }
        Ok(())
    }

    /// The same call before it started, to be started again: its tool did nothing but ask. The arguments are
    /// those of the approver. A call that does not run does not change.
    #[must_use]
    pub fn before_start(&self, arguments: Map<String, Value>) -> Self {
        let mut record = self.clone();
        if record.state() == CallState::Running {
            record.progress = CallLifecycle::Pending;
            record.arguments = arguments;
        }
        record
    }

    /// Counts one more attempt of a running call, and returns the number of attempts.
    ///
    /// # Errors
    /// If the call is not running.
    pub fn try_again(&mut self) -> Result<u32, CallChangeError> {
        let state = self.state();
        match &mut self.progress {
            CallLifecycle::Started(execution) if execution.end.is_none() => {
                execution.attempts = execution.attempts.saturating_add(1);
                Ok(execution.attempts.get())
            }
            _ => Err(CallChangeError::NotRunning(state)),
        }
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> &CallId {
        &self.id
    }

    /// The requested tool; it need not exist.
    #[must_use]
    pub fn tool_name(&self) -> &ToolName {
        &self.tool_name
    }

    /// The arguments of the call.
    #[must_use]
    pub fn arguments(&self) -> &Map<String, Value> {
        &self.arguments
    }

    /// The model's confidence, if given.
    #[must_use]
    pub fn confidence(&self) -> Option<Confidence> {
        self.confidence
    }

    /// When it was requested.
    #[must_use]
    pub fn requested_at(&self) -> Timestamp {
        self.requested_at
    }

    /// When it started, if it did.
    #[must_use]
    pub fn started_at(&self) -> Option<Timestamp> {
        self.execution().map(|execution| execution.started_at)
    }

    /// When it ended, if it did.
    #[must_use]
    pub fn ended_at(&self) -> Option<Timestamp> {
        match &self.progress {
            CallLifecycle::Pending => None,
            CallLifecycle::Denied(denial) => Some(denial.at),
            CallLifecycle::Started(execution) => execution.end.as_ref().map(|end| end.at),
        }
    }

    /// How long it ran, all attempts together; `None` if it did not start or has not ended.
    #[must_use]
    pub fn duration(&self) -> Option<Duration> {
        let (started, ended) = (self.started_at()?, self.ended_at()?);
        Some(Duration::from_micros(ended.microseconds_since(started)))
    }

    /// Whether it got a permit. A call never gets one if it is denied, rejected, expired or undone, or has
    /// an unknown tool or invalid arguments.
    #[must_use]
    pub fn was_permitted(&self) -> bool {
        self.execution().is_some()
    }

    /// The number of attempts.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.execution()
            .map_or(0, |execution| execution.attempts.get())
    }

    /// Its state.
    #[must_use]
    pub fn state(&self) -> CallState {
        match &self.progress {
            CallLifecycle::Pending => CallState::Pending,
            CallLifecycle::Denied(denial) if denial.undone => CallState::Cancelled,
            CallLifecycle::Denied(_) => CallState::Error,
            CallLifecycle::Started(execution) => match &execution.end {
                None => CallState::Running,
                Some(end) => end.outcome.state(),
            },
        }
    }

    /// Its result or its failure; `None` if it has not ended.
    #[must_use]
    pub fn outcome(&self) -> Option<Result<&Value, &Failure>> {
        match &self.progress {
            CallLifecycle::Pending => None,
            CallLifecycle::Denied(denial) => Some(Err(&denial.failure)),
            CallLifecycle::Started(execution) => {
                execution.end.as_ref().map(|end| end.outcome.as_result())
            }
        }
    }

    fn execution(&self) -> Option<&Execution> {
        match &self.progress {
            CallLifecycle::Started(execution) => Some(execution),
            CallLifecycle::Pending | CallLifecycle::Denied(_) => None,
        }
    }
}

impl Outcome {
    const fn state(&self) -> CallState {
        match self {
            Self::Success(_) => CallState::Success,
            Self::Error(_) => CallState::Error,
            Self::Timeout(_) => CallState::Timeout,
            Self::Cancelled(_) => CallState::Cancelled,
            Self::Unknown(_) => CallState::Unknown,
        }
    }

    const fn as_result(&self) -> Result<&Value, &Failure> {
        match self {
            Self::Success(result) => Ok(result),
            Self::Error(failure)
            | Self::Timeout(failure)
            | Self::Cancelled(failure)
            | Self::Unknown(failure) => Err(failure),
        }
    }
}

/// Checks that a failure fits a call in this state.
fn check_failure(
    state: CallState,
    failure: &Failure,
    started: bool,
) -> Result<(), CallChangeError> {
    if !started && failure.effect != Effect::None {
        return Err(CallChangeError::EffectWithoutStart);
    }
    let expected = match state {
        CallState::Unknown if failure.effect != Effect::Unknown => {
            return Err(CallChangeError::EffectOfUnknown);
        }
        CallState::Timeout => ErrorCategory::Timeout,
        CallState::Cancelled => ErrorCategory::Cancelled,
        _ => return Ok(()),
    };
    if failure.category == expected {
        Ok(())
    } else {
        Err(CallChangeError::Category { state, expected })
    }
}
