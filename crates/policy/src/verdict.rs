//! The verdict about a call, and the security level that its approval needs.

use std::fmt;

use serde::{Deserialize, Serialize};
use windlass_spec::{RiskLevel, SecurityLevel};

/// The verdict about a call, from the weakest to the strictest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It may run at once.
    Allow,
    /// It may run when the undo window has passed.
    Hold,
    /// It may run when it is approved.
    Ask,
    /// It may not run.
    Deny,
}

impl Verdict {
    /// All verdicts, from the weakest to the strictest.
    pub const ALL: [Self; 4] = [Self::Allow, Self::Hold, Self::Ask, Self::Deny];

    /// The name in files and messages.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Hold => "hold",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The security level of a call when no rule raises it.
#[must_use]
pub const fn default_security_level(risk: RiskLevel) -> SecurityLevel {
    match risk {
        RiskLevel::Reversible => SecurityLevel::Low,
        RiskLevel::ReversibleWithDelay => SecurityLevel::Medium,
        RiskLevel::Irreversible => SecurityLevel::High,
    }
}
