//! Chat clients: programs that send the whole conversation with each message, and so have no id of a run or a
//! conversation. The run that answers is found by principal, agent and digest of the messages.

use windlass_core::approval::Approval;
use windlass_core::model::{ChatMessage, Usage};
use windlass_core::run::{Run, RunEnd, Settings, Task};
use windlass_keys::sha256;
use windlass_runtime::Durable as _;
use windlass_spec::RunId;
use windlass_store::{ChatKey, ChatOutcome, RunState};

use crate::assembly::NewRun;
use crate::error::ServiceError;
use crate::identity::{Identity, Scope};
use crate::runs::RunStatus;
use crate::service::Service;

/// The messages of a conversation, which end with one of the user.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatMessages {
    before: Vec<ChatMessage>,
    last: String,
}

impl ChatMessages {
    /// Checks the messages of a conversation.
    ///
    /// # Errors
    /// If the last one is not a text of the user.
    pub fn new(mut messages: Vec<ChatMessage>) -> Result<Self, ServiceError> {
        match messages.pop() {
            Some(ChatMessage::User { content }) if !content.trim().is_empty() => Ok(Self {
                before: messages,
                last: content,
            }),
            _ => {
                let message = "the last message must be a text of the user";
                Err(ServiceError::invalid("invalid_conversation", message))
            }
        }
    }

    /// The run that answers the last message, with these limits.
    #[must_use]
    pub fn run(self, reserved: &ReservedChat, settings: Settings) -> NewRun {
        NewRun {
            run: Some(reserved.run.clone()),
            task_id: None,
            conversation: None,
            task: Task {
                description: self.last,
                conversation: self.before,
                ..Task::default()
            },
            settings,
        }
    }

    fn digest(&self) -> [u8; 32] {
        digest(&self.before, &self.last)
    }

    /// The digest of the messages up to the previous one of the user.
    fn digest_before(&self) -> Option<[u8; 32]> {
        let is_user = |message: &ChatMessage| matches!(message, ChatMessage::User { .. });
        let previous = self.before.iter().rposition(is_user)?;
        let (earlier, rest) = self.before.split_at(previous);
        match rest.first() {
            Some(ChatMessage::User { content }) => Some(digest(earlier, content)),
            _ => None,
        }
    }
}

/// The digest of the messages of user and assistant. System messages are not part of it: clients put the time of day
/// into them.
fn digest(before: &[ChatMessage], last: &str) -> [u8; 32] {
    let mut text = Vec::new();
    let mut add = |role: u8, content: &str| {
        text.push(role);
        text.extend((content.len() as u64).to_le_bytes());
        text.extend(content.as_bytes());
    };
    for message in before {
        match message {
            ChatMessage::User { content } => add(b'u', content),
            ChatMessage::Assistant { content, .. } => add(b'a', content),
            ChatMessage::System { .. } | ChatMessage::Tool { .. } => {}
        }
    }
    add(b'u', last);
    sha256(&text)
}

/// A request of a chat client.
#[derive(Debug, Clone, Copy)]
pub struct ChatRequest<'a> {
    /// The name of the agent.
    pub agent: &'a str,
    /// The conversation.
    pub messages: &'a ChatMessages,
    /// Whether the client says that it repeats a request.
    pub is_repeated: bool,
}

/// The run that answers a request of a chat client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReservedChat {
    /// Its id.
    pub run: RunId,
    /// Whether it exists. Otherwise it has to be started ([`ChatMessages::run`]).
    pub exists: bool,
    key: ChatKey,
}

/// What a chat client is answered.
#[derive(Debug, Clone)]
pub struct ChatAnswer {
    /// The run.
    pub run: RunId,
    /// How it ended, or that it waits for a person.
    pub end: RunEnd,
    /// The text of the agent; empty if it waits.
    pub text: String,
    /// The questions that it waits for.
    pub questions: Vec<Approval>,
    /// The usage since the last answer about the run.
    pub usage: Usage,
}

impl Service {
    /// The run that answers a request of a chat client: the one that waited for a person when the messages before were
    /// answered, the one of this very conversation if it waits or the request is repeated, or else a new one.
    ///
    /// # Errors
    /// If the identity may not run agents, there is no such agent, or it cannot be stored.
    pub fn reserve_chat(
        &self,
        identity: &Identity,
        request: &ChatRequest<'_>,
    ) -> Result<ReservedChat, ServiceError> {
        identity.require(Scope::Run)?;
        self.show_agent(identity, request.agent)?;
        let key = ChatKey {
            agent: request.agent.to_owned(),
            digest: request.messages.digest(),
            before: request.messages.digest_before(),
        };
        let new = self.stored()?.new_id()?;
        let (who, now) = (identity.person(), self.now());
        let store = self.store()?;
        let turn = store.reserve_chat_turn(who, &key, request.is_repeated, &new, now)?;
        Ok(ReservedChat {
            run: turn.run,
            exists: turn.exists,
            key,
        })
    }

    /// What a chat client is answered now, which is recorded. `None` while the run is under way.
    ///
    /// # Errors
    /// If the identity may not run agents, there is no such run, or it cannot be stored.
    pub fn answer_chat(
        &self,
        identity: &Identity,
        reserved: &ReservedChat,
    ) -> Result<Option<ChatAnswer>, ServiceError> {
        identity.require(Scope::Run)?;
        let (summary, store) = self.find_run(identity, reserved.run.as_str())?;
        if summary.state == RunState::Open {
            return Ok(None);
        }
        let status = self.show_run(identity, reserved.run.as_str())?;
        let (end, outcome) = match (&status.summary.state, &status.summary.end) {
            (RunState::Ended, Some(end)) => (end.clone(), ChatOutcome::Ended),
            // A decision that no worker has taken yet.
            (RunState::Waiting, _) if !status.questions.is_empty() => {
                (RunEnd::WaitingForPerson, ChatOutcome::Waiting)
            }
            _ => return Ok(None),
        };
        let total = status.run.as_ref().map(Run::usage).unwrap_or_default();
        let who = identity.person();
        let reported =
            store.record_chat_answer(who, &reserved.key, &reserved.run, outcome, total)?;
        let RunStatus { run, questions, .. } = status;
        let text = match (&run, outcome) {
            (Some(run), ChatOutcome::Ended) => run.response().answer().to_string(),
            _ => String::new(),
        };
        Ok(Some(ChatAnswer {
            run: reserved.run.clone(),
            end,
            text,
            questions,
            usage: Usage {
                input_tokens: total.input_tokens.saturating_sub(reported.input_tokens),
                output_tokens: total.output_tokens.saturating_sub(reported.output_tokens),
                ..Usage::default()
            },
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(texts: &[(char, &str)]) -> ChatMessages {
        let message = |(role, text): &(char, &str)| {
            let content = (*text).to_owned();
            match role {
                's' => ChatMessage::System { content },
                'u' => ChatMessage::User { content },
                _ => ChatMessage::Assistant {
                    content,
                    calls: Vec::new(),
                },
            }
        };
        ChatMessages::new(texts.iter().map(message).collect()).unwrap()
    }

    #[test]
    fn the_messages_before_are_those_of_the_request_before() {
        let first = messages(&[('s', "Be brief."), ('u', "Delete it.")]);
        assert_eq!(first.digest_before(), None);
        let second = messages(&[
            ('s', "It is noon."),
            ('u', "Delete it."),
            ('a', "Waiting."),
            ('u', "And now?"),
        ]);
        assert_eq!(second.digest_before(), Some(first.digest()));
        let third = messages(&[
            ('u', "Delete it."),
            ('a', "Waiting."),
            ('u', "And now?"),
            ('a', "Done."),
            ('u', "Thanks."),
        ]);
        assert_eq!(third.digest_before(), Some(second.digest()));
        let other = messages(&[('u', "Delete it"), ('a', ".Waiting."), ('u', "And now?")]);
        assert_ne!(other.digest_before(), Some(first.digest()));
    }

    #[test]
    fn a_conversation_ends_with_a_text_of_the_user() {
        let invalid = [
            Vec::new(),
            vec![ChatMessage::User {
                content: " ".to_owned(),
            }],
            vec![ChatMessage::System {
                content: "Be brief.".to_owned(),
            }],
        ];
        for messages in invalid {
            let error = ChatMessages::new(messages).unwrap_err();
            assert_eq!(error.code(), "invalid_conversation");
        }
    }
}
