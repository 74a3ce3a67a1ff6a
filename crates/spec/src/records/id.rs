//! The ids of runs, turns and calls. An id is the position of a call, never a time, so that replaying a
//! run gives the same ids.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::schema;
use crate::{checked_text, parsed_text};

checked_text! {
    /// The id of a run: letters, digits, `-`, `_`, `.` and `:`, the first a letter or digit, so that it
    /// needs no quoting in a URL or on a command line.
    #[derive(JsonSchema)]
    #[schemars(with = "schema::RunId", inline)]
    RunId(String), IdError, check_run_id
}

/// The number of a model's turn in its run. The first is 1.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "u32", into = "u32")]
#[schemars(with = "NonZeroU32", inline)]
pub struct Turn(NonZeroU32);

/// The id of a call, from its position: the run, the turn, and the index in the turn. Written
/// `run:turn:call`.
#[derive(
    Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "schema::CallId", inline)]
pub struct CallId {
    /// The run.
    pub run: RunId,
    /// The turn in the run.
    pub turn: Turn,
    /// The index in the turn's calls, in the order of the model's request. The first is 0.
    pub index: u32,
}

/// Why an id is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// It is empty.
    #[error("a run id must not be empty")]
    Empty,
    /// A character that is not allowed in an id, or not at the start.
    #[error(
        "a run id must contain only letters, digits, `-`, `_`, `.` and `:` and start with a letter or digit"
    )]
    Character,
    /// It is too long.
    #[error("a run id must have at most {} characters", RunId::MAX)]
    TooLong,
    /// The turn is zero.
    #[error("turns are counted from 1")]
    TurnZero,
    /// A text that is not a call id.
    #[error("`{0}` is not a call id; write run:turn:call, such as `r1:1:0`")]
    NotACallId(String),
}

impl RunId {
    /// The largest length of an id.
    pub const MAX: usize = 128;
}

fn check_run_id(id: &str) -> Result<(), IdError> {
    let first = id.chars().next().ok_or(IdError::Empty)?;
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    if !first.is_ascii_alphanumeric() || !id.chars().all(allowed) {
        return Err(IdError::Character);
    }
    if id.len() > RunId::MAX {
        return Err(IdError::TooLong);
    }
    Ok(())
}

impl Turn {
    /// The first turn of a run.
    pub const FIRST: Self = Self(NonZeroU32::MIN);

    /// The turn after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// Its number, from 1.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0.get()
    }
}

impl fmt::Display for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl TryFrom<u32> for Turn {
    type Error = IdError;

    fn try_from(number: u32) -> Result<Self, IdError> {
        NonZeroU32::new(number).map(Self).ok_or(IdError::TurnZero)
    }
}

impl From<Turn> for u32 {
    fn from(turn: Turn) -> Self {
        turn.number()
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.run, self.turn, self.index)
    }
}

impl FromStr for CallId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let invalid = || IdError::NotACallId(text.chars().take(60).collect());
        // From the right, because the id of a run may contain colons.
        let mut parts = text.rsplitn(3, ':');
        let index: u32 = parts
            .next()
            .and_then(|part| part.parse().ok())
            .ok_or_else(invalid)?;
        let turn: u32 = parts
            .next()
            .and_then(|part| part.parse().ok())
            .ok_or_else(invalid)?;
        let id = Self {
            run: RunId::new(parts.next().ok_or_else(invalid)?)?,
            turn: Turn::try_from(turn)?,
            index,
        };
        // An id has only one spelling: `r:01:0` would be another one for `r:1:0`.
        if id.to_string() == text {
            Ok(id)
        } else {
            Err(invalid())
        }
    }
}

parsed_text!(CallId);
