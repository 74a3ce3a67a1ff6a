//! One strategy while the log is folded: its votes so far, and the status that follows from them.

use std::collections::{BTreeMap, BTreeSet};

use windlass_spec::{
    AgentName, NonEmptyText, StrategyId, StrategySection, Timestamp, ToolCallingStrategy, ToolName,
};

use super::status::{RetiredReason, StrategyStatus, is_harmful};
use super::{CurationSettings, KeptStrategy};
use crate::playbook::evidence::{RunEvidence, Vote};
use crate::playbook::tally::{Prior, Tally};

/// How many runs are listed in the line of a strategy.
const LISTED_RUNS: usize = 5;

/// A strategy while the log is folded.
pub(super) struct Draft {
    pub(super) id: StrategyId,
    pub(super) strategy: ToolCallingStrategy,
    pub(super) tally: Tally,
    /// The imported counts, by the id under which each was imported.
    pub(super) priors: BTreeMap<StrategyId, Prior>,
    pub(super) examples: Vec<NonEmptyText>,
    pub(super) agents: BTreeSet<AgentName>,
    /// How many runs there were when it was last proved or recalled.
    pub(super) used_at: usize,
    /// Whether it is pinned, so that it is never retired.
    pub(super) pinned: Switch,
    /// Whether a person disabled it.
    pub(super) disabled: Switch,
    pub(super) is_removed: bool,
}

/// The last setting by a person, if any. The greater of two is the later one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Switch {
    /// The number of the entry that set it; 0 if none did.
    pub(super) set_at: usize,
    pub(super) is_on: bool,
}

impl Draft {
    /// Counts a run as proof. `now` is the number of runs at that time.
    pub(super) fn count_proof(&mut self, run: &RunEvidence, now: usize, examples: usize) {
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

    /// Adds an example task. If there are too many, the oldest except the first is dropped.
    pub(super) fn add_example(&mut self, task: &NonEmptyText, limit: usize) {
        if limit == 0 || self.examples.contains(task) {
            return;
        }
        if self.examples.len() >= limit {
            self.examples.remove(usize::from(limit > 1));
        }
        self.examples.push(task.clone());
    }

    pub(super) fn status(
        &self,
        lacks: &BTreeMap<AgentName, BTreeSet<ToolName>>,
        runs: usize,
        settings: &CurationSettings,
    ) -> StrategyStatus {
        if self.disabled.is_on {
            return StrategyStatus::Disabled;
        }
        if self.pinned.is_on {
            return StrategyStatus::Active;
        }
        // A missing tool is checked last, because that reason means: active again when the tool returns.
        if is_harmful(self.strategy.section, &self.tally) {
            return StrategyStatus::Retired(RetiredReason::Harmful);
        }
        if runs - self.used_at > settings.unused_after {
            return StrategyStatus::Retired(RetiredReason::Unused);
        }
        // A learned strategy concerns the agents that proved it. A person's strategy concerns all agents.
        let concerned = lacks
            .iter()
            .filter(|(agent, _)| self.agents.is_empty() || self.agents.contains(*agent));
        let mut missing = None;
        let mut has_all = false;
        for (_, lacking) in concerned {
            let mut tools = self.strategy.tool_sequence().iter();
            match tools.find(|tool| lacking.contains(*tool)) {
                Some(tool) => missing = Some(tool.clone()),
                None => has_all = true,
            }
        }
        if let (Some(tool), false) = (missing, has_all) {
            return StrategyStatus::Retired(RetiredReason::MissingTool(tool));
        }
        StrategyStatus::Active
    }

    pub(super) fn into_kept(self, status: StrategyStatus) -> KeptStrategy {
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
        let votes = tally.votes().rev().take(LISTED_RUNS);
        strategy.runs = votes.map(|(run, _)| run.clone()).collect();
        let others = examples
            .into_iter()
            .filter(|example| Some(example) != strategy.example_task.as_ref());
        strategy.examples = others.collect();
        strategy.id = Some(id.clone());
        KeptStrategy {
            strategy,
            tally,
            status,
            id,
        }
    }
}
