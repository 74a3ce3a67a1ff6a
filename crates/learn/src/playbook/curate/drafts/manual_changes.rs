//! Applies what people add, import, edit and remove, and merges equal texts.

use std::collections::{BTreeSet, HashMap};

use windlass_spec::{StrategyId, StrategySection, Timestamp, ToolCallingStrategy};

use super::Drafts;
use crate::playbook::curate::equal_text::normalized_words;
use crate::playbook::tally::{Prior, Tally};
use crate::playbook::words::id_of;

impl Drafts<'_> {
    pub(super) fn add(&mut self, strategy: &ToolCallingStrategy, at: Timestamp) {
        let sequence = strategy.tool_sequence();
        let id = id_of(strategy);
        let key = (strategy.section, sequence.to_vec());
        let same = self.by_tools.get(&key).copied();
        let known = self.places.get(&id).copied();
        let place = match (known, same) {
            (Some(place), _) => {
                self.edit(place, strategy, at);
                self.switch_on(place, strategy);
                place
            }
            // The same tools under another id: its counts are added to the existing strategy.
            (None, Some(place)) => {
                self.assign_id(id.clone(), place);
                self.drafts[place].strategy.aliases.push(id.clone());
                self.switch_on(place, strategy);
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
        let prior = self.new_counts(place, &id, strategy);
        let draft = &mut self.drafts[place];
        draft.priors.insert(id, prior);
        for example in strategy.example_task.iter().chain(&strategy.examples) {
            draft.add_example(example, limit);
        }
    }

    /// The counts of an imported line that are not counted here yet. A line that names a run which counts here was
    /// exported from this playbook or a copy of it, so the votes of runs here are subtracted. Counts that were
    /// imported under its aliases are subtracted too.
    fn new_counts(&self, place: usize, id: &StrategyId, line: &ToolCallingStrategy) -> Prior {
        let others = line.aliases.iter().filter(|alias| *alias != id);
        let mut places: BTreeSet<usize> = others
            .clone()
            .filter_map(|alias| self.places.get(alias).copied())
            .collect();
        places.insert(place);
        let mut votes = Tally::default();
        let mut known = Prior::default();
        for place in places {
            let draft = &self.drafts[place];
            votes.merge_votes(draft.tally.clone());
            for alias in others.clone() {
                known = known.plus(draft.priors.get(alias).copied().unwrap_or_default());
            }
        }
        let is_from_here = line.runs.iter().any(|run| votes.has_vote_of(run));
        if is_from_here {
            known = known.plus(votes.without_prior());
        }
        let stated = Prior::from(line);
        let new = Prior {
            helpful: stated.helpful.saturating_sub(known.helpful),
            harmful: stated.harmful.saturating_sub(known.harmful),
            iterations: stated.iterations,
        };
        match self.drafts[place].priors.get(id) {
            // The line includes what was imported before, but maybe not what was learned since.
            Some(before) if is_from_here => Prior {
                helpful: new.helpful.max(before.helpful),
                harmful: new.harmful.max(before.harmful),
                iterations: before.iterations.or(new.iterations),
            },
            Some(_) | None => new,
        }
    }

    /// Applies the `pinned` and `disabled` marks of an imported line. A line without marks changes nothing.
    fn switch_on(&mut self, place: usize, line: &ToolCallingStrategy) {
        let switch = self.switch(true);
        let draft = &mut self.drafts[place];
        if line.pinned {
            draft.pinned = switch;
        }
        if line.disabled {
            draft.disabled = switch;
        }
    }

    /// Applies a person's edit, except for the counts and the `pinned` and `disabled` marks.
    pub(super) fn edit(&mut self, place: usize, edited: &ToolCallingStrategy, at: Timestamp) {
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
                self.removed_at.insert(old, self.runs.len());
            }
            if !new.1.is_empty() {
                self.by_tools.entry(new).or_insert(place);
            }
        }
    }

    pub(super) fn remove(&mut self, id: &StrategyId) {
        self.pending_votes.remove(id);
        let Some(place) = self.places.get(id).copied() else {
            return;
        };
        let draft = &mut self.drafts[place];
        draft.is_removed = true;
        let tools = draft.strategy.tool_sequence().to_vec();
        let key = (draft.strategy.section, tools);
        self.removed_at.insert(key, self.runs.len());
        self.places.retain(|_, at| *at != place);
        self.by_tools.retain(|_, at| *at != place);
    }

    /// Merges strategies without tools into the first of their section with an equal text.
    pub(in crate::playbook::curate) fn merge_equal_texts(&mut self) {
        let mut first: HashMap<(StrategySection, Vec<String>), usize> = HashMap::new();
        for place in 0..self.drafts.len() {
            let draft = &self.drafts[place];
            if draft.is_removed || !draft.strategy.tool_sequence().is_empty() {
                continue;
            }
            let key = (
                draft.strategy.section,
                normalized_words(draft.strategy.content.as_str()),
            );
            match first.get(&key) {
                Some(to) => self.merge(place, *to),
                None => {
                    first.insert(key, place);
                }
            }
        }
    }

    fn merge(&mut self, from: usize, to: usize) {
        let limit = self.settings.examples;
        let merged = &mut self.drafts[from];
        merged.is_removed = true;
        let (id, priors) = (merged.id.clone(), std::mem::take(&mut merged.priors));
        let (tally, used_at) = (std::mem::take(&mut merged.tally), merged.used_at);
        let aliases = std::mem::take(&mut merged.strategy.aliases);
        let examples = std::mem::take(&mut merged.examples);
        let agents = std::mem::take(&mut merged.agents);
        let (pinned, disabled) = (merged.pinned, merged.disabled);
        let target = &mut self.drafts[to];
        target.strategy.aliases.push(id);
        target.strategy.aliases.extend(aliases);
        target.priors.extend(priors);
        target.tally.merge_votes(tally);
        target.used_at = target.used_at.max(used_at);
        target.agents.extend(agents);
        // A person's setting of one applies to both; the last one wins.
        target.pinned = target.pinned.max(pinned);
        target.disabled = target.disabled.max(disabled);
        for example in &examples {
            target.add_example(example, limit);
        }
    }
}
