//! Intake: the analysis of a task before a model is asked. It classifies the intent of the task, and selects
//! the tools that the model is shown if there are too many to show all of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use windlass_core::gate::Rules;
use windlass_core::run::{LeftOut, LeftOutReason, Run};
use windlass_spec::registry::ToolExecutionContext;
use windlass_spec::{IsolationLevel, ToolName, ToolSpecification};

use crate::gap::GapCheck;
use crate::intents::Intents;
use crate::learning::Learning;
use crate::money::MoneySettings;
use crate::ranking::{ToolIndexes, estimated_tokens};

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
    /// The search indexes of the tools.
    pub(crate) indexes: ToolIndexes,
    /// How strictly programs are isolated.
    pub(crate) isolation: IsolationLevel,
    /// What models cost and what runs may use up.
    pub(crate) money: MoneySettings,
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
            indexes: ToolIndexes::default(),
            isolation: IsolationLevel::default(),
            money: MoneySettings::default(),
        }
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
    /// Selects the tools for the model of a run in this context, under these rules. `suggested` are the tools
    /// that suit the task's intent.
    pub(crate) fn of(
        run: &Run,
        context: Option<&ToolExecutionContext>,
        rules: &Rules,
        intake: &Intake,
        suggested: &[&str],
    ) -> Self {
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
        let tokens = |tool: &&Arc<ToolSpecification>| estimated_tokens(tool);
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
        let task = context.map_or("", ToolExecutionContext::user_request);
        let (shown, hidden) = intake
            .indexes
            .select(&usable, task, intake.token_budget, &always);
        let name = |index: &usize| usable[*index].name().clone();
        left_out.extend(hidden.iter().map(|index| LeftOut {
            tool: name(index),
            because: LeftOutReason::Budget,
        }));
        Self {
            tools: shown.iter().map(name).collect(),
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
    indexes: &ToolIndexes,
    (query, limit): (&str, usize),
) -> Vec<&'r ToolSpecification> {
    let is_usable = |tool: &&Arc<ToolSpecification>| {
        rules.switched_off(tool.name().as_str()).is_none() && tool.attributes().deprecated.is_none()
    };
    let usable: Vec<&Arc<ToolSpecification>> = run.allowed_tools().filter(is_usable).collect();
    let hits = indexes.search(&usable, query, limit);
    hits.into_iter().map(|hit| &**usable[hit]).collect()
}
