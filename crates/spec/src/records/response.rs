//! The final answer of a run, in two forms: [`AgentResponse`], which is what programs are given, and
//! [`AgentReply`], a view of it for those who know answers as content with invocations.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::call::CallRecord;
use super::confidence::Confidence;
use super::schema;
use super::views::{ToolCallRecord, ToolInvocation};
use crate::names::NonEmptyText;

/// The final answer of a run: what, why, by which calls, and how sure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentResponse {
    /// The final answer.
    #[schemars(with = "schema::Text")]
    pub answer: NonEmptyText,
    /// How it was found, and why with these tools.
    #[schemars(with = "schema::Text")]
    pub reasoning: NonEmptyText,
    /// Every call that was made, in order; none for a task that needed none.
    #[serde(default)]
    pub tool_calls: Vec<ToolCallRecord>,
    /// How sure the agent is.
    pub confidence: Confidence,
}

impl AgentResponse {
    /// The answer of a run with these calls. Calls that were never permitted are left out.
    #[must_use]
    pub fn new<'a>(
        answer: NonEmptyText,
        reasoning: NonEmptyText,
        calls: impl IntoIterator<Item = &'a CallRecord>,
        confidence: Confidence,
    ) -> Self {
        Self {
            answer,
            reasoning,
            tool_calls: calls.into_iter().filter_map(ToolCallRecord::of).collect(),
            confidence,
        }
    }
}

/// An answer as content with the invocations that led to it. The content is empty only if an
/// invocation failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "RawReply", into = "RawReply")]
pub struct AgentReply {
    content: String,
    tools_used: Vec<ToolInvocation>,
}

impl AgentReply {
    /// The view of a response. The calls are given again because a response does not hold why a
    /// call failed; those that were never permitted are left out.
    #[must_use]
    pub fn of<'a>(
        response: &AgentResponse,
        calls: impl IntoIterator<Item = &'a CallRecord>,
    ) -> Self {
        Self {
            content: response.answer.as_str().to_owned(),
            tools_used: calls.into_iter().filter_map(ToolInvocation::of).collect(),
        }
    }

    /// The text of the answer.
    #[must_use]
    pub fn content(&self) -> &str {
        &self.content
    }

    /// The invocations that led to it, in order.
    #[must_use]
    pub fn tools_used(&self) -> &[ToolInvocation] {
        &self.tools_used
    }
}

/// The JSON form of a reply, before it is checked.
#[derive(Serialize, Deserialize, JsonSchema)]
struct RawReply {
    /// The text of the answer.
    #[serde(rename = "responseContent")]
    content: String,
    /// The invocations that led to it, in order.
    #[serde(rename = "responseToolsUsed", default)]
    tools_used: Vec<ToolInvocation>,
}

impl From<AgentReply> for RawReply {
    fn from(reply: AgentReply) -> Self {
        Self {
            content: reply.content,
            tools_used: reply.tools_used,
        }
    }
}

impl TryFrom<RawReply> for AgentReply {
    type Error = &'static str;

    fn try_from(raw: RawReply) -> Result<Self, &'static str> {
        let failed = raw.tools_used.iter().any(|tool| tool.result.is_err());
        if raw.content.trim().is_empty() && !failed {
            return Err("responseContent is empty only if an invocation failed");
        }
        Ok(Self {
            content: raw.content,
            tools_used: raw.tools_used,
        })
    }
}
