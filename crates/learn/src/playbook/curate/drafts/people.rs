//! What people write, bring and take out, and what of it is the same.

use std::collections::{BTreeSet, HashMap};

use windlass_spec::{StrategyId, StrategySection, Timestamp, ToolCallingStrategy};

use super::Drafts;
use crate::playbook::curate::same::said;
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
            // The same tools under another id: what is known of it is added to what is known here.
            (None, Some(place)) => {
                self.call(id.clone(), place);
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
        let news = self.news(place, &id, strategy);
        let draft = &mut self.drafts[place];
        draft.priors.insert(id, news);
        for example in strategy.example_task.iter().chain(&strategy.examples) {
            draft.add_example(example, limit);
        }
    }

    /// What a line that was brought here knows beyond what is known here. A line that names a run which counts here
    /// was written here, or where this was brought to, and what it says of that run is no news; nor is what
    /// was brought here under the ids it was merged of.
    fn news(&self, place: usize, id: &StrategyId, line: &ToolCallingStrategy) -> Prior {
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
            votes.take_votes(draft.tally.clone());
            for alias in others.clone() {
                known = known.and(draft.priors.get(alias).copied().unwrap_or_default());
            }
        }
        let is_from_here = line.runs.iter().any(|run| votes.knows(run));
        if is_from_here {
            known = known.and(votes.seen_here());
        }
        let told = Prior::from(line);
        let news = Prior {
            helpful: told.helpful.saturating_sub(known.helpful),
            harmful: told.harmful.saturating_sub(known.harmful),
            iterations: told.iterations,
        };
        match self.drafts[place].priors.get(id) {
            // What was brought before is in it, and what was learned since may not be.
            Some(before) if is_from_here => Prior {
                helpful: news.helpful.max(before.helpful),
                harmful: news.harmful.max(before.harmful),
                iterations: before.iterations.or(news.iterations),
            },
            Some(_) | None => news,
        }
    }

    /// Takes what a line that was brought here says about whether it is used. One that says nothing leaves it as it is.
    fn switch_on(&mut self, place: usize, line: &ToolCallingStrategy) {
        let said = self.now_said(true);
        let draft = &mut self.drafts[place];
        if line.pinned {
            draft.pinned = said;
        }
        if line.disabled {
            draft.disabled = said;
        }
    }

    /// Takes what a person wrote, but for the counts and whether it is used.
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
                self.forgotten.insert(old, self.runs.len());
            }
            if !new.1.is_empty() {
                self.by_tools.entry(new).or_insert(place);
            }
        }
    }

    pub(super) fn remove(&mut self, id: &StrategyId) {
        self.waiting.remove(id);
        let Some(place) = self.places.get(id).copied() else {
            return;
        };
        let draft = &mut self.drafts[place];
        draft.is_gone = true;
        let tools = draft.strategy.tool_sequence().to_vec();
        let key = (draft.strategy.section, tools);
        self.forgotten.insert(key, self.runs.len());
        self.places.retain(|_, at| *at != place);
        self.by_tools.retain(|_, at| *at != place);
    }

    /// Merges strategies without tools into the first of their section that says the same.
    pub(in crate::playbook::curate) fn merge_same(&mut self) {
        let mut first: HashMap<(StrategySection, Vec<String>), usize> = HashMap::new();
        for place in 0..self.drafts.len() {
            let draft = &self.drafts[place];
            if draft.is_gone || !draft.strategy.tool_sequence().is_empty() {
                continue;
            }
            let key = (
                draft.strategy.section,
                said(draft.strategy.content.as_str()),
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
        let gone = &mut self.drafts[from];
        gone.is_gone = true;
        let (id, priors) = (gone.id.clone(), std::mem::take(&mut gone.priors));
        let (tally, used_at) = (std::mem::take(&mut gone.tally), gone.used_at);
        let aliases = std::mem::take(&mut gone.strategy.aliases);
        let examples = std::mem::take(&mut gone.examples);
        let agents = std::mem::take(&mut gone.agents);
        let (pinned, disabled) = (gone.pinned, gone.disabled);
        let stays = &mut self.drafts[to];
        stays.strategy.aliases.push(id);
        stays.strategy.aliases.extend(aliases);
        stays.priors.extend(priors);
        stays.tally.take_votes(tally);
        stays.used_at = stays.used_at.max(used_at);
        stays.agents.extend(agents);
        // Whatever a person said of one was said of both; what they said last holds.
        stays.pinned = stays.pinned.max(pinned);
        stays.disabled = stays.disabled.max(disabled);
        for example in &examples {
            stays.add_example(example, limit);
        }
    }
}
