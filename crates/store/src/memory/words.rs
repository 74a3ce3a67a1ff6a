//! Search by words. SQLite's full-text index returns which chunks of the scopes have a word, and how often. The
//! BM25 score is computed here.
//!
//! A word is indexed together with its scope, so that each word and scope has its own list. A word that is in
//! thousands of chunks is not specific, and ranking them all would be slow, so it finds no chunks by itself. The
//! weight of a word is computed from the searched scopes alone, so that no score reveals anything about another
//! scope. SQLite's own ranking counts over all scopes.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use rusqlite::{Connection, OptionalExtension, params};
use windlass_embed::{Bm25Parameters, search_words};

use super::read::KnownScope;
use crate::Error;

/// A word in more chunks than this finds none by itself.
const MAX_CHUNKS_PER_WORD: usize = 2_000;

/// The maximum number of chunks found for a query of only frequent words.
const MAX_WITH_ALL_WORDS: usize = 64;

/// Further words of a query are ignored.
const MAX_WORDS: usize = 32;

/// A word of a scope as it is indexed: one token of letters and digits, whatever characters the word has.
fn term(scope: i64, word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    if word.bytes().all(is_plain) {
        return format!("{scope}x{word}");
    }
    let mut term = format!("{scope}u");
    for byte in word.bytes() {
        // Writing to a string does not fail.
        let _ = write!(term, "{byte:02x}");
    }
    term
}

/// The words of a chunk of a scope as they are indexed.
pub(super) fn terms(scope: i64, words: &[String]) -> String {
    let terms: Vec<String> = words.iter().map(|word| term(scope, word)).collect();
    terms.join(" ")
}

/// The words of a query within some scopes.
pub(super) struct WordQuery {
    words: Vec<QueryWord>,
    /// The average number of words in a chunk.
    average_length: f32,
}

struct QueryWord {
    text: String,
    /// The inverse document frequency.
    rarity: f32,
    /// Whether it is in so few chunks that it finds them.
    is_specific: bool,
}

/// The words that a text shares with a query.
pub(super) struct SharedWords {
    /// The BM25 score.
    pub(super) score: f32,
    /// The words, in the order of the query.
    pub(super) words: Vec<String>,
}

/// A chunk that was found by its words.
#[derive(Debug, Clone, Copy)]
pub(super) struct WordMatch {
    pub(super) chunk: i64,
    /// An upper bound of its BM25 score.
    pub(super) max_score: f32,
}

/// How often a chunk has the word with this index in the query.
#[derive(Clone, Copy)]
struct WordUse {
    chunk: i64,
    word: usize,
    times: u32,
}

impl WordQuery {
    /// The words of `text`, and the `count` chunks with the highest scores for the specific words, best
    /// first.
    pub(super) fn run(
        connection: &Connection,
        scopes: &[KnownScope],
        text: &str,
        count: usize,
    ) -> Result<(Self, Vec<WordMatch>), Error> {
        let mut seen = HashSet::new();
        let texts: Vec<String> = search_words(text)
            .into_iter()
            .filter(|word| seen.insert(word.clone()))
            .take(MAX_WORDS)
            .collect();
        let all: i64 = scopes.iter().map(|scope| scope.chunks).sum();
        let all_words: i64 = scopes.iter().map(|scope| scope.words).sum();
        let mut query = Self {
            words: Vec::with_capacity(texts.len()),
            average_length: (all_words as f32 / all.max(1) as f32).max(1.0),
        };
        let mut uses = Vec::new();
        for text in texts {
            let is_specific = !is_in_many(connection, scopes, &text)?;
            let rarity = match is_specific {
                true => {
                    let chunks = add_uses(connection, scopes, &text, query.words.len(), &mut uses)?;
                    rarity(all as f32, chunks as f32)
                }
                // Not counted: assumed to be in every second chunk.
                false => rarity(2.0, 1.0),
            };
            query.words.push(QueryWord {
                text,
                rarity,
                is_specific,
            });
        }
        let found = match uses.is_empty() {
            true => query.with_all(connection, scopes, count.min(MAX_WITH_ALL_WORDS))?,
            false => query.best(connection, uses, count)?,
        };
        Ok((query, found))
    }

    /// The words of the query that are in a text.
    pub(super) fn shared(&self, text: &str) -> SharedWords {
        let mut times: HashMap<String, u32> = HashMap::new();
        let mut length = 0u32;
        for word in search_words(text) {
            *times.entry(word).or_default() += 1;
            length += 1;
        }
        let mut shared = SharedWords {
            score: 0.0,
            words: Vec::new(),
        };
        for word in &self.words {
            if let Some(&times) = times.get(&word.text) {
                shared.score += self.bm25(word, times, length as f32);
                shared.words.push(word.text.clone());
            }
        }
        shared
    }

    /// The BM25 score of a word that occurs `times` times in a text of `length` words.
    fn bm25(&self, word: &QueryWord, times: u32, length: f32) -> f32 {
        let Bm25Parameters { k1, b } = Bm25Parameters::default();
        let times = times as f32;
        let length = length / self.average_length;
        word.rarity * (times * (k1 + 1.0) / (times + k1 * (1.0 - b + b * length)))
    }

    /// The `count` chunks with the highest scores; newer chunks first if scores are equal.
    ///
    /// Looking up the length of thousands of chunks is slow. So they are processed in the order of their score
    /// for length 0, which is an upper bound, until that bound is below the score of the last of the best.
    fn best(
        &self,
        connection: &Connection,
        mut uses: Vec<WordUse>,
        count: usize,
    ) -> Result<Vec<WordMatch>, Error> {
        uses.sort_unstable_by_key(|one| (one.chunk, one.word));
        let score = |uses: &[WordUse], length: f32| -> f32 {
            let score = |one: &WordUse| self.bm25(&self.words[one.word], one.times, length);
            uses.iter().map(score).sum()
        };
        let mut chunks: Vec<(f32, &[WordUse])> = uses
            .chunk_by(|left, right| left.chunk == right.chunk)
            .map(|uses| (score(uses, 0.0), uses))
            .collect();
        chunks.sort_unstable_by(|left, right| right.0.total_cmp(&left.0));
        let common = self.max_common_score();
        let mut select = connection.prepare_cached(
            "SELECT words FROM memory_chunks INDEXED BY memory_chunks_by_length WHERE id = ?1",
        )?;
        let mut best: Vec<WordMatch> = Vec::new();
        for (bound, uses) in chunks {
            let is_below = |last: &WordMatch| bound + common < last.max_score;
            if best.len() >= count && best.last().is_none_or(is_below) {
                break;
            }
            let Some(chunk) = uses.first().map(|one| one.chunk) else {
                continue;
            };
            let length: Option<i64> = select.query_row([chunk], |row| row.get(0)).optional()?;
            let Some(length) = length else {
                continue;
            };
            let max_score = score(uses, length as f32) + common;
            let place = best.partition_point(|other| {
                let order = other.max_score.total_cmp(&max_score);
                order.then(other.chunk.cmp(&chunk)).is_gt()
            });
            best.insert(place, WordMatch { chunk, max_score });
            best.truncate(count);
        }
        Ok(best)
    }

    /// The newest chunks that have all the frequent words, for a query in which every word is frequent. Together the
    /// words may be specific.
    fn with_all(
        &self,
        connection: &Connection,
        scopes: &[KnownScope],
        count: usize,
    ) -> Result<Vec<WordMatch>, Error> {
        let common: Vec<&QueryWord> = self.words.iter().filter(|word| !word.is_specific).collect();
        if common.is_empty() {
            return Ok(Vec::new());
        }
        let of_scope = |scope: &KnownScope| {
            let terms = common.iter().map(|word| quoted(scope.id, &word.text));
            format!("({})", terms.collect::<Vec<_>>().join(" AND "))
        };
        let scopes: Vec<String> = scopes.iter().map(of_scope).collect();
        let mut select = connection.prepare_cached(
            "SELECT rowid FROM memory_terms WHERE memory_terms MATCH ?1 ORDER BY rowid DESC LIMIT ?2",
        )?;
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let max_score = self.max_common_score();
        let rows = select.query_map(params![scopes.join(" OR "), count], |row| {
            let chunk = row.get(0)?;
            Ok(WordMatch { chunk, max_score })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// An upper bound of the score of all frequent words, whose chunks are not looked up.
    fn max_common_score(&self) -> f32 {
        let Bm25Parameters { k1, .. } = Bm25Parameters::default();
        let common = self.words.iter().filter(|word| !word.is_specific);
        common.map(|word| word.rarity * (k1 + 1.0)).sum()
    }
}

/// The inverse document frequency. It is above zero even for a word that is in all chunks.
fn rarity(all: f32, with_word: f32) -> f32 {
    (((all - with_word).max(0.0) + 0.5) / (with_word + 0.5)).ln_1p()
}

/// A word of a scope in a full-text query; quoted, so that it is never parsed as an operator.
fn quoted(scope: i64, word: &str) -> String {
    format!("\"{}\"", term(scope, word))
}

/// Whether a word is in more chunks of the scopes than the limit. The chunks are skipped, not read.
fn is_in_many(connection: &Connection, scopes: &[KnownScope], word: &str) -> Result<bool, Error> {
    let terms: Vec<String> = scopes.iter().map(|scope| quoted(scope.id, word)).collect();
    let mut select = connection.prepare_cached(
        "SELECT 1 FROM memory_terms WHERE memory_terms MATCH ?1 LIMIT 1 OFFSET ?2",
    )?;
    let limit = i64::try_from(MAX_CHUNKS_PER_WORD).unwrap_or(i64::MAX);
    Ok(select.exists(params![terms.join(" OR "), limit])?)
}

/// Adds how often each chunk of the scopes has a word, and returns the number of those chunks.
fn add_uses(
    connection: &Connection,
    scopes: &[KnownScope],
    text: &str,
    word: usize,
    uses: &mut Vec<WordUse>,
) -> Result<usize, Error> {
    let before = uses.len();
    let mut select =
        connection.prepare_cached("SELECT doc FROM memory_term_uses WHERE term = ?1")?;
    for scope in scopes {
        let of_scope = uses.len();
        let mut rows = select.query([term(scope.id, text)])?;
        while let Some(row) = rows.next()? {
            let chunk = row.get(0)?;
            // All uses in a chunk come one after the other.
            match uses[of_scope..].last_mut() {
                Some(last) if last.chunk == chunk => last.times += 1,
                _ => uses.push(WordUse {
                    chunk,
                    word,
                    times: 1,
                }),
            }
        }
    }
    Ok(uses.len() - before)
}
