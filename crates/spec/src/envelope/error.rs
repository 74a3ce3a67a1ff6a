//! Why JSON is not a canonical envelope: the field and its problem.

use std::fmt;

use crate::money::NotMoney;
use crate::names::TextError;
use crate::time::NotATime;

/// A field because of which JSON is not a canonical envelope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvelopeError {
    /// The JSON pointer of the field; empty for the whole answer.
    pub pointer: String,
    /// Its problem.
    pub problem: EnvelopeProblem,
}

/// The problem of a field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeProblem {
    /// It is required.
    #[error("is missing")]
    Missing,
    /// It is not allowed in an answer of this status.
    #[error("is not allowed here; put the fields of a tool into `data`")]
    Misplaced,
    /// It is of another JSON type.
    #[error("must be {expected}")]
    Type {
        /// The required type.
        expected: &'static str,
    },
    /// Its text breaks a rule.
    #[error("is invalid: {0}")]
    Text(TextError),
    /// Its word is not one of the known ones.
    #[error("is `{found}`, which is not a valid {what}; write one of {known}")]
    Word {
        /// The unknown word.
        found: String,
        /// The name of the set of words.
        what: &'static str,
        /// The known words.
        known: String,
    },
    /// It is not a timestamp.
    #[error("is invalid: {0}")]
    Time(NotATime),
    /// It is not an amount of money.
    #[error("is invalid: {0}")]
    Cost(NotMoney),
    /// It has another name now.
    #[error("was renamed; write `{0}`")]
    Renamed(&'static str),
    /// The status requires one exact value.
    #[error("must be `{0}` in an answer of this status")]
    Fixed(&'static str),
}

impl fmt::Display for EnvelopeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pointer.as_str() {
            "" => write!(f, "the answer {}", self.problem),
            pointer => write!(f, "`{pointer}` {}", self.problem),
        }
    }
}

impl std::error::Error for EnvelopeError {}

/// The pointer to the member `name` of the object at `parent`.
pub(super) fn pointer(parent: &str, name: &str) -> String {
    let escaped = name.replace('~', "~0").replace('/', "~1");
    format!("{parent}/{escaped}")
}
