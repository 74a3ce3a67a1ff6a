//! Requests to models and their answers, independent of any provider. Clients convert provider formats
//! to and from these types; nothing here does IO.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass_spec::{Message, MessageRole, ModelPrice, Money, TokenCounts, ToolSpecification};

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
    /// The model that answered, as `Provider/id`, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
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

/// The usage of a model's answer, or of all answers of a run and the costs that its tools reported.
#[derive(Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Input tokens, with those that the provider read from its cache or wrote to it.
    #[serde(default)]
    pub input_tokens: u64,
    /// Output tokens.
    #[serde(default)]
    pub output_tokens: u64,
    /// The input tokens that the provider read from its cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cached_tokens: u64,
    /// The input tokens that the provider wrote to its cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_write_tokens: u64,
    /// The cost in millionths of a dollar, as far as it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub microdollars: Option<Money>,
    /// The number of answers whose cost is not known and not part of the sum.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unpriced_answers: u64,
}

/// Whether the count is zero, for `skip_serializing_if`.
#[allow(clippy::trivially_copy_pass_by_ref)]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl fmt::Debug for Usage {
    /// Shows the counts that are not zero, like its JSON.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Usage");
        shown
            .field("input_tokens", &self.input_tokens)
            .field("output_tokens", &self.output_tokens)
            .field(
                "microdollars",
                &self.microdollars.map(Money::as_microdollars),
            );
        for (name, count) in [
            ("cached_tokens", self.cached_tokens),
            ("cache_write_tokens", self.cache_write_tokens),
            ("unpriced_answers", self.unpriced_answers),
        ] {
            if count > 0 {
                shown.field(name, &count);
            }
        }
        shown.finish()
    }
}

/// What something cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cost {
    /// Exactly this.
    Known(Money),
    /// This, and an amount that is not known.
    AtLeast(Money),
    /// Nothing is known about it.
    Unknown,
}

impl Cost {
    /// Whether it is known that it cost nothing.
    #[must_use]
    pub fn is_nothing(self) -> bool {
        self == Self::Known(Money::ZERO)
    }
}

impl fmt::Display for Cost {
    /// For people, such as `$0.0042` or `unknown`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(money) => money.fmt(f),
            Self::AtLeast(money) => write!(f, "{money} and an unknown amount"),
            Self::Unknown => f.write_str("unknown"),
        }
    }
}

impl Usage {
    /// Whether there is no usage.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        *self == Self::default()
    }

    /// All tokens.
    #[must_use]
    pub const fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// The tokens as a provider charges for them.
    #[must_use]
    pub const fn token_counts(&self) -> TokenCounts {
        TokenCounts {
            input: self.input_tokens,
            cached: self.cached_tokens,
            cache_write: self.cache_write_tokens,
            output: self.output_tokens,
        }
    }

    /// What it cost. Usage of earlier versions has tokens without a cost.
    #[must_use]
    pub fn cost(&self) -> Cost {
        match self.microdollars {
            Some(money) if self.unpriced_answers > 0 => Cost::AtLeast(money),
            Some(money) => Cost::Known(money),
            None if self.unpriced_answers == 0 && self.tokens() == 0 => Cost::Known(Money::ZERO),
            None => Cost::Unknown,
        }
    }

    /// The usage of one answer with what it cost by this price. A cost that the answer states itself stays. The cost is
    /// unknown without a price, and if the provider did not count the tokens.
    #[must_use]
    pub fn priced(mut self, price: Option<&ModelPrice>) -> Self {
        if self.microdollars.is_none() {
            let price = price.filter(|price| price.is_free() || self.tokens() > 0);
            self.microdollars = price.map(|price| price.cost(self.token_counts()));
            self.unpriced_answers = u64::from(self.microdollars.is_none());
        }
        self
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, more: Self) {
        for (sum, more) in [
            (&mut self.input_tokens, more.input_tokens),
            (&mut self.output_tokens, more.output_tokens),
            (&mut self.cached_tokens, more.cached_tokens),
            (&mut self.cache_write_tokens, more.cache_write_tokens),
            (&mut self.unpriced_answers, more.unpriced_answers),
        ] {
            *sum = sum.saturating_add(more);
        }
        if let Some(cost) = more.microdollars {
            self.microdollars = Some(self.microdollars.unwrap_or_default().saturating_add(cost));
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
