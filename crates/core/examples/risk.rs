//! Judges the labelled tools of a JSON Lines file by name, description and schema, prints how well,
//! and measures how long an assessment takes.
//!
//! `cargo run --release -p windlass-core --example risk -- crates/core/tests/data/risk.own.jsonl`

#![allow(clippy::print_stdout)]

use std::hint::black_box;
use std::time::Instant;

use serde_json::{Map, Value, json};
use windlass_core::risk::{KnownTool, ToolRisk, evaluate, read_rows};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("which file?")?;
    let rows = read_rows(&std::fs::read_to_string(path)?)?;
    println!("{}", evaluate(&rows));

    let known = |name| KnownTool {
        name,
        description: "A tool with an ordinary description of what it does, in a sentence or two.",
        ..KnownTool::default()
    };
    println!("{:44} median of 2000", "one assessment");
    measure("a tool before any call", || {
        ToolRisk::of(&known("get_rows"))
    });
    for (name, arguments) in [
        ("read_file", json!({"path": "/data/a.txt"})),
        (
            "send_email",
            json!({"to": ["a@example.com"], "subject": "x", "body": "y".repeat(2000)}),
        ),
        (
            "get_webpage",
            json!({"url": "https://example.com/a?page=2&q=rust+http"}),
        ),
        (
            "query",
            json!({"sql": "SELECT id, name FROM users WHERE id = 1 ORDER BY name LIMIT 10"}),
        ),
        (
            "check_host",
            json!({"command": "cat a.txt | grep -v foo | sort | head -n 3"}),
        ),
    ] {
        let tool = ToolRisk::of(&known(name));
        let arguments: Map<String, Value> = serde_json::from_value(arguments)?;
        let what = format!("a call of {name}");
        measure(&what, || tool.with_arguments(&arguments));
    }
    Ok(())
}

fn measure<R>(what: &str, mut run: impl FnMut() -> R) {
    let mut times: Vec<_> = (0..2000)
        .map(|_| {
            let start = Instant::now();
            black_box(run());
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    println!("{what:44} {:?}", times[times.len() / 2]);
}
