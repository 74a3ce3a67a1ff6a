//! What a model is shown: the instruction, the task, and as many of the turns as fit. The task and
//! the current turn are always among it; what is left out is the oldest, and that is said.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::Value;
use windlass_spec::{CallRecord, NonEmptyText, ToolSpecification};

use super::stand::Stand;
use super::state::{Entry, Run, TurnState};
use crate::approval::canonical;
use crate::model::{ChatCall, ChatMessage, ModelRequest, RequestedArguments};

/// How many bytes a token has, roughly; used only to keep requests within a window.
const BYTES_PER_TOKEN: usize = 4;

const HOW_TO_WORK: &str = "\
Work step by step: think, call a tool, look at what it returns, and go on. When you are done, call \
`finish` alone, with your answer, your reasoning, and your confidence from 0 to 1.";

/// What comes before the list of what no tool seems to do. Reflex reads it, too.
pub const NO_TOOL_NOTE: &str = "No tool here seems to do this:";

const WHAT_TO_SAY: &str = "\
If you cannot do it without a tool, say in your answer plainly what could not be done for want of one. \
Never make up a result, and never say that something was done that was not.";

impl Run {
    /// What this run may use: the agent's tools, and its sub-agents as if they were tools.
    #[must_use]
    pub fn tools(&self) -> Vec<Arc<ToolSpecification>> {
        let available = self.task.available_tools.as_ref();
        let is_available = |tool: &&Arc<ToolSpecification>| {
            available.is_none_or(|names| names.iter().any(|name| name == tool.name().as_str()))
        };
        let is_shown = |tool: &&Arc<ToolSpecification>| {
            let offer = self.offer.as_ref();
            offer.is_none_or(|offer| offer.has(tool.name().as_str()))
        };
        let mut tools: Vec<_> = self.allowed_tools().filter(is_shown).cloned().collect();
        tools.extend(self.finding().cloned());
        // What an agent declares under the same name is its own.
        let people = self
            .people()
            .filter(|people| self.is_for_people(people.name().as_str()));
        tools.extend(people.filter(is_available).cloned());
        let planning = self
            .planning()
            .filter(|tool| self.is_planning(tool.name().as_str()));
        tools.extend(planning.filter(is_available).cloned());
        tools
    }

    /// The next request.
    pub(super) fn request(&self) -> ModelRequest {
        let head = vec![ChatMessage::System {
            content: self.system(),
        }];
        let task = ChatMessage::User {
            content: self.task.description.clone(),
        };
        let turns: Vec<Vec<ChatMessage>> = self
            .turns
            .iter()
            .map(|turn| self.turn_messages(turn))
            .collect();
        let (last, earlier) = match turns.split_last() {
            Some((last, earlier)) => (last.as_slice(), earlier),
            None => (&[][..], &[][..]),
        };
        let mut room = Room {
            messages: self.settings.max_messages.saturating_sub(1),
            bytes: (self.settings.context_tokens >> self.shortenings) * BYTES_PER_TOKEN,
        };
        room.take(&head);
        room.take(std::slice::from_ref(&task));
        room.take(last);
        let shown_turns = earlier
            .iter()
            .rev()
            .take_while(|messages| room.has(messages))
            .count();
        let conversation = &self.task.conversation;
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
        ModelRequest {
            messages,
            tools: self.tools(),
        }
    }

    /// Why no request can hold the task, if none can. It must not be cut: half a task is another one.
    pub(super) fn too_long(&self) -> Option<String> {
        let limit = self.settings.context_tokens * BYTES_PER_TOKEN;
        let length = self.task.description.len();
        (length > limit).then(|| {
            format!(
                "the task has {length} bytes, and a model is shown at most {limit}; put what it is \
                 about where a tool can read it, and say where"
            )
        })
    }

    fn system(&self) -> String {
        let mut text = self.agent.instruction().trim().to_owned();
        text.push_str("\n\n");
        text.push_str(HOW_TO_WORK);
        if !self.agent.flow().is_empty() {
            text.push_str("\n\nThe order of the work:");
            for step in self.agent.flow() {
                let _ = write!(text, "\n- `{}`, then `{}`", step.from, step.to);
            }
        }
        let given = self.task.strategies.iter().map(|given| given.trim());
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
        let missing = self.without_tool();
        if !missing.is_empty() {
            let _ = write!(text, "\n\n{NO_TOOL_NOTE}");
            for missing in missing {
                // One line each, whatever the words of the task.
                let words: Vec<&str> = missing.as_str().split_whitespace().collect();
                let _ = write!(text, "\n- {}", words.join(" "));
            }
            let _ = write!(text, "\n{WHAT_TO_SAY}");
        }
        text
    }

    /// What no tool does of what the task wants. A tool that is not configured is not among that: whoever
    /// calls it is told what to set, and can say so.
    fn without_tool(&self) -> Vec<&NonEmptyText> {
        let Some(gap) = self.offer.as_ref().and_then(|offer| offer.gap.as_ref()) else {
            return Vec::new();
        };
        let is_there = |missing: &NonEmptyText| {
            let mut told = gap.capabilities().iter();
            told.any(|told| told.capability == *missing && told.because.is_some())
        };
        let missing = gap.missing_tools().iter();
        missing.filter(|missing| !is_there(missing)).collect()
    }

    fn turn_messages(&self, turn: &TurnState) -> Vec<ChatMessage> {
        if let (true, [Entry::Mistake { mistake, .. }]) =
            (turn.answer.calls.is_empty(), &*turn.entries)
        {
            // There is nothing the model said to show it.
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

    /// What the model is told came of a call.
    pub(super) fn observation(&self, entry: &Entry) -> String {
        match entry {
            Entry::Finish => "The task is finished.".to_owned(),
            Entry::Mistake { mistake, .. } => mistake.to_string(),
            Entry::Call { record, stand, .. } => self.observed(record, stand),
        }
    }

    fn observed(&self, record: &CallRecord, stand: &Stand) -> String {
        let held = stand.held.filter(|held| held.is_deferred);
        let mut text = match (record.outcome(), held) {
            (Some(Ok(result)), _) => self.shown(result),
            (Some(Err(failure)), _) => failure.model_message.clone(),
            (None, Some(held)) => {
                return format!(
                    "The call is scheduled: it runs at {} unless a person undoes it. Go on.",
                    held.until
                );
            }
            (None, None) => return "The call has not ended.".to_owned(),
        };
        if held.is_some() && record.was_permitted() {
            text = format!("The call was scheduled and has run since. {text}");
        }
        if stand.is_edited() {
            let ran = canonical(&Value::Object(record.arguments().clone()));
            text = format!("A person changed the arguments; the call was made with {ran}. {text}");
        }
        if let Some(word) = &stand.word {
            text = format!("{text} {word}");
        }
        text
    }

    /// A result as a model is shown it: texts as they are, the rest as JSON, cut if very long.
    pub(super) fn shown(&self, result: &Value) -> String {
        let text = match result {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let limit = self.settings.max_observation >> self.shortenings;
        match text.char_indices().nth(limit) {
            None => text,
            Some((end, _)) => {
                let more = text[end..].chars().count();
                format!("{}… ({more} more characters are not shown)", &text[..end])
            }
        }
    }
}

/// What a request may still hold.
struct Room {
    messages: usize,
    bytes: usize,
}

impl Room {
    /// Takes room for what must be shown, as far as there is any.
    fn take(&mut self, messages: &[ChatMessage]) {
        let bytes: usize = messages.iter().map(ChatMessage::characters).sum();
        self.messages = self.messages.saturating_sub(messages.len());
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// Takes room for what may be shown, if all of it fits.
    fn has(&mut self, messages: &[ChatMessage]) -> bool {
        let bytes: usize = messages.iter().map(ChatMessage::characters).sum();
        let fits = messages.len() <= self.messages && bytes <= self.bytes;
        if fits {
            self.take(messages);
        } else {
            // What is older must not jump the gap.
            self.messages = 0;
            self.bytes = 0;
        }
        fits
    }
}
