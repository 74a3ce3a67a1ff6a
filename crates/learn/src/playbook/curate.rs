//! Folds the entries of a log into a playbook: merges equal strategies, counts the votes of runs, and
//! retires strategies. It is deterministic and stores nothing, so other settings or a person can change every
//! result later.
//!
//! Two strategies are equal if they are in the same section and name the same tools in the same
//! order. Strategies without tools are equal if they have the same words in the same order. Nothing else is
//! merged, because the embeddings of "do it" and "do not do it" are similar.

mod budget;
mod common;
mod draft;
mod drafts;
mod equal_text;
mod status;

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashSet};

use windlass_embed::StaticEmbedder;
use windlass_spec::{StrategyId, StrategySection, ToolCallingStrategy, ToolName};

pub use status::{RetiredReason, StrategyStatus};
pub(super) use status::{lacks_tool_only, reliability};

use self::drafts::Drafts;
use super::evidence::PlaybookEntry;
use super::tally::Tally;

/// The most retired strategies in a file.
const MAX_RETIRED_IN_FILE: usize = 200;

/// The limits of a playbook, and when strategies are retired.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CurationSettings {
    /// The most active strategies.
    pub max_items: usize,
    /// The most tokens of their texts, estimated at four bytes each.
    pub max_tokens: usize,
    /// A strategy is retired after this many runs that neither prove nor recall it.
    pub unused_after: usize,
    /// The least similarity of tasks whose common subsequence becomes a strategy of its own.
    pub similar_tasks: f32,
    /// The most example tasks of one strategy.
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

/// A strategy of a playbook, with its votes and status.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptStrategy {
    /// The strategy as it is written, with its id and its counts.
    pub strategy: ToolCallingStrategy,
    /// The votes of runs.
    pub tally: Tally,
    /// Whether it is used.
    pub status: StrategyStatus,
    id: StrategyId,
}

impl KeptStrategy {
    /// The id of the strategy.
    #[must_use]
    pub fn id(&self) -> &StrategyId {
        &self.id
    }

    /// The lower bound of the share of success; for a pitfall, of failure.
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
    /// The strategies, in the order in which they were first written.
    pub strategies: Vec<KeptStrategy>,
    /// How many entries it was folded from. Identifies this state of the playbook.
    pub revision: usize,
    /// How many runs it was learned from.
    pub runs: usize,
}

impl Playbook {
    /// The active strategies.
    pub fn active(&self) -> impl Iterator<Item = &KeptStrategy> {
        let all = self.strategies.iter();
        all.filter(|kept| kept.status == StrategyStatus::Active)
    }

    /// The strategies with an id or an alias that begins with `start`.
    pub fn find<'p>(&'p self, start: &'p str) -> impl Iterator<Item = &'p KeptStrategy> {
        self.strategies.iter().filter(move |kept| {
            let mut ids = kept.strategy.aliases.iter().chain([kept.id()]);
            ids.any(|id| id.as_str().starts_with(start))
        })
    }

    /// The tools that strategies name and that are not among these.
    #[must_use]
    pub fn missing_tools<'t>(&self, tools: impl IntoIterator<Item = &'t str>) -> Vec<ToolName> {
        let available: BTreeSet<&str> = tools.into_iter().collect();
        let named = self
            .strategies
            .iter()
            .flat_map(|kept| kept.strategy.tool_sequence());
        let lacking: BTreeSet<&ToolName> = named
            .filter(|name| !available.contains(name.as_str()))
            .collect();
        lacking.into_iter().cloned().collect()
    }

    /// The tools that strategies advise, without disabled strategies.
    #[must_use]
    pub fn advised_tools(&self) -> HashSet<ToolName> {
        let advised = self.strategies.iter().filter(|kept| {
            kept.strategy.section == StrategySection::Strategies
                && kept.status != StrategyStatus::Disabled
        });
        let tools = advised.flat_map(|kept| kept.strategy.tool_sequence());
        tools.cloned().collect()
    }

    /// The strategies that are written to the file: all except those that were retired long ago, which remain in
    /// the log. Strategies whose tool is missing take precedence, because they are active again when it returns.
    pub fn in_file(&self) -> impl Iterator<Item = &KeptStrategy> {
        let is_retired = |kept: &KeptStrategy| matches!(kept.status, StrategyStatus::Retired(_));
        let retired = self.strategies.iter().filter(|kept| is_retired(kept));
        let mut retired: Vec<&KeptStrategy> = retired.collect();
        retired.sort_by_key(|kept| {
            let lacks_tool = matches!(
                kept.status,
                StrategyStatus::Retired(RetiredReason::MissingTool(_))
            );
            Reverse((lacks_tool, kept.strategy.last_updated, kept.id()))
        });
        let listed = retired.iter().take(MAX_RETIRED_IN_FILE);
        let listed: HashSet<&StrategyId> = listed.map(|kept| kept.id()).collect();
        let all = self.strategies.iter();
        all.filter(move |kept| !is_retired(kept) || listed.contains(kept.id()))
    }

    /// The strategies as the text of a file, one per line.
    #[must_use]
    pub fn to_lines(&self) -> String {
        let mut text = String::new();
        for kept in self.in_file() {
            // A strategy consists of texts and numbers, which always serialize.
            if let Ok(line) = serde_json::to_string(&kept.strategy) {
                text.push_str(&line);
                text.push('\n');
            }
        }
        text
    }
}

/// Folds logs into playbooks.
#[derive(Debug, Clone)]
pub struct SemanticCurator {
    settings: CurationSettings,
    embedder: StaticEmbedder,
}

impl SemanticCurator {
    /// A curator with these settings.
    #[must_use]
    pub fn new(settings: CurationSettings) -> Self {
        Self {
            settings,
            embedder: StaticEmbedder::new(),
        }
    }

    /// Folds the entries of a domain into a playbook.
    #[must_use]
    pub fn fold(&self, domain: &str, entries: &[PlaybookEntry]) -> Playbook {
        let mut drafts = Drafts::new(domain, self.settings, &self.embedder);
        for entry in effective_entries(entries) {
            drafts.apply(entry);
        }
        drafts.merge_equal_texts();
        drafts.into_playbook(entries.len())
    }
}

/// The entries that were not reverted.
fn effective_entries(entries: &[PlaybookEntry]) -> Vec<&PlaybookEntry> {
    let mut parts = Vec::new();
    let mut end = entries.len();
    loop {
        let reverted =
            entries[..end]
                .iter()
                .enumerate()
                .rev()
                .find_map(|(place, entry)| match entry {
                    PlaybookEntry::Reverted { to, .. } => Some((place, *to)),
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
