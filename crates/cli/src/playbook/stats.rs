//! `windlass playbook stats`: counts what was learned, and how often it was followed.

use serde_json::json;

use super::{CommandOutcome, PlaybookSession};
use crate::arguments::PlaybookStats;
use crate::plural::counted;
use crate::terminal::{print_json, print_line};

pub(super) fn run(
    session: &PlaybookSession<'_>,
    command: &PlaybookStats,
) -> anyhow::Result<CommandOutcome> {
    let all = session
        .service
        .playbook_statistics(&session.identity, session.domain)?;
    for statistics in all {
        if command.json {
            print_json(&format!("{}\n", json!(statistics)))?;
            continue;
        }
        let (runs, active) = (statistics.runs, statistics.active);
        print_line(&format!(
            "{} (revision {})",
            statistics.domain, statistics.revision
        ))?;
        print_line(&format!(
            "  runs: {} succeeded, {} failed, {} unclear",
            runs.succeeded, runs.failed, runs.unclear
        ))?;
        print_line(&format!(
            "  in use: {}, {}, {} ({}); retired: {}",
            counted(active.strategies, "strategy", "strategies"),
            counted(active.pitfalls, "pitfall", "pitfalls"),
            counted(active.observations, "observation", "observations"),
            counted(active.tokens, "token", "tokens"),
            statistics.retired,
        ))?;
        let successes = statistics.successes;
        for (what, of) in [
            ("a strategy was followed", successes.followed),
            ("no offered strategy was followed", successes.not_followed),
            ("no strategy was offered", successes.nothing_recalled),
        ] {
            if let Some(turns) = of.avg_iterations {
                print_line(&format!(
                    "  {} where {what}: {turns:.1} turns on average",
                    counted(of.runs, "successful run", "successful runs")
                ))?;
            }
        }
        print_line(&format!("  {}", statistics.file.display()))?;
    }
    Ok(CommandOutcome::Done)
}
