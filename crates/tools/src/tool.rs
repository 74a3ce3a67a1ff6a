//! A tool: an implementation that takes JSON and returns JSON. It contains a function, so it is never
//! serialized; its specification is.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use windlass_core::approval::Digest;
use windlass_core::gate::Permit;
use windlass_core::risk::{Annotations, Trust};
use windlass_core::run::FormReply;
use windlass_spawn::Isolation;
use windlass_spec::{CallId, ErrorCategory, NonEmptyText, ToolAttributes, ToolName};

use crate::builder::ToolBuilder;
use crate::command::CommandLine;
use crate::dispatch::DEFAULT_MAX_OUTPUT_BYTES;
use crate::error::ToolError;
use crate::http::{HttpEndpoint, HttpMethod};
use crate::memory::{Caller, MemoryPort};
use crate::program_files::FileWatch;
use crate::split::Split;

/// The future of a running tool.
pub type ToolFuture = BoxFuture<'static, Result<Value, ToolError>>;

pub(crate) type Handler = Arc<dyn Fn(Value, CallContext) -> ToolFuture + Send + Sync>;

/// The progress of a call, as its tool reports it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolProgress {
    /// How much is done.
    pub done: f64,
    /// How much there is to do, if that is known.
    pub total: Option<f64>,
    /// What is being done.
    pub message: Option<String>,
}

/// A callback for the progress of a call. It must not block.
pub type OnProgress = Arc<dyn Fn(ToolProgress) + Send + Sync>;

/// The proof that a person approved a call whose tool had asked for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalStatement {
    /// The id of the approval: the call that was approved.
    pub approval: CallId,
    /// The id of this statement. A tool that checks statements accepts each id once.
    pub id: String,
    /// The digest of the approved call.
    pub call_digest: Digest,
    /// The statement as a JWS that the key of the installation signed; `None` if the run has no key.
    pub signed: Option<String>,
}

/// The context of a call that an implementation gets besides the arguments.
#[derive(Clone)]
pub struct CallContext {
    /// Cancelled when the call must end early, for implementations that clean up first. An
    /// implementation that ignores it is dropped.
    pub stop: CancellationToken,
    /// The maximum size of the result, so that an implementation reads no more.
    pub max_output_bytes: usize,
    /// The unique key of the call, which stays the same when it is run again.
    pub key: String,
    /// The reply to the form that the tool asked for when it last ran for this call.
    pub reply: Option<FormReply>,
    /// The proof of the approval that the tool asked for when it last ran for this call.
    pub approval: Option<ApprovalStatement>,
    /// The progress callback.
    pub progress: Option<OnProgress>,
    /// On whose behalf the call is made, if that is known.
    pub caller: Option<Caller>,
    /// The memory, if there is one.
    pub memory: Option<Arc<dyn MemoryPort>>,
    /// The implementation to run, if there are several and one is assigned.
    pub variant: Option<String>,
    /// How a program is isolated, if it is one.
    pub isolation: Isolation,
    /// The files that govern agents, which a program must not change.
    pub watch: Option<FileWatch>,
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
            approval: None,
            progress: None,
            caller: None,
            memory: None,
            variant: None,
            isolation: Isolation::default(),
            watch: None,
        }
    }
}

/// What a tool starts or contacts.
#[derive(Debug, Clone)]
pub enum Implementation {
    /// A program.
    Command(CommandLine),
    /// Requests to a server.
    Http(HttpEndpoint),
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
    /// Whether it cleans up when it is stopped, which dispatch waits for.
    pub(crate) cleans_up: bool,
    pub(crate) http_method: Option<HttpMethod>,
    /// The attributes that its author declares.
    pub(crate) attributes: Option<Arc<ToolAttributes>>,
    /// The annotations of the MCP server it comes from, if it comes from one.
    pub(crate) annotations: Option<(Annotations, Trust)>,
    /// Whether its answers may be envelopes.
    pub(crate) has_envelopes: bool,
    /// A description of its implementation, if it is known.
    pub(crate) implementation: Option<Arc<str>>,
    /// What it starts or contacts itself, if it does.
    pub(crate) source: Option<Arc<Implementation>>,
    /// What must be configured before it can be used, if it cannot.
    pub(crate) not_configured: Option<Arc<str>>,
    /// The implementations between which principals are split, if there are several.
    pub(crate) split: Option<Arc<Split>>,
}

impl Tool {
    /// A builder for a tool with this name.
    pub fn builder(name: impl Into<String>) -> ToolBuilder {
        ToolBuilder::new(name.into())
    }

    /// The attributes that its author declares, if any.
    #[must_use]
    pub fn attributes(&self) -> Option<&ToolAttributes> {
        self.attributes.as_deref()
    }

    /// The annotations of the MCP server it comes from, and whether the operator trusts that
    /// server; none if it does not come from a server.
    #[must_use]
    pub fn annotations(&self) -> Option<(Annotations, Trust)> {
        self.annotations
    }

    /// Whether its answers are read as envelopes, if they are one.
    #[must_use]
    pub fn has_envelopes(&self) -> bool {
        self.has_envelopes
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &ToolName {
        &self.name
    }

    /// Its description.
    #[must_use]
    pub fn description(&self) -> &str {
        self.description.as_str()
    }

    /// The JSON Schema of its arguments.
    #[must_use]
    pub fn schema(&self) -> &Value {
        &self.schema
    }

    /// The JSON Schema of its result, if it declares one.
    #[must_use]
    pub fn returns_schema(&self) -> Option<&Value> {
        self.returns.as_ref()
    }

    /// The HTTP method, if it is an HTTP request.
    #[must_use]
    pub fn http_method(&self) -> Option<HttpMethod> {
        self.http_method
    }

    /// A description of its implementation, if it is known. Tools with equal descriptions have the same implementation.
    #[must_use]
    pub fn implementation(&self) -> Option<&str> {
        self.implementation.as_deref()
    }

    /// What it starts or contacts: its own implementation and those of its variants.
    pub fn implementations(&self) -> impl Iterator<Item = &Implementation> {
        let variants = self.split.iter().flat_map(|split| split.variants());
        let variants = variants.filter_map(|variant| variant.tool.source.as_deref());
        self.source.as_deref().into_iter().chain(variants)
    }

    /// A message about what must be configured before it can be used; `None` if it can be used.
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
