//! The store: opened once, shared by all threads of a process.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{OptionalExtension, params};
use windlass_core::durable::Durability;
use windlass_core::redact::{RedactedEvent, Redactor};
use windlass_core::run::Event;
use windlass_keys::Approvers;
use windlass_spec::{RunId, Timestamp};

use crate::connection::{self, DatabaseFile, Readers};
use crate::crash::CrashPoints;
use crate::error::Error;
use crate::evidence::{self, Authentication, Evidence, RUNS};
use crate::file;
use crate::journal::{EventRow, RunJournal, insert};
use crate::lease::RunLease;
use crate::read;
use crate::writer::{Work, Writer};

/// How much of a task is kept for lists.
const TASK_EXCERPT: usize = 500;

/// How to open a store.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Removes the secrets that must not be stored.
    pub redactor: Redactor,
    /// The maximum size of the database. Writes beyond it fail as on a full disk.
    pub max_bytes: Option<u64>,
    /// How long to wait for another process that writes; 15 seconds by default.
    pub lock_timeout: Option<Duration>,
    /// The current time. If it is set, overdue questions expire when the store is opened.
    pub now: Option<Timestamp>,
    /// How the rows are authenticated.
    pub authentication: Authentication,
    /// Who may decide. Without it, every principal may, and decisions are not signed.
    pub approvers: Option<Approvers>,
}

/// For whom a run is, in addition to its first event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRun {
    /// The organisation.
    pub tenant: String,
    /// The person or program on whose behalf it acts.
    pub principal: String,
    /// The task's id, if it has one.
    pub task_id: Option<String>,
}

/// Journals, approvals and conversations in one database file.
pub struct Store {
    pub(crate) path: PathBuf,
    pub(crate) locks: PathBuf,
    pub(crate) readers: Arc<Readers>,
    pub(crate) writer: Arc<Writer>,
    pub(crate) redactor: Arc<Redactor>,
    pub(crate) evidence: Arc<Evidence>,
    pub(crate) approvers: Option<Approvers>,
    #[cfg_attr(not(feature = "memory"), expect(dead_code, reason = "used by memory"))]
    pub(crate) lock_timeout: Option<Duration>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl Store {
    /// Opens a database, and creates it and its directories if needed. They are readable by their
    /// owner only.
    ///
    /// # Errors
    /// If it cannot be opened, is damaged, or was written by a newer Windlass.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open_with(path, Options::default())
    }

    /// Opens a database with options.
    ///
    /// # Errors
    /// If it cannot be opened, is damaged, or was written by a newer Windlass.
    pub fn open_with(path: impl AsRef<Path>, options: Options) -> Result<Self, Error> {
        let path = std::path::absolute(path.as_ref())
            .map_err(|error| Error::file("find", path.as_ref(), error))?;
        let locks = path.parent().unwrap_or(&path).join("locks");
        let (database, position) = connection::open_writer(&path, &locks, &options)?;
        let evidence = Arc::clone(&database.evidence);
        let writer = Writer::start(database, DatabaseFile::of(&path)?, position)
            .map_err(|error| Error::file("start the writer thread for", &path, error))?;
        let store = Self {
            readers: Arc::new(Readers::new(path.clone(), Arc::clone(&evidence))),
            path,
            locks,
            writer: Arc::new(writer),
            redactor: Arc::new(options.redactor),
            evidence,
            approvers: options.approvers,
            lock_timeout: options.lock_timeout,
        };
        if let Some(now) = options.now {
            store.sweep(now)?;
        }
        Ok(store)
    }

    /// The path of the database.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Why nothing can be written and no journal be read, if the rows cannot be checked.
    #[must_use]
    pub fn authentication_error(&self) -> Option<Error> {
        self.evidence.refusal()
    }

    /// Why the last events of a run may be missing, if they may: the database lost transactions while the run was open.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn damage(&self, run: &RunId) -> Result<Option<String>, Error> {
        self.readers
            .read(|connection| evidence::damage(connection, run))
    }

    /// Starts the journal of a run with its first event.
    ///
    /// # Errors
    /// If the event does not start a run, a run with this id exists, or it cannot be stored.
    pub fn start(
        &self,
        new: NewRun,
        started: &Event,
        durability: Durability,
    ) -> Result<RunJournal, Error> {
        self.start_redacted(new, &self.redacted(started.clone())?, durability)
    }

    /// Starts the journal of a run as [`Store::start`] does, with an event from which secrets were removed.
    ///
    /// # Errors
    /// As [`Store::start`].
    pub fn start_redacted(
        &self,
        new: NewRun,
        started: &RedactedEvent,
        durability: Durability,
    ) -> Result<RunJournal, Error> {
        if durability == Durability::Relaxed {
            self.check_new(started.event())?;
        }
        let (journal, work) = self.new_journal(new, started)?;
        journal.begin(durability, work)?;
        Ok(journal)
    }

    /// Checks early that the run is new, for starts that do not wait. The insert checks it again.
    fn check_new(&self, started: &Event) -> Result<(), Error> {
        let Event::Started { run, .. } = started else {
            return Err(Error::NotStarted);
        };
        let state = self
            .readers
            .read(|connection| read::stored_state(connection, run))?;
        match state {
            None => Ok(()),
            Some(_) => Err(Error::RunExists(run.clone())),
        }
    }

    /// Returns the journal of a run, and the work that stores the run with its first event.
    fn new_journal(
        &self,
        new: NewRun,
        redacted: &RedactedEvent,
    ) -> Result<(RunJournal, Work), Error> {
        // Not only when it is written: nothing may happen until then.
        if let Some(error) = self.evidence.refusal() {
            return Err(error);
        }
        let started = redacted.event();
        let payload = redacted.payload().to_owned();
        let Event::Started {
            run,
            agent,
            assembly,
            task,
            at,
            ..
        } = started
        else {
            return Err(Error::NotStarted);
        };
        let lease = RunLease::take(&self.locks, run, FIRST_EPOCH).or_else(|error| {
            // `RunExists` is a more useful error than `OwnedElsewhere`.
            self.check_new(started).and(Err(error))
        })?;
        let excerpt: String = task.description.chars().take(TASK_EXCERPT).collect();
        let task_id = new.task_id.map(|id| self.redactor.text(&id));
        let files = file::files_of(assembly);
        let (run, agent, at) = (run.clone(), agent.name().to_string(), at.as_microseconds());
        let work = Work::new(CrashPoints::of("start"), move |connection| {
            let mut insert_run = connection.prepare_cached(
                "INSERT INTO runs (run, tenant, principal, agent, task_id, task, started_at, epoch)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT DO NOTHING",
            )?;
            let values = params![
                run.as_str(),
                new.tenant,
                new.principal,
                agent,
                task_id,
                excerpt,
                at,
                FIRST_EPOCH
            ];
            if insert_run.execute(values)? == 0 {
                return Err(Error::RunExists(run.clone()));
            }
            RUNS.seal(connection, connection.last_insert_rowid())?;
            connection.note_new_run();
            let row = EventRow {
                run: &run,
                epoch: FIRST_EPOCH,
                seq: 1,
                at,
                payload: &payload,
            };
            insert(connection, &row)?;
            file::record_used(connection, &files, &new.tenant, &run, at)?;
            Ok(1)
        });
        // Number 1 is the first event.
        Ok((self.journal(lease, 2), work))
    }

    /// Takes over a run that has no owner, or that waited for a person, to resume it.
    ///
    /// # Errors
    /// If there is no such run, it has ended, or it still has an owner.
    pub fn take_over(&self, run: &RunId) -> Result<RunJournal, Error> {
        let check = || match self
            .readers
            .read(|connection| read::stored_state(connection, run))?
        {
            None => Err(Error::NoSuchRun(run.clone())),
            Some(state) if state == "ended" => Err(Error::Ended(run.clone())),
            Some(_) => self
                .readers
                .read(|connection| read::check_complete(connection, run)),
        };
        check()?;
        let mut lease = RunLease::take(&self.locks, run, 0)?;
        // The owner may have ended it before the lock was taken, or written to it.
        check()?;
        self.check_unaltered(run)?;
        let id = run.clone();
        let epoch =
            self.writer
                .wait_for(Work::new(CrashPoints::of("take_over"), move |connection| {
                    let mut update = connection.prepare_cached(
                r#"UPDATE runs SET epoch = epoch + 1, state = 'open', "end" = NULL, ended_at = NULL,
                       event_count = NULL, wake_at = NULL
                   WHERE run = ?1 AND state <> 'ended' RETURNING epoch"#,
            )?;
                    evidence::change_run(connection, &id, || {
                        let epoch: Option<i64> = update
                            .query_row([id.as_str()], |row| row.get(0))
                            .optional()?;
                        epoch.ok_or_else(|| Error::Ended(id.clone()))
                    })
                }))?;
        lease.set_epoch(epoch);
        let last = self
            .readers
            .read(|connection| read::last_sequence_number(connection, run))?;
        Ok(self.journal(lease, last + 1))
    }

    /// Returns the event without secrets, as it is stored.
    ///
    /// # Errors
    /// If the event would not be valid without the secret.
    pub fn redacted(&self, event: Event) -> Result<RedactedEvent, Error> {
        Ok(self.redactor.event(event)?)
    }

    fn journal(&self, lease: RunLease, next: i64) -> RunJournal {
        RunJournal::new(
            lease,
            Arc::clone(&self.writer),
            Arc::clone(&self.readers),
            Arc::clone(&self.redactor),
            next,
        )
    }
}

const FIRST_EPOCH: i64 = 1;
