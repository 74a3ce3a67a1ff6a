//! Conversations: stored messages of a user and an agent, so that a chat can be continued.

use windlass_core::model::ChatMessage;
use windlass_core::run::{Run, RunEnd, Settings, Task};
use windlass_runtime::Durable as _;
use windlass_spec::{Conversation, RunId};
use windlass_store::{Error, OpenExchange, RunState, RunSummary, StoredConversation};

use crate::assembly::NewRun;
use crate::error::ServiceError;
use crate::identity::{Identity, Scope, user};
use crate::options::Notice;
use crate::service::{Service, blocking};

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
        self.settled(found.ok_or_else(|| no_such_conversation(id))?)
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

    /// The chosen conversation of an identity with an agent. A new one is stored with its first message: when a run
    /// of [`NewRun::of_message`] begins. Its answer is added wherever the run waits or ends.
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
            return self.settled(earlier);
        }
        Ok(StoredConversation {
            id: self.stored()?.new_id()?.to_string(),
            tenant: identity.tenant().to_string(),
            principal: identity.principal().to_string(),
            agent: agent.to_owned(),
            runs: Vec::new(),
            messages: Vec::new(),
            open: Vec::new(),
            updated_at: self.now(),
        })
    }

    /// Stores that a run is to answer a message of a conversation. Returns whether that was not known.
    pub(crate) fn open_exchange(
        &self,
        identity: &Identity,
        conversation: &StoredConversation,
        run: &RunId,
    ) -> Result<bool, ServiceError> {
        let owner = (
            conversation.tenant.as_str(),
            conversation.principal.as_str(),
        );
        if owner != (identity.tenant().as_str(), identity.principal().as_str()) {
            return Err(no_such_conversation(&conversation.id));
        }
        let (store, now, run) = (self.store()?, self.now(), run.clone());
        let open = move |conversation: &mut StoredConversation| {
            let is_new = !conversation.runs.contains(&run);
            if is_new {
                conversation.runs.push(run.clone());
                conversation.open.push(OpenExchange {
                    run: run.clone(),
                    first: conversation.messages.len(),
                    count: 0,
                });
                conversation.updated_at = now;
            }
            is_new
        };
        let user = identity.person();
        let opened = store.change_conversation(user, &conversation.id, open.clone())?;
        match opened {
            Some(is_new) => Ok(is_new),
            None if conversation.runs.is_empty() => {
                let mut new = conversation.clone();
                open(&mut new);
                store.save_conversation(&new)?;
                Ok(true)
            }
            // It was deleted in the meantime.
            None => Err(no_such_conversation(&conversation.id)),
        }
    }

    /// Removes a run that could not be started from its conversation, and a conversation that has no other.
    pub(crate) fn withdraw_exchange(
        &self,
        identity: &Identity,
        conversation: &StoredConversation,
        run: &RunId,
    ) -> Result<(), ServiceError> {
        let (store, user, run) = (self.store()?, identity.person(), run.clone());
        let left = store.change_conversation(user, &conversation.id, move |conversation| {
            conversation.runs.retain(|known| *known != run);
            conversation.open.retain(|open| open.run != run);
            conversation.runs.len()
        })?;
        if left == Some(0) {
            store.delete_conversation(user, &conversation.id)?;
        }
        Ok(())
    }

    /// Stores the messages of a run in its conversation, if it belongs to one and its answer there is not final:
    /// the user's message, the calls with their results, and the answer. They replace the earlier ones of the run.
    /// The oldest messages are dropped when the conversation gets long. A message that never reached the model is
    /// not stored, so that it can be sent again. Blocks while it is stored.
    ///
    /// # Errors
    /// If the conversation cannot be stored. It is stored when it is read the next time.
    pub(crate) fn keep_answer(&self, run: &Run) -> Result<(), ServiceError> {
        let store = self.store()?;
        for conversation in store.open_conversations(Some(run.id()))? {
            let whole = match run.has_released_turns() {
                true => Some(store.fold(run.id())?),
                false => None,
            };
            let run = whole.as_ref().unwrap_or(run);
            let place = conversation.runs.iter().position(|id| id == run.id());
            let messages = match (place, run.turns().is_empty()) {
                (Some(place), false) => run.exchange(place + 1, reply(run)),
                _ => Vec::new(),
            };
            let is_final = run.end().is_some();
            if !is_final && messages_of(&conversation, run.id()) == Some(messages.as_slice()) {
                continue;
            }
            let (id, now) = (run.id().clone(), self.now());
            let user = user(&conversation.tenant, &conversation.principal)?;
            let kept = store.change_conversation(&user, &conversation.id, move |conversation| {
                replace_exchange(conversation, &id, &messages, is_final);
                conversation.updated_at = now;
            });
            kept.map_err(|error| {
                ServiceError::from(error).context("the conversation cannot be stored")
            })?;
        }
        Ok(())
    }

    /// Keeps the answer of a run that was driven, and warns if that is not possible: the run itself is stored, and
    /// its answer is kept when the conversation is read.
    pub(crate) async fn keep_answer_of(&self, run: Run) -> Result<Run, ServiceError> {
        let service = self.clone();
        blocking(move || {
            if let Err(error) = service.keep_answer(&run) {
                service.notify(&Notice::Warning(format!("warning: {error}")));
            }
            Ok(run)
        })
        .await
    }

    /// Keeps the answer of a stored run.
    pub(crate) fn keep_stored_answer(&self, run: &RunId) -> Result<(), ServiceError> {
        let store = self.store()?;
        match store.open_conversations(Some(run))?.is_empty() {
            true => Ok(()),
            false => self.keep_answer(&store.fold(run)?),
        }
    }

    /// A conversation with the answers of the runs that ended, or wait for a person, since it was stored: their
    /// process may have died before it stored them.
    fn settled(
        &self,
        conversation: StoredConversation,
    ) -> Result<StoredConversation, ServiceError> {
        if conversation.open.is_empty() {
            return Ok(conversation);
        }
        let store = self.store()?;
        for open in &conversation.open {
            let is_driven = |found: &RunSummary| found.state == RunState::Open;
            match store.summary(&open.run) {
                Ok(found) if !is_driven(&found) => match store.fold(&open.run) {
                    Ok(mut run) => {
                        if found.state == RunState::Waiting {
                            let waiting = found.end.unwrap_or(RunEnd::WaitingForPerson);
                            run.mark_waiting(waiting);
                        }
                        self.keep_answer(&run)?;
                    }
                    // Its messages stay as they are.
                    Err(Error::Purged(_)) => {}
                    Err(error) => return Err(error.into()),
                },
                // It is running, or its process died before it started.
                Ok(_) | Err(Error::NoSuchRun(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let user = user(&conversation.tenant, &conversation.principal)?;
        let found = store.conversation(&user, &conversation.id)?;
        Ok(found.unwrap_or(conversation))
    }

    /// Stores the answers of all runs that have ended in their conversations: their events are about to be
    /// removed.
    pub(crate) fn settle_conversations(&self) -> Result<(), ServiceError> {
        for conversation in self.store()?.open_conversations(None)? {
            self.settled(conversation)?;
        }
        Ok(())
    }
}

/// The messages that a conversation has of a run whose answer is not final.
fn messages_of<'c>(conversation: &'c StoredConversation, run: &RunId) -> Option<&'c [ChatMessage]> {
    let open = conversation.open.iter().find(|open| open.run == *run)?;
    conversation
        .messages
        .get(open.first..open.first + open.count)
}

/// Replaces the messages of a run whose answer is not final.
fn replace_exchange(
    conversation: &mut StoredConversation,
    run: &RunId,
    messages: &[ChatMessage],
    is_final: bool,
) {
    let StoredConversation {
        messages: all,
        open,
        ..
    } = conversation;
    let Some(place) = open.iter().position(|open| open.run == *run) else {
        return;
    };
    let (before, rest) = open.split_at_mut(place);
    let Some((this, later)) = rest.split_first_mut() else {
        return;
    };
    let first = this.first.min(all.len());
    let end = (first + this.count).min(all.len());
    all.splice(first..end, messages.iter().cloned());
    this.count = messages.len();
    for open in later {
        open.first = open.first + messages.len() - (end - first);
    }
    debug_assert!(before.iter().all(|open| open.first <= first));
    if is_final {
        open.remove(place);
    }
    drop_oldest(conversation);
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
            conversation: Some(conversation.clone()),
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
fn drop_oldest(conversation: &mut StoredConversation) {
    let StoredConversation { messages, open, .. } = conversation;
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
    let dropped = begins.find(|place| *place >= surplus).unwrap_or(last);
    messages.drain(..dropped);
    for open in open {
        let end = (open.first + open.count).saturating_sub(dropped);
        open.first = open.first.saturating_sub(dropped);
        open.count = end.saturating_sub(open.first);
    }
}

fn no_such_conversation(id: &str) -> ServiceError {
    let message = format!("there is no conversation `{id}`");
    ServiceError::not_found("no_such_conversation", message)
}
