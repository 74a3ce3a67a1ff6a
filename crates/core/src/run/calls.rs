//! Takes a model's answer apart: which of its calls are in good order, which are mistakes, whether it
//! finishes.

use std::sync::Arc;

use serde_json::{Map, Value};
use windlass_spec::text::{TextUse, strip};
use windlass_spec::{
    CallChange, CallId, CallRecord, Confidence, Effect, Failure, Misfit, RiskLevel, Timestamp,
    ToolName, ToolSpecification, Turn, nearest_all,
};

use super::answer::Answer;
use super::mistake::{Mistake, MistakeKind};
use super::repair::repair_json;
use super::state::{Entry, Run, TurnState};
use crate::model::{FINISH, ModelAnswer, RequestedArguments, RequestedCall};

/// How many names are suggested for one that does not exist.
const SUGGESTIONS: usize = 3;

impl Run {
    pub(super) fn take_answer(&mut self, answer: ModelAnswer, at: Timestamp) {
        self.usage += answer.usage;
        let turn = self.current_turn();
        let mut state = TurnState {
            turn,
            asked_at: self.now,
            ended_at: at,
            answer,
            entries: Vec::new(),
            calls_of_tasks: 0,
        };
        for (index, requested) in state.answer.calls.iter().enumerate() {
            let id = self.call_id(turn, index);
            let entry = match self.requested(id.clone(), requested, at, &state.entries) {
                Ok(entry) => entry,
                Err(mistake) => refused(id, Some(requested), mistake, at),
            };
            state.entries.push(entry);
        }
        self.take_finish(&mut state, at);
        if state.answer.calls.is_empty() && !self.take_text(&state.answer.text) {
            let id = self.call_id(turn, 0);
            state
                .entries
                .push(refused(id, None, Mistake::EmptyAnswer, at));
        }
        for entry in &state.entries {
            if let Entry::Mistake { mistake, .. } = entry {
                *self.mistakes.entry(mistake.kind()).or_default() += 1;
            }
        }
        let did_something = self.answer.is_some()
            || state
                .entries
                .iter()
                .any(|entry| matches!(entry, Entry::Call { .. }));
        self.mistaken_turns = if did_something {
            0
        } else {
            self.mistaken_turns + 1
        };
        self.turns.push(state);
    }

    fn call_id(&self, turn: Turn, index: usize) -> CallId {
        CallId {
            run: self.id.clone(),
            turn,
            index: u32::try_from(index).unwrap_or(u32::MAX),
        }
    }

    /// What becomes of one requested call, if it is in order.
    fn requested(
        &mut self,
        id: CallId,
        requested: &RequestedCall,
        at: Timestamp,
        earlier: &[Entry],
    ) -> Result<Entry, Mistake> {
        if id.index >= self.settings.max_calls_per_turn {
            return Err(Mistake::TooManyCalls {
                limit: self.settings.max_calls_per_turn,
            });
        }
        if requested.tool == FINISH {
            return Ok(Entry::Finish);
        }
        let Some(tool) = self.known_tool(&requested.tool) else {
            return Err(self.unknown_tool(&requested.tool));
        };
        let arguments = self.arguments(&requested.arguments)?;
        let mut misfits = tool.signature().misfits(&arguments);
        // What the operator sets is filled in at the gate, which looks at the whole again.
        let is_set = |name: &str| self.is_set(tool.name(), name) && arguments.get(name).is_none();
        misfits.retain(|misfit| !misfit.pointer.strip_prefix('/').is_some_and(is_set));
        let Value::Object(arguments) = arguments else {
            return Err(Mistake::Misfits(misfits));
        };
        if !misfits.is_empty() {
            return Err(Mistake::Misfits(misfits));
        }
        let name = tool.name().clone();
        if let Some(mistake) = self.repeated(&name, &arguments, earlier) {
            return Err(mistake);
        }
        let mut record = CallRecord::requested(id, name, arguments, at);
        if let Some(stated) = requested.confidence {
            record = record.with_confidence(self.stated_confidence(stated));
        }
        Ok(Entry::Call {
            record: Box::new(record),
            decision: None,
            stand: Box::default(),
        })
    }

    /// The tool of that name, if this run may use it.
    fn known_tool(&self, name: &str) -> Option<Arc<ToolSpecification>> {
        let is_available = match &self.task.available_tools {
            Some(available) => available.iter().any(|tool| tool == name),
            None => true,
        };
        self.specification(name).filter(|_| is_available).cloned()
    }

    fn unknown_tool(&self, name: &str) -> Mistake {
        let known: Vec<String> = self
            .tools()
            .iter()
            .map(|tool| tool.name().to_string())
            .collect();
        let nearest = nearest_all(name, known.iter().map(String::as_str), SUGGESTIONS);
        let nearest = nearest.into_iter().map(str::to_owned).collect();
        Mistake::UnknownTool {
            name: name.chars().take(100).collect(),
            nearest,
            known,
        }
    }

    fn arguments(&mut self, given: &RequestedArguments) -> Result<Value, Mistake> {
        let text = match given {
            RequestedArguments::Json(Value::Null) => return Ok(Value::Object(Map::new())),
            RequestedArguments::Json(Value::String(text)) => text,
            RequestedArguments::Json(value) => return Ok(value.clone()),
            RequestedArguments::Text(text) => text,
        };
        let (value, was_repaired) = repair_json(text).map_err(Mistake::NotJson)?;
        if was_repaired {
            *self.mistakes.entry(MistakeKind::RepairedJson).or_default() += 1;
        }
        Ok(value)
    }

    fn stated_confidence(&mut self, stated: f64) -> Confidence {
        let (confidence, was_clamped) = Confidence::clamped(stated);
        if was_clamped {
            *self
                .mistakes
                .entry(MistakeKind::ConfidenceOutOfRange)
                .or_default() += 1;
        }
        confidence
    }

    /// The mistake of asking for exactly what was asked for before. What was only read may be shown
    /// again; what had an effect must not happen twice by accident.
    fn repeated(
        &self,
        name: &ToolName,
        arguments: &Map<String, Value>,
        earlier_in_turn: &[Entry],
    ) -> Option<Mistake> {
        let earlier = self.turns.iter().flat_map(|turn| &turn.entries);
        let (entry, first) = earlier.chain(earlier_in_turn).find_map(|entry| {
            let Entry::Call { record, stand, .. } = entry else {
                return None;
            };
            // What a person changed was asked for as it was before.
            let asked = stand.before_edit().unwrap_or(record.arguments());
            let is_same = record.tool_name() == name && asked == arguments;
            // What failed and may be tried again is not repeated by trying again.
            let may_be_repeated = stand.did_nothing()
                || matches!(record.outcome(), Some(Err(failure)) if failure.retryable);
            (is_same && !may_be_repeated).then_some((entry, record))
        })?;
        let result = match (first.outcome(), self.risk_of(entry)) {
            (Some(Ok(result)), RiskLevel::Reversible) => Some(self.shown(result)),
            _ => None,
        };
        Some(Mistake::Repeated {
            first: first.id().clone(),
            result,
        })
    }

    /// Takes the run's answer from a call of `finish`, or says what is wrong with it.
    fn take_finish(&mut self, state: &mut TurnState, at: Timestamp) {
        let has_calls = state
            .entries
            .iter()
            .any(|entry| matches!(entry, Entry::Call { .. }));
        let turn = state.turn;
        for (index, entry) in state.entries.iter_mut().enumerate() {
            let (Entry::Finish, Some(requested)) = (&*entry, state.answer.calls.get(index)) else {
                continue;
            };
            let outcome = if has_calls {
                Err(Mistake::FinishWithCalls)
            } else {
                self.arguments(&requested.arguments)
                    .and_then(|arguments| self.finish(&arguments))
            };
            match outcome {
                Ok(answer) => {
                    self.answer.get_or_insert(answer);
                }
                Err(mistake) => {
                    *entry = refused(self.call_id(turn, index), Some(requested), mistake, at);
                }
            }
        }
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
            Some(stated) => self.stated_confidence(stated),
            None => Confidence::HALF,
        };
        Ok(Answer {
            answer,
            reasoning,
            confidence,
        })
    }

    /// Text without any call is the answer, though not the way it was asked for. Whether there was
    /// any.
    fn take_text(&mut self, text: &str) -> bool {
        let text = text.trim();
        if text.is_empty() {
            return false;
        }
        *self
            .mistakes
            .entry(MistakeKind::TextInsteadOfFinish)
            .or_default() += 1;
        self.answer = Some(Answer {
            answer: text.to_owned(),
            reasoning: String::new(),
            confidence: Confidence::HALF,
        });
        true
    }
}

/// The entry of a call that is refused at once, with what could be read of it.
fn refused(
    id: CallId,
    requested: Option<&RequestedCall>,
    mistake: Mistake,
    at: Timestamp,
) -> Entry {
    // A turn without anything in it is taken for a `finish` that says nothing.
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
    // A call that was only asked for can always be refused.
    let _ = record.advance(CallChange::Fail(failure), at);
    Entry::Mistake {
        mistake,
        record: Box::new(record),
    }
}

/// Arguments that are no object, under a key of their own.
fn wrapped(value: Value) -> Map<String, Value> {
    std::iter::once(("unreadable".to_owned(), value)).collect()
}
