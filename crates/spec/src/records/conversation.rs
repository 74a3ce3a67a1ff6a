//! Messages, and conversations of bounded length. The requests to a model are built from them in
//! `windlass-core`.

mod raw;

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::id::CallId;
use super::schema;
use crate::names::ToolName;

/// One message: its role and its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "raw::Message", into = "raw::Message")]
pub struct Message {
    /// The role of the author.
    pub role: MessageRole,
    /// The content.
    pub content: String,
}

/// The role of a message's author. `System` and `AssistantCalls` exist because providers require them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessageRole {
    /// A person.
    User,
    /// The agent.
    Assistant,
    /// A tool, with the result of a call.
    Function {
        /// The tool's name.
        name: ToolName,
        /// The call it answers, if known.
        call_id: Option<CallId>,
    },
    /// The author of the agent.
    System,
    /// The agent, with requested calls.
    AssistantCalls(Vec<MessageCall>),
}

/// A call that a message requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct MessageCall {
    /// The id of the call.
    pub call_id: CallId,
    /// The tool.
    #[schemars(with = "schema::Name")]
    pub tool_name: ToolName,
    /// The arguments of the call.
    pub arguments: Map<String, Value>,
}

impl Message {
    /// A message of a person.
    #[must_use]
    pub fn user(content: impl Into<String>) -> Self {
        Self::new(MessageRole::User, content)
    }

    /// A message of the agent.
    #[must_use]
    pub fn assistant(content: impl Into<String>) -> Self {
        Self::new(MessageRole::Assistant, content)
    }

    /// The result of a tool call.
    #[must_use]
    pub fn function(name: ToolName, content: impl Into<String>) -> Self {
        let role = MessageRole::Function {
            name,
            call_id: None,
        };
        Self::new(role, content)
    }

    /// A message of any role.
    #[must_use]
    pub fn new(role: MessageRole, content: impl Into<String>) -> Self {
        Self {
            role,
            content: content.into(),
        }
    }

    fn requests_call(&self, call: &CallId) -> bool {
        match &self.role {
            MessageRole::AssistantCalls(calls) => {
                calls.iter().any(|requested| requested.call_id == *call)
            }
            _ => false,
        }
    }

    fn answered_call(&self) -> Option<&CallId> {
        match &self.role {
            MessageRole::Function { call_id, .. } => call_id.as_ref(),
            _ => None,
        }
    }
}

/// Messages in order, the most recent last. At most [`Conversation::MAX`] are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "raw::Conversation", into = "raw::Conversation")]
pub struct Conversation {
    pinned: Option<Message>,
    rest: VecDeque<Message>,
    dropped: u64,
}

impl Conversation {
    /// The largest number of messages.
    pub const MAX: usize = 100;

    /// An empty conversation.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A conversation about a task. The task is never dropped, so that the agent does not lose its goal.
    #[must_use]
    pub fn about(task: Message) -> Self {
        Self {
            pinned: Some(task),
            ..Self::default()
        }
    }

    /// Adds a message and returns the number of dropped messages: the oldest, and with a message that
    /// requested calls the answers to them, because providers reject an answer without its request.
    pub fn push(&mut self, message: Message) -> usize {
        self.rest.push_back(message);
        let before = self.rest.len();
        while self.len() > Self::MAX {
            let Some(oldest) = self.rest.pop_front() else {
                break;
            };
            if matches!(oldest.role, MessageRole::AssistantCalls(_)) {
                self.rest.retain(|message| {
                    !message
                        .answered_call()
                        .is_some_and(|call| oldest.requests_call(call))
                });
            }
        }
        let dropped = before - self.rest.len();
        self.dropped = self.dropped.saturating_add(dropped as u64);
        dropped
    }

    /// The messages, the most recent last.
    pub fn messages(&self) -> impl DoubleEndedIterator<Item = &Message> {
        self.pinned.iter().chain(&self.rest)
    }

    /// The number of messages.
    #[must_use]
    pub fn len(&self) -> usize {
        usize::from(self.pinned.is_some()) + self.rest.len()
    }

    /// Whether there are no messages.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The total number of dropped messages.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

impl FromIterator<Message> for Conversation {
    fn from_iter<I: IntoIterator<Item = Message>>(messages: I) -> Self {
        let mut conversation = Self::new();
        conversation.extend(messages);
        conversation
    }
}

impl Extend<Message> for Conversation {
    fn extend<I: IntoIterator<Item = Message>>(&mut self, messages: I) {
        for message in messages {
            self.push(message);
        }
    }
}
