//! Conversations: stored messages of a user and an agent, so that a chat can be continued.

use windlass_core::model::ChatMessage;
use windlass_core::run::{Run, RunEnd, Settings, Task};
use windlass_runtime::Durable as _;
use windlass_spec::Conversation;
use windlass_store::StoredConversation;

use crate::assembly::NewRun;
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
    /// The conversations of the identity, the most recently updated first; with `agent`, only those with the
    /// agent of that name. For the next page, `after` is the id of the last conversation of the page.
    ///
    /// # Errors
    /// If the identity may not read.
    pub fn list_conversations(
        &self,
        identity: &Identity,
        agent: Option<&str>,
        limit: u32,
        after: Option<&str>,
    ) -> Result<Vec<StoredConversation>, ServiceError> {
        identity.require(Scope::Read)?;
        let store = self.store()?;
        Ok(store.conversations(identity.person(), agent, limit, after)?)
    }

    /// The conversation of the identity with that id.
    ///
    /// # Errors
    /// If the identity may not read, or has no such conversation.
    pub fn show_conversation(
        &self,
        identity: &Identity,
        id: &str,
    ) -> Result<StoredConversation, ServiceError> {
        identity.require(Scope::Read)?;
        let found = self.store()?.conversation(identity.person(), id)?;
        found.ok_or_else(|| no_such_conversation(id))
    }

    /// Removes a conversation of the identity. Its runs stay.
    ///
    /// # Errors
    /// If the identity may not run agents, or has no such conversation.
    pub fn delete_conversation(&self, identity: &Identity, id: &str) -> Result<(), ServiceError> {
        identity.require(Scope::Run)?;
        match self.store()?.delete_conversation(identity.person(), id)? {
            true => Ok(()),
            false => Err(no_such_conversation(id)),
        }
    }

    /// The chosen conversation of an identity with an agent. A new one is stored with its first answer.
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
                    no_such_conversation(id)
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

    /// Adds a message and the run that answers it, with the calls of the run and their results, to a conversation
    /// and stores it. The oldest messages are dropped when it gets long. A message that never reached the model is not stored, so that it can be
    /// sent again. Blocks while it is stored.
    ///
    /// # Errors
    /// If the identity may not run agents, or it cannot be stored.
    pub fn extend_conversation(
        &self,
        identity: &Identity,
        conversation: &mut StoredConversation,
        message: &str,
        run: &Run,
    ) -> Result<(), ServiceError> {
        identity.require(Scope::Run)?;
        let owner = (
            conversation.tenant.as_str(),
            conversation.principal.as_str(),
        );
        if owner != (identity.tenant().as_str(), identity.principal().as_str()) {
            return Err(no_such_conversation(&conversation.id));
        }
        conversation.runs.push(run.id().clone());
        if run.turns().is_empty() {
            return Ok(());
        }
        let mut exchange = run.exchange(conversation.runs.len(), reply(run));
        if let Some(ChatMessage::User { content }) = exchange.first_mut() {
            message.clone_into(content);
        }
        conversation.messages.extend(exchange);
        drop_oldest(&mut conversation.messages);
        conversation.updated_at = self.now();
        let saved = self.store()?.save_conversation(conversation);
        saved
            .map_err(|error| ServiceError::from(error).context("the conversation cannot be stored"))
    }
}

impl NewRun {
    /// The run that answers a message of a conversation, with these limits.
    #[must_use]
    pub fn of_message(
        conversation: &StoredConversation,
        message: &str,
        settings: Settings,
    ) -> Self {
        Self {
            run: None,
            task_id: None,
            task: Task {
                description: message.to_owned(),
                conversation: conversation.messages.clone(),
                ..Task::default()
            },
            settings,
        }
    }
}

/// The agent's part of a conversation. Of a failure, it contains only the category.
fn reply(run: &Run) -> String {
    match run.end_or_waiting() {
        None | Some(RunEnd::Cancelled) => "(I was stopped before I could answer.)".to_owned(),
        Some(RunEnd::WaitingForPerson | RunEnd::WaitingForCaller { .. }) => {
            "(I am waiting for an approval before I can answer.)".to_owned()
        }
        // It answered, although a call was rejected.
        Some(RunEnd::Failed { .. }) if run.has_answered() => run.response().answer().to_string(),
        Some(RunEnd::Failed { category, .. }) => format!("(I could not answer: {category}.)"),
        Some(RunEnd::Completed | RunEnd::IterationLimit | RunEnd::Budget { .. }) => {
            run.response().answer().to_string()
        }
    }
}

/// Drops the oldest messages if there are too many. The rest begins with a message of the user, so that no result
/// is left without its call; the latest exchange stays.
fn drop_oldest(messages: &mut Vec<ChatMessage>) {
    let surplus = messages.len().saturating_sub(Conversation::MAX);
    if surplus == 0 {
        return;
    }
    let mut begins = messages
        .iter()
        .enumerate()
        .filter(|(_, message)| matches!(message, ChatMessage::User { .. }))
        .map(|(place, _)| place);
    let last = begins.clone().next_back().unwrap_or(0);
    let first = begins.find(|place| *place >= surplus).unwrap_or(last);
    messages.drain(..first);
}

fn no_such_conversation(id: &str) -> ServiceError {
    let message = format!("there is no conversation `{id}`");
    ServiceError::not_found("no_such_conversation", message)
}
