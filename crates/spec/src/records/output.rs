//! What comes back for a task: the answer with the whole trace of how it was found.

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

/// Why the parts of an output do not make one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OutputError {
    /// No answer, and no reason for that.
    #[error("answer is empty only if iteration_limit_reached")]
    EmptyAnswer,
    /// The count and the trace differ.
    #[error("total_iterations is {total}, but structured_trace has {steps} steps")]
    TraceLength {
        /// What was counted.
        total: i64,
        /// How many steps there are.
        steps: usize,
    },
    /// A step stands at the wrong place.
    #[error("step {place} of structured_trace says it is iteration {iteration}")]
    StepOrder {
        /// Where it stands, from 1.
        place: usize,
        /// What it says.
        iteration: Turn,
    },
    /// Nothing follows the answer, and the limit is only reached without one.
    #[error("only the last step can finish, and not with iteration_limit_reached")]
    Finish,
    /// A tool stands twice.
    #[error("tools_used names `{0}` more than once")]
    DuplicateTool(ToolName),
    /// The trace says otherwise.
    #[error("tools_used is not what the calls of structured_trace say: {}", names(.0))]
    ToolsUsed(Vec<ToolName>),
}

impl TaskOutput {
    /// The output of a run that found an answer.
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

    /// The output of a run that came to its limit of turns, with whatever answer there is by then.
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

    /// The same output with this beside it.
    #[must_use]
    pub fn with_metadata(mut self, metadata: Map<String, Value>) -> Self {
        self.metadata = metadata;
        self
    }

    /// The same output with its reasoning told in these words.
    #[must_use]
    pub fn with_reasoning_trace(mut self, reasoning_trace: impl Into<String>) -> Self {
        self.reasoning_trace = reasoning_trace.into();
        self
    }

    /// Which task.
    #[must_use]
    pub fn task_id(&self) -> &str {
        self.task_id.as_str()
    }

    /// The answer.
    #[must_use]
    pub fn answer(&self) -> &str {
        &self.answer
    }

    /// How it was found, for people.
    #[must_use]
    pub fn reasoning_trace(&self) -> &str {
        &self.reasoning_trace
    }

    /// How sure the agent is.
    #[must_use]
    pub fn confidence(&self) -> Confidence {
        self.confidence
    }

    /// Whatever else is known.
    #[must_use]
    pub fn metadata(&self) -> &Map<String, Value> {
        &self.metadata
    }

    /// How it was found, turn by turn.
    #[must_use]
    pub fn structured_trace(&self) -> &[ReasoningStep] {
        &self.structured_trace
    }

    /// The tools that were used, each once, in the order of first use.
    #[must_use]
    pub fn tools_used(&self) -> &[ToolName] {
        &self.tools_used
    }

    /// How many turns it took.
    #[must_use]
    pub fn total_iterations(&self) -> usize {
        self.structured_trace.len()
    }

    /// Whether it came to its limit of turns without finishing.
    #[must_use]
    pub fn iteration_limit_reached(&self) -> bool {
        self.iteration_limit_reached
    }

    /// Whether the agent is surer than it should be: it did not finish, and yet thinks it more
    /// likely right than wrong. Worth a warning, not wrong.
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

/// The tools a trace tells of. A step that does not list its calls tells of the one it names.
fn tools_in(trace: &[ReasoningStep]) -> Vec<ToolName> {
    unique(trace.iter().flat_map(|step| {
        let unlisted = step.tool_name().filter(|_| step.calls().is_empty());
        let permitted = step.calls().iter().filter(|call| call.was_permitted());
        unlisted
            .into_iter()
            .chain(permitted.map(StepCall::tool_name))
    }))
}

/// Whether every step that called tools lists its calls, so that nothing is left to guess.
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

/// The JSON form of an output, before it is checked. What only agents with tools have is optional.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(transform = schema::task_output)]
struct Raw {
    /// Which task.
    #[schemars(with = "schema::Text")]
    task_id: NonEmptyText,
    /// The answer; empty only if the limit of turns was reached.
    answer: String,
    /// How it was found, for people.
    reasoning_trace: String,
    /// How sure the agent is.
    confidence: Confidence,
    /// Whatever else is known.
    #[serde(default)]
    metadata: Map<String, Value>,
    /// How it was found, turn by turn.
    #[serde(default)]
    structured_trace: Option<Vec<ReasoningStep>>,
    /// The tools that were used, each once, in the order of first use.
    #[serde(default)]
    #[schemars(with = "Option<Vec<schema::Name>>")]
    tools_used: Option<Vec<ToolName>>,
    /// How many turns it took: as many as structured_trace has steps.
    #[serde(default)]
    #[schemars(with = "Option<u32>")]
    total_iterations: Option<i64>,
    /// Whether it came to its limit of turns without finishing.
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
