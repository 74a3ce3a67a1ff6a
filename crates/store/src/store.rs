//! The store itself: opened once, shared by all threads of a process.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::{OptionalExtension, params};
use windlass_core::run::Event;
use windlass_spec::RunId;

use crate::connection::{self, Readers};
use crate::error::Error;
use crate::journal::{Durability, Row, RunJournal, insert};
use crate::lease::RunLease;
use crate::read;
use crate::redact::{RedactedEvent, Redactor};
use crate::writer::{Work, Writer};

/// How much of a task is kept for lists.
const TASK_EXCERPT: usize = 500;

/// How to open a store.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// What must not be stored.
    pub redactor: Redactor,
    /// How large the database may become. What does not fit is refused as on a full disk.
    pub max_bytes: Option<u64>,
}

/// For whom a run is, beside what its first event says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRun {
    /// The organisation.
    pub tenant: String,
    /// The person or program on whose behalf it acts.
    pub principal: String,
    /// The task's id, if whoever set it gave it one.
    pub task_id: Option<String>,
}

/// Journals and conversations in one database file.
pub struct Store {
    pub(crate) path: PathBuf,
    locks: PathBuf,
    pub(crate) readers: Readers,
    pub(crate) writer: Arc<Writer>,
    pub(crate) redactor: Arc<Redactor>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl Store {
    /// Opens a database, making it and its directories if there is none. They are readable by their
    /// owner only.
    ///
    /// # Errors
    /// If it cannot be opened, is damaged, or is of a newer Windlass.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open_with(path, Options::default())
    }

    /// Opens a database with secrets to keep out of it or a limit to its size.
    ///
    /// # Errors
    /// If it cannot be opened, is damaged, or is of a newer Windlass.
    pub fn open_with(path: impl AsRef<Path>, options: Options) -> Result<Self, Error> {
        let path = std::path::absolute(path.as_ref())
            .map_err(|error| Error::file("find", path.as_ref(), error))?;
        let locks = path.parent().unwrap_or(&path).join("locks");
        let connection = connection::open_writer(&path, &locks, options.max_bytes)?;
        let writer = Writer::start(connection)
            .map_err(|error| Error::file("start the thread that writes", &path, error))?;
        Ok(Self {
            readers: Readers::new(path.clone()),
            path,
            locks,
            writer: Arc::new(writer),
            redactor: Arc::new(options.redactor),
        })
    }

    /// Where the database is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Starts the journal of a run with its first event.
    ///
    /// # Errors
    /// If the event does not start a run, there is one of that id, or it cannot be stored.
    pub fn start(
        &self,
        new: NewRun,
        started: &Event,
        durability: Durability,
    ) -> Result<RunJournal, Error> {
        let started = self.redactor.event(started.clone())?;
        let Event::Started {
            run,
            agent,
            task,
            at,
            ..
        } = started.event()
        else {
            return Err(Error::NotStarted);
        };
        // Asked first for the sake of starts nobody waits for; the table itself has the last word.
        if self
            .readers
            .read(|connection| read::standing(connection, run))?
            .is_some()
        {
            return Err(Error::RunExists(run.clone()));
        }
        let lease = RunLease::take(&self.locks, run, FIRST_EPOCH)?;
        let payload = started.payload().to_owned();
        let excerpt: String = task.description.chars().take(TASK_EXCERPT).collect();
        let task_id = new.task_id.map(|id| self.redactor.text(&id));
        let (run, agent, at) = (run.clone(), agent.name().to_string(), at.as_microseconds());
        let work: Work = Box::new(move |connection| {
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
            let row = Row {
                run: &run,
                epoch: FIRST_EPOCH,
                seq: 1,
                at,
                payload: &payload,
            };
            insert(connection, &row)?;
            Ok(1)
        });
        let journal = self.journal(lease, 1);
        journal.begin(durability, work)?;
        Ok(journal)
    }

    /// Takes a run over whose owner is gone, or that waited for a person, to go on with it.
    ///
    /// # Errors
    /// If there is no such run, it has ended, or its owner is still there.
    pub fn take_over(&self, run: &RunId) -> Result<RunJournal, Error> {
        let check = || match self
            .readers
            .read(|connection| read::standing(connection, run))?
        {
            None => Err(Error::NoSuchRun(run.clone())),
            Some(state) if state == "ended" => Err(Error::Ended(run.clone())),
            Some(_) => Ok(()),
        };
        check()?;
        let mut lease = RunLease::take(&self.locks, run, 0)?;
        // The owner may have ended it while we waited for nothing but the lock.
        if let Err(error) = check() {
            lease.remove_file();
            return Err(error);
        }
        let id = run.clone();
        let epoch = self.writer.wait_for(Box::new(move |connection| {
            let mut update = connection.prepare_cached(
                r#"UPDATE runs SET epoch = epoch + 1, state = 'open', "end" = NULL, ended_at = NULL
                   WHERE run = ?1 AND state <> 'ended' RETURNING epoch"#,
            )?;
            let epoch: Option<i64> = update
                .query_row([id.as_str()], |row| row.get(0))
                .optional()?;
            epoch.ok_or_else(|| Error::Ended(id.clone()))
        }))?;
        lease.set_epoch(epoch);
        let last = self
            .readers
            .read(|connection| read::last_sequence_number(connection, run))?;
        Ok(self.journal(lease, last + 1))
    }

    /// An event without secrets, as it is stored.
    ///
    /// # Errors
    /// If it would not be an event without the secret.
    pub fn redacted(&self, event: Event) -> Result<RedactedEvent, Error> {
        self.redactor.event(event)
    }

    fn journal(&self, lease: RunLease, next: i64) -> RunJournal {
        RunJournal::new(
            lease,
            Arc::clone(&self.writer),
            Arc::clone(&self.redactor),
            next,
        )
    }
}

const FIRST_EPOCH: i64 = 1;
