//! Strategies while the entries of a log are folded into them.

mod people;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use windlass_embed::StaticEmbedder;
use windlass_spec::{
    AgentName, NonEmptyText, RunId, StrategyId, StrategySection, ToolCallingStrategy, ToolName,
};

use super::budget::keep_within;
use super::common::{Success, Successes};
use super::draft::{Draft, Switch};
use super::standing::Standing;
use super::{CurationSettings, KeptStrategy, Playbook};
use crate::playbook::evidence::{Evidence, RunEvidence, Verdict, Voted};
use crate::playbook::tally::Tally;
use crate::playbook::words::{strategy_id, what_failed, what_worked};

/// How many tools a strategy has at most. What is longer is no pattern; what it has in common with others may
/// be.
const LONGEST: usize = 12;

/// What a strategy is known by if it has tools.
type Tools = (StrategySection, Vec<ToolName>);

/// The strategies that the entries so far come to.
pub(super) struct Drafts<'e> {
    domain: String,
    settings: CurationSettings,
    embedder: &'e StaticEmbedder,
    drafts: Vec<Draft>,
    /// Where each id leads, also those that were merged.
    places: HashMap<StrategyId, usize>,
    by_tools: HashMap<Tools, usize>,
    /// What was said about strategies that are not there yet: runs that go on at the same time are written in the order
    /// in which they end.
    waiting: HashMap<StrategyId, Vec<Said<'e>>>,
    /// How many runs there were when a person took a strategy out, or gave it other tools. What older runs showed
    /// does not bring it back.
    forgotten: HashMap<Tools, usize>,
    successes: Successes<'e>,
    /// How many entries there were.
    taken: usize,
    runs: HashSet<RunId>,
    /// What each agent lacked when it last ran.
    lacks: BTreeMap<AgentName, BTreeSet<ToolName>>,
}

/// What a run said about a strategy that was put before its model.
#[derive(Debug, Clone, Copy)]
struct Said<'e> {
    run: &'e RunEvidence,
    voted: &'e Voted,
    /// How many runs there were then.
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
            waiting: HashMap::new(),
            forgotten: HashMap::new(),
            successes: Successes::default(),
            taken: 0,
            runs: HashSet::new(),
            lacks: BTreeMap::new(),
        }
    }

    pub(super) fn take(&mut self, entry: &'e Evidence) {
        self.taken += 1;
        match entry {
            Evidence::Run(run) => self.take_run(run),
            Evidence::Added { strategy, at } => self.add(strategy, *at),
            Evidence::Edited { strategy, at } => {
                let id = strategy.id.as_ref();
                if let Some(place) = id.and_then(|id| self.places.get(id)).copied() {
                    self.edit(place, strategy, *at);
                    self.drafts[place].pinned = self.now_said(strategy.pinned);
                    self.drafts[place].disabled = self.now_said(strategy.disabled);
                }
            }
            Evidence::Worded {
                strategy,
                content,
                at,
            } => {
                if let Some(draft) = self.draft_mut(strategy) {
                    draft.strategy.content = content.clone();
                    draft.strategy.last_updated = Some(*at);
                }
            }
            Evidence::Removed { strategy, .. } => self.remove(strategy),
            Evidence::Pinned {
                strategy,
                pinned,
                at,
            } => {
                let said = self.now_said(*pinned);
                if let Some(draft) = self.draft_mut(strategy) {
                    draft.pinned = said;
                    draft.strategy.last_updated = Some(*at);
                }
            }
            Evidence::Disabled {
                strategy,
                disabled,
                at,
            } => {
                let said = self.now_said(*disabled);
                if let Some(draft) = self.draft_mut(strategy) {
                    draft.disabled = said;
                    draft.strategy.last_updated = Some(*at);
                }
            }
            Evidence::Reverted { .. } | Evidence::Unreadable => {}
        }
    }

    /// What a person says with the entry that is being taken.
    fn now_said(&self, is_on: bool) -> Switch {
        Switch {
            said_at: self.taken,
            is_on,
        }
    }

    fn draft_mut(&mut self, id: &StrategyId) -> Option<&mut Draft> {
        let place = *self.places.get(id)?;
        self.drafts.get_mut(place)
    }

    fn take_run(&mut self, run: &'e RunEvidence) {
        if !self.runs.insert(run.run.clone()) {
            return;
        }
        let lacks = run.lacks.iter().cloned().collect();
        self.lacks.insert(run.agent.clone(), lacks);
        let now = self.runs.len();
        for voted in &run.recalled {
            let said = Said { run, voted, now };
            match self.draft_mut(&voted.strategy) {
                Some(draft) => said.about(draft),
                None => {
                    let waiting = self.waiting.entry(voted.strategy.clone());
                    waiting.or_default().push(said);
                }
            }
        }
        if run.verdict == Verdict::Succeeded && !run.sequence.is_empty() {
            if run.sequence.len() <= LONGEST {
                self.prove(StrategySection::Strategies, &run.sequence, run, now);
            }
            self.prove_common(run, now);
        }
        for pitfall in &run.pitfalls {
            let content = || what_failed(&pitfall.sequence, pitfall.category, run.task.as_ref());
            let section = StrategySection::Pitfalls;
            let place = self.place_of(section, &pitfall.sequence, content, run);
            self.prove_at(place, run, now);
        }
    }

    /// Takes a run as proof of what worked.
    fn prove(
        &mut self,
        section: StrategySection,
        sequence: &[ToolName],
        run: &RunEvidence,
        now: usize,
    ) {
        let content = || what_worked(sequence, run.task.as_ref());
        let place = self.place_of(section, sequence, content, run);
        self.prove_at(place, run, now);
    }

    /// Makes strategies of what the run has in common with those of similar tasks: whatever else was done on the
    /// way is not in both.
    fn prove_common(&mut self, run: &'e RunEvidence, now: usize) {
        let Some(task) = &run.task else { return };
        let success = Success { run, task, now };
        let similar = self.settings.similar_tasks;
        for (sequence, members) in self.successes.add(success, self.embedder, similar) {
            let section = StrategySection::Strategies;
            let forgotten = self.forgotten.get(&(section, sequence.clone()));
            let forgotten = forgotten.copied().unwrap_or_default();
            for member in members.iter().filter(|member| member.now > forgotten) {
                self.prove(section, &sequence, member.run, member.now);
            }
        }
    }

    fn prove_at(&mut self, place: Option<usize>, run: &RunEvidence, now: usize) {
        if let Some(place) = place {
            self.drafts[place].prove(run, now, self.settings.examples);
        }
    }

    /// Where the strategy with these tools is; a new place if there is none.
    fn place_of(
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
        // An id that is taken belongs to a strategy whose tools a person changed.
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
        // Who writes nothing about it says nothing.
        let said = |is_on: bool| match is_on {
            true => self.now_said(true),
            false => Switch::default(),
        };
        self.drafts.push(Draft {
            id: id.clone(),
            pinned: said(strategy.pinned),
            disabled: said(strategy.disabled),
            strategy,
            tally: Tally::default(),
            priors: BTreeMap::new(),
            examples: Vec::new(),
            agents: BTreeSet::new(),
            used_at: self.runs.len(),
            is_gone: false,
        });
        self.call(id, place);
        place
    }

    /// Lets an id lead to a place, with what was said under it before.
    fn call(&mut self, id: StrategyId, place: usize) {
        for said in self.waiting.remove(&id).unwrap_or_default() {
            said.about(&mut self.drafts[place]);
        }
        self.places.insert(id, place);
    }

    pub(super) fn into_playbook(self, revision: usize) -> Playbook {
        let runs = self.runs.len();
        let drafts = self.drafts.into_iter().filter(|draft| !draft.is_gone);
        let mut used = Vec::new();
        let mut kept: Vec<KeptStrategy> = Vec::new();
        for mut draft in drafts {
            for prior in std::mem::take(&mut draft.priors).into_values() {
                draft.tally.add_prior(prior);
            }
            let standing = draft.standing(&self.lacks, runs, &self.settings);
            used.push(draft.used_at);
            kept.push(draft.into_kept(standing));
        }
        keep_within(&mut kept, &used, &self.settings);
        for kept in &mut kept {
            kept.strategy.retired = match &kept.standing {
                Standing::Retired(why) => NonEmptyText::new(why.to_string()).ok(),
                Standing::Active | Standing::Disabled => None,
            };
        }
        Playbook {
            strategies: kept,
            revision,
            runs,
        }
    }
}

impl Said<'_> {
    fn about(self, draft: &mut Draft) {
        draft.tally.recall();
        draft
            .tally
            .vote(&self.run.run, self.voted.vote, self.run.iterations);
        draft.use_at(self.run.at, self.now);
    }
}
