//! `windlass memory import`: stores files or exports, and shows the progress.

use std::io;
use std::path::{Path, PathBuf};

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use windlass_service::{
    ImportCounts, ImportOutcome, ImportProgress, ImportSource, MemoryImport as Import,
};

use super::MemorySession;
use crate::CommandOutcome;
use crate::arguments::MemoryImport;
use crate::interrupt::stop_on_interrupt;
use crate::live::bar;
use crate::run::block_on;
use crate::terminal::{eprint_line, is_interactive, print_json, visible_line};

const INTERRUPTED: u8 = 130;

pub(super) fn run(
    session: &MemorySession,
    command: &MemoryImport,
) -> anyhow::Result<CommandOutcome> {
    let import = Import {
        sources: command.paths.iter().map(source).collect(),
        reach: command.scope.clone(),
        is_untrusted: command.untrusted,
    };
    let as_json = command.json;
    let (service, identity) = (session.service.clone(), session.identity.clone());
    let counts = block_on(&session.service, async move {
        let stop = stop_on_interrupt();
        tokio::task::spawn_blocking(move || {
            let mut shown = ProgressBar::hidden();
            let imported = service.import_memory(&identity, import, &stop, |progress| {
                show(progress, &mut shown, as_json)
            });
            shown.finish_and_clear();
            imported
        })
        .await
    })???;
    conclude(&counts, as_json)
}

fn source(path: &PathBuf) -> ImportSource {
    match path == Path::new("-") {
        true => ImportSource::Export {
            name: "-".to_owned(),
            lines: Box::new(io::stdin()),
        },
        false => ImportSource::Path(path.clone()),
    }
}

fn show(progress: ImportProgress<'_>, shown: &mut ProgressBar, as_json: bool) -> io::Result<()> {
    match progress {
        ImportProgress::Files(count) => *shown = bar("files", count),
        ImportProgress::Export { bytes } => *shown = export_bar(bytes),
        ImportProgress::Steps(steps) => shown.inc(steps),
        ImportProgress::Finished => shown.finish_and_clear(),
        ImportProgress::Document { place, outcome } => {
            let printed = match outcome {
                ImportOutcome::Stored { id, outcome } => {
                    json!({"path": place, "outcome": outcome, "id": id})
                }
                ImportOutcome::Unchanged { id } => {
                    json!({"path": place, "outcome": "unchanged", "id": id})
                }
                ImportOutcome::Refused { reason } => {
                    shown.suspend(|| {
                        eprint_line(&visible_line(&format!("refused {place}: {reason}")))
                    })?;
                    json!({"path": place, "outcome": "refused", "reason": reason})
                }
            };
            if as_json {
                print_json(&format!("{printed}\n"))?;
            }
        }
    }
    Ok(())
}

fn conclude(counts: &ImportCounts, as_json: bool) -> anyhow::Result<CommandOutcome> {
    let ImportCounts {
        added,
        replaced,
        unchanged,
        refused,
        is_stopped,
    } = counts;
    if as_json {
        let printed = json!({
            "added": added, "replaced": replaced, "unchanged": unchanged, "refused": refused,
            "interrupted": is_stopped,
        });
        print_json(&format!("{printed}\n"))?;
    } else {
        eprint_line(&format!(
            "{added} added, {replaced} replaced, {unchanged} unchanged, {refused} refused"
        ))?;
    }
    if *is_stopped {
        eprint_line("interrupted: repeat this command to continue")?;
        return Ok(CommandOutcome::Code(INTERRUPTED));
    }
    Ok(CommandOutcome::from_success(*refused == 0))
}

/// A progress bar over the bytes of an export, or over its lines if the size is unknown.
fn export_bar(bytes: Option<u64>) -> ProgressBar {
    if !is_interactive() {
        return ProgressBar::hidden();
    }
    let (bar, template) = match bytes {
        Some(bytes) => (
            ProgressBar::new(bytes),
            "{bar:40} {bytes}/{total_bytes}, {elapsed}, {eta} left",
        ),
        None => (
            ProgressBar::new_spinner(),
            "{spinner} {pos} documents, {elapsed}",
        ),
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}
