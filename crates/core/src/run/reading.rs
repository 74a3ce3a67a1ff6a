//! Parses a model's answer: which of its calls are well-formed and of what kind, which are mistakes, and
//! whether it finishes. Only here does a name that a model used become a kind of call.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use windlass_spec::text::{TextUse, strip};
use windlass_spec::{
    CallChange, CallId, CallRecord, Confidence, Effect, Failure, Misfit, RiskLevel, Timestamp,
    ToolName, ToolSpecification, nearest_all,
};

use super::answer::Answer;
use super::calls::{Calls, Entry, TurnState};
use super::history::History;
use super::mistake::{Mistake, MistakeKind};
use super::repair::repair_json;
use super::toolbox::{Requested, Toolbox};
use super::transcript::Transcript;
use crate::model::{FINISH, ModelAnswer, RequestedArguments, RequestedCall};

/// How many names are suggested for one that does not exist.
const SUGGESTIONS: usize = 3;

/// The context for parsing an answer: the run as it was when the model was asked.
pub(super) struct Reader<'r> {
    pub(super) toolbox: &'r Toolbox,
    pub(super) calls: &'r Calls,
    pub(super) history: &'r History,
    pub(super) transcript: &'r Transcript,
    pub(super) max_calls_per_turn: u32,
    /// Whether calls may be answered with the results of the same calls before.
    pub(super) reuses_results: bool,
    /// When the model was asked.
    pub(super) asked_at: Timestamp,
    /// When it answered.
    pub(super) at: Timestamp,
}

/// What an answer means for the conversation as a whole.
#[derive(Default)]
pub(super) struct TurnSummary {
    /// Whether it has well-formed calls.
    pub(super) has_calls: bool,
    /// The answer of the run, if the model finished.
    pub(super) answer: Option<Answer>,
    /// How often the model made which mistake.
    pub(super) mistakes: BTreeMap<MistakeKind, u32>,
}

/// An answer that is being parsed.
struct ReadAnswer {
    turn: TurnState,
    answer: Option<Answer>,
    mistakes: BTreeMap<MistakeKind, u32>,
    /// How many calls ask for what is known.
    repetitions: usize,
}

impl Reader<'_> {
    pub(super) fn read(&self, answer: ModelAnswer) -> (TurnState, TurnSummary) {
        let mut read = ReadAnswer {
            turn: TurnState {
                turn: self.calls.current_turn(),
                asked_at: self.asked_at,
                ended_at: self.at,
                answer,
                entries: Vec::new(),
            },
            answer: None,
            mistakes: BTreeMap::new(),
            repetitions: 0,
        };
        for index in 0..read.turn.answer.calls.len() {
            let entry = self.requested(index, &mut read);
            let entry = entry.unwrap_or_else(|mistake| self.mistake_entry(index, &read, mistake));
            read.turn.entries.push(entry);
        }
        self.read_finish(&mut read);
        if read.turn.answer.calls.is_empty() && !read.take_text() {
            let entry = self.mistake_entry(0, &read, Mistake::EmptyAnswer);
            read.turn.entries.push(entry);
        }
        for entry in &read.turn.entries {
            if let Entry::Mistake { mistake, .. } = entry {
                *read.mistakes.entry(mistake.kind()).or_default() += 1;
            }
        }
        let summary = TurnSummary {
            has_calls: read.turn.entries.iter().filter_map(Entry::call).count() > read.repetitions,
            answer: read.answer,
            mistakes: read.mistakes,
        };
        (read.turn, summary)
    }

    /// Parses one requested call.
    fn requested(&self, index: usize, read: &mut ReadAnswer) -> Result<Entry, Mistake> {
        let id = self.calls.id_of(read.turn.turn, index);
        let limit = self.max_calls_per_turn;
        let Some(requested) = read.turn.answer.calls.get(index) else {
            return Err(Mistake::EmptyAnswer);
        };
        if id.index >= limit {
            return Err(Mistake::TooManyCalls { limit });
        }
        let (kind, tool) = match self.toolbox.resolve_call(&requested.tool) {
            Some(Requested::Finish) => return Ok(Entry::Finish),
            Some(Requested::Call(kind, tool)) => (kind, tool),
            None => return Err(self.unknown_tool(&requested.tool)),
        };
        let stated = requested.confidence;
        let arguments = arguments(&requested.arguments, &mut read.mistakes)?;
        let mut misfits = tool.signature().misfits(&arguments);
        // Arguments set by the operator are filled in at the gate, which checks all arguments again.
        let is_set = |name: &str| {
            self.toolbox.is_set_by_operator(tool.name(), name) && arguments.get(name).is_none()
        };
        misfits.retain(|misfit| !misfit.pointer.strip_prefix('/').is_some_and(is_set));
        let Value::Object(arguments) = arguments else {
            return Err(Mistake::Misfits(misfits));
        };
        if !misfits.is_empty() {
            return Err(Mistake::Misfits(misfits));
        }
        let name = tool.name().clone();
        if let Some(mistake) = self.find_repetition(&name, &arguments, &read.turn.entries) {
            return Err(mistake);
        }
        if self.is_known(tool, &arguments) {
            read.repetitions += 1;
        }
        let mut record = CallRecord::requested(id, name, arguments, self.at);
        if let Some(stated) = stated {
            record = record.with_confidence(read.confidence(stated));
        }
        Ok(Entry::Call {
            kind,
            specification: tool.clone(),
            record: Box::new(record),
            decision: None,
            progress: Box::default(),
        })
    }

    fn mistake_entry(&self, index: usize, read: &ReadAnswer, mistake: Mistake) -> Entry {
        let id = self.calls.id_of(read.turn.turn, index);
        mistake_entry(id, read.turn.answer.calls.get(index), mistake, self.at)
    }

    fn unknown_tool(&self, name: &str) -> Mistake {
        let shown = self.toolbox.shown();
        let known: Vec<String> = shown.iter().map(|tool| tool.name().to_string()).collect();
        let nearest = nearest_all(name, known.iter().map(String::as_str), SUGGESTIONS);
        let nearest = nearest.into_iter().map(str::to_owned).collect();
        Mistake::UnknownTool {
            name: name.chars().take(100).collect(),
            nearest,
            known,
        }
    }

    /// The mistake of repeating an earlier call exactly. The result of a reversible call may be shown
    /// again; a call with an effect must not run twice by accident.
    fn find_repetition(
        &self,
        name: &ToolName,
        arguments: &Map<String, Value>,
        earlier_in_turn: &[Entry],
    ) -> Option<Mistake> {
        // A reversible call may be made again when the model is not shown its result any more.
        let count = self.transcript.left_out().min(self.calls.ended_turns());
        let shown = self.calls.turns_after(count);
        let shown = shown.iter().flat_map(|turn| &turn.entries);
        let changes = self.calls.changes();
        let known = shown.chain(earlier_in_turn).find_map(|entry| {
            let is_answered = self.reuses_results && entry.may_be_answered_again(changes);
            let is_refused =
                entry.requests(name, arguments) && !entry.may_be_requested_again() && !is_answered;
            entry
                .call()
                .filter(|_| is_refused)
                .map(|record| (entry, record))
        });
        let Some((entry, first)) = known else {
            let first = self.history.effect_of(name, arguments)?.clone();
            let result = None;
            return Some(Mistake::Repeated { first, result });
        };
        let result = match (first.outcome(), entry.risk()) {
            (Some(Ok(result)), RiskLevel::Reversible) => Some(self.transcript.shown(result)),
            _ => None,
        };
        Some(Mistake::Repeated {
            first: first.id().clone(),
            result,
        })
    }

    /// Whether the result of a call is known, so that it tells the model nothing new.
    fn is_known(&self, tool: &ToolSpecification, arguments: &Map<String, Value>) -> bool {
        let left_out = self.transcript.left_out().min(self.calls.ended_turns());
        let known = || self.calls.known_result(tool, arguments, left_out);
        self.reuses_results && known().is_some()
    }

    /// Parses the calls of `finish` into the run's answer, or into mistakes.
    fn read_finish(&self, read: &mut ReadAnswer) {
        let is_call = |entry: &Entry| matches!(entry, Entry::Call { .. });
        let has_calls = read.turn.entries.iter().any(is_call);
        for index in 0..read.turn.entries.len() {
            let (Some(Entry::Finish), Some(requested)) = (
                read.turn.entries.get(index),
                read.turn.answer.calls.get(index),
            ) else {
                continue;
            };
            let outcome = match has_calls {
                true => Err(Mistake::FinishWithCalls),
                false => arguments(&requested.arguments, &mut read.mistakes)
                    .and_then(|arguments| read.finish(&arguments)),
            };
            match outcome {
                Ok(answer) => {
                    read.answer.get_or_insert(answer);
                }
                Err(mistake) => {
                    let entry = self.mistake_entry(index, read, mistake);
                    if let Some(place) = read.turn.entries.get_mut(index) {
                        *place = entry;
                    }
                }
            }
        }
    }
}

impl ReadAnswer {
    fn confidence(&mut self, stated: f64) -> Confidence {
        let (confidence, was_clamped) = Confidence::clamped(stated);
        if was_clamped {
            let kind = MistakeKind::ConfidenceOutOfRange;
            *self.mistakes.entry(kind).or_default() += 1;
        }
        confidence
    }

    fn finish(&mut self, arguments: &Value) -> Result<Answer, Mistake> {
        let answer = match &arguments["answer"] {
            Value::String(text) => text.trim().to_owned(),
            Value::Null => {
                return Err(Mistake::Misfits(vec![Misfit {
                    pointer: "/answer".to_owned(),
                    expected: "Text".to_owned(),
                    found: "nothing".to_owned(),
                }]));
            }
            other => other.to_string(),
        };
        if answer.is_empty() {
            return Err(Mistake::EmptyAnswer);
        }
        let reasoning = arguments["reasoning"]
            .as_str()
            .unwrap_or_default()
            .trim()
            .to_owned();
        let stated = match &arguments["confidence"] {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        let confidence = match stated {
            Some(stated) => self.confidence(stated),
            None => Confidence::HALF,
        };
        Ok(Answer {
            answer,
            reasoning,
            confidence,
        })
    }

    /// Takes text without any call as the answer, although `finish` was required. Returns whether there
    /// was any text.
    fn take_text(&mut self) -> bool {
        let text = self.turn.answer.text.trim();
        if text.is_empty() {
            return false;
        }
        self.answer = Some(Answer {
            answer: text.to_owned(),
            reasoning: String::new(),
            confidence: Confidence::HALF,
        });
        let kind = MistakeKind::TextInsteadOfFinish;
        *self.mistakes.entry(kind).or_default() += 1;
        true
    }
}

/// The arguments of a call as JSON.
fn arguments(
    given: &RequestedArguments,
    mistakes: &mut BTreeMap<MistakeKind, u32>,
) -> Result<Value, Mistake> {
    let text = match given {
        RequestedArguments::Json(Value::Null) => return Ok(Value::Object(Map::new())),
        RequestedArguments::Json(Value::String(text)) => text,
        RequestedArguments::Json(value) => return Ok(value.clone()),
        RequestedArguments::Text(text) => text,
    };
    let (value, was_repaired) = repair_json(text).map_err(Mistake::NotJson)?;
    if was_repaired {
        *mistakes.entry(MistakeKind::RepairedJson).or_default() += 1;
    }
    Ok(value)
}

/// The entry of a call that is a mistake, with what could be parsed of it.
fn mistake_entry(
    id: CallId,
    requested: Option<&RequestedCall>,
    mistake: Mistake,
    at: Timestamp,
) -> Entry {
    // A turn without any content counts as an empty `finish`.
    let name = requested.map_or(FINISH, |requested| requested.tool.as_str());
    let shortened: String = strip(name, TextUse::Name).chars().take(100).collect();
    let name = ToolName::new(shortened).or_else(|_| ToolName::new("unnamed"));
    let arguments = match requested.map(|requested| &requested.arguments) {
        Some(RequestedArguments::Json(Value::Object(arguments))) => arguments.clone(),
        Some(RequestedArguments::Json(Value::Null)) | None => Map::new(),
        Some(RequestedArguments::Json(other)) => wrapped(other.clone()),
        Some(RequestedArguments::Text(text)) => wrapped(Value::String(text.clone())),
    };
    let Ok(name) = name else {
        return Entry::Finish;
    };
    let mut record = CallRecord::requested(id, name, arguments, at);
    let failure = Failure::new(mistake.category(), Effect::None, mistake.to_string());
    // A pending call can always fail.
    let _ = record.advance(CallChange::Fail(failure), at);
    Entry::Mistake {
        mistake,
        record: Box::new(record),
    }
}

/// Arguments that are not an object, under a key of their own.
fn wrapped(value: Value) -> Map<String, Value> {
    std::iter::once(("unreadable".to_owned(), value)).collect()
}
