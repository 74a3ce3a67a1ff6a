//! `windlass memory import`: remembers many files at once, or what was exported elsewhere, and shows how
//! far it is.

use std::io;
use std::path::{Path, PathBuf};

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use windlass_service::{
    ImportCounts, ImportOutcome, ImportProgress, ImportSource, MemoryImport as Import,
};

use super::Own;
use crate::Outcome;
use crate::arguments::MemoryImport;
use crate::interrupt::stop_on_interrupt;
use crate::live::bar;
use crate::run::block_on;
use crate::terminal::{complain, is_read_by_person, put, visible_line};

const INTERRUPTED: u8 = 130;

pub(super) fn run(own: &Own, command: &MemoryImport) -> anyhow::Result<Outcome> {
    let import = Import {
        sources: command.paths.iter().map(source).collect(),
        reach: command.scope.clone(),
        is_untrusted: command.untrusted,
    };
    let as_json = command.json;
    let (service, identity) = (own.service.clone(), own.identity.clone());
    let counts = block_on(&own.service, async move {
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
                        complain(&visible_line(&format!("refused {place}: {reason}")))
                    })?;
                    json!({"path": place, "outcome": "refused", "reason": reason})
                }
            };
            if as_json {
                put(&format!("{printed}\n"))?;
            }
        }
    }
    Ok(())
}

fn conclude(counts: &ImportCounts, as_json: bool) -> anyhow::Result<Outcome> {
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
        put(&format!("{printed}\n"))?;
    } else {
        complain(&format!(
            "{added} added, {replaced} replaced, {unchanged} unchanged, {refused} refused"
        ))?;
    }
    if *is_stopped {
        complain("interrupted; the same command goes on with the rest")?;
        return Ok(Outcome::Code(INTERRUPTED));
    }
    Ok(Outcome::from_success(*refused == 0))
}

/// Counts the bytes of an export, or, where nobody knows how many there will be, its lines.
fn export_bar(bytes: Option<u64>) -> ProgressBar {
    if !is_read_by_person() {
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
