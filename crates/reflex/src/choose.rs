//! One decision: the tool, its arguments, the confidence, and the missing arguments.

use serde_json::Value;

use crate::calibrate;
use crate::extract::Reading;
use crate::fill::{Filling, Form, fill};
use crate::meaning::Meaning;
use crate::parameter::parameters;
use crate::rank::{self, RankedTool};

/// The parts of a tool that a decision needs.
#[derive(Debug, Clone, Copy)]
pub struct ToolView<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it does.
    pub description: &'a str,
    /// The JSON Schema of its arguments.
    pub input_schema: &'a Value,
}

/// The settings of reflex.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The least similarity of task and tool for a call.
    pub min_similarity: f32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            min_similarity: 0.38,
        }
    }
}

/// A decision.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// The index of the tool.
    pub index: usize,
    /// The arguments that were found.
    pub arguments: Value,
    /// The probability that the whole call is correct, from 0 to 1.
    pub confidence: f64,
    /// Required arguments that were not found, by path.
    pub missing: Vec<String>,
    /// Whether the tool is similar enough to the task to be called.
    pub fits: bool,
}

/// The tool-caller.
#[derive(Debug, Clone, Default)]
pub struct Reflex {
    pub(crate) settings: Settings,
    pub(crate) meaning: Meaning,
}

impl Reflex {
    /// A tool-caller with these settings.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            meaning: Meaning::default(),
        }
    }

    /// The tool that fits a task best, with the arguments in the task. `None` if there are no tools.
    #[must_use]
    pub fn choose(&self, task: &str, tools: &[ToolView<'_>]) -> Option<Choice> {
        let reading = Reading::new(task, None);
        let best = self.best(&reading, tools)?;
        let fits = self.fits(&best);
        Some(best.into_choice(fits))
    }

    /// The best tool for a text, with its arguments.
    pub(crate) fn best(&self, reading: &Reading, tools: &[ToolView<'_>]) -> Option<Decision> {
        let ranked = rank::rank(&reading.text, tools, &self.meaning);
        let first = *ranked.first()?;
        let mut best: Option<Decision> = None;
        let mut second = f32::MIN;
        for one in ranked {
            // Arguments cannot make up for a large difference in score.
            if first.score - one.score > 0.35 {
                second = second.max(one.score);
                break;
            }
            let filling = self.fill_arguments(reading, &tools[one.index]);
            let decision = Decision::new(one, filling);
            match &best {
                Some(known) if known.total >= decision.total => second = second.max(decision.total),
                known => {
                    second = known
                        .as_ref()
                        .map_or(second, |known| second.max(known.total));
                    best = Some(decision);
                }
            }
        }
        if let Some(best) = &mut best {
            best.lead = best.total - second;
        }
        best
    }

    /// Fills the arguments of one tool from a text.
    pub(crate) fn fill_arguments(&self, reading: &Reading, tool: &ToolView<'_>) -> Filling {
        let parameters = parameters(tool.input_schema);
        let tool_stems = rank::tool_stems(tool);
        let form = Form {
            parameters: &parameters,
            tool_stems: &tool_stems,
        };
        fill(reading, &form, &self.meaning)
    }

    /// Whether a tool is similar enough to the task for a call.
    pub(crate) fn fits(&self, decision: &Decision) -> bool {
        let missing = decision.filling.missing.len() as f32;
        let known = decision.filling.scores.len() as f32;
        let lack = missing / (missing + known).max(1.0);
        let nearness = decision.ranked.similarity + 0.3 * decision.ranked.named - 0.3 * lack;
        nearness >= self.settings.min_similarity
    }
}

/// A tool with its arguments and scores.
#[derive(Debug, Clone)]
pub(crate) struct Decision {
    pub(crate) ranked: RankedTool,
    pub(crate) filling: Filling,
    /// The score of tool and arguments together.
    pub(crate) total: f32,
    /// The difference to the score of the next tool.
    pub(crate) lead: f32,
}

impl Decision {
    fn new(ranked: RankedTool, filling: Filling) -> Self {
        let missing = filling.missing.len() as f32;
        let given = filling.scores.len() as f32;
        let lack = missing / (missing + given).max(1.0);
        let fit = if filling.scores.is_empty() {
            0.0
        } else {
            filling.scores.iter().sum::<f32>() / given
        };
        Self {
            total: ranked.score - 0.3 * lack + 0.03 * fit.min(1.5)
                - 0.06 * filling.unused.min(4) as f32,
            lead: f32::MAX,
            ranked,
            filling,
        }
    }

    /// The probability that tool and arguments are correct.
    pub(crate) fn confidence(&self) -> f64 {
        calibrate::tool(self) * calibrate::arguments(&self.filling)
    }

    fn into_choice(self, fits: bool) -> Choice {
        Choice {
            index: self.ranked.index,
            confidence: self.confidence(),
            fits,
            missing: self.filling.missing,
            arguments: Value::Object(self.filling.arguments),
        }
    }
}
