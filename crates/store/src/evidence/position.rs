//! How far the database has come: a counter of its transactions, which a small file next to the database repeats.
//!
//! A damaged, cut or deleted write-ahead log, or an older copy of the database, loses transactions without a trace in the
//! database itself. Then the counter is behind the file. The file is written after every commit and synced only with the
//! start of a call that may have an effect, so nothing that such a call depends on is lost unnoticed.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use tracing::warn;

use super::{Database, Evidence, RUNS, Record, blob, check_run};
use crate::connection::open_private;
use crate::error::Error;
use crate::read::run_id;

/// What the file begins with.
const MAGIC: &[u8; 8] = b"WNDLPOS1";

/// The length of the file in bytes: what it begins with, the number, the state, and the MAC.
const LENGTH: usize = 8 + 8 + 8 + 32;

/// The counter in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    number: i64,
    /// How many runs there are.
    pub(crate) runs: i64,
}

impl Position {
    fn record(self) -> Record {
        Record::new("position")
            .number("number", self.number)
            .number("runs", self.runs)
    }

    /// The counter, checked.
    pub(crate) fn read(database: &Database) -> Result<Self, Error> {
        let mut select = database.prepare_cached("SELECT number, runs, mac FROM log_position")?;
        let mut rows = select.query([])?;
        let place = || "the position of the journal".to_owned();
        let Some(row) = rows.next()? else {
            return Err(Error::altered(place(), "it is missing"));
        };
        let position = Self {
            number: row.get(0)?,
            runs: row.get(1)?,
        };
        let mac = blob(row, 2)?;
        database.evidence.check(&position.record(), mac, place)?;
        Ok(position)
    }

    fn store(self, database: &Database) -> Result<(), Error> {
        let mac = database.evidence.sign(&self.record());
        let mut update = database.prepare_cached(
            "INSERT OR REPLACE INTO log_position (only_row, number, runs, mac)
             VALUES (1, ?1, ?2, ?3)",
        )?;
        update.execute((self.number, self.runs, mac))?;
        Ok(())
    }
}

/// Begins to count.
pub(super) fn begin(database: &Database) -> Result<(), Error> {
    let runs = database.query_row("SELECT count(*) FROM runs", [], |row| row.get(0))?;
    Position { number: 1, runs }.store(database)
}

/// Counts the present transaction, and returns its number. `None` if nothing is counted.
pub(crate) fn advance(database: &Database) -> Result<Option<i64>, Error> {
    let new_runs = database.take_new_runs();
    if !database.evidence.is_on() {
        return Ok(None);
    }
    let before = Position::read(database)?;
    let position = Position {
        number: before.number + 1,
        runs: before.runs + new_runs,
    };
    position.store(database)?;
    Ok(Some(position.number))
}

/// The state of the database when the file was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LogState {
    /// The log must be there.
    InUse,
    /// The writer was about to close the database, which may remove the log.
    Closed,
}

/// The file next to the database.
pub(crate) struct PositionFile {
    file: File,
    path: PathBuf,
}

impl PositionFile {
    pub(crate) fn open(database: &Path) -> Result<Self, Error> {
        let mut path = database.as_os_str().to_owned();
        path.push("-position");
        let path = PathBuf::from(path);
        Ok(Self {
            file: open_private(&path)?,
            path,
        })
    }

    /// What the file says. `None` if it says nothing that the key of the journal authenticates.
    fn read(&self, evidence: &Evidence) -> Result<Option<(i64, LogState)>, Error> {
        let mut bytes = [0; LENGTH];
        match self.file.read_exact_at(&mut bytes, 0) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(Error::file("read", &self.path, error)),
        }
        let (content, mac) = bytes.split_at(LENGTH - 32);
        let [magic, number, state] = [0, 8, 16].map(|start| {
            let mut part = [0; 8];
            part.copy_from_slice(&content[start..start + 8]);
            part
        });
        let is_authentic = evidence.is_authentic(&file_record(content), Some(mac))?;
        let state = match state[0] {
            0 => LogState::InUse,
            _ => LogState::Closed,
        };
        let is_known = magic == *MAGIC && is_authentic;
        Ok(is_known.then_some((i64::from_le_bytes(number), state)))
    }

    fn write(&self, evidence: &Evidence, number: i64, state: LogState) -> Result<(), Error> {
        let mut bytes = Vec::with_capacity(LENGTH);
        bytes.extend(MAGIC);
        bytes.extend(number.to_le_bytes());
        bytes.extend([u8::from(state == LogState::Closed), 0, 0, 0, 0, 0, 0, 0]);
        let mac = evidence.sign(&file_record(&bytes)).unwrap_or_default();
        bytes.extend(mac);
        let written = self.file.write_all_at(&bytes, 0);
        written.map_err(|error| Error::file("write", &self.path, error))
    }

    /// Records a committed transaction. `is_synced` waits until the file is on the disk.
    pub(crate) fn record(
        &self,
        evidence: &Evidence,
        number: i64,
        is_synced: bool,
    ) -> Result<(), Error> {
        self.locked(|| {
            // Another process may have committed a later one.
            let last = self.read(evidence)?.map_or(0, |(last, _)| last);
            self.write(evidence, number.max(last), LogState::InUse)
        })?;
        match is_synced {
            true => {
                let synced = self.file.sync_data();
                synced.map_err(|error| Error::file("sync", &self.path, error))
            }
            false => Ok(()),
        }
    }

    /// Records that the database is about to be closed.
    pub(crate) fn record_closing(&self, evidence: &Evidence) -> Result<(), Error> {
        self.locked(|| match self.read(evidence)? {
            Some((number, LogState::InUse)) => self.write(evidence, number, LogState::Closed),
            _ => Ok(()),
        })
    }

    fn locked<T>(&self, work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        let failed = |error| Error::file("lock", &self.path, error);
        self.file.lock().map_err(failed)?;
        let done = work();
        self.file.unlock().map_err(failed)?;
        done
    }
}

fn file_record(content: &[u8]) -> Record {
    Record::new("position file").bytes("content", content)
}

/// Compares the database with the file. If it has lost transactions, the runs that have not ended are marked, so that
/// their calls that may have been made before need approval. `has_log` is whether there was a log before the database
/// was opened, and `is_new` whether its evidence has just begun.
pub(crate) fn examine(
    database: &Database,
    file: &PositionFile,
    has_log: bool,
    is_new: bool,
) -> Result<(), Error> {
    let evidence = &database.evidence;
    if !evidence.is_on() {
        return Ok(());
    }
    // In this order: another process may be writing, and it counts in the database first.
    let recorded = file.read(evidence)?;
    let position = Position::read(database)?;
    let damage = match recorded {
        _ if is_new => None,
        None => Some("the record of its last transaction is missing".to_owned()),
        Some((last, _)) if last > position.number => {
            let lost = last - position.number;
            Some(format!("{lost} of its transactions are missing"))
        }
        Some((_, LogState::InUse)) if !has_log => Some("its write-ahead log is missing".to_owned()),
        Some(_) => return Ok(()),
    };
    if let Some(damage) = damage {
        warn!(damage, "journal_damaged");
        mark_open_runs(database, &damage)?;
    }
    // Only now: until the runs are marked, each opening must find the damage.
    file.locked(|| file.write(evidence, position.number, LogState::InUse))?;
    let synced = file.file.sync_data();
    synced.map_err(|error| Error::file("sync", &file.path, error))
}

/// Marks the runs that have not ended, in one transaction.
fn mark_open_runs(database: &Database, damage: &str) -> Result<(), Error> {
    database.execute_batch("BEGIN IMMEDIATE")?;
    let marked = mark_each(database, damage);
    if marked.is_err() && !database.is_autocommit() {
        let _ = database.execute_batch("ROLLBACK");
    }
    marked?;
    Ok(database.execute_batch("COMMIT")?)
}

/// Marks the runs that have not ended. One whose row was changed is left alone: it is not resumed.
fn mark_each(database: &Database, damage: &str) -> Result<(), Error> {
    let mut select = database.prepare("SELECT run FROM runs WHERE state <> 'ended'")?;
    let runs = select.query_map([], |row| row.get(0))?;
    let runs: Vec<String> = runs.collect::<Result<_, _>>()?;
    let mut update = database.prepare("UPDATE runs SET damage = ?2 WHERE rowid = ?1")?;
    for run in runs {
        if let Ok(Some(row)) = check_run(database, &run_id(run)?) {
            update.execute((row, damage))?;
            RUNS.seal(database, row)?;
        }
    }
    Ok(())
}
