//! Requests to models and their answers, independent of any provider. Clients convert provider formats
//! to and from these types; nothing here does IO.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass_spec::{Message, MessageRole, ToolSpecification};

pub use windlass_spec::reserved::FINISH;

/// The request to a model for one turn. The same state gives the same request, byte for byte.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelRequest {
    /// The messages, in order. Those of an earlier turn are shared with the request of that turn.
    pub messages: Vec<Arc<ChatMessage>>,
    /// The tools it may call, besides [`FINISH`].
    pub tools: Vec<Arc<ToolSpecification>>,
}

/// One message of a request.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum ChatMessage {
    /// The system prompt.
    System {
        /// The text.
        content: String,
    },
    /// A message of the user.
    User {
        /// The text.
        content: String,
    },
    /// A message of the model, with the calls it requested.
    Assistant {
        /// The text; may be empty if there are calls.
        content: String,
        /// The requested calls.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<ChatCall>,
    },
    /// The result of a call.
    Tool {
        /// The call it answers, as in [`ChatCall::id`].
        call_id: String,
        /// The tool.
        tool: String,
        /// The observation.
        content: String,
        /// Whether the observation has untrusted content. Used for the results in an earlier conversation; the
        /// results of a run's own calls are judged by its events.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        untrusted: bool,
    },
}

impl fmt::Debug for ChatMessage {
    /// Only an untrusted result says what it is, as in its JSON.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System { content } => f.debug_struct("System").field("content", content).finish(),
            Self::User { content } => f.debug_struct("User").field("content", content).finish(),
            Self::Assistant { content, calls } => f
                .debug_struct("Assistant")
                .field("content", content)
                .field("calls", calls)
                .finish(),
            Self::Tool {
                call_id,
                tool,
                content,
                untrusted,
            } => {
                let mut shown = f.debug_struct("Tool");
                shown
                    .field("call_id", call_id)
                    .field("tool", tool)
                    .field("content", content);
                if *untrusted {
                    shown.field("untrusted", untrusted);
                }
                shown.finish()
            }
        }
    }
}

impl ChatMessage {
    /// Its size in bytes, for keeping a request within the context window.
    #[must_use]
    pub fn characters(&self) -> usize {
        match self {
            Self::System { content } | Self::User { content } | Self::Tool { content, .. } => {
                content.len()
            }
            Self::Assistant { content, calls } => {
                let calls = calls
                    .iter()
                    .map(|call| call.tool.len() + call.arguments.to_string().len());
                content.len() + calls.sum::<usize>()
            }
        }
    }
}

impl From<Message> for ChatMessage {
    /// Converts a message of a conversation. A tool result without a matching call becomes a user
    /// message, because providers refuse results without a call.
    fn from(message: Message) -> Self {
        let content = message.content;
        match message.role {
            MessageRole::System => Self::System { content },
            MessageRole::User => Self::User { content },
            MessageRole::Assistant => Self::Assistant {
                content,
                calls: Vec::new(),
            },
            MessageRole::AssistantCalls(calls) => Self::Assistant {
                content,
                calls: calls
                    .into_iter()
                    .map(|call| ChatCall {
                        id: call.call_id.to_string(),
                        tool: call.tool_name.into(),
                        arguments: Value::Object(call.arguments),
                    })
                    .collect(),
            },
            MessageRole::Function {
                name,
                call_id: Some(call),
            } => Self::Tool {
                call_id: call.to_string(),
                tool: name.into(),
                content,
                // It is not known where the caller has it from.
                untrusted: true,
            },
            MessageRole::Function {
                name,
                call_id: None,
            } => Self::User {
                content: format!("`{name}` returned: {content}"),
            },
        }
    }
}

/// A call as a message shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChatCall {
    /// Identifies the call within the conversation. Derived from its position, so that a replay gives
    /// the same id.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// The arguments as the model gave them.
    pub arguments: Value,
}

/// A model's complete answer in one turn.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelAnswer {
    /// The text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The reasoning, if the model returns it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thought: Option<String>,
    /// The requested calls, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<RequestedCall>,
    /// The usage.
    #[serde(default)]
    pub usage: Usage,
}

/// A call as a model requested it, unchecked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestedCall {
    /// The name it used.
    pub tool: String,
    /// The arguments it gave.
    pub arguments: RequestedArguments,
    /// The confidence that the model stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
}

/// Arguments as a model gave them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestedArguments {
    /// JSON.
    Json(Value),
    /// A text that is not JSON.
    Text(String),
}

/// The usage of a model's answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Input tokens.
    #[serde(default)]
    pub input_tokens: u64,
    /// Output tokens.
    #[serde(default)]
    pub output_tokens: u64,
    /// Money in millionths of a dollar, if prices are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub microdollars: Option<u64>,
}

impl Usage {
    /// Whether there is no usage.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        *self == Self::default()
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, more: Self) {
        self.input_tokens = self.input_tokens.saturating_add(more.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(more.output_tokens);
        if let Some(cost) = more.microdollars {
            self.microdollars = Some(self.microdollars.unwrap_or(0).saturating_add(cost));
        }
    }
}

/// Why a model gave no answer, after all retries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelErrorKind {
    /// Too many requests.
    RateLimited,
    /// The provider is overloaded or down.
    Overloaded,
    /// The key is missing or was refused.
    Authentication,
    /// The request is longer than the context window.
    ContextTooLong,
    /// There is no such model.
    UnknownModel,
    /// The provider could not be reached.
    Unreachable,
    /// The answer was cut off or invalid.
    Malformed,
    /// It took too long.
    Timeout,
    /// It was cancelled.
    Cancelled,
}

/// The schema of [`FINISH`]'s arguments.
#[must_use]
pub fn finish_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "answer": {"type": "string", "description": "The final answer to the task"},
            "reasoning": {"type": "string", "description": "How the answer was found, and with which tools"},
            "confidence": {"type": "number", "minimum": 0, "maximum": 1,
                           "description": "How sure you are of the answer, from 0 to 1"},
        },
        "required": ["answer", "reasoning", "confidence"],
        "additionalProperties": false,
    })
}
