//! Judges the labelled tools of a JSON Lines file by their names and descriptions, prints how well,
//! and measures how long one assessment takes.
//!
//! `cargo run --release -p windlass-core --example risk -- crates/core/tests/data/risk.own.jsonl`
#![allow(clippy::print_stdout)]

use windlass_core::risk::{evaluate, read_rows};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("which file?")?;
    let rows = read_rows(&std::fs::read_to_string(path)?)?;
    print!("{}", evaluate(&rows));
    Ok(())
}
