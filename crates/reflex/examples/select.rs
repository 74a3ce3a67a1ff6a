//! Scores reflex on a file of cases: `cargo run --release -p windlass-reflex --example select -- FILE [even|odd] [verbose] [show]`.
//! `even` and `odd` take only cases whose id ends in such a number, `verbose` prints every failure,
//! `show` every call.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "an example that prints its findings"
)]

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Instant;

use windlass_reflex::evaluate::{Case, MadeCall, evaluate, read_cases};
use windlass_reflex::{Reflex, Settings};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(path) = arguments.first() else {
        eprintln!("usage: select FILE [even|odd] [verbose] [show]");
        return ExitCode::from(2);
    };
    let cases = match std::fs::read_to_string(path) {
        Ok(text) => read_cases(&text).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    let mut cases = match cases {
        Ok(cases) => cases,
        Err(error) => {
            eprintln!("{path}: {error}");
            return ExitCode::FAILURE;
        }
    };
    let has = |word: &str| arguments.iter().any(|argument| argument == word);
    if has("even") || has("odd") {
        cases.retain(|case| number(case) % 2 == usize::from(has("odd")));
    }
    let reflex = Reflex::new(Settings::default());
    let mut times: Vec<f64> = Vec::new();
    let evaluation = evaluate(&cases, |task, tools| {
        let started = Instant::now();
        let choice = reflex.choose(task, tools);
        times.push(started.elapsed().as_secs_f64() * 1e3);
        if let Some(choice) = choice.as_ref().filter(|_| has("show")) {
            println!(
                "{task}\n    {} {} {:.2} fits {} missing {:?}",
                tools[choice.index].name,
                choice.arguments,
                choice.confidence,
                choice.fits,
                choice.missing
            );
        }
        choice.map(|choice| MadeCall {
            name: tools[choice.index].name.to_owned(),
            arguments: choice.arguments,
            confidence: Some(choice.confidence),
        })
    });
    times.sort_by(f64::total_cmp);
    println!("n              {}", evaluation.n);
    println!("tool_accuracy  {:.4}", evaluation.tool_accuracy);
    println!("call_accuracy  {:.4}", evaluation.call_accuracy);
    println!(
        "p50_ms         {:.3}",
        times.get(times.len() / 2).copied().unwrap_or(0.0)
    );
    println!(
        "p95_ms         {:.3}",
        times.get(times.len() * 95 / 100).copied().unwrap_or(0.0)
    );
    println!("max_ms         {:.3}", times.last().copied().unwrap_or(0.0));
    println!(
        "calibration    {:.3} mean distance between stated and right",
        evaluation.calibration_error
    );
    println!("confidence  count  stated  right");
    for row in &evaluation.reliability {
        println!(
            "{:.1}-{:.1}     {:>5}   {:.3}   {:.3}",
            row.from,
            row.from + 0.1,
            row.count,
            row.stated,
            row.right
        );
    }
    let mut classes: BTreeMap<String, usize> = BTreeMap::new();
    for failure in &evaluation.failures {
        *classes.entry(failure.class.to_string()).or_default() += 1;
    }
    for (class, count) in classes {
        println!("{class:24} {count}");
    }
    if has("verbose") {
        for failure in &evaluation.failures {
            let task = cases
                .iter()
                .find(|case| case.id == failure.id)
                .map_or("", |case| case.task.as_str());
            println!(
                "{} [{}] {}\n    {task}",
                failure.id, failure.class, failure.detail
            );
        }
    }
    ExitCode::SUCCESS
}

/// The number a case's id ends in.
fn number(case: &Case) -> usize {
    let digits: String = case
        .id
        .chars()
        .rev()
        .take_while(char::is_ascii_digit)
        .collect();
    digits
        .chars()
        .rev()
        .collect::<String>()
        .parse()
        .unwrap_or(0)
}
