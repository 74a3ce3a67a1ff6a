//! The conversation with the model: what it is shown (the instruction, the task, and as many turns as
//! fit) and what it returned (mistakes and the answer). The task and the current turn are always shown.
//! The oldest turns are left out first, and a note says so.
//!
//! The messages of a turn are made once, when it has ended. Each request shares them with the one before, and
//! begins with the same messages until turns have to be left out: then several are left out at once.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::Value;
use windlass_spec::reserved::ASK_HUMAN;
use windlass_spec::text::{TextUse, escape};
use windlass_spec::{
    Agent, CallRecord, CallState, NonEmptyText, StrategySection, ToolSpecification,
};

use super::answer::Answer;
use super::calls::{Entry, TurnState};
use super::event::{Event, IntentAdvice, RecalledStrategy, Task};
use super::mistake::MistakeKind;
use super::progress::CallProgress;
use super::reading::TurnSummary;
use super::settings::Settings;
use crate::approval::sorted_json;
use crate::model::{ChatCall, ChatMessage, ModelErrorKind, ModelRequest, RequestedArguments};

/// The approximate bytes per token; used only to keep requests within the context window.
const BYTES_PER_TOKEN: usize = 4;

/// How often requests may be shortened because one was too long for the model.
const MAX_SHORTENINGS: u32 = 3;

/// The share of a request that turns may use.
const ROOM: (usize, usize) = (1, 1);

/// The share that they use after some were left out.
const ROOM_AFTER_CUT: (usize, usize) = (3, 4);

/// The instructions for a model without what was learned from earlier runs, which differs from day to day.
#[must_use]
pub fn without_learned(system: &str) -> String {
    let parts = system.split("\n\n");
    let learned = [STRATEGIES_HEADING, PITFALLS_HEADING, OBSERVATIONS_HEADING];
    let is_learned = |part: &&str| learned.iter().any(|heading| part.starts_with(heading));
    let kept: Vec<&str> = parts.filter(|part| !is_learned(part)).collect();
    kept.join("\n\n")
}

/// The start of the observation of a call whose arguments were edited.
pub(super) const EDITED: &str = "A person edited the arguments";

/// What became of it if it was not made.
pub(super) const NOT_MADE: &str = "the call was not made";

const HOW_TO_WORK: &str = "\
Work step by step: think, call a tool, look at what it returns, and go on. When you are done, call \
`finish` alone, with your answer, your reasoning, and your confidence from 0 to 1.";

/// The heading before the strategies that worked. Reflex parses it, too.
pub const STRATEGIES_HEADING: &str = "What worked before for tasks like this:";

/// The heading before the pitfalls: what to avoid. Reflex parses it, too.
pub const PITFALLS_HEADING: &str = "What failed before for tasks like this, and is to be avoided:";

/// The heading before the observations, which advise neither for nor against tools. Reflex parses it, too.
pub const OBSERVATIONS_HEADING: &str = "What was observed before in tasks like this:";

/// The heading before what the intent of the task suggests. Reflex parses it, too.
pub const INTENT_HEADING: &str = "What a task like this needs:";

/// The heading before the list of what no tool provides. Reflex parses it, too.
pub const NO_TOOL_NOTE: &str = "No tool here seems to do this:";

/// The words before what to try instead of a call that failed. Reflex parses them, too.
pub const ALTERNATIVES: &str = "If this way does not work:";

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
    /// What the model reads about the intent of the task.
    advice: Option<IntentAdvice>,
    mistakes: BTreeMap<MistakeKind, u32>,
    /// Turns in a row with only mistakes.
    mistaken_turns: u32,
    answer: Option<Answer>,
    /// The system prompt.
    head: Shown,
    /// The conversation before the task.
    conversation: Vec<Shown>,
    task: Shown,
    /// The messages of the turns that have ended and are shown.
    ended: VecDeque<Shown>,
    /// How many turns are not shown any more: those before the first of `ended`.
    left_out: usize,
    /// The message that says so.
    note: Option<Arc<ChatMessage>>,
}

/// Messages that are shown together or not at all.
#[derive(Debug, Clone, PartialEq, Default)]
struct Shown {
    messages: Vec<Arc<ChatMessage>>,
    bytes: usize,
}

impl Shown {
    fn new(mut messages: Vec<ChatMessage>) -> Self {
        let bytes = messages.iter().map(ChatMessage::characters).sum();
        messages.iter_mut().for_each(show_hidden);
        let messages = messages.into_iter().map(Arc::new).collect();
        Self { messages, bytes }
    }
}

impl Transcript {
    pub(super) fn new(settings: &Settings, task: &Task) -> Self {
        let content = task.description.clone();
        Self {
            head: Shown::default(),
            conversation: grouped(&task.conversation),
            task: Shown::new(vec![ChatMessage::User { content }]),
            ended: VecDeque::new(),
            left_out: 0,
            note: None,
            max_messages: settings.max_messages,
            context_tokens: settings.context_tokens,
            max_observation: settings.max_observation,
            shortenings: 0,
            recalled: None,
            advice: None,
            mistakes: BTreeMap::new(),
            mistaken_turns: 0,
            answer: None,
        }
    }

    pub(super) fn recalled(&self) -> Option<&[RecalledStrategy]> {
        self.recalled.as_deref()
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

    /// Applies an event. `summary` is what the model's answer means, if the event is one.
    pub(super) fn apply(&mut self, event: &Event, summary: Option<TurnSummary>) {
        match event {
            Event::Recalled { strategies, .. } => self.recalled = Some(strategies.clone()),
            // The first one counts.
            Event::Offered {
                advice: Some(advice),
                ..
            } if self.advice.is_none() => self.advice = Some((**advice).clone()),
            Event::ModelFailed {
                kind: ModelErrorKind::ContextTooLong,
                ..
            } => self.shortenings += u32::from(self.can_shorten()),
            _ => {}
        }
        if let Some(summary) = summary {
            self.take_turn(summary);
        }
    }

    /// Counts the mistakes of a turn, and keeps the first answer.
    fn take_turn(&mut self, summary: TurnSummary) {
        for (kind, count) in summary.mistakes {
            *self.mistakes.entry(kind).or_default() += count;
        }
        self.answer = self.answer.take().or(summary.answer);
        self.mistaken_turns = match summary.has_calls || self.answer.is_some() {
            true => 0,
            false => self.mistaken_turns + 1,
        };
    }

    /// Whether requests can be shortened once more, because one was too long for the model.
    pub(super) fn can_shorten(&self) -> bool {
        self.shortenings < MAX_SHORTENINGS
    }

    /// Makes the messages of the turns again that have ended and are shown, after requests were shortened.
    pub(super) fn show_again(&mut self, ended: &[TurnState]) {
        self.ended = ended.iter().map(|turn| self.show_turn(turn)).collect();
    }

    /// Sets the system prompt: the instructions of `agent` for `task`. `missing` is what no tool provides, and
    /// `can_ask` whether the model can ask a person.
    pub(super) fn set_system(
        &mut self,
        agent: &Agent,
        task: &Task,
        missing: &[&NonEmptyText],
        can_ask: bool,
    ) {
        let content = self.system(agent, task, missing, can_ask);
        self.head = Shown::new(vec![ChatMessage::System { content }]);
    }

    /// Adds the next turn that has ended.
    pub(super) fn end_turn(&mut self, turn: &TurnState) {
        let shown = self.show_turn(turn);
        self.ended.push_back(shown);
    }

    /// How many turns are not shown any more. It never decreases.
    pub(super) fn left_out(&self) -> usize {
        self.left_out
    }

    /// Leaves out the turns that do not fit into the next request. `open` are the turns that may still change.
    pub(super) fn leave_out(&mut self, open: &[TurnState]) {
        let open: Vec<Shown> = open.iter().map(|turn| self.show_turn(turn)).collect();
        if self.fitting(&open, ROOM) == self.ended.len() + open.len() {
            return;
        }
        // Some more, so that the next requests begin with the same messages.
        let fitting = self.fitting(&open, ROOM_AFTER_CUT).max(1);
        let surplus = (self.ended.len() + open.len()).saturating_sub(fitting);
        let surplus = surplus.min(self.ended.len());
        self.ended.drain(..surplus);
        if surplus > 0 {
            self.left_out += surplus;
            self.note = left_out_note(self.left_out);
        }
    }

    /// How many of the latest turns fit into that share of a request.
    fn fitting(&self, open: &[Shown], (numerator, denominator): (usize, usize)) -> usize {
        let mut room = self.room();
        room.messages = room.messages * numerator / denominator;
        room.bytes = room.bytes / denominator * numerator;
        room.take(&self.head);
        room.take(&self.task);
        let mut turns = self.ended.iter().chain(open).rev();
        let last = turns.next();
        last.into_iter().for_each(|last| room.take(last));
        usize::from(last.is_some()) + turns.take_while(|turn| room.has(turn)).count()
    }

    fn room(&self) -> RequestBudget {
        RequestBudget {
            messages: self.max_messages.saturating_sub(1),
            bytes: (self.context_tokens >> self.shortenings) * BYTES_PER_TOKEN,
        }
    }

    /// The next request. `open` are the turns that may still change.
    pub(super) fn request(
        &self,
        open: &[TurnState],
        tools: Vec<Arc<ToolSpecification>>,
    ) -> ModelRequest {
        let open: Vec<Shown> = open.iter().map(|turn| self.show_turn(turn)).collect();
        let fitting = self.fitting(&open, ROOM);
        let turns = self.ended.iter().chain(&open);
        let surplus = (self.ended.len() + open.len()).saturating_sub(fitting);
        let turns = turns.skip(surplus);
        let left_out = self.left_out + surplus;
        let mut room = self.room();
        room.take(&self.head);
        room.take(&self.task);
        turns.clone().for_each(|turn| room.take(turn));
        // Where turns are left out, nothing older is shown.
        let before = self.conversation.iter().rev().filter(|_| left_out == 0);
        let before = before.take_while(|message| room.has(message)).count();
        let before = &self.conversation[self.conversation.len() - before..];
        let mut messages = self.head.messages.clone();
        messages.extend(before.iter().flat_map(|shown| &shown.messages).cloned());
        messages.extend_from_slice(&self.task.messages);
        messages.extend(match surplus {
            0 => self.note.clone(),
            _ => left_out_note(left_out),
        });
        messages.extend(turns.flat_map(|turn| &turn.messages).cloned());
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

    fn system(
        &self,
        agent: &Agent,
        task: &Task,
        missing: &[&NonEmptyText],
        can_ask: bool,
    ) -> String {
        let mut text = agent.instruction().trim().to_owned();
        text.push_str("\n\n");
        text.push_str(HOW_TO_WORK);
        if !agent.flow().is_empty() {
            text.push_str("\n\nThe order of the work:");
            for step in agent.flow() {
                let _ = write!(text, "\n- `{}`, then `{}`", step.from, step.to);
            }
        }
        let given = task.strategies.iter().map(|given| one_line(given));
        let recalled = |section| {
            let recalled = self.recalled.iter().flatten();
            recalled
                .filter(move |recalled| recalled.section == section)
                .map(naming_its_tools)
        };
        let worked = given.chain(recalled(StrategySection::Strategies));
        list(&mut text, STRATEGIES_HEADING, worked);
        let failed = recalled(StrategySection::Pitfalls);
        list(&mut text, PITFALLS_HEADING, failed);
        let observed = recalled(StrategySection::Observations);
        list(&mut text, OBSERVATIONS_HEADING, observed);
        let advice = self
            .advice
            .iter()
            .flat_map(|advice| describe(advice, can_ask));
        list(&mut text, INTENT_HEADING, advice);
        if !missing.is_empty() {
            let _ = write!(text, "\n\n{NO_TOOL_NOTE}");
            for missing in missing {
                let _ = write!(text, "\n- {}", one_line(missing.as_str()));
            }
            let _ = write!(text, "\n{NO_TOOL_INSTRUCTION}");
        }
        text
    }

    fn show_turn(&self, turn: &TurnState) -> Shown {
        Shown::new(self.turn_messages(turn))
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
                untrusted: false,
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
            (Some(Err(failure)), _) => {
                let alternatives = self.alternatives(record);
                format!("{}{alternatives}", failure.model_message)
            }
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
            let ran = sorted_json(&Value::Object(record.arguments().clone()));
            text = match record.was_permitted() {
                true => {
                    format!("{EDITED}; the call was made with {ran}. {text}")
                }
                false => {
                    format!("{EDITED} to {ran}; {NOT_MADE}. {text}")
                }
            };
        }
        if let (Some(Err(_)), retries @ 1..) = (record.outcome(), progress.retries()) {
            text = format!("{text} (The call was tried {} times.)", retries + 1);
        }
        if let Some(of) = progress.reused() {
            text = format!(
                "{text}\n(You made exactly this call before (turn {}); this is its result.)",
                of.turn
            );
        }
        if let Some(report) = progress.report() {
            text = format!("{text} {report}");
        }
        text
    }

    /// What to try instead of a call that failed, if the intent of the task suggests its tool.
    fn alternatives(&self, record: &CallRecord) -> String {
        let has_failed = record.was_permitted()
            && matches!(record.state(), CallState::Error | CallState::Timeout);
        let advice = self.advice.as_ref().filter(|advice| {
            has_failed && advice.tools.contains(record.tool_name()) && !advice.fallbacks.is_empty()
        });
        advice.map_or_else(String::new, |advice| {
            let fallbacks = advice
                .fallbacks
                .iter()
                .map(|other| one_line(other.as_str()));
            let fallbacks: Vec<String> = fallbacks.collect();
            format!(" {ALTERNATIVES} {}.", fallbacks.join("; "))
        })
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

/// Adds a heading and the texts below it, if there are any.
fn list(text: &mut String, heading: &str, texts: impl Iterator<Item = String>) {
    for (place, one) in texts.enumerate() {
        if place == 0 {
            let _ = write!(text, "\n\n{heading}");
        }
        let _ = write!(text, "\n- {one}");
    }
}

/// What the intent of a task suggests, as items of a list.
fn describe(advice: &IntentAdvice, can_ask: bool) -> impl Iterator<Item = String> {
    // With one tool there is nothing to choose.
    let tools = (advice.tools.len() > 1).then(|| {
        let names = advice.tools.iter().map(|tool| format!("`{tool}`"));
        let names: Vec<String> = names.collect();
        format!("Tools that suit it, best first: {}.", names.join(", "))
    });
    let needs = (!advice.needs.is_empty()).then(|| {
        let needs: Vec<String> = advice
            .needs
            .iter()
            .map(|need| one_line(need.as_str()))
            .collect();
        let what = match can_ask {
            true => format!("Ask with `{ASK_HUMAN}` for what is stated nowhere."),
            false => "Name in your answer what is stated nowhere.".to_owned(),
        };
        format!("To know: {}. {what}", needs.join("; "))
    });
    tools.into_iter().chain(needs)
}

/// A text in one line, so that it cannot look like several items of a list or like another heading.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The text of a strategy, followed by its tools unless the text names all of them in their order.
fn naming_its_tools(recalled: &RecalledStrategy) -> String {
    let text = one_line(&recalled.text);
    let names = recalled.sequence.iter().map(|tool| format!("`{tool}`"));
    let names: Vec<String> = names.collect();
    let mut rest = text.as_str();
    let is_named = names.iter().all(|name| {
        let found = rest.split_once(name.as_str());
        rest = found.map_or("", |(_, after)| after);
        found.is_some()
    });
    match is_named {
        true => text,
        false => format!("{text} Tools: {}.", names.join(", then ")),
    }
}

/// The messages of a conversation in groups: calls and their results are shown together or not at all,
/// because providers refuse one without the other.
fn grouped(conversation: &[ChatMessage]) -> Vec<Shown> {
    let mut groups: Vec<Vec<ChatMessage>> = Vec::new();
    for message in conversation {
        match (message, groups.last_mut()) {
            (ChatMessage::Tool { .. }, Some(group)) => group.push(message.clone()),
            _ => groups.push(vec![message.clone()]),
        }
    }
    groups.into_iter().map(Shown::new).collect()
}

/// The message that turns are left out, if there are any.
fn left_out_note(count: usize) -> Option<Arc<ChatMessage>> {
    let content = format!("({count} earlier turns of this task are left out here.)");
    (count > 0).then(|| Arc::new(ChatMessage::User { content }))
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
    fn take(&mut self, shown: &Shown) {
        self.messages = self.messages.saturating_sub(shown.messages.len());
        self.bytes = self.bytes.saturating_sub(shown.bytes);
    }

    /// Uses up size for messages that may be shown, if all of them fit.
    fn has(&mut self, shown: &Shown) -> bool {
        let fits = shown.messages.len() <= self.messages && shown.bytes <= self.bytes;
        if fits {
            self.take(shown);
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
