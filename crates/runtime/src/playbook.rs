//! Playbooks on disk: a folder for each domain, with the strategies for people and programs to read, and the
//! log of evidence that they are the fold of.
//!
//! The log is append-only and authoritative. `strategies.jsonl` is written from it atomically. People may edit
//! that file: edits are detected by its digest and appended to the log before anything else. A writer holds
//! the lock of the folder, so that several processes can learn at once. After a crash between any two steps
//! the log counts, and the next process writes the file again.

mod files;

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use futures::future::BoxFuture;

use windlass_learn::playbook::{
    CurationSettings, Playbook, PlaybookEntry, PlaybookIndex, SemanticCurator, hand_edits,
};
use windlass_spec::{StrategyLine, StrategyLines, Timestamp, read_strategies};
use windlass_store::crash_point;

use self::files::{PlaybookFolder, WrittenVersions};

/// A line in a playbook's files that cannot be used or is probably wrong. The rest can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaybookProblem {
    /// Which file.
    pub file: PathBuf,
    /// Which line.
    pub line: usize,
    /// Why.
    pub reason: String,
}

impl fmt::Display for PlaybookProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file.display(), self.line, self.reason)
    }
}

/// Why a playbook cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the playbook in `{place}` cannot be used: {reason}")]
pub struct PlaybookError {
    place: String,
    reason: String,
}

impl PlaybookError {
    /// An error about the playbook in a place, such as a folder or a table.
    #[must_use]
    pub fn new(place: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            place: place.into(),
            reason: reason.into(),
        }
    }
}

/// Makes new entries of a log from the current playbook and log.
pub type NewEvidence<'p> =
    Box<dyn FnOnce(&Playbook, &[PlaybookEntry]) -> Vec<PlaybookEntry> + Send + 'p>;

/// A change of a playbook.
pub struct PlaybookUpdate<'p> {
    /// How the new playbook is curated.
    pub curation: CurationSettings,
    /// The time of the change.
    pub now: Timestamp,
    /// Makes the new entries.
    pub entries: NewEvidence<'p>,
}

/// The future of an operation on a playbook.
type PlaybookFuture<'p, T> = BoxFuture<'p, Result<T, PlaybookError>>;

/// The port to the stored playbooks of a tenant. A playbook is the fold of an append-only log.
pub trait PlaybookPort: Send + Sync {
    /// The current strategies of a domain, whichever process changed them last. Empty if there are none.
    fn searchable<'p>(&'p self, domain: &'p str) -> PlaybookFuture<'p, Arc<SearchablePlaybook>>;

    /// Appends entries to the log of a domain, made from its playbook, and returns the new playbook. No other
    /// process appends between the read and the append. On the disk when this returns; after a crash all of
    /// the entries count or none.
    fn update<'p>(
        &'p self,
        domain: &'p str,
        update: PlaybookUpdate<'p>,
    ) -> PlaybookFuture<'p, KeptPlaybook>;
}

impl PlaybookPort for Playbooks {
    fn searchable<'p>(&'p self, domain: &'p str) -> PlaybookFuture<'p, Arc<SearchablePlaybook>> {
        Box::pin(std::future::ready(Self::searchable(self, domain)))
    }

    fn update<'p>(
        &'p self,
        domain: &'p str,
        update: PlaybookUpdate<'p>,
    ) -> PlaybookFuture<'p, KeptPlaybook> {
        let PlaybookUpdate {
            curation,
            now,
            entries,
        } = update;
        let updated = Self::update(self, domain, curation, now, entries);
        Box::pin(std::future::ready(updated))
    }
}

/// A playbook as it is on disk.
#[derive(Debug, Clone, Default)]
pub struct KeptPlaybook {
    /// Its strategies.
    pub playbook: Playbook,
    /// The log that they are the fold of.
    pub entries: Vec<PlaybookEntry>,
    /// Lines that cannot be used.
    pub problems: Vec<PlaybookProblem>,
}

/// The cached index of each file, with the file's modification time and size.
type IndexCache = HashMap<PathBuf, (Option<(SystemTime, u64)>, Arc<SearchablePlaybook>)>;

/// The strategies of a domain, to be searched.
#[derive(Debug)]
pub struct SearchablePlaybook {
    /// The index.
    pub index: PlaybookIndex,
    /// Lines that cannot be used.
    pub problems: Vec<PlaybookProblem>,
    file: PathBuf,
    /// Strategies that people wrote and no run has confirmed. They may misspell a tool's name.
    unconfirmed: Vec<StrategyLine>,
}

impl SearchablePlaybook {
    /// The index of a file's lines, or of an equivalent of a file, with the lines that cannot be used.
    #[must_use]
    pub fn new(file: PathBuf, lines: &StrategyLines, problems: Vec<PlaybookProblem>) -> Self {
        let is_unconfirmed = |line: &&StrategyLine| {
            let strategy = &line.strategy;
            strategy.runs.is_empty() && strategy.retired.is_none() && !strategy.disabled
        };
        Self {
            index: PlaybookIndex::from_lines(lines),
            problems,
            file,
            unconfirmed: lines
                .strategies
                .iter()
                .filter(is_unconfirmed)
                .cloned()
                .collect(),
        }
    }

    /// The problems of strategies that people wrote and that name other tools than these. Strategies that runs
    /// confirmed are not checked: agents with other tools may share the playbook.
    pub(crate) fn unknown_tools<'t>(
        &self,
        tools: impl IntoIterator<Item = &'t str>,
    ) -> Vec<PlaybookProblem> {
        let tools: Vec<&str> = tools.into_iter().collect();
        let mut problems = Vec::new();
        for line in &self.unconfirmed {
            let missing = line.strategy.check_tools(tools.iter().copied()).err();
            problems.extend(
                missing
                    .into_iter()
                    .flatten()
                    .map(|missing| PlaybookProblem {
                        file: self.file.clone(),
                        line: line.line,
                        reason: missing.to_string(),
                    }),
            );
        }
        problems
    }
}

/// The playbooks of a data directory.
#[derive(Debug)]
pub struct Playbooks {
    directory: PathBuf,
    known: Mutex<IndexCache>,
}

impl Playbooks {
    /// The playbooks of a data directory for one tenant. Those of the tenant `local` have a shorter path.
    #[must_use]
    pub fn of(data: &Path, tenant: &str) -> Self {
        let playbooks = data.join("playbooks");
        let directory = match tenant {
            "local" => playbooks,
            tenant => playbooks.join("tenants").join(files::folder_name(tenant)),
        };
        Self {
            directory: directory.join("tool-calling"),
            known: Mutex::default(),
        }
    }

    /// The domains that have a playbook, in order.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub fn domains(&self) -> Result<Vec<String>, PlaybookError> {
        let mut domains = Vec::new();
        let listed = match std::fs::read_dir(&self.directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(domains),
            listed => listed.map_err(|error| self.error(&self.directory, error))?,
        };
        for entry in listed {
            let entry = entry.map_err(|error| self.error(&self.directory, error))?;
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let folder = Some(entry.path()).filter(|_| is_folder);
            domains.extend(folder.as_deref().and_then(files::domain_of));
        }
        domains.sort();
        Ok(domains)
    }

    /// The folder of a domain's playbook.
    #[must_use]
    pub fn folder(&self, domain: &str) -> PathBuf {
        self.directory.join(files::folder_name(domain))
    }

    /// The file with the strategies of a domain.
    #[must_use]
    pub fn file(&self, domain: &str) -> PathBuf {
        self.folder(domain).join(files::STRATEGIES)
    }

    fn error(&self, folder: &Path, error: io::Error) -> PlaybookError {
        PlaybookError::new(folder.display().to_string(), error.to_string())
    }

    /// The current playbook of a domain, with people's edits. Nothing is written.
    ///
    /// # Errors
    /// If its files cannot be read.
    pub fn read(
        &self,
        domain: &str,
        curation: CurationSettings,
        now: Timestamp,
    ) -> Result<KeptPlaybook, PlaybookError> {
        let folder = PlaybookFolder::new(self.folder(domain));
        let read = || -> io::Result<KeptPlaybook> {
            let Some(_lock) = folder.lock_to_read()? else {
                return Ok(KeptPlaybook::default());
            };
            let found = FolderContents::read(&folder, domain, curation, now)?;
            let mut entries = found.entries;
            entries.extend(found.edits);
            Ok(KeptPlaybook {
                playbook: SemanticCurator::new(curation).fold(domain, &entries),
                entries,
                problems: found.problems,
            })
        };
        read().map_err(|error| self.error(&self.folder(domain), error))
    }

    /// Adds entries to the log of a domain, made from its playbook, and writes the resulting strategies.
    /// People's edits are added first.
    ///
    /// # Errors
    /// If the files cannot be read or written. The log keeps its earlier entries.
    pub fn update(
        &self,
        domain: &str,
        curation: CurationSettings,
        now: Timestamp,
        entries: impl FnOnce(&Playbook, &[PlaybookEntry]) -> Vec<PlaybookEntry>,
    ) -> Result<KeptPlaybook, PlaybookError> {
        let folder = PlaybookFolder::new(self.folder(domain));
        let update = || -> io::Result<KeptPlaybook> {
            let _lock = folder.lock_to_write()?;
            folder.note_domain(domain)?;
            let mut found = FolderContents::read(&folder, domain, curation, now)?;
            let curator = SemanticCurator::new(curation);
            let mut added = found.edits;
            found.entries.extend(added.clone());
            let before = curator.fold(domain, &found.entries);
            let new = entries(&before, &found.entries);
            found.entries.extend(new.clone());
            added.extend(new);
            // The process that wrote the last entry may have died before it wrote the file.
            if added.is_empty() && found.is_current {
                return Ok(KeptPlaybook {
                    playbook: before,
                    entries: found.entries,
                    problems: found.problems,
                });
            }
            if !added.is_empty() {
                folder.append(found.complete_bytes, &added)?;
            }
            crash_point!("playbook.logged");
            let playbook = curator.fold(domain, &found.entries);
            folder.write(&playbook, &found.kept_lines, found.written)?;
            Ok(KeptPlaybook {
                playbook,
                entries: found.entries,
                problems: found.problems,
            })
        };
        update().map_err(|error| self.error(&self.folder(domain), error))
    }

    /// The searchable strategies of a domain, from the file: people's edits count at once. The file is read
    /// again only if it has changed.
    pub(crate) fn searchable(
        &self,
        domain: &str,
    ) -> Result<Arc<SearchablePlaybook>, PlaybookError> {
        let file = self.file(domain);
        let stamp = std::fs::metadata(&file)
            .ok()
            .and_then(|found| Some((found.modified().ok()?, found.len())));
        {
            let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((of, searched)) = known.get(&file)
                && *of == stamp
            {
                return Ok(Arc::clone(searched));
            }
        }
        let folder = PlaybookFolder::new(self.folder(domain));
        let read = || -> io::Result<(String, WrittenVersions)> {
            Ok((files::text(&file)?, folder.written()?))
        };
        let (text, written) = read().map_err(|error| self.error(&self.folder(domain), error))?;
        let lines = read_strategies(&text);
        let mut problems = problems(&file, &lines);
        if !written.includes(&text) {
            problems.extend(edit_warnings(&file, &lines));
        }
        let searched = Arc::new(SearchablePlaybook::new(file.clone(), &lines, problems));
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(file, (stamp, Arc::clone(&searched)));
        Ok(searched)
    }
}

fn problems(file: &Path, lines: &StrategyLines) -> Vec<PlaybookProblem> {
    let errors = lines.errors.iter().map(|error| PlaybookProblem {
        file: file.to_owned(),
        line: error.line,
        reason: match error.is_torn {
            true => "the line is incomplete".to_owned(),
            false => error.reason.clone(),
        },
    });
    errors.collect()
}

/// Warnings about strategies that people wrote. Learned strategies are not checked: a low success rate is an
/// observation.
fn edit_warnings(file: &Path, lines: &StrategyLines) -> Vec<PlaybookProblem> {
    let doubtful = lines.strategies.iter().filter_map(|line| {
        Some(PlaybookProblem {
            file: file.to_owned(),
            line: line.line,
            reason: line.strategy.warning()?.to_string(),
        })
    });
    doubtful.collect()
}

/// The contents of a playbook's folder.
struct FolderContents {
    entries: Vec<PlaybookEntry>,
    /// People's edits since the file was written.
    edits: Vec<PlaybookEntry>,
    problems: Vec<PlaybookProblem>,
    /// Lines that cannot be used and must be kept.
    kept_lines: Vec<String>,
    /// The length of the log up to its last complete entry.
    complete_bytes: u64,
    written: WrittenVersions,
    /// Whether the file matches the entries.
    is_current: bool,
}

impl FolderContents {
    fn read(
        folder: &PlaybookFolder,
        domain: &str,
        curation: CurationSettings,
        now: Timestamp,
    ) -> io::Result<Self> {
        let log = folder.log()?;
        let text = files::text(&folder.strategies())?;
        let lines = read_strategies(&text);
        let written = folder.written()?.with_current(&text);
        let mut problems: Vec<PlaybookProblem> = log
            .errors
            .iter()
            .map(|error| PlaybookProblem {
                file: folder.evidence(),
                line: error.line,
                reason: error.reason.clone(),
            })
            .collect();
        problems.extend(self::problems(&folder.strategies(), &lines));
        let mut edits = Vec::new();
        if !written.includes(&text) && !text.is_empty() {
            problems.extend(edit_warnings(&folder.strategies(), &lines));
            let curator = SemanticCurator::new(curation);
            let fold = |revision: usize| {
                let revision = revision.min(log.entries.len());
                curator.fold(domain, &log.entries[..revision])
            };
            edits = hand_edits(&fold(written.revision()), &lines, now);
            // A file that an earlier process did not finish lacks strategies that no person removed.
            let before = fold(written.earlier_revision());
            edits.retain(|edit| match edit {
                PlaybookEntry::Removed { strategy, .. } => {
                    before.strategies.iter().any(|kept| kept.id() == strategy)
                }
                _ => true,
            });
        }
        Ok(Self {
            is_current: written.is_current(&text, log.entries.len()),
            entries: log.entries,
            edits,
            problems,
            kept_lines: lines.errors.into_iter().map(|error| error.text).collect(),
            complete_bytes: log.complete_bytes as u64,
            written,
        })
    }
}
