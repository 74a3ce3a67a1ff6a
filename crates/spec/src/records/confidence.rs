//! The stated confidence of a model. It is only a number here; the gate uses it.

use std::cmp::Ordering;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::schema;

/// A stated confidence: a number from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "f64", into = "f64")]
#[schemars(with = "schema::ZeroToOne", inline)]
pub struct Confidence(f64);

/// A number that is not a confidence.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("a confidence must be between 0.0 and 1.0, not {0}")]
pub struct NotAConfidence(pub f64);

impl Confidence {
    /// No confidence.
    pub const NONE: Self = Self(0.0);
    /// As likely correct as wrong.
    pub const HALF: Self = Self(0.5);
    /// Below this stated confidence a call with an undo window needs approval, unless the operator sets another
    /// threshold.
    pub const DEFAULT_THRESHOLD: Self = Self(0.8);
    /// Certain.
    pub const FULL: Self = Self(1.0);

    /// The confidence nearest to the stated number, and whether the number was out of range. NaN
    /// counts as no confidence, because less confidence only adds scrutiny.
    #[must_use]
    pub fn clamped(stated: f64) -> (Self, bool) {
        match Self::try_from(stated) {
            Ok(confidence) => (confidence, false),
            Err(_) if stated > 1.0 => (Self::FULL, true),
            Err(_) => (Self::NONE, true),
        }
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Confidence {
    type Error = NotAConfidence;

    fn try_from(number: f64) -> Result<Self, NotAConfidence> {
        if (0.0..=1.0).contains(&number) {
            // Adding zero turns a negative zero into a positive one.
            Ok(Self(number + 0.0))
        } else {
            Err(NotAConfidence(number))
        }
    }
}

impl From<Confidence> for f64 {
    fn from(confidence: Confidence) -> Self {
        confidence.0
    }
}

// The number is always finite, so equality and order are total.
impl Eq for Confidence {}

impl Ord for Confidence {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Confidence {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Confidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
