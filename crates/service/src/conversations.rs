//! Conversations: stored messages of a user and an agent, so that a chat can be continued.

use windlass_core::model::ChatMessage;
use windlass_runtime::Durable as _;
use windlass_spec::Conversation;
use windlass_store::StoredConversation;

use crate::error::ServiceError;
use crate::identity::{Identity, Scope};
use crate::service::Service;

/// Which conversation is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConversationChoice {
    /// A new one.
    New,
    /// The latest one with the agent; a new one if there is none.
    Latest,
    /// The one with that id.
    Id(String),
}

impl Service {
    /// The chosen conversation of an identity with an agent.
    ///
    /// # Errors
    /// If the identity may not run agents, there is no such conversation, or it is with another agent.
    pub fn conversation(
        &self,
        identity: &Identity,
        agent: &str,
        choice: &ConversationChoice,
    ) -> Result<StoredConversation, ServiceError> {
        identity.require(Scope::Run)?;
        let store = self.store()?;
        let user = identity.person();
        let earlier = match choice {
            ConversationChoice::New => None,
            ConversationChoice::Latest => store.latest_conversation(user, agent)?,
            ConversationChoice::Id(id) => {
                let found = store.conversation(user, id)?;
                let found = found.ok_or_else(|| {
                    let message = format!("there is no conversation `{id}`");
                    ServiceError::not_found("no_such_conversation", message)
                        .with_hint("`--resume` without an id continues the latest one")
                })?;
                if found.agent != agent {
                    return Err(ServiceError::failed(format!(
                        "the conversation `{id}` is with the agent `{}`, not with `{agent}`",
                        found.agent
                    )));
                }
                Some(found)
            }
        };
        if let Some(earlier) = earlier {
            return Ok(earlier);
        }
        Ok(StoredConversation {
            id: self.stored()?.new_id()?.to_string(),
            tenant: identity.tenant().to_string(),
            principal: identity.principal().to_string(),
            agent: agent.to_owned(),
            runs: Vec::new(),
            messages: Vec::new(),
            updated_at: self.now(),
        })
    }

    /// Adds a message and its answer to a conversation and stores it. The oldest messages are dropped when
    /// it gets long. Blocks while it is stored.
    ///
    /// # Errors
    /// If the identity may not run agents, or it cannot be stored.
    pub fn extend_conversation(
        &self,
        identity: &Identity,
        conversation: &mut StoredConversation,
        message: &str,
        answer: String,
    ) -> Result<(), ServiceError> {
        identity.require(Scope::Run)?;
        let owner = (
            conversation.tenant.as_str(),
            conversation.principal.as_str(),
        );
        if owner != (identity.tenant().as_str(), identity.principal().as_str()) {
            let message = format!("there is no conversation `{}`", conversation.id);
            return Err(ServiceError::not_found("no_such_conversation", message));
        }
        conversation.messages.extend([
            ChatMessage::User {
                content: message.to_owned(),
            },
            ChatMessage::Assistant {
                content: answer,
                calls: Vec::new(),
            },
        ]);
        let surplus = conversation
            .messages
            .len()
            .saturating_sub(Conversation::MAX);
        conversation.messages.drain(..surplus);
        conversation.updated_at = self.now();
        let saved = self.store()?.save_conversation(conversation);
        saved
            .map_err(|error| ServiceError::from(error).context("the conversation cannot be stored"))
    }
}
