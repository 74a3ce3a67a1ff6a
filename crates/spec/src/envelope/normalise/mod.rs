//! Older answers made canonical. [`normalise`] takes any JSON a tool may have answered, never
//! fails, and says with each [`Deprecation`] what was found and what to write instead. Nothing a
//! tool said is lost, except `billing`, which has no place in an answer: what cannot stay under its
//! name stands in `data` under `reported_` and that name.
//!
//! The work is a row of small rewrites of a [`Draft`], each about one matter, with the strict reader
//! at the end; so there is one definition of what is canonical, and it is not here.

mod draft;
mod failure;
mod hil;
mod notice;
mod plan;
mod shape;
mod status;
mod time;

pub use notice::{Deprecation, DeprecationCode};

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

/// An answer made canonical.
#[derive(Debug, Clone, PartialEq)]
pub struct Normalised {
    /// The answer.
    pub response: ToolResponse,
    /// What was found in it that should be written otherwise; empty for a canonical answer.
    pub notices: Vec<Deprecation>,
}

/// Makes any answer canonical. A canonical one comes back unchanged and without notices.
///
/// Use [`normalise_for`] where the tool is known, so that an answer that does not say whose it is
/// gets its name.
#[must_use]
pub fn normalise(json: &Value, received_at: Timestamp) -> Normalised {
    normalise_for(&Action::UNKNOWN, json, received_at)
}

/// Makes any answer of the tool `action` canonical. The name is used only where the answer has
/// none.
#[must_use]
pub fn normalise_for(action: &Action, json: &Value, received_at: Timestamp) -> Normalised {
    if let Some(response) = canonical(json) {
        let notices = Vec::new();
        return Normalised { response, notices };
    }
    match json {
        Value::Object(object) if status::is_envelope(object) => {
            rewritten(action, object, received_at)
        }
        _ => bare(action, json, received_at),
    }
}

/// The answer that `json` is, if writing it again gives the same JSON.
fn canonical(json: &Value) -> Option<ToolResponse> {
    let response = raw::read(json.clone()).ok()?;
    (response.for_operator() == *json).then_some(response)
}

/// A value that makes no claim to be an envelope is what the tool has to say.
fn bare(action: &Action, json: &Value, received_at: Timestamp) -> Normalised {
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

fn rewritten(action: &Action, object: &Object, received_at: Timestamp) -> Normalised {
    let mut draft = Draft::new(object.clone());
    shape::drop_billing(&mut draft);
    let verdict = status::settle(&mut draft);
    time::settle(&mut draft, received_at);
    if verdict.status == ToolStatus::Error {
        failure::settle(&mut draft, verdict.category);
    }
    shape::settle_action(&mut draft, verdict.status, action);
    shape::settle(&mut draft, verdict.status);
    let status = if verdict.status.is_hil() {
        hil::settle(&mut draft, verdict.status)
    } else {
        verdict.status
    };
    if matches!(
        status,
        ToolStatus::Pending | ToolStatus::InProgress | ToolStatus::Created
    ) {
        plan::settle(&mut draft);
    }
    let (json, mut notices) = draft.finish(status);
    let response = raw::read(json).unwrap_or_else(|error| {
        let (response, notice) = unreadable(action, object, &error, received_at);
        notices.push(notice);
        response
    });
    Normalised { response, notices }
}

/// An answer that claims what it does not keep. It must not pass for a success: whoever is to be
/// asked something, for instance, cannot be asked without a question.
fn unreadable(
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
        format!("what the status promises: {error}"),
    );
    let message = format!("the tool's answer cannot be read: {error}");
    let answer = Answer::Error {
        action: action.clone(),
        failure: Failure::foreign(ErrorCategory::InvalidOutput, Effect::Unknown, message),
        data: Object::from_iter([("raw".to_owned(), json!(raw))]),
    };
    (ToolResponse::new(answer, received_at), notice)
}
