//! Search by meaning and words at once. The score is the weighted sum of both, as everywhere else: a sum keeps
//! by how much one is better, which fusing ranks throws away.
//!
//! What means the most alike is compared first, by its words, too. Whatever else has words of the query is
//! less alike in meaning than the last of those, so that its words say whether it can still be among the
//! best; they are gone through from the best on until they cannot. So what is found is what comparing
//! everything would find, unless too much would have to be compared: words that are everywhere find nothing.

use std::collections::HashSet;
use std::sync::PoisonError;

use rusqlite::{Connection, OptionalExtension};
use serde::Serialize;
use windlass_embed::{Embedding, HybridParameters, Scored};
use windlass_spec::Timestamp;

use super::Memory;
use super::document::{MemoryScope, Reach};
use super::error::MemoryError;
use super::read::{KnownScope, known_scopes, reach};
use super::words::Query;
use super::write::Made;
use crate::Error;

/// At least so many chunks of each scope are compared because of what they mean.
const LEAST_BY_MEANING: usize = 32;

/// Of more chunks than this, those with the best words are compared.
const MOST_BY_WORDS: usize = 256;

/// By so much sums of the same scores can differ.
const ROUNDING: f32 = 1e-5;

/// How many words are named when it is told why something was found.
const MOST_NAMED: usize = 8;

/// A chunk that was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MemoryHit {
    /// The document it is of.
    pub document: String,
    /// Whose memory that is.
    pub scope: Reach,
    /// What the document is called.
    pub title: Option<String>,
    /// Where the document came from.
    pub source: Option<String>,
    /// Which chunk of the document it is, from 0.
    pub place: u64,
    /// The chunk.
    pub text: String,
    /// How well it fits: the cosine, and what the shared words add to it.
    pub score: f32,
    /// How similar in meaning, from -1 to 1.
    pub cosine: f32,
    /// How much the shared words are worth, as BM25.
    pub words: f32,
    /// Why it was found, for people.
    pub why: String,
    /// When the document was stored or last told again.
    pub stored_at: Timestamp,
    /// Whether the document comes from what was read outside.
    pub tainted: bool,
}

impl Memory {
    /// The `count` chunks of these scopes that fit `query` best, best first.
    ///
    /// # Errors
    /// If the query is empty, the memory was made by another embedder, or it cannot be read.
    pub fn search(
        &self,
        scopes: &[MemoryScope],
        query: &str,
        count: usize,
    ) -> Result<Vec<MemoryHit>, MemoryError> {
        let query = query.trim();
        if query.is_empty() {
            return Err(MemoryError::EmptyQuery);
        }
        let embedding = self.embed(&[query])?.pop();
        let embedding = embedding.unwrap_or_else(|| Embedding::zero(self.embedder.dimension()));
        self.store.readers.read(|connection| {
            // What is read is of one moment.
            let moment = connection.unchecked_transaction()?;
            let found = self.search_now(&moment, scopes, query, &embedding, count);
            moment.finish()?;
            Ok(found)
        })?
    }

    fn search_now(
        &self,
        connection: &Connection,
        scopes: &[MemoryScope],
        query: &str,
        embedding: &Embedding,
        count: usize,
    ) -> Result<Vec<MemoryHit>, MemoryError> {
        let made = Made::by(self.embedder.as_ref());
        let Some(generation) = made.generation(connection)?? else {
            return Ok(Vec::new());
        };
        let scopes = known_scopes(connection, scopes)?;
        if scopes.is_empty() || count == 0 {
            return Ok(Vec::new());
        }
        let wanted = count.saturating_mul(2).max(LEAST_BY_MEANING);
        let mut cosines: Vec<(i64, f32)> = Vec::new();
        // No chunk that is not among those is more similar than this.
        let mut others = 0.0f32;
        for scope in &scopes {
            let found = self.by_meaning(connection, scope, generation, embedding, wanted)?;
            if let Some(last) = found.get(wanted - 1) {
                others = others.max(last.score);
            }
            let found = found.iter().map(|hit| (hit.id.cast_signed(), hit.score));
            cosines.extend(found);
        }
        let (words, by_words) = Query::ask(connection, &scopes, query, wanted.max(MOST_BY_WORDS))?;
        let mut best = Best {
            connection,
            scopes: &scopes,
            words: &words,
            count,
            hits: Vec::new(),
        };
        let mut seen = HashSet::with_capacity(cosines.len());
        for (chunk, cosine) in cosines {
            seen.insert(chunk);
            best.compare(chunk, cosine)?;
        }
        for found in by_words {
            // What is not among those that mean the most alike is not more alike than they are, and the
            // words that follow are worth less.
            if best.is_beyond(others + lexical_weight() * found.most) {
                break;
            }
            if seen.insert(found.chunk) {
                let cosine = self.cosine(connection, found.chunk, embedding)?;
                best.compare(found.chunk, cosine.unwrap_or_default())?;
            }
        }
        Ok(best.hits.into_iter().map(|(_, hit)| hit).collect())
    }

    fn by_meaning(
        &self,
        connection: &Connection,
        scope: &KnownScope,
        generation: i64,
        embedding: &Embedding,
        count: usize,
    ) -> Result<Vec<Scored<u64>>, MemoryError> {
        let dimension = self.embedder.dimension();
        let index = self
            .indexes
            .fresh(connection, scope, generation, dimension)?;
        let index = index.read().unwrap_or_else(PoisonError::into_inner);
        let found = index
            .index
            .search(embedding, count, f32::MIN_POSITIVE, |chunks| {
                let mut compared = Vec::with_capacity(chunks.len());
                for &id in chunks {
                    if let Some(score) = self.cosine(connection, id.cast_signed(), embedding)? {
                        compared.push(Scored { id, score });
                    }
                }
                Ok::<_, MemoryError>(compared)
            })?;
        Ok(found.hits)
    }

    /// How similar a chunk is, in full precision; nothing if it is gone.
    fn cosine(
        &self,
        connection: &Connection,
        chunk: i64,
        query: &Embedding,
    ) -> Result<Option<f32>, MemoryError> {
        let mut select =
            connection.prepare_cached("SELECT exact FROM memory_exact_vectors WHERE chunk = ?1")?;
        let fingerprint = self.embedder.fingerprint();
        let found = select
            .query_row([chunk], |row| {
                let bytes = row.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?;
                Ok(Embedding::from_bytes(bytes, fingerprint))
            })
            .optional()?;
        let embedding = found
            .transpose()
            .map_err(|error| Error::unreadable(format!("the vector of chunk {chunk}"), error))?;
        Ok(embedding.map(|embedding| embedding.cosine(query)))
    }
}

/// The best of what was compared.
struct Best<'a> {
    connection: &'a Connection,
    scopes: &'a [KnownScope],
    words: &'a Query,
    count: usize,
    /// Best first, with their chunks.
    hits: Vec<(i64, MemoryHit)>,
}

impl Best<'_> {
    /// Compares a chunk that is so similar by its words, too, and keeps it if it is among the best.
    fn compare(&mut self, chunk: i64, cosine: f32) -> Result<(), Error> {
        let Some(mut hit) = hit(self.connection, self.scopes, chunk)? else {
            return Ok(());
        };
        let shared = self.words.shared(&hit.text);
        if cosine <= 0.0 && shared.score <= 0.0 {
            return Ok(());
        }
        hit.cosine = cosine;
        hit.words = shared.score;
        hit.score = cosine + lexical_weight() * shared.score;
        let place = self.hits.partition_point(|(other_chunk, other)| {
            let order = other.score.total_cmp(&hit.score);
            order.then(chunk.cmp(other_chunk)).is_gt()
        });
        if place < self.count {
            hit.why = why(cosine, &shared.words);
            self.hits.insert(place, (chunk, hit));
            self.hits.truncate(self.count);
        }
        Ok(())
    }

    /// Whether nothing of this score would be among the best.
    fn is_beyond(&self, score: f32) -> bool {
        let last = self.hits.get(self.count - 1);
        last.is_some_and(|(_, last)| last.score > score + ROUNDING)
    }
}

fn lexical_weight() -> f32 {
    HybridParameters::default().lexical_weight
}

/// A chunk with what is known of its document, if it is there and of one of the scopes: whatever led to
/// it, nothing of another scope is told.
fn hit(
    connection: &Connection,
    scopes: &[KnownScope],
    chunk: i64,
) -> Result<Option<MemoryHit>, Error> {
    let mut select = connection.prepare_cached(
        "SELECT d.scope, d.id, s.kind, s.value, d.title, d.source, c.place, c.text, d.updated_at, d.tainted
         FROM memory_chunks c JOIN memory_documents d ON d.number = c.document
         JOIN memory_scopes s ON s.id = d.scope WHERE c.id = ?1",
    )?;
    let mut rows = select.query([chunk])?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    let scope: i64 = row.get(0)?;
    if scopes.iter().all(|allowed| allowed.id != scope) {
        return Ok(None);
    }
    let kind: String = row.get(2)?;
    Ok(Some(MemoryHit {
        document: row.get(1)?,
        scope: reach(&kind, row.get(3)?)?,
        title: row.get(4)?,
        source: row.get(5)?,
        place: super::read::count(row.get(6)?),
        text: row.get(7)?,
        score: 0.0,
        cosine: 0.0,
        words: 0.0,
        why: String::new(),
        stored_at: Timestamp::from_microseconds(row.get(8)?),
        tainted: row.get(9)?,
    }))
}

fn why(cosine: f32, words: &[String]) -> String {
    let meaning = format!("meaning {cosine:.2}");
    if words.is_empty() {
        return meaning;
    }
    let named: Vec<&str> = words.iter().take(MOST_NAMED).map(String::as_str).collect();
    let more = match words.len() > MOST_NAMED {
        true => ", …",
        false => "",
    };
    format!("{meaning}; words: {}{more}", named.join(", "))
}
