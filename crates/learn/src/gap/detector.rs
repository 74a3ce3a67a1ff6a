//! Which capabilities a task needs and whether any tool at hand has them.

use std::cmp::Ordering;

use serde_json::Value;
use windlass_embed::split_identifier;
use windlass_reflex::{Reflex, ToolIndex, ToolView, parts};
use windlass_spec::{
    Confidence, MissingCapability, NearestTool, NonEmptyText, ToolGapReport, ToolName,
    ToolSpecification,
};

use super::calibration::Calibration;
use super::features::{Features, TaskWords, ToolWords, beginning, features};
use super::propose;
use super::words::Meanings;

/// How many tools are looked at closely. What is further from the task than all of these does not do it.
const CLOSE: usize = 12;

/// How many of the nearest tools are told.
const TOLD: usize = 3;

/// How much of a task is read, in bytes.
const LONGEST_TASK: usize = 8_000;

/// How much of what is missing is told, in bytes.
const LONGEST_CAPABILITY: usize = 300;

/// From this probability on a part of a task is missing although the task as a whole finds a tool.
const PART: f64 = 0.97;

/// Finds out what tools a task lacks. Made for the tools at hand; tasks are held against them.
///
/// ```
/// use serde_json::json;
/// use windlass_learn::gap::ToolGapDetector;
/// use windlass_reflex::ToolView;
///
/// let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
/// let weather = ToolView { name: "get_weather", description: "Get the weather of a city", input_schema: &schema };
/// let detector = ToolGapDetector::new([weather]);
/// assert!(detector.detect_missing_tools("What is the weather in Paris?").is_none());
/// let report = detector.detect_missing_tools("Translate this letter into French").expect("a gap");
/// assert_eq!(report.missing_tools()[0].as_str(), "Translate this letter into French");
/// ```
#[derive(Debug, Clone)]
pub struct ToolGapDetector<'a> {
    tools: Vec<ToolView<'a>>,
    index: ToolIndex,
    reflex: Reflex,
    calibration: Calibration,
}

/// What was found out about a task.
#[derive(Debug, Clone, PartialEq)]
pub struct Assessment {
    /// How likely the tools at hand do not suffice, from 0 to 1.
    pub probability: f64,
    /// What the task needs, each with how likely no tool does it and the nearest tools by position.
    pub capabilities: Vec<Capability>,
}

/// One thing that a task needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Capability {
    /// The words that ask for it.
    pub text: String,
    /// How likely no tool at hand does it.
    pub probability: f64,
    /// The nearest tools by position, with how likely each does it, nearest first.
    pub nearest: Vec<(usize, f64)>,
}

impl<'a> ToolGapDetector<'a> {
    /// A detector for these tools.
    #[must_use]
    pub fn new(tools: impl IntoIterator<Item = ToolView<'a>>) -> Self {
        let tools: Vec<ToolView<'a>> = tools.into_iter().collect();
        Self {
            index: ToolIndex::build(tools.iter().copied()),
            tools,
            reflex: Reflex::default(),
            calibration: Calibration::SHIPPED,
        }
    }

    /// A detector for tools as agents declare them.
    #[must_use]
    pub fn of_specifications(tools: impl IntoIterator<Item = &'a ToolSpecification>) -> Self {
        Self::new(tools.into_iter().map(ToolView::from))
    }

    /// From which probability on there is said to be a gap.
    #[must_use]
    pub fn threshold(&self) -> f64 {
        self.calibration.threshold
    }

    /// What tools a task lacks; nothing if those at hand seem to do, or if the task asks for nothing.
    #[must_use]
    pub fn detect_missing_tools(&self, task: &str) -> Option<ToolGapReport> {
        self.detect_above(task, self.calibration.threshold)
    }

    /// The same, where what is less likely missing than `least` is not told.
    #[must_use]
    pub fn detect_above(&self, task: &str, least: f64) -> Option<ToolGapReport> {
        self.report(task, &self.assess(task), least)
    }

    /// A report that all of a task is missing, whatever its words look like: for who knows better.
    #[must_use]
    pub fn report_of(&self, task: &str) -> Option<ToolGapReport> {
        let whole = self.capability(beginning(task, LONGEST_TASK).trim())?;
        let assessment = Assessment {
            probability: whole.probability,
            capabilities: vec![whole],
        };
        self.report(task, &assessment, 0.0)
    }

    /// What is missing where a tool of this name was asked for with these arguments.
    #[must_use]
    pub fn missing_named(&self, name: &str, arguments: &Value) -> Option<MissingCapability> {
        let words = split_identifier(name);
        let named = self.capability(&words);
        let wanted_tool = ToolName::new(name).ok();
        let proposed = wanted_tool
            .clone()
            .and_then(|name| propose::of_call(name, arguments));
        Some(MissingCapability {
            capability: NonEmptyText::new(beginning(name, LONGEST_CAPABILITY)).ok()?,
            wanted_tool,
            confidence: named.as_ref().map(|named| rounded(named.probability)),
            nearest_tools: named.map_or_else(Vec::new, |named| self.told(&named)),
            proposed_tool: proposed.as_ref().and_then(propose::written),
            because: None,
        })
    }

    /// The tools that come nearest to what a text says, nearest first; a few.
    #[must_use]
    pub fn nearest(&self, text: &str) -> Vec<NearestTool> {
        let found = self.capability(text);
        found.map_or_else(Vec::new, |found| self.told(&found))
    }

    /// The tool that seems to do what a text says, if one does.
    #[must_use]
    pub fn does(&self, text: &str) -> Option<&ToolView<'a>> {
        let found = self.capability(text)?;
        let (index, _) = found.nearest.first()?;
        let tool = self.tools.get(*index)?;
        (found.probability < self.calibration.threshold).then_some(tool)
    }

    /// Which of the capabilities that somebody named for a task no tool at hand has. What is named is
    /// held against the tools like a task: the word of whoever named it is not enough.
    #[must_use]
    pub fn check_capabilities<S: AsRef<str>>(
        &self,
        task: &str,
        named: &[S],
        least: f64,
    ) -> Option<ToolGapReport> {
        let capabilities: Vec<Capability> = named
            .iter()
            .filter_map(|named| self.capability(named.as_ref()))
            .collect();
        let probability = capabilities
            .iter()
            .map(|one| one.probability)
            .fold(0.0, f64::max);
        let assessment = Assessment {
            probability,
            capabilities,
        };
        self.report(task, &assessment, least)
    }

    /// How likely the tools at hand do not suffice for a task, and for what.
    #[must_use]
    pub fn assess(&self, task: &str) -> Assessment {
        let task = beginning(task, LONGEST_TASK).trim();
        let Some(whole) = self.capability(task) else {
            return Assessment {
                probability: 0.0,
                capabilities: Vec::new(),
            };
        };
        let parts: Vec<Capability> = asking_parts(task)
            .iter()
            .filter_map(|part| self.capability(part))
            .collect();
        let probabilities: Vec<f64> = parts.iter().map(|part| part.probability).collect();
        Assessment {
            probability: together(whole.probability, &probabilities),
            capabilities: if parts.is_empty() { vec![whole] } else { parts },
        }
    }

    fn capability(&self, text: &str) -> Option<Capability> {
        let mut meanings = Meanings::default();
        let words = TaskWords::new(text, &mut meanings);
        if !words.says_something() {
            return None;
        }
        let mut hits = self.index.search(text, CLOSE);
        hits.sort_by_key(|hit| hit.index);
        let mut nearest: Vec<(usize, f64)> = hits
            .iter()
            .filter_map(|hit| Some((hit.index, self.tools.get(hit.index)?)))
            .map(|(index, tool)| {
                let known = ToolWords::new(tool, &mut meanings);
                let numbers = features(&words, tool, &known, &self.reflex);
                (index, 1.0 - self.calibration.logistic.probability(&numbers))
            })
            .collect();
        nearest.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
        Some(Capability {
            text: text.to_owned(),
            probability: nearest.first().map_or(1.0, |(_, does)| 1.0 - does),
            nearest,
        })
    }

    fn report(&self, task: &str, found: &Assessment, least: f64) -> Option<ToolGapReport> {
        if found.probability < least {
            return None;
        }
        let missing = found
            .capabilities
            .iter()
            .filter(|one| one.probability >= least);
        let missing: Vec<MissingCapability> = missing
            .filter_map(|capability| self.missing(capability))
            .collect();
        let checked = self
            .tools
            .iter()
            .filter_map(|tool| ToolName::new(tool.name).ok());
        let task = NonEmptyText::new(task).ok()?;
        let report = ToolGapReport::of_capabilities(missing, task, checked.collect())?;
        Some(report.with_confidence(rounded(found.probability)))
    }

    fn told(&self, capability: &Capability) -> Vec<NearestTool> {
        let nearest = capability
            .nearest
            .iter()
            .take(TOLD)
            .filter_map(|(index, does)| {
                Some(NearestTool {
                    name: ToolName::new(self.tools.get(*index)?.name).ok()?,
                    nearness: rounded(*does),
                })
            });
        nearest.collect()
    }

    fn missing(&self, capability: &Capability) -> Option<MissingCapability> {
        let text = beginning(&capability.text, LONGEST_CAPABILITY).trim();
        let proposed = propose::specification(text);
        Some(MissingCapability {
            capability: NonEmptyText::new(text).ok()?,
            wanted_tool: proposed.as_ref().map(|tool| tool.name().clone()),
            confidence: Some(rounded(capability.probability)),
            nearest_tools: self.told(capability),
            proposed_tool: proposed.as_ref().and_then(propose::written),
            because: None,
        })
    }
}

/// Two decimals: more would claim to be known.
fn rounded(probability: f64) -> Confidence {
    Confidence::clamped((probability * 100.0).round() / 100.0).0
}

/// The numbers of a task, as a whole and by its parts, with every tool.
pub(super) struct Numbers {
    pub(super) whole: Vec<Features>,
    pub(super) parts: Vec<Vec<Features>>,
}

pub(super) fn numbers(task: &str, tools: &[ToolView<'_>], reflex: &Reflex) -> Numbers {
    let mut meanings = Meanings::default();
    let known: Vec<ToolWords> = tools
        .iter()
        .map(|tool| ToolWords::new(tool, &mut meanings))
        .collect();
    let mut of = |text: &str| -> Vec<Features> {
        let words = TaskWords::new(text, &mut meanings);
        let tools = tools.iter().zip(&known);
        tools
            .map(|(tool, known)| features(&words, tool, known, reflex))
            .collect()
    };
    let task = beginning(task, LONGEST_TASK).trim();
    Numbers {
        whole: of(task),
        parts: asking_parts(task).iter().map(|part| of(part)).collect(),
    }
}

/// The probability of a gap from the numbers of a task and of its parts.
pub(super) fn combined(
    calibration: &Calibration,
    whole: &[Features],
    parts: &[Vec<Features>],
) -> f64 {
    let parts: Vec<f64> = parts
        .iter()
        .map(|part| calibration.probability(part))
        .collect();
    together(calibration.probability(whole), &parts)
}

/// A task is done if one tool does all of it, or if each part has a tool. A part that surely has none is
/// missing even if the rest drowns it.
fn together(whole: f64, parts: &[f64]) -> f64 {
    let Some(worst) = parts.iter().copied().max_by(f64::total_cmp) else {
        return whole;
    };
    match worst.partial_cmp(&PART) {
        Some(Ordering::Less) => whole.min(worst),
        _ => whole.max(worst),
    }
}

/// The parts of a task that ask for something by themselves; none if there are not at least two.
fn asking_parts(task: &str) -> Vec<String> {
    let mut asking = parts(task);
    if asking.len() > 1 {
        asking.retain(|part| asks(part));
    }
    if asking.len() < 2 {
        asking.clear();
    }
    asking
}

/// Whether a part of a task asks for something: it begins with what asks, and names something.
fn asks(part: &str) -> bool {
    let words = windlass_reflex::content_words(part);
    let first = words.first();
    first.is_some_and(|word| word.asks) && words.iter().filter(|word| !word.asks).count() >= 1
}
