//! Why JSON is no canonical envelope: which field, and what is wrong with it.

use std::fmt;

use crate::names::TextError;
use crate::time::NotATime;

/// A field that keeps JSON from being a canonical envelope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvelopeError {
    /// The JSON pointer of the field; empty for the whole answer.
    pub pointer: String,
    /// What is wrong with it.
    pub problem: EnvelopeProblem,
}

/// What can be wrong with a field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeProblem {
    /// It has to be there.
    #[error("is missing")]
    Missing,
    /// It has no place in an answer of this status.
    #[error("does not belong here; what a tool has to say stands in `data`")]
    Misplaced,
    /// It is of another JSON type.
    #[error("must be {expected}")]
    Type {
        /// What it has to be.
        expected: &'static str,
    },
    /// Its text breaks a rule.
    #[error("is refused: {0}")]
    Text(TextError),
    /// Its word is not one of those known.
    #[error("holds `{found}`, which is no {what}; write one of {known}")]
    Word {
        /// What it holds.
        found: String,
        /// What the word should be.
        what: &'static str,
        /// The words that are known.
        known: String,
    },
    /// It is no point in time.
    #[error("is refused: {0}")]
    Time(NotATime),
    /// It has another name.
    #[error("is called `{0}`")]
    Renamed(&'static str),
    /// It has to hold one exact word, given the status.
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
