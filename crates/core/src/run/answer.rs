//! The response of a run: the model's answer if it finished, otherwise the best known result, and the
//! trace as reasoning steps.

use std::time::Duration;

use windlass_spec::{
    AgentResponse, CallRecord, Confidence, Deprecation, NonEmptyText, OutputError, ReasoningStep,
    TaskOutput, ToolName,
};

use super::{Entry, Run, RunEnd, TurnState};

/// The confidence of a response that the model did not give as its answer.
const CONFIDENCE_WITHOUT_FINISH: f64 = 0.2;

/// The answer of a run that has none.
const NO_ANSWER: &str = "No answer was found.";

/// An answer as a model gave it.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The answer, not empty.
    pub answer: String,
    /// How it was found; empty if the model did not state it.
    pub reasoning: String,
    /// How sure the model was.
    pub confidence: Confidence,
}

impl Run {
    /// The response of the run as of now. If there is no answer, the response says so.
    #[must_use]
    pub fn response(&self) -> AgentResponse {
        let answer = self.best_answer().unwrap_or_default();
        let stated = self.transcript.answer();
        let stated = stated.map_or("", |answer| answer.reasoning.as_str());
        let reasoning = non_empty(stated)
            .unwrap_or_else(|| NonEmptyText::or(&self.describe_steps(), NO_ANSWER));
        AgentResponse::new(
            NonEmptyText::or(&answer, NO_ANSWER),
            reasoning,
            self.calls(),
            self.confidence(),
        )
    }

    /// What tools should write differently in their answers: one notice for each tool, rule and place.
    #[must_use]
    pub fn notices(&self) -> Vec<(&ToolName, &Deprecation)> {
        let mut notices: Vec<(&ToolName, &Deprecation)> = Vec::new();
        for entry in self.turns().iter().flat_map(|turn| &turn.entries) {
            let Entry::Call {
                record, progress, ..
            } = entry
            else {
                continue;
            };
            for notice in progress.notices() {
                let is_known = notices.iter().any(|(tool, known)| {
                    *tool == record.tool_name()
                        && known.code == notice.code
                        && known.pointer == notice.pointer
                });
                if !is_known {
                    notices.push((record.tool_name(), notice));
                }
            }
        }
        notices
    }

    /// The run as the output of a task.
    ///
    /// # Errors
    /// If the steps do not make a trace. That cannot happen for a journal that folds.
    pub fn output(&self, task_id: NonEmptyText) -> Result<TaskOutput, OutputError> {
        let steps = self.steps();
        let answer = self.transcript.answer();
        match answer.and_then(|answer| non_empty(&answer.answer)) {
            Some(answer) => TaskOutput::finished(task_id, answer, self.confidence(), steps),
            None if self.end() == Some(&RunEnd::IterationLimit) => {
                let answer = self.best_answer().unwrap_or_default();
                TaskOutput::at_limit(task_id, answer, self.confidence(), steps)
            }
            None => {
                let known = NonEmptyText::or(&self.best_answer().unwrap_or_default(), NO_ANSWER);
                TaskOutput::unfinished(task_id, known, self.confidence(), steps)
            }
        }
    }

    /// The turns as reasoning steps, one for each.
    #[must_use]
    pub fn steps(&self) -> Vec<ReasoningStep> {
        self.turns()
            .iter()
            .filter_map(|turn| self.step(turn))
            .collect()
    }

    fn step(&self, turn: &TurnState) -> Option<ReasoningStep> {
        let duration = Duration::from_micros(turn.ended_at.microseconds_since(turn.asked_at));
        let records: Vec<&CallRecord> = turn.entries.iter().filter_map(Entry::record).collect();
        let thought = thought(turn, &records);
        if records.is_empty() {
            let answer = non_empty(&self.transcript.answer()?.answer)?;
            return Some(ReasoningStep::finish(
                turn.turn,
                thought,
                answer,
                turn.asked_at,
                duration,
            ));
        }
        ReasoningStep::call_tool(turn.turn, thought, records, turn.asked_at, duration).ok()
    }

    /// The model's answer, or else the last text of the model or the last result of a tool.
    fn best_answer(&self) -> Option<String> {
        if let Some(answer) = self.transcript.answer() {
            return Some(answer.answer.clone());
        }
        self.turns().iter().rev().find_map(|turn| {
            let text = turn.answer.text.trim();
            let observed = || {
                let ended = turn.entries.iter().rev().find(|entry| {
                    entry
                        .call()
                        .is_some_and(|call| matches!(call.outcome(), Some(Ok(_))))
                });
                ended.map(|entry| self.transcript.observation(entry))
            };
            if text.is_empty() {
                observed()
            } else {
                Some(text.to_owned())
            }
        })
    }

    fn confidence(&self) -> Confidence {
        match self.transcript.answer() {
            Some(answer) => answer.confidence,
            None if self.best_answer().is_some() => {
                Confidence::clamped(CONFIDENCE_WITHOUT_FINISH).0
            }
            None => Confidence::NONE,
        }
    }

    /// The reasoning as one paragraph, from the trace.
    fn describe_steps(&self) -> String {
        let thoughts: Vec<String> = self
            .turns()
            .iter()
            .map(|turn| {
                let records: Vec<&CallRecord> =
                    turn.entries.iter().filter_map(Entry::record).collect();
                format!("{}. {}", turn.turn, thought(turn, &records))
            })
            .collect();
        thoughts.join(" ")
    }
}

/// What the model thought in a turn, or a description of what it did.
fn thought(turn: &TurnState, records: &[&CallRecord]) -> NonEmptyText {
    let stated = turn.answer.thought.as_deref().and_then(non_empty);
    stated
        .or_else(|| non_empty(&turn.answer.text))
        .unwrap_or_else(|| {
            let names: Vec<&str> = records
                .iter()
                .map(|record| record.tool_name().as_str())
                .collect();
            match names.is_empty() {
                true => NonEmptyText::or("", "(gave the answer without saying why)"),
                false => NonEmptyText::or(
                    &format!("(called {} without saying why)", names.join(", ")),
                    "(called a tool)",
                ),
            }
        })
}

fn non_empty(text: &str) -> Option<NonEmptyText> {
    NonEmptyText::new(text.trim()).ok()
}
