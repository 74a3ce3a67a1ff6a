//! The context in which tools are chosen: the user's request, its channel, the conversation before it
//! and the available tools.

use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::environment::{Environment, Environments, UnknownEnvironment};
use super::schema;
use super::word::word;
use crate::checked_text;
use crate::names::ToolName;
use crate::records::{Conversation, Message};

word! {
    /// A channel, group or direct conversation of Slack.
    ChannelId is
    "a channel id of Slack",
    "it is C, G or D and 8 to 20 upper-case letters and digits, such as C024BE91L",
    "^[CGD][A-Z0-9]{8,20}$",
    |text| is_slack_id(text, &['C', 'G', 'D'])
}

word! {
    /// A user of Slack.
    UserId is
    "a user id of Slack",
    "it is U or W and 8 to 20 upper-case letters and digits, such as U024BE7LH",
    "^[UW][A-Z0-9]{8,20}$",
    |text| is_slack_id(text, &['U', 'W'])
}

word! {
    /// The timestamp that identifies the first message of a thread in Slack.
    ThreadTimestamp is
    "a thread timestamp of Slack",
    "it is seconds and microseconds, such as 1729123456.000200",
    "^[0-9]{10}\\.[0-9]{6}$",
    is_timestamp
}

fn is_slack_id(text: &str, first: &[char]) -> bool {
    let rest = text.strip_prefix(first).unwrap_or_default();
    (8..=20).contains(&rest.len())
        && rest
            .bytes()
            .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
}

fn is_timestamp(text: &str) -> bool {
    let digits =
        |part: &str, count| part.len() == count && part.bytes().all(|b| b.is_ascii_digit());
    text.split_once('.')
        .is_some_and(|(seconds, rest)| digits(seconds, 10) && digits(rest, 6))
}

checked_text! {
    /// A user's request: 1 to 2000 characters, not all of them blanks.
    #[derive(JsonSchema)]
    #[schemars(with = "schema::Request")]
    RequestText(String), RequestError, check_request
}

/// Why a request is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// It is empty or only blanks.
    #[error("the request is empty")]
    Empty,
    /// Too long.
    #[error("a request must have at most {max} characters, not {0}", max = RequestText::MAX)]
    TooLong(usize),
}

fn check_request(text: &str) -> Result<(), RequestError> {
    if text.trim().is_empty() {
        return Err(RequestError::Empty);
    }
    match text.chars().count() {
        0..=RequestText::MAX => Ok(()),
        characters => Err(RequestError::TooLong(characters)),
    }
}

impl RequestText {
    /// The largest number of characters.
    pub const MAX: usize = 2000;

    /// The number of characters kept from the end of a longer text, because the question is often last.
    const KEPT_OF_END: usize = 500;

    /// The text itself if it is short enough, otherwise its beginning and end with a note between them
    /// about the number of omitted characters.
    ///
    /// # Errors
    /// If the text is blank.
    pub fn excerpt_of(text: &str) -> Result<Self, RequestError> {
        if text.trim().is_empty() {
            return Err(RequestError::Empty);
        }
        let characters = text.chars().count();
        if characters <= Self::MAX {
            return Ok(Self(text.to_owned()));
        }
        // The note's length depends on the number in it, which never has more digits than this.
        let longest_note = omission_note(characters).chars().count();
        let head = Self::MAX - Self::KEPT_OF_END - longest_note;
        let left_out = characters - head - Self::KEPT_OF_END;
        let mut excerpt: String = text.chars().take(head).collect();
        excerpt.push_str(&omission_note(left_out));
        excerpt.extend(text.chars().skip(characters - Self::KEPT_OF_END));
        Ok(Self(excerpt))
    }
}

fn omission_note(left_out: usize) -> String {
    format!(" [... {left_out} characters left out ...] ")
}

/// The context in which tools are chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "RawContext")]
#[schemars(with = "RawContext")]
pub struct ToolExecutionContext {
    user_request: RequestText,
    #[serde(skip_serializing_if = "Option::is_none")]
    channel_id: Option<ChannelId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_id: Option<UserId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread_ts: Option<ThreadTimestamp>,
    available_tools: Vec<ToolName>,
    conversation_history: Vec<Message>,
    environment: Environment,
}

/// Why a context is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ContextError {
    /// The conversation history is too long.
    #[error(
        "a conversation history must have at most {max} messages, not {0}", max = ToolExecutionContext::MAX_MESSAGES
    )]
    TooManyMessages(usize),
    /// The channel, user or thread is malformed.
    #[error("`{key}` of the task's metadata cannot be used: {reason}")]
    Origin {
        /// Its key.
        key: &'static str,
        /// What is wrong.
        reason: String,
    },
}

impl ToolExecutionContext {
    /// The largest number of messages in the history.
    pub const MAX_MESSAGES: usize = Conversation::MAX;

    /// The context of a request in an environment. A request that is too long is shortened to an
    /// excerpt.
    ///
    /// # Errors
    /// If the request is blank.
    pub fn for_request(request: &str, environment: Environment) -> Result<Self, RequestError> {
        Ok(Self {
            user_request: RequestText::excerpt_of(request)?,
            channel_id: None,
            user_id: None,
            thread_ts: None,
            available_tools: Vec::new(),
            conversation_history: Vec::new(),
            environment,
        })
    }

    /// The same context in a channel.
    #[must_use]
    pub fn in_channel(mut self, channel: ChannelId) -> Self {
        self.channel_id = Some(channel);
        self
    }

    /// The same context for a user.
    #[must_use]
    pub fn by_user(mut self, user: UserId) -> Self {
        self.user_id = Some(user);
        self
    }

    /// The same context in a thread.
    #[must_use]
    pub fn in_thread(mut self, thread: ThreadTimestamp) -> Self {
        self.thread_ts = Some(thread);
        self
    }

    /// The same context with the channel, the user and the thread that the metadata of a task states as
    /// `channel_id`, `user_id` and `thread_ts`.
    ///
    /// # Errors
    /// If one of them is malformed.
    pub fn with_origin(mut self, metadata: &Map<String, Value>) -> Result<Self, ContextError> {
        self.channel_id = stated(metadata, "channel_id")?;
        self.user_id = stated(metadata, "user_id")?;
        self.thread_ts = stated(metadata, "thread_ts")?;
        Ok(self)
    }

    /// The same context with these available tools, without duplicates.
    #[must_use]
    pub fn with_tools(mut self, tools: impl IntoIterator<Item = ToolName>) -> Self {
        self.available_tools = distinct(tools);
        self
    }

    /// The same context after these messages, of which the last [`ToolExecutionContext::MAX_MESSAGES`]
    /// are kept. An answer to a call is dropped together with the message that requested the call.
    #[must_use]
    pub fn after(mut self, messages: impl IntoIterator<Item = Message>) -> Self {
        let conversation: Conversation = messages.into_iter().collect();
        self.conversation_history = conversation.messages().cloned().collect();
        self
    }

    /// The user's request, or an excerpt of it.
    #[must_use]
    pub fn user_request(&self) -> &str {
        self.user_request.as_str()
    }

    /// The Slack channel of the request, if any.
    #[must_use]
    pub fn channel_id(&self) -> Option<&ChannelId> {
        self.channel_id.as_ref()
    }

    /// The Slack user who made the request, if any.
    #[must_use]
    pub fn user_id(&self) -> Option<&UserId> {
        self.user_id.as_ref()
    }

    /// The Slack thread of the request, if any.
    #[must_use]
    pub fn thread_ts(&self) -> Option<&ThreadTimestamp> {
        self.thread_ts.as_ref()
    }

    /// The available tools.
    #[must_use]
    pub fn available_tools(&self) -> &[ToolName] {
        &self.available_tools
    }

    /// The messages before the request, the most recent last.
    #[must_use]
    pub fn conversation_history(&self) -> &[Message] {
        &self.conversation_history
    }

    /// The environment of the request.
    #[must_use]
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Checks that its environment is declared.
    ///
    /// # Errors
    /// If it is not.
    pub fn check_environment(&self, known: &Environments) -> Result<(), UnknownEnvironment> {
        known.require(self.environment.as_str()).map(drop)
    }
}

/// A part of the origin that metadata states; `None` if it is missing or null.
fn stated<T>(metadata: &Map<String, Value>, key: &'static str) -> Result<Option<T>, ContextError>
where
    T: FromStr<Err: fmt::Display>,
{
    let malformed = |reason: String| ContextError::Origin { key, reason };
    match metadata.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => {
            let parsed = text.parse().map(Some);
            parsed.map_err(|error: T::Err| malformed(error.to_string()))
        }
        Some(other) => Err(malformed(format!("it must be a text, not {other}"))),
    }
}

fn distinct(tools: impl IntoIterator<Item = ToolName>) -> Vec<ToolName> {
    let mut seen = HashSet::new();
    let mut distinct: Vec<ToolName> = tools.into_iter().collect();
    distinct.retain(|tool| seen.insert(tool.clone()));
    distinct
}

/// The JSON form of a context, before validation.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ToolExecutionContext")]
/// The context in which tools are chosen.
struct RawContext {
    /// The user's request, or an excerpt of it.
    #[schemars(with = "schema::Request")]
    user_request: RequestText,
    /// The Slack channel of the request, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    channel_id: Option<ChannelId>,
    /// The Slack user who made the request, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    user_id: Option<UserId>,
    /// The Slack thread of the request, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    thread_ts: Option<ThreadTimestamp>,
    /// The available tools.
    #[serde(default)]
    #[schemars(with = "Vec<schema::Name>")]
    available_tools: Vec<ToolName>,
    /// The messages before the request, the most recent last.
    #[serde(default)]
    #[schemars(length(max = 100))]
    conversation_history: Vec<Message>,
    /// The environment of the request.
    environment: Environment,
}

impl TryFrom<RawContext> for ToolExecutionContext {
    type Error = ContextError;

    fn try_from(raw: RawContext) -> Result<Self, ContextError> {
        let messages = raw.conversation_history.len();
        if messages > Self::MAX_MESSAGES {
            return Err(ContextError::TooManyMessages(messages));
        }
        Ok(Self {
            user_request: raw.user_request,
            channel_id: raw.channel_id,
            user_id: raw.user_id,
            thread_ts: raw.thread_ts,
            available_tools: distinct(raw.available_tools),
            conversation_history: raw.conversation_history,
            environment: raw.environment,
        })
    }
}
