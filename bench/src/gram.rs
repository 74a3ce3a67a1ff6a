//! Parses the same texts with `windlass-gram` and `tree-sitter-gram` in one process and prints the
//! ratio, then the time per byte from 10 KB to 50 MB.

mod machine;

use std::time::{Duration, Instant};

const KILOBYTE: usize = 1_000;
const MEGABYTE: usize = 1_000_000;

/// The least ratio.
const GOAL: f64 = 5.0;

fn main() {
    println!("machine: {}", machine::describe());
    println!("\nthroughput, median of runs\n");
    println!(
        "{:<10} {:>8} {:>16} {:>16} {:>8}",
        "text", "size", "windlass", "tree-sitter", "ratio"
    );
    let mut worst = f64::INFINITY;
    for (name, make) in TEXTS {
        for (size, runs) in [(MEGABYTE, 21), (50 * MEGABYTE, 5)] {
            let text = make(size);
            let ours = median(runs, || {
                let tree = windlass_gram::parse(&text);
                assert!(tree.is_valid());
            });
            let mut parser = tree_sitter::Parser::new();
            parser
                .set_language(&tree_sitter_gram::LANGUAGE.into())
                .expect("the grammar fits the library");
            let theirs = median(runs, || {
                let tree = parser.parse(&text, None).expect("no limit is set");
                assert!(!tree.root_node().has_error());
            });
            let ratio = theirs.as_secs_f64() / ours.as_secs_f64();
            worst = worst.min(ratio);
            println!(
                "{name:<10} {:>5} MB {:>11.1} MB/s {:>11.1} MB/s {ratio:>7.1}x",
                size / MEGABYTE,
                rate(&text, ours),
                rate(&text, theirs),
            );
        }
    }
    println!("\nworst ratio: {worst:.1}x (goal: {GOAL}x)");
    println!("\ntime per byte of windlass, median of runs\n");
    for (name, make) in TEXTS {
        print!("{name:<10}");
        for size in [
            10 * KILOBYTE,
            100 * KILOBYTE,
            MEGABYTE,
            10 * MEGABYTE,
            50 * MEGABYTE,
        ] {
            let text = make(size);
            let runs = (20 * MEGABYTE / size).clamp(5, 501);
            let time = median(runs, || drop(windlass_gram::parse(&text)));
            let nanoseconds = time.as_secs_f64() * 1e9 / text.len() as f64;
            print!("  {:>6} KB: {nanoseconds:.2} ns", size / KILOBYTE);
        }
        println!();
    }
    if worst < GOAL {
        std::process::exit(1);
    }
}

fn median(runs: usize, mut work: impl FnMut()) -> Duration {
    work();
    let mut times: Vec<Duration> = (0..runs)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed()
        })
        .collect();
    times.sort();
    times[times.len() / 2]
}

fn rate(text: &str, time: Duration) -> f64 {
    text.len() as f64 / 1e6 / time.as_secs_f64()
}

type Make = fn(usize) -> String;

const TEXTS: [(&str, Make); 3] = [("agents", agents), ("graph", graph), ("prose", prose)];

fn repeat(size: usize, item: impl Fn(usize) -> String) -> String {
    let mut text = String::with_capacity(size + KILOBYTE);
    let mut index = 0;
    while text.len() < size {
        text.push_str(&item(index));
        index += 1;
    }
    text
}

/// Agent files as people write them.
fn agents(size: usize) -> String {
    repeat(size, |i| {
        format!(
            "// agent number {i}\n[agent_{i}:Agent {{\n  description: \"Answers questions about item {i}\",\n  \
             instruction: \"Use the tools. Be brief.\",\n  model: \"OpenAI/gpt-4o-mini\"\n}} |\n  \
             [look_{i}:Tool {{description: \"Looks up item {i} in the catalogue\", timeout_seconds: 30}} |\n    \
             (key_{i}::String {{default: \"x\"}})==>(limit::Int {{default: {}}})==>(::String)\n  ],\n  \
             (a{i})-[:THEN]->(b{i})\n]\n",
            i % 50
        )
    })
}

/// Dense graph data: many short tokens.
fn graph(size: usize) -> String {
    repeat(size, |i| {
        format!(
            "(p{i}:Person {{age: {}, range: 1..5, tags: [a, \"b\", 3]}})-[:KNOWS {{w: 0.5}}]->(q{i})<--(r{i})\n",
            i % 90
        )
    })
}

/// Long texts: instructions in fences.
fn prose(size: usize) -> String {
    repeat(size, |i| {
        format!(
            "[note_{i}:Note {{text: ```\n{}```, title: \"A rather long title, number {i}, that goes on for a while\"}}]\n",
            "Every call passes the same gate, whatever its source, and one record explains it.\n"
                .repeat(8)
        )
    })
}
