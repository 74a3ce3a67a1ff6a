//! The verdict about a call, and the security level that its approval needs.

use windlass_spec::{RiskLevel, SecurityLevel};

windlass_spec::word_set! {
    /// The verdict about a call, from the weakest to the strictest.
    Verdict, "verdict" {
        /// It may run at once.
        Allow = "allow",
        /// It may run when the undo window has passed.
        Hold = "hold",
        /// It may run when it is approved.
        Ask = "ask",
        /// It may not run.
        Deny = "deny",
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
