//! What runs, turns and calls are called. An id says where a call stands, never when it happened or
//! finished, so that replaying a run gives the same ids.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::schema;

/// The id of a run: letters, digits, `-`, `_`, `.` and `:`, the first a letter or digit, so that it
/// can stand in an address or a command line as it is.
#[derive(
    Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "schema::RunId", inline)]
pub struct RunId(String);

/// Where a model's turn stands in its run. The first is 1.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "u32", into = "u32")]
#[schemars(with = "NonZeroU32", inline)]
pub struct Turn(NonZeroU32);

/// The id of a call, from its position: which run, which turn, which of the turn's calls. Written
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
    /// Which of the turn's calls, in the order the model asked for them. The first is 0.
    pub index: u32,
}

/// Why an id was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// Nothing in it.
    #[error("a run id is not empty")]
    Empty,
    /// A character that cannot stand in an id, or not there.
    #[error(
        "a run id holds only letters, digits, `-`, `_`, `.` and `:` and starts with a letter or digit"
    )]
    Character,
    /// Longer than an id needs to be.
    #[error("a run id has at most {} characters", RunId::MAX)]
    TooLong,
    /// A turn zero.
    #[error("turns are counted from 1")]
    TurnZero,
    /// A text that is no call id.
    #[error("`{0}` is no call id; one is written run:turn:call, such as r1:1:0")]
    NotACallId(String),
}

impl RunId {
    /// How long an id may be.
    pub const MAX: usize = 128;

    /// Checks and takes an id.
    ///
    /// # Errors
    /// If the text breaks the rule of this type.
    pub fn new(id: impl Into<String>) -> Result<Self, IdError> {
        let id = id.into();
        let first = id.chars().next().ok_or(IdError::Empty)?;
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
        if !first.is_ascii_alphanumeric() || !id.chars().all(allowed) {
            return Err(IdError::Character);
        }
        if id.len() > Self::MAX {
            return Err(IdError::TooLong);
        }
        Ok(Self(id))
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
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

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for RunId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        Self::new(text)
    }
}

impl TryFrom<String> for RunId {
    type Error = IdError;

    fn try_from(text: String) -> Result<Self, IdError> {
        Self::new(text)
    }
}

impl From<RunId> for String {
    fn from(id: RunId) -> Self {
        id.0
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
        let refused = || IdError::NotACallId(text.chars().take(60).collect());
        // From the right, since the id of a run may itself hold colons.
        let mut parts = text.rsplitn(3, ':');
        let index: u32 = parts
            .next()
            .and_then(|part| part.parse().ok())
            .ok_or_else(refused)?;
        let turn: u32 = parts
            .next()
            .and_then(|part| part.parse().ok())
            .ok_or_else(refused)?;
        let id = Self {
            run: RunId::new(parts.next().ok_or_else(refused)?)?,
            turn: Turn::try_from(turn)?,
            index,
        };
        // One id has one text: `r:01:0` would be a second name for `r:1:0`.
        if id.to_string() == text {
            Ok(id)
        } else {
            Err(refused())
        }
    }
}

impl TryFrom<String> for CallId {
    type Error = IdError;

    fn try_from(text: String) -> Result<Self, IdError> {
        text.parse()
    }
}

impl From<CallId> for String {
    fn from(id: CallId) -> Self {
        id.to_string()
    }
}
