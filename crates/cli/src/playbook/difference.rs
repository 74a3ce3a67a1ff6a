//! `windlass playbook diff`: what was learned or changed between two revisions.

use serde_json::json;
use windlass_learn::playbook::{KeptStrategy, Playbook, SemanticCurator, Standing};

use super::{Books, Outcome, as_object};
use crate::arguments::PlaybookDiff;
use crate::table::one_line;
use crate::terminal::{put, say};

pub(super) fn diff(books: &Books, command: &PlaybookDiff) -> anyhow::Result<Outcome> {
    let domain = books.one_domain()?;
    let kept = books.read(&domain)?;
    let present = kept.entries.len();
    let to = command.to.unwrap_or(present);
    let from = command.from.unwrap_or_else(|| to.saturating_sub(1));
    anyhow::ensure!(
        from <= to && to <= present,
        "the playbook of `{domain}` has revisions 0 to {present}, and the earlier one comes first"
    );
    let curator = SemanticCurator::new(books.curation);
    let earlier = curator.fold(&domain, &kept.entries[..from]);
    let later = curator.fold(&domain, &kept.entries[..to]);
    if !command.json {
        say(&format!("{domain}: from revision {from} to {to}"))?;
    }
    let of = |playbook: &Playbook, kept: &KeptStrategy| -> Option<KeptStrategy> {
        let mut all = playbook.strategies.iter();
        all.find(|other| other.id() == kept.id()).cloned()
    };
    let mut changed = 0;
    for new in &later.strategies {
        let old = of(&earlier, new);
        if old.as_ref() == Some(new) {
            continue;
        }
        changed += 1;
        if command.json {
            let old = old.as_ref().map(|old| as_object(&domain, old));
            put(&format!(
                "{}\n",
                json!({"before": old, "after": as_object(&domain, new)})
            ))?;
            continue;
        }
        let content = one_line(new.strategy.content.as_str(), 100);
        let Some(old) = old else {
            say(&format!("+ {} {content}", new.id()))?;
            continue;
        };
        say(&format!("~ {} {content}", new.id()))?;
        for line in differences(&old, new) {
            say(&format!("    {line}"))?;
        }
    }
    for old in &earlier.strategies {
        if of(&later, old).is_some() {
            continue;
        }
        changed += 1;
        match command.json {
            true => {
                let before = as_object(&domain, old);
                put(&format!("{}\n", json!({"before": before, "after": null})))?;
            }
            false => {
                let content = one_line(old.strategy.content.as_str(), 100);
                say(&format!("- {} {content}", old.id()))?;
            }
        }
    }
    if changed == 0 && !command.json {
        say("nothing changed")?;
    }
    Ok(Outcome::Done)
}

/// What changed in a strategy, a line each.
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
        "recalled",
        count(old.tally.recalled()),
        count(new.tally.recalled()),
    );
    let standing = |kept: &KeptStrategy| match &kept.standing {
        Standing::Active => "in use".to_owned(),
        Standing::Disabled => "switched off".to_owned(),
        Standing::Retired(why) => format!("retired, {why}"),
    };
    note("standing", standing(old), standing(new));
    let (one, two) = (&old.strategy, &new.strategy);
    note("pinned", one.pinned.to_string(), two.pinned.to_string());
    note("content", one.content.to_string(), two.content.to_string());
    note("section", one.section.to_string(), two.section.to_string());
    note("tags", one.tags.join(", "), two.tags.join(", "));
    let examples = |kept: &KeptStrategy| kept.strategy.examples.len().to_string();
    note("examples", examples(old), examples(new));
    lines
}
