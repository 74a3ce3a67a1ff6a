//! `windlass playbook stats`: how much was learned, and whether it was followed.

use serde_json::json;

use super::{Books, Outcome};
use crate::arguments::PlaybookStats;
use crate::terminal::{put, say};

pub(super) fn run(books: &Books<'_>, command: &PlaybookStats) -> anyhow::Result<Outcome> {
    let all = books
        .service
        .playbook_statistics(&books.identity, books.domain)?;
    for statistics in all {
        if command.json {
            put(&format!("{}\n", json!(statistics)))?;
            continue;
        }
        let (runs, active) = (statistics.runs, statistics.active);
        say(&format!(
            "{} (revision {})",
            statistics.domain, statistics.revision
        ))?;
        say(&format!(
            "  runs: {} succeeded, {} failed, {} unclear",
            runs.succeeded, runs.failed, runs.unclear
        ))?;
        say(&format!(
            "  in use: {} strategies, {} pitfalls, {} observations ({} tokens); retired: {}",
            active.strategies,
            active.pitfalls,
            active.observations,
            active.tokens,
            statistics.retired,
        ))?;
        let successes = statistics.successes;
        for (what, of) in [
            ("a strategy was followed", successes.followed),
            (
                "none of those recalled was followed",
                successes.not_followed,
            ),
            ("nothing was recalled", successes.nothing_recalled),
        ] {
            if let Some(turns) = of.avg_iterations {
                say(&format!(
                    "  {} successes where {what}: {turns:.1} turns on average",
                    of.runs
                ))?;
            }
        }
        say(&format!("  {}", statistics.file.display()))?;
    }
    Ok(Outcome::Done)
}
