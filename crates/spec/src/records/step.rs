//! One turn for readers and for learning: the agent's thought, action and observation. Unlike the views
//! of a call, a step includes calls that were never permitted.

mod raw;

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::call::CallRecord;
use super::id::{CallId, Turn};
use super::state::CallState;
use super::views::{model_message, result_text};
use crate::names::{NonEmptyText, ToolName};
use crate::time::Timestamp;
use crate::words::words;

words! {
    /// The action of an agent in a turn.
    StepAction, "action" {
        /// Use one tool or more.
        CallTool = "call_tool",
        /// Give the final answer.
        Finish = "finish",
    }
}

/// One turn: thought, action, observation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "raw::ReasoningStep", into = "raw::ReasoningStep")]
pub struct ReasoningStep {
    iteration: Turn,
    thought: NonEmptyText,
    content: StepContent,
    timestamp: Timestamp,
    duration: Duration,
}

/// An action with its data.
#[derive(Debug, Clone, PartialEq, Eq)]
enum StepContent {
    CallTool {
        tool_name: ToolName,
        tool_args: Map<String, Value>,
        observation: Option<String>,
        calls: Vec<StepCall>,
    },
    Finish {
        answer: NonEmptyText,
    },
}

/// One call of a turn, including one that was never permitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "raw::StepCall", into = "raw::StepCall")]
#[schemars(inline)]
pub struct StepCall {
    call_id: CallId,
    tool_name: ToolName,
    tool_args: Map<String, Value>,
    state: CallState,
    permitted: bool,
    observation: Option<String>,
}

/// Why the parts of a step are not valid together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StepError {
    /// A turn that calls tools has no call.
    #[error("a call_tool step must have at least one call")]
    NoCalls,
    /// A call is in the step of another turn.
    #[error("call {call} does not belong to iteration {iteration}")]
    WrongTurn {
        /// The call.
        call: CallId,
        /// The iteration of the step.
        iteration: Turn,
    },
    /// The named tool is not that of the first listed call.
    #[error("tool_name and tool_args must be those of the first entry of `calls`")]
    NotTheFirstCall,
}

impl ReasoningStep {
    /// A turn that called tools. `calls` are all calls of the turn, in order.
    ///
    /// # Errors
    /// If there is no call, or one of another turn.
    pub fn call_tool<'a>(
        iteration: Turn,
        thought: NonEmptyText,
        calls: impl IntoIterator<Item = &'a CallRecord>,
        timestamp: Timestamp,
        duration: Duration,
    ) -> Result<Self, StepError> {
        let calls: Vec<StepCall> = calls.into_iter().map(StepCall::from).collect();
        let first = calls.first().ok_or(StepError::NoCalls)?;
        check_turns(iteration, &calls)?;
        Ok(Self {
            iteration,
            thought,
            content: StepContent::CallTool {
                tool_name: first.tool_name.clone(),
                tool_args: first.tool_args.clone(),
                observation: joined_observations(&calls),
                calls,
            },
            timestamp,
            duration,
        })
    }

    /// The turn with the answer.
    #[must_use]
    pub fn finish(
        iteration: Turn,
        thought: NonEmptyText,
        answer: NonEmptyText,
        timestamp: Timestamp,
        duration: Duration,
    ) -> Self {
        Self {
            iteration,
            thought,
            content: StepContent::Finish { answer },
            timestamp,
            duration,
        }
    }

    /// The number of the turn.
    #[must_use]
    pub fn iteration(&self) -> Turn {
        self.iteration
    }

    /// The agent's thought.
    #[must_use]
    pub fn thought(&self) -> &str {
        self.thought.as_str()
    }

    /// Its action.
    #[must_use]
    pub fn action(&self) -> StepAction {
        match self.content {
            StepContent::CallTool { .. } => StepAction::CallTool,
            StepContent::Finish { .. } => StepAction::Finish,
        }
    }

    /// The first tool it called.
    #[must_use]
    pub fn tool_name(&self) -> Option<&ToolName> {
        match &self.content {
            StepContent::CallTool { tool_name, .. } => Some(tool_name),
            StepContent::Finish { .. } => None,
        }
    }

    /// The arguments of the first call.
    #[must_use]
    pub fn tool_args(&self) -> Option<&Map<String, Value>> {
        match &self.content {
            StepContent::CallTool { tool_args, .. } => Some(tool_args),
            StepContent::Finish { .. } => None,
        }
    }

    /// Its observation, or its answer.
    #[must_use]
    pub fn observation(&self) -> Option<&str> {
        match &self.content {
            StepContent::CallTool { observation, .. } => observation.as_deref(),
            StepContent::Finish { answer } => Some(answer.as_str()),
        }
    }

    /// All calls of the turn; empty if the step was written without them.
    #[must_use]
    pub fn calls(&self) -> &[StepCall] {
        match &self.content {
            StepContent::CallTool { calls, .. } => calls,
            StepContent::Finish { .. } => &[],
        }
    }

    /// When the turn started.
    #[must_use]
    pub fn timestamp(&self) -> Timestamp {
        self.timestamp
    }

    /// The duration of the turn.
    #[must_use]
    pub fn duration(&self) -> Duration {
        self.duration
    }
}

impl StepCall {
    /// The id of the call.
    #[must_use]
    pub fn call_id(&self) -> &CallId {
        &self.call_id
    }

    /// The requested tool.
    #[must_use]
    pub fn tool_name(&self) -> &ToolName {
        &self.tool_name
    }

    /// The arguments of the call.
    #[must_use]
    pub fn tool_args(&self) -> &Map<String, Value> {
        &self.tool_args
    }

    /// The state of the call at the end of the turn.
    #[must_use]
    pub fn state(&self) -> CallState {
        self.state
    }

    /// Whether it got a permit.
    #[must_use]
    pub fn was_permitted(&self) -> bool {
        self.permitted
    }

    /// The model's observation of it.
    #[must_use]
    pub fn observation(&self) -> Option<&str> {
        self.observation.as_deref()
    }
}

impl From<&CallRecord> for StepCall {
    fn from(call: &CallRecord) -> Self {
        Self {
            call_id: call.id().clone(),
            tool_name: call.tool_name().clone(),
            tool_args: call.arguments().clone(),
            state: call.state(),
            permitted: call.was_permitted(),
            observation: call.outcome().map(|outcome| match outcome {
                Ok(result) => result_text(result),
                Err(failure) => model_message(failure),
            }),
        }
    }
}

fn check_turns(iteration: Turn, calls: &[StepCall]) -> Result<(), StepError> {
    match calls.iter().find(|call| call.call_id.turn != iteration) {
        None => Ok(()),
        Some(stray) => Err(StepError::WrongTurn {
            call: stray.call_id.clone(),
            iteration,
        }),
    }
}

/// The model's observation of a turn's calls: for one call its observation alone, for several one line
/// each, with the tool's name.
fn joined_observations(calls: &[StepCall]) -> Option<String> {
    if let [only] = calls {
        return only.observation.clone();
    }
    let observations: Vec<_> = calls
        .iter()
        .filter_map(|call| Some(format!("{}: {}", call.tool_name, call.observation()?)))
        .collect();
    (!observations.is_empty()).then(|| observations.join("\n"))
}
