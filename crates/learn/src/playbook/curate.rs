//! Folds the entries of a log into a playbook: merges what is the same, counts what runs say, and
//! retires what does not hold. It is deterministic and stores nothing, so whatever it decides can be
//! decided otherwise later, by other settings or by a person.
//!
//! Two strategies are the same if they are in the same section and name the same tools in the same
//! order. Those that name none are the same if they say the same words in the same order. Nothing else is
//! ever merged: "do it" and "do not do it" are near to each other in meaning.

mod budget;
mod common;
mod draft;
mod drafts;
mod same;
mod standing;

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashSet};

use windlass_embed::StaticEmbedder;
use windlass_spec::{StrategyId, StrategySection, ToolCallingStrategy, ToolName};

pub use standing::{Retired, Standing};
pub(super) use standing::{is_gone, reliability};

use self::drafts::Drafts;
use super::evidence::Evidence;
use super::tally::Tally;

/// How many strategies that are retired stand in a file at most.
const MOST_RETIRED: usize = 200;

/// How much a playbook holds, and what leaves it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CurationSettings {
    /// How many strategies are active at most.
    pub max_items: usize,
    /// How many tokens their words have at most, estimated at four bytes each.
    pub max_tokens: usize,
    /// After how many runs that neither prove nor recall it a strategy is retired.
    pub unused_after: usize,
    /// How similar tasks must be for what their sequences have in common to be a strategy of its own.
    pub similar_tasks: f32,
    /// How many tasks are kept as examples of one strategy.
    pub examples: usize,
}

impl Default for CurationSettings {
    fn default() -> Self {
        Self {
            max_items: 500,
            max_tokens: 60_000,
            unused_after: 2_000,
            similar_tasks: 0.5,
            examples: 12,
        }
    }
}

/// A strategy with what is known of it.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptStrategy {
    /// The strategy as it is written, with its id and its counts.
    pub strategy: ToolCallingStrategy,
    /// What runs say about it.
    pub tally: Tally,
    /// Whether it is used.
    pub standing: Standing,
    id: StrategyId,
}

impl KeptStrategy {
    /// Which strategy.
    #[must_use]
    pub fn id(&self) -> &StrategyId {
        &self.id
    }

    /// The share of success that can be relied on; of a pitfall, of failure.
    #[must_use]
    pub fn lower_bound(&self) -> f64 {
        reliability(
            self.strategy.section,
            self.tally.helpful(),
            self.tally.harmful(),
        )
    }
}

/// The strategies of one domain.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Playbook {
    /// In the order in which they were first written.
    pub strategies: Vec<KeptStrategy>,
    /// How many entries it was made of. Names this state of the playbook.
    pub revision: usize,
    /// How many runs were learned from.
    pub runs: usize,
}

impl Playbook {
    /// Those that are used.
    pub fn active(&self) -> impl Iterator<Item = &KeptStrategy> {
        let all = self.strategies.iter();
        all.filter(|kept| kept.standing == Standing::Active)
    }

    /// The strategies whose id, or one they had before, begins with `start`.
    pub fn find<'p>(&'p self, start: &'p str) -> impl Iterator<Item = &'p KeptStrategy> {
        self.strategies.iter().filter(move |kept| {
            let mut ids = kept.strategy.aliases.iter().chain([kept.id()]);
            ids.any(|id| id.as_str().starts_with(start))
        })
    }

    /// All tools that strategies name and that are not among these.
    #[must_use]
    pub fn lacking<'t>(&self, tools: impl IntoIterator<Item = &'t str>) -> Vec<ToolName> {
        let there: BTreeSet<&str> = tools.into_iter().collect();
        let named = self
            .strategies
            .iter()
            .flat_map(|kept| kept.strategy.tool_sequence());
        let lacking: BTreeSet<&ToolName> = named
            .filter(|name| !there.contains(name.as_str()))
            .collect();
        lacking.into_iter().cloned().collect()
    }

    /// The tools that strategies advise, but for those that a person switched off.
    #[must_use]
    pub fn vouched_for(&self) -> HashSet<ToolName> {
        let advised = self.strategies.iter().filter(|kept| {
            kept.strategy.section == StrategySection::Strategies
                && kept.standing != Standing::Disabled
        });
        let tools = advised.flat_map(|kept| kept.strategy.tool_sequence());
        tools.cloned().collect()
    }

    /// The strategies that a file holds: all but those that were retired long ago, which only the log knows. Those
    /// whose tool is gone go before others, since they are of use in the run in which it is back.
    pub fn in_file(&self) -> impl Iterator<Item = &KeptStrategy> {
        let is_retired = |kept: &KeptStrategy| matches!(kept.standing, Standing::Retired(_));
        let retired = self.strategies.iter().filter(|kept| is_retired(kept));
        let mut retired: Vec<&KeptStrategy> = retired.collect();
        retired.sort_by_key(|kept| {
            let is_gone = matches!(kept.standing, Standing::Retired(Retired::Gone(_)));
            Reverse((is_gone, kept.strategy.last_updated, kept.id()))
        });
        let listed = retired.iter().take(MOST_RETIRED);
        let listed: HashSet<&StrategyId> = listed.map(|kept| kept.id()).collect();
        let all = self.strategies.iter();
        all.filter(move |kept| !is_retired(kept) || listed.contains(kept.id()))
    }

    /// The strategies as a file holds them: one a line.
    #[must_use]
    pub fn to_lines(&self) -> String {
        let mut text = String::new();
        for kept in self.in_file() {
            // A strategy is made of texts and numbers, which are always JSON.
            if let Ok(line) = serde_json::to_string(&kept.strategy) {
                text.push_str(&line);
                text.push('\n');
            }
        }
        text
    }
}

/// Makes playbooks of logs.
#[derive(Debug, Clone)]
pub struct SemanticCurator {
    settings: CurationSettings,
    embedder: StaticEmbedder,
}

impl SemanticCurator {
    /// A curator that goes by these settings.
    #[must_use]
    pub fn new(settings: CurationSettings) -> Self {
        Self {
            settings,
            embedder: StaticEmbedder::new(),
        }
    }

    /// The playbook of a domain that these entries come to.
    #[must_use]
    pub fn fold(&self, domain: &str, entries: &[Evidence]) -> Playbook {
        let mut drafts = Drafts::new(domain, self.settings, &self.embedder);
        for entry in counting(entries) {
            drafts.take(entry);
        }
        drafts.merge_same();
        drafts.into_playbook(entries.len())
    }
}

/// The entries that were not reverted.
fn counting(entries: &[Evidence]) -> Vec<&Evidence> {
    let mut parts = Vec::new();
    let mut end = entries.len();
    loop {
        let reverted =
            entries[..end]
                .iter()
                .enumerate()
                .rev()
                .find_map(|(place, entry)| match entry {
                    Evidence::Reverted { to, .. } => Some((place, *to)),
                    _ => None,
                });
        match reverted {
            Some((place, to)) => {
                parts.push(&entries[place + 1..end]);
                end = to.min(place);
            }
            None => {
                parts.push(&entries[..end]);
                break;
            }
        }
    }
    parts.into_iter().rev().flatten().collect()
}
