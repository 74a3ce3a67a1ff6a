//! A tool: an implementation that takes JSON and gives JSON. It has a function in it, so it is never
//! written anywhere; what can be written about it is its specification.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use windlass_core::gate::Permit;
use windlass_core::risk::{Annotations, Trust};
use windlass_core::run::Reply;
use windlass_spec::{ErrorCategory, NonEmptyText, ToolAttributes, ToolName};

use crate::builder::ToolBuilder;
use crate::dispatch::DEFAULT_MAX_OUTPUT_BYTES;
use crate::error::ToolError;
use crate::http::HttpMethod;
use crate::memory::{Caller, MemoryPort};
use crate::split::Split;

/// What a tool gives when it runs.
pub type ToolFuture = Pin<Box<dyn Future<Output = Result<Value, ToolError>> + Send>>;

pub(crate) type Handler = Arc<dyn Fn(Value, CallContext) -> ToolFuture + Send + Sync>;

/// How far a call has come, as its tool tells.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolProgress {
    /// How much is done.
    pub done: f64,
    /// How much there is to do, if that is known.
    pub total: Option<f64>,
    /// What is being done.
    pub message: Option<String>,
}

/// Told how far a call has come. It must not wait.
pub type OnProgress = Arc<dyn Fn(ToolProgress) + Send + Sync>;

/// What an implementation is told about a call besides its arguments.
#[derive(Clone)]
pub struct CallContext {
    /// Cancelled when the call is to end early, for implementations that have to put something
    /// away first. Whoever does not look at it is dropped.
    pub stop: CancellationToken,
    /// How much a result may hold, so that no more than that is ever read.
    pub max_output_bytes: usize,
    /// What tells this call from all others, also when it is run once more.
    pub key: String,
    /// What came of the form that the tool wanted filled in when it last ran for this call.
    pub reply: Option<Reply>,
    /// Where to tell how far the call has come.
    pub progress: Option<OnProgress>,
    /// For whom the call is made, if that is known.
    pub caller: Option<Caller>,
    /// Where memories are kept, if they are.
    pub memory: Option<Arc<dyn MemoryPort>>,
    /// Which of several implementations is to run, if there are several and that is decided.
    pub variant: Option<String>,
}

impl fmt::Debug for CallContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallContext")
            .field("key", &self.key)
            .field("reply", &self.reply)
            .finish_non_exhaustive()
    }
}

impl Default for CallContext {
    fn default() -> Self {
        Self {
            stop: CancellationToken::new(),
            max_output_bytes: DEFAULT_MAX_OUTPUT_BYTES,
            key: String::new(),
            reply: None,
            progress: None,
            caller: None,
            memory: None,
            variant: None,
        }
    }
}

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
    /// Whether it answers to being stopped by putting something away, which is waited for.
    pub(crate) winds_down: bool,
    pub(crate) http_method: Option<HttpMethod>,
    /// What its author declares about its use.
    pub(crate) attributes: Option<Arc<ToolAttributes>>,
    /// What the server it comes from says about its effects, if it comes from one.
    pub(crate) annotations: Option<(Annotations, Trust)>,
    /// What stands behind it, in words, where that is known.
    pub(crate) implementation: Option<Arc<str>>,
    /// What has to be set before it can do anything, if it can do nothing.
    pub(crate) not_configured: Option<Arc<str>>,
    /// Between which implementations principals are split, if they are.
    pub(crate) split: Option<Arc<Split>>,
}

impl Tool {
    /// Begins a tool of that name.
    pub fn builder(name: impl Into<String>) -> ToolBuilder {
        ToolBuilder::new(name.into())
    }

    /// What its author declares about its use, if anything.
    #[must_use]
    pub fn attributes(&self) -> Option<&ToolAttributes> {
        self.attributes.as_deref()
    }

    /// What the server it comes from says about its effects, and whether the operator trusts that
    /// server; none if it comes from no server.
    #[must_use]
    pub fn annotations(&self) -> Option<(Annotations, Trust)> {
        self.annotations
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

    /// The method of the request it makes, if it is one.
    #[must_use]
    pub fn http_method(&self) -> Option<HttpMethod> {
        self.http_method
    }

    /// What stands behind it, in words, where that is known: tools of which the same is said do the same.
    #[must_use]
    pub fn implementation(&self) -> Option<&str> {
        self.implementation.as_deref()
    }

    /// What has to be configured before it can do anything, in words; nothing if it can.
    #[must_use]
    pub fn not_configured(&self) -> Option<&str> {
        self.not_configured.as_deref()
    }

    /// The same tool under another name.
    #[must_use]
    pub fn renamed(mut self, name: ToolName) -> Self {
        self.name = name;
        self
    }

    /// Runs the tool, bare: without a time limit and without looking at the result. It costs the
    /// permit. [`dispatch`](crate::dispatch()) is what a driver of runs wants.
    ///
    /// A permit for another tool is refused: nobody decided that this one may run.
    #[must_use = "a tool runs while its future is polled"]
    pub fn invoke(&self, permit: Permit) -> ToolFuture {
        self.start(permit, CallContext::default())
    }

    pub(crate) fn start(&self, permit: Permit, context: CallContext) -> ToolFuture {
        if *permit.tool() != self.name {
            let message = format!(
                "the permit is for `{}`, not for `{}`; ask the gate for a permit for this tool",
                permit.tool(),
                self.name
            );
            let error = ToolError::of(ErrorCategory::Internal, message).without_effect();
            return Box::pin(std::future::ready(Err(error)));
        }
        (self.handler)(permit.into_arguments(), context)
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
