//! What people change in a playbook: each change is an entry of its log, so it can be taken back.

use std::io::Read as _;

use anyhow::Context as _;
use windlass_learn::playbook::{Evidence, Standing, id_of};
use windlass_runtime::now;
use windlass_spec::{StrategyLine, read_strategies};

use super::{Books, Outcome};
use crate::arguments::{OneStrategy, PlaybookExport, PlaybookImport, PlaybookRevert};
use crate::report::Reporter;
use crate::schema::read_file;
use crate::terminal::{complain, put, say};

pub(super) fn pin(books: &Books, one: &OneStrategy) -> anyhow::Result<Outcome> {
    change(books, one, |strategy, at| Evidence::Pinned {
        strategy,
        pinned: !one.undo,
        at,
    })?;
    Ok(Outcome::Done)
}

pub(super) fn disable(books: &Books, one: &OneStrategy) -> anyhow::Result<Outcome> {
    change(books, one, |strategy, at| Evidence::Disabled {
        strategy,
        disabled: !one.undo,
        at,
    })?;
    Ok(Outcome::Done)
}

fn change(
    books: &Books,
    one: &OneStrategy,
    entry: impl FnOnce(windlass_spec::StrategyId, windlass_spec::Timestamp) -> Evidence,
) -> anyhow::Result<()> {
    let (domain, kept) = books.find(&one.strategy)?;
    let at = now();
    let entry = entry(kept.id().clone(), at);
    let after = books
        .playbooks
        .update(&domain, books.curation, at, |_, _| vec![entry])?;
    let after = &after.playbook;
    let found = after
        .strategies
        .iter()
        .find(|known| known.id() == kept.id());
    let standing = match found.map(|found| (&found.standing, found.strategy.pinned)) {
        Some((Standing::Active, true)) => "in use, pinned".to_owned(),
        Some((Standing::Active, false)) => "in use".to_owned(),
        Some((Standing::Disabled, _)) => "switched off".to_owned(),
        Some((Standing::Retired(why), _)) => format!("retired: {why}"),
        None => "gone".to_owned(),
    };
    say(&format!(
        "{}: {standing} (revision {})",
        kept.id(),
        after.revision
    ))?;
    Ok(())
}

pub(super) fn revert(books: &Books, command: &PlaybookRevert) -> anyhow::Result<Outcome> {
    let domain = books.one_domain()?;
    let before = books.read(&domain)?;
    let present = before.playbook.revision;
    anyhow::ensure!(
        command.revision <= present,
        "the playbook of `{domain}` is at revision {present}\nhint: `windlass playbook diff` tells what changed"
    );
    let at = now();
    let to = command.revision;
    let after = books
        .playbooks
        .update(&domain, books.curation, at, |_, _| {
            vec![Evidence::Reverted { to, at }]
        })?;
    say(&format!(
        "{domain}: as at revision {to}, {} strategies in use; `windlass playbook revert {present}` takes this back",
        after.playbook.active().count()
    ))?;
    Ok(Outcome::Done)
}

pub(super) fn import(
    books: &Books,
    command: &PlaybookImport,
    reporter: &Reporter,
) -> anyhow::Result<Outcome> {
    let domain = books.one_domain()?;
    let shown = command.file.display().to_string();
    let mut text = String::new();
    if shown == "-" {
        std::io::stdin()
            .read_to_string(&mut text)
            .context("standard input cannot be read")?;
    } else {
        text = std::fs::read_to_string(&command.file)
            .with_context(|| format!("`{shown}` cannot be read"))?;
    }
    let read = read_strategies(&text);
    let mut refused = read.errors.len();
    for error in &read.errors {
        complain(&format!("{shown}:{}: {}", error.line, error.reason))?;
    }
    let mut taken: Vec<StrategyLine> = read.strategies;
    if let Some(agent) = &command.agent {
        let Some(agents) = read_file(agent, reporter)? else {
            return Ok(Outcome::Failed);
        };
        let tools: Vec<&str> = agents
            .tools()
            .iter()
            .map(|tool| tool.name().as_str())
            .collect();
        let mut fitting = Vec::new();
        for line in taken {
            match line.strategy.check_tools(tools.iter().copied()) {
                Ok(()) => fitting.push(line),
                Err(missing) => {
                    refused += 1;
                    for missing in missing {
                        complain(&format!("{shown}:{}: {missing}", line.line))?;
                    }
                }
            }
        }
        taken = fitting;
    }
    for line in &taken {
        if let Some(warning) = line.strategy.warning() {
            complain(&format!("warning: {shown}:{}: {warning}", line.line))?;
        }
    }
    let at = now();
    let count = taken.len();
    let entries = taken.into_iter().map(|line| {
        let mut strategy = line.strategy;
        strategy.id = Some(id_of(&strategy));
        Evidence::Added {
            strategy: Box::new(strategy),
            at,
        }
    });
    let entries: Vec<Evidence> = entries.collect();
    let after = books
        .playbooks
        .update(&domain, books.curation, at, |_, _| entries)?;
    say(&format!(
        "{domain}: {count} strategies taken, {refused} lines refused (revision {})",
        after.playbook.revision
    ))?;
    Ok(Outcome::from_success(refused == 0))
}

pub(super) fn export(books: &Books, command: &PlaybookExport) -> anyhow::Result<Outcome> {
    let mut text = String::new();
    for domain in books.domains()? {
        for kept in books.read(&domain)?.playbook.strategies {
            if command.all || kept.standing == Standing::Active {
                text.push_str(&serde_json::to_string(&kept.strategy)?);
                text.push('\n');
            }
        }
    }
    match &command.out {
        None => put(&text)?,
        Some(file) => std::fs::write(file, text)
            .with_context(|| format!("`{}` cannot be written", file.display()))?,
    }
    Ok(Outcome::Done)
}
