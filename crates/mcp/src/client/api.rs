//! What a user of a server sees: requests, answers, errors and limits, in words of this crate only.

use std::fmt;
use std::path::Path;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use windlass_spec::{Effect, ErrorCategory};

/// A future behind a pointer, so that traits with futures can be objects.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What gives the values of environment variables.
pub type Lookup = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Which of the two protocols a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Era {
    /// 2025-11-25 and before: a handshake, then one connection that both sides use.
    Legacy,
    /// 2026-07-28: every request stands for itself.
    Modern,
}

/// A word that names no era.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no era of the protocol: it is `legacy` or `modern`")]
pub struct UnknownEra(pub String);

impl Era {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }

    pub(crate) fn other(self) -> Self {
        match self {
            Self::Legacy => Self::Modern,
            Self::Modern => Self::Legacy,
        }
    }
}

impl fmt::Display for Era {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Era {
    type Err = UnknownEra;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        match word {
            "legacy" => Ok(Self::Legacy),
            "modern" => Ok(Self::Modern),
            other => Err(UnknownEra(other.to_owned())),
        }
    }
}

/// A value nobody may see: it shows itself as `***`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a value.
    #[must_use]
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value, for the one place that sends it.
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

/// Gives the bearer tokens for a server at an address.
pub trait Authorizer: Send + Sync {
    /// The token to send. Without a refusal, the one that is at hand, if any: `None` means to try
    /// without. After one, a token that answers it.
    ///
    /// # Errors
    /// In words for the operator: there is none and none can be got without a person.
    fn token<'a>(
        &'a self,
        refusal: Option<Refusal<'a>>,
    ) -> BoxFuture<'a, Result<Option<Secret>, String>>;
}

/// What a server said when it refused a request.
#[derive(Debug, Clone, Copy)]
pub struct Refusal<'a> {
    /// Its `WWW-Authenticate`.
    pub challenge: &'a str,
    /// The token that it was sent, if any. Others may have been refused too and have got a new one.
    pub token: Option<&'a Secret>,
}

/// Answers a server that asks for a model.
pub trait Sampler: Send + Sync {
    /// The model's answer.
    ///
    /// # Errors
    /// In words for the server.
    fn sample(&self, request: SampleRequest) -> BoxFuture<'_, Result<SampleAnswer, String>>;
}

/// What a server asks a model.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleRequest {
    /// The conversation.
    pub messages: Vec<SampleMessage>,
    /// What the model is told before it.
    pub system_prompt: Option<String>,
    /// How long the answer may be.
    pub max_tokens: u32,
}

/// A message of such a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleMessage {
    /// Whether the model said it, not the user.
    pub is_from_model: bool,
    /// What was said.
    pub text: String,
}

/// What the model answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleAnswer {
    /// The model's name.
    pub model: String,
    /// What it says.
    pub text: String,
}

/// How much is taken from a server, and how long it is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The bytes of one message.
    pub message_bytes: usize,
    /// The lines in a row on a program's standard output that are no messages.
    pub noise_lines: usize,
    /// The tools of a server.
    pub tools: usize,
    /// The bytes of all of their definitions.
    pub list_bytes: usize,
    /// How many things a call may ask.
    pub rounds: usize,
    /// The characters of a text that a server sends for a person (progress, questions, errors).
    pub text_characters: usize,
    /// What lies between two tellings of progress, at least.
    pub progress_interval: Duration,
    /// What lies between two tellings that the list of tools changed, at least.
    pub change_interval: Duration,
    /// How long a list of tools is taken to hold, at least, whatever the server says.
    pub shortest_ttl: Duration,
    /// How long is waited after the first failure to start.
    pub first_backoff: Duration,
    /// How long is waited after many.
    pub longest_backoff: Duration,
    /// A connection that held this long was a good one.
    pub stable_after: Duration,
    /// How long a program may take to end once its standard input is closed.
    pub close_grace: Duration,
    /// How long it may take once it was asked to end.
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

/// What a server is used with besides its settings.
#[derive(Clone)]
pub struct ServerOptions {
    /// What it spoke the last time, if that is remembered.
    pub era: Option<Era>,
    /// The values of the variables its settings name.
    pub lookup: Lookup,
    /// What answers it when it asks for a model. Only asked if the settings allow it too.
    pub sampler: Option<Arc<dyn Sampler>>,
    /// What gives the tokens for it.
    pub authorizer: Option<Arc<dyn Authorizer>>,
    /// How much is taken from it.
    pub limits: Limits,
    /// Asked before every start; says why it is not started.
    pub before_start: Option<BeforeStart>,
}

/// Asked before a server is started, with the file that is if it is a program: why it is not to be.
pub type BeforeStart = Arc<dyn Fn(Option<&Path>) -> Result<(), String> + Send + Sync>;

impl Default for ServerOptions {
    /// The variables of this process, and nothing else.
    fn default() -> Self {
        Self {
            era: None,
            lookup: Arc::new(|name| std::env::var(name).ok()),
            sampler: None,
            authorizer: None,
            limits: Limits::default(),
            before_start: None,
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

/// What a server says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Greeting {
    /// Which protocol it speaks.
    pub era: Era,
    /// The version of it.
    pub protocol_version: String,
    /// Its own name for itself.
    pub server_name: String,
    /// Its version.
    pub server_version: String,
    /// What it would like a model to know.
    pub instructions: Option<String>,
}

/// One call of one tool.
#[derive(Clone)]
pub struct CallRequest {
    /// What the call is known by while it waits for a person.
    pub key: String,
    /// The server's own name for the tool.
    pub tool: String,
    /// What it is called with.
    pub arguments: Map<String, Value>,
    /// Stops the call, also while it waits for a person.
    pub cancel: CancellationToken,
    /// Hears how far the call is. It must be quick: nothing else is read from the server meanwhile.
    pub progress: Option<Arc<dyn Fn(Progress) + Send + Sync>>,
    /// What the tool promised its answer to look like.
    pub output_schema: Option<Value>,
    /// How large the answer may be.
    pub max_output_bytes: usize,
}

impl fmt::Debug for CallRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallRequest")
            .field("key", &self.key)
            .field("tool", &self.tool)
            .finish_non_exhaustive()
    }
}

/// How far a call is.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// What is done.
    pub done: f64,
    /// What there is to do, if the server knows.
    pub total: Option<f64>,
    /// What it says about it.
    pub message: Option<String>,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Came {
    /// The tool's answer.
    Answered(Answered),
    /// A question to a person. The call waits under its key.
    Asks(Elicitation),
}

/// A tool's answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered {
    /// Whether the tool says that it failed.
    pub is_error: bool,
    /// The structured content if there is some, else the text if there is one text, else the blocks.
    pub value: Value,
}

/// A question of a server to a person.
#[derive(Debug, Clone, PartialEq)]
pub enum Elicitation {
    /// Fields to fill in.
    Form {
        /// What the server says.
        message: String,
        /// The JSON Schema of the fields.
        schema: Value,
    },
    /// An address to visit, which begins with `https://` or `http://`.
    Url {
        /// What the server says.
        message: String,
        /// The address. Nothing has opened it.
        url: String,
    },
}

/// What the person says.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// The fields; empty for an address that was visited.
    Accept(Map<String, Value>),
    /// No.
    Decline,
    /// Neither yes nor no.
    Cancel,
}

/// A call that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CallError {
    /// Why.
    pub category: ErrorCategory,
    /// What it did nevertheless. `None` only if the request surely never reached the server, or the
    /// server refused it before it began.
    pub effect: Effect,
    /// In words for the operator. May hold words of the server.
    pub message: String,
    /// Whether the message is surely all ours, so that a model may read it too.
    pub is_own: bool,
}

impl CallError {
    /// An error that may be told in words of the server: of its protocol, its transport or its standard
    /// error.
    pub(crate) fn new(category: ErrorCategory, effect: Effect, message: impl Into<String>) -> Self {
        Self {
            category,
            effect,
            message: message.into(),
            is_own: false,
        }
    }

    /// An error in words of this crate alone.
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
    /// Why. `Authentication` means that a person has to log in.
    pub category: ErrorCategory,
    /// In words for the operator. May hold words of the server.
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
    /// A call that found no server did nothing.
    fn from(error: ServerError) -> Self {
        Self::new(error.category, Effect::None, error.message)
    }
}

/// How a server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// Nobody has used it yet, or it was closed.
    Idle,
    /// It is being started.
    Starting,
    /// It is there.
    Ready {
        /// Since when.
        since: Instant,
    },
    /// It could not be started, or ended by itself.
    Failing {
        /// Why.
        error: ServerError,
        /// How often in a row.
        attempts: u32,
        /// When it is tried again, if somebody uses it then.
        next_try: Instant,
    },
}
