//! The final answer of a run, in two forms: [`AgentResponse`] for programs, and [`AgentReply`], a view of
//! it as content with invocations.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::call::CallRecord;
use super::confidence::Confidence;
use super::schema;
use super::views::{ToolCallRecord, ToolInvocation};
use crate::names::NonEmptyText;

/// The final answer of a run: answer, reasoning, calls and confidence. It never changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentResponse {
    /// The final answer.
    #[schemars(with = "schema::Text")]
    answer: NonEmptyText,
    /// The reasoning, and why these tools were used.
    #[schemars(with = "schema::Text")]
    reasoning: NonEmptyText,
    /// Every started call, in order; empty for a task without calls.
    #[serde(default)]
    tool_calls: Vec<ToolCallRecord>,
    /// The agent's confidence.
    confidence: Confidence,
}

impl AgentResponse {
    /// The answer of a run with these calls. Calls that were never permitted are omitted.
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

    /// The final answer.
    #[must_use]
    pub const fn answer(&self) -> &NonEmptyText {
        &self.answer
    }

    /// The reasoning, and why these tools were used.
    #[must_use]
    pub const fn reasoning(&self) -> &NonEmptyText {
        &self.reasoning
    }

    /// Every started call, in order; empty for a task without calls.
    #[must_use]
    pub fn tool_calls(&self) -> &[ToolCallRecord] {
        &self.tool_calls
    }

    /// The agent's confidence.
    #[must_use]
    pub const fn confidence(&self) -> Confidence {
        self.confidence
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
    /// The view of a response. The calls are passed again because a response does not contain the reasons
    /// of failures. Calls that were never permitted are omitted.
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

    /// The text of the reply.
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

/// The JSON form of a reply, before validation.
#[derive(Serialize, Deserialize, JsonSchema)]
struct RawReply {
    /// The text of the reply.
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
            return Err("responseContent can be empty only if an invocation failed");
        }
        Ok(Self {
            content: raw.content,
            tools_used: raw.tools_used,
        })
    }
}
