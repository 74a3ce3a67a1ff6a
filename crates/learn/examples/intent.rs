//! Scores the classifier on labelled texts: `cargo run --release -p windlass-learn --example intent -- FILE`.
//! Prints the scores, the training time and the time per text. Without a file, it trains the built-in intents.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "an example that prints its findings"
)]

use std::error::Error;
use std::process::ExitCode;
use std::time::Instant;

use windlass_learn::intent::{IntentDefinitions, LabelledTexts};

fn main() -> ExitCode {
    let result = match std::env::args().nth(1) {
        Some(path) => score(&path).map_err(|error| format!("{path}: {error}")),
        None => shipped().map_err(|error| error.to_string()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn score(path: &str) -> Result<(), Box<dyn Error>> {
    let texts = LabelledTexts::read(&std::fs::read_to_string(path)?)?;
    let before = peak_memory();
    let started = Instant::now();
    let classifier = texts.train()?;
    let learned = started.elapsed();
    let mut times = Vec::new();
    let report = texts.evaluate(|text| {
        let started = Instant::now();
        let found = classifier.classify(text);
        times.push(started.elapsed().as_secs_f64() * 1e6);
        found
    });
    times.sort_by(f64::total_cmp);
    println!("{report}");
    println!("out-of-scope examples {}", texts.out_of_scope.len());
    println!("learned in          {:.3} s", learned.as_secs_f64());
    println!("classified in p50   {:.0} us", times[times.len() / 2]);
    println!(
        "classified in p99   {:.0} us",
        times[times.len() * 99 / 100]
    );
    if let Some(peak) = peak_memory() {
        println!("peak memory         {peak}");
        println!("before learning     {}", before.unwrap_or_default());
    }
    Ok(())
}

fn shipped() -> Result<(), Box<dyn Error>> {
    let mut times = Vec::new();
    for turn in 0..50 {
        let started = Instant::now();
        let definitions = IntentDefinitions::shipped()?;
        let classifier = definitions.train()?;
        let learned = started.elapsed().as_secs_f64() * 1e3;
        if turn == 0 {
            println!("read and learned at first   {learned:.2} ms");
            let started = Instant::now();
            let found = classifier.classify("summarize this page for me");
            let took = started.elapsed().as_secs_f64() * 1e6;
            println!(
                "classified at first in      {took:.0} us ({:?})",
                found.intent
            );
        }
        times.push(learned);
    }
    times.sort_by(f64::total_cmp);
    println!("read and learned, least     {:.2} ms", times[0]);
    println!(
        "read and learned, median    {:.2} ms",
        times[times.len() / 2]
    );
    Ok(())
}

/// The peak memory of this process, if the system reports it.
fn peak_memory() -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}
