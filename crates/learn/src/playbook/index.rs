//! Finds the strategies for a task. The score is the similarity to the strategy's text and example tasks, by
//! embedding and by words, times its reliability. A strategy below the similarity floor is not recalled, because
//! no advice is better than unrelated advice.
//!
//! In a small playbook all strategies are compared. In a large one the signs of the embeddings are compared first,
//! and only the nearest few hundred in full.

#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};

use windlass_embed::{Embedding, StaticEmbedder};
use windlass_spec::{
    NonEmptyText, StrategyId, StrategyLines, StrategySection, ToolCallingStrategy, ToolName,
};

use super::curate::{Playbook, lacks_tool_only, reliability};
use super::lexicon::Lexicon;
use super::sign_index::SignIndex;
use super::words::{id_of, quote_task, success_text};

/// Up to this many texts, all are compared in full.
const MAX_UNINDEXED: usize = 4_096;

/// How many texts are compared in full in a larger playbook.
const COMPARED: usize = 256;

/// The weight of words; the rest is the weight of the embeddings.
const WORD_WEIGHT: f32 = 0.5;

/// How many of the most similar strategies are ranked.
const CONSIDERED: usize = 64;

/// In how many runs something must have failed before a model is warned of it. In fewer runs the failure may be
/// a coincidence.
const MIN_FAILURES_TO_WARN: u64 = 3;

/// At most one recalled strategy in this many is a pitfall.
const PITFALL_SHARE: usize = 3;

/// A query for the strategies of a playbook.
#[derive(Debug, Clone)]
pub struct RecallQuery<'q> {
    /// The task.
    pub task: &'q str,
    /// The most strategies to return.
    pub count: usize,
    /// The least similarity, from 0 to 1.
    pub floor: f32,
    /// The available tools: strategies that name others are left out. `None` allows any tool.
    pub tools: Option<Vec<&'q str>>,
    /// Only strategies with a tool sequence, or only those without.
    pub has_tool_sequence: Option<bool>,
    /// Only strategies with at most this many tools.
    pub max_tool_count: Option<usize>,
    /// Only strategies with at least this share of success.
    pub min_success_rate: Option<f64>,
}

impl<'q> RecallQuery<'q> {
    /// The default of [`count`](Self::count).
    pub const COUNT: usize = 3;

    /// The default of [`floor`](Self::floor).
    pub const FLOOR: f32 = 0.33;

    /// The best three for a task.
    #[must_use]
    pub fn new(task: &'q str) -> Self {
        Self {
            task,
            count: Self::COUNT,
            floor: Self::FLOOR,
            tools: None,
            has_tool_sequence: None,
            max_tool_count: None,
            min_success_rate: None,
        }
    }
}

/// A strategy that fits a task.
#[derive(Debug, Clone, PartialEq)]
pub struct StrategyMatch {
    /// The id of the strategy.
    pub id: StrategyId,
    /// Its section.
    pub section: StrategySection,
    /// Its tools, in order.
    pub sequence: Vec<ToolName>,
    /// The text for the model.
    pub text: String,
    /// How similar it is to the task, from 0 to 1.
    pub similarity: f32,
    /// The lower bound of its share of success.
    pub lower_bound: f64,
    /// The score that it was ranked by.
    pub score: f64,
}

/// A search index of the active strategies of a playbook.
#[derive(Debug, Clone)]
pub struct PlaybookIndex {
    embedder: StaticEmbedder,
    strategies: Vec<IndexedStrategy>,
    tools: HashMap<ToolName, u32>,
    /// The tools of all strategies, one after the other. Kept apart because filtering needs only these.
    sequences: Vec<u32>,
    /// One row for the text of a strategy and one for each of its examples.
    rows: Vec<Row>,
    vectors: Vec<Embedding>,
    lexicon: Lexicon,
    /// Only in a large playbook.
    signs: Option<SignIndex>,
}

#[derive(Debug, Clone)]
struct IndexedStrategy {
    strategy: ToolCallingStrategy,
    id: StrategyId,
    lower_bound: f64,
    /// Whether its text was generated, so that it can be generated again for another example. False if a person
    /// or a model wrote it.
    is_generated: bool,
}

#[derive(Debug, Clone, Copy)]
struct Row {
    strategy: u32,
    /// The number of the example, from 1; 0 is the text of the strategy.
    example: u32,
    /// The position of the first tool of the strategy in `sequences`, and the number of tools.
    tools: (u32, u32),
}

impl PlaybookIndex {
    /// Indexes the active strategies of a playbook.
    #[must_use]
    pub fn build(playbook: &Playbook) -> Self {
        Self::of(
            playbook
                .active()
                .map(|kept| (kept.id().clone(), &kept.strategy)),
        )
    }

    /// Indexes the strategies of a file that its lines mark as active.
    #[must_use]
    pub fn from_lines(lines: &StrategyLines) -> Self {
        let strategies = lines.strategies.iter().map(|line| &line.strategy);
        let active = strategies.filter(|strategy| {
            let is_used = strategy.retired.is_none() || lacks_tool_only(strategy);
            !strategy.disabled && (strategy.pinned || is_used)
        });
        Self::of(active.map(|strategy| (id_of(strategy), strategy)))
    }

    fn of<'s>(strategies: impl Iterator<Item = (StrategyId, &'s ToolCallingStrategy)>) -> Self {
        let mut index = Self {
            embedder: StaticEmbedder::new(),
            strategies: Vec::new(),
            tools: HashMap::new(),
            sequences: Vec::new(),
            rows: Vec::new(),
            vectors: Vec::new(),
            lexicon: Lexicon::default(),
            signs: None,
        };
        for (id, strategy) in strategies {
            index.add(id, strategy);
        }
        if index.rows.len() > MAX_UNINDEXED {
            index.signs = Some(SignIndex::build(&index.vectors));
        }
        index
    }

    fn add(&mut self, id: StrategyId, strategy: &ToolCallingStrategy) {
        let sequence = self.sequences.len() as u32;
        for tool in strategy.tool_sequence() {
            let next = self.tools.len() as u32;
            let tool = *self.tools.entry(tool.clone()).or_insert(next);
            self.sequences.push(tool);
        }
        let tools = (sequence, strategy.tool_sequence().len() as u32);
        let place = self.strategies.len() as u32;
        let texts = [strategy.content.as_str()].into_iter();
        let examples = strategy.example_task.iter().chain(&strategy.examples);
        let texts = texts.chain(examples.map(NonEmptyText::as_str));
        for (example, text) in texts.enumerate() {
            self.vectors.push(self.embedder.embed(text));
            self.lexicon.push(text);
            self.rows.push(Row {
                strategy: place,
                example: example as u32,
                tools,
            });
        }
        self.strategies.push(IndexedStrategy {
            is_generated: is_generated(strategy),
            strategy: strategy.clone(),
            id,
            lower_bound: reliability(
                strategy.section,
                strategy.helpful_count,
                strategy.harmful_count,
            ),
        });
    }

    /// How many strategies there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.strategies.len()
    }

    /// Whether there is no strategy.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.strategies.is_empty()
    }

    /// The strategies that fit a task best, best first; empty if none is similar enough.
    #[must_use]
    pub fn recall(&self, query: &RecallQuery<'_>) -> Vec<StrategyMatch> {
        self.recall_by(self.signs.as_ref(), query)
    }

    /// Like [`PlaybookIndex::recall`], but compares all strategies in full. A reference for tests and benchmarks.
    #[must_use]
    pub fn recall_comparing_all(&self, query: &RecallQuery<'_>) -> Vec<StrategyMatch> {
        self.recall_by(None, query)
    }

    fn recall_by(&self, signs: Option<&SignIndex>, query: &RecallQuery<'_>) -> Vec<StrategyMatch> {
        if query.count == 0 || self.rows.is_empty() {
            return Vec::new();
        }
        let task = self.embedder.embed(query.task);
        if task.is_zero() {
            return Vec::new();
        }
        let available = self.available_tools(query);
        let fits = |row: usize| self.fits(&self.rows[row], query, available.as_deref());
        let compared: Vec<usize> = match signs {
            None => (0..self.rows.len()).filter(|row| fits(*row)).collect(),
            Some(signs) => signs.nearest(&task, COMPARED, fits),
        };
        let weighted = self.lexicon.weigh_query(query.task);
        let mut near: Vec<(u32, f32, u32)> = compared
            .into_iter()
            .map(|row| {
                let Row {
                    strategy, example, ..
                } = self.rows[row];
                let meaning = task.cosine(&self.vectors[row]);
                let words = self.lexicon.similarity(row, &weighted);
                let similarity = (1.0 - WORD_WEIGHT) * meaning + WORD_WEIGHT * words;
                (strategy, similarity, example)
            })
            .filter(|(_, similarity, _)| *similarity >= query.floor)
            .collect();
        // The best row of each strategy.
        near.sort_unstable_by(|one, two| one.0.cmp(&two.0).then(two.1.total_cmp(&one.1)));
        near.dedup_by_key(|(strategy, ..)| *strategy);
        near.sort_unstable_by(|one, two| two.1.total_cmp(&one.1).then(one.0.cmp(&two.0)));
        near.truncate(CONSIDERED.max(query.count));
        let mut found: Vec<(f64, u32, f32, u32)> = near
            .into_iter()
            .map(|(strategy, similarity, example)| {
                let bound = self.strategies[strategy as usize].lower_bound;
                let above = (similarity - query.floor) / (1.0 - query.floor).max(f32::EPSILON);
                (
                    f64::from(above.clamp(0.0, 1.0)).powi(2) * bound,
                    strategy,
                    similarity,
                    example,
                )
            })
            .collect();
        found.sort_unstable_by(|one, two| two.0.total_cmp(&one.0).then(one.1.cmp(&two.1)));
        self.choose(&found, query.count)
    }

    /// Chooses the best matches, without those whose tools are contained in a better one. Advice comes before
    /// warnings: a few warnings fill the remaining room, and none is about an advised tool.
    fn choose(&self, found: &[(f64, u32, f32, u32)], count: usize) -> Vec<StrategyMatch> {
        let is_pitfall = |strategy: u32| {
            let strategy = &self.strategies[strategy as usize].strategy;
            strategy.section == StrategySection::Pitfalls
        };
        let mut chosen: Vec<StrategyMatch> = Vec::new();
        for (score, strategy, similarity, example) in found {
            if chosen.len() == count {
                return chosen;
            }
            let sequence = self.strategies[*strategy as usize].strategy.tool_sequence();
            let is_contained = |other: &StrategyMatch| {
                !sequence.is_empty()
                    && other
                        .sequence
                        .windows(sequence.len())
                        .any(|part| part == sequence)
            };
            if !is_pitfall(*strategy) && !chosen.iter().any(is_contained) {
                chosen.push(self.to_match(*strategy, *example, *similarity, *score));
            }
        }
        let room = (count - chosen.len()).min(count / PITFALL_SHARE);
        let mut warnings = Vec::new();
        for (score, strategy, similarity, example) in found {
            let this = &self.strategies[*strategy as usize].strategy;
            let last = this.tool_sequence().last();
            let is_advised = chosen
                .iter()
                .any(|other| last.is_some_and(|last| other.sequence.contains(last)));
            if is_pitfall(*strategy)
                && warnings.len() < room
                && this.harmful_count >= MIN_FAILURES_TO_WARN
                && !is_advised
            {
                warnings.push(self.to_match(*strategy, *example, *similarity, *score));
            }
        }
        chosen.extend(warnings);
        chosen
    }

    fn to_match(&self, strategy: u32, example: u32, similarity: f32, score: f64) -> StrategyMatch {
        let this = &self.strategies[strategy as usize];
        StrategyMatch {
            id: this.id.clone(),
            section: this.strategy.section,
            sequence: this.strategy.tool_sequence().to_vec(),
            text: this.text_for(example),
            similarity,
            lower_bound: this.lower_bound,
            score,
        }
    }

    /// Which of the tools that strategies name are available; `None` if the query allows any tool.
    fn available_tools(&self, query: &RecallQuery<'_>) -> Option<Vec<bool>> {
        let tools: HashSet<&str> = query.tools.as_ref()?.iter().copied().collect();
        let mut available = vec![false; self.tools.len()];
        for (name, place) in &self.tools {
            available[*place as usize] = tools.contains(name.as_str());
        }
        Some(available)
    }

    fn fits(&self, row: &Row, query: &RecallQuery<'_>, available: Option<&[bool]>) -> bool {
        let (first, count) = (row.tools.0 as usize, row.tools.1 as usize);
        let tools = &self.sequences[first..first + count];
        let rate = || {
            let strategy = &self.strategies[row.strategy as usize].strategy;
            strategy.tool_success_rate()
        };
        let is_as_good = |least: f64| rate().is_some_and(|rate| rate >= least);
        query
            .has_tool_sequence
            .is_none_or(|has| has != tools.is_empty())
            && query.max_tool_count.is_none_or(|most| count <= most)
            && available.is_none_or(|available| tools.iter().all(|tool| available[*tool as usize]))
            && query.min_success_rate.is_none_or(is_as_good)
    }
}

/// Whether the text of a strategy is the generated one.
fn is_generated(strategy: &ToolCallingStrategy) -> bool {
    let sequence = strategy.tool_sequence();
    let example = strategy.example_task.as_ref();
    !sequence.is_empty()
        && example.is_some()
        && strategy.section == StrategySection::Strategies
        && strategy.content == success_text(sequence, example)
}

impl IndexedStrategy {
    /// The text for the model, with the example that is most similar to its task.
    fn text_for(&self, example: u32) -> String {
        let strategy = &self.strategy;
        let mut examples = strategy.example_task.iter().chain(&strategy.examples);
        let example = match example {
            0 => None,
            number => examples.nth(number as usize - 1),
        };
        let mut text = match example {
            Some(_) if self.is_generated => success_text(strategy.tool_sequence(), example)
                .as_str()
                .to_owned(),
            Some(task) if Some(task) != strategy.example_task.as_ref() => {
                format!(
                    "{} As for \"{}\".",
                    strategy.content,
                    quote_task(task.as_str())
                )
            }
            _ => strategy.content.as_str().to_owned(),
        };
        let seen = strategy.helpful_count + strategy.harmful_count;
        match strategy.section {
            StrategySection::Strategies if seen > 0 => {
                text.push_str(&format!(
                    " (worked {} of {seen} times)",
                    strategy.helpful_count
                ));
            }
            StrategySection::Pitfalls if seen > 1 => {
                text.push_str(&format!(" (seen {} times)", strategy.harmful_count));
            }
            _ => {}
        }
        // One line, even if a person wrote several.
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}
