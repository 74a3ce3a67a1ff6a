//! The output of a task: the answer with the whole trace of the reasoning.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::confidence::Confidence;
use super::id::Turn;
use super::schema;
use super::step::{ReasoningStep, StepAction, StepCall};
use super::views::unique;
use crate::names::{NonEmptyText, ToolName};

/// The answer to a task, with its trace. The answer is empty only if the limit of turns was reached
/// before there was one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Raw", into = "Raw")]
pub struct TaskOutput {
    task_id: NonEmptyText,
    answer: String,
    reasoning_trace: String,
    confidence: Confidence,
    metadata: Map<String, Value>,
    structured_trace: Vec<ReasoningStep>,
    tools_used: Vec<ToolName>,
    iteration_limit_reached: bool,
}

/// Why the parts of an output are not valid together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OutputError {
    /// The answer is empty before the limit of turns.
    #[error("answer can be empty only if iteration_limit_reached is true")]
    EmptyAnswer,
    /// The count and the trace differ.
    #[error("total_iterations is {total}, but structured_trace has {steps} steps")]
    TraceLength {
        /// The stated number of turns.
        total: i64,
        /// The number of steps.
        steps: usize,
    },
    /// A step is at the wrong position.
    #[error("step {place} of structured_trace has the iteration {iteration}")]
    StepOrder {
        /// Its position, from 1.
        place: usize,
        /// Its iteration.
        iteration: Turn,
    },
    /// A step other than the last finishes, or the last one finishes at the limit of turns.
    #[error("only the last step can finish, and not with iteration_limit_reached")]
    Finish,
    /// A tool is listed twice.
    #[error("tools_used names `{0}` more than once")]
    DuplicateTool(ToolName),
    /// The list differs from the trace.
    #[error("tools_used differs from the tools in structured_trace: {}", names(.0))]
    ToolsUsed(Vec<ToolName>),
}

impl TaskOutput {
    /// The output of a run with an answer.
    ///
    /// # Errors
    /// If the steps are not in order, or another than the last finishes.
    pub fn finished(
        task_id: NonEmptyText,
        answer: NonEmptyText,
        confidence: Confidence,
        structured_trace: Vec<ReasoningStep>,
    ) -> Result<Self, OutputError> {
        Self::new(task_id, answer.into(), confidence, structured_trace, false)
    }

    /// The output of a run that ended without an answer of its own and before its limit of turns. It says what is
    /// known, because only an output at the limit may be empty.
    ///
    /// # Errors
    /// If the steps are not in order, or another than the last finishes.
    pub fn unfinished(
        task_id: NonEmptyText,
        known: NonEmptyText,
        confidence: Confidence,
        structured_trace: Vec<ReasoningStep>,
    ) -> Result<Self, OutputError> {
        Self::new(task_id, known.into(), confidence, structured_trace, false)
    }

    /// The output of a run that reached its limit of turns, with the answer so far.
    ///
    /// # Errors
    /// If the steps are not in order, or one finishes.
    pub fn at_limit(
        task_id: NonEmptyText,
        answer: String,
        confidence: Confidence,
        structured_trace: Vec<ReasoningStep>,
    ) -> Result<Self, OutputError> {
        Self::new(task_id, answer, confidence, structured_trace, true)
    }

    fn new(
        task_id: NonEmptyText,
        answer: String,
        confidence: Confidence,
        structured_trace: Vec<ReasoningStep>,
        iteration_limit_reached: bool,
    ) -> Result<Self, OutputError> {
        if answer.trim().is_empty() && !iteration_limit_reached {
            return Err(OutputError::EmptyAnswer);
        }
        check_trace(&structured_trace, iteration_limit_reached)?;
        Ok(Self {
            task_id,
            answer,
            reasoning_trace: summary(&structured_trace),
            confidence,
            metadata: Map::new(),
            tools_used: tools_in(&structured_trace),
            structured_trace,
            iteration_limit_reached,
        })
    }

    /// The same output with metadata.
    #[must_use]
    pub fn with_metadata(mut self, metadata: Map<String, Value>) -> Self {
        self.metadata = metadata;
        self
    }

    /// The same output with this text of the reasoning.
    #[must_use]
    pub fn with_reasoning_trace(mut self, reasoning_trace: impl Into<String>) -> Self {
        self.reasoning_trace = reasoning_trace.into();
        self
    }

    /// The id of the task.
    #[must_use]
    pub fn task_id(&self) -> &str {
        self.task_id.as_str()
    }

    /// The answer.
    #[must_use]
    pub fn answer(&self) -> &str {
        &self.answer
    }

    /// The reasoning, for people.
    #[must_use]
    pub fn reasoning_trace(&self) -> &str {
        &self.reasoning_trace
    }

    /// The agent's confidence.
    #[must_use]
    pub fn confidence(&self) -> Confidence {
        self.confidence
    }

    /// Further data.
    #[must_use]
    pub fn metadata(&self) -> &Map<String, Value> {
        &self.metadata
    }

    /// The reasoning, turn by turn.
    #[must_use]
    pub fn structured_trace(&self) -> &[ReasoningStep] {
        &self.structured_trace
    }

    /// The used tools, each once, in the order of first use.
    #[must_use]
    pub fn tools_used(&self) -> &[ToolName] {
        &self.tools_used
    }

    /// The number of turns.
    #[must_use]
    pub fn total_iterations(&self) -> usize {
        self.structured_trace.len()
    }

    /// Whether it reached its limit of turns without finishing.
    #[must_use]
    pub fn iteration_limit_reached(&self) -> bool {
        self.iteration_limit_reached
    }

    /// Whether the agent is overconfident: it did not finish, and its confidence is above one half.
    /// This is worth a warning, but not an error.
    #[must_use]
    pub fn is_overconfident(&self) -> bool {
        self.iteration_limit_reached && self.confidence > Confidence::HALF
    }
}

fn check_trace(trace: &[ReasoningStep], limit_reached: bool) -> Result<(), OutputError> {
    for (index, step) in trace.iter().enumerate() {
        let place = index + 1;
        if usize::try_from(step.iteration().number()) != Ok(place) {
            return Err(OutputError::StepOrder {
                place,
                iteration: step.iteration(),
            });
        }
        let may_finish = place == trace.len() && !limit_reached;
        if step.action() == StepAction::Finish && !may_finish {
            return Err(OutputError::Finish);
        }
    }
    Ok(())
}

/// The tools in a trace. A step without a list of calls counts for the tool it names.
fn tools_in(trace: &[ReasoningStep]) -> Vec<ToolName> {
    unique(trace.iter().flat_map(|step| {
        let unlisted = step.tool_name().filter(|_| step.calls().is_empty());
        let permitted = step.calls().iter().filter(|call| call.was_permitted());
        unlisted
            .into_iter()
            .chain(permitted.map(StepCall::tool_name))
    }))
}

/// Whether every step that called tools lists its calls.
fn lists_all_calls(trace: &[ReasoningStep]) -> bool {
    trace
        .iter()
        .all(|step| step.action() == StepAction::Finish || !step.calls().is_empty())
}

fn summary(trace: &[ReasoningStep]) -> String {
    let mut text = String::new();
    for step in trace {
        let separator = if text.is_empty() { "" } else { "\n" };
        let what = match (step.tool_name(), step.calls().len()) {
            (None, _) => "finished".to_owned(),
            (Some(tool), 0 | 1) => format!("called {tool}"),
            (Some(tool), calls) => format!("called {tool} and {} more", calls - 1),
        };
        // Writing to a text cannot fail.
        let _ = write!(
            text,
            "{separator}{}. {} ({what})",
            step.iteration(),
            step.thought()
        );
    }
    text
}

fn names(tools: &[ToolName]) -> String {
    let names: Vec<_> = tools.iter().map(ToolName::as_str).collect();
    names.join(", ")
}

/// The JSON form of an output, before validation. The fields of agents with tools are optional.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(transform = schema::task_output)]
struct Raw {
    /// The id of the task.
    #[schemars(with = "schema::Text")]
    task_id: NonEmptyText,
    /// The answer; empty only if the limit of turns was reached.
    answer: String,
    /// The reasoning, for people.
    reasoning_trace: String,
    /// The agent's confidence.
    confidence: Confidence,
    /// Further data.
    #[serde(default)]
    metadata: Map<String, Value>,
    /// The reasoning, turn by turn.
    #[serde(default)]
    structured_trace: Option<Vec<ReasoningStep>>,
    /// The used tools, each once, in the order of first use.
    #[serde(default)]
    #[schemars(with = "Option<Vec<schema::Name>>")]
    tools_used: Option<Vec<ToolName>>,
    /// The number of turns, equal to the number of steps in structured_trace.
    #[serde(default)]
    #[schemars(with = "Option<u32>")]
    total_iterations: Option<i64>,
    /// Whether it reached its limit of turns without finishing.
    #[serde(default)]
    iteration_limit_reached: Option<bool>,
}

impl From<TaskOutput> for Raw {
    fn from(output: TaskOutput) -> Self {
        Self {
            total_iterations: i64::try_from(output.total_iterations()).ok(),
            task_id: output.task_id,
            answer: output.answer,
            reasoning_trace: output.reasoning_trace,
            confidence: output.confidence,
            metadata: output.metadata,
            structured_trace: Some(output.structured_trace),
            tools_used: Some(output.tools_used),
            iteration_limit_reached: Some(output.iteration_limit_reached),
        }
    }
}

impl TryFrom<Raw> for TaskOutput {
    type Error = OutputError;

    fn try_from(raw: Raw) -> Result<Self, OutputError> {
        let trace = raw.structured_trace.unwrap_or_default();
        let steps = trace.len();
        if let Some(total) = raw.total_iterations
            && usize::try_from(total) != Ok(steps)
        {
            return Err(OutputError::TraceLength { total, steps });
        }
        let limit_reached = raw.iteration_limit_reached.unwrap_or(false);
        let mut output = Self::new(
            raw.task_id,
            raw.answer,
            raw.confidence,
            trace,
            limit_reached,
        )?
        .with_metadata(raw.metadata)
        .with_reasoning_trace(raw.reasoning_trace);
        if let Some(tools) = raw.tools_used {
            output.check_tools_used(&tools)?;
            output.tools_used = tools;
        }
        Ok(output)
    }
}

impl TaskOutput {
    fn check_tools_used(&self, tools: &[ToolName]) -> Result<(), OutputError> {
        let mut seen = std::collections::HashSet::new();
        if let Some(twice) = tools.iter().find(|tool| !seen.insert(*tool)) {
            return Err(OutputError::DuplicateTool(twice.clone()));
        }
        if lists_all_calls(&self.structured_trace) && tools != self.tools_used {
            return Err(OutputError::ToolsUsed(self.tools_used.clone()));
        }
        Ok(())
    }
}
