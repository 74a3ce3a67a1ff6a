//! What was known where tools were chosen, told as others expect it.

use serde_json::Value;
use windlass_spec::Message;
use windlass_spec::registry::{Environment, ToolExecutionContext};

use super::{Entry, Run};
use crate::gate::{DEFAULT_ENVIRONMENT, Decision};
use crate::model::ChatMessage;

impl Run {
    /// What was known where tools were chosen. What the task's metadata says of a channel, a user or a
    /// thread is part of it where it has the right form. `None` for a task that says nothing.
    #[must_use]
    pub fn context(&self) -> Option<ToolExecutionContext> {
        let environment: Environment = self.environment().parse().ok()?;
        let mut context =
            ToolExecutionContext::for_request(&self.task.description, environment).ok()?;
        let said = |key: &str| self.task.metadata.get(key).and_then(Value::as_str);
        if let Some(channel) = said("channel_id").and_then(|text| text.parse().ok()) {
            context = context.in_channel(channel);
        }
        if let Some(user) = said("user_id").and_then(|text| text.parse().ok()) {
            context = context.by_user(user);
        }
        if let Some(thread) = said("thread_ts").and_then(|text| text.parse().ok()) {
            context = context.in_thread(thread);
        }
        let tools = self.tools();
        let tools = tools.iter().map(|tool| tool.name().clone());
        let messages = self.task.conversation.iter();
        let messages = messages.filter_map(|message| match message {
            ChatMessage::User { content } => Some(Message::user(content)),
            ChatMessage::Assistant { content, .. } => Some(Message::assistant(content)),
            ChatMessage::System { .. } | ChatMessage::Tool { .. } => None,
        });
        Some(context.with_tools(tools).after(messages))
    }

    /// Where the run takes place, as its decisions say.
    fn environment(&self) -> &str {
        let mut decisions = self.calls.entries().filter_map(|entry| match entry {
            Entry::Call { decision, .. } => decision.as_deref(),
            _ => None,
        });
        let said = decisions.find_map(Decision::environment);
        said.unwrap_or(DEFAULT_ENVIRONMENT)
    }
}
