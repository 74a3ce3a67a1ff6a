//! Messages and the conversation they make, bounded in length. What a model is sent is built from
//! it elsewhere.

mod raw;

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::id::CallId;
use super::schema;
use crate::names::ToolName;

/// One message: who speaks, and what they say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "raw::Message", into = "raw::Message")]
pub struct Message {
    /// Who speaks.
    pub role: MessageRole,
    /// What they say.
    pub content: String,
}

/// Who speaks. Users, assistants and functions make a conversation; the other two exist because
/// providers want them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessageRole {
    /// A person.
    User,
    /// The agent.
    Assistant,
    /// A tool, with what came of a call.
    Function {
        /// The tool's name.
        name: ToolName,
        /// The call it answers, where that is known.
        call_id: Option<CallId>,
    },
    /// Whoever set the agent up.
    System,
    /// The agent, asking for calls.
    AssistantCalls(Vec<MessageCall>),
}

/// A call that a message asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct MessageCall {
    /// Which call.
    pub call_id: CallId,
    /// The tool.
    #[schemars(with = "schema::Name")]
    pub tool_name: ToolName,
    /// What it is asked with.
    pub arguments: Map<String, Value>,
}

impl Message {
    /// What a person says.
    #[must_use]
    pub fn user(content: impl Into<String>) -> Self {
        Self::new(MessageRole::User, content)
    }

    /// What the agent says.
    #[must_use]
    pub fn assistant(content: impl Into<String>) -> Self {
        Self::new(MessageRole::Assistant, content)
    }

    /// What came of a call to a tool.
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

    fn asks_for(&self, call: &CallId) -> bool {
        match &self.role {
            MessageRole::AssistantCalls(calls) => calls.iter().any(|asked| asked.call_id == *call),
            _ => false,
        }
    }

    fn answers(&self) -> Option<&CallId> {
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
    /// How many messages are kept.
    pub const MAX: usize = 100;

    /// A conversation with nothing said.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A conversation about a task, which is never dropped: an agent that forgets what it was asked
    /// does something else.
    #[must_use]
    pub fn about(task: Message) -> Self {
        Self {
            pinned: Some(task),
            ..Self::default()
        }
    }

    /// Adds a message and returns how many were dropped to make room: the oldest, and with a message
    /// that asked for calls their answers, since providers refuse an answer nobody asked for.
    pub fn push(&mut self, message: Message) -> usize {
        self.rest.push_back(message);
        let before = self.rest.len();
        while self.len() > Self::MAX {
            let Some(oldest) = self.rest.pop_front() else {
                break;
            };
            if matches!(oldest.role, MessageRole::AssistantCalls(_)) {
                self.rest
                    .retain(|message| !message.answers().is_some_and(|call| oldest.asks_for(call)));
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

    /// How many messages there are.
    #[must_use]
    pub fn len(&self) -> usize {
        usize::from(self.pinned.is_some()) + self.rest.len()
    }

    /// Whether nothing was said.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many messages were dropped in all.
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
