//! One turn as a person or a learner reads it: what the agent thought, what it did, what it saw.
//! Unlike the views of a call, a step also tells of calls that were never permitted.

mod raw;

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::call::CallRecord;
use super::id::{CallId, Turn};
use super::state::CallState;
use super::views::{result_text, told_to_model};
use super::words::words;
use crate::names::{NonEmptyText, ToolName};
use crate::time::Timestamp;

words! {
    /// What an agent decided to do in a turn.
    StepAction {
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
    deed: Deed,
    timestamp: Timestamp,
    duration: Duration,
}

/// An action with what belongs to it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Deed {
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

/// One call of a turn, also one that was never permitted.
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

/// Why the parts of a step do not make one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StepError {
    /// A turn that calls tools has a call.
    #[error("a call_tool step has at least one call")]
    NoCalls,
    /// A call stands in the step of another turn.
    #[error("call {call} does not belong to iteration {iteration}")]
    WrongTurn {
        /// The call.
        call: CallId,
        /// The step it stands in.
        iteration: Turn,
    },
    /// The step names another first call than it lists.
    #[error("tool_name and tool_args are those of the first of `calls`")]
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
            deed: Deed::CallTool {
                tool_name: first.tool_name.clone(),
                tool_args: first.tool_args.clone(),
                observation: observed(&calls),
                calls,
            },
            timestamp,
            duration,
        })
    }

    /// The turn that gave the answer.
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
            deed: Deed::Finish { answer },
            timestamp,
            duration,
        }
    }

    /// Which turn.
    #[must_use]
    pub fn iteration(&self) -> Turn {
        self.iteration
    }

    /// What the agent thought.
    #[must_use]
    pub fn thought(&self) -> &str {
        self.thought.as_str()
    }

    /// What it decided to do.
    #[must_use]
    pub fn action(&self) -> StepAction {
        match self.deed {
            Deed::CallTool { .. } => StepAction::CallTool,
            Deed::Finish { .. } => StepAction::Finish,
        }
    }

    /// The first tool it called.
    #[must_use]
    pub fn tool_name(&self) -> Option<&ToolName> {
        match &self.deed {
            Deed::CallTool { tool_name, .. } => Some(tool_name),
            Deed::Finish { .. } => None,
        }
    }

    /// What it called the first tool with.
    #[must_use]
    pub fn tool_args(&self) -> Option<&Map<String, Value>> {
        match &self.deed {
            Deed::CallTool { tool_args, .. } => Some(tool_args),
            Deed::Finish { .. } => None,
        }
    }

    /// What it saw, or its answer.
    #[must_use]
    pub fn observation(&self) -> Option<&str> {
        match &self.deed {
            Deed::CallTool { observation, .. } => observation.as_deref(),
            Deed::Finish { answer } => Some(answer.as_str()),
        }
    }

    /// All calls of the turn; none if whoever wrote the step did not list them.
    #[must_use]
    pub fn calls(&self) -> &[StepCall] {
        match &self.deed {
            Deed::CallTool { calls, .. } => calls,
            Deed::Finish { .. } => &[],
        }
    }

    /// When the turn began.
    #[must_use]
    pub fn timestamp(&self) -> Timestamp {
        self.timestamp
    }

    /// How long it took.
    #[must_use]
    pub fn duration(&self) -> Duration {
        self.duration
    }
}

impl StepCall {
    /// Which call.
    #[must_use]
    pub fn call_id(&self) -> &CallId {
        &self.call_id
    }

    /// The tool that was asked for.
    #[must_use]
    pub fn tool_name(&self) -> &ToolName {
        &self.tool_name
    }

    /// What it was asked with.
    #[must_use]
    pub fn tool_args(&self) -> &Map<String, Value> {
        &self.tool_args
    }

    /// Where the call stood when the turn ended.
    #[must_use]
    pub fn state(&self) -> CallState {
        self.state
    }

    /// Whether it got a permit.
    #[must_use]
    pub fn was_permitted(&self) -> bool {
        self.permitted
    }

    /// What the model saw of it.
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
                Err(failure) => told_to_model(failure),
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

/// What the model saw of a turn's calls: of one call its observation alone, of several one
/// paragraph each, with the tool's name.
fn observed(calls: &[StepCall]) -> Option<String> {
    if let [only] = calls {
        return only.observation.clone();
    }
    let told: Vec<_> = calls
        .iter()
        .filter_map(|call| Some(format!("{}: {}", call.tool_name, call.observation()?)))
        .collect();
    (!told.is_empty()).then(|| told.join("\n"))
}
