//! Tool search: of many tools, those that fit a task, and as many of them as a model can be shown.
//!
//! A tool's score is how alike its name and description are to the task by meaning, plus what a share
//! in words of name, description and parameters is worth. Every tool is scored, so what is found is
//! the best there is, not the best of a guess; five thousand take well under a millisecond.

mod select;

use std::collections::HashMap;

use serde_json::Value;
use windlass_embed::{Bm25Index, Embedding, HybridParameters, StaticEmbedder, tool_text};
use windlass_spec::ToolSpecification;

pub use select::{Selection, estimated_tokens};

use crate::ToolView;
use crate::rank::whole_text;
use crate::text::beginning;

/// How much of a description is read, in bytes.
const LONGEST_DESCRIPTION: usize = 600;

/// How much of a task is read, in bytes.
const LONGEST_QUERY: usize = 4_000;

/// A tool that was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit<'a> {
    /// The tool's position among those the index was built from.
    pub index: usize,
    /// Its name.
    pub name: &'a str,
    /// How well it fits, by meaning and words; more is better.
    pub score: f32,
    /// How alike task and tool are by meaning alone, from -1 to 1.
    pub likeness: f32,
}

/// Tools that can be searched. Built once for a set of tools; [`ToolIndex::update`] follows changes.
#[derive(Debug, Clone, Default)]
pub struct ToolIndex {
    embedder: StaticEmbedder,
    tools: Vec<Entry>,
    words: Bm25Index,
}

#[derive(Debug, Clone)]
struct Entry {
    name: String,
    /// What the meaning was made of, to see whether it still holds.
    text: String,
    meaning: Embedding,
    /// What showing it to a model costs.
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

    /// Makes this the index of `tools` and of nothing else: what was changed is read anew, what is
    /// gone is forgotten, and only what is new costs an embedding.
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

    /// The `limit` tools that fit `query` best, best first, of equal ones the first given. What has
    /// nothing in common with the query is not found.
    #[must_use]
    pub fn search(&self, query: &str, limit: usize) -> Vec<Hit<'_>> {
        let mut hits = self.scored(query);
        hits.retain(|hit| hit.score > 0.0);
        if limit == 0 {
            return Vec::new();
        }
        if hits.len() > limit {
            hits.select_nth_unstable_by(limit - 1, better);
            hits.truncate(limit);
        }
        hits.sort_unstable_by(better);
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
                let likeness = tool.meaning.cosine(&meaning);
                Hit {
                    index,
                    name: &tool.name,
                    score: likeness + weight * words,
                    likeness,
                }
            })
            .collect()
    }
}

fn better(left: &Hit<'_>, right: &Hit<'_>) -> std::cmp::Ordering {
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

/// The length of a JSON text in characters, without writing it.
fn json_length(value: &Value) -> usize {
    struct Counter(usize);
    impl std::io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            // Bytes that go on with a character are not counted.
            self.0 += bytes.iter().filter(|&&byte| byte & 0xc0 != 0x80).count();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    match serde_json::to_writer(&mut counter, value) {
        Ok(()) => counter.0,
        // Cannot be: a counter takes everything.
        Err(_) => usize::MAX / 4,
    }
}

#[cfg(test)]
mod tests;
