//! Strategies while the entries of a log are folded into them.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use windlass_embed::StaticEmbedder;
use windlass_spec::{
    AgentName, NonEmptyText, RunId, StrategyId, StrategySection, Timestamp, ToolCallingStrategy,
    ToolName,
};

use super::common::{Success, common_sequences};
use super::draft::Draft;
use super::standing::{Retired, Standing};
use super::{CurationSettings, KeptStrategy, Playbook};
use crate::playbook::evidence::{Evidence, RunEvidence, Verdict, Vote};
use crate::playbook::tally::{Prior, Tally};
use crate::playbook::words::{id_of, strategy_id, what_failed, what_worked};

/// How many tools a strategy has at most. What is longer is no pattern; what it has in common with others may
/// be.
const LONGEST: usize = 12;

/// Of how many strategies one at most is a pitfall.
const PITFALL_SHARE: usize = 4;

/// The strategies that the entries so far come to.
pub(super) struct Drafts {
    domain: String,
    settings: CurationSettings,
    drafts: Vec<Draft>,
    /// Where each id leads, also those that were merged.
    places: HashMap<StrategyId, usize>,
    by_tools: HashMap<(StrategySection, Vec<ToolName>), usize>,
    successes: Vec<Success>,
    runs: HashSet<RunId>,
    /// What each agent lacked when it last ran.
    lacks: BTreeMap<AgentName, BTreeSet<ToolName>>,
}

impl Drafts {
    pub(super) fn new(domain: &str, settings: CurationSettings) -> Self {
        Self {
            domain: domain.to_owned(),
            settings,
            drafts: Vec::new(),
            places: HashMap::new(),
            by_tools: HashMap::new(),
            successes: Vec::new(),
            runs: HashSet::new(),
            lacks: BTreeMap::new(),
        }
    }

    pub(super) fn take(&mut self, entry: &Evidence) {
        match entry {
            Evidence::Run(run) => self.take_run(run),
            Evidence::Added { strategy, at } => self.add(strategy, *at),
            Evidence::Edited { strategy, at } => {
                let id = strategy.id.as_ref();
                if let Some(place) = id.and_then(|id| self.places.get(id)).copied() {
                    self.edit(place, strategy, *at);
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
                if let Some(draft) = self.draft_mut(strategy) {
                    draft.strategy.pinned = *pinned;
                    draft.strategy.last_updated = Some(*at);
                }
            }
            Evidence::Disabled {
                strategy,
                disabled,
                at,
            } => {
                if let Some(draft) = self.draft_mut(strategy) {
                    draft.strategy.disabled = *disabled;
                    draft.strategy.last_updated = Some(*at);
                }
            }
            Evidence::Reverted { .. } => {}
        }
    }

    fn draft_mut(&mut self, id: &StrategyId) -> Option<&mut Draft> {
        let place = *self.places.get(id)?;
        self.drafts.get_mut(place)
    }

    fn take_run(&mut self, run: &RunEvidence) {
        if !self.runs.insert(run.run.clone()) {
            return;
        }
        let lacks = run.lacks.iter().cloned().collect();
        self.lacks.insert(run.agent.clone(), lacks);
        let now = self.runs.len();
        for voted in &run.recalled {
            if let Some(draft) = self.draft_mut(&voted.strategy) {
                draft.tally.recall();
                draft.used_at = now;
                draft.tally.vote(&run.run, voted.vote, run.iterations);
                draft.strategy.last_updated = Some(run.at);
            }
        }
        if run.verdict == Verdict::Succeeded && !run.sequence.is_empty() {
            if run.sequence.len() <= LONGEST {
                let content = || what_worked(&run.sequence, run.task.as_ref());
                self.prove(StrategySection::Strategies, &run.sequence, content, run);
            }
            self.note_success(run, now);
        }
        for pitfall in &run.pitfalls {
            let content = || what_failed(&pitfall.sequence, pitfall.category, run.task.as_ref());
            self.prove(StrategySection::Pitfalls, &pitfall.sequence, content, run);
        }
    }

    /// Takes a run as proof of a strategy, which is new if there was none.
    fn prove(
        &mut self,
        section: StrategySection,
        sequence: &[ToolName],
        content: impl FnOnce() -> NonEmptyText,
        run: &RunEvidence,
    ) {
        let Some(place) = self.place_of(section, sequence, content, run.task.as_ref(), run.at)
        else {
            return;
        };
        let now = self.runs.len();
        let limit = self.settings.examples;
        let draft = &mut self.drafts[place];
        let vote = match section {
            StrategySection::Pitfalls => Vote::Harmful,
            StrategySection::Strategies | StrategySection::Observations => Vote::Helpful,
        };
        draft.prove(
            &run.run,
            &run.agent,
            run.task.as_ref(),
            vote,
            run.iterations,
            limit,
        );
        draft.strategy.last_updated = Some(run.at);
        draft.used_at = now;
    }

    /// Where the strategy with these tools is; a new place if there is none.
    fn place_of(
        &mut self,
        section: StrategySection,
        sequence: &[ToolName],
        content: impl FnOnce() -> NonEmptyText,
        task: Option<&NonEmptyText>,
        at: Timestamp,
    ) -> Option<usize> {
        let key = (section, sequence.to_vec());
        if let Some(place) = self.by_tools.get(&key) {
            return Some(*place);
        }
        let mut strategy = ToolCallingStrategy::new(section, content())
            .with_sequence(sequence.to_vec())
            .ok()?;
        strategy.example_task = task.cloned();
        strategy.created_at = Some(at);
        strategy.last_updated = Some(at);
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
        self.places.insert(id.clone(), place);
        let sequence = strategy.tool_sequence();
        if !sequence.is_empty() {
            let key = (strategy.section, sequence.to_vec());
            self.by_tools.entry(key).or_insert(place);
        }
        self.drafts.push(Draft {
            id,
            strategy,
            tally: Tally::default(),
            priors: BTreeMap::new(),
            examples: Vec::new(),
            agents: BTreeSet::new(),
            used_at: self.runs.len(),
            is_gone: false,
        });
        place
    }

    fn add(&mut self, strategy: &ToolCallingStrategy, at: Timestamp) {
        let sequence = strategy.tool_sequence();
        let id = id_of(strategy);
        let key = (strategy.section, sequence.to_vec());
        let same = self.by_tools.get(&key).copied();
        let known = self.places.get(&id).copied();
        let place = match (known, same) {
            (Some(place), _) => {
                self.edit(place, strategy, at);
                place
            }
            // The same tools under another id: what is known of it is added to what is known here.
            (None, Some(place)) => {
                self.places.insert(id.clone(), place);
                self.drafts[place].strategy.aliases.push(id.clone());
                place
            }
            (None, None) => {
                let mut strategy = strategy.clone();
                strategy.created_at = strategy.created_at.or(Some(at));
                strategy.last_updated = strategy.last_updated.or(Some(at));
                self.insert(id.clone(), strategy)
            }
        };
        let limit = self.settings.examples;
        let draft = &mut self.drafts[place];
        draft.priors.insert(id, Prior::from(strategy));
        for example in strategy.example_task.iter().chain(&strategy.examples) {
            draft.add_example(example, limit);
        }
    }

    /// Takes what a person wrote, but for the counts.
    fn edit(&mut self, place: usize, edited: &ToolCallingStrategy, at: Timestamp) {
        let draft = &mut self.drafts[place];
        let old = (
            draft.strategy.section,
            draft.strategy.tool_sequence().to_vec(),
        );
        let new = (edited.section, edited.tool_sequence().to_vec());
        let mut strategy = edited.clone();
        strategy.created_at = draft.strategy.created_at;
        strategy.last_updated = Some(at);
        strategy.aliases.clone_from(&draft.strategy.aliases);
        draft.strategy = strategy;
        if old != new {
            if self.by_tools.get(&old) == Some(&place) {
                self.by_tools.remove(&old);
            }
            if !new.1.is_empty() {
                self.by_tools.entry(new).or_insert(place);
            }
        }
    }

    fn remove(&mut self, id: &StrategyId) {
        let Some(place) = self.places.get(id).copied() else {
            return;
        };
        self.drafts[place].is_gone = true;
        self.places.retain(|_, at| *at != place);
        self.by_tools.retain(|_, at| *at != place);
    }

    /// Notes a success, whose sequence may have something in common with that of another.
    fn note_success(&mut self, run: &RunEvidence, now: usize) {
        let Some(task) = &run.task else { return };
        self.successes.push(Success {
            run: run.run.clone(),
            agent: run.agent.clone(),
            task: task.clone(),
            sequence: run.sequence.clone(),
            at: run.at,
            iterations: run.iterations,
            now,
        });
    }

    /// Makes strategies of what similar tasks have in common: whatever else was done on the way is not in
    /// both.
    pub(super) fn add_common(&mut self, embedder: &StaticEmbedder) {
        let successes = std::mem::take(&mut self.successes);
        let similar = self.settings.similar_tasks;
        for (sequence, members) in common_sequences(&successes, embedder, similar) {
            let Some(first) = members.first() else {
                continue;
            };
            let content = || what_worked(&sequence, Some(&first.task));
            let section = StrategySection::Strategies;
            let place = self.place_of(section, &sequence, content, Some(&first.task), first.at);
            let Some(place) = place else { continue };
            let limit = self.settings.examples;
            let draft = &mut self.drafts[place];
            for success in members {
                draft.prove(
                    &success.run,
                    &success.agent,
                    Some(&success.task),
                    Vote::Helpful,
                    success.iterations,
                    limit,
                );
                draft.used_at = draft.used_at.max(success.now);
                draft.strategy.last_updated = draft.strategy.last_updated.max(Some(success.at));
            }
        }
    }

    /// The strategies without tools, in order.
    pub(super) fn without_tools(&self) -> impl Iterator<Item = (usize, StrategySection, &str)> {
        let all = self.drafts.iter().enumerate();
        let without =
            all.filter(|(_, draft)| !draft.is_gone && draft.strategy.tool_sequence().is_empty());
        without.map(|(place, draft)| {
            (
                place,
                draft.strategy.section,
                draft.strategy.content.as_str(),
            )
        })
    }

    /// Merges drafts into earlier ones.
    pub(super) fn merge(&mut self, merged: &HashMap<usize, usize>) {
        let mut places: Vec<(&usize, &usize)> = merged.iter().collect();
        places.sort();
        for (from, to) in places {
            let limit = self.settings.examples;
            let gone = &mut self.drafts[*from];
            gone.is_gone = true;
            let (id, priors) = (gone.id.clone(), std::mem::take(&mut gone.priors));
            let (tally, used_at) = (std::mem::take(&mut gone.tally), gone.used_at);
            let aliases = std::mem::take(&mut gone.strategy.aliases);
            let examples = std::mem::take(&mut gone.examples);
            let stays = &mut self.drafts[*to];
            stays.strategy.aliases.push(id);
            stays.strategy.aliases.extend(aliases);
            stays.priors.extend(priors);
            stays.tally.take_votes(tally);
            stays.used_at = stays.used_at.max(used_at);
            for example in &examples {
                stays.add_example(example, limit);
            }
        }
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

/// Retires what there is no room for: the least reliable first, then what was not used for longest.
fn keep_within(kept: &mut [KeptStrategy], used: &[usize], settings: &CurationSettings) {
    let mut order: Vec<usize> = (0..kept.len())
        .filter(|&place| kept[place].standing == Standing::Active)
        .collect();
    order.sort_by(|&left, &right| {
        let (one, two) = (&kept[left], &kept[right]);
        let pinned = two.strategy.pinned.cmp(&one.strategy.pinned);
        pinned
            .then(two.lower_bound().total_cmp(&one.lower_bound()))
            .then(used[right].cmp(&used[left]))
            .then(one.id.cmp(&two.id))
    });
    let (mut items, mut tokens, mut pitfalls) = (0, 0, 0);
    let most_pitfalls = settings.max_items / PITFALL_SHARE;
    for place in order {
        let this = &mut kept[place];
        let is_pitfall = this.strategy.section == StrategySection::Pitfalls;
        let length = this.strategy.content.as_str().len().div_ceil(4);
        let has_room = items < settings.max_items
            && tokens + length <= settings.max_tokens
            && (!is_pitfall || pitfalls < most_pitfalls);
        if has_room || this.strategy.pinned {
            items += 1;
            tokens += length;
            pitfalls += usize::from(is_pitfall);
        } else {
            this.standing = Standing::Retired(Retired::Budget);
        }
    }
}
