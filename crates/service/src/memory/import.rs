//! Imports many files at once, or an export. Each document is stored atomically and known ones are skipped, so
//! the same call resumes an interrupted import. A document that is refused is reported, and the others are
//! imported.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use windlass_runtime::Stop;
use windlass_store::{Memory, MemoryError, NewDocument, RememberOutcome, ScopeReach};

use super::file::MemoryFile;
use super::{EXPORT_VERSION, ExportedDocument, refused, scope_of};
use crate::error::ServiceError;
use crate::identity::{Identity, Scope};
use crate::service::Service;

/// Directories that are nested deeper than this are not read.
const MAX_DEPTH: usize = 64;

/// What to import, and how.
#[derive(Debug)]
pub struct MemoryImport {
    /// Where from.
    pub sources: Vec<ImportSource>,
    /// The scope it is stored in. By default, a line of an export goes to its original scope, and a file to
    /// the principal's.
    pub reach: Option<ScopeReach>,
    /// Whether it is untrusted content.
    pub is_untrusted: bool,
}

/// Where documents are imported from.
pub enum ImportSource {
    /// A file, all files below a directory, or an export (`.jsonl`).
    Path(PathBuf),
    /// An export from another source, such as standard input.
    Export {
        /// Its name.
        name: String,
        /// Its lines.
        lines: Box<dyn Read + Send>,
    },
}

impl fmt::Debug for ImportSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => f.debug_tuple("Path").field(path).finish(),
            Self::Export { name, .. } => f.debug_tuple("Export").field(name).finish(),
        }
    }
}

/// The progress of an import: first the files, then each export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportProgress<'p> {
    /// The number of files that are read next; each is a step.
    Files(usize),
    /// An export is read next. Its steps are bytes if its size is known, else lines.
    Export {
        /// Its size.
        bytes: Option<u64>,
    },
    /// The number of further steps that are done.
    Steps(u64),
    /// A document was imported or refused.
    Document {
        /// Its file, or export and line.
        place: &'p str,
        /// Its outcome.
        outcome: &'p ImportOutcome,
    },
    /// The files or an export are done.
    Finished,
}

/// The outcome of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImportOutcome {
    /// It was stored.
    Stored {
        /// Its id.
        id: String,
        /// Whether it is new.
        outcome: RememberOutcome,
    },
    /// It is stored already, from the same source.
    Unchanged {
        /// Its id.
        id: String,
    },
    /// It cannot be remembered.
    Refused {
        /// Why, in one line.
        reason: String,
    },
}

/// How many documents were imported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ImportCounts {
    /// New ones.
    pub added: u64,
    /// Those that replaced an earlier document of the same source.
    pub replaced: u64,
    /// Known ones.
    pub unchanged: u64,
    /// Those that cannot be remembered.
    pub refused: u64,
    /// Whether the import was stopped before its end.
    pub is_stopped: bool,
}

impl Service {
    /// Imports files and exports of the machine that the service runs on, until `stop` is cancelled.
    /// `progress` can end the import with an error.
    ///
    /// # Errors
    /// If the identity is no administrator, a source cannot be read, or memory fails. Documents that were
    /// imported before stay.
    pub fn import_memory(
        &self,
        identity: &Identity,
        import: MemoryImport,
        stop: &Stop,
        progress: impl FnMut(ImportProgress<'_>) -> io::Result<()>,
    ) -> Result<ImportCounts, ServiceError> {
        // The caller can read every path that the service can read.
        identity.require(Scope::Admin)?;
        let mut work = ImportJob {
            memory: self.memory()?,
            service: self,
            identity,
            reach: import.reach,
            is_untrusted: import.is_untrusted,
            stop,
            progress,
            counts: ImportCounts::default(),
        };
        work.all(import.sources)?;
        Ok(ImportCounts {
            is_stopped: work.is_stopped(),
            ..work.counts
        })
    }
}

/// Why a document was not stored.
enum NotStored {
    /// The document cannot be stored; others may be.
    Document(ServiceError),
    /// Memory fails or refuses all documents.
    Memory(ServiceError),
}

impl From<MemoryError> for NotStored {
    fn from(error: MemoryError) -> Self {
        let is_general = error.is_failure()
            || matches!(
                error,
                MemoryError::OtherEmbedder { .. } | MemoryError::Reembedding(_)
            );
        match is_general {
            true => Self::Memory(refused(error)),
            false => Self::Document(refused(error)),
        }
    }
}

impl From<ServiceError> for NotStored {
    fn from(error: ServiceError) -> Self {
        Self::Document(error)
    }
}

impl From<NotStored> for ServiceError {
    fn from(error: NotStored) -> Self {
        match error {
            NotStored::Document(error) | NotStored::Memory(error) => error,
        }
    }
}

/// Stores a document, unless it is stored already: checking is cheap, a write waits for the disk.
fn store(
    memory: &Memory,
    identity: &Identity,
    reach: &ScopeReach,
    new: NewDocument,
) -> Result<ImportOutcome, NotStored> {
    let scope = scope_of(identity, reach);
    if let Some(id) = memory.unchanged(&scope, &new)? {
        return Ok(ImportOutcome::Unchanged { id });
    }
    let stored = memory.remember(&scope, new)?;
    Ok(ImportOutcome::Stored {
        id: stored.id,
        outcome: stored.outcome,
    })
}

fn exported(
    document: ExportedDocument,
    is_untrusted: bool,
) -> Result<(ScopeReach, NewDocument), ServiceError> {
    let version = document.version;
    if version != EXPORT_VERSION {
        let message = format!(
            "the export was made by a newer Windlass (format {version}; this one reads {EXPORT_VERSION})"
        );
        return Err(ServiceError::invalid("unknown_version", message));
    }
    let new = NewDocument {
        title: document.title,
        source: document.source,
        is_tainted: document.tainted || is_untrusted,
        metadata: document.metadata,
        ..NewDocument::new(document.text, document.stored_at)
    };
    Ok((document.scope, new))
}

/// A running import.
struct ImportJob<'w, P> {
    service: &'w Service,
    identity: &'w Identity,
    memory: Memory,
    reach: Option<ScopeReach>,
    is_untrusted: bool,
    stop: &'w Stop,
    progress: P,
    counts: ImportCounts,
}

impl<P: FnMut(ImportProgress<'_>) -> io::Result<()>> ImportJob<'_, P> {
    fn all(&mut self, sources: Vec<ImportSource>) -> Result<(), ServiceError> {
        let (mut files, mut exports) = (Vec::new(), Vec::new());
        for source in sources {
            match source {
                ImportSource::Path(path) if is_export(&path) => {
                    exports.push(ImportSource::Path(path));
                }
                ImportSource::Path(path) => self.find(&path, 0, &mut files)?,
                source @ ImportSource::Export { .. } => exports.push(source),
            }
        }
        (self.progress)(ImportProgress::Files(files.len()))?;
        for file in &files {
            if self.is_stopped() {
                break;
            }
            let outcome = self.file(file);
            self.settle(&file.to_string_lossy(), outcome)?;
            (self.progress)(ImportProgress::Steps(1))?;
        }
        (self.progress)(ImportProgress::Finished)?;
        for export in exports {
            let imported = self.export(export);
            (self.progress)(ImportProgress::Finished)?;
            imported?;
        }
        Ok(())
    }

    fn is_stopped(&self) -> bool {
        self.stop.after_step.is_cancelled() || self.stop.at_once.is_cancelled()
    }

    /// The files at a path, in a stable order.
    fn find(
        &mut self,
        path: &Path,
        depth: usize,
        files: &mut Vec<PathBuf>,
    ) -> Result<(), ServiceError> {
        let unreadable = |error: io::Error| unreadable(&path.display(), &error);
        // A link is followed only if the caller named it: a found link may lead anywhere.
        let metadata = match depth {
            0 => std::fs::metadata(path).map_err(unreadable)?,
            _ => match std::fs::symlink_metadata(path) {
                Ok(metadata) => metadata,
                Err(error) => return self.refuse(path, unreadable(error)),
            },
        };
        if metadata.is_file() {
            files.push(path.to_owned());
        }
        if !metadata.is_dir() {
            return Ok(());
        }
        if depth > MAX_DEPTH {
            let error = ServiceError::failed("the directories are nested too deeply");
            return self.refuse(path, error);
        }
        let entries = std::fs::read_dir(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let mut entries: Vec<PathBuf> = match entries {
            Ok(entries) => entries.iter().map(std::fs::DirEntry::path).collect(),
            Err(error) => return self.refuse(path, unreadable(error)),
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

    fn refuse(&mut self, path: &Path, error: ServiceError) -> Result<(), ServiceError> {
        self.settle(&path.to_string_lossy(), Err(error.into()))
    }

    fn file(&self, path: &Path) -> Result<ImportOutcome, NotStored> {
        let file = MemoryFile::read(path, self.memory.max_document_bytes())?;
        let new = NewDocument {
            title: file.title,
            source: Some(file.source),
            is_tainted: self.is_untrusted,
            replaces_source: true,
            ..NewDocument::new(file.text, self.service.now())
        };
        let reach = self.reach.as_ref().unwrap_or(&ScopeReach::Principal);
        store(&self.memory, self.identity, reach, new)
    }

    fn export(&mut self, source: ImportSource) -> Result<(), ServiceError> {
        let (name, lines, bytes): (String, Box<dyn Read + Send>, Option<u64>) = match source {
            ImportSource::Export { name, lines } => (name, lines, None),
            ImportSource::Path(path) => {
                let unreadable = |error: io::Error| unreadable(&path.display(), &error);
                let file = File::open(&path).map_err(unreadable)?;
                let bytes = file.metadata().map_err(unreadable)?.len();
                (path.display().to_string(), Box::new(file), Some(bytes))
            }
        };
        (self.progress)(ImportProgress::Export { bytes })?;
        let mut lines = BufReader::new(lines);
        // As JSON, a text takes up to six times as many bytes.
        let limit = self
            .memory
            .max_document_bytes()
            .saturating_mul(6)
            .saturating_add(65_536);
        for number in 1u64.. {
            if self.is_stopped() {
                return Ok(());
            }
            let place = format!("{name}:{number}");
            let mut line = Vec::new();
            let read = (&mut lines).take(limit).read_until(b'\n', &mut line)?;
            if read == 0 {
                return Ok(());
            }
            (self.progress)(ImportProgress::Steps(bytes.map_or(1, |_| read as u64)))?;
            if read as u64 == limit {
                let error = MemoryError::TooLarge { bytes: None, limit };
                self.settle(&place, Err(error.into()))?;
                let skipped = skip_line(&mut lines)?;
                (self.progress)(ImportProgress::Steps(bytes.map_or(0, |_| skipped)))?;
                continue;
            }
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let outcome = self.line(&line);
            self.settle(&place, outcome)?;
        }
        Ok(())
    }

    fn line(&self, line: &[u8]) -> Result<ImportOutcome, NotStored> {
        let document = serde_json::from_slice(line).map_err(|error| {
            ServiceError::invalid(
                "bad_line",
                format!("this is not a line of an export: {error}"),
            )
        })?;
        let (reach, new) = exported(document, self.is_untrusted)?;
        let reach = self.reach.as_ref().unwrap_or(&reach);
        store(&self.memory, self.identity, reach, new)
    }

    /// Counts and reports the outcome of a document.
    fn settle(
        &mut self,
        place: &str,
        outcome: Result<ImportOutcome, NotStored>,
    ) -> Result<(), ServiceError> {
        let outcome = match outcome {
            Ok(outcome) => outcome,
            // The other documents would fail as well, so the import ends.
            Err(NotStored::Memory(error)) => return Err(error.context(place)),
            Err(NotStored::Document(error)) => ImportOutcome::Refused {
                reason: error
                    .message()
                    .lines()
                    .next()
                    .unwrap_or_default()
                    .to_owned(),
            },
        };
        let counts = &mut self.counts;
        *match &outcome {
            ImportOutcome::Stored { outcome, .. } => match outcome {
                RememberOutcome::Added => &mut counts.added,
                RememberOutcome::Replaced => &mut counts.replaced,
                RememberOutcome::Known => &mut counts.unchanged,
            },
            ImportOutcome::Unchanged { .. } => &mut counts.unchanged,
            ImportOutcome::Refused { .. } => &mut counts.refused,
        } += 1;
        let outcome = &outcome;
        Ok((self.progress)(ImportProgress::Document {
            place,
            outcome,
        })?)
    }
}

fn is_export(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "jsonl")
}

fn unreadable(path: &impl fmt::Display, error: &io::Error) -> ServiceError {
    ServiceError::failed(format!("`{path}` cannot be read: {error}"))
}

/// Skips the rest of a line and returns its number of bytes.
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
