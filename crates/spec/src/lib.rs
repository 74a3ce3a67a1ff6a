//! Agents, tool specifications and type signatures: typed, validated, serialisable.
//!
//! [`read`] turns declared text into an [`AgentFile`]; [`write`](write()) turns it back into
//! text. Every type here has only valid values. No IO, no clock, no async.

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

mod access;
mod agent;
pub mod envelope;
mod failure;
mod json_size;
mod model;
mod models;
mod money;
mod names;
mod nearest;
pub mod number;
pub mod plan;
mod read;
mod records;
pub mod registry;
pub mod reserved;
mod risk;
pub mod server;
mod signature;
pub mod text;
mod time;
mod tool;
mod words;
mod write;

pub use access::{IsolationLevel, ProgramAccess};
pub use agent::{Agent, AgentError, AgentFile, FlowStep};
pub use envelope::{
    Action, Answer, Deprecation, DeprecationCode, EnvelopeError, Normalised, SecurityLevel,
    StreamFrame, ToolResponse, ToolStatus, normalise, normalise_for,
};
pub use failure::{Effect, ErrorCategory, Failure};
pub use json_size::JsonSize;
pub use model::{Model, Provider};
pub use models::model_schemas;
pub use money::{ModelPrice, Money, NotMoney, TokenCounts, TokenPrices};
pub use names::{AgentName, NonEmptyText, TextError, ToolName};
pub use nearest::{nearest, nearest_all};
pub use read::{Reading, read};
pub use records::{
    AgentReply, AgentResponse, CallChange, CallChangeError, CallId, CallRecord, CallState,
    Confidence, Conversation, DEFAULT_DOMAIN, DataVersion, ExecutionStatus, GapMoment, IdError,
    Message, MessageCall, MessageRole, MissingCapability, NearestTool, NotAConfidence, OutputError,
    RawUserIntent, ReasoningStep, RunId, STRATEGY_VERSION, StepAction, StepCall, StepError,
    StrategyError, StrategyId, StrategyLine, StrategyLineError, StrategyLines, StrategySection,
    StrategyWarning, TaskError, TaskInput, TaskLineError, TaskLineProblem, TaskLines, TaskOutput,
    ToolCall, ToolCallRecord, ToolCallStatus, ToolCallingStrategy, ToolCounters,
    ToolExecutionResult, ToolGapReport, ToolInvocation, Turn, UnknownTool, UserIntent,
    UserIntentError, read_strategies, read_tasks, record_schemas, tools_used,
};
pub use risk::RiskLevel;
pub use signature::{
    Field, Inexpressible, MAX_DEPTH, Misfit, Mismatch, NoSignature, Presence, Signature,
    SignatureError, Type, accepts_parameters, parameters_from_schema,
};
pub use time::{NotATime, Timestamp};
pub use tool::{
    AttributeError, DescriptionLength, EnvelopeUse, TimeoutOutOfRange, TimeoutSeconds,
    ToolAttributes, ToolSpecification,
};
pub use words::UnknownWord;
pub use write::{WriteError, write, write_agent, write_tool};
