//! What people change in a playbook: each change is an entry of its log, so it can be taken back.

use std::io::Read as _;

use anyhow::Context as _;
use windlass_learn::playbook::Standing;
use windlass_service::StrategyChange;

use super::{Books, Outcome, filter, tool_names};
use crate::arguments::{OneStrategy, PlaybookExport, PlaybookImport, PlaybookRevert};
use crate::report::Reporter;
use crate::schema::read_file;
use crate::terminal::{complain, put, say};

pub(super) fn pin(books: &Books<'_>, one: &OneStrategy) -> anyhow::Result<Outcome> {
    change(
        books,
        one,
        match one.undo {
            true => StrategyChange::Unpin,
            false => StrategyChange::Pin,
        },
    )
}

pub(super) fn disable(books: &Books<'_>, one: &OneStrategy) -> anyhow::Result<Outcome> {
    change(
        books,
        one,
        match one.undo {
            true => StrategyChange::Enable,
            false => StrategyChange::Disable,
        },
    )
}

fn change(books: &Books<'_>, one: &OneStrategy, change: StrategyChange) -> anyhow::Result<Outcome> {
    let (service, identity) = (&books.service, &books.identity);
    let changed = service.change_strategy(identity, books.domain, &one.strategy, change)?;
    let found = changed.strategy.as_ref();
    let standing = match found.map(|found| (&found.standing, found.strategy.pinned)) {
        Some((Standing::Active, true)) => "in use, pinned".to_owned(),
        Some((Standing::Active, false)) => "in use".to_owned(),
        Some((Standing::Disabled, _)) => "switched off".to_owned(),
        Some((Standing::Retired(why), _)) => format!("retired: {why}"),
        None => "gone".to_owned(),
    };
    say(&format!(
        "{}: {standing} (revision {})",
        changed.id, changed.revision
    ))?;
    Ok(Outcome::Done)
}

pub(super) fn revert(books: &Books<'_>, command: &PlaybookRevert) -> anyhow::Result<Outcome> {
    let to = command.revision;
    let reverted = books
        .service
        .revert_playbook(&books.identity, books.domain, to)?;
    say(&format!(
        "{}: as at revision {to}, {} strategies in use; `windlass playbook revert {}` takes this back",
        reverted.domain,
        reverted.playbook.active().count(),
        reverted.previous_revision
    ))?;
    Ok(Outcome::Done)
}

pub(super) fn import(
    books: &Books<'_>,
    command: &PlaybookImport,
    reporter: &Reporter,
) -> anyhow::Result<Outcome> {
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
    let agents = match &command.agent {
        None => None,
        Some(file) => match read_file(file, reporter)? {
            None => return Ok(Outcome::Failed),
            Some(file) => Some(file),
        },
    };
    let tools = agents.as_ref().map(tool_names);
    let (service, identity) = (&books.service, &books.identity);
    let imported = service.import_strategies(identity, books.domain, &text, tools.as_deref())?;
    for line in &imported.refused {
        for reason in &line.reasons {
            complain(&format!("{shown}:{}: {reason}", line.line))?;
        }
    }
    for (line, warning) in &imported.warnings {
        complain(&format!("warning: {shown}:{line}: {warning}"))?;
    }
    let refused = imported.refused.len();
    say(&format!(
        "{}: {} strategies taken, {refused} lines refused (revision {})",
        imported.domain, imported.count, imported.revision
    ))?;
    Ok(Outcome::from_success(refused == 0))
}

pub(super) fn export(books: &Books<'_>, command: &PlaybookExport) -> anyhow::Result<Outcome> {
    let mut text = String::new();
    for found in books
        .service
        .list_playbooks(&books.identity, books.domain)?
    {
        for kept in found.strategies(filter(command.all)) {
            text.push_str(&serde_json::to_string(&kept.strategy)?);
            text.push('\n');
        }
    }
    match &command.out {
        None => put(&text)?,
        Some(file) => std::fs::write(file, text)
            .with_context(|| format!("`{}` cannot be written", file.display()))?,
    }
    Ok(Outcome::Done)
}
