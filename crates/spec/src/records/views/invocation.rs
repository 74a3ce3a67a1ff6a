//! An invocation as part of an [`AgentReply`](crate::AgentReply): the tool, the arguments, and
//! either a result (`Right`) or the message for models (`Left`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{EndedCall, model_message};
use crate::names::ToolName;
use crate::records::call::CallRecord;
use crate::records::schema;

/// One invocation of a tool in a reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "Raw", into = "Raw")]
pub struct ToolInvocation {
    /// The tool that was invoked.
    pub tool_name: ToolName,
    /// The arguments of the invocation.
    pub arguments: Map<String, Value>,
    /// Its result or its error message.
    pub result: Result<Value, String>,
}

impl ToolInvocation {
    /// The view of a call; `None` if it was never permitted or has not ended.
    #[must_use]
    pub fn of(call: &CallRecord) -> Option<Self> {
        let ended = EndedCall::of(call)?;
        Some(Self {
            tool_name: ended.record.tool_name().clone(),
            arguments: ended.record.arguments().clone(),
            result: ended.outcome.cloned().map_err(model_message),
        })
    }
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Raw {
    /// The tool that was invoked.
    #[serde(rename = "invocationToolName")]
    #[schemars(with = "schema::Name")]
    tool_name: ToolName,
    /// The arguments of the invocation.
    #[serde(rename = "invocationArgs")]
    arguments: Map<String, Value>,
    /// Its result under `Right`, or its error message under `Left`.
    #[serde(rename = "invocationResult")]
    result: Either,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
enum Either {
    Left(String),
    Right(Value),
}

impl From<ToolInvocation> for Raw {
    fn from(invocation: ToolInvocation) -> Self {
        Self {
            tool_name: invocation.tool_name,
            arguments: invocation.arguments,
            result: match invocation.result {
                Ok(result) => Either::Right(result),
                Err(message) => Either::Left(message),
            },
        }
    }
}

impl From<Raw> for ToolInvocation {
    fn from(raw: Raw) -> Self {
        Self {
            tool_name: raw.tool_name,
            arguments: raw.arguments,
            result: match raw.result {
                Either::Right(result) => Ok(result),
                Either::Left(message) => Err(message),
            },
        }
    }
}
