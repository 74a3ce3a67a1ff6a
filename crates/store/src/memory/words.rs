//! Search by words: which chunks of some scopes have a word is asked of SQLite's full-text index, how much
//! that is worth is BM25, computed here.
//!
//! The index is asked for one word at a time, within the scopes, and no more than a limit: a word that is
//! in thousands of chunks says little about any, and to rank them all would take longer than everything
//! else. What a word is worth is told from the scopes that are searched alone, so that no score tells
//! anything of another scope; the ranking that SQLite itself offers counts over all.

use std::collections::{HashMap, HashSet};

use rusqlite::Connection;
use windlass_embed::{Bm25Parameters, search_words};

use super::read::KnownScope;
use crate::Error;

/// A word in more chunks than this finds none by itself.
const MOST_CHUNKS: usize = 2_000;

/// More words of a query are not looked at.
const MOST_WORDS: usize = 32;

/// The word that stands for a scope in the index.
pub(super) fn scope_word(scope: i64) -> String {
    format!("s{scope}")
}

/// The words of a query within some scopes.
pub(super) struct Query {
    words: Vec<Word>,
    /// How many chunks there are, and how many words each has.
    average: f32,
}

struct Word {
    text: String,
    /// What one occurrence is worth.
    rarity: f32,
}

/// What a text has of a query's words.
pub(super) struct Shared {
    /// The sum of BM25.
    pub(super) score: f32,
    /// Which words, in the order of the query.
    pub(super) words: Vec<String>,
}

impl Query {
    /// The words of `text`, and the chunks that share the most telling of them, at most `count`.
    pub(super) fn ask(
        connection: &Connection,
        scopes: &[KnownScope],
        text: &str,
        count: usize,
    ) -> Result<(Self, Vec<i64>), Error> {
        let mut seen = HashSet::new();
        let texts: Vec<String> = search_words(text)
            .into_iter()
            .filter(|word| seen.insert(word.clone()))
            .take(MOST_WORDS)
            .collect();
        let all: i64 = scopes.iter().map(|scope| scope.chunks).sum();
        let all_words: i64 = scopes.iter().map(|scope| scope.words).sum();
        let mut weights: HashMap<i64, f32> = HashMap::new();
        let mut words = Vec::new();
        for text in texts {
            let chunks = chunks_with(connection, scopes, &[&text])?;
            let is_telling = chunks.len() <= MOST_CHUNKS;
            let rarity = match is_telling {
                true => rarity(all as f32, chunks.len() as f32),
                // Nobody counted. Taken to be in every second one.
                false => rarity(2.0, 1.0),
            };
            if is_telling {
                for chunk in chunks {
                    *weights.entry(chunk).or_default() += rarity;
                }
            }
            words.push(Word { text, rarity });
        }
        if weights.is_empty() && !words.is_empty() {
            // Only words that are everywhere: where they are all together they may mean something.
            let together: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
            let chunks = chunks_with(connection, scopes, &together)?;
            weights.extend(chunks.into_iter().map(|chunk| (chunk, 1.0)));
        }
        let mut best: Vec<(i64, f32)> = weights.into_iter().collect();
        best.sort_unstable_by(|left, right| right.1.total_cmp(&left.1).then(right.0.cmp(&left.0)));
        best.truncate(count);
        let query = Self {
            words,
            average: (all_words as f32 / all.max(1) as f32).max(1.0),
        };
        Ok((query, best.into_iter().map(|(chunk, _)| chunk).collect()))
    }

    /// What a text has of these words.
    pub(super) fn shared(&self, text: &str) -> Shared {
        let Bm25Parameters { k1, b } = Bm25Parameters::default();
        let mut times: HashMap<String, u32> = HashMap::new();
        let mut length = 0u32;
        for word in search_words(text) {
            *times.entry(word).or_default() += 1;
            length += 1;
        }
        let length = length as f32 / self.average;
        let mut shared = Shared {
            score: 0.0,
            words: Vec::new(),
        };
        for word in &self.words {
            if let Some(&times) = times.get(&word.text) {
                let times = times as f32;
                let saturated = times * (k1 + 1.0) / (times + k1 * (1.0 - b + b * length));
                shared.score += word.rarity * saturated;
                shared.words.push(word.text.clone());
            }
        }
        shared
    }
}

/// More than zero also for a word that is in all.
fn rarity(all: f32, with_word: f32) -> f32 {
    (((all - with_word).max(0.0) + 0.5) / (with_word + 0.5)).ln_1p()
}

/// The chunks of the scopes that have all the words, one more than the limit if there are more. The words
/// are quoted, so that none of them is taken for an operator.
fn chunks_with(
    connection: &Connection,
    scopes: &[KnownScope],
    words: &[&str],
) -> Result<Vec<i64>, Error> {
    let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
    let scopes: Vec<String> = scopes
        .iter()
        .map(|scope| quoted(&scope_word(scope.id)))
        .collect();
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    let query = format!(
        "scope : ({}) AND words : ({})",
        scopes.join(" OR "),
        words.join(" AND ")
    );
    let mut select = connection.prepare_cached(
        "SELECT rowid FROM memory_words WHERE memory_words MATCH ?1 ORDER BY rowid DESC LIMIT ?2",
    )?;
    let limit = i64::try_from(MOST_CHUNKS + 1).unwrap_or(i64::MAX);
    let rows = select.query_map(rusqlite::params![query, limit], |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}
