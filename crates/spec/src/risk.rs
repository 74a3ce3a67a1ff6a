//! How reversible a call is.

use crate::words::words;

words! {
    /// How reversible a call is, which decides how much scrutiny it gets. From the least to the most dangerous.
    RiskLevel, "risk level" {
        /// No lasting change: reads and searches.
        Reversible = "reversible",
        /// It can be undone for a while.
        ReversibleWithDelay = "reversible_with_delay",
        /// It cannot be undone.
        Irreversible = "irreversible",
    }
}
