//! Cross-validates the classifier on the examples of a file, with subsets of its classes and examples:
//! `cargo run --release -p windlass-learn --example cross_validate -- FILE`. Only texts of the split `train` are
//! used, so that the other texts remain a test set for parameters that are chosen with this.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "an example that prints its findings"
)]

use std::collections::HashMap;
use std::error::Error;
use std::process::ExitCode;

use serde::Deserialize;
use windlass_learn::intent::{
    IntentClass, IntentReport, LabelledText, LabelledTexts, OUT_OF_SCOPE,
};

const FOLDS: u64 = 5;

#[derive(Deserialize)]
struct Row {
    text: String,
    intent: String,
    split: String,
}

/// A subset of a file.
struct Subset {
    classes: usize,
    examples: usize,
    /// Whether one class in four is removed and its texts are the out-of-scope texts.
    neighbours: bool,
    /// Whether out-of-scope texts are among the examples.
    out_of_scope: bool,
}

const SUBSETS: [(usize, usize, bool); 11] = [
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
        "classes examples neighbours out_of_scope  accuracy  auroc   accepted  refused  calibration"
    );
    let with_both = [false, true].map(|out_of_scope| SUBSETS.map(|subset| (subset, out_of_scope)));
    for ((classes, examples, neighbours), out_of_scope) in with_both.into_iter().flatten() {
        let subset = Subset {
            classes,
            examples,
            neighbours,
            out_of_scope,
        };
        let mut reports = Vec::new();
        for fold in 0..FOLDS {
            let texts = select_subset(&rows, &subset, fold);
            let classifier = texts.train()?;
            reports.push(texts.evaluate(|text| classifier.classify(text)));
        }
        let mean = |figure: fn(&IntentReport) -> Option<f64>| {
            reports.iter().filter_map(figure).sum::<f64>() / reports.len() as f64
        };
        println!(
            "{classes:7} {examples:8} {neighbours:10} {out_of_scope:12}  {:.4}    {:.4} {:.4}    {:.4}   {:.4}",
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
fn select_subset(rows: &[Row], subset: &Subset, fold: u64) -> LabelledTexts {
    let mut names: Vec<&str> = rows.iter().map(|row| row.intent.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|name| *name != OUT_OF_SCOPE);
    // Other classes in every fold; 37 is coprime to most counts.
    let place = |name: &str| {
        let place = names.binary_search(&name).ok()?;
        Some((place * 37 + fold as usize * 11) % names.len())
    };
    let mut classes: HashMap<&str, Vec<String>> = HashMap::new();
    let (mut scored, mut out_of_scope) = (Vec::new(), Vec::new());
    for (number, row) in rows.iter().enumerate() {
        let place = place(&row.intent);
        let is_class = place.is_some_and(|place| place < subset.classes);
        let is_taken = subset.neighbours && place.is_some_and(|place| place % 4 == 0);
        let in_fold = hash(&row.text) % FOLDS == fold;
        if is_class && !is_taken && !in_fold {
            let examples = classes.entry(&row.intent).or_default();
            if examples.len() < subset.examples {
                examples.push(row.text.clone());
            }
        }
        if row.intent == OUT_OF_SCOPE && !in_fold && subset.out_of_scope {
            out_of_scope.push(row.text.clone());
        }
        let is_out_of_scope = if subset.neighbours {
            is_class && is_taken && in_fold
        } else {
            row.intent == OUT_OF_SCOPE && in_fold || (!is_class && number % 97 == 0)
        };
        if is_out_of_scope || is_class && !is_taken && in_fold {
            scored.push(LabelledText {
                text: row.text.clone(),
                intent: (!is_out_of_scope).then(|| row.intent.clone()),
            });
        }
    }
    let mut classes: Vec<IntentClass> = classes
        .into_iter()
        .map(|(name, examples)| IntentClass {
            name: name.to_owned(),
            examples,
        })
        .collect();
    classes.sort_by(|left, right| left.name.cmp(&right.name));
    LabelledTexts {
        classes,
        scored,
        out_of_scope,
    }
}

/// FNV-1a without its low bits, which are the least mixed.
fn hash(text: &str) -> u64 {
    let step = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step) >> 20
}
