//! Search by meaning and words at once. The score is the weighted sum of both, as in the other hybrid searches. A
//! sum keeps score differences, which rank fusion loses.
//!
//! The chunks with the highest cosines are scored first, including their words. Any other chunk has a cosine of at
//! most the last of those, so its word score gives an upper bound of its total score. Chunks with words of the query
//! are scored in the order of that bound until it is too low. The result is the same as scoring every chunk,
//! except that very frequent words find no chunks by themselves.

use std::collections::HashSet;
use std::sync::PoisonError;

use rusqlite::{Connection, OptionalExtension};
use serde::Serialize;
use windlass_embed::{Embedding, HybridParameters, Scored};
use windlass_spec::Timestamp;

use super::Memory;
use super::document::{MemoryScope, ScopeReach};
use super::error::MemoryError;
use super::read::{KnownScope, known_scopes, reach};
use super::words::WordQuery;
use super::write::EmbedderIdentity;
use crate::Error;

/// The minimum number of chunks of each scope that are compared by meaning.
const MIN_BY_MEANING: usize = 32;

/// The minimum number of chunks with the best words that are candidates.
const MIN_BY_WORDS: usize = 256;

/// How much sums of the same scores can differ by rounding.
const ROUNDING: f32 = 1e-5;

/// How many shared words the explanation of a hit lists.
const MAX_NAMED_WORDS: usize = 8;

/// A chunk that was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MemoryHit {
    /// The id of its document.
    pub document: String,
    /// Which agents and runs share the document.
    pub scope: ScopeReach,
    /// The title of the document.
    pub title: Option<String>,
    /// Where the document came from.
    pub source: Option<String>,
    /// The index of the chunk in the document, from 0.
    pub place: u64,
    /// The text of the chunk.
    pub text: String,
    /// The total score: the cosine plus the weighted BM25 score.
    pub score: f32,
    /// The similarity in meaning, from -1 to 1.
    pub cosine: f32,
    /// The BM25 score of the shared words.
    pub words: f32,
    /// Why it was found, for people.
    pub why: String,
    /// When the document was last stored.
    pub stored_at: Timestamp,
    /// Whether the document is derived from untrusted content.
    pub tainted: bool,
}

impl Memory {
    /// The `count` chunks of these scopes that match `query` best, best first.
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
            // All reads see one snapshot.
            let snapshot = connection.unchecked_transaction()?;
            let found = self.search_snapshot(&snapshot, scopes, query, &embedding, count);
            snapshot.finish()?;
            Ok(found)
        })?
    }

    fn search_snapshot(
        &self,
        connection: &Connection,
        scopes: &[MemoryScope],
        query: &str,
        embedding: &Embedding,
        count: usize,
    ) -> Result<Vec<MemoryHit>, MemoryError> {
        let embedder = EmbedderIdentity::of(self.embedder.as_ref());
        let Some(generation) = embedder.generation(connection)?? else {
            return Ok(Vec::new());
        };
        let scopes = known_scopes(connection, scopes)?;
        if scopes.is_empty() || count == 0 {
            return Ok(Vec::new());
        }
        let wanted = count.saturating_mul(2).max(MIN_BY_MEANING);
        let mut cosines: Vec<(i64, f32)> = Vec::new();
        // No other chunk has a higher cosine than this.
        let mut max_other_cosine = 0.0f32;
        for scope in &scopes {
            let found = self.by_meaning(connection, scope, generation, embedding, wanted)?;
            if let Some(last) = found.get(wanted - 1) {
                max_other_cosine = max_other_cosine.max(last.score);
            }
            let found = found.iter().map(|hit| (hit.id.cast_signed(), hit.score));
            cosines.extend(found);
        }
        let (words, by_words) =
            WordQuery::run(connection, &scopes, query, wanted.max(MIN_BY_WORDS))?;
        let mut best = BestHits {
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
            // This bounds the score of the chunk and of all that follow.
            if best.excludes(max_other_cosine + lexical_weight() * found.max_score) {
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

    /// The cosine of a chunk in full precision; `None` if it was removed.
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

/// The best chunks of those compared so far.
struct BestHits<'a> {
    connection: &'a Connection,
    scopes: &'a [KnownScope],
    words: &'a WordQuery,
    count: usize,
    /// Best first, with their chunks.
    hits: Vec<(i64, MemoryHit)>,
}

impl BestHits<'_> {
    /// Adds the word score of a chunk to its cosine, and keeps the chunk if it is among the best.
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
            hit.why = describe_match(cosine, &shared.words);
            self.hits.insert(place, (chunk, hit));
            self.hits.truncate(self.count);
        }
        Ok(())
    }

    /// Whether a chunk with this score cannot be among the best.
    fn excludes(&self, score: f32) -> bool {
        let last = self.hits.get(self.count - 1);
        last.is_some_and(|(_, last)| last.score > score + ROUNDING)
    }
}

fn lexical_weight() -> f32 {
    HybridParameters::default().lexical_weight
}

/// A chunk with its document's data, if it exists and belongs to one of the scopes. The check here makes sure that
/// no chunk of another scope is returned.
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

fn describe_match(cosine: f32, words: &[String]) -> String {
    let meaning = format!("meaning {cosine:.2}");
    if words.is_empty() {
        return meaning;
    }
    let named: Vec<&str> = words
        .iter()
        .take(MAX_NAMED_WORDS)
        .map(String::as_str)
        .collect();
    let more = match words.len() > MAX_NAMED_WORDS {
        true => ", …",
        false => "",
    };
    format!("{meaning}; words: {}{more}", named.join(", "))
}
