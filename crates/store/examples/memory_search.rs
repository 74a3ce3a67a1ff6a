//! Measures the cost of a memory search: documents in SQLite, vectors in memory, words in the full-text index.
//!
//! `cargo run --release -p windlass-store --example memory_search -- DIRECTORY ENTRIES QUERIES`
//!
//! Creates a memory with ENTRIES chunks in the directory, unless it exists, and runs QUERIES searches. Prints one
//! JSON object: the time of the first search, which loads the vectors, the minimum, the median and the 99th
//! percentile of all others, the time until a new document is found, and the memory of the process.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use windlass_spec::Timestamp;
use windlass_store::{Memory, MemoryScope, NewDocument, ScopeReach, Store};

/// The approximate number of chunks in a document.
const CHUNKS: usize = 10_000;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, entries, queries] = arguments.as_slice() else {
        return Err("DIRECTORY ENTRIES QUERIES".into());
    };
    let (entries, queries): (usize, usize) = (entries.parse()?, queries.parse()?);
    let store = Store::open(Path::new(directory).join("windlass.db"))?;
    let memory = Memory::new(Arc::new(store));
    let scope = [MemoryScope::new("bench", "bench", ScopeReach::Principal)];
    let mut words = Words::new();
    let begin = Instant::now();
    let stored_chunks = |memory: &Memory| -> Result<usize, Box<dyn Error>> {
        let scopes = memory.statistics("bench", "bench")?.scopes;
        Ok(scopes.iter().map(|scope| scope.chunks as usize).sum())
    };
    let mut chunks = stored_chunks(&memory)?;
    words.skip(chunks);
    let before = chunks;
    while chunks < entries {
        let wanted = CHUNKS.min(entries - chunks);
        let text = words.document(wanted);
        let stored = memory.remember(&scope[0], NewDocument::new(text, now()))?;
        chunks += stored.chunks;
    }
    let made = (chunks - before, begin.elapsed().as_secs_f64());
    drop(memory);

    // Like a new process that opens an existing memory.
    let store = Store::open(Path::new(directory).join("windlass.db"))?;
    let memory = Memory::new(Arc::new(store));
    let begin = Instant::now();
    memory.search(&scope, &words.sentence(6), 10)?;
    let first = begin.elapsed().as_secs_f64();
    let mut times = Vec::new();
    let mut found = 0;
    for _ in 0..queries {
        let query = words.sentence(5);
        let begin = Instant::now();
        found += memory.search(&scope, &query, 10)?.len();
        times.push(begin.elapsed().as_secs_f64() * 1e3);
    }
    let new = format!("The quokka of {chunks} sleeps under the xylophone.");
    let stored = memory.remember(&scope[0], NewDocument::new(&new, now()))?;
    let begin = Instant::now();
    let hits = memory.search(&scope, "quokka under the xylophone", 1)?;
    let visible_after = begin.elapsed().as_secs_f64() * 1e3;
    let is_visible = hits.first().is_some_and(|hit| hit.document == stored.id);
    memory.forget(&scope, &stored.id)?;

    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    println!(
        "{{\"entries\":{},\"made\":{},\"made_s\":{:.1},\"first_search_s\":{first:.2},\"min_ms\":{:.1},\"p50_ms\":{:.1},\"p99_ms\":{:.1},\
         \"hits\":{found},\"insert_visible\":{is_visible},\"search_after_insert_ms\":{visible_after:.1},\
         \"rss_mb\":{:.1},\"peak_mb\":{:.1}}}",
        stored_chunks(&memory)?,
        made.0,
        made.1,
        at(0.0),
        at(0.5),
        at(0.99),
        resident("VmRSS:"),
        resident("VmHWM:"),
    );
    Ok(())
}

/// A deterministic generator of texts with common and rare words.
struct Words {
    state: u64,
}

impl Words {
    fn new() -> Self {
        Self {
            state: 0x9e37_79b9_7f4a_7c15,
        }
    }

    fn next(&mut self) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 11) as usize
    }

    /// Changes the state, so that a memory that is extended gets other texts.
    fn skip(&mut self, chunks: usize) {
        self.state ^= (chunks as u64).wrapping_mul(0x2545_f491_4f6c_dd1d) | 1;
    }

    fn word(&mut self) -> String {
        const COMMON: [&str; 12] = [
            "the", "of", "and", "in", "to", "is", "was", "for", "with", "on", "by", "at",
        ];
        const STEMS: [&str; 40] = [
            "river", "mill", "invoice", "winter", "garden", "train", "ledger", "harbour", "letter",
            "window", "copper", "music", "doctor", "market", "engine", "forest", "paper", "bridge",
            "kitchen", "island", "teacher", "weather", "silver", "village", "contract", "museum",
            "captain", "orchard", "camera", "library", "station", "mountain", "football", "sugar",
            "battery", "theatre", "journal", "painter", "soldier", "festival",
        ];
        let place = self.next();
        if place.is_multiple_of(3) {
            return COMMON[self.next() % COMMON.len()].to_owned();
        }
        let stem = STEMS[self.next() % STEMS.len()];
        match place % 10 {
            // Names and numbers are rare, and often searched for.
            1 => format!("{stem}{}", self.next() % 50_000),
            _ => stem.to_owned(),
        }
    }

    fn sentence(&mut self, words: usize) -> String {
        (0..words)
            .map(|_| self.word())
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// A document of about this many chunks. Each paragraph is a little longer than half a chunk, so that no two
    /// fit into one.
    fn document(&mut self, chunks: usize) -> String {
        let mut text = String::new();
        for _ in 0..chunks {
            let begin = text.len();
            while text.len() - begin < 560 {
                text.push_str(&self.sentence(9));
                text.push_str(". ");
            }
            text.push_str("\n\n");
        }
        text
    }
}

fn now() -> Timestamp {
    Timestamp::from_microseconds(1_790_000_000_000_000)
}

/// Memory of this process in megabytes, as the system counts it.
fn resident(field: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
    let number = kilobytes.and_then(|number| number.parse::<f64>().ok());
    number.unwrap_or(f64::NAN) / 1024.0
}
