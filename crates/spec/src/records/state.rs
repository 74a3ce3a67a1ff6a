//! Where a call stands, and where it can go from there. What is known at each state is in
//! [`CallRecord`](super::CallRecord).

use super::words::words;

words! {
    /// Where a call stands.
    CallState {
        /// Asked for, not yet allowed to run.
        Pending = "pending",
        /// Permitted and started.
        Running = "running",
        /// Ended with a result.
        Success = "success",
        /// Ended with a failure, or was refused.
        Error = "error",
        /// Stopped because it took too long.
        Timeout = "timeout",
        /// Stopped, or undone before it started.
        Cancelled = "cancelled",
        /// It was started, and nobody knows how it ended.
        Unknown = "unknown",
    }
}

impl CallState {
    /// Whether a call in this state may go to `next`.
    #[must_use]
    pub const fn may_become(self, next: Self) -> bool {
        match self {
            // Refused (denied, rejected, expired) or undone before it started.
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
