//! The conversation with the model: what it is shown (the instruction, the task, and as many turns as
//! fit) and what it returned (mistakes and the answer). The task and the current turn are always shown.
//! The oldest turns are left out first, and a note says so.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::Value;
use windlass_spec::text::{TextUse, escape};
use windlass_spec::{Agent, CallRecord, NonEmptyText, ToolSpecification};

use super::answer::Answer;
use super::calls::{Entry, TurnState};
use super::event::{RecalledStrategy, Task};
use super::mistake::MistakeKind;
use super::progress::CallProgress;
use super::settings::Settings;
use crate::approval::canonical;
use crate::model::{ChatCall, ChatMessage, ModelRequest, RequestedArguments};

/// The approximate bytes per token; used only to keep requests within the context window.
const BYTES_PER_TOKEN: usize = 4;

/// How often requests may be shortened because one was too long for the model.
const MAX_SHORTENINGS: u32 = 3;

const HOW_TO_WORK: &str = "\
Work step by step: think, call a tool, look at what it returns, and go on. When you are done, call \
`finish` alone, with your answer, your reasoning, and your confidence from 0 to 1.";

/// The heading before the list of what no tool provides. Reflex parses it, too.
pub const NO_TOOL_NOTE: &str = "No tool here seems to do this:";

const NO_TOOL_INSTRUCTION: &str = "\
If you cannot do it without a tool, say in your answer plainly what could not be done for want of one. \
Never make up a result, and never say that something was done that was not.";

/// The conversation with the model.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Transcript {
    /// The maximum number of messages in a request.
    max_messages: usize,
    /// The maximum number of tokens in a request.
    context_tokens: usize,
    /// The maximum number of characters of one observation.
    max_observation: usize,
    /// How often a request was too long for the model. Each time halves the limits.
    shortenings: u32,
    /// The strategies that the model is shown; `None` before they are recalled.
    recalled: Option<Vec<RecalledStrategy>>,
    mistakes: BTreeMap<MistakeKind, u32>,
    /// Turns in a row with only mistakes.
    mistaken_turns: u32,
    answer: Option<Answer>,
}

impl Transcript {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            max_messages: settings.max_messages,
            context_tokens: settings.context_tokens,
            max_observation: settings.max_observation,
            shortenings: 0,
            recalled: None,
            mistakes: BTreeMap::new(),
            mistaken_turns: 0,
            answer: None,
        }
    }

    pub(super) fn recalled(&self) -> Option<&[RecalledStrategy]> {
        self.recalled.as_deref()
    }

    /// Sets the strategies that the model is shown.
    pub(super) fn recall(&mut self, strategies: &[RecalledStrategy]) {
        self.recalled = Some(strategies.to_vec());
    }

    pub(super) fn mistakes(&self) -> &BTreeMap<MistakeKind, u32> {
        &self.mistakes
    }

    /// Turns in a row with only mistakes.
    pub(super) fn mistaken_turns(&self) -> u32 {
        self.mistaken_turns
    }

    pub(super) fn answer(&self) -> Option<&Answer> {
        self.answer.as_ref()
    }

    /// Records a turn: whether it has calls, its mistakes, and the answer of the run.
    pub(super) fn apply(
        &mut self,
        has_calls: bool,
        mistakes: BTreeMap<MistakeKind, u32>,
        answer: Option<Answer>,
    ) {
        for (kind, count) in mistakes {
            *self.mistakes.entry(kind).or_default() += count;
        }
        self.answer = self.answer.take().or(answer);
        self.mistaken_turns = match has_calls || self.answer.is_some() {
            true => 0,
            false => self.mistaken_turns + 1,
        };
    }

    /// Shortens requests because one was too long for the model. Returns whether that is possible.
    pub(super) fn shorten(&mut self) -> bool {
        let can_shorten = self.shortenings < MAX_SHORTENINGS;
        self.shortenings += u32::from(can_shorten);
        can_shorten
    }

    /// The next request: what `agent` is shown of `task` and its `turns`. `missing` is what no tool
    /// provides.
    pub(super) fn request(
        &self,
        agent: &Agent,
        task: &Task,
        turns: &[TurnState],
        missing: &[&NonEmptyText],
        tools: Vec<Arc<ToolSpecification>>,
    ) -> ModelRequest {
        let head = vec![ChatMessage::System {
            content: self.system(agent, task, missing),
        }];
        let conversation = &task.conversation;
        let task = ChatMessage::User {
            content: task.description.clone(),
        };
        let turns: Vec<Vec<ChatMessage>> =
            turns.iter().map(|turn| self.turn_messages(turn)).collect();
        let (last, earlier) = match turns.split_last() {
            Some((last, earlier)) => (last.as_slice(), earlier),
            None => (&[][..], &[][..]),
        };
        let mut room = RequestBudget {
            messages: self.max_messages.saturating_sub(1),
            bytes: (self.context_tokens >> self.shortenings) * BYTES_PER_TOKEN,
        };
        room.take(&head);
        room.take(std::slice::from_ref(&task));
        room.take(last);
        let shown_turns = earlier
            .iter()
            .rev()
            .take_while(|messages| room.has(messages))
            .count();
        let shown_before = conversation
            .iter()
            .rev()
            .take_while(|message| room.has(std::slice::from_ref(*message)))
            .count();
        let mut messages = head;
        messages.extend_from_slice(&conversation[conversation.len() - shown_before..]);
        messages.push(task);
        let left_out = earlier.len() - shown_turns;
        if left_out > 0 {
            let content = format!("({left_out} earlier turns of this task are left out here.)");
            messages.push(ChatMessage::User { content });
        }
        messages.extend(earlier[left_out..].iter().flatten().cloned());
        messages.extend_from_slice(last);
        messages.iter_mut().for_each(show_hidden);
        ModelRequest { messages, tools }
    }

    /// Why no request can hold the task, if it is too long. A task is never cut, because that would
    /// change its meaning.
    pub(super) fn too_long(&self, task: &Task) -> Option<String> {
        let limit = self.context_tokens * BYTES_PER_TOKEN;
        let length = task.description.len();
        (length > limit).then(|| {
            format!(
                "the task has {length} bytes, and a model is shown at most {limit}; put the content \
                 where a tool can read it, and name the place in the task"
            )
        })
    }

    fn system(&self, agent: &Agent, task: &Task, missing: &[&NonEmptyText]) -> String {
        let mut text = agent.instruction().trim().to_owned();
        text.push_str("\n\n");
        text.push_str(HOW_TO_WORK);
        if !agent.flow().is_empty() {
            text.push_str("\n\nThe order of the work:");
            for step in agent.flow() {
                let _ = write!(text, "\n- `{}`, then `{}`", step.from, step.to);
            }
        }
        let given = task.strategies.iter().map(|given| given.trim());
        let recalled = self.recalled.iter().flatten();
        let strategies: Vec<&str> = given
            .chain(recalled.map(|recalled| recalled.text.as_str()))
            .collect();
        if !strategies.is_empty() {
            text.push_str("\n\nWhat worked before for tasks like this:");
            for strategy in strategies {
                let _ = write!(text, "\n- {strategy}");
            }
        }
        if !missing.is_empty() {
            let _ = write!(text, "\n\n{NO_TOOL_NOTE}");
            for missing in missing {
                // One line each, even if the text has line breaks.
                let words: Vec<&str> = missing.as_str().split_whitespace().collect();
                let _ = write!(text, "\n- {}", words.join(" "));
            }
            let _ = write!(text, "\n{NO_TOOL_INSTRUCTION}");
        }
        text
    }

    fn turn_messages(&self, turn: &TurnState) -> Vec<ChatMessage> {
        if let (true, [Entry::Mistake { mistake, .. }]) =
            (turn.answer.calls.is_empty(), &*turn.entries)
        {
            // There is no output of the model to show.
            return vec![ChatMessage::User {
                content: mistake.to_string(),
            }];
        }
        let id = |index: usize| format!("call_{}_{index}", turn.turn);
        let calls = turn
            .answer
            .calls
            .iter()
            .enumerate()
            .map(|(index, call)| ChatCall {
                id: id(index),
                tool: call.tool.clone(),
                arguments: match &call.arguments {
                    RequestedArguments::Json(value) => value.clone(),
                    RequestedArguments::Text(text) => Value::String(text.clone()),
                },
            });
        let mut messages = vec![ChatMessage::Assistant {
            content: turn.answer.text.clone(),
            calls: calls.collect(),
        }];
        for (index, (entry, call)) in turn.entries.iter().zip(&turn.answer.calls).enumerate() {
            messages.push(ChatMessage::Tool {
                call_id: id(index),
                tool: call.tool.clone(),
                content: self.observation(entry),
            });
        }
        messages
    }

    /// The observation of a call that the model is shown.
    pub(super) fn observation(&self, entry: &Entry) -> String {
        match entry {
            Entry::Finish => "The task is finished.".to_owned(),
            Entry::Mistake { mistake, .. } => mistake.to_string(),
            Entry::Call {
                record, progress, ..
            } => self.call_observation(record, progress),
        }
    }

    fn call_observation(&self, record: &CallRecord, progress: &CallProgress) -> String {
        let until = progress.held_until().filter(|_| progress.is_deferred());
        let mut text = match (record.outcome(), until) {
            (Some(Ok(result)), _) => self.shown(result),
            (Some(Err(failure)), _) => failure.model_message.clone(),
            (None, Some(until)) => {
                return format!(
                    "The call is scheduled: it runs at {until} unless a person undoes it. Continue."
                );
            }
            (None, None) => return "The call has not ended.".to_owned(),
        };
        if until.is_some() && record.was_permitted() {
            text = format!("The call was scheduled and has run since. {text}");
        }
        if progress.is_edited() {
            let ran = canonical(&Value::Object(record.arguments().clone()));
            text = format!("A person edited the arguments; the call was made with {ran}. {text}");
        }
        if let Some(report) = progress.report() {
            text = format!("{text} {report}");
        }
        text
    }

    /// A result as a model is shown it: text as it is, other values as JSON, cut if too long.
    pub(super) fn shown(&self, result: &Value) -> String {
        let text = match result {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let limit = self.max_observation >> self.shortenings;
        match text.char_indices().nth(limit) {
            None => text,
            Some((end, _)) => {
                let more = text[end..].chars().count();
                format!("{}… ({more} more characters are not shown)", &text[..end])
            }
        }
    }
}

/// Replaces hidden characters of a message with escapes, so that the model sees what a person would not. The
/// arguments of calls stay as the model wrote them.
fn show_hidden(message: &mut ChatMessage) {
    let (ChatMessage::System { content }
    | ChatMessage::User { content }
    | ChatMessage::Assistant { content, .. }
    | ChatMessage::Tool { content, .. }) = message;
    if let Cow::Owned(shown) = escape(content, TextUse::Model) {
        *content = shown;
    }
}

/// The remaining size of a request.
struct RequestBudget {
    messages: usize,
    bytes: usize,
}

impl RequestBudget {
    /// Uses up size for messages that must be shown.
    fn take(&mut self, messages: &[ChatMessage]) {
        let bytes: usize = messages.iter().map(ChatMessage::characters).sum();
        self.messages = self.messages.saturating_sub(messages.len());
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// Uses up size for messages that may be shown, if all of them fit.
    fn has(&mut self, messages: &[ChatMessage]) -> bool {
        let bytes: usize = messages.iter().map(ChatMessage::characters).sum();
        let fits = messages.len() <= self.messages && bytes <= self.bytes;
        if fits {
            self.take(messages);
        } else {
            // Older messages must not fill the gap.
            self.messages = 0;
            self.bytes = 0;
        }
        fits
    }
}

#[cfg(test)]
mod tests;
