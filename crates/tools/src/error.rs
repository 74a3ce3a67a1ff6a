//! The errors of tools, and who may see them. A message by the author of a tool is shown to the
//! model. A message from a program or a server is shown to the operator only.

use std::any::Any;
use std::fmt;

use windlass_core::run::ToolQuestion;
use windlass_spec::{Effect, ErrorCategory, Failure};

/// An error of a tool call.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    message: String,
    category: ErrorCategory,
    is_foreign: bool,
    had_no_effect: bool,
    is_interrupted: bool,
    retry_after_seconds: Option<u64>,
    asks: Option<Box<ToolQuestion>>,
}

impl ToolError {
    /// An error with a message that the model is shown.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self::of(ErrorCategory::ToolFailure, message)
    }

    /// An error of this category with a message that the model is shown.
    #[must_use]
    pub fn of(category: ErrorCategory, message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            category,
            is_foreign: false,
            had_no_effect: false,
            is_interrupted: false,
            retry_after_seconds: None,
            asks: None,
        }
    }

    /// An error with a message from a program or server. It may contain secrets or instructions, so
    /// the operator sees the message and the model only the category.
    #[must_use]
    pub fn foreign(category: ErrorCategory, message: impl Into<String>) -> Self {
        Self {
            is_foreign: true,
            ..Self::of(category, message)
        }
    }

    /// No result yet: a person has to answer this first.
    #[must_use]
    pub fn from_question(question: ToolQuestion) -> Self {
        Self {
            asks: Some(Box::new(question)),
            ..Self::of(ErrorCategory::Unavailable, "a person must answer first")
        }
    }

    /// Takes the question that a person must answer first.
    pub(crate) fn take_question(&mut self) -> Option<Box<ToolQuestion>> {
        self.asks.take()
    }

    /// An error with the message of `error`.
    #[must_use]
    pub fn from_display(error: impl fmt::Display) -> Self {
        Self::new(error.to_string())
    }

    /// Marks the error as one of a call that had no effect.
    #[must_use]
    pub fn without_effect(mut self) -> Self {
        self.had_no_effect = true;
        self
    }

    /// Marks the error as one of a call that began and whose outcome is not known: the connection broke,
    /// or the program died. Unlike an error that the tool reports, it says nothing about the effect.
    #[must_use]
    pub fn interrupted(mut self) -> Self {
        self.is_interrupted = true;
        self
    }

    /// The same error of a service that asks to wait that long before the call is made again.
    #[must_use]
    pub fn retry_after(mut self, seconds: u64) -> Self {
        self.retry_after_seconds = Some(seconds);
        self
    }

    /// Whether the call began and its outcome is not known.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.is_interrupted && !self.had_no_effect
    }

    /// Whether the call certainly had no effect.
    pub(crate) fn had_no_effect(&self) -> bool {
        self.had_no_effect
    }

    /// The message, if a program or server wrote it.
    pub(crate) fn foreign_message(&self) -> Option<&str> {
        self.is_foreign.then_some(self.message.as_str())
    }

    /// The same error with another message.
    pub(crate) fn with_message(mut self, message: String) -> Self {
        self.message = message;
        self
    }

    /// The message.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The error category.
    #[must_use]
    pub fn category(&self) -> ErrorCategory {
        self.category
    }

    /// The failure a call ends with. `possible_effect` is the effect unless the error rules one out.
    pub(crate) fn into_failure(self, possible_effect: Effect) -> Failure {
        let effect = if self.had_no_effect {
            Effect::None
        } else {
            possible_effect
        };
        let failure = match self.is_foreign {
            true => Failure::foreign(self.category, effect, self.message),
            false => Failure::new(self.category, effect, self.message),
        };
        Failure {
            retry_after_seconds: self.retry_after_seconds,
            ..failure
        }
    }
}

/// The error of a function that is a tool. A [`ToolError`] stays as it is, with its category and its question to a
/// person; of every other error the model is shown the message.
#[doc(hidden)]
pub fn error_of_tool(error: impl fmt::Display + 'static) -> ToolError {
    match (&error as &dyn Any).downcast_ref::<ToolError>() {
        Some(own) => own.clone(),
        None => ToolError::from_display(error),
    }
}

/// Arguments that cannot be deserialized.
impl From<serde_json::Error> for ToolError {
    fn from(error: serde_json::Error) -> Self {
        let message = format!("invalid arguments: {error}");
        Self::of(ErrorCategory::InvalidArguments, message).without_effect()
    }
}
