//! The context in which tools were chosen, as a [`ToolExecutionContext`].

use serde_json::Value;
use windlass_spec::Message;
use windlass_spec::registry::{Environment, ToolExecutionContext};

use super::{Entry, Run};
use crate::gate::{DEFAULT_ENVIRONMENT, Decision};
use crate::model::ChatMessage;

impl Run {
    /// The context in which tools were chosen. The channel, user and thread of the task's metadata are
    /// part of it if they are well-formed. `None` for a task without a description.
    #[must_use]
    pub fn context(&self) -> Option<ToolExecutionContext> {
        let environment: Environment = self.environment().parse().ok()?;
        let mut context =
            ToolExecutionContext::for_request(&self.task.description, environment).ok()?;
        let metadata = |key: &str| self.task.metadata.get(key).and_then(Value::as_str);
        if let Some(channel) = metadata("channel_id").and_then(|text| text.parse().ok()) {
            context = context.in_channel(channel);
        }
        if let Some(user) = metadata("user_id").and_then(|text| text.parse().ok()) {
            context = context.by_user(user);
        }
        if let Some(thread) = metadata("thread_ts").and_then(|text| text.parse().ok()) {
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

    /// The environment of the run, as its decisions record it.
    fn environment(&self) -> &str {
        let mut decisions = self.calls.open_entries().filter_map(|entry| match entry {
            Entry::Call { decision, .. } => decision.as_deref(),
            _ => None,
        });
        let recorded = self.history.environment();
        let recorded = recorded.or_else(|| decisions.find_map(Decision::environment));
        recorded.unwrap_or(DEFAULT_ENVIRONMENT)
    }
}
