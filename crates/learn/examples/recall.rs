//! Measures the time and the accuracy of recalling strategies, compared with a full scan.
//! `cargo xtask bench registry` runs it, among others.

#![allow(
    clippy::print_stdout,
    reason = "an example that prints its measurements"
)]

use std::time::Instant;

use windlass_learn::playbook::{PlaybookIndex, RecallQuery, StrategyMatch};
use windlass_spec::{
    NonEmptyText, StrategyLine, StrategyLines, StrategySection, ToolCallingStrategy, ToolName,
};

const QUERIES: usize = 500;

const VERBS: [&str; 16] = [
    "find",
    "book",
    "cancel",
    "refund",
    "send",
    "list",
    "compare",
    "update",
    "delete",
    "create",
    "schedule",
    "translate",
    "summarise",
    "download",
    "approve",
    "count",
];
const THINGS: [&str; 24] = [
    "the order",
    "a flight",
    "the invoice",
    "my meeting",
    "the report",
    "a hotel room",
    "the ticket",
    "the customer",
    "a payment",
    "the contract",
    "the backup",
    "a reminder",
    "the recipe",
    "the database",
    "an e-mail",
    "the survey",
    "the photo album",
    "a parcel",
    "the timetable",
    "the warranty",
    "the server log",
    "a loan",
    "the prescription",
    "the playlist",
];
const WAYS: [&str; 16] = [
    "for Ann in Berlin",
    "before Friday",
    "with the newest price",
    "in French",
    "for the whole team",
    "without telling anybody",
    "if it is below 100 euros",
    "from last quarter",
    "on the second floor",
    "again",
    "for three people",
    "by telephone",
    "at the airport",
    "for the tax office",
    "under the new rules",
    "for next summer",
];

/// A task, different for each number.
fn task(number: usize) -> String {
    let mut left = number.wrapping_mul(2_654_435_761) % 1_000_003;
    let mut next = |count: usize| {
        let drawn = left % count;
        left = left / count + number;
        drawn
    };
    let (verb, thing) = (VERBS[next(VERBS.len())], THINGS[next(THINGS.len())]);
    let (way, other) = (WAYS[next(WAYS.len())], THINGS[next(THINGS.len())]);
    format!(
        "{verb} {thing} {way}, then {} {other} {number}",
        VERBS[next(VERBS.len())]
    )
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for count in [1_000, 10_000, 100_000] {
        let mut lines = StrategyLines::default();
        for number in 0..count {
            let sequence =
                [number % 97, number % 89, number % 83].map(|tool| format!("tool_{tool}"));
            let sequence = sequence
                .map(ToolName::new)
                .into_iter()
                .collect::<Result<Vec<_>, _>>()?;
            let content = format!("For tasks like \"{}\": {}.", task(number), sequence[0]);
            let mut strategy =
                ToolCallingStrategy::new(StrategySection::Strategies, NonEmptyText::new(content)?)
                    .with_sequence(sequence)?;
            strategy.helpful_count = (number % 7) as u64 + 1;
            strategy.example_task = Some(NonEmptyText::new(task(number))?);
            lines.strategies.push(StrategyLine {
                line: number + 1,
                strategy,
            });
        }
        let begun = Instant::now();
        let index = PlaybookIndex::from_lines(&lines);
        let built = begun.elapsed();
        let tools: Vec<String> = (0..90).map(|tool| format!("tool_{tool}")).collect();
        let tools: Vec<&str> = tools.iter().map(String::as_str).collect();
        let asked: Vec<String> = (0..QUERIES)
            .map(|query| task(query * 7 + 1_000_000))
            .collect();
        let mut took = Vec::new();
        let found: Vec<Vec<StrategyMatch>> = asked
            .iter()
            .map(|asked| {
                let query = RecallQuery {
                    tools: Some(tools.clone()),
                    ..RecallQuery::new(asked)
                };
                let begun = Instant::now();
                let found = index.recall(&query);
                took.push(begun.elapsed().as_secs_f64() * 1e3);
                found
            })
            .collect();
        let (mut hits, mut wanted) = (0, 0);
        for (asked, found) in asked.iter().zip(found) {
            let query = RecallQuery {
                tools: Some(tools.clone()),
                ..RecallQuery::new(asked)
            };
            let best = index.recall_comparing_all(&query);
            wanted += best.len();
            let pairs = found.iter().zip(&best);
            hits += pairs
                .filter(|(found, best)| found.score >= best.score - 1e-9)
                .count();
        }
        took.sort_by(f64::total_cmp);
        println!(
            "{count} strategies: recalled in {:.3} ms (median), {:.3} ms (99th percentile); {:.3} of what comparing all would recall; index built in {} ms",
            took[QUERIES / 2],
            took[QUERIES * 99 / 100],
            f64::from(hits as u32) / f64::from(wanted.max(1) as u32),
            built.as_millis(),
        );
    }
    Ok(())
}
