//! Remembers many files at once, or what was exported elsewhere. Each document is stored whole or not at
//! all, and what is known is skipped, so whatever stops an import, the same command goes on with it. A file
//! that is refused is told of, and the others are imported all the same.

use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use windlass_runtime::{Stop, now};
use windlass_store::{MemoryError, MemoryScope, NewDocument, Reach, RememberOutcome};

use super::export::{FORM, Line};
use super::{Own, read};
use crate::Outcome;
use crate::arguments::MemoryImport;
use crate::interrupt::stop_on_interrupt;
use crate::live::bar;
use crate::run::block_on;
use crate::terminal::{complain, put};

const INTERRUPTED: u8 = 130;

/// Directories within each other more than this are not gone into.
const MOST_NESTED: usize = 64;

pub(super) fn run(own: Own, command: &MemoryImport) -> anyhow::Result<Outcome> {
    let (paths, scope) = (command.paths.clone(), command.scope.clone());
    let (is_untrusted, as_json) = (command.untrusted, command.json);
    block_on(async move {
        let stop = stop_on_interrupt();
        tokio::task::spawn_blocking(move || {
            let mut import = Import {
                own,
                scope,
                is_untrusted,
                as_json,
                stop,
                bar: ProgressBar::hidden(),
                counts: Counts::default(),
            };
            import.all(&paths)
        })
        .await?
    })?
}

#[derive(Default)]
struct Counts {
    added: u64,
    replaced: u64,
    unchanged: u64,
    refused: u64,
}

struct Import {
    own: Own,
    scope: Option<Reach>,
    is_untrusted: bool,
    as_json: bool,
    stop: Stop,
    bar: ProgressBar,
    counts: Counts,
}

/// What came of one document.
enum Came {
    Stored(RememberOutcome, String),
    /// It is there, and came from the same place.
    Unchanged(String),
}

impl Import {
    fn all(&mut self, paths: &[PathBuf]) -> anyhow::Result<Outcome> {
        let (mut files, mut exports) = (Vec::new(), Vec::new());
        for path in paths {
            match path
                .extension()
                .is_some_and(|extension| extension == "jsonl")
                || path == Path::new("-")
            {
                true => exports.push(path.clone()),
                false => self.find(path, 0, &mut files)?,
            }
        }
        self.bar = bar("files", files.len());
        for file in &files {
            if self.is_stopped() {
                break;
            }
            let came = self.file(file);
            self.tell(&file.to_string_lossy(), came)?;
            self.bar.inc(1);
        }
        self.bar.finish_and_clear();
        for export in &exports {
            let imported = self.export(export);
            self.bar.finish_and_clear();
            imported?;
        }
        self.conclude()
    }

    fn is_stopped(&self) -> bool {
        self.stop.after_step.is_cancelled() || self.stop.at_once.is_cancelled()
    }

    /// The files at a path, in an order that is the same every time.
    fn find(&mut self, path: &Path, depth: usize, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
        let told =
            |error: io::Error| anyhow::anyhow!("`{}` cannot be read: {error}", path.display());
        // What was named is followed, what is found is not: a link may lead anywhere.
        let metadata = match depth {
            0 => std::fs::metadata(path).map_err(told)?,
            _ => match std::fs::symlink_metadata(path) {
                Ok(metadata) => metadata,
                Err(error) => return self.tell(&path.to_string_lossy(), Err(told(error))),
            },
        };
        if metadata.is_file() {
            files.push(path.to_owned());
        }
        if !metadata.is_dir() {
            return Ok(());
        }
        if depth > MOST_NESTED {
            let error = anyhow::anyhow!("the directories are nested too deep");
            return self.tell(&path.to_string_lossy(), Err(error));
        }
        let entries = std::fs::read_dir(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let mut entries: Vec<PathBuf> = match entries {
            Ok(entries) => entries.iter().map(std::fs::DirEntry::path).collect(),
            Err(error) => return self.tell(&path.to_string_lossy(), Err(told(error))),
        };
        entries.sort();
        for entry in entries {
            let name = entry
                .file_name()
                .map(|name| name.to_string_lossy().into_owned());
            if name.is_some_and(|name| !name.starts_with('.')) {
                self.find(&entry, depth + 1, files)?;
            }
        }
        Ok(())
    }

    fn file(&self, path: &Path) -> anyhow::Result<Came> {
        let text = read::file(path, self.own.memory.max_document_bytes())?;
        let readable = read::readable(path, text);
        let scope = self
            .own
            .scope(self.scope.as_ref().unwrap_or(&Reach::Principal));
        let new = NewDocument {
            title: readable.title,
            source: Some(read::source(path)),
            is_tainted: self.is_untrusted,
            replaces_source: true,
            ..NewDocument::new(readable.text, now())
        };
        self.keep(&scope, new)
    }

    /// Stores a document, unless it is there: looking is cheap, writing waits for the disk.
    fn keep(&self, scope: &MemoryScope, new: NewDocument) -> anyhow::Result<Came> {
        if let Some(id) = self.own.memory.unchanged(scope, &new)? {
            return Ok(Came::Unchanged(id));
        }
        let stored = self.own.memory.remember(scope, new)?;
        Ok(Came::Stored(stored.outcome, stored.id))
    }

    fn export(&mut self, path: &Path) -> anyhow::Result<()> {
        let (from, bytes): (Box<dyn io::Read>, Option<u64>) = match path == Path::new("-") {
            true => (Box::new(io::stdin()), None),
            false => {
                let told = || format!("`{}` cannot be read", path.display());
                let file = File::open(path).with_context(told)?;
                let bytes = file.metadata().with_context(told)?.len();
                (Box::new(file), Some(bytes))
            }
        };
        self.bar = export_bar(bytes);
        let mut from = BufReader::new(from);
        // A text takes up to six times as much when it is written as JSON.
        let limit = self
            .own
            .memory
            .max_document_bytes()
            .saturating_mul(6)
            .saturating_add(65_536);
        for number in 1u64.. {
            if self.is_stopped() {
                return Ok(());
            }
            let place = format!("{}:{number}", path.display());
            let mut line = Vec::new();
            let read = (&mut from).take(limit).read_until(b'\n', &mut line)?;
            if read == 0 {
                return Ok(());
            }
            self.bar.inc(bytes.map_or(1, |_| read as u64));
            if read as u64 == limit {
                let error = MemoryError::TooLarge { bytes: None, limit };
                self.tell(&place, Err(error.into()))?;
                let skipped = skip_line(&mut from)?;
                self.bar.inc(bytes.map_or(0, |_| skipped));
                continue;
            }
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let came = self.line(&line);
            self.tell(&place, came)?;
        }
        Ok(())
    }

    fn line(&self, line: &[u8]) -> anyhow::Result<Came> {
        let line: Line = serde_json::from_slice(line)
            .map_err(|error| anyhow::anyhow!("this is no line of an export: {error}"))?;
        anyhow::ensure!(
            line.windlass_memory == FORM,
            "the export is of a newer Windlass (form {}; this one knows {FORM})",
            line.windlass_memory
        );
        let scope = self.own.scope(self.scope.as_ref().unwrap_or(&line.scope));
        let new = NewDocument {
            title: line.title,
            source: line.source,
            is_tainted: line.tainted || self.is_untrusted,
            metadata: line.metadata,
            ..NewDocument::new(line.text, line.stored_at)
        };
        self.keep(&scope, new)
    }

    fn tell(&mut self, what: &str, came: anyhow::Result<Came>) -> anyhow::Result<()> {
        let told = match came {
            Ok(Came::Stored(outcome, id)) => {
                match outcome {
                    RememberOutcome::Added => self.counts.added += 1,
                    RememberOutcome::Replaced => self.counts.replaced += 1,
                    RememberOutcome::Known => self.counts.unchanged += 1,
                }
                json!({"path": what, "outcome": outcome, "id": id})
            }
            Ok(Came::Unchanged(id)) => {
                self.counts.unchanged += 1;
                json!({"path": what, "outcome": "unchanged", "id": id})
            }
            // The others would fare no better, so this is the end of it.
            Err(error) if is_failure(&error) => return Err(error.context(what.to_owned())),
            Err(error) => {
                self.counts.refused += 1;
                let reason = format!("{error:#}");
                let reason = reason.lines().next().unwrap_or_default();
                self.bar
                    .suspend(|| complain(&format!("refused {what}: {reason}")))?;
                json!({"path": what, "outcome": "refused", "reason": reason})
            }
        };
        match self.as_json {
            true => Ok(put(&format!("{told}\n"))?),
            false => Ok(()),
        }
    }

    fn conclude(&self) -> anyhow::Result<Outcome> {
        let Counts {
            added,
            replaced,
            unchanged,
            refused,
        } = self.counts;
        let is_stopped = self.is_stopped();
        let told: Value = json!({
            "added": added, "replaced": replaced, "unchanged": unchanged, "refused": refused,
            "interrupted": is_stopped,
        });
        if self.as_json {
            put(&format!("{told}\n"))?;
        } else {
            complain(&format!(
                "{added} added, {replaced} replaced, {unchanged} unchanged, {refused} refused"
            ))?;
        }
        if is_stopped {
            complain("interrupted; the same command goes on with the rest")?;
            return Ok(Outcome::Code(INTERRUPTED));
        }
        Ok(Outcome::from_success(refused == 0))
    }
}

/// Whether memory itself failed, or refuses everything.
fn is_failure(error: &anyhow::Error) -> bool {
    error.downcast_ref::<MemoryError>().is_some_and(|error| {
        error.is_failure()
            || matches!(
                error,
                MemoryError::OtherEmbedder { .. } | MemoryError::Reembedding(_)
            )
    })
}

/// Counts the bytes of an export, or, where nobody knows how many there will be, its lines.
fn export_bar(bytes: Option<u64>) -> ProgressBar {
    if !io::stderr().is_terminal() {
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

/// Reads to the end of a line; how much that was.
fn skip_line(from: &mut impl BufRead) -> io::Result<u64> {
    let mut skipped = 0;
    loop {
        let buffer = from.fill_buf()?;
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let read = end.map_or(buffer.len(), |end| end + 1);
        from.consume(read);
        skipped += read as u64;
        if end.is_some() || read == 0 {
            return Ok(skipped);
        }
    }
}
