//! Scores the classifier on folds of the examples alone, with fewer classes and fewer examples than the
//! file has: `cargo run --release -p windlass-learn --example cross_validate -- FILE`. Texts that are not of
//! the split `train` are not looked at, so that numbers can be chosen by this and still be tried on them.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "an example that prints its findings"
)]

use std::collections::HashMap;
use std::error::Error;
use std::process::ExitCode;

use serde::Deserialize;
use windlass_learn::intent::{Class, LabelledText, LabelledTexts, OUT_OF_SCOPE, Report};

const FOLDS: u64 = 5;

#[derive(Deserialize)]
struct Row {
    text: String,
    intent: String,
    split: String,
}

/// How a file is cut down.
struct Cut {
    classes: usize,
    examples: usize,
    /// Whether one class in four is taken away and its texts are what is out of scope.
    neighbours: bool,
    /// Whether texts that are out of scope are among the examples.
    strangers: bool,
}

const CUTS: [(usize, usize, bool); 11] = [
    (150, 80, false),
    (50, 80, false),
    (10, 80, false),
    (30, 30, false),
    (4, 25, false),
    (150, 10, false),
    (20, 10, false),
    (8, 5, false),
    (150, 80, true),
    (20, 25, true),
    (8, 10, true),
];

fn main() -> ExitCode {
    let result = match std::env::args().nth(1) {
        Some(path) => validate(&path).map_err(|error| format!("{path}: {error}")),
        None => Err("usage: cross_validate FILE".to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn validate(path: &str) -> Result<(), Box<dyn Error>> {
    let text = std::fs::read_to_string(path)?;
    let mut rows = Vec::new();
    for line in text.lines() {
        let row: Row = serde_json::from_str(line)?;
        if row.split == "train" {
            rows.push(row);
        }
    }
    println!(
        "classes examples neighbours strangers  accuracy  auroc   accepted  refused  calibration"
    );
    let with_both = [false, true].map(|strangers| CUTS.map(|cut| (cut, strangers)));
    for ((classes, examples, neighbours), strangers) in with_both.into_iter().flatten() {
        let cut = Cut {
            classes,
            examples,
            neighbours,
            strangers,
        };
        let mut reports = Vec::new();
        for fold in 0..FOLDS {
            let texts = cut_down(&rows, &cut, fold);
            let classifier = texts.train()?;
            reports.push(texts.evaluate(|text| classifier.classify(text)));
        }
        let mean = |figure: fn(&Report) -> Option<f64>| {
            reports.iter().filter_map(figure).sum::<f64>() / reports.len() as f64
        };
        println!(
            "{classes:7} {examples:8} {neighbours:10} {strangers:9}  {:.4}    {:.4} {:.4}    {:.4}   {:.4}",
            mean(|report| report.accuracy),
            mean(|report| report.oos_auroc),
            mean(|report| report.accepted),
            mean(|report| report.oos_refused),
            mean(|report| report.calibration_error),
        );
    }
    Ok(())
}

/// The examples of four folds for some of the classes, and the fifth fold to be scored, with texts that
/// are out of scope.
fn cut_down(rows: &[Row], cut: &Cut, fold: u64) -> LabelledTexts {
    let mut names: Vec<&str> = rows.iter().map(|row| row.intent.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|name| *name != OUT_OF_SCOPE);
    // Another choice of classes in every fold; 37 has no factor in common with most counts.
    let place = |name: &str| {
        let place = names.binary_search(&name).ok()?;
        Some((place * 37 + fold as usize * 11) % names.len())
    };
    let mut classes: HashMap<&str, Vec<String>> = HashMap::new();
    let (mut scored, mut strangers) = (Vec::new(), Vec::new());
    for (number, row) in rows.iter().enumerate() {
        let place = place(&row.intent);
        let is_class = place.is_some_and(|place| place < cut.classes);
        let is_taken = cut.neighbours && place.is_some_and(|place| place % 4 == 0);
        let in_fold = hash(&row.text) % FOLDS == fold;
        if is_class && !is_taken && !in_fold {
            let examples = classes.entry(&row.intent).or_default();
            if examples.len() < cut.examples {
                examples.push(row.text.clone());
            }
        }
        if row.intent == OUT_OF_SCOPE && !in_fold && cut.strangers {
            strangers.push(row.text.clone());
        }
        let out_of_scope = if cut.neighbours {
            is_class && is_taken && in_fold
        } else {
            row.intent == OUT_OF_SCOPE && in_fold || (!is_class && number % 97 == 0)
        };
        if out_of_scope || is_class && !is_taken && in_fold {
            scored.push(LabelledText {
                text: row.text.clone(),
                intent: (!out_of_scope).then(|| row.intent.clone()),
            });
        }
    }
    let mut classes: Vec<Class> = classes
        .into_iter()
        .map(|(name, examples)| Class {
            name: name.to_owned(),
            examples,
        })
        .collect();
    classes.sort_by(|left, right| left.name.cmp(&right.name));
    LabelledTexts {
        classes,
        scored,
        out_of_scope: strangers,
    }
}

/// FNV-1a without its low bits, which are the least mixed.
fn hash(text: &str) -> u64 {
    let step = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step) >> 20
}
