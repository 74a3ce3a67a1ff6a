//! The JSON form of messages and conversations, before validation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{MessageCall, MessageRole};
use crate::names::ToolName;
use crate::records::id::CallId;
use crate::records::schema;
use crate::words::words;

words! {
    /// The word for a role.
    Role, "role" {
        /// A person.
        User = "user",
        /// The agent.
        Assistant = "assistant",
        /// A tool.
        Function = "function",
        /// The author of the agent.
        System = "system",
    }
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(transform = schema::message)]
pub(super) struct Message {
    /// The role of the author.
    role: Role,
    /// The content.
    content: String,
    /// The name of the tool; required for functions, not allowed for other roles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Name>")]
    name: Option<ToolName>,
    /// The call that a function answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    call_id: Option<CallId>,
    /// The calls that an assistant requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    calls: Vec<MessageCall>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
pub(super) struct Conversation {
    /// The messages, the most recent last.
    #[serde(rename = "contextMessages")]
    messages: Vec<super::Message>,
    /// Whether the first message is the task, which is never dropped.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pinned: bool,
    /// The number of dropped messages.
    #[serde(default, skip_serializing_if = "is_zero")]
    dropped: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl From<super::Message> for Message {
    fn from(message: super::Message) -> Self {
        let (role, name, call_id, calls) = match message.role {
            MessageRole::User => (Role::User, None, None, Vec::new()),
            MessageRole::Assistant => (Role::Assistant, None, None, Vec::new()),
            MessageRole::Function { name, call_id } => {
                (Role::Function, Some(name), call_id, Vec::new())
            }
            MessageRole::System => (Role::System, None, None, Vec::new()),
            MessageRole::AssistantCalls(calls) => (Role::Assistant, None, None, calls),
        };
        Self {
            role,
            content: message.content,
            name,
            call_id,
            calls,
        }
    }
}

impl TryFrom<Message> for super::Message {
    type Error = &'static str;

    fn try_from(raw: Message) -> Result<Self, &'static str> {
        if raw.role != Role::Function && (raw.name.is_some() || raw.call_id.is_some()) {
            return Err("only a function message can have a name or a call_id");
        }
        if raw.role != Role::Assistant && !raw.calls.is_empty() {
            return Err("only an assistant message can have calls");
        }
        let role = match raw.role {
            Role::User => MessageRole::User,
            Role::System => MessageRole::System,
            Role::Assistant if raw.calls.is_empty() => MessageRole::Assistant,
            Role::Assistant => MessageRole::AssistantCalls(raw.calls),
            Role::Function => MessageRole::Function {
                name: raw
                    .name
                    .ok_or("a function message must have the name of its tool")?,
                call_id: raw.call_id,
            },
        };
        Ok(Self::new(role, raw.content))
    }
}

impl From<super::Conversation> for Conversation {
    fn from(conversation: super::Conversation) -> Self {
        Self {
            pinned: conversation.pinned.is_some(),
            dropped: conversation.dropped,
            messages: conversation
                .pinned
                .into_iter()
                .chain(conversation.rest)
                .collect(),
        }
    }
}

impl From<Conversation> for super::Conversation {
    /// Drops the oldest messages of a list that is too long, as if the messages were pushed one by one.
    fn from(raw: Conversation) -> Self {
        let mut messages = raw.messages.into_iter();
        let mut conversation = Self {
            pinned: if raw.pinned { messages.next() } else { None },
            dropped: raw.dropped,
            ..Self::default()
        };
        conversation.extend(messages);
        conversation
    }
}
