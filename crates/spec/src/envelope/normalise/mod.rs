//! Converts older answers to the canonical shape. [`normalise`] accepts any JSON, never fails, and
//! returns a [`Deprecation`] for each finding, with what to write instead. No data is lost, except
//! `billing`, of which only the cost is kept. A value that cannot keep its name is in `data` under
//! `reported_` and that name.
//!
//! It is a sequence of small rewrites of a [`Draft`], one per topic, followed by the strict reader, which
//! is the only definition of the canonical shape.

mod draft;
mod failure;
mod hil;
mod notice;
mod plan;
mod shape;
mod status;
mod time;

pub use notice::{Deprecation, DeprecationCode};
pub use status::ENVELOPE_FIELDS;

use serde_json::{Value, json};

use self::draft::Draft;
use super::Object;
use super::action::Action;
use super::answer::Answer;
use super::error::EnvelopeError;
use super::raw;
use super::response::ToolResponse;
use super::words::ToolStatus;
use crate::failure::{Effect, ErrorCategory, Failure};
use crate::time::Timestamp;

/// A normalised answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Normalised {
    /// The answer.
    pub response: ToolResponse,
    /// What to write differently; empty for a canonical answer.
    pub notices: Vec<Deprecation>,
}

/// Converts any answer to the canonical shape. A canonical one is returned unchanged and without notices.
///
/// Use [`normalise_for`] if the tool is known, so that an answer without an action gets its name.
#[must_use]
pub fn normalise(json: &Value, received_at: Timestamp) -> Normalised {
    normalise_for(&Action::UNKNOWN, json, received_at)
}

/// Converts any answer of the tool `action` to the canonical shape. The name is used only if the answer
/// has none.
#[must_use]
pub fn normalise_for(action: &Action, json: &Value, received_at: Timestamp) -> Normalised {
    if let Some(response) = canonical(json) {
        let notices = Vec::new();
        return Normalised { response, notices };
    }
    match json {
        Value::Object(object) if status::is_envelope(object) => {
            rewrite(action, object, received_at)
        }
        _ => wrap_value(action, json, received_at),
    }
}

/// Reads `json` as an answer, if writing it again gives the same JSON.
fn canonical(json: &Value) -> Option<ToolResponse> {
    let response = raw::read(json.clone()).ok()?;
    (response.for_operator() == *json).then_some(response)
}

/// Wraps a value that is not an envelope as the data of a success.
fn wrap_value(action: &Action, json: &Value, received_at: Timestamp) -> Normalised {
    let notice = Deprecation::new(
        DeprecationCode::NoEnvelope,
        String::new(),
        json,
        "an object with `status`, `action`, `data` and `timestamp`; this value goes into `data`",
    );
    Normalised {
        response: ToolResponse::success(action.clone(), json.clone(), received_at),
        notices: vec![notice],
    }
}

fn rewrite(action: &Action, object: &Object, received_at: Timestamp) -> Normalised {
    let mut draft = Draft::new(object.clone());
    let cost = shape::normalise_cost(&mut draft);
    let verdict = status::normalise_status(&mut draft);
    time::normalise_timestamp(&mut draft, received_at);
    if verdict.status == ToolStatus::Error {
        failure::normalise_error(&mut draft, verdict.category);
    }
    shape::normalise_action(&mut draft, verdict.status, action);
    shape::normalise_shape(&mut draft, verdict.status);
    let status = if verdict.status.is_hil() {
        hil::normalise_request(&mut draft, verdict.status)
    } else {
        verdict.status
    };
    if matches!(
        status,
        ToolStatus::Pending | ToolStatus::InProgress | ToolStatus::Created
    ) {
        plan::normalise_plan(&mut draft);
    }
    let (json, mut notices) = draft.finish(status);
    let response = raw::read(json).unwrap_or_else(|error| {
        let (response, notice) = invalid_envelope(action, object, &error, received_at);
        notices.push(notice);
        match cost {
            Some(cost) => response.with_cost(cost),
            None => response,
        }
    });
    Normalised { response, notices }
}

/// The error for an answer without the fields that its status requires. Such an answer must not count
/// as a success: a person cannot be asked without a question, for instance.
fn invalid_envelope(
    action: &Action,
    object: &Object,
    error: &EnvelopeError,
    received_at: Timestamp,
) -> (ToolResponse, Deprecation) {
    let raw = Value::Object(object.clone());
    let found = raw.pointer(&error.pointer).unwrap_or(&Value::Null);
    let notice = Deprecation::new(
        DeprecationCode::UnreadableEnvelope,
        error.pointer.clone(),
        found,
        format!("the fields that the status requires: {error}"),
    );
    let message = format!("the tool's answer is invalid: {error}");
    let answer = Answer::Error {
        action: action.clone(),
        failure: Failure::foreign(ErrorCategory::InvalidOutput, Effect::Unknown, message),
        data: Object::from_iter([("raw".to_owned(), json!(raw))]),
    };
    (ToolResponse::new(answer, received_at), notice)
}
