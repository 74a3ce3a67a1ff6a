//! Notices about an answer that is not canonical. The codes are stable, because users filter and count
//! by them.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::words::words;

/// A part of an answer that should be written differently.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deprecation {
    /// The violated rule.
    pub code: DeprecationCode,
    /// The JSON pointer of the part, or of its expected place.
    pub pointer: String,
    /// The found value, shortened; `nothing` if it is missing.
    pub found: String,
    /// What to write instead.
    pub instead: String,
}

impl Deprecation {
    pub(super) fn new(
        code: DeprecationCode,
        pointer: String,
        found: &Value,
        instead: impl Into<String>,
    ) -> Self {
        Self {
            code,
            pointer,
            found: describe_value(found),
            instead: instead.into(),
        }
    }

    pub(super) fn missing(
        code: DeprecationCode,
        pointer: impl Into<String>,
        instead: impl Into<String>,
    ) -> Self {
        Self {
            code,
            pointer: pointer.into(),
            found: "nothing".to_owned(),
            instead: instead.into(),
        }
    }
}

impl fmt::Display for Deprecation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            code,
            pointer,
            found,
            instead,
        } = self;
        write!(f, "{code} at `{pointer}`: found {found}; write {instead}")
    }
}

fn describe_value(value: &Value) -> String {
    const MAX_CHARACTERS: usize = 80;
    let text = match value {
        // A container is summarised, because writing a large value only to cut it is expensive.
        Value::Object(object) => format!("an object with {} fields", object.len()),
        Value::Array(list) => format!("a list of {}", list.len()),
        Value::String(text) => format!(
            "{:?}",
            text.chars().take(MAX_CHARACTERS + 1).collect::<String>()
        ),
        _ => value.to_string(),
    };
    if text.chars().count() <= MAX_CHARACTERS {
        return text;
    }
    let short: String = text.chars().take(MAX_CHARACTERS).collect();
    format!("{short}…")
}

words! {
    /// The rule of the envelope that an answer violates.
    DeprecationCode, "deprecation code" {
        /// The value is not an envelope.
        NoEnvelope = "no-envelope",
        /// The answer lacks fields that its status requires and cannot be fixed.
        UnreadableEnvelope = "unreadable-envelope",
        /// There is no status.
        StatusMissing = "status-missing",
        /// The status is unknown.
        StatusUnknown = "status-unknown",
        /// A word is not in its canonical spelling.
        WordSpelling = "word-spelling",
        /// A word is unknown.
        WordUnknown = "word-unknown",
        /// There is an error, but the status is not `error`.
        SuccessWithError = "success-with-error",
        /// An empty error field in an answer that is not an error.
        EmptyError = "empty-error",
        /// The error is in `data`.
        ErrorInData = "error-in-data",
        /// The error has another name.
        ErrorMessageField = "error-message-field",
        /// The error is not a text.
        ErrorNotText = "error-not-text",
        /// An error has no message.
        ErrorTextMissing = "error-text-missing",
        /// An error lacks `category`, `retryable` or `effect`.
        ErrorIncomplete = "error-incomplete",
        /// There is no timestamp.
        TimestampMissing = "timestamp-missing",
        /// The timestamp is called `created_at`.
        CreatedAt = "created-at",
        /// A time has no zone.
        NaiveTimestamp = "naive-timestamp",
        /// A time is a number.
        UnixTimestamp = "unix-timestamp",
        /// A time cannot be read.
        UnreadableTimestamp = "unreadable-timestamp",
        /// There is no action.
        ActionMissing = "action-missing",
        /// The action is not a valid name.
        ActionInvalid = "action-invalid",
        /// An answer that waits for a person has another action.
        HilAction = "hil-action",
        /// An answer that waits for a person does not have `hil_required: true`.
        HilFlagMissing = "hil-flag-missing",
        /// An answer that does not wait for a person has `hil_required`.
        HilFlagMisplaced = "hil-flag-misplaced",
        /// `hil_required` is true, but the status does not name the kind of request.
        HilStatusMissing = "hil-status-missing",
        /// An answer that waits for a person has no message.
        MessageMissing = "message-missing",
        /// A question has no `question`.
        QuestionMissing = "question-missing",
        /// A field that belongs in `data` is next to it.
        FlatField = "flat-field",
        /// There is no data.
        DataMissing = "data-missing",
        /// The data is not an object.
        DataNotObject = "data-not-object",
        /// There is `billing` instead of `cost_usd`.
        Billing = "billing",
        /// `instruction` is called `instructions`.
        Instructions = "instructions",
        /// A field is not a text.
        FieldNotText = "field-not-text",
        /// A field is not an object.
        FieldNotObject = "field-not-object",
        /// A field is missing and is filled in.
        FieldMissing = "field-missing",
        /// A field is invalid and is kept under `reported_`.
        FieldInvalid = "field-invalid",
        /// A request for one exact call has the status of another kind of request.
        AuthorizationStatus = "authorization-status",
        /// A request for one exact call lacks fields.
        AuthorizationIncomplete = "authorization-incomplete",
    }
}
