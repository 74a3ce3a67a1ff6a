//! The built-in floor: what follows from the risk of a call, whatever the policies say. Confidence
//! and taint may only add to it.

use std::fmt;

use serde::{Deserialize, Serialize};
use windlass_spec::{Confidence, RiskLevel};

use crate::verdict::Verdict;

/// What an operator may set about the floor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FloorSettings {
    /// A stated confidence below this needs a person, where a call can be undone only for a while.
    pub confidence_threshold: Confidence,
    /// What happens to such a call when no confidence is stated.
    pub unstated_confidence: Unstated,
}

impl Default for FloorSettings {
    fn default() -> Self {
        Self {
            // 0.8 is a confidence; were it none, the strictest threshold would stand in.
            confidence_threshold: Confidence::try_from(0.8).unwrap_or(Confidence::FULL),
            unstated_confidence: Unstated::Hold,
        }
    }
}

/// What happens to a call that can be undone for a while and states no confidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unstated {
    /// It is held for the undo window.
    #[default]
    Hold,
    /// A person is asked.
    Ask,
}

/// Why the floor says what it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FloorReason {
    /// The call is reversible.
    Reversible,
    /// The call can be undone for a while.
    UndoWindow,
    /// The call can be undone for a while, and its stated confidence is below the threshold.
    Unsure,
    /// The call can be undone for a while, states no confidence, and the operator wants a person then.
    Unstated,
    /// The call can be undone for a while and is tainted.
    Tainted,
    /// The call cannot be undone.
    Irreversible,
}

impl FloorReason {
    /// What the floor says for this reason.
    #[must_use]
    pub const fn verdict(self) -> Verdict {
        match self {
            Self::Reversible => Verdict::Allow,
            Self::UndoWindow => Verdict::Hold,
            Self::Unsure | Self::Unstated | Self::Tainted | Self::Irreversible => Verdict::Ask,
        }
    }
}

impl fmt::Display for FloorReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reversible => "the call is reversible",
            Self::UndoWindow => "the call can be undone only for a while",
            Self::Unsure => {
                "the call can be undone only for a while and its confidence is below the threshold"
            }
            Self::Unstated => "the call can be undone only for a while and states no confidence",
            Self::Tainted => {
                "the call can be undone only for a while and the run has read what others wrote"
            }
            Self::Irreversible => "the call cannot be undone",
        })
    }
}

/// The weakest verdict a call may get.
#[must_use]
pub fn floor(
    risk: RiskLevel,
    confidence: Option<Confidence>,
    tainted: bool,
    settings: &FloorSettings,
) -> Verdict {
    floor_reason(risk, confidence, tainted, settings).verdict()
}

/// The weakest verdict a call may get, by its reason.
#[must_use]
pub fn floor_reason(
    risk: RiskLevel,
    confidence: Option<Confidence>,
    tainted: bool,
    settings: &FloorSettings,
) -> FloorReason {
    match risk {
        RiskLevel::Reversible => FloorReason::Reversible,
        RiskLevel::Irreversible => FloorReason::Irreversible,
        RiskLevel::ReversibleWithDelay if tainted => FloorReason::Tainted,
        RiskLevel::ReversibleWithDelay => match (confidence, settings.unstated_confidence) {
            (Some(stated), _) if stated < settings.confidence_threshold => FloorReason::Unsure,
            (Some(_), _) | (None, Unstated::Hold) => FloorReason::UndoWindow,
            (None, Unstated::Ask) => FloorReason::Unstated,
        },
    }
}
