//! The JSON form of a step, before validation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{StepAction, StepContent, StepError, check_turns};
use crate::names::{NonEmptyText, ToolName};
use crate::records::id::{CallId, Turn};
use crate::records::state::CallState;
use crate::records::{schema, units};

#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(transform = schema::reasoning_step)]
pub(super) struct ReasoningStep {
    /// The number of the turn; the first is 1.
    #[schemars(range(min = 1))]
    iteration: i64,
    /// The agent's thought.
    #[schemars(with = "schema::Text")]
    thought: String,
    /// Its action.
    action: StepAction,
    /// The first tool it called.
    #[serde(default)]
    #[schemars(with = "Option<schema::Name>")]
    tool_name: Option<ToolName>,
    /// The arguments of the first call.
    #[serde(default)]
    tool_args: Option<Map<String, Value>>,
    /// Its observation, or its answer.
    #[serde(default)]
    observation: Option<String>,
    /// All calls of the turn, including those that were never permitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    calls: Option<Vec<super::StepCall>>,
    /// When the turn started, in seconds since 1970.
    timestamp: f64,
    /// The duration in milliseconds.
    #[schemars(with = "schema::ZeroOrMore")]
    duration_ms: f64,
}

#[derive(Serialize, Deserialize, JsonSchema)]
pub(super) struct StepCall {
    /// The id of the call, from its position: run:turn:call.
    call_id: CallId,
    /// The requested tool.
    #[schemars(with = "schema::Name")]
    tool_name: ToolName,
    /// The arguments of the call.
    tool_args: Map<String, Value>,
    /// The state of the call at the end of the turn.
    state: CallState,
    /// Whether it got a permit.
    permitted: bool,
    /// The model's observation of it.
    #[serde(default)]
    observation: Option<String>,
}

impl From<super::ReasoningStep> for ReasoningStep {
    fn from(step: super::ReasoningStep) -> Self {
        let action = step.action();
        let (tool_name, tool_args, observation, calls) = match step.content {
            StepContent::CallTool {
                tool_name,
                tool_args,
                observation,
                calls,
            } => (Some(tool_name), Some(tool_args), observation, calls),
            StepContent::Finish { answer } => (None, None, Some(answer.into()), Vec::new()),
        };
        Self {
            iteration: i64::from(step.iteration.number()),
            thought: step.thought.into(),
            action,
            tool_name,
            tool_args,
            observation,
            calls: (!calls.is_empty()).then_some(calls),
            timestamp: step.timestamp.as_unix_seconds(),
            duration_ms: units::to_milliseconds(step.duration),
        }
    }
}

impl TryFrom<ReasoningStep> for super::ReasoningStep {
    type Error = String;

    fn try_from(raw: ReasoningStep) -> Result<Self, String> {
        let iteration = u32::try_from(raw.iteration)
            .ok()
            .and_then(|number| Turn::try_from(number).ok())
            .ok_or_else(|| format!("iteration must be 1 or more, not {}", raw.iteration))?;
        let calls = raw.calls.unwrap_or_default();
        let content = match (raw.action, raw.tool_name, raw.tool_args) {
            (StepAction::CallTool, Some(tool_name), Some(tool_args)) => {
                if let Some(first) = calls.first()
                    && (first.tool_name != tool_name || first.tool_args != tool_args)
                {
                    return Err(StepError::NotTheFirstCall.to_string());
                }
                check_turns(iteration, &calls).map_err(|error| error.to_string())?;
                StepContent::CallTool {
                    tool_name,
                    tool_args,
                    observation: raw.observation,
                    calls,
                }
            }
            (StepAction::CallTool, None, _) => {
                return Err("a call_tool step must have a tool_name".to_owned());
            }
            (StepAction::CallTool, _, None) => {
                return Err("a call_tool step must have tool_args".to_owned());
            }
            (StepAction::Finish, None, None) if calls.is_empty() => {
                let answer = NonEmptyText::new(raw.observation.unwrap_or_default());
                StepContent::Finish {
                    answer: answer.map_err(
                        |_| "a finish step must have the final answer as its observation",
                    )?,
                }
            }
            (StepAction::Finish, ..) => return Err("a finish step must not call a tool".to_owned()),
        };
        Ok(Self {
            iteration,
            thought: NonEmptyText::new(raw.thought).map_err(|_| "thought: it is empty")?,
            content,
            timestamp: units::from_unix_seconds(raw.timestamp)
                .map_err(|error| format!("timestamp: {error}"))?,
            duration: units::from_milliseconds(raw.duration_ms)
                .map_err(|error| format!("duration_ms: {error}"))?,
        })
    }
}

impl From<super::StepCall> for StepCall {
    fn from(call: super::StepCall) -> Self {
        Self {
            call_id: call.call_id,
            tool_name: call.tool_name,
            tool_args: call.tool_args,
            state: call.state,
            permitted: call.permitted,
            observation: call.observation,
        }
    }
}

impl TryFrom<StepCall> for super::StepCall {
    type Error = String;

    fn try_from(raw: StepCall) -> Result<Self, String> {
        let possible = match raw.state {
            CallState::Pending => !raw.permitted,
            CallState::Error | CallState::Cancelled => true,
            CallState::Running | CallState::Success | CallState::Timeout | CallState::Unknown => {
                raw.permitted
            }
        };
        if !possible {
            let with = if raw.permitted { "with" } else { "without" };
            return Err(format!("a call cannot be {} {with} a permit", raw.state));
        }
        Ok(Self {
            call_id: raw.call_id,
            tool_name: raw.tool_name,
            tool_args: raw.tool_args,
            state: raw.state,
            permitted: raw.permitted,
            observation: raw.observation,
        })
    }
}
