//! The states of a call and their transitions. The data of each state is in
//! [`CallRecord`](super::CallRecord).

use crate::words::words;

words! {
    /// The state of a call.
    CallState, "state of a call" {
        /// Requested, not yet permitted.
        Pending = "pending",
        /// Permitted and started.
        Running = "running",
        /// Ended with a result.
        Success = "success",
        /// Ended with a failure, or was denied.
        Error = "error",
        /// Stopped because it took too long.
        Timeout = "timeout",
        /// Cancelled, or undone before it started.
        Cancelled = "cancelled",
        /// Started, but its end is unknown.
        Unknown = "unknown",
    }
}

impl CallState {
    /// Whether a call in this state can change to `next`.
    #[must_use]
    pub const fn may_become(self, next: Self) -> bool {
        match self {
            // `Error` is denied, rejected or expired; `Cancelled` is undone before it started.
            Self::Pending => matches!(next, Self::Running | Self::Error | Self::Cancelled),
            Self::Running => matches!(
                next,
                Self::Success | Self::Error | Self::Timeout | Self::Cancelled | Self::Unknown
            ),
            Self::Success | Self::Error | Self::Timeout | Self::Cancelled | Self::Unknown => false,
        }
    }

    /// Whether nothing follows this state.
    #[must_use]
    pub const fn is_final(self) -> bool {
        !matches!(self, Self::Pending | Self::Running)
    }
}
