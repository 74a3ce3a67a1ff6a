//! Failures of calls: a closed set of categories, whether the call may be retried, whether it had an
//! effect, and the messages for the operator and the model.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why a call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCategory {
    /// There is no such tool.
    UnknownTool,
    /// The arguments do not fit the tool.
    InvalidArguments,
    /// The object of the call does not exist.
    NotFound,
    /// The caller lacks the permission.
    PermissionDenied,
    /// The approver rejected the call.
    Rejected,
    /// No approver answered before the deadline.
    Expired,
    /// Credentials are missing or were rejected.
    Authentication,
    /// Too many calls in too short a time.
    RateLimited,
    /// A budget of the run is used up.
    BudgetExceeded,
    /// The call took too long.
    Timeout,
    /// The call was cancelled.
    Cancelled,
    /// The service behind the tool does not answer.
    Unavailable,
    /// The tool's output does not fit its declared type.
    InvalidOutput,
    /// The tool itself failed.
    ToolFailure,
    /// Windlass failed.
    Internal,
}

impl ErrorCategory {
    /// All categories.
    pub const ALL: [Self; 15] = [
        Self::UnknownTool,
        Self::InvalidArguments,
        Self::NotFound,
        Self::PermissionDenied,
        Self::Rejected,
        Self::Expired,
        Self::Authentication,
        Self::RateLimited,
        Self::BudgetExceeded,
        Self::Timeout,
        Self::Cancelled,
        Self::Unavailable,
        Self::InvalidOutput,
        Self::ToolFailure,
        Self::Internal,
    ];

    /// The word for it in JSON and messages.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::UnknownTool => "unknown_tool",
            Self::InvalidArguments => "invalid_arguments",
            Self::NotFound => "not_found",
            Self::PermissionDenied => "permission_denied",
            Self::Rejected => "rejected",
            Self::Expired => "expired",
            Self::Authentication => "authentication",
            Self::RateLimited => "rate_limited",
            Self::BudgetExceeded => "budget_exceeded",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::Unavailable => "unavailable",
            Self::InvalidOutput => "invalid_output",
            Self::ToolFailure => "tool_failure",
            Self::Internal => "internal",
        }
    }

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

impl fmt::Display for ErrorCategory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The effect of a call that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// No effect.
    None,
    /// The call took effect.
    Applied,
    /// It is not known whether the call took effect.
    Unknown,
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
}

impl Failure {
    /// A failure with the same message for the model and the operator. Only for messages written
    /// by Windlass, not by external programs.
    #[must_use]
    pub fn new(category: ErrorCategory, effect: Effect, message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            category,
            retryable: category.is_retryable(),
            effect,
            model_message: message.clone(),
            operator_message: message,
        }
    }

    /// A failure described by an external program. The model gets only its category.
    #[must_use]
    pub fn foreign(category: ErrorCategory, effect: Effect, message: impl Into<String>) -> Self {
        Self {
            operator_message: message.into(),
            model_message: format!("the tool failed ({category}): {}", category.guidance()),
            ..Self::new(category, effect, "")
        }
    }
}
