//! `windlass playbook stats`: how much was learned, and whether it was followed.

use serde_json::json;
use windlass_learn::playbook::{Evidence, RunEvidence, Standing, Verdict};
use windlass_spec::StrategySection;

use super::{Books, Outcome};
use crate::arguments::PlaybookStats;
use crate::terminal::{put, say};

pub(super) fn run(books: &Books, command: &PlaybookStats) -> anyhow::Result<Outcome> {
    for domain in books.domains()? {
        let kept = books.read(&domain)?;
        let playbook = &kept.playbook;
        let runs = || {
            kept.entries.iter().filter_map(|entry| match entry {
                Evidence::Run(run) => Some(&**run),
                _ => None,
            })
        };
        let ended = |verdict: Verdict| runs().filter(|run| run.verdict == verdict).count();
        let of = |section: StrategySection| {
            let active = playbook.active();
            active
                .filter(|kept| kept.strategy.section == section)
                .count()
        };
        let retired = playbook.strategies.iter();
        let retired = retired.filter(|kept| matches!(kept.standing, Standing::Retired(_)));
        let retired = retired.count();
        let with = |is_wanted: fn(&RunEvidence) -> bool| {
            let wanted = runs().filter(|run| run.verdict == Verdict::Succeeded && is_wanted(run));
            let turns: Vec<f64> = wanted.map(|run| f64::from(run.iterations)).collect();
            let count = turns.len();
            (
                count,
                (count > 0).then(|| turns.iter().sum::<f64>() / count as f64),
            )
        };
        let followed = with(|run| run.recalled.iter().any(|voted| voted.followed));
        let ignored = with(|run| {
            !run.recalled.is_empty() && !run.recalled.iter().any(|voted| voted.followed)
        });
        let without = with(|run| run.recalled.is_empty());
        let tokens: usize = playbook
            .active()
            .map(|kept| kept.strategy.content.as_str().len().div_ceil(4))
            .sum();
        if command.json {
            let told = json!({
                "domain": domain,
                "revision": playbook.revision,
                "runs": {
                    "succeeded": ended(Verdict::Succeeded),
                    "failed": ended(Verdict::Failed),
                    "unclear": ended(Verdict::Unclear),
                },
                "active": {
                    "strategies": of(StrategySection::Strategies),
                    "pitfalls": of(StrategySection::Pitfalls),
                    "observations": of(StrategySection::Observations),
                    "tokens": tokens,
                },
                "retired": retired,
                "successes": {
                    "followed": {"runs": followed.0, "avg_iterations": followed.1},
                    "not_followed": {"runs": ignored.0, "avg_iterations": ignored.1},
                    "nothing_recalled": {"runs": without.0, "avg_iterations": without.1},
                },
            });
            put(&format!("{told}\n"))?;
            continue;
        }
        say(&format!("{domain} (revision {})", playbook.revision))?;
        say(&format!(
            "  runs: {} succeeded, {} failed, {} unclear",
            ended(Verdict::Succeeded),
            ended(Verdict::Failed),
            ended(Verdict::Unclear)
        ))?;
        say(&format!(
            "  in use: {} strategies, {} pitfalls, {} observations ({tokens} tokens); retired: {retired}",
            of(StrategySection::Strategies),
            of(StrategySection::Pitfalls),
            of(StrategySection::Observations),
        ))?;
        for (what, (count, turns)) in [
            ("a strategy was followed", followed),
            ("none of those recalled was followed", ignored),
            ("nothing was recalled", without),
        ] {
            if let Some(turns) = turns {
                say(&format!(
                    "  {count} successes where {what}: {turns:.1} turns on average"
                ))?;
            }
        }
        say(&format!("  {}", books.playbooks.file(&domain).display()))?;
    }
    Ok(Outcome::Done)
}
