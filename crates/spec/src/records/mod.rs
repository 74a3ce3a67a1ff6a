//! Records: the record of a call and its views, and tasks, answers and conversations. Only validated
//! data is here; other crates create, store and send it, and supply the times and ids.

mod call;
mod confidence;
mod conversation;
mod counters;
mod gap;
mod id;
mod intent;
mod output;
mod response;
pub(crate) mod schema;
mod state;
mod step;
mod strategy;
mod task;
mod units;
mod views;

#[cfg(test)]
pub(crate) mod tests;

pub use call::{CallChange, CallChangeError, CallRecord};
pub use confidence::{Confidence, NotAConfidence};
pub use conversation::{Conversation, Message, MessageCall, MessageRole};
pub use counters::ToolCounters;
pub use gap::{GapMoment, MissingCapability, NearestTool, ToolGapReport};
pub use id::{CallId, IdError, RunId, Turn};
pub use intent::{RawUserIntent, UserIntent, UserIntentError};
pub use output::{OutputError, TaskOutput};
pub use response::{AgentReply, AgentResponse};
pub use schema::record_schemas;
pub use state::CallState;
pub use step::{ReasoningStep, StepAction, StepCall, StepError};
pub use strategy::{
    DataVersion, STRATEGY_VERSION, StrategyError, StrategyId, StrategyLine, StrategyLineError,
    StrategyLines, StrategySection, StrategyWarning, ToolCallingStrategy, read_strategies,
};
pub use task::{
    DEFAULT_DOMAIN, TaskError, TaskInput, TaskLineError, TaskLineProblem, TaskLines, UnknownTool,
    read_tasks,
};
pub use views::{
    ExecutionStatus, ToolCall, ToolCallRecord, ToolCallStatus, ToolExecutionResult, ToolInvocation,
    tools_used,
};
