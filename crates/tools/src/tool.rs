//! A tool: an implementation that takes JSON and gives JSON. It has a function in it, so it is never
//! written anywhere; what can be written about it is its specification.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::Value;
use windlass_core::gate::Permit;
use windlass_spec::{NonEmptyText, ToolName};

use crate::builder::ToolBuilder;

/// What a tool gives when it runs.
pub type ToolFuture = Pin<Box<dyn Future<Output = Result<Value, ToolError>> + Send>>;

pub(crate) type Handler = Arc<dyn Fn(Value) -> ToolFuture + Send + Sync>;

/// An implementation of a tool.
///
/// ```
/// use serde_json::{Value, json};
/// use windlass_tools::{Tool, ToolBuildError};
///
/// fn shout() -> Result<Tool, ToolBuildError> {
///     Tool::builder("shout")
///         .description("Says it louder")
///         .signature("(text: Text) --> IO Text")
///         .handler(|arguments: Value| async move {
///             Ok(json!(arguments["text"].as_str().unwrap_or_default().to_uppercase()))
///         })
///         .build()
/// }
/// # assert!(shout().is_ok());
/// ```
#[derive(Clone)]
pub struct Tool {
    pub(crate) name: ToolName,
    pub(crate) description: NonEmptyText,
    pub(crate) schema: Value,
    pub(crate) returns: Option<Value>,
    pub(crate) handler: Handler,
}

impl Tool {
    /// Begins a tool of that name.
    pub fn builder(name: impl Into<String>) -> ToolBuilder {
        ToolBuilder::new(name.into())
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &ToolName {
        &self.name
    }

    /// What it does.
    #[must_use]
    pub fn description(&self) -> &str {
        self.description.as_str()
    }

    /// The JSON Schema of the arguments it takes.
    #[must_use]
    pub fn schema(&self) -> &Value {
        &self.schema
    }

    /// The JSON Schema of what it returns, if it says.
    #[must_use]
    pub fn returns_schema(&self) -> Option<&Value> {
        self.returns.as_ref()
    }

    /// The same tool under another name.
    #[must_use]
    pub fn renamed(mut self, name: ToolName) -> Self {
        self.name = name;
        self
    }

    /// Runs the tool. This is the only way to run it, and it costs the permit.
    ///
    /// A permit for another tool is refused: nobody decided that this one may run.
    #[must_use = "a tool runs while its future is polled"]
    pub fn invoke(&self, permit: Permit) -> ToolFuture {
        if *permit.tool() != self.name {
            let message = format!(
                "the permit is for `{}`, not for `{}`; ask the gate for a permit for this tool",
                permit.tool(),
                self.name
            );
            return Box::pin(std::future::ready(Err(ToolError::new(message))));
        }
        (self.handler)(permit.into_arguments())
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool")
            .field("name", &self.name)
            .field("description", &self.description)
            .field("schema", &self.schema)
            .field("returns", &self.returns)
            .finish_non_exhaustive()
    }
}

/// Why a tool gave no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    message: String,
}

impl ToolError {
    /// An error with this message.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
        }
    }

    /// An error that says what `error` says.
    #[must_use]
    pub fn from_display(error: impl fmt::Display) -> Self {
        Self::new(error.to_string())
    }

    /// What went wrong.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// Arguments that are not of the form the tool reads.
impl From<serde_json::Error> for ToolError {
    fn from(error: serde_json::Error) -> Self {
        Self::new(format!("invalid arguments: {error}"))
    }
}
