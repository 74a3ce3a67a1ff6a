//! Tool search: finds the tools that fit a task, and selects as many as a model can be shown.
//!
//! A tool's score is the similarity of its name and description to the task, plus a weighted BM25 score over
//! name, description and parameters. Every tool is scored, so the result is exact. Scoring 5,000 tools takes
//! well under a millisecond.

mod select;

use std::collections::HashMap;

use windlass_embed::{Bm25Index, Embedding, HybridParameters, StaticEmbedder, tool_text};
use windlass_spec::ToolSpecification;

pub use select::{ToolSelection, estimated_tokens};

use crate::ToolView;
use crate::rank::whole_text;
use crate::text::beginning;

/// The most bytes of a description that are read.
const LONGEST_DESCRIPTION: usize = 600;

/// The most bytes of a task that are read.
const LONGEST_QUERY: usize = 4_000;

/// A tool that was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit<'a> {
    /// The tool's position among the tools of the index.
    pub index: usize,
    /// Its name.
    pub name: &'a str,
    /// The score by meaning and words; higher is better.
    pub score: f32,
    /// The similarity of task and tool by meaning alone, from -1 to 1.
    pub similarity: f32,
}

/// A search index of tools. [`ToolIndex::update`] follows changes of the tools.
#[derive(Debug, Clone, Default)]
pub struct ToolIndex {
    embedder: StaticEmbedder,
    tools: Vec<Entry>,
    words: Bm25Index,
}

#[derive(Debug, Clone)]
struct Entry {
    name: String,
    /// The text that was embedded, to detect changes.
    text: String,
    meaning: Embedding,
    /// The number of tokens of its definition.
    tokens: usize,
}

impl ToolIndex {
    /// The index of these tools.
    #[must_use]
    pub fn build<'a>(tools: impl IntoIterator<Item = ToolView<'a>>) -> Self {
        let mut index = Self::default();
        index.update(tools);
        index
    }

    /// Replaces the tools of the index. Only new and changed tools are embedded.
    pub fn update<'a>(&mut self, tools: impl IntoIterator<Item = ToolView<'a>>) {
        let known = std::mem::take(&mut self.tools).into_iter();
        let mut known: HashMap<String, Embedding> =
            known.map(|entry| (entry.text, entry.meaning)).collect();
        self.words = Bm25Index::default();
        for tool in tools {
            self.words.push(&whole_text(&tool));
            let text = tool_text(tool.name, beginning(tool.description, LONGEST_DESCRIPTION));
            let meaning = known
                .remove(&text)
                .unwrap_or_else(|| self.embedder.embed(&text));
            self.tools.push(Entry {
                name: tool.name.to_owned(),
                text,
                meaning,
                tokens: estimated_tokens(&tool),
            });
        }
    }

    /// How many tools there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tools.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// The names of the tools, in the order they were given.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|tool| tool.name.as_str())
    }

    /// The `limit` tools that fit `query` best, best first; ties are in the given order. Tools without a positive
    /// score are not returned.
    #[must_use]
    pub fn search(&self, query: &str, limit: usize) -> Vec<Hit<'_>> {
        let mut hits = self.scored(query);
        hits.retain(|hit| hit.score > 0.0);
        if limit == 0 {
            return Vec::new();
        }
        if hits.len() > limit {
            hits.select_nth_unstable_by(limit - 1, by_rank);
            hits.truncate(limit);
        }
        hits.sort_unstable_by(by_rank);
        hits
    }

    /// Every tool with its score, in the order they were given.
    fn scored(&self, query: &str) -> Vec<Hit<'_>> {
        let query = beginning(query, LONGEST_QUERY);
        let meaning = self.embedder.embed(query);
        let words = self.words.scores(query);
        let weight = HybridParameters::default().lexical_weight;
        let scored = self.tools.iter().zip(words).enumerate();
        scored
            .map(|(index, (tool, words))| {
                let similarity = tool.meaning.cosine(&meaning);
                Hit {
                    index,
                    name: &tool.name,
                    score: similarity + weight * words,
                    similarity,
                }
            })
            .collect()
    }
}

fn by_rank(left: &Hit<'_>, right: &Hit<'_>) -> std::cmp::Ordering {
    let by_score = right.score.total_cmp(&left.score);
    by_score.then(left.index.cmp(&right.index))
}

impl<'a> From<&'a ToolSpecification> for ToolView<'a> {
    fn from(tool: &'a ToolSpecification) -> Self {
        Self {
            name: tool.name().as_str(),
            description: tool.description(),
            input_schema: tool.schema(),
        }
    }
}

#[cfg(test)]
mod tests;
