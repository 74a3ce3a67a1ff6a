//! The built-in floor: the minimum verdict that follows from the risk of a call, whatever the policies
//! decide. Confidence and taint may only make it stricter.

use std::fmt;

use serde::{Deserialize, Serialize};
use windlass_spec::{Confidence, RiskLevel};

use crate::verdict::Verdict;

/// The floor settings of an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FloorSettings {
    /// A call with an undo window and a stated confidence below this needs approval.
    pub confidence_threshold: Confidence,
    /// The verdict for such a call without a stated confidence.
    pub unstated_confidence: Unstated,
}

impl Default for FloorSettings {
    fn default() -> Self {
        Self {
            confidence_threshold: Confidence::DEFAULT_THRESHOLD,
            unstated_confidence: Unstated::Hold,
        }
    }
}

/// The verdict for a call with an undo window and no stated confidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unstated {
    /// It is held for the undo window.
    #[default]
    Hold,
    /// It needs approval.
    Ask,
}

/// The reason for the verdict of the floor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FloorReason {
    /// The call is reversible.
    Reversible,
    /// The call can be undone within its undo window.
    UndoWindow,
    /// The call can be undone within its undo window, and its stated confidence is below the threshold.
    Unsure,
    /// The call can be undone within its undo window, states no confidence, and the operator requires
    /// approval then.
    Unstated,
    /// The call can be undone within its undo window, and is tainted.
    Tainted,
    /// The call cannot be undone.
    Irreversible,
}

impl FloorReason {
    /// The verdict of the floor for this reason.
    #[must_use]
    pub const fn verdict(self) -> Verdict {
        match self {
            Self::Reversible => Verdict::Allow,
            Self::UndoWindow => Verdict::Hold,
            Self::Unsure | Self::Unstated | Self::Tainted | Self::Irreversible => Verdict::Ask,
        }
    }
}

impl FloorReason {
    /// The reason, for a call that states this confidence, with the numbers it depends on.
    #[must_use]
    pub fn describe(self, confidence: Option<Confidence>, settings: &FloorSettings) -> String {
        match (self, confidence) {
            (Self::Unsure, Some(stated)) => format!(
                "the call can be undone only within its undo window and its confidence {} is below the threshold {}",
                stated.get(),
                settings.confidence_threshold.get()
            ),
            _ => self.to_string(),
        }
    }
}

impl fmt::Display for FloorReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reversible => "the call is reversible",
            Self::UndoWindow => "the call can be undone only within its undo window",
            Self::Unsure => {
                "the call can be undone only within its undo window and its confidence is below the threshold"
            }
            Self::Unstated => "the call can be undone only within its undo window and states no confidence",
            Self::Tainted => {
                "the call can be undone only within its undo window and the run has read untrusted content"
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

/// The reason for the weakest verdict a call may get.
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
