//! The interface to a server: requests, answers, errors and limits, in types of this crate only.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use futures::future::BoxFuture;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use windlass_spawn::Isolation;
use windlass_spec::{Effect, ErrorCategory};

/// Returns the values of environment variables.
pub type Lookup = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

windlass_spec::word_set! {
    /// The generation of the protocol that a server speaks.
    Era, "protocol era" {
        /// 2025-11-25 and before: `initialize`, then a session in which both sides send requests.
        Legacy = "legacy",
        /// 2026-07-28: stateless, every request is self-contained.
        Modern = "modern",
    }
}

impl Era {
    pub(crate) fn other(self) -> Self {
        match self {
            Self::Legacy => Self::Modern,
            Self::Modern => Self::Legacy,
        }
    }
}

/// A secret value. `Debug` and `Display` show `***`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a value.
    #[must_use]
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value. Call this only to send or store it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Provides the bearer tokens for an HTTP server.
pub trait Authorizer: Send + Sync {
    /// The token to send. Without a refusal, the current token; `None` means to send the request without
    /// one. After a refusal, a token that satisfies its challenge.
    ///
    /// # Errors
    /// A message for the operator if a token cannot be obtained without the user.
    fn token<'a>(
        &'a self,
        refusal: Option<Refusal<'a>>,
    ) -> BoxFuture<'a, Result<Option<Secret>, String>>;
}

/// A server's refusal of a request.
#[derive(Debug, Clone, Copy)]
pub struct Refusal<'a> {
    /// The value of its `WWW-Authenticate` header.
    pub challenge: &'a str,
    /// The token that was sent, if any. A concurrent request may have replaced it meanwhile.
    pub token: Option<&'a Secret>,
}

/// Answers the sampling requests of a server.
pub trait Sampler: Send + Sync {
    /// The model's answer.
    ///
    /// # Errors
    /// A message for the server.
    fn sample(&self, request: SampleRequest) -> BoxFuture<'_, Result<SampleAnswer, String>>;
}

/// A sampling request of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleRequest {
    /// The conversation.
    pub messages: Vec<SampleMessage>,
    /// The system prompt.
    pub system_prompt: Option<String>,
    /// The longest answer, in tokens.
    pub max_tokens: u32,
}

/// A message of a sampling request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleMessage {
    /// Whether the message is from the model, not the user.
    pub is_from_model: bool,
    /// The text of the message.
    pub text: String,
}

/// The model's answer to a sampling request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleAnswer {
    /// The model's name.
    pub model: String,
    /// The text of the answer.
    pub text: String,
}

/// Limits on what a server may send, and timeouts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The most bytes of one message.
    pub message_bytes: usize,
    /// The most consecutive lines on a program's standard output that are not messages.
    pub noise_lines: usize,
    /// The most tools of a server.
    pub tools: usize,
    /// The most bytes of all definitions together.
    pub list_bytes: usize,
    /// The most requests for input in one call.
    pub rounds: usize,
    /// The most characters of a text for the user (progress, elicitation, errors).
    pub text_characters: usize,
    /// The shortest time between two progress reports.
    pub progress_interval: Duration,
    /// The shortest time between two changes of the generation by notifications.
    pub change_interval: Duration,
    /// The shortest TTL of a list of tools, whatever the server says.
    pub shortest_ttl: Duration,
    /// The backoff after the first failure to start.
    pub first_backoff: Duration,
    /// The longest backoff.
    pub longest_backoff: Duration,
    /// A connection that lasted this long counts as stable.
    pub stable_after: Duration,
    /// How long a program may take to end once its standard input is closed.
    pub close_grace: Duration,
    /// How long it may take to end after SIGTERM.
    pub terminate_grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_bytes: 16 * 1024 * 1024,
            noise_lines: 1_000,
            tools: 10_000,
            list_bytes: 64 * 1024 * 1024,
            rounds: 10,
            text_characters: 4_000,
            progress_interval: Duration::from_millis(50),
            change_interval: Duration::from_secs(1),
            shortest_ttl: Duration::from_secs(10),
            first_backoff: Duration::from_millis(500),
            longest_backoff: Duration::from_secs(60),
            stable_after: Duration::from_secs(30),
            close_grace: Duration::from_secs(4),
            terminate_grace: Duration::from_secs(2),
        }
    }
}

/// Options for a server that are not in its settings.
#[derive(Clone)]
pub struct ServerOptions {
    /// The era it spoke on the last connection, if known.
    pub era: Option<Era>,
    /// Returns the values of the variables that its settings name.
    pub lookup: Lookup,
    /// Answers its sampling requests. Used only if the settings allow sampling.
    pub sampler: Option<Arc<dyn Sampler>>,
    /// Provides its tokens.
    pub authorizer: Option<Arc<dyn Authorizer>>,
    /// Its limits.
    pub limits: Limits,
    /// Checked before and after every start.
    pub before_start: Option<BeforeStart>,
    /// How it is isolated, if it is a program.
    pub isolation: Isolation,
}

/// Checks a server before it is started. Takes the executable, if the server is a program. An error is the
/// reason not to start it.
pub type BeforeStart = Arc<dyn Fn(Option<&Path>) -> Result<AfterStart, String> + Send + Sync>;

/// Checks a server again after it was initialized, before it gets any other request. An error is the reason
/// to kill it.
pub type AfterStart = Box<dyn FnOnce() -> Result<(), String> + Send>;

impl Default for ServerOptions {
    /// Looks variables up in the environment of this process; everything else is unset or the default.
    fn default() -> Self {
        Self {
            era: None,
            lookup: Arc::new(|name| std::env::var(name).ok()),
            sampler: None,
            authorizer: None,
            limits: Limits::default(),
            before_start: None,
            isolation: Isolation::default(),
        }
    }
}

impl fmt::Debug for ServerOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerOptions")
            .field("era", &self.era)
            .field("sampler", &self.sampler.is_some())
            .field("authorizer", &self.authorizer.is_some())
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// What a server reports about itself when it is initialized.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerInfo {
    /// The protocol era.
    pub era: Era,
    /// The protocol version.
    pub protocol_version: String,
    /// The name of the server's implementation.
    pub server_name: String,
    /// The version of the server's implementation.
    pub server_version: String,
    /// Its instructions for models.
    pub instructions: Option<String>,
}

/// One call of one tool.
#[derive(Clone)]
pub struct CallRequest {
    /// The key of the call while it waits for the user.
    pub key: String,
    /// The server's name for the tool.
    pub tool: String,
    /// The arguments.
    pub arguments: Map<String, Value>,
    /// Cancels the call, also while it waits for the user.
    pub cancel: CancellationToken,
    /// Called with the progress of the call. It must be fast: meanwhile nothing is read from the server.
    pub progress: Option<Arc<dyn Fn(Progress) + Send + Sync>>,
    /// The output schema of the tool.
    pub output_schema: Option<Value>,
    /// The most bytes of the answer.
    pub max_output_bytes: usize,
    /// The proof of an approval that the tool asked for, as a signed statement.
    pub approval: Option<String>,
}

impl fmt::Debug for CallRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallRequest")
            .field("key", &self.key)
            .field("tool", &self.tool)
            .finish_non_exhaustive()
    }
}

/// The progress of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// The amount done.
    pub done: f64,
    /// The total amount, if the server knows it.
    pub total: Option<f64>,
    /// The server's description of the progress.
    pub message: Option<String>,
}

/// The outcome of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum CallOutcome {
    /// The tool answered.
    Answered(ToolAnswer),
    /// The server requests input from the user. The call waits under its key.
    NeedsInput(Elicitation),
}

/// A tool's answer.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolAnswer {
    /// Whether the tool reports an error (`isError`).
    pub is_error: bool,
    /// The structured content if there is some, else the text if there is a single text block, else the
    /// content blocks.
    pub value: Value,
}

/// An elicitation: a server's request for input from the user.
#[derive(Debug, Clone, PartialEq)]
pub enum Elicitation {
    /// Fields to fill in.
    Form {
        /// The server's message.
        message: String,
        /// The JSON Schema of the fields.
        schema: Value,
    },
    /// A URL to open, which begins with `https://` or `http://`.
    Url {
        /// The server's message.
        message: String,
        /// The URL. It has not been opened.
        url: String,
    },
}

/// The user's reply to an elicitation.
#[derive(Debug, Clone, PartialEq)]
pub enum ElicitationReply {
    /// The user submitted the fields. Empty for a URL.
    Accept(Map<String, Value>),
    /// The user declined.
    Decline,
    /// The user dismissed the request without a decision.
    Cancel,
}

/// A call that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CallError {
    /// The category of the error.
    pub category: ErrorCategory,
    /// The effect of the call. `None` only if the request certainly never reached the server, or the
    /// server refused it before the tool ran.
    pub effect: Effect,
    /// A message for the operator. It may contain text of the server.
    pub message: String,
    /// Whether the message contains no text of the server, so that a model may read it.
    pub is_own: bool,
    /// Whether the server answered with this error, and so reported how the call ended.
    pub is_reported: bool,
}

impl CallError {
    /// An error whose message may contain text of the server: of its protocol, its transport or its
    /// standard error.
    pub(crate) fn new(category: ErrorCategory, effect: Effect, message: impl Into<String>) -> Self {
        Self {
            category,
            effect,
            message: message.into(),
            is_own: false,
            is_reported: false,
        }
    }

    /// An error whose message contains no text of the server.
    pub(crate) fn own(category: ErrorCategory, effect: Effect, message: impl Into<String>) -> Self {
        Self {
            is_own: true,
            ..Self::new(category, effect, message)
        }
    }
}

/// A server that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ServerError {
    /// The category of the error. `Authentication` means that the user has to log in.
    pub category: ErrorCategory,
    /// A message for the operator. It may contain text of the server.
    pub message: String,
}

impl ServerError {
    pub(crate) fn new(category: ErrorCategory, message: impl Into<String>) -> Self {
        Self {
            category,
            message: message.into(),
        }
    }

    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self::new(ErrorCategory::Unavailable, message)
    }
}

impl From<ServerError> for CallError {
    /// A call without a server has no effect.
    fn from(error: ServerError) -> Self {
        Self::new(error.category, Effect::None, error.message)
    }
}

/// The state of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// It was not used yet, or it was closed.
    Idle,
    /// It is being started.
    Starting,
    /// It is running.
    Ready {
        /// When it was connected.
        since: Instant,
    },
    /// It could not be started, or it ended unexpectedly.
    Failing {
        /// The last error.
        error: ServerError,
        /// The number of failures in a row.
        attempts: u32,
        /// The earliest time of the next attempt.
        next_try: Instant,
    },
}
