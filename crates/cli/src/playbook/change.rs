//! Manual changes of a playbook. Each change is an entry of its log, so it can be reverted.

use std::io::Read as _;

use anyhow::Context as _;
use windlass_learn::playbook::StrategyStatus;
use windlass_service::StrategyChange;

use super::{CommandOutcome, PlaybookSession, filter, tool_names};
use crate::arguments::{OneStrategy, PlaybookExport, PlaybookImport, PlaybookRevert};
use crate::plural::counted;
use crate::report::Reporter;
use crate::source::read_agent_file;
use crate::terminal::{eprint_line, print_json, print_line};

/// Makes a change, or `undo` with the option `--undo`.
pub(super) fn change(
    session: &PlaybookSession<'_>,
    one: &OneStrategy,
    change: StrategyChange,
    undo: StrategyChange,
) -> anyhow::Result<CommandOutcome> {
    let change = if one.undo { undo } else { change };
    let (service, identity) = (&session.service, &session.identity);
    let changed = service.change_strategy(identity, session.domain, &one.strategy, change)?;
    let found = changed.strategy.as_ref();
    let standing = match found.map(|found| (&found.status, found.strategy.pinned)) {
        Some((StrategyStatus::Active, true)) => "in use, pinned".to_owned(),
        Some((StrategyStatus::Active, false)) => "in use".to_owned(),
        Some((StrategyStatus::Disabled, _)) => "disabled".to_owned(),
        Some((StrategyStatus::Retired(why), _)) => format!("retired: {why}"),
        None => "removed".to_owned(),
    };
    print_line(&format!(
        "{}: {standing} (revision {})",
        changed.id, changed.revision
    ))?;
    Ok(CommandOutcome::Done)
}

pub(super) fn revert(
    session: &PlaybookSession<'_>,
    command: &PlaybookRevert,
) -> anyhow::Result<CommandOutcome> {
    let to = command.revision;
    let reverted = session
        .service
        .revert_playbook(&session.identity, session.domain, to)?;
    print_line(&format!(
        "{}: reverted to revision {to}, {} in use; undo with: windlass playbook revert {}",
        reverted.domain,
        counted(reverted.playbook.active().count(), "strategy", "strategies"),
        reverted.previous_revision
    ))?;
    Ok(CommandOutcome::Done)
}

pub(super) fn import(
    session: &PlaybookSession<'_>,
    command: &PlaybookImport,
    reporter: &Reporter,
) -> anyhow::Result<CommandOutcome> {
    let place = command.file.display().to_string();
    let mut text = String::new();
    if place == "-" {
        std::io::stdin()
            .read_to_string(&mut text)
            .context("cannot read standard input")?;
    } else {
        text = std::fs::read_to_string(&command.file)
            .with_context(|| format!("cannot read `{place}`"))?;
    }
    let agents = match &command.agent {
        None => None,
        Some(file) => match read_agent_file(file, reporter)? {
            None => return Ok(CommandOutcome::Failed),
            Some(file) => Some(file),
        },
    };
    let tools = agents.as_ref().map(tool_names);
    let (service, identity) = (&session.service, &session.identity);
    let imported = service.import_strategies(identity, session.domain, &text, tools.as_deref())?;
    for line in &imported.refused {
        for reason in &line.reasons {
            eprint_line(&format!("{place}:{}: {reason}", line.line))?;
        }
    }
    for (line, warning) in &imported.warnings {
        eprint_line(&format!("warning: {place}:{line}: {warning}"))?;
    }
    let refused = imported.refused.len();
    print_line(&format!(
        "{}: {} imported, {} refused (revision {})",
        imported.domain,
        counted(imported.count, "strategy", "strategies"),
        counted(refused, "line", "lines"),
        imported.revision
    ))?;
    Ok(CommandOutcome::from_success(refused == 0))
}

pub(super) fn export(
    session: &PlaybookSession<'_>,
    command: &PlaybookExport,
) -> anyhow::Result<CommandOutcome> {
    let (service, identity) = (&session.service, &session.identity);
    let text = service.export_strategies(identity, session.domain, filter(command.all))?;
    match &command.out {
        None => print_json(&text)?,
        Some(file) => windlass_files::write(file, text)
            .with_context(|| format!("cannot write `{}`", file.display()))?,
    }
    Ok(CommandOutcome::Done)
}
