//! `windlass playbook diff`: what was learned or changed between two revisions.

use serde_json::json;
use windlass_learn::playbook::{KeptStrategy, StrategyStatus};
use windlass_service::strategy_to_json;

use super::{CommandOutcome, PlaybookSession};
use crate::arguments::PlaybookDiff;
use crate::table::one_line;
use crate::terminal::{print_json, print_line, visible_line};

pub(super) fn diff(
    session: &PlaybookSession<'_>,
    command: &PlaybookDiff,
) -> anyhow::Result<CommandOutcome> {
    let difference = session.service.playbook_difference(
        &session.identity,
        session.domain,
        command.from,
        command.to,
    )?;
    let domain = &difference.domain;
    if command.json {
        for changed in &difference.strategies {
            let object = |kept: &Option<KeptStrategy>| {
                kept.as_ref().map(|kept| strategy_to_json(domain, kept))
            };
            let (before, after) = (object(&changed.before), object(&changed.after));
            print_json(&format!("{}\n", json!({"before": before, "after": after})))?;
        }
        return Ok(CommandOutcome::Done);
    }
    let (from, to) = (difference.from, difference.to);
    print_line(&format!("{domain}: from revision {from} to {to}"))?;
    let line = |mark: &str, kept: &KeptStrategy| {
        let content = one_line(kept.strategy.content.as_str(), 100);
        print_line(&format!("{mark} {} {content}", kept.id()))
    };
    for changed in &difference.strategies {
        match (&changed.before, &changed.after) {
            (None, Some(new)) => line("+", new)?,
            (Some(old), None) => line("-", old)?,
            (Some(old), Some(new)) => {
                line("~", new)?;
                for line in differences(old, new) {
                    print_line(&format!("    {}", visible_line(&line)))?;
                }
            }
            (None, None) => {}
        }
    }
    if difference.strategies.is_empty() {
        print_line("nothing changed")?;
    }
    Ok(CommandOutcome::Done)
}

/// Describes what changed in a strategy, one line per change.
fn differences(old: &KeptStrategy, new: &KeptStrategy) -> Vec<String> {
    let mut lines = Vec::new();
    let mut note = |what: &str, one: String, two: String| {
        if one != two {
            lines.push(format!("{what}: {one} -> {two}"));
        }
    };
    let count = |number: u64| number.to_string();
    note(
        "helpful",
        count(old.tally.helpful()),
        count(new.tally.helpful()),
    );
    note(
        "harmful",
        count(old.tally.harmful()),
        count(new.tally.harmful()),
    );
    note(
        "used",
        count(old.tally.recalled()),
        count(new.tally.recalled()),
    );
    let standing = |kept: &KeptStrategy| match &kept.status {
        StrategyStatus::Active => "in use".to_owned(),
        StrategyStatus::Disabled => "disabled".to_owned(),
        StrategyStatus::Retired(why) => format!("retired, {why}"),
    };
    note("status", standing(old), standing(new));
    let (one, two) = (&old.strategy, &new.strategy);
    note("pinned", one.pinned.to_string(), two.pinned.to_string());
    note("content", one.content.to_string(), two.content.to_string());
    note("section", one.section.to_string(), two.section.to_string());
    note("tags", one.tags.join(", "), two.tags.join(", "));
    let examples = |kept: &KeptStrategy| kept.strategy.examples.len().to_string();
    note("examples", examples(old), examples(new));
    lines
}
