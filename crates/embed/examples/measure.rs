//! What embedding and searching cost on this machine, on one thread. Prints texts per second, the time
//! from the start of a process to its first embedding, and the time and recall of a search.
//!
//! `cargo run --release -p windlass-embed --example measure`
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::hint::black_box;
use std::process::Command;
use std::time::{Duration, Instant};

use windlass_embed::{Bm25Index, Embedder as _, Embedding, StaticEmbedder, VectorIndex};

const VECTORS: usize = 100_000;
const QUERIES: usize = 200;
const TOP: usize = 10;

/// With this argument the program is the process whose start is measured.
const CHILD: &str = "--first-embedding";

const SHORT_TEXTS: [&str; 8] = [
    "Book a table for two at an Italian restaurant tonight",
    "What is the weather like in Berlin tomorrow?",
    "Transfer 250 dollars from savings to checking",
    "Find the area of a triangle with base 10 and height 5",
    "list all open pull requests of the repository",
    "kubernetes ingress TLS renewal",
    "Remind me to call the dentist on Monday morning",
    "Crème brûlée recipe for six people",
];

fn main() -> Result<(), Box<dyn Error>> {
    if std::env::args().nth(1).as_deref() == Some(CHILD) {
        black_box(StaticEmbedder::new().embed(SHORT_TEXTS[0]));
        return Ok(());
    }
    println!("machine: {}", machine());
    println!("short texts embedded: {:.0} per second", texts_per_second());
    let (whole, bare) = start_to_first_embedding()?;
    println!(
        "process start to exit with one embedding: p50 {:.2} ms ({:.2} ms for /bin/true)",
        milliseconds(whole),
        milliseconds(bare)
    );
    println!(
        "first embedding, in process: {:.3} ms",
        milliseconds(first_embedding())
    );
    long_text();
    scan()?;
    words();
    Ok(())
}

fn machine() -> String {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let information = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = information
        .lines()
        .find_map(|line| line.strip_prefix("model name"));
    let model = model.map_or(std::env::consts::ARCH, |name| {
        name.trim_matches([' ', '\t', ':'])
    });
    format!("{model}, {processors} cores, {}", std::env::consts::OS)
}

/// Taken before anything else was embedded by this process: pages of the data come from disk cache.
fn first_embedding() -> Duration {
    let begin = Instant::now();
    black_box(
        StaticEmbedder::new().embed(black_box("a text nobody embedded before, zebra quokka")),
    );
    begin.elapsed()
}

fn texts_per_second() -> f64 {
    let embedder = StaticEmbedder::new();
    let best = (0..5).map(|_| {
        let begin = Instant::now();
        for _ in 0..2_500 {
            for text in SHORT_TEXTS {
                black_box(embedder.embed(black_box(text)));
            }
        }
        2_500.0 * SHORT_TEXTS.len() as f64 / begin.elapsed().as_secs_f64()
    });
    median(best.collect())
}

fn start_to_first_embedding() -> Result<(Duration, Duration), Box<dyn Error>> {
    let time = |mut command: Command| -> Result<Duration, Box<dyn Error>> {
        let mut times = Vec::new();
        for _ in 0..50 {
            let begin = Instant::now();
            if !command.status()?.success() {
                return Err("the measured process failed".into());
            }
            times.push(begin.elapsed().as_secs_f64());
        }
        Ok(Duration::from_secs_f64(median(times)))
    };
    let mut child = Command::new(std::env::current_exe()?);
    child.arg(CHILD);
    Ok((time(child)?, time(Command::new("/bin/true"))?))
}

fn long_text() {
    let words = "unknowable words 12345 ".repeat(5 * 1024 * 1024 / 23);
    let no_blank = "x".repeat(5 * 1024 * 1024);
    let accents = "e\u{301}\u{323}".repeat(1024 * 1024);
    for (name, text) in [
        ("words", words),
        ("one word", no_blank),
        ("accents", accents),
    ] {
        let begin = Instant::now();
        black_box(StaticEmbedder::new().embed(&text));
        let embedding = begin.elapsed();
        let begin = Instant::now();
        black_box(StaticEmbedder::new().token_ids(&text));
        let tokens = begin.elapsed();
        println!(
            "5 MiB of {name}: embedded in {:.1} ms, all tokens in {:.1} ms",
            milliseconds(embedding),
            milliseconds(tokens)
        );
    }
}

/// Real embeddings of made-up short texts: their neighbourhoods are as crowded as those of real ones.
fn made_up_texts(count: usize, mut seed: u64) -> impl Iterator<Item = String> {
    let vocabulary: Vec<&str> = include_str!("../data/vocab.txt")
        .lines()
        .filter(|word| word.len() > 2 && word.bytes().all(|byte| byte.is_ascii_lowercase()))
        .collect();
    let mut random = move |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed % below as u64) as usize
    };
    (0..count).map(move |_| {
        let length = 3 + random(10);
        let words = (0..length).map(|_| {
            // Squared, because a few words are common and most are rare.
            let part = random(1 << 20) as f64 / f64::from(1 << 20);
            vocabulary[(part * part * vocabulary.len() as f64) as usize]
        });
        words.collect::<Vec<_>>().join(" ")
    })
}

fn scan() -> Result<(), Box<dyn Error>> {
    let embedder = StaticEmbedder::new();
    let rows: Vec<Embedding> = made_up_texts(VECTORS, 0x9e37_79b9_7f4a_7c15)
        .map(|text| embedder.embed(&text))
        .collect();
    let mut index = VectorIndex::new(embedder.dimension());
    let begin = Instant::now();
    for (id, row) in rows.iter().enumerate() {
        index.insert(id, row)?;
    }
    println!(
        "{VECTORS} vectors indexed in {:.0} ms",
        milliseconds(begin.elapsed())
    );

    let (mut times, mut found) = (Vec::new(), 0);
    let mut brute_times = Vec::new();
    for query in made_up_texts(QUERIES, 0x0123_4567_89ab_cdef).map(|text| embedder.embed(&text)) {
        let begin = Instant::now();
        let hits = black_box(index.search(&query, TOP, -1.0)?);
        times.push(begin.elapsed().as_secs_f64());

        let begin = Instant::now();
        let mut all: Vec<(f32, usize)> = rows
            .iter()
            .enumerate()
            .map(|(id, row)| (row.cosine(&query), id))
            .collect();
        all.select_nth_unstable_by(TOP - 1, |left, right| {
            right.0.total_cmp(&left.0).then(left.1.cmp(&right.1))
        });
        brute_times.push(begin.elapsed().as_secs_f64());
        found += hits
            .iter()
            .filter(|hit| all[..TOP].iter().any(|one| one.1 == hit.id))
            .count();
    }
    println!(
        "top {TOP} of {VECTORS} x {}: p50 {:.2} ms, recall {:.4} (f32 scan: p50 {:.2} ms)",
        embedder.dimension(),
        1e3 * median(times),
        found as f64 / (QUERIES * TOP) as f64,
        1e3 * median(brute_times)
    );
    Ok(())
}

fn words() {
    let texts: Vec<String> = made_up_texts(5_000, 77).collect();
    let begin = Instant::now();
    let index = Bm25Index::build(&texts);
    let built = begin.elapsed();
    let times = made_up_texts(QUERIES, 78).map(|query| {
        let begin = Instant::now();
        black_box(index.search(&query, TOP));
        begin.elapsed().as_secs_f64()
    });
    println!(
        "BM25 of 5000 texts: built in {:.1} ms, search p50 {:.3} ms",
        milliseconds(built),
        1e3 * median(times.collect())
    );
}

fn milliseconds(duration: Duration) -> f64 {
    1e3 * duration.as_secs_f64()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
