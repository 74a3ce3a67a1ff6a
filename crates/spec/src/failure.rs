//! Failures of calls: a closed set of categories, whether the call may be retried, whether it had an
//! effect, and the messages for the operator and the model.

use serde::{Deserialize, Serialize};

use crate::words::words;

words! {
    /// Why a call failed.
    ErrorCategory, "error category" {
        /// There is no such tool.
        UnknownTool = "unknown_tool",
        /// The arguments do not fit the tool.
        InvalidArguments = "invalid_arguments",
        /// The object of the call does not exist.
        NotFound = "not_found",
        /// The caller lacks the permission.
        PermissionDenied = "permission_denied",
        /// The approver rejected the call.
        Rejected = "rejected",
        /// No approver answered before the deadline.
        Expired = "expired",
        /// Credentials are missing or were rejected.
        Authentication = "authentication",
        /// Too many calls in too short a time.
        RateLimited = "rate_limited",
        /// A budget of the run is used up.
        BudgetExceeded = "budget_exceeded",
        /// The call took too long.
        Timeout = "timeout",
        /// The call was cancelled.
        Cancelled = "cancelled",
        /// The service behind the tool does not answer.
        Unavailable = "unavailable",
        /// The tool's output does not fit its declared type.
        InvalidOutput = "invalid_output",
        /// The tool itself failed.
        ToolFailure = "tool_failure",
        /// Windlass failed.
        Internal = "internal",
    }
}

impl ErrorCategory {
    /// What the user can do about it.
    #[must_use]
    pub const fn guidance(self) -> &'static str {
        match self {
            Self::UnknownTool => "check the name, or add the tool to the agent",
            Self::InvalidArguments => "correct the arguments and try again",
            Self::NotFound => "check that what you asked for exists",
            Self::PermissionDenied => "ask the operator for the permission",
            Self::Rejected => "the approver rejected the call; try something else",
            Self::Expired => "no approver answered before the deadline; ask again",
            Self::Authentication => "check the credentials the tool uses",
            Self::RateLimited => "wait, then try again",
            Self::BudgetExceeded => "raise the budget, or do less in one run",
            Self::Timeout => "try again, or raise the tool's timeout",
            Self::Cancelled => "start it again if you still need it",
            Self::Unavailable => "check that the service is up, then try again",
            Self::InvalidOutput => "report it to the maintainer of the tool",
            Self::ToolFailure => "see the message; report it to the maintainer of the tool",
            Self::Internal => "report it with the run's trace",
        }
    }

    /// Whether the same call may succeed later. A tool may declare otherwise.
    #[must_use]
    pub const fn is_retryable(self) -> bool {
        matches!(self, Self::RateLimited | Self::Timeout | Self::Unavailable)
    }
}

words! {
    /// The effect of a call that failed.
    Effect, "effect" {
        /// No effect.
        None = "none",
        /// The call took effect.
        Applied = "applied",
        /// It is not known whether the call took effect.
        Unknown = "unknown",
    }
}

/// A failed call, with separate messages for the operator and the model. The output of an external
/// program may contain secrets or instructions, so the model gets only text that was written for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The reason.
    pub category: ErrorCategory,
    /// Whether the same call may succeed later.
    pub retryable: bool,
    /// The effect it had before it failed.
    pub effect: Effect,
    /// All details, for the operator.
    pub operator_message: String,
    /// The message for the model.
    pub model_message: String,
    /// How long the service asks to wait before the same call is made again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_seconds: Option<u64>,
}

impl Failure {
    /// A failure with the same message for the model and the operator. Only for messages written
    /// by Windlass, not by external programs.
    #[must_use]
    pub fn new(category: ErrorCategory, effect: Effect, message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            category,
            // A call that may have taken effect must not be repeated by accident.
            retryable: category.is_retryable() && effect == Effect::None,
            effect,
            model_message: message.clone(),
            operator_message: message,
            retry_after_seconds: None,
        }
    }

    /// A failure described by an external program. The model gets only its category.
    #[must_use]
    pub fn foreign(category: ErrorCategory, effect: Effect, message: impl Into<String>) -> Self {
        Self {
            operator_message: message.into(),
            model_message: format!(
                "the tool failed ({category}): {}",
                guidance(category, effect)
            ),
            ..Self::new(category, effect, "")
        }
    }

    /// What the user can do about it.
    #[must_use]
    pub const fn guidance(&self) -> &'static str {
        guidance(self.category, self.effect)
    }
}

/// What to do about a failure. A call that was interrupted and may have taken effect is not to be repeated
/// blindly.
const fn guidance(category: ErrorCategory, effect: Effect) -> &'static str {
    use ErrorCategory::{Cancelled, Timeout, Unavailable};
    match (category, effect) {
        (Timeout | Cancelled | Unavailable, Effect::Unknown) => {
            "find out whether the call took effect before you repeat it"
        }
        _ => category.guidance(),
    }
}
