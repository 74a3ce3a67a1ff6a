//! The steps of a task: from a strategy that fits, else from the parts of the text, else a single step.

use crate::choose::{Decision, Reflex, ToolView};
use crate::extract::Reading;
use crate::fill::Filling;
use crate::split::split;
use crate::world::{is_web_search, is_world_question};

/// One step.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    /// The tool's index.
    pub(crate) tool: usize,
    /// The part of the task that asks for it.
    pub(crate) text: String,
    /// Whether it comes from a strategy.
    pub(crate) from_strategy: bool,
    /// The probability that the tool is correct.
    certainty: f64,
}

impl Step {
    /// The probability that a call with these arguments is correct.
    pub(crate) fn confidence(&self, filling: &Filling) -> f64 {
        (self.certainty * crate::calibrate::arguments(filling)).clamp(0.02, 0.98)
    }
}

/// The steps of a task.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    steps: Vec<Step>,
    /// The confidence of an answer from all steps.
    pub(crate) confidence: f64,
}

impl Plan {
    /// Plans a task.
    pub(crate) fn new(
        reflex: &Reflex,
        reading: &Reading,
        tools: &[ToolView<'_>],
        sequences: &[Vec<usize>],
    ) -> Self {
        let task = reading.text.source.as_str();
        let whole = reflex.best(reading, tools).filter(|best| reflex.fits(best));
        let parts = from_parts(reflex, reading, tools);
        let mut steps = from_strategy(reflex, reading, tools, sequences, whole.as_ref(), &parts);
        if steps.is_empty() {
            steps = parts;
        }
        if steps.len() < 2
            && steps.first().is_none_or(|step| !step.from_strategy)
            && let Some(whole) = &whole
        {
            steps = vec![step(whole, task.to_owned())];
        }
        if steps.is_empty() {
            steps.extend(web_search(task, tools));
        }
        let confidence = match &whole {
            Some(whole) => whole.confidence(),
            None => steps.iter().map(|step| step.certainty).product(),
        };
        Self {
            steps,
            confidence: confidence.max(0.05),
        }
    }

    /// The first step without a call. Calls are matched to steps in order, by tool.
    pub(crate) fn next(&self, made: &[&str], names: &[&str]) -> Option<&Step> {
        let mut open: Vec<&str> = made.to_vec();
        self.steps.iter().find(|step| {
            let name = names.get(step.tool).copied().unwrap_or("");
            match open.iter().position(|tool| *tool == name) {
                Some(position) => {
                    open.remove(position);
                    false
                }
                None => true,
            }
        })
    }
}

fn step(decision: &Decision, text: String) -> Step {
    Step {
        tool: decision.ranked.index,
        text,
        from_strategy: false,
        certainty: crate::calibrate::tool(decision),
    }
}

/// The search that looks up a question about the world, which has no word of the tool.
fn web_search(task: &str, tools: &[ToolView<'_>]) -> Option<Step> {
    let tool = tools.iter().position(is_web_search)?;
    is_world_question(task).then(|| Step {
        tool,
        text: task.to_owned(),
        from_strategy: false,
        certainty: 0.7,
    })
}

/// The steps of the first strategy that fits. A strategy fits if it uses the best tool for the task, its first
/// call can be made, and it covers every part of the task.
fn from_strategy(
    reflex: &Reflex,
    reading: &Reading,
    tools: &[ToolView<'_>],
    sequences: &[Vec<usize>],
    whole: Option<&Decision>,
    parts: &[Step],
) -> Vec<Step> {
    let fitting = sequences.iter().find(|sequence| {
        let relevant = whole.is_none_or(|best| sequence.contains(&best.ranked.index));
        let possible = sequence.first().is_some_and(|&first| {
            reflex
                .fill_arguments(reading, &tools[first])
                .missing
                .is_empty()
        });
        let is_whole = parts.iter().all(|part| sequence.contains(&part.tool));
        relevant && possible && is_whole
    });
    fitting
        .into_iter()
        .flatten()
        .map(|&tool| Step {
            tool,
            text: reading.text.source.clone(),
            from_strategy: true,
            certainty: 0.85,
        })
        .collect()
}

fn from_parts(reflex: &Reflex, reading: &Reading, tools: &[ToolView<'_>]) -> Vec<Step> {
    let parts = split(&reading.text.source);
    if parts.len() < 2 {
        return Vec::new();
    }
    let mut steps: Vec<Step> = Vec::new();
    for part in parts {
        let read = Reading::new(&part, reading.today);
        let Some(best) = reflex.best(&read, tools).filter(|best| reflex.fits(best)) else {
            // A part without a request belongs to the step before it.
            if let Some(last) = steps.last_mut() {
                last.text.push_str(". ");
                last.text.push_str(&part);
            }
            continue;
        };
        // A part that fits the same tool, but lacks its arguments, belongs to the step before it.
        let same = steps
            .last_mut()
            .filter(|last| last.tool == best.ranked.index);
        match same {
            Some(last) if !best.filling.missing.is_empty() || best.filling.arguments.is_empty() => {
                last.text.push_str(". ");
                last.text.push_str(&part);
            }
            _ => steps.push(step(&best, part)),
        }
    }
    steps
}
