//! How reversible a call is.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How reversible a call is, which decides how much scrutiny it gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RiskLevel {
    /// No lasting change: reads and searches.
    Reversible,
    /// It can be undone for a while.
    ReversibleWithDelay,
    /// It cannot be undone.
    Irreversible,
}

impl RiskLevel {
    /// All levels, from the least to the most dangerous.
    pub const ALL: [Self; 3] = [
        Self::Reversible,
        Self::ReversibleWithDelay,
        Self::Irreversible,
    ];

    /// The word for it in files and messages.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reversible => "reversible",
            Self::ReversibleWithDelay => "reversible_with_delay",
            Self::Irreversible => "irreversible",
        }
    }
}

impl fmt::Display for RiskLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for RiskLevel {
    type Err = UnknownWord;

    /// Reads the word in any case.
    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        let found = Self::ALL
            .into_iter()
            .find(|level| level.as_str().eq_ignore_ascii_case(word));
        found.ok_or(UnknownWord)
    }
}

/// A word that is not one of the expected ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("unknown word")]
pub struct UnknownWord;
