//! Measures embedding and searching on this machine, on one thread. Prints texts per second, the time
//! from the start of a process to its first embedding, and the time and recall of a search.
//!
//! `cargo run --release -p windlass-embed --example measure [TEXTS]`
//!
//! TEXTS is a file with one text per line, searched instead of generated ones; the last 200 are the queries.

#![allow(clippy::print_stdout)]

use std::error::Error;
use std::fmt;
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
    let texts: Vec<String> = match std::env::args_os().nth(1) {
        Some(path) => std::fs::read_to_string(path)?
            .lines()
            .map(str::to_owned)
            .collect(),
        None => generated_texts(VECTORS + QUERIES, 0x9e37_79b9_7f4a_7c15).collect(),
    };
    println!("machine: {}", machine());
    println!(
        "first embedding, in process: {:.3} ms",
        milliseconds(first_embedding())
    );
    println!("short texts embedded: {:.0} per second", texts_per_second());
    let (whole, bare) = start_to_first_embedding()?;
    println!(
        "process start to exit with one embedding: p50 {:.2} ms ({:.2} ms for /bin/true)",
        milliseconds(whole),
        milliseconds(bare)
    );
    long_text();
    scan(&texts)?;
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

/// To be called before anything else is embedded: the pages of the data are not in memory yet.
fn first_embedding() -> Duration {
    let begin = Instant::now();
    black_box(StaticEmbedder::new().embed(black_box(
        "a text that was not embedded before, zebra quokka",
    )));
    begin.elapsed()
}

fn texts_per_second() -> f64 {
    let embedder = StaticEmbedder::new();
    const ROUNDS: usize = 500;
    let times = Times::of(&[(); 51], |()| {
        for text in [SHORT_TEXTS; ROUNDS].as_flattened() {
            black_box(embedder.embed(black_box(text)));
        }
    });
    (ROUNDS * SHORT_TEXTS.len()) as f64 / times.median
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

/// Short texts of vocabulary words. Their embeddings are as close together as those of real texts.
fn generated_texts(count: usize, mut seed: u64) -> impl Iterator<Item = String> {
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

fn scan(texts: &[String]) -> Result<(), Box<dyn Error>> {
    let (texts, queries) = texts.split_at(texts.len().saturating_sub(QUERIES));
    if texts.len() < TOP {
        return Err("too few texts to search".into());
    }
    let embedder = StaticEmbedder::new();
    let rows: Vec<Embedding> = texts.iter().map(|text| embedder.embed(text)).collect();
    let mut index = VectorIndex::new(embedder.dimension());
    let begin = Instant::now();
    for (id, row) in rows.iter().enumerate() {
        index.insert(id, row)?;
    }
    println!(
        "{} vectors indexed in {:.0} ms",
        rows.len(),
        milliseconds(begin.elapsed())
    );

    let queries: Vec<Embedding> = queries.iter().map(|text| embedder.embed(text)).collect();
    let mut answers = Vec::new();
    let scanned = Times::of(&queries, |query| {
        answers.push(index.search(query, TOP, -1.0));
    });
    let mut truths = Vec::new();
    let compared = Times::of(&queries, |query| {
        let mut all: Vec<(f32, usize)> = rows
            .iter()
            .enumerate()
            .map(|(id, row)| (row.cosine(query), id))
            .collect();
        all.select_nth_unstable_by(TOP - 1, |left, right| {
            right.0.total_cmp(&left.0).then(left.1.cmp(&right.1))
        });
        all.truncate(TOP);
        truths.push(all);
    });
    let mut found = 0;
    for (answer, truth) in answers.into_iter().zip(truths) {
        let is_true = |id: usize| truth.iter().any(|one| one.1 == id);
        found += answer?.iter().filter(|hit| is_true(hit.id)).count();
    }
    println!(
        "top {TOP} of {} x {}: {scanned}",
        rows.len(),
        embedder.dimension()
    );
    println!(
        "  recall {:.4}",
        found as f64 / (queries.len() * TOP) as f64
    );
    println!("  all in f32 instead: {compared}");
    Ok(())
}

/// The times of a search. On a busy machine wall time includes other processes; processor time does not.
struct Times {
    median: f64,
    least: f64,
    on_processor: Option<f64>,
}

impl Times {
    fn of<T>(inputs: &[T], mut work: impl FnMut(&T)) -> Self {
        let before = time_on_processor();
        let mut times: Vec<f64> = inputs
            .iter()
            .map(|input| {
                let begin = Instant::now();
                work(input);
                begin.elapsed().as_secs_f64()
            })
            .collect();
        let after = time_on_processor();
        times.sort_by(f64::total_cmp);
        let total = before
            .zip(after)
            .map(|(before, after)| after.saturating_sub(before));
        Self {
            median: times[times.len() / 2],
            least: times[0],
            on_processor: total.map(|total| total.as_secs_f64() / inputs.len() as f64),
        }
    }
}

impl fmt::Display for Times {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "p50 {:.2} ms, least {:.2} ms",
            1e3 * self.median,
            1e3 * self.least
        )?;
        match self.on_processor {
            Some(mean) => write!(formatter, ", mean on the processor {:.2} ms", 1e3 * mean),
            None => Ok(()),
        }
    }
}

/// The processor time of the first thread, if the system reports it.
fn time_on_processor() -> Option<Duration> {
    let statistics = std::fs::read_to_string("/proc/self/schedstat").ok()?;
    Some(Duration::from_nanos(
        statistics.split(' ').next()?.parse().ok()?,
    ))
}

fn words() {
    let texts: Vec<String> = generated_texts(5_000, 77).collect();
    let begin = Instant::now();
    let index = Bm25Index::build(&texts);
    let built = begin.elapsed();
    let queries: Vec<String> = generated_texts(QUERIES, 78).collect();
    let asked = Times::of(&queries, |query| {
        black_box(index.search(query, TOP));
    });
    println!(
        "BM25 of 5000 texts: built in {:.1} ms, search p50 {:.3} ms",
        milliseconds(built),
        1e3 * asked.median
    );
}

fn milliseconds(duration: Duration) -> f64 {
    1e3 * duration.as_secs_f64()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
