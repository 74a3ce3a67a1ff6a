//! Finds the strategies for a task: by what they say and by the tasks they worked for, in meaning and in words,
//! times how far they can be relied on. What is not similar enough is not recalled at all: no advice is better
//! than advice about something else.
//!
//! Small playbooks are compared whole. In large ones the signs of the components are compared first, and
//! only the nearest few hundred in full: a task that is really like another one differs from it in few signs.

#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};

use windlass_embed::{Embedding, StaticEmbedder};
use windlass_spec::{
    NonEmptyText, StrategyId, StrategyLines, StrategySection, ToolCallingStrategy, ToolName,
};

use super::curate::{Playbook, is_gone, reliability};
use super::lexicon::Lexicon;
use super::signs::Signs;
use super::words::{id_of, quoted, what_worked};

/// Up to how many texts all are compared in full.
const COMPARED_WHOLE: usize = 4_096;

/// How many texts are compared in full where there are more.
const COMPARED: usize = 256;

/// How much words count beside meaning.
const WORDS: f32 = 0.5;

/// How many strategies are looked at, of those most similar.
const CONSIDERED: usize = 64;

/// In how many runs something must have failed before a model is warned of it. In fewer it may only have been
/// tried first.
const WARNED_AFTER: u64 = 3;

/// Of how many strategies one at most is a pitfall.
const PITFALL_SHARE: usize = 3;

/// What is asked of a playbook.
#[derive(Debug, Clone)]
pub struct RecallQuery<'q> {
    /// What is to be done.
    pub task: &'q str,
    /// How many strategies at most.
    pub count: usize,
    /// How similar they must be at least, from 0 to 1.
    pub floor: f32,
    /// The tools there are: strategies that name others are left out. None means any.
    pub tools: Option<Vec<&'q str>>,
    /// Only those with a sequence of tools, or only those without.
    pub has_tool_sequence: Option<bool>,
    /// Only those with at most so many tools.
    pub max_tool_count: Option<usize>,
    /// Only those that succeeded at least so often.
    pub min_success_rate: Option<f64>,
}

impl<'q> RecallQuery<'q> {
    /// How many strategies are recalled if nothing is said.
    pub const COUNT: usize = 3;

    /// How similar they must be if nothing is said.
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
pub struct Recalled {
    /// Which.
    pub id: StrategyId,
    /// What it says.
    pub section: StrategySection,
    /// Its tools, in order.
    pub sequence: Vec<ToolName>,
    /// How the model is told.
    pub text: String,
    /// How similar it is to the task, from 0 to 1.
    pub similarity: f32,
    /// How far it can be relied on.
    pub lower_bound: f64,
    /// What it was ranked by.
    pub score: f64,
}

/// The active strategies of a playbook, to be searched.
#[derive(Debug, Clone)]
pub struct PlaybookIndex {
    embedder: StaticEmbedder,
    strategies: Vec<Indexed>,
    tools: HashMap<ToolName, u32>,
    /// The tools of all strategies, one after the other, apart from them: most are looked at for no more.
    sequences: Vec<u32>,
    /// One row for what a strategy says and one for each of its examples.
    rows: Vec<Row>,
    vectors: Vec<Embedding>,
    lexicon: Lexicon,
    /// Where there are so many texts that they are needed.
    signs: Option<Signs>,
}

#[derive(Debug, Clone)]
struct Indexed {
    strategy: ToolCallingStrategy,
    id: StrategyId,
    lower_bound: f64,
    /// What of its words is made again for each example; nothing if a person or a model chose them.
    is_plain: bool,
}

#[derive(Debug, Clone, Copy)]
struct Row {
    strategy: u32,
    /// Which example it is about, from 1; 0 is what the strategy says.
    example: u32,
    /// Where the tools of the strategy begin, and how many they are.
    tools: (u32, u32),
}

impl PlaybookIndex {
    /// The index of what is active in a playbook.
    #[must_use]
    pub fn build(playbook: &Playbook) -> Self {
        Self::of(
            playbook
                .active()
                .map(|kept| (kept.id().clone(), &kept.strategy)),
        )
    }

    /// The index of the strategies in a file, by what its lines say of themselves.
    #[must_use]
    pub fn of_lines(lines: &StrategyLines) -> Self {
        let strategies = lines.strategies.iter().map(|line| &line.strategy);
        let active = strategies.filter(|strategy| {
            let is_used = strategy.retired.is_none() || is_gone(strategy);
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
        if index.rows.len() > COMPARED_WHOLE {
            index.signs = Some(Signs::of(&index.vectors));
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
        self.strategies.push(Indexed {
            is_plain: is_plain(strategy),
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

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.strategies.is_empty()
    }

    /// The strategies that fit a task best, best first; none if none is similar enough.
    #[must_use]
    pub fn recall(&self, query: &RecallQuery<'_>) -> Vec<Recalled> {
        self.recall_by(self.signs.as_ref(), query)
    }

    /// The same by comparing all of them, however many there are: what [`PlaybookIndex::recall`] is held against.
    #[must_use]
    pub fn recall_comparing_all(&self, query: &RecallQuery<'_>) -> Vec<Recalled> {
        self.recall_by(None, query)
    }

    fn recall_by(&self, signs: Option<&Signs>, query: &RecallQuery<'_>) -> Vec<Recalled> {
        if query.count == 0 || self.rows.is_empty() {
            return Vec::new();
        }
        let task = self.embedder.embed(query.task);
        if task.is_zero() {
            return Vec::new();
        }
        let there = self.there(query);
        let fits = |row: usize| self.fits(&self.rows[row], query, there.as_deref());
        let compared: Vec<usize> = match signs {
            None => (0..self.rows.len()).filter(|row| fits(*row)).collect(),
            Some(signs) => signs.nearest(&task, COMPARED, fits),
        };
        let wanted = self.lexicon.wanted(query.task);
        let mut near: Vec<(u32, f32, u32)> = compared
            .into_iter()
            .map(|row| {
                let Row {
                    strategy, example, ..
                } = self.rows[row];
                let meaning = task.cosine(&self.vectors[row]);
                let words = self.lexicon.likeness(row, &wanted);
                let similarity = (1.0 - WORDS) * meaning + WORDS * words;
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

    /// Takes the best, but nothing that another one says already. What to do goes before what not to do:
    /// there are warnings only where there is room left, few of them, and none of what is advised.
    fn choose(&self, found: &[(f64, u32, f32, u32)], count: usize) -> Vec<Recalled> {
        let is_pitfall = |strategy: u32| {
            let strategy = &self.strategies[strategy as usize].strategy;
            strategy.section == StrategySection::Pitfalls
        };
        let mut chosen: Vec<Recalled> = Vec::new();
        for (score, strategy, similarity, example) in found {
            if chosen.len() == count {
                return chosen;
            }
            let sequence = self.strategies[*strategy as usize].strategy.tool_sequence();
            let is_said = |other: &Recalled| {
                !sequence.is_empty()
                    && other
                        .sequence
                        .windows(sequence.len())
                        .any(|part| part == sequence)
            };
            if !is_pitfall(*strategy) && !chosen.iter().any(is_said) {
                chosen.push(self.recalled(*strategy, *example, *similarity, *score));
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
                && this.harmful_count >= WARNED_AFTER
                && !is_advised
            {
                warnings.push(self.recalled(*strategy, *example, *similarity, *score));
            }
        }
        chosen.extend(warnings);
        chosen
    }

    fn recalled(&self, strategy: u32, example: u32, similarity: f32, score: f64) -> Recalled {
        let this = &self.strategies[strategy as usize];
        Recalled {
            id: this.id.clone(),
            section: this.strategy.section,
            sequence: this.strategy.tool_sequence().to_vec(),
            text: this.told(example),
            similarity,
            lower_bound: this.lower_bound,
            score,
        }
    }

    /// Which of the tools that strategies name are there; none if any will do.
    fn there(&self, query: &RecallQuery<'_>) -> Option<Vec<bool>> {
        let tools: HashSet<&str> = query.tools.as_ref()?.iter().copied().collect();
        let mut there = vec![false; self.tools.len()];
        for (name, place) in &self.tools {
            there[*place as usize] = tools.contains(name.as_str());
        }
        Some(there)
    }

    fn fits(&self, row: &Row, query: &RecallQuery<'_>, there: Option<&[bool]>) -> bool {
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
            && there.is_none_or(|there| tools.iter().all(|tool| there[*tool as usize]))
            && query.min_success_rate.is_none_or(is_as_good)
    }
}

/// Whether a strategy still reads as it was learned.
fn is_plain(strategy: &ToolCallingStrategy) -> bool {
    let sequence = strategy.tool_sequence();
    let example = strategy.example_task.as_ref();
    !sequence.is_empty()
        && example.is_some()
        && strategy.section == StrategySection::Strategies
        && strategy.content == what_worked(sequence, example)
}

impl Indexed {
    /// What the model is told, with the example that is most like its task.
    fn told(&self, example: u32) -> String {
        let strategy = &self.strategy;
        let mut examples = strategy.example_task.iter().chain(&strategy.examples);
        let example = match example {
            0 => None,
            number => examples.nth(number as usize - 1),
        };
        let mut text = match example {
            Some(_) if self.is_plain => what_worked(strategy.tool_sequence(), example)
                .as_str()
                .to_owned(),
            Some(task) if Some(task) != strategy.example_task.as_ref() => {
                format!("{} As for \"{}\".", strategy.content, quoted(task.as_str()))
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
        // One line, whatever a person wrote.
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}
