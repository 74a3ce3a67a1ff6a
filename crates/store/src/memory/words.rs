//! Search by words: which chunks of some scopes have a word, and how often, is asked of SQLite's full-text
//! index; how much that is worth is BM25, computed here.
//!
//! A word stands in the index with its scope, so that there is one list a word and scope. A word that is in
//! thousands of chunks says little about any, and to rank them all would take longer than everything else:
//! it finds none by itself. What a word is worth is told from the scopes that are searched alone, so that no
//! score tells anything of another scope; the ranking that SQLite itself offers counts over all.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use rusqlite::{Connection, OptionalExtension, params};
use windlass_embed::{Bm25Parameters, search_words};

use super::read::KnownScope;
use crate::Error;

/// A word in more chunks than this finds none by itself.
const MOST_CHUNKS: usize = 2_000;

/// How many chunks at most are found because they have all words of a query that finds nothing else.
const MOST_TOGETHER: usize = 64;

/// More words of a query are not looked at.
const MOST_WORDS: usize = 32;

/// A word of a scope as it stands in the index: one token of letters and digits, whatever the word is of.
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

/// The words of a chunk of a scope as they stand in the index.
pub(super) fn terms(scope: i64, words: &[String]) -> String {
    let terms: Vec<String> = words.iter().map(|word| term(scope, word)).collect();
    terms.join(" ")
}

/// The words of a query within some scopes.
pub(super) struct Query {
    words: Vec<Word>,
    /// How many words a chunk has on average.
    average: f32,
}

struct Word {
    text: String,
    /// What one occurrence is worth.
    rarity: f32,
    /// Whether it is in so few chunks that it finds them.
    is_telling: bool,
}

/// What a text has of a query's words.
pub(super) struct Shared {
    /// The sum of BM25.
    pub(super) score: f32,
    /// Which words, in the order of the query.
    pub(super) words: Vec<String>,
}

/// A chunk that words found.
#[derive(Debug, Clone, Copy)]
pub(super) struct ByWords {
    pub(super) chunk: i64,
    /// The most that the words of the query in it can be worth.
    pub(super) most: f32,
}

/// How often a chunk has the word at a place of the query.
#[derive(Clone, Copy)]
struct Use {
    chunk: i64,
    word: usize,
    times: u32,
}

impl Query {
    /// The words of `text`, and the `count` chunks for which those that are telling are worth most, best
    /// first.
    pub(super) fn ask(
        connection: &Connection,
        scopes: &[KnownScope],
        text: &str,
        count: usize,
    ) -> Result<(Self, Vec<ByWords>), Error> {
        let mut seen = HashSet::new();
        let texts: Vec<String> = search_words(text)
            .into_iter()
            .filter(|word| seen.insert(word.clone()))
            .take(MOST_WORDS)
            .collect();
        let all: i64 = scopes.iter().map(|scope| scope.chunks).sum();
        let all_words: i64 = scopes.iter().map(|scope| scope.words).sum();
        let mut query = Self {
            words: Vec::with_capacity(texts.len()),
            average: (all_words as f32 / all.max(1) as f32).max(1.0),
        };
        let mut uses = Vec::new();
        for text in texts {
            let is_telling = !is_in_many(connection, scopes, &text)?;
            let rarity = match is_telling {
                true => {
                    let chunks = add_uses(connection, scopes, &text, query.words.len(), &mut uses)?;
                    rarity(all as f32, chunks as f32)
                }
                // Nobody counted. Taken to be in every second one.
                false => rarity(2.0, 1.0),
            };
            query.words.push(Word {
                text,
                rarity,
                is_telling,
            });
        }
        let found = match uses.is_empty() {
            true => query.with_all(connection, scopes, count.min(MOST_TOGETHER))?,
            false => query.best(connection, uses, count)?,
        };
        Ok((query, found))
    }

    /// What a text has of these words.
    pub(super) fn shared(&self, text: &str) -> Shared {
        let mut times: HashMap<String, u32> = HashMap::new();
        let mut length = 0u32;
        for word in search_words(text) {
            *times.entry(word).or_default() += 1;
            length += 1;
        }
        let mut shared = Shared {
            score: 0.0,
            words: Vec::new(),
        };
        for word in &self.words {
            if let Some(&times) = times.get(&word.text) {
                shared.score += self.worth(word, times, length as f32);
                shared.words.push(word.text.clone());
            }
        }
        shared
    }

    /// What a word is worth that is said so many times among so many words.
    fn worth(&self, word: &Word, times: u32, length: f32) -> f32 {
        let Bm25Parameters { k1, b } = Bm25Parameters::default();
        let times = times as f32;
        let length = length / self.average;
        word.rarity * (times * (k1 + 1.0) / (times + k1 * (1.0 - b + b * length)))
    }

    /// The `count` chunks for which the words are worth most, and as new as can be where that is the same.
    ///
    /// How long a chunk is has to be looked up, which for thousands of chunks takes long; so they are gone
    /// through in the order of what they would be worth if they had no length at all, which is never less,
    /// until that is less than what the last of the best is worth.
    fn best(
        &self,
        connection: &Connection,
        mut uses: Vec<Use>,
        count: usize,
    ) -> Result<Vec<ByWords>, Error> {
        uses.sort_unstable_by_key(|one| (one.chunk, one.word));
        let worth = |uses: &[Use], length: f32| -> f32 {
            let worth = |one: &Use| self.worth(&self.words[one.word], one.times, length);
            uses.iter().map(worth).sum()
        };
        let mut chunks: Vec<(f32, &[Use])> = uses
            .chunk_by(|left, right| left.chunk == right.chunk)
            .map(|uses| (worth(uses, 0.0), uses))
            .collect();
        chunks.sort_unstable_by(|left, right| right.0.total_cmp(&left.0));
        let common = self.most_of_common();
        let mut select = connection.prepare_cached(
            "SELECT words FROM memory_chunks INDEXED BY memory_chunks_by_length WHERE id = ?1",
        )?;
        let mut best: Vec<ByWords> = Vec::new();
        for (most, uses) in chunks {
            if best.len() >= count && best.last().is_none_or(|last| most + common < last.most) {
                break;
            }
            let Some(chunk) = uses.first().map(|one| one.chunk) else {
                continue;
            };
            let length: Option<i64> = select.query_row([chunk], |row| row.get(0)).optional()?;
            let Some(length) = length else {
                continue;
            };
            let most = worth(uses, length as f32) + common;
            let place = best.partition_point(|other| {
                let order = other.most.total_cmp(&most);
                order.then(other.chunk.cmp(&chunk)).is_gt()
            });
            best.insert(place, ByWords { chunk, most });
            best.truncate(count);
        }
        Ok(best)
    }

    /// The newest chunks that have all the common words: where only words are asked for that are everywhere, they
    /// may mean something together.
    fn with_all(
        &self,
        connection: &Connection,
        scopes: &[KnownScope],
        count: usize,
    ) -> Result<Vec<ByWords>, Error> {
        let common: Vec<&Word> = self.words.iter().filter(|word| !word.is_telling).collect();
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
        let most = self.most_of_common();
        let rows = select.query_map(params![scopes.join(" OR "), count], |row| {
            let chunk = row.get(0)?;
            Ok(ByWords { chunk, most })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The most that all words can be worth of which it is not known where they are.
    fn most_of_common(&self) -> f32 {
        let Bm25Parameters { k1, .. } = Bm25Parameters::default();
        let common = self.words.iter().filter(|word| !word.is_telling);
        common.map(|word| word.rarity * (k1 + 1.0)).sum()
    }
}

/// More than zero also for a word that is in all.
fn rarity(all: f32, with_word: f32) -> f32 {
    (((all - with_word).max(0.0) + 0.5) / (with_word + 0.5)).ln_1p()
}

/// A word of a scope as it is asked for; quoted, so that it is never taken for an operator.
fn quoted(scope: i64, word: &str) -> String {
    format!("\"{}\"", term(scope, word))
}

/// Whether a word is in more chunks of the scopes than the limit. They are stepped over, not read.
fn is_in_many(connection: &Connection, scopes: &[KnownScope], word: &str) -> Result<bool, Error> {
    let terms: Vec<String> = scopes.iter().map(|scope| quoted(scope.id, word)).collect();
    let mut select = connection.prepare_cached(
        "SELECT 1 FROM memory_terms WHERE memory_terms MATCH ?1 LIMIT 1 OFFSET ?2",
    )?;
    let limit = i64::try_from(MOST_CHUNKS).unwrap_or(i64::MAX);
    Ok(select.exists(params![terms.join(" OR "), limit])?)
}

/// Adds which chunks of the scopes have a word how often; how many chunks that are.
fn add_uses(
    connection: &Connection,
    scopes: &[KnownScope],
    text: &str,
    word: usize,
    uses: &mut Vec<Use>,
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
                _ => uses.push(Use {
                    chunk,
                    word,
                    times: 1,
                }),
            }
        }
    }
    Ok(uses.len() - before)
}
