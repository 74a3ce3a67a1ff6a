//! Detects which capabilities a task needs and whether any available tool has them.

use std::cmp::Ordering;
use std::collections::HashSet;

use serde_json::Value;
use windlass_embed::split_identifier;
use windlass_reflex::{Reflex, ToolIndex, ToolView, is_web_search, is_world_question, task_parts};
use windlass_spec::{
    Confidence, MissingCapability, NearestTool, NonEmptyText, ToolGapReport, ToolName,
    ToolSpecification,
};

use super::calibration::Calibration;
use super::features::{Features, TaskWords, ToolWords, beginning, features};
use super::propose;
use super::words::Meanings;

/// How many of the most similar tools are compared in detail.
const COMPARED_TOOLS: usize = 12;

/// How many of the nearest tools are reported.
const REPORTED_TOOLS: usize = 3;

/// The longest task that is read, in bytes.
const LONGEST_TASK: usize = 8_000;

/// The longest description of a capability, in bytes.
const LONGEST_CAPABILITY: usize = 300;

/// The probability that a search of the web answers a question about the world.
const SEARCH_ANSWERS: f64 = 0.95;

/// From this probability on, a part of a task counts as missing although the task as a whole matches a tool.
const MISSING_PART: f64 = 0.97;

/// Detects which tools a task lacks, given the available tools.
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
/// assert_eq!(report.missing_tools()[0].as_str(), "translate_letter");
/// ```
#[derive(Debug, Clone)]
pub struct ToolGapDetector<'a> {
    tools: Vec<ToolView<'a>>,
    index: ToolIndex,
    reflex: Reflex,
    calibration: Calibration,
}

/// The result for one task.
#[derive(Debug, Clone, PartialEq)]
pub struct GapAssessment {
    /// The probability that the available tools do not suffice, from 0 to 1.
    pub probability: f64,
    /// The capabilities that the task needs.
    pub capabilities: Vec<Capability>,
}

/// A capability that a task needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Capability {
    /// The text that asks for it.
    pub text: String,
    /// The probability that no available tool has it.
    pub probability: f64,
    /// The nearest tools by position, each with the probability that it has the capability, nearest first.
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
    pub fn from_specifications(tools: impl IntoIterator<Item = &'a ToolSpecification>) -> Self {
        Self::new(tools.into_iter().map(ToolView::from))
    }

    /// The least probability that is reported as a gap.
    #[must_use]
    pub fn threshold(&self) -> f64 {
        self.calibration.threshold
    }

    /// The tools that a task lacks; `None` if the available tools suffice or the task asks for nothing.
    #[must_use]
    pub fn detect_missing_tools(&self, task: &str) -> Option<ToolGapReport> {
        self.detect_above(task, self.calibration.threshold)
    }

    /// Like [`detect_missing_tools`](Self::detect_missing_tools), with the threshold `least`.
    #[must_use]
    pub fn detect_above(&self, task: &str, least: f64) -> Option<ToolGapReport> {
        self.report(task, &self.assess(task), least)
    }

    /// A report that the whole task lacks a tool, whatever the probability. For callers that know it.
    #[must_use]
    pub fn report_whole_task(&self, task: &str) -> Option<ToolGapReport> {
        let whole = self.capability(beginning(task, LONGEST_TASK).trim())?;
        let assessment = GapAssessment {
            probability: whole.probability,
            capabilities: vec![whole],
        };
        self.report(task, &assessment, 0.0)
    }

    /// The missing capability behind a call of an unknown tool with these arguments.
    #[must_use]
    pub fn missing_for_call(&self, name: &str, arguments: &Value) -> Option<MissingCapability> {
        let words = split_identifier(name);
        let named = self.capability(&words);
        let wanted_tool = ToolName::new(name).ok();
        let proposed = wanted_tool
            .clone()
            .and_then(|name| propose::specification_of_call(name, arguments));
        Some(MissingCapability {
            capability: NonEmptyText::new(beginning(name, LONGEST_CAPABILITY)).ok()?,
            request: None,
            wanted_tool,
            confidence: named.as_ref().map(|named| rounded(named.probability)),
            nearest_tools: named.map_or_else(Vec::new, |named| self.nearest_tools(&named)),
            proposed_tool: proposed.as_ref().and_then(propose::to_agent_file_text),
            because: None,
        })
    }

    /// The few tools nearest to a text, nearest first.
    #[must_use]
    pub fn nearest(&self, text: &str) -> Vec<NearestTool> {
        let found = self.capability(text);
        found.map_or_else(Vec::new, |found| self.nearest_tools(&found))
    }

    /// The tool that can do what a text asks for, if there is one.
    #[must_use]
    pub fn tool_for(&self, text: &str) -> Option<&ToolView<'a>> {
        let found = self.capability(text)?;
        let (index, _) = found.nearest.first()?;
        let tool = self.tools.get(*index)?;
        (found.probability < self.calibration.threshold).then_some(tool)
    }

    /// Reports which of the named capabilities of a task no available tool has. Each is compared with the tools
    /// like a task: naming it as missing is not enough.
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
        let assessment = GapAssessment {
            probability,
            capabilities,
        };
        self.report(task, &assessment, least)
    }

    /// The probability that the available tools do not suffice for a task, with the capabilities it needs.
    #[must_use]
    pub fn assess(&self, task: &str) -> GapAssessment {
        let task = beginning(task, LONGEST_TASK).trim();
        let Some(whole) = self.capability(task) else {
            return GapAssessment {
                probability: 0.0,
                capabilities: Vec::new(),
            };
        };
        let parts: Vec<Capability> = request_parts(task)
            .iter()
            .filter_map(|part| self.capability(part))
            .collect();
        let probabilities: Vec<f64> = parts.iter().map(|part| part.probability).collect();
        GapAssessment {
            probability: combine_parts(whole.probability, &probabilities),
            capabilities: match parts.is_empty() {
                true => self
                    .joined_capabilities(task, whole.probability)
                    .unwrap_or_else(|| vec![whole]),
                false => parts,
            },
        }
    }

    /// The capabilities that a request joins by "and" or a comma, if one of them is missing at least as likely as the
    /// whole. They name what is missing; whether anything is, the whole request decides.
    fn joined_capabilities(&self, task: &str, whole: f64) -> Option<Vec<Capability>> {
        let parts = joined_parts(task)?;
        let parts = parts.iter().map(|part| self.capability(part));
        let parts: Vec<Capability> = parts.collect::<Option<_>>()?;
        parts
            .iter()
            .any(|part| part.probability >= whole)
            .then_some(parts)
    }

    fn capability(&self, text: &str) -> Option<Capability> {
        let mut meanings = Meanings::default();
        let words = TaskWords::new(text, &mut meanings);
        if !words.has_content() {
            return None;
        }
        let mut hits = self.index.search(text, COMPARED_TOOLS);
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
        if is_world_question(text) {
            let tools = self.tools.iter().enumerate();
            for (index, _) in tools.filter(|(_, tool)| is_web_search(tool)) {
                nearest.retain(|(known, does)| *known != index || *does > SEARCH_ANSWERS);
                if nearest.iter().all(|(known, _)| *known != index) {
                    nearest.push((index, SEARCH_ANSWERS));
                }
            }
        }
        nearest.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
        Some(Capability {
            text: text.to_owned(),
            probability: nearest.first().map_or(1.0, |(_, does)| 1.0 - does),
            nearest,
        })
    }

    fn report(&self, task: &str, found: &GapAssessment, least: f64) -> Option<ToolGapReport> {
        if found.probability < least {
            return None;
        }
        let missing = found
            .capabilities
            .iter()
            .filter(|one| one.probability >= least);
        let mut missing: Vec<MissingCapability> = missing
            .filter_map(|capability| self.missing(capability))
            .collect();
        missing.extend(self.missing_account(&missing));
        distinct(&mut missing);
        let checked = self
            .tools
            .iter()
            .filter_map(|tool| ToolName::new(tool.name).ok());
        let task = NonEmptyText::new(task).ok()?;
        let report = ToolGapReport::of_capabilities(missing, task, checked.collect())?;
        Some(report.with_confidence(rounded(found.probability)))
    }

    fn nearest_tools(&self, capability: &Capability) -> Vec<NearestTool> {
        let nearest = capability
            .nearest
            .iter()
            .take(REPORTED_TOOLS)
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
        let name = proposed.as_ref().map(|tool| tool.name().as_str());
        Some(MissingCapability {
            capability: NonEmptyText::new(name.unwrap_or(text)).ok()?,
            request: NonEmptyText::new(text).ok(),
            wanted_tool: proposed.as_ref().map(|tool| tool.name().clone()),
            confidence: Some(rounded(capability.probability)),
            nearest_tools: self.nearest_tools(capability),
            proposed_tool: proposed.as_ref().and_then(propose::to_agent_file_text),
            because: None,
        })
    }
}

impl ToolGapDetector<'_> {
    /// The access to the user's account, if what is missing is in it and no tool has to do with accounts.
    fn missing_account(&self, missing: &[MissingCapability]) -> Option<MissingCapability> {
        let in_account = missing.iter().find(|one| {
            let request = one.request.as_ref();
            request.is_some_and(|request| propose::is_in_account(request.as_str()))
        })?;
        let has_tool = self.tools.iter().any(|tool| {
            let words = split_identifier(tool.name).to_lowercase();
            words.split_whitespace().any(|word| word == "account")
        });
        let name = propose::ACCOUNT_ACCESS;
        (!has_tool).then(|| MissingCapability {
            capability: NonEmptyText::or(name, name),
            request: None,
            wanted_tool: ToolName::new(name).ok(),
            confidence: in_account.confidence,
            nearest_tools: Vec::new(),
            proposed_tool: None,
            because: None,
        })
    }
}

/// Keeps one of the capabilities with the same name.
fn distinct(missing: &mut Vec<MissingCapability>) {
    let mut seen = HashSet::new();
    missing.retain(|one| seen.insert(one.capability.clone()));
}

/// Rounds to two decimals, because more would suggest a precision that the model does not have.
fn rounded(probability: f64) -> Confidence {
    Confidence::clamped((probability * 100.0).round() / 100.0).0
}

/// The features of a task, as a whole and by its parts, with every tool.
pub(super) struct TaskFeatures {
    pub(super) whole: Vec<Features>,
    pub(super) parts: Vec<Vec<Features>>,
}

pub(super) fn task_features(task: &str, tools: &[ToolView<'_>], reflex: &Reflex) -> TaskFeatures {
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
    TaskFeatures {
        whole: of(task),
        parts: request_parts(task).iter().map(|part| of(part)).collect(),
    }
}

/// The probability of a gap from the features of a task and of its parts.
pub(super) fn gap_probability(
    calibration: &Calibration,
    whole: &[Features],
    parts: &[Vec<Features>],
) -> f64 {
    let parts: Vec<f64> = parts
        .iter()
        .map(|part| calibration.probability(part))
        .collect();
    combine_parts(calibration.probability(whole), &parts)
}

/// Combines the probabilities of a task and its parts. A task can be done if one tool does all of it, or if each
/// part has a tool. A part that almost certainly has none is missing even if the whole matches a tool.
fn combine_parts(whole: f64, parts: &[f64]) -> f64 {
    let Some(worst) = parts.iter().copied().max_by(f64::total_cmp) else {
        return whole;
    };
    match worst.partial_cmp(&MISSING_PART) {
        Some(Ordering::Less) => whole.min(worst),
        _ => whole.max(worst),
    }
}

/// The parts of a task that are requests by themselves; empty if there are fewer than two.
fn request_parts(task: &str) -> Vec<String> {
    let mut asking = task_parts(task);
    if asking.len() > 1 {
        asking.retain(|part| is_request(part));
    }
    if asking.len() < 2 {
        asking.clear();
    }
    asking
}

/// The requests that are joined by "and" or a comma: each further one begins with a verb and its object, or with what
/// the user calls their own, for which the first verb is repeated. `None` if there is only one.
fn joined_parts(task: &str) -> Option<Vec<String>> {
    let task = task.trim_end_matches(['.', '!', '?']);
    let mut parts: Vec<String> = Vec::new();
    for piece in task.split(", ").flat_map(|piece| piece.split(" and ")) {
        let piece = piece
            .trim()
            .trim_start_matches("and ")
            .trim_start_matches("then ");
        let mut words = piece.split_whitespace();
        let (first, second) = (words.next().unwrap_or_default(), words.next());
        let begins = match (parts.first(), second) {
            (None, _) => Some(piece.to_owned()),
            (Some(before), Some(_)) if is_own(first) => {
                let verb = before.split_whitespace().next().unwrap_or_default();
                Some(format!("{verb} {piece}"))
            }
            (Some(_), Some(object)) if is_article(object) && !is_article(first) => {
                let is_verb = first.chars().all(char::is_lowercase) && !is_joining(first);
                is_verb.then(|| piece.to_owned())
            }
            (Some(_), _) => None,
        };
        match (begins, parts.last_mut()) {
            (Some(part), _) => parts.push(part),
            // It continues the request before it.
            (None, Some(before)) => *before += &format!(" and {piece}"),
            (None, None) => {}
        }
    }
    (parts.len() > 1).then_some(parts)
}

fn is_own(word: &str) -> bool {
    matches!(word, "my" | "our")
}

fn is_article(word: &str) -> bool {
    is_own(word)
        || matches!(
            word,
            "a" | "an" | "the" | "all" | "every" | "some" | "it" | "them"
        )
}

/// Whether a word joins an object to what is before it, and begins no request.
fn is_joining(word: &str) -> bool {
    matches!(
        word,
        "in" | "on"
            | "at"
            | "to"
            | "of"
            | "for"
            | "from"
            | "by"
            | "with"
            | "about"
            | "into"
            | "as"
            | "is"
            | "are"
            | "not"
            | "or"
            | "but"
            | "if"
            | "when"
            | "that"
            | "which"
            | "than"
            | "over"
            | "under"
            | "between"
            | "both"
    )
}

/// Whether a part of a task is a request: it begins with a word that asks, and has another word.
fn is_request(part: &str) -> bool {
    let words = windlass_reflex::content_words(part);
    let first = words.first();
    first.is_some_and(|word| word.asks) && words.iter().filter(|word| !word.asks).count() >= 1
}
