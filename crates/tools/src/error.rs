//! Why a tool gave no result, and who may hear of it: what the author of a tool wrote is for the
//! model, what came from a program or a server is for the operator alone.

use std::fmt;

use windlass_core::run::ToolQuestion;
use windlass_spec::{Effect, ErrorCategory, Failure};

/// Why a tool gave no result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    message: String,
    category: ErrorCategory,
    is_foreign: bool,
    had_no_effect: bool,
    asks: Option<Box<ToolQuestion>>,
}

impl ToolError {
    /// An error with this message, which the model is shown.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self::of(ErrorCategory::ToolFailure, message)
    }

    /// An error of that category with this message, which the model is shown.
    #[must_use]
    pub fn of(category: ErrorCategory, message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            category,
            is_foreign: false,
            had_no_effect: false,
            asks: None,
        }
    }

    /// An error that a foreign program or server described. It may hold secrets or instructions, so
    /// the operator sees this message and the model only the category.
    #[must_use]
    pub fn foreign(category: ErrorCategory, message: impl Into<String>) -> Self {
        Self {
            is_foreign: true,
            ..Self::of(category, message)
        }
    }

    /// No result yet: a person has to answer this first.
    #[must_use]
    pub fn asks(question: ToolQuestion) -> Self {
        Self {
            asks: Some(Box::new(question)),
            ..Self::of(ErrorCategory::Unavailable, "it waits for a person")
        }
    }

    /// What a person has to answer before there is a result.
    pub(crate) fn take_question(&mut self) -> Option<Box<ToolQuestion>> {
        self.asks.take()
    }

    /// An error that says what `error` says.
    #[must_use]
    pub fn from_display(error: impl fmt::Display) -> Self {
        Self::new(error.to_string())
    }

    /// The same error, of a call that certainly did nothing before it failed.
    #[must_use]
    pub fn without_effect(mut self) -> Self {
        self.had_no_effect = true;
        self
    }

    /// The same error in other words.
    pub(crate) fn with_message(mut self, message: String) -> Self {
        self.message = message;
        self
    }

    /// What went wrong.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What kind of thing went wrong.
    #[must_use]
    pub fn category(&self) -> ErrorCategory {
        self.category
    }

    /// The failure a call ends with, where `otherwise` is the effect of a call that may have done
    /// something.
    pub(crate) fn into_failure(self, otherwise: Effect) -> Failure {
        let effect = if self.had_no_effect {
            Effect::None
        } else {
            otherwise
        };
        if self.is_foreign {
            Failure::foreign(self.category, effect, self.message)
        } else {
            Failure::new(self.category, effect, self.message)
        }
    }
}

/// Arguments that are not of the form the tool reads.
impl From<serde_json::Error> for ToolError {
    fn from(error: serde_json::Error) -> Self {
        let message = format!("invalid arguments: {error}");
        Self::of(ErrorCategory::InvalidArguments, message).without_effect()
    }
}
