//! One strategy in the making: what was said of it so far, and so how it stands.

use std::collections::{BTreeMap, BTreeSet};

use windlass_spec::{
    AgentName, NonEmptyText, StrategyId, StrategySection, Timestamp, ToolCallingStrategy, ToolName,
};

use super::standing::{Retired, Standing, is_harmful};
use super::{CurationSettings, KeptStrategy};
use crate::playbook::evidence::{RunEvidence, Vote};
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
    /// Whether it stays, whatever is learned.
    pub(super) pinned: Switch,
    /// Whether a person switched it off.
    pub(super) disabled: Switch,
    pub(super) is_gone: bool,
}

/// What people said last, if they ever did; the greater of two was said later.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Switch {
    /// With which entry; none is 0.
    pub(super) said_at: usize,
    pub(super) is_on: bool,
}

impl Draft {
    /// Takes a run as proof, of which there were so many then.
    pub(super) fn prove(&mut self, run: &RunEvidence, now: usize, examples: usize) {
        let vote = match self.strategy.section {
            StrategySection::Pitfalls => Vote::Harmful,
            StrategySection::Strategies | StrategySection::Observations => Vote::Helpful,
        };
        self.tally.vote(&run.run, vote, run.iterations);
        self.agents.insert(run.agent.clone());
        if let Some(task) = &run.task {
            self.add_example(task, examples);
        }
        self.use_at(run.at, now);
    }

    pub(super) fn use_at(&mut self, at: Timestamp, now: usize) {
        self.used_at = self.used_at.max(now);
        self.strategy.last_updated = self.strategy.last_updated.max(Some(at));
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
        if self.disabled.is_on {
            return Standing::Disabled;
        }
        if self.pinned.is_on {
            return Standing::Active;
        }
        // A tool that is gone comes last: with it the strategy is of use again, unless it was of none before.
        if is_harmful(self.strategy.section, &self.tally) {
            return Standing::Retired(Retired::Harmful);
        }
        if runs - self.used_at > settings.unused_after {
            return Standing::Retired(Retired::Unused);
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
        Standing::Active
    }

    pub(super) fn into_kept(self, standing: Standing) -> KeptStrategy {
        let Self {
            id,
            strategy,
            tally,
            examples,
            pinned,
            disabled,
            ..
        } = self;
        let figures = strategy
            .clone()
            .with_figures(tally.success_rate(), tally.avg_iterations());
        let mut strategy = figures.unwrap_or(strategy);
        (strategy.pinned, strategy.disabled) = (pinned.is_on, disabled.is_on);
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
