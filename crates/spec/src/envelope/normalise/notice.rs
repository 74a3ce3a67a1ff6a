//! What is said about an answer that was not canonical. The codes are stable: people filter, count
//! and silence by them.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Something in an answer that should be written otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deprecation {
    /// Which rule was broken.
    pub code: DeprecationCode,
    /// The JSON pointer of what was found, or of where it should have been.
    pub pointer: String,
    /// What was found, shortened; `nothing` if something is missing.
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
            found: shown(found),
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

fn shown(value: &Value) -> String {
    const MAX_CHARACTERS: usize = 80;
    let text = match value {
        // A large value is not written out only to be cut.
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

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $code:literal,)+) => {
        /// Which rule of the envelope an answer broke.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum DeprecationCode {
            $($(#[$doc])* $variant,)+
        }

        impl DeprecationCode {
            /// All codes.
            pub const ALL: [Self; [$($code),+].len()] = [$(Self::$variant),+];

            /// The code in JSON, messages and filters.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $code,)+
                }
            }
        }
    };
}

codes! {
    /// The value is no envelope at all.
    NoEnvelope = "no-envelope",
    /// The answer lacks what its status promises and cannot be repaired.
    UnreadableEnvelope = "unreadable-envelope",
    /// There is no status.
    StatusMissing = "status-missing",
    /// The status is none of those known.
    StatusUnknown = "status-unknown",
    /// A word is not in its canonical spelling.
    WordSpelling = "word-spelling",
    /// A word is none of those known.
    WordUnknown = "word-unknown",
    /// The status does not say so, but there is an error.
    SuccessWithError = "success-with-error",
    /// An error that says nothing stands in an answer that is none.
    EmptyError = "empty-error",
    /// The error stands in `data`.
    ErrorInData = "error-in-data",
    /// The error stands under another name.
    ErrorMessageField = "error-message-field",
    /// The error is no text.
    ErrorNotText = "error-not-text",
    /// An error does not say what happened.
    ErrorTextMissing = "error-text-missing",
    /// An error lacks its category, whether to try again, or its effect.
    ErrorIncomplete = "error-incomplete",
    /// There is no timestamp.
    TimestampMissing = "timestamp-missing",
    /// The timestamp is called `created_at`.
    CreatedAt = "created-at",
    /// A time does not say in which zone.
    NaiveTimestamp = "naive-timestamp",
    /// A time is a number.
    UnixTimestamp = "unix-timestamp",
    /// A time cannot be read.
    UnreadableTimestamp = "unreadable-timestamp",
    /// There is no action.
    ActionMissing = "action-missing",
    /// The action cannot be a name.
    ActionInvalid = "action-invalid",
    /// An answer that waits for a person has another action.
    HilAction = "hil-action",
    /// An answer that waits for a person does not have `hil_required: true`.
    HilFlagMissing = "hil-flag-missing",
    /// An answer that waits for nobody has `hil_required`.
    HilFlagMisplaced = "hil-flag-misplaced",
    /// `hil_required` is true and the status does not say for what.
    HilStatusMissing = "hil-status-missing",
    /// An answer that waits for a person has no message.
    MessageMissing = "message-missing",
    /// A question is asked without a `question`.
    QuestionMissing = "question-missing",
    /// What belongs in `data` stands beside it.
    FlatField = "flat-field",
    /// There is no data.
    DataMissing = "data-missing",
    /// The data is no object.
    DataNotObject = "data-not-object",
    /// There is billing information.
    Billing = "billing",
    /// `instruction` is called `instructions`.
    Instructions = "instructions",
    /// A text is something else.
    FieldNotText = "field-not-text",
    /// An object is something else.
    FieldNotObject = "field-not-object",
    /// A field is missing and was filled.
    FieldMissing = "field-missing",
    /// A field cannot be what it has to be and was put aside.
    FieldInvalid = "field-invalid",
    /// A request for one exact call has the status of another kind of request.
    AuthorizationStatus = "authorization-status",
    /// A request for one exact call lacks fields.
    AuthorizationIncomplete = "authorization-incomplete",
}

impl fmt::Display for DeprecationCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
