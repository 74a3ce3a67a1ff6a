//! The one record of a call. Everything else that describes a call is a view of it. It holds what
//! happened, not why it was allowed: decisions, approvals and holds are told elsewhere.

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

/// What is known of one request to use one tool, from when a model asked for it to how it ended.
///
/// A success has a result and every other end a failure; a call that was never permitted has
/// no start. Starting a call consumes its permit, so "permitted" and "started" are one thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "raw::CallRecord", into = "raw::CallRecord")]
pub struct CallRecord {
    id: CallId,
    tool_name: ToolName,
    arguments: Map<String, Value>,
    confidence: Option<Confidence>,
    requested_at: Timestamp,
    progress: Progress,
}

/// How far a call got, with what is known there and nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Progress {
    Pending,
    Refused(Refusal),
    Started(Execution),
}

/// The end of a call that was never permitted.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Refusal {
    undone: bool,
    at: Timestamp,
    failure: Failure,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Execution {
    started_at: Timestamp,
    attempts: NonZeroU32,
    end: Option<End>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct End {
    at: Timestamp,
    outcome: Outcome,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Outcome {
    Success(Value),
    Error(Failure),
    Timeout(Failure),
    Cancelled(Failure),
    Unknown(Failure),
}

/// What can happen to a call, with what must be known when it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallChange {
    /// It got its permit and runs.
    Start,
    /// It ended with this result.
    Succeed(Value),
    /// It was refused, or it failed.
    Fail(Failure),
    /// It took too long.
    TimeOut(Failure),
    /// It was stopped, or undone before it ran.
    Cancel(Failure),
    /// Nobody can tell how it ended.
    LoseTrack(Failure),
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
            Self::LoseTrack(_) => CallState::Unknown,
        }
    }

    fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Start | Self::Succeed(_) => None,
            Self::Fail(failure)
            | Self::TimeOut(failure)
            | Self::Cancel(failure)
            | Self::LoseTrack(failure) => Some(failure),
        }
    }
}

/// Why a call did not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CallChangeError {
    /// There is no way from one state to the other.
    #[error("a call that is {from} cannot become {to}")]
    NotAllowed {
        /// Where the call stands.
        from: CallState,
        /// Where it was to go.
        to: CallState,
    },
    /// Only what runs can be tried again.
    #[error("a call that is {0} has no further attempt")]
    NotRunning(CallState),
    /// A call that never ran cannot have done anything.
    #[error("a call that was not started has no effect")]
    EffectWithoutStart,
    /// Nobody knows how it ended, yet its failure says so.
    #[error("the effect of a call whose end is unknown is unknown")]
    EffectOfUnknown,
    /// A state and its category say different things.
    #[error("the failure of a call that is {state} has the category {expected}")]
    Category {
        /// The state.
        state: CallState,
        /// The category that goes with it.
        expected: ErrorCategory,
    },
}

impl CallRecord {
    /// A call that was asked for and nothing more.
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
            progress: Progress::Pending,
        }
    }

    /// The same call with how sure the model was of it.
    #[must_use]
    pub fn with_confidence(mut self, confidence: Confidence) -> Self {
        self.confidence = Some(confidence);
        self
    }

    /// The same call with other arguments, as a person decided. What has started keeps its own.
    #[must_use]
    pub fn with_arguments(&self, arguments: Map<String, Value>) -> Self {
        let mut changed = self.clone();
        if changed.state() == CallState::Pending {
            changed.arguments = arguments;
        }
        changed
    }

    /// Takes the call to its next state. A time before the last known one counts as that one, since
    /// clocks can be set back and a call cannot end before it started.
    ///
    /// # Errors
    /// If the state cannot follow, or the failure does not fit it. The record is then unchanged.
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
                *progress = Progress::Started(Execution {
                    started_at: at,
                    attempts: NonZeroU32::MIN,
                    end: None,
                });
            }
            (Progress::Started(execution), change) => {
                let outcome = match change {
                    CallChange::Succeed(result) => Outcome::Success(result),
                    CallChange::Fail(failure) => Outcome::Error(failure),
                    CallChange::TimeOut(failure) => Outcome::Timeout(failure),
                    CallChange::Cancel(failure) => Outcome::Cancelled(failure),
                    CallChange::LoseTrack(failure) => Outcome::Unknown(failure),
                    CallChange::Start => return Err(CallChangeError::NotAllowed { from, to }),
                };
                execution.end = Some(End { at, outcome });
            }
            (progress, CallChange::Fail(failure)) => {
                *progress = Progress::Refused(Refusal {
                    undone: false,
                    at,
                    failure,
                });
            }
            (progress, CallChange::Cancel(failure)) => {
                *progress = Progress::Refused(Refusal {
                    undone: true,
                    at,
                    failure,
                });
            }
            (_, CallChange::Succeed(_) | CallChange::TimeOut(_) | CallChange::LoseTrack(_)) => {
                return Err(CallChangeError::NotAllowed { from, to });
            }
        }
        Ok(())
    }

    /// Counts one more attempt of a running call, and returns how many there were.
    ///
    /// # Errors
    /// If the call is not running.
    pub fn try_again(&mut self) -> Result<u32, CallChangeError> {
        let state = self.state();
        match &mut self.progress {
            Progress::Started(execution) if execution.end.is_none() => {
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

    /// The tool that was asked for; it need not exist.
    #[must_use]
    pub fn tool_name(&self) -> &ToolName {
        &self.tool_name
    }

    /// What it was asked with.
    #[must_use]
    pub fn arguments(&self) -> &Map<String, Value> {
        &self.arguments
    }

    /// How sure the model was, if it said so.
    #[must_use]
    pub fn confidence(&self) -> Option<Confidence> {
        self.confidence
    }

    /// When it was asked for.
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
            Progress::Pending => None,
            Progress::Refused(refusal) => Some(refusal.at),
            Progress::Started(execution) => execution.end.as_ref().map(|end| end.at),
        }
    }

    /// How long it ran, all attempts together; nothing if it did not start or has not ended.
    #[must_use]
    pub fn duration(&self) -> Option<Duration> {
        let (started, ended) = (self.started_at()?, self.ended_at()?);
        Some(Duration::from_micros(ended.microseconds_since(started)))
    }

    /// Whether it got a permit. One that was denied, rejected, expired, undone, or asked for an
    /// unknown tool or with invalid arguments never did.
    #[must_use]
    pub fn was_permitted(&self) -> bool {
        self.execution().is_some()
    }

    /// How often it was tried.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.execution()
            .map_or(0, |execution| execution.attempts.get())
    }

    /// Where it stands.
    #[must_use]
    pub fn state(&self) -> CallState {
        match &self.progress {
            Progress::Pending => CallState::Pending,
            Progress::Refused(refusal) if refusal.undone => CallState::Cancelled,
            Progress::Refused(_) => CallState::Error,
            Progress::Started(execution) => match &execution.end {
                None => CallState::Running,
                Some(end) => end.outcome.state(),
            },
        }
    }

    /// How it ended: its result or its failure; nothing if it has not ended.
    #[must_use]
    pub fn outcome(&self) -> Option<Result<&Value, &Failure>> {
        match &self.progress {
            Progress::Pending => None,
            Progress::Refused(refusal) => Some(Err(&refusal.failure)),
            Progress::Started(execution) => {
                execution.end.as_ref().map(|end| end.outcome.as_result())
            }
        }
    }

    fn execution(&self) -> Option<&Execution> {
        match &self.progress {
            Progress::Started(execution) => Some(execution),
            Progress::Pending | Progress::Refused(_) => None,
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

/// Whether a failure can be the end of a call in this state.
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
