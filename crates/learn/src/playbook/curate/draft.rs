//! One strategy in the making: what was said of it so far, and so how it stands.

use std::collections::{BTreeMap, BTreeSet};

use windlass_spec::{AgentName, NonEmptyText, RunId, StrategyId, ToolCallingStrategy, ToolName};

use super::standing::{Retired, Standing, is_harmful};
use super::{CurationSettings, KeptStrategy};
use crate::playbook::evidence::Vote;
use crate::playbook::tally::{Prior, Tally};

/// How many runs that prove a strategy are named in its line.
const NAMED_RUNS: usize = 5;

/// A strategy in the making.
pub(super) struct Draft {
    pub(super) id: StrategyId,
    pub(super) strategy: ToolCallingStrategy,
    pub(super) tally: Tally,
    /// What was known before, by the id under which it came.
    pub(super) priors: BTreeMap<StrategyId, Prior>,
    pub(super) examples: Vec<NonEmptyText>,
    pub(super) agents: BTreeSet<AgentName>,
    /// How many runs there were when it was last proved or recalled.
    pub(super) used_at: usize,
    pub(super) is_gone: bool,
}

impl Draft {
    pub(super) fn prove(
        &mut self,
        run: &RunId,
        agent: &AgentName,
        task: Option<&NonEmptyText>,
        vote: Vote,
        iterations: u32,
        examples: usize,
    ) {
        self.tally.vote(run, vote, iterations);
        self.agents.insert(agent.clone());
        if let Some(task) = task {
            self.add_example(task, examples);
        }
    }

    /// Keeps an example; the oldest but the first makes room for it.
    pub(super) fn add_example(&mut self, task: &NonEmptyText, limit: usize) {
        if limit == 0 || self.examples.contains(task) {
            return;
        }
        if self.examples.len() >= limit {
            self.examples.remove(usize::from(limit > 1));
        }
        self.examples.push(task.clone());
    }

    pub(super) fn standing(
        &self,
        lacks: &BTreeMap<AgentName, BTreeSet<ToolName>>,
        runs: usize,
        settings: &CurationSettings,
    ) -> Standing {
        if self.strategy.disabled {
            return Standing::Disabled;
        }
        if self.strategy.pinned {
            return Standing::Active;
        }
        // It is about the agents that proved it; what a person wrote is about all.
        let concerned = lacks
            .iter()
            .filter(|(agent, _)| self.agents.is_empty() || self.agents.contains(*agent));
        let mut gone = None;
        let mut has_all = false;
        for (_, lacking) in concerned {
            let mut tools = self.strategy.tool_sequence().iter();
            match tools.find(|tool| lacking.contains(*tool)) {
                Some(tool) => gone = Some(tool.clone()),
                None => has_all = true,
            }
        }
        if let (Some(tool), false) = (gone, has_all) {
            return Standing::Retired(Retired::Gone(tool));
        }
        if is_harmful(self.strategy.section, &self.tally) {
            return Standing::Retired(Retired::Harmful);
        }
        if runs - self.used_at > settings.unused_after {
            return Standing::Retired(Retired::Unused);
        }
        Standing::Active
    }

    pub(super) fn into_kept(self, standing: Standing) -> KeptStrategy {
        let Self {
            id,
            strategy,
            tally,
            examples,
            ..
        } = self;
        let figures = strategy
            .clone()
            .with_figures(tally.success_rate(), tally.avg_iterations());
        let mut strategy = figures.unwrap_or(strategy);
        strategy.helpful_count = tally.helpful();
        strategy.harmful_count = tally.harmful();
        let votes = tally.votes().rev().take(NAMED_RUNS);
        strategy.runs = votes.map(|(run, _)| run.clone()).collect();
        let others = examples
            .into_iter()
            .filter(|example| Some(example) != strategy.example_task.as_ref());
        strategy.examples = others.collect();
        strategy.id = Some(id.clone());
        KeptStrategy {
            strategy,
            tally,
            standing,
            id,
        }
    }
}
