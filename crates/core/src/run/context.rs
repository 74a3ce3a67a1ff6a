//! The context in which tools are chosen, as a [`ToolExecutionContext`].

use windlass_spec::registry::{ContextError, Environment, ToolExecutionContext};
use windlass_spec::{Message, ToolName};

use super::event::Task;
use super::{Entry, Run};
use crate::gate::{DEFAULT_ENVIRONMENT, Decision};
use crate::model::ChatMessage;

impl Task {
    /// The context of the task in an environment, with these tools to choose from. `None` for a task without
    /// a description.
    ///
    /// # Errors
    /// If the channel, the user or the thread in the task's metadata is malformed.
    pub fn context(
        &self,
        environment: Environment,
        tools: impl IntoIterator<Item = ToolName>,
    ) -> Result<Option<ToolExecutionContext>, ContextError> {
        let context = ToolExecutionContext::for_request(&self.description, environment);
        let Ok(context) = context else {
            return Ok(None);
        };
        let messages = self.conversation.iter().filter_map(message);
        let context = context.with_origin(&self.metadata)?;
        Ok(Some(context.with_tools(tools).after(messages)))
    }
}

impl Task {
    /// The untrusted results in the conversation before the task.
    pub(super) fn untrusted_results(&self) -> impl Iterator<Item = &str> {
        self.conversation
            .iter()
            .filter_map(|message| match message {
                ChatMessage::Tool {
                    content,
                    untrusted: true,
                    ..
                } => Some(content.as_str()),
                _ => None,
            })
    }
}

/// A message of a conversation as a context shows it.
fn message(message: &ChatMessage) -> Option<Message> {
    match message {
        ChatMessage::User { content } => Some(Message::user(content)),
        // The model said nothing: the results of its calls follow.
        ChatMessage::Assistant { content, .. } if content.trim().is_empty() => None,
        ChatMessage::Assistant { content, .. } => Some(Message::assistant(content)),
        ChatMessage::Tool { tool, content, .. } => {
            let name = ToolName::new(tool.as_str()).ok()?;
            Some(Message::function(name, content))
        }
        ChatMessage::System { .. } => None,
    }
}

impl Run {
    /// The context in which tools are chosen. `None` for a task without a description, or with a malformed
    /// origin, which a new run refuses.
    #[must_use]
    pub fn context(&self) -> Option<ToolExecutionContext> {
        let environment: Environment = self.environment().parse().ok()?;
        let tools = self.allowed_tools().map(|tool| tool.name().clone());
        self.task.context(environment, tools).ok()?
    }

    /// The environment of the run: the one in which its tools were chosen, else the one of its first
    /// decision.
    #[must_use]
    pub fn environment(&self) -> &str {
        let chosen = self.offer().and_then(|offer| offer.environment.as_deref());
        let mut decisions = self.calls.open_entries().filter_map(|entry| match entry {
            Entry::Call { decision, .. } => decision.as_deref(),
            _ => None,
        });
        let recorded = chosen.or_else(|| self.history.environment());
        let recorded = recorded.or_else(|| decisions.find_map(Decision::environment));
        recorded.unwrap_or(DEFAULT_ENVIRONMENT)
    }
}
