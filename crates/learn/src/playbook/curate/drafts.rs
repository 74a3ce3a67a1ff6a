//! The strategies of a playbook while the entries of its log are folded.

mod manual_changes;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use windlass_embed::StaticEmbedder;
use windlass_spec::{
    AgentName, NonEmptyText, RunId, StrategyId, StrategySection, ToolCallingStrategy, ToolName,
};

use super::budget::retire_over_budget;
use super::common::{Success, Successes};
use super::draft::{Draft, Switch};
use super::status::StrategyStatus;
use super::{CurationSettings, KeptStrategy, Playbook};
use crate::playbook::evidence::{PlaybookEntry, RunEvidence, RunVerdict, StrategyVote};
use crate::playbook::tally::Tally;
use crate::playbook::words::{pitfall_text, strategy_id, success_text};

/// The most tools of a strategy. A longer sequence is no pattern, but a part that it has in common with others may
/// be one.
const LONGEST: usize = 12;

/// The identity of a strategy with tools.
type ToolsKey = (StrategySection, Vec<ToolName>);

/// The strategies after the entries so far.
pub(super) struct Drafts<'e> {
    domain: String,
    settings: CurationSettings,
    embedder: &'e StaticEmbedder,
    drafts: Vec<Draft>,
    /// The position of the draft of each id, including merged ids.
    places: HashMap<StrategyId, usize>,
    by_tools: HashMap<ToolsKey, usize>,
    /// Votes on strategies that do not exist yet. Concurrent runs are logged in the order in which they end, so a
    /// vote can precede its strategy.
    pending_votes: HashMap<StrategyId, Vec<RunVote<'e>>>,
    /// How many runs there were when a person removed a strategy or changed its tools. Older runs do not bring it
    /// back.
    removed_at: HashMap<ToolsKey, usize>,
    successes: Successes<'e>,
    /// How many entries were applied.
    applied: usize,
    runs: HashSet<RunId>,
    /// The tools that each agent lacked in its last run.
    lacks: BTreeMap<AgentName, BTreeSet<ToolName>>,
}

/// The vote of a run on a strategy that its model was shown.
#[derive(Debug, Clone, Copy)]
struct RunVote<'e> {
    run: &'e RunEvidence,
    vote: &'e StrategyVote,
    /// How many runs there were at that time.
    now: usize,
}

impl<'e> Drafts<'e> {
    pub(super) fn new(
        domain: &str,
        settings: CurationSettings,
        embedder: &'e StaticEmbedder,
    ) -> Self {
        Self {
            domain: domain.to_owned(),
            settings,
            embedder,
            drafts: Vec::new(),
            places: HashMap::new(),
            by_tools: HashMap::new(),
            pending_votes: HashMap::new(),
            removed_at: HashMap::new(),
            successes: Successes::default(),
            applied: 0,
            runs: HashSet::new(),
            lacks: BTreeMap::new(),
        }
    }

    pub(super) fn apply(&mut self, entry: &'e PlaybookEntry) {
        self.applied += 1;
        match entry {
            PlaybookEntry::Run(run) => self.apply_run(run),
            PlaybookEntry::Added { strategy, at } => self.add(strategy, *at),
            PlaybookEntry::Edited { strategy, at } => {
                let id = strategy.id.as_ref();
                if let Some(place) = id.and_then(|id| self.places.get(id)).copied() {
                    self.edit(place, strategy, *at);
                    self.drafts[place].pinned = self.switch(strategy.pinned);
                    self.drafts[place].disabled = self.switch(strategy.disabled);
                }
            }
            PlaybookEntry::Worded {
                strategy,
                content,
                at,
            } => {
                if let Some(draft) = self.draft_mut(strategy) {
                    draft.strategy.content = content.clone();
                    draft.strategy.last_updated = Some(*at);
                }
            }
            PlaybookEntry::Removed { strategy, .. } => self.remove(strategy),
            PlaybookEntry::Pinned {
                strategy,
                pinned,
                at,
            } => {
                let switch = self.switch(*pinned);
                if let Some(draft) = self.draft_mut(strategy) {
                    draft.pinned = switch;
                    draft.strategy.last_updated = Some(*at);
                }
            }
            PlaybookEntry::Disabled {
                strategy,
                disabled,
                at,
            } => {
                let switch = self.switch(*disabled);
                if let Some(draft) = self.draft_mut(strategy) {
                    draft.disabled = switch;
                    draft.strategy.last_updated = Some(*at);
                }
            }
            PlaybookEntry::Reverted { .. } | PlaybookEntry::Unreadable => {}
        }
    }

    /// A setting that is made by the current entry.
    fn switch(&self, is_on: bool) -> Switch {
        Switch {
            set_at: self.applied,
            is_on,
        }
    }

    fn draft_mut(&mut self, id: &StrategyId) -> Option<&mut Draft> {
        let place = *self.places.get(id)?;
        self.drafts.get_mut(place)
    }

    fn apply_run(&mut self, run: &'e RunEvidence) {
        if !self.runs.insert(run.run.clone()) {
            return;
        }
        let lacks = run.lacks.iter().cloned().collect();
        self.lacks.insert(run.agent.clone(), lacks);
        let now = self.runs.len();
        for vote in &run.recalled {
            let run_vote = RunVote { run, vote, now };
            match self.draft_mut(&vote.strategy) {
                Some(draft) => run_vote.apply_to(draft),
                None => {
                    let pending = self.pending_votes.entry(vote.strategy.clone());
                    pending.or_default().push(run_vote);
                }
            }
        }
        if run.verdict == RunVerdict::Succeeded && !run.sequence.is_empty() {
            if run.sequence.len() <= LONGEST {
                self.count_proof(StrategySection::Strategies, &run.sequence, run, now);
            }
            self.count_common_proof(run, now);
        }
        for pitfall in &run.pitfalls {
            let content = || pitfall_text(&pitfall.sequence, pitfall.category, run.task.as_ref());
            let section = StrategySection::Pitfalls;
            let place = self.find_or_insert(section, &pitfall.sequence, content, run);
            self.count_proof_at(place, run, now);
        }
    }

    /// Counts a run as proof of a strategy.
    fn count_proof(
        &mut self,
        section: StrategySection,
        sequence: &[ToolName],
        run: &RunEvidence,
        now: usize,
    ) {
        let content = || success_text(sequence, run.task.as_ref());
        let place = self.find_or_insert(section, sequence, content, run);
        self.count_proof_at(place, run, now);
    }

    /// Turns the sequences that the run has in common with runs of similar tasks into strategies, without the calls
    /// that only one of them made.
    fn count_common_proof(&mut self, run: &'e RunEvidence, now: usize) {
        let Some(task) = &run.task else { return };
        let success = Success { run, task, now };
        let similar = self.settings.similar_tasks;
        for (sequence, members) in self.successes.add(success, self.embedder, similar) {
            let section = StrategySection::Strategies;
            let removed_at = self.removed_at.get(&(section, sequence.clone()));
            let removed_at = removed_at.copied().unwrap_or_default();
            for member in members.iter().filter(|member| member.now > removed_at) {
                self.count_proof(section, &sequence, member.run, member.now);
            }
        }
    }

    fn count_proof_at(&mut self, place: Option<usize>, run: &RunEvidence, now: usize) {
        if let Some(place) = place {
            self.drafts[place].count_proof(run, now, self.settings.examples);
        }
    }

    /// The position of the strategy with these tools, which is inserted if it does not exist.
    fn find_or_insert(
        &mut self,
        section: StrategySection,
        sequence: &[ToolName],
        content: impl FnOnce() -> NonEmptyText,
        run: &RunEvidence,
    ) -> Option<usize> {
        let key = (section, sequence.to_vec());
        if let Some(place) = self.by_tools.get(&key) {
            return Some(*place);
        }
        let mut strategy = ToolCallingStrategy::new(section, content())
            .with_sequence(sequence.to_vec())
            .ok()?;
        strategy.example_task = run.task.clone();
        strategy.created_at = Some(run.at);
        strategy.last_updated = Some(run.at);
        strategy.tags = vec![self.domain.clone()];
        let id = strategy_id(section, sequence, "");
        Some(self.insert(id, strategy))
    }

    fn insert(&mut self, id: StrategyId, strategy: ToolCallingStrategy) -> usize {
        // If the id is in use, it belongs to a strategy whose tools a person changed.
        let mut id = id;
        let mut number = 2;
        while self.places.contains_key(&id) {
            let other = StrategyId::new(format!("{}-{number}", id.as_str()));
            let Ok(other) = other else { break };
            id = other;
            number += 1;
        }
        let place = self.drafts.len();
        let sequence = strategy.tool_sequence();
        if !sequence.is_empty() {
            let key = (strategy.section, sequence.to_vec());
            self.by_tools.entry(key).or_insert(place);
        }
        // Only `true` counts as a setting.
        let switch = |is_on: bool| match is_on {
            true => self.switch(true),
            false => Switch::default(),
        };
        self.drafts.push(Draft {
            id: id.clone(),
            pinned: switch(strategy.pinned),
            disabled: switch(strategy.disabled),
            strategy,
            tally: Tally::default(),
            priors: BTreeMap::new(),
            examples: Vec::new(),
            agents: BTreeSet::new(),
            used_at: self.runs.len(),
            is_removed: false,
        });
        self.assign_id(id, place);
        place
    }

    /// Maps an id to a draft and applies the pending votes on that id.
    fn assign_id(&mut self, id: StrategyId, place: usize) {
        for vote in self.pending_votes.remove(&id).unwrap_or_default() {
            vote.apply_to(&mut self.drafts[place]);
        }
        self.places.insert(id, place);
    }

    pub(super) fn into_playbook(self, revision: usize) -> Playbook {
        let runs = self.runs.len();
        let drafts = self.drafts.into_iter().filter(|draft| !draft.is_removed);
        let mut used = Vec::new();
        let mut kept: Vec<KeptStrategy> = Vec::new();
        for mut draft in drafts {
            for prior in std::mem::take(&mut draft.priors).into_values() {
                draft.tally.add_prior(prior);
            }
            let status = draft.status(&self.lacks, runs, &self.settings);
            used.push(draft.used_at);
            kept.push(draft.into_kept(status));
        }
        retire_over_budget(&mut kept, &used, &self.settings);
        for kept in &mut kept {
            kept.strategy.retired = match &kept.status {
                StrategyStatus::Retired(why) => NonEmptyText::new(why.to_string()).ok(),
                StrategyStatus::Active | StrategyStatus::Disabled => None,
            };
        }
        Playbook {
            strategies: kept,
            revision,
            runs,
        }
    }
}

impl RunVote<'_> {
    fn apply_to(self, draft: &mut Draft) {
        draft.tally.count_recall();
        draft
            .tally
            .vote(&self.run.run, self.vote.vote, self.run.iterations);
        draft.use_at(self.run.at, self.now);
    }
}
