//! Builds the bodies of requests. What the turn before has written is kept: the definitions of the tools,
//! and the conversation up to where the next request differs from it.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use windlass_core::model::{ChatMessage, FINISH, ModelRequest, finish_schema};
use windlass_spec::ToolSpecification;

use super::endpoint::Endpoint;
use super::names::WireNames;
use super::protocol::{
    BodyParts, CallResult, JsonList, JsonResult, ToolDefinition, Turn, WireFormat, WireTarget,
};
use super::{Form, HostedSettings};
use crate::definition::{shown_description, shown_schema};
use crate::dialect::{Speaker, conversation, schema};

/// The most conversations that are kept, for runs at the same time.
const MOST_CONVERSATIONS: usize = 16;

/// The most bytes of all conversations that are kept.
const MOST_BYTES: usize = 8 * 1024 * 1024;

/// A request, ready to be sent.
pub(super) struct PreparedRequest {
    pub(super) body: Bytes,
    pub(super) tools: Arc<PreparedTools>,
}

/// The tools of a request.
pub(super) struct PreparedTools {
    tools: Vec<Arc<ToolSpecification>>,
    pub(super) names: WireNames,
    json: Vec<u8>,
}

/// Builds the bodies of one model's requests.
pub(super) struct BodyBuilder {
    endpoint: Arc<Endpoint>,
    format: &'static dyn WireFormat,
    tools: Mutex<Option<Arc<PreparedTools>>>,
    /// The newest is the last.
    conversations: Mutex<Vec<Conversation>>,
}

/// A conversation as it was written.
struct Conversation {
    /// The tools that calls in it were named by.
    tools: Arc<PreparedTools>,
    messages: Vec<Arc<ChatMessage>>,
    /// The length of the list after each message. The results of a turn are one item in some protocols, so
    /// only their last has one.
    ends: Vec<Option<usize>>,
    list: JsonList,
}

impl BodyBuilder {
    pub(super) fn new(endpoint: Arc<Endpoint>) -> Self {
        Self {
            format: endpoint.protocol.format(),
            endpoint,
            tools: Mutex::default(),
            conversations: Mutex::default(),
        }
    }

    pub(super) fn build(
        &self,
        request: &ModelRequest,
        form: Form,
        settings: &HostedSettings,
    ) -> Result<PreparedRequest, serde_json::Error> {
        let tools = self.prepare_tools(request)?;
        let (turns, system, answer_schema) = match form {
            Form::Native => {
                let systems = request
                    .messages
                    .iter()
                    .filter_map(|message| match &**message {
                        ChatMessage::System { content } => Some(content.as_str()),
                        _ => None,
                    });
                let turns = self.native_turns(request, &tools)?;
                (turns, self.system(systems), None)
            }
            Form::Structured => {
                let lines = conversation(request);
                let mut list = JsonList::new();
                for line in &lines {
                    let turn = match line.speaker {
                        Speaker::System => Turn::System(&line.text),
                        Speaker::User => Turn::User(&line.text),
                        Speaker::Assistant => Turn::Assistant {
                            text: &line.text,
                            calls: &[],
                        },
                    };
                    self.write_turn(&mut list, &turn, &tools)?;
                }
                let systems = lines
                    .iter()
                    .filter(|line| line.speaker == Speaker::System)
                    .map(|line| line.text.as_str());
                let system = self.system(systems);
                let takes_schema = self.endpoint.protocol.takes_schema();
                let answer_schema = takes_schema.then(|| schema(request));
                (list.into_bytes(), system, answer_schema)
            }
        };
        let shown_tools: &[u8] = match form {
            Form::Native => &tools.json,
            Form::Structured => &[],
        };
        let mut body = Vec::with_capacity(turns.len() + shown_tools.len() + 512);
        self.format.write_body(
            &mut body,
            &BodyParts {
                model: &self.endpoint.model,
                system,
                tools: shown_tools,
                turns: &turns,
                temperature: settings.temperature,
                max_output_tokens: settings.max_output_tokens,
                answer_schema,
            },
        )?;
        Ok(PreparedRequest {
            body: body.into(),
            tools,
        })
    }

    /// The system messages of a protocol that has a field for them.
    fn system<'a>(&self, messages: impl Iterator<Item = &'a str>) -> Option<String> {
        if self.format.has_system_messages() {
            return None;
        }
        let messages: Vec<&str> = messages.collect();
        (!messages.is_empty()).then(|| messages.join("\n\n"))
    }

    /// The tools of a request; those of the one before, if they are the same.
    fn prepare_tools(
        &self,
        request: &ModelRequest,
    ) -> Result<Arc<PreparedTools>, serde_json::Error> {
        let mut kept = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = |kept: &&Arc<PreparedTools>| {
            let mut pairs = kept.tools.iter().zip(&request.tools);
            kept.tools.len() == request.tools.len() && pairs.all(|(a, b)| Arc::ptr_eq(a, b))
        };
        if let Some(same) = kept.as_ref().filter(is_same) {
            return Ok(Arc::clone(same));
        }
        let names = WireNames::new(request);
        let mut list = JsonList::new();
        for tool in &request.tools {
            let definition = ToolDefinition {
                name: &names.wire_name(tool.name().as_str()),
                description: shown_description(tool),
                schema: shown_schema(tool),
            };
            self.format.write_tool(&mut list, &definition)?;
        }
        let finish = ToolDefinition {
            name: &names.wire_name(FINISH),
            description: "Ends the task with its answer.".into(),
            schema: finish_schema(),
        };
        self.format.write_tool(&mut list, &finish)?;
        let prepared = Arc::new(PreparedTools {
            tools: request.tools.clone(),
            names,
            json: list.into_bytes(),
        });
        *kept = Some(Arc::clone(&prepared));
        Ok(prepared)
    }

    /// The conversation with native calls.
    fn native_turns(
        &self,
        request: &ModelRequest,
        tools: &Arc<PreparedTools>,
    ) -> Result<Vec<u8>, serde_json::Error> {
        let (mut conversation, same) = self.take(&request.messages, tools);
        conversation.keep(same);
        self.extend(&mut conversation, &request.messages)?;
        let open = conversation.list.as_open_bytes();
        let mut turns = Vec::with_capacity(open.len() + 1);
        turns.extend_from_slice(open);
        turns.push(b']');
        self.put_back(conversation);
        Ok(turns)
    }

    /// The kept conversation that `messages` continues, and how many of its messages are the same.
    fn take(
        &self,
        messages: &[Arc<ChatMessage>],
        tools: &Arc<PreparedTools>,
    ) -> (Conversation, usize) {
        let mut kept = self.lock();
        let best = kept
            .iter()
            .enumerate()
            .filter(|(_, conversation)| Arc::ptr_eq(&conversation.tools, tools))
            .map(|(index, conversation)| (conversation.count_same(messages), index))
            .max();
        match best {
            // Conversations often have the system message in common and nothing else.
            Some((same, index)) if same > 1 => (kept.remove(index), same),
            _ => {
                let conversation = Conversation {
                    tools: Arc::clone(tools),
                    messages: Vec::new(),
                    ends: Vec::new(),
                    list: JsonList::new(),
                };
                (conversation, 0)
            }
        }
    }

    fn put_back(&self, conversation: Conversation) {
        let mut kept = self.lock();
        kept.push(conversation);
        let bytes = |kept: &[Conversation]| kept.iter().map(|one| one.list.len()).sum::<usize>();
        while kept.len() > MOST_CONVERSATIONS || bytes(&kept) > MOST_BYTES {
            kept.remove(0);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Conversation>> {
        self.conversations
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the messages that are not in the conversation yet.
    fn extend(&self, conversation: &mut Conversation, messages: &[Arc<ChatMessage>]) -> JsonResult {
        let mut next = conversation.messages.len();
        while let Some(message) = messages.get(next) {
            let turn = match &**message {
                ChatMessage::System { content } => Turn::System(content),
                ChatMessage::User { content } => Turn::User(content),
                ChatMessage::Assistant { content, calls } => Turn::Assistant {
                    text: content,
                    calls,
                },
                ChatMessage::Tool { .. } => Turn::Results(results_at(&messages[next..])),
            };
            let count = match &turn {
                Turn::Results(results) => results.len(),
                _ => 1,
            };
            self.write_turn(&mut conversation.list, &turn, &conversation.tools)?;
            conversation
                .messages
                .extend_from_slice(&messages[next..next + count]);
            next += count;
            conversation.ends.resize(next - 1, None);
            conversation.ends.push(Some(conversation.list.len()));
        }
        Ok(())
    }

    fn write_turn(
        &self,
        list: &mut JsonList,
        turn: &Turn<'_>,
        tools: &PreparedTools,
    ) -> JsonResult {
        let target = WireTarget {
            model: &self.endpoint.model,
            names: &tools.names,
        };
        self.format.write_turn(list, turn, &target)
    }
}

/// The results at the start of `messages`: providers require those of a turn's calls together.
fn results_at(messages: &[Arc<ChatMessage>]) -> Vec<CallResult<'_>> {
    let results = messages.iter().map_while(|message| match &**message {
        ChatMessage::Tool {
            call_id,
            tool,
            content,
            ..
        } => Some(CallResult {
            id: call_id,
            tool,
            content,
        }),
        _ => None,
    });
    results.collect()
}

impl Conversation {
    /// How many messages at the start are the same, up to the end of a turn.
    fn count_same(&self, messages: &[Arc<ChatMessage>]) -> usize {
        let pairs = self.messages.iter().zip(messages);
        // A run shares the messages of its requests.
        let is_same = |(ours, theirs): &(&Arc<ChatMessage>, &Arc<ChatMessage>)| {
            Arc::ptr_eq(ours, theirs) || ours == theirs
        };
        let mut same = pairs.take_while(is_same).count();
        // Results that go on were written as a whole that is now longer.
        let is_result = |message: Option<&Arc<ChatMessage>>| {
            message.is_some_and(|one| matches!(**one, ChatMessage::Tool { .. }))
        };
        if is_result(messages.get(same)) {
            while same > 0 && is_result(messages.get(same - 1)) {
                same -= 1;
            }
        }
        while same > 0 && self.ends[same - 1].is_none() {
            same -= 1;
        }
        same
    }

    /// Keeps the first `count` messages.
    fn keep(&mut self, count: usize) {
        let end = count.checked_sub(1).and_then(|last| self.ends[last]);
        self.list.truncate(end.unwrap_or(JsonList::new().len()));
        self.messages.truncate(count);
        self.ends.truncate(count);
    }
}

#[cfg(test)]
mod tests;
