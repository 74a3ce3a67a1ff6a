//! Measures the search time of an index of compact vectors, on one thread, and its memory.
//!
//! `cargo run --release -p windlass-embed --example memory_index -- make VECTORS COUNT SEED`
//! `cargo run --release -p windlass-embed --example memory_index -- search QUERIES VECTORS TRUTH ROUNDS`
//!
//! `make` embeds COUNT generated texts. The files hold f32 in little endian, 256 per row; TRUTH holds ten
//! u32 per query, the rows that an exact scan finds. The exact vectors are read from their file, as a store would.
//! `search` prints one JSON object. `cargo xtask bench memory` runs both together with another library.

#![allow(clippy::print_stdout)]

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::os::unix::fs::FileExt as _;
use std::time::Instant;

use windlass_embed::{
    CompactIndex, CompactVector, DimensionMismatch, Embedding, Scored, StaticEmbedder,
};

const DIMENSION: usize = 256;
const TOP: usize = 10;

/// The bytes of a row.
const ROW: usize = 4 * DIMENSION;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["make", vectors, count, seed] => make(vectors, count.parse()?, seed.parse()?),
        ["search", queries, vectors, truth, rounds] => {
            search(queries, vectors, truth, rounds.parse()?)
        }
        _ => Err("make VECTORS COUNT SEED, or search QUERIES VECTORS TRUTH ROUNDS".into()),
    }
}

/// Embeds texts of vocabulary words that share subjects, so that they are as close together as real ones.
fn make(path: &str, count: usize, seed: u64) -> Result<(), Box<dyn Error>> {
    let words: Vec<&str> = include_str!("../data/vocab.txt")
        .lines()
        .filter(|word| word.len() > 2 && word.bytes().all(|byte| byte.is_ascii_lowercase()))
        .collect();
    let embedder = StaticEmbedder::new();
    let mut state = seed | 1;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as usize
    };
    let mut file = BufWriter::new(File::create(path)?);
    for _ in 0..count {
        // One of a few thousand subjects, then random words.
        let subject = next() % 4_000;
        let mut text = format!("{} {}", words[subject], words[subject * 7 % words.len()]);
        for _ in 0..4 + next() % 12 {
            text.push(' ');
            text.push_str(words[next() % 3_000 + next() % 3_000]);
        }
        for value in embedder.embed(&text).as_slice() {
            file.write_all(&value.to_le_bytes())?;
        }
    }
    Ok(file.flush()?)
}

fn search(queries: &str, vectors: &str, truth: &str, rounds: usize) -> Result<(), Box<dyn Error>> {
    let queries = read_embeddings(queries)?;
    let truth = std::fs::read(truth)?;
    let truth: Vec<u64> = truth
        .as_chunks::<4>()
        .0
        .iter()
        .map(|bytes| u32::from_le_bytes(*bytes).into())
        .collect();
    let exact = File::open(vectors)?;
    let begin = Instant::now();
    let mut index = CompactIndex::new(DIMENSION);
    let mut row = [0u8; ROW];
    let rows = exact.metadata()?.len() / ROW as u64;
    for id in 0..rows {
        exact.read_exact_at(&mut row, id * ROW as u64)?;
        index.insert(id, &CompactVector::of(&embedding(&row)?))?;
    }
    let built = begin.elapsed();

    let mut times = Vec::new();
    let (mut right, mut compared, mut inexact) = (0usize, 0usize, 0usize);
    for round in 0..rounds {
        for (number, query) in queries.iter().enumerate() {
            let begin = Instant::now();
            let found = index.search(query, TOP, -1.0, |ids| {
                let mut scored = Vec::with_capacity(ids.len());
                let mut row = [0u8; ROW];
                for &id in ids {
                    exact
                        .read_exact_at(&mut row, id * ROW as u64)
                        .map_err(|error| Failure(error.to_string()))?;
                    let values = row.as_chunks::<4>().0.iter();
                    let score = values
                        .zip(query.as_slice())
                        .map(|(bytes, value)| f32::from_le_bytes(*bytes) * value)
                        .sum();
                    scored.push(Scored { id, score });
                }
                Ok::<_, Failure>(scored)
            })?;
            times.push(begin.elapsed().as_secs_f64() * 1e3);
            if round == 0 {
                let expected = &truth[number * TOP..(number + 1) * TOP];
                right += found
                    .hits
                    .iter()
                    .filter(|hit| expected.contains(&hit.id))
                    .count();
                compared += found.compared;
                inexact += usize::from(!found.is_exact);
            }
        }
    }

    // An inserted vector is found by the next search.
    let mut fresh = vec![0.0; DIMENSION];
    fresh[7] = 1.0;
    let fresh = Embedding::new(fresh)?;
    let begin = Instant::now();
    index.insert(rows, &CompactVector::of(&fresh))?;
    let inserted = begin.elapsed();
    let found = index.search(&fresh, 1, -1.0, |ids| {
        let score = |id: u64| if id == rows { 1.0 } else { 0.0 };
        Ok::<_, Failure>(
            ids.iter()
                .map(|&id| Scored {
                    id,
                    score: score(id),
                })
                .collect(),
        )
    })?;
    let is_visible = found.hits.first().is_some_and(|hit| hit.id == rows);

    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    println!(
        "{{\"rows\":{rows},\"queries\":{},\"min_ms\":{:.3},\"p50_ms\":{:.3},\"p99_ms\":{:.3},\"mean_ms\":{:.3},\"recall_at_10\":{:.5},\
         \"compared_mean\":{:.1},\"inexact\":{inexact},\"build_s\":{:.2},\"insert_us\":{:.1},\
         \"insert_visible\":{is_visible},\"rss_mb\":{:.1},\"peak_mb\":{:.1}}}",
        queries.len(),
        at(0.0),
        at(0.5),
        at(0.99),
        times.iter().sum::<f64>() / times.len() as f64,
        right as f64 / (queries.len() * TOP) as f64,
        compared as f64 / queries.len() as f64,
        built.as_secs_f64(),
        inserted.as_secs_f64() * 1e6,
        resident("VmRSS:"),
        resident("VmHWM:"),
    );
    Ok(())
}

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Failure(String);

impl From<DimensionMismatch> for Failure {
    fn from(error: DimensionMismatch) -> Self {
        Self(error.to_string())
    }
}

fn embedding(row: &[u8]) -> Result<Embedding, Box<dyn Error>> {
    let values = row.as_chunks::<4>().0.iter();
    Ok(Embedding::new(
        values.map(|bytes| f32::from_le_bytes(*bytes)).collect(),
    )?)
}

fn read_embeddings(path: &str) -> Result<Vec<Embedding>, Box<dyn Error>> {
    std::fs::read(path)?
        .chunks_exact(ROW)
        .map(embedding)
        .collect()
}

/// A memory figure of this process in megabytes, as the system reports it.
fn resident(field: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
    kilobytes
        .and_then(|number| number.parse::<f64>().ok())
        .unwrap_or(f64::NAN)
        / 1024.0
}
