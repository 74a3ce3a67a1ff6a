//! The stored form of a record in the journal, before validation.

use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::{CallChange, CallChangeError, CallLifecycle};
use crate::failure::Failure;
use crate::names::ToolName;
use crate::records::confidence::Confidence;
use crate::records::id::CallId;
use crate::records::schema;
use crate::records::state::CallState;
use crate::time::Timestamp;

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = schema::call_record)]
pub(super) struct CallRecord {
    /// The id of the call, from its position: run:turn:call.
    call_id: CallId,
    /// The requested tool.
    #[schemars(with = "schema::Name")]
    tool_name: ToolName,
    /// The arguments of the call.
    arguments: Map<String, Value>,
    /// The model's confidence, if given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    confidence: Option<Confidence>,
    /// The state of the call.
    state: CallState,
    /// Whether it got a permit. A call without one never starts.
    permitted: bool,
    /// The number of attempts; zero without a permit.
    attempts: u32,
    /// When it was requested.
    #[schemars(with = "schema::Time")]
    requested_at: Timestamp,
    /// When it started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Time>")]
    started_at: Option<Timestamp>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Time>")]
    ended_at: Option<Timestamp>,
    /// The result of a success.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Value")]
    result: Option<Value>,
    /// The failure, if it did not succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Failure>")]
    failure: Option<Failure>,
}

/// Reads a present result, so that a tool that returned `null` has a result.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Why a stored record is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum StoredCallError {
    #[error(transparent)]
    Change(#[from] CallChangeError),
    #[error("a call that is {state} must have {what}")]
    Missing {
        state: CallState,
        what: &'static str,
    },
    #[error("a call that is {state} must have no {what}")]
    Surplus {
        state: CallState,
        what: &'static str,
    },
    #[error("`permitted` and `attempts` do not fit: {0}")]
    Permit(&'static str),
    #[error("requested_at, started_at and ended_at are not in order")]
    Order,
}

impl From<super::CallRecord> for CallRecord {
    fn from(record: super::CallRecord) -> Self {
        let (result, failure) = match record.outcome() {
            None => (None, None),
            Some(Ok(result)) => (Some(result.clone()), None),
            Some(Err(failure)) => (None, Some(failure.clone())),
        };
        Self {
            state: record.state(),
            permitted: record.was_permitted(),
            attempts: record.attempts(),
            started_at: record.started_at(),
            ended_at: record.ended_at(),
            result,
            failure,
            call_id: record.id,
            tool_name: record.tool_name,
            arguments: record.arguments,
            confidence: record.confidence,
            requested_at: record.requested_at,
        }
    }
}

impl TryFrom<CallRecord> for super::CallRecord {
    type Error = StoredCallError;

    /// Replays the stored states through `advance`, so that reading allows only valid transitions.
    fn try_from(mut raw: CallRecord) -> Result<Self, StoredCallError> {
        raw.check_permit()?;
        raw.check_order()?;
        let end = raw.end()?;
        let mut record =
            Self::requested(raw.call_id, raw.tool_name, raw.arguments, raw.requested_at);
        record.confidence = raw.confidence;
        if let Some(started_at) = raw.started_at {
            record.advance(CallChange::Start, started_at)?;
            if let CallLifecycle::Started(execution) = &mut record.progress {
                execution.attempts = NonZeroU32::new(raw.attempts).unwrap_or(NonZeroU32::MIN);
            }
        }
        if let Some((change, at)) = end {
            record.advance(change, at)?;
        }
        Ok(record)
    }
}

impl CallRecord {
    fn check_permit(&self) -> Result<(), StoredCallError> {
        let reason = match (self.permitted, self.attempts, self.started_at) {
            (true, 1.., Some(_)) | (false, 0, None) => return Ok(()),
            (false, _, Some(_)) => "a call without a permit must have no start",
            (false, _, None) => "a call without a permit must have no attempts",
            (true, _, None) => "a permitted call must have a start",
            (true, 0, Some(_)) => "a permitted call must have at least one attempt",
        };
        Err(StoredCallError::Permit(reason))
    }

    fn check_order(&self) -> Result<(), StoredCallError> {
        let times: Vec<_> = [Some(self.requested_at), self.started_at, self.ended_at]
            .into_iter()
            .flatten()
            .collect();
        if times.is_sorted() {
            Ok(())
        } else {
            Err(StoredCallError::Order)
        }
    }

    /// The last change of the call and when it happened, if it has ended.
    fn end(&mut self) -> Result<Option<(CallChange, Timestamp)>, StoredCallError> {
        let state = self.state;
        let surplus = |what| Err(StoredCallError::Surplus { state, what });
        let missing = |what| StoredCallError::Missing { state, what };
        if state == CallState::Success {
            if self.failure.is_some() {
                return surplus("failure");
            }
        } else if self.result.is_some() {
            return surplus("result");
        }
        if !state.is_final() {
            if self.failure.is_some() {
                return surplus("failure");
            }
            if self.ended_at.is_some() {
                return surplus("ended_at");
            }
            if self.permitted != (state == CallState::Running) {
                return Err(StoredCallError::Permit(
                    "a running call must be permitted, a pending one must not",
                ));
            }
            return Ok(None);
        }
        let at = self.ended_at.ok_or_else(|| missing("an ended_at"))?;
        if state == CallState::Success {
            let result = self.result.take().ok_or_else(|| missing("a result"))?;
            return Ok(Some((CallChange::Succeed(result), at)));
        }
        let failure = self.failure.take().ok_or_else(|| missing("a failure"))?;
        let change = match state {
            CallState::Timeout => CallChange::TimeOut(failure),
            CallState::Cancelled => CallChange::Cancel(failure),
            CallState::Unknown => CallChange::MarkUnknown(failure),
            _ => CallChange::Fail(failure),
        };
        Ok(Some((change, at)))
    }
}
