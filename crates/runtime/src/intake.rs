//! Intake: the analysis of a task before a model is asked. It classifies the intent of the task, and selects
//! the tools that the model is shown if there are too many to show all of them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::gap::GapCheck;
use crate::learning::Learning;
use windlass_config::Configuration;
use windlass_core::gate::Rules;
use windlass_core::run::{LeftOut, LeftOutReason, Run};
use windlass_learn::intent::{IntentClassifier, IntentDefinitions, understand};
use windlass_reflex::{ToolIndex, ToolView, estimated_tokens};
use windlass_spec::{Confidence, NonEmptyText, ToolName, ToolSpecification, UserIntent};

/// The operator's settings for intake.
#[derive(Debug, Clone)]
pub(crate) struct Intake {
    /// How many tokens the tools that a model is shown may take.
    pub(crate) token_budget: usize,
    /// The tools that are always shown.
    pub(crate) always: Vec<ToolName>,
    /// The intents that tasks are classified by; `None` classifies nothing.
    pub(crate) intents: Option<Arc<Intents>>,
    /// How missing tools are detected; `None` detects nothing.
    pub(crate) gaps: Option<GapCheck>,
    /// What is recalled for tasks and learned from runs; `None` for neither.
    pub(crate) learning: Option<Learning>,
}

impl Default for Intake {
    /// Shows all tools.
    fn default() -> Self {
        Self {
            token_budget: usize::MAX,
            always: Vec::new(),
            intents: None,
            gaps: None,
            learning: None,
        }
    }
}

/// The intents that tasks are classified by.
#[derive(Debug)]
pub(crate) struct Intents {
    definitions: IntentDefinitions,
    /// Intents of lower confidence are ignored.
    threshold: Confidence,
    /// Trained when it is first needed; `None` if there are too few examples.
    classifier: OnceLock<Option<IntentClassifier>>,
}

impl Intents {
    /// The shipped intents, changed and extended by a configuration.
    pub(crate) fn of(configuration: &Configuration) -> Option<Self> {
        let mut definitions = IntentDefinitions::shipped().ok()?;
        for (name, configured) in &configuration.intents().intents {
            let mut definition = definitions.get(name.as_str()).cloned().unwrap_or_default();
            let texts = |texts: &[String]| -> Vec<NonEmptyText> {
                let texts = texts.iter().map(String::as_str);
                texts
                    .filter_map(|text| NonEmptyText::new(text).ok())
                    .collect()
            };
            if let Some(examples) = &configured.examples {
                definition.examples = texts(examples);
            }
            if let Some(tools) = &configured.tools {
                definition.tools.clone_from(tools);
            }
            if let Some(context) = &configured.context {
                definition.context = texts(context);
            }
            if let Some(fallbacks) = &configured.fallbacks {
                definition.fallbacks = texts(fallbacks);
            }
            definitions.insert(name.as_str(), definition);
        }
        Some(Self {
            definitions,
            threshold: configuration.intents().threshold,
            classifier: OnceLock::new(),
        })
    }

    /// The intent of a run's task, if it is clear enough.
    pub(crate) fn of_task(&self, run: &Run) -> Option<UserIntent> {
        let classifier = self
            .classifier
            .get_or_init(|| self.definitions.train().ok());
        let classifier = classifier.as_ref()?;
        let tools: Vec<&Arc<ToolSpecification>> = run.allowed_tools().collect();
        let index = index(&tools);
        let tools: Vec<&ToolSpecification> = tools.into_iter().map(|tool| &**tool).collect();
        let task = &run.task().description;
        let understood = understand(task, classifier, &self.definitions, tools, &index)?;
        (understood.confidence() >= self.threshold).then_some(understood)
    }
}

/// The tools that a model is to be shown, and those that are left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ToolSelection {
    pub(crate) tools: Vec<ToolName>,
    pub(crate) left_out: Vec<LeftOut>,
    pub(crate) set: BTreeMap<ToolName, Vec<String>>,
}

impl ToolSelection {
    /// Selects the tools for the model of a run under these rules. `suggested` are the tools that suit the
    /// task's intent.
    pub(crate) fn of(run: &Run, rules: &Rules, intake: &Intake, suggested: &[&str]) -> Self {
        let set = rules.set_arguments().filter_map(|(name, set)| {
            let tool = run
                .allowed_tools()
                .find(|tool| tool.name().as_str() == name)?;
            Some((tool.name().clone(), set))
        });
        let set = set.collect();
        let mut left_out = Vec::new();
        let mut usable = Vec::new();
        for tool in run.allowed_tools() {
            let because = match tool.attributes().deprecated {
                _ if rules.switched_off(tool.name().as_str()).is_some() => {
                    Some(LeftOutReason::SwitchedOff)
                }
                Some(_) => Some(LeftOutReason::Deprecated),
                None => None,
            };
            match because {
                Some(because) => left_out.push(LeftOut {
                    tool: tool.name().clone(),
                    because,
                }),
                None => usable.push(tool),
            }
        }
        // If all tools fit the budget, no index is needed.
        let tokens = |tool: &&Arc<ToolSpecification>| estimated_tokens(&ToolView::from(&***tool));
        if usable.iter().map(tokens).sum::<usize>() <= intake.token_budget {
            let tools = usable.iter().map(|tool| tool.name().clone()).collect();
            return Self {
                tools,
                left_out,
                set,
            };
        }
        // The order of priority: tools the model searched for, the latest first; the operator's; the intent's.
        let found = run.found_tools();
        let found = found.iter().rev().map(ToolName::as_str);
        let always = intake.always.iter().map(ToolName::as_str);
        let suggested = suggested.iter().copied();
        let always: Vec<&str> = found.chain(always).chain(suggested).collect();
        let index = index(&usable);
        let selected = index.select(&run.task().description, intake.token_budget, &always);
        let name = |index: &usize| usable[*index].name().clone();
        left_out.extend(selected.left_out.iter().map(|index| LeftOut {
            tool: name(index),
            because: LeftOutReason::Budget,
        }));
        Self {
            tools: selected.offered.iter().map(name).collect(),
            left_out,
            set,
        }
    }

    /// Whether the model of a run is shown exactly this.
    pub(crate) fn is_shown(&self, run: &Run) -> bool {
        match run.offer() {
            Some(offer) => {
                offer.tools == self.tools
                    && offer.left_out == self.left_out
                    && offer.set == self.set
            }
            None => self.left_out.is_empty() && self.set.is_empty(),
        }
    }
}

/// The callable tools of a run that fit a query best.
pub(crate) fn find<'r>(
    run: &'r Run,
    rules: &Rules,
    query: &str,
    limit: usize,
) -> Vec<&'r ToolSpecification> {
    let is_usable = |tool: &&Arc<ToolSpecification>| {
        rules.switched_off(tool.name().as_str()).is_none() && tool.attributes().deprecated.is_none()
    };
    let usable: Vec<&Arc<ToolSpecification>> = run.allowed_tools().filter(is_usable).collect();
    let index = index(&usable);
    let hits = index.search(query, limit);
    hits.iter().map(|hit| &**usable[hit.index]).collect()
}

/// How many indexes are cached. A crew has few sets of tools and searches the same ones repeatedly.
const MAX_INDEXES: usize = 8;

/// The cached indexes, the most recently used first.
static INDEXES: Mutex<VecDeque<IndexedTools>> = Mutex::new(VecDeque::new());

/// A set of tools with its index.
#[derive(Clone)]
struct IndexedTools {
    tools: Vec<Arc<ToolSpecification>>,
    index: Arc<ToolIndex>,
}

impl IndexedTools {
    /// Whether these are the tools, in this order.
    fn is_of(&self, tools: &[&Arc<ToolSpecification>]) -> bool {
        let is_same = |(one, other): (&Arc<ToolSpecification>, &&Arc<ToolSpecification>)| {
            Arc::ptr_eq(one, other) || one == *other
        };
        self.tools.len() == tools.len() && self.tools.iter().zip(tools).all(is_same)
    }
}

/// The index of these tools, built when they are first searched.
fn index(tools: &[&Arc<ToolSpecification>]) -> Arc<ToolIndex> {
    let lock = || INDEXES.lock().unwrap_or_else(PoisonError::into_inner);
    let found = {
        let mut cached = lock();
        let position = cached.iter().position(|indexed| indexed.is_of(tools));
        position.and_then(|position| cached.remove(position))
    };
    // The lock is not held while the index is built. At worst two threads build the same one.
    let indexed = found.unwrap_or_else(|| IndexedTools {
        tools: tools.iter().map(|tool| Arc::clone(tool)).collect(),
        index: Arc::new(ToolIndex::build(
            tools.iter().map(|tool| ToolView::from(&***tool)),
        )),
    });
    let index = Arc::clone(&indexed.index);
    let mut cached = lock();
    cached.push_front(indexed);
    cached.truncate(MAX_INDEXES);
    index
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_of_a_set_of_tools_is_built_once() {
        let agent = |names: &[&str]| {
            let tools: Vec<String> = names
                .iter()
                .map(|name| {
                    format!("[{name}:Tool {{description: \"Does {name} for a user\"}} | (a::Text)==>(::Text)]")
                })
                .collect();
            let text = format!(
                "[helper:Agent {{instruction: \"Help.\", model: \"OpenAI/gpt-4o-mini\"}} | {}]",
                tools.join(", ")
            );
            windlass_spec::read(&text).file.unwrap().agents()[0].clone()
        };
        let index_of =
            |agent: &windlass_spec::Agent| index(&agent.tools().iter().collect::<Vec<_>>());
        let two = agent(&["search", "send"]);
        let first = index_of(&two);
        assert!(Arc::ptr_eq(&first, &index_of(&two)));
        // A journal that is read again has equal tools at another address.
        assert!(Arc::ptr_eq(&first, &index_of(&agent(&["search", "send"]))));
        assert!(!Arc::ptr_eq(&first, &index_of(&agent(&["search"]))));
        assert!(!Arc::ptr_eq(&first, &index_of(&agent(&["search", "post"]))));
        assert!(Arc::ptr_eq(&first, &index_of(&two)));
    }
}
