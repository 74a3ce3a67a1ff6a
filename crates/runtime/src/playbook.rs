//! Playbooks on disk: a folder a domain, with the strategies for people and programs to read, and the
//! log of evidence they are the fold of.
//!
//! The log is only ever appended to, and is the truth; `strategies.jsonl` is written from it, whole or not
//! at all. People may change that file: what they changed is noticed by its digest and becomes entries of
//! the log before anything else does. Whoever writes holds the lock of the folder, so that several
//! processes can learn at once. Killed between any two steps, what is in the log counts, and the file is
//! made again by whoever comes next.

mod files;

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use futures::future::BoxFuture;

use windlass_learn::playbook::{
    CurationSettings, Evidence, Playbook, PlaybookIndex, SemanticCurator, hand_edits,
};
use windlass_spec::{StrategyLine, StrategyLines, Timestamp, read_strategies};
use windlass_store::crash_point;

use self::files::{Folder, Written};

/// Something in the files of a playbook that cannot be used, or can hardly be meant; the rest can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaybookProblem {
    /// Which file.
    pub file: PathBuf,
    /// Which line.
    pub line: usize,
    /// What is wrong with it.
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
    /// The playbook in a place, such as a folder or a table, cannot be used for a reason.
    #[must_use]
    pub fn new(place: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            place: place.into(),
            reason: reason.into(),
        }
    }
}

/// Makes entries of a log, with a look at the playbook and the log as they are.
pub type NewEvidence<'p> = Box<dyn FnOnce(&Playbook, &[Evidence]) -> Vec<Evidence> + Send + 'p>;

/// Where the playbooks of a tenant are stored, as the loop that learns sees it. A playbook is the fold of a
/// log that is only ever appended to.
pub trait PlaybookPort: Send + Sync {
    /// The strategies of a domain as they are now, whichever process changed them last. Empty if there
    /// are none.
    fn searchable<'p>(
        &'p self,
        domain: &'p str,
    ) -> BoxFuture<'p, Result<Arc<SearchablePlaybook>, PlaybookError>>;

    /// Appends entries to the log of a domain, made with a look at its playbook, and returns what they lead
    /// to. No other process appends between the look and the append. On the disk when this returns; after
    /// a crash all of the entries count or none.
    fn update<'p>(
        &'p self,
        domain: &'p str,
        curation: CurationSettings,
        now: Timestamp,
        entries: NewEvidence<'p>,
    ) -> BoxFuture<'p, Result<KeptPlaybook, PlaybookError>>;
}

impl PlaybookPort for Playbooks {
    fn searchable<'p>(
        &'p self,
        domain: &'p str,
    ) -> BoxFuture<'p, Result<Arc<SearchablePlaybook>, PlaybookError>> {
        Box::pin(std::future::ready(Self::searchable(self, domain)))
    }

    fn update<'p>(
        &'p self,
        domain: &'p str,
        curation: CurationSettings,
        now: Timestamp,
        entries: NewEvidence<'p>,
    ) -> BoxFuture<'p, Result<KeptPlaybook, PlaybookError>> {
        Box::pin(std::future::ready(Self::update(
            self, domain, curation, now, entries,
        )))
    }
}

/// A playbook as it is on disk.
#[derive(Debug, Clone, Default)]
pub struct KeptPlaybook {
    /// Its strategies.
    pub playbook: Playbook,
    /// The log that they are the fold of.
    pub entries: Vec<Evidence>,
    /// What cannot be used.
    pub problems: Vec<PlaybookProblem>,
}

/// An index of a file, as long as that stays what it was.
type Known = HashMap<PathBuf, (Option<(SystemTime, u64)>, Arc<SearchablePlaybook>)>;

/// The strategies of a domain, to be searched.
#[derive(Debug)]
pub struct SearchablePlaybook {
    /// What is searched.
    pub index: PlaybookIndex,
    /// What of it cannot be used.
    pub problems: Vec<PlaybookProblem>,
    file: PathBuf,
    /// Those that no run has proved: people wrote them, and may have mistaken the name of a tool.
    unproved: Vec<StrategyLine>,
}

impl SearchablePlaybook {
    /// The lines of a file, or of what stands for one, with what of them cannot be used.
    #[must_use]
    pub fn new(file: PathBuf, lines: &StrategyLines, problems: Vec<PlaybookProblem>) -> Self {
        let is_unproved = |line: &&StrategyLine| {
            let strategy = &line.strategy;
            strategy.runs.is_empty() && strategy.retired.is_none() && !strategy.disabled
        };
        Self {
            index: PlaybookIndex::of_lines(lines),
            problems,
            file,
            unproved: lines
                .strategies
                .iter()
                .filter(is_unproved)
                .cloned()
                .collect(),
        }
    }

    /// Which strategies that people wrote name tools that are not among these. What runs proved is not asked after:
    /// agents with other tools may share the playbook.
    pub(crate) fn missing<'t>(
        &self,
        tools: impl IntoIterator<Item = &'t str>,
    ) -> Vec<PlaybookProblem> {
        let tools: Vec<&str> = tools.into_iter().collect();
        let mut problems = Vec::new();
        for line in &self.unproved {
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
    known: Mutex<Known>,
}

impl Playbooks {
    /// Those of a data directory, for one tenant. The local user's are where people look for them.
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

    /// Where the playbook of a domain is.
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

    /// The playbook of a domain as it is now, with what people changed by hand. Nothing is written.
    ///
    /// # Errors
    /// If its files cannot be read.
    pub fn read(
        &self,
        domain: &str,
        curation: CurationSettings,
        now: Timestamp,
    ) -> Result<KeptPlaybook, PlaybookError> {
        let folder = Folder::new(self.folder(domain));
        let read = || -> io::Result<KeptPlaybook> {
            let Some(_lock) = folder.lock_to_read()? else {
                return Ok(KeptPlaybook::default());
            };
            let found = Found::read(&folder, domain, curation, now)?;
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

    /// Adds entries to the log of a domain, made with a look at its playbook, and writes the strategies
    /// they lead to. What people changed by hand before is taken first.
    ///
    /// # Errors
    /// If the files cannot be read or written. What was in the log before still is.
    pub fn update(
        &self,
        domain: &str,
        curation: CurationSettings,
        now: Timestamp,
        entries: impl FnOnce(&Playbook, &[Evidence]) -> Vec<Evidence>,
    ) -> Result<KeptPlaybook, PlaybookError> {
        let folder = Folder::new(self.folder(domain));
        let update = || -> io::Result<KeptPlaybook> {
            let _lock = folder.lock_to_write()?;
            folder.note(domain)?;
            let mut found = Found::read(&folder, domain, curation, now)?;
            let curator = SemanticCurator::new(curation);
            let mut added = found.edits;
            found.entries.extend(added.clone());
            let before = curator.fold(domain, &found.entries);
            let new = entries(&before, &found.entries);
            found.entries.extend(new.clone());
            added.extend(new);
            // Whoever wrote the last entry may have been stopped before the file was made of it.
            if added.is_empty() && found.is_current {
                return Ok(KeptPlaybook {
                    playbook: before,
                    entries: found.entries,
                    problems: found.problems,
                });
            }
            if !added.is_empty() {
                folder.append(found.whole, &added)?;
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

    /// The strategies of a domain to be searched, as the file says now: what people change by hand holds
    /// at once. Read again only if the file has changed.
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
        let folder = Folder::new(self.folder(domain));
        let read =
            || -> io::Result<(String, Written)> { Ok((files::text(&file)?, folder.written()?)) };
        let (text, written) = read().map_err(|error| self.error(&self.folder(domain), error))?;
        let lines = read_strategies(&text);
        let mut problems = problems(&file, &lines);
        if !written.knows(&text) {
            problems.extend(doubts(&file, &lines));
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
            true => "the line was not written to its end".to_owned(),
            false => error.reason.clone(),
        },
    });
    errors.collect()
}

/// What people wrote that can hardly be meant. What is learned is not asked after: that something worked less often than
/// not is what was seen.
fn doubts(file: &Path, lines: &StrategyLines) -> Vec<PlaybookProblem> {
    let doubtful = lines.strategies.iter().filter_map(|line| {
        Some(PlaybookProblem {
            file: file.to_owned(),
            line: line.line,
            reason: line.strategy.warning()?.to_string(),
        })
    });
    doubtful.collect()
}

/// What is in a folder.
struct Found {
    entries: Vec<Evidence>,
    /// What people changed since the file was written.
    edits: Vec<Evidence>,
    problems: Vec<PlaybookProblem>,
    /// Lines that cannot be used and are not to be lost.
    kept_lines: Vec<String>,
    /// Up to where the log is whole.
    whole: u64,
    written: Written,
    /// Whether the file is what the entries come to.
    is_current: bool,
}

impl Found {
    fn read(
        folder: &Folder,
        domain: &str,
        curation: CurationSettings,
        now: Timestamp,
    ) -> io::Result<Self> {
        let log = folder.log()?;
        let text = files::text(&folder.strategies())?;
        let lines = read_strategies(&text);
        let written = folder.written()?.beside(&text);
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
        if !written.knows(&text) && !text.is_empty() {
            problems.extend(doubts(&folder.strategies(), &lines));
            let curator = SemanticCurator::new(curation);
            let fold = |revision: usize| {
                let revision = revision.min(log.entries.len());
                curator.fold(domain, &log.entries[..revision])
            };
            edits = hand_edits(&fold(written.revision()), &lines, now);
            // A file that was never made whole lacks what nobody took out.
            let before = fold(written.earlier());
            edits.retain(|edit| match edit {
                Evidence::Removed { strategy, .. } => {
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
            whole: log.whole as u64,
            written,
        })
    }
}
