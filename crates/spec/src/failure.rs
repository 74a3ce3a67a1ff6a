//! What went wrong with a call: a closed set of categories, whether it may be tried again, whether
//! it had an effect, and what to say to whom.

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
    /// What the call is about does not exist.
    NotFound,
    /// Whoever asked may not do this.
    PermissionDenied,
    /// A person said no.
    Rejected,
    /// Nobody answered in time.
    Expired,
    /// Credentials are missing or were refused.
    Authentication,
    /// Too many calls in too short a time.
    RateLimited,
    /// A budget of the run is used up.
    BudgetExceeded,
    /// The call took too long.
    Timeout,
    /// The call was stopped.
    Cancelled,
    /// The service behind the tool does not answer.
    Unavailable,
    /// The tool answered with something other than it declares.
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

    /// What the person in front of it can do.
    #[must_use]
    pub const fn guidance(self) -> &'static str {
        match self {
            Self::UnknownTool => "check the name, or add the tool to the agent",
            Self::InvalidArguments => "correct the arguments and ask again",
            Self::NotFound => "check that what you asked for exists",
            Self::PermissionDenied => "ask whoever runs this for the permission",
            Self::Rejected => "the person who decides said no; ask for something else",
            Self::Expired => "nobody answered in time; ask again",
            Self::Authentication => "check the credentials the tool uses",
            Self::RateLimited => "wait a little, then try again",
            Self::BudgetExceeded => "raise the budget, or ask for less",
            Self::Timeout => "try again, or raise the tool's timeout",
            Self::Cancelled => "it was stopped; start it again if you want it",
            Self::Unavailable => "check that the service is up, then try again",
            Self::InvalidOutput => "report it to whoever maintains the tool",
            Self::ToolFailure => "see the message; report it to whoever maintains the tool",
            Self::Internal => "report it with the run's trace",
        }
    }

    /// Whether trying the same again may succeed, unless a tool says otherwise.
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

/// What a failed call did before it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Nothing.
    None,
    /// What it was asked to do.
    Applied,
    /// Nobody knows.
    Unknown,
}

/// A failed call, told to the operator and to the model apart: what a foreign program says may hold
/// secrets or instructions, so a model hears only what was written for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Why.
    pub category: ErrorCategory,
    /// Whether trying the same again may succeed.
    pub retryable: bool,
    /// What it did before it failed.
    pub effect: Effect,
    /// Everything that is known, for whoever runs this.
    pub operator_message: String,
    /// What the model is told.
    pub model_message: String,
}

impl Failure {
    /// A failure that the model is told of in the same words as the operator; for messages written
    /// here, not by foreign programs.
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

    /// A failure a foreign program described. The model hears only its category.
    #[must_use]
    pub fn foreign(category: ErrorCategory, effect: Effect, message: impl Into<String>) -> Self {
        Self {
            operator_message: message.into(),
            model_message: format!("the tool failed ({category}): {}", category.guidance()),
            ..Self::new(category, effect, "")
        }
    }
}
