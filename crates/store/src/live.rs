//! What is new in all runs of a tenant, for those who follow them.

use rusqlite::{Connection, params};
use windlass_spec::RunId;

use crate::error::Error;
use crate::read::{count, run_id};
use crate::rows;
use crate::store::Store;

/// Where an event is among all events of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventPlace {
    /// Its number among all events.
    pub position: u64,
    /// Its run.
    pub run: RunId,
    /// Its number in the run.
    pub seq: u64,
}

/// The end of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunEnding {
    /// Its number among all ends.
    pub number: u64,
    /// The run.
    pub run: RunId,
}

/// The newest event and the newest end of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewestPlace {
    /// The position of the event.
    pub event: u64,
    /// The number of the end.
    pub end: u64,
}

/// Detects whether the database was written to since the last check. A check reads the header of the
/// write-ahead log and no table, so a process can check many times a second.
#[derive(Debug)]
pub struct ChangeWatch {
    /// A separate connection: `data_version` is counted per connection.
    connection: Connection,
    version: i64,
}

impl ChangeWatch {
    /// Whether something was committed since the last check, or since the watch was created.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn has_changed(&mut self) -> Result<bool, Error> {
        let version = data_version(&self.connection)?;
        let before = std::mem::replace(&mut self.version, version);
        Ok(before != version)
    }
}

fn data_version(connection: &Connection) -> Result<i64, Error> {
    Ok(connection.pragma_query_value(None, "data_version", |row| row.get(0))?)
}

impl Store {
    /// A watch that detects changes of the database by this and other processes.
    ///
    /// # Errors
    /// If another connection to the database cannot be opened.
    pub fn watch_changes(&self) -> Result<ChangeWatch, Error> {
        let connection = self.readers.connect()?;
        let version = data_version(&connection)?;
        Ok(ChangeWatch {
            connection,
            version,
        })
    }

    /// The events of a tenant from a position on, at most `limit`.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn event_places(
        &self,
        tenant: &str,
        from: u64,
        limit: u32,
    ) -> Result<Vec<EventPlace>, Error> {
        self.readers.read(|database| {
            let mut select = database.prepare_cached(
                "SELECT rowid, run, seq FROM events WHERE rowid >= ?1 AND tenant = ?2
                 ORDER BY rowid LIMIT ?3",
            )?;
            let from = i64::try_from(from).unwrap_or(i64::MAX);
            rows::all(select.query(params![from, tenant, limit])?, |row| {
                Ok(EventPlace {
                    position: count(row.get(0)?),
                    run: run_id(row.get(1)?)?,
                    seq: count(row.get(2)?),
                })
            })
        })
    }

    /// The ends of a tenant's runs after a number, at most `limit`.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn run_endings(
        &self,
        tenant: &str,
        after: u64,
        limit: u32,
    ) -> Result<Vec<RunEnding>, Error> {
        self.readers.read(|database| {
            let mut select = database.prepare_cached(
                "SELECT number, run FROM run_ends WHERE number > ?1 AND tenant = ?2
                 ORDER BY number LIMIT ?3",
            )?;
            let after = i64::try_from(after).unwrap_or(i64::MAX);
            rows::all(select.query(params![after, tenant, limit])?, |row| {
                Ok(RunEnding {
                    number: count(row.get(0)?),
                    run: run_id(row.get(1)?)?,
                })
            })
        })
    }

    /// The newest event and the newest end of all tenants, from which new ones are counted.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn newest_place(&self) -> Result<NewestPlace, Error> {
        self.readers.read(|database| {
            let newest = |query: &str| -> Result<u64, Error> {
                let mut select = database.prepare_cached(query)?;
                let newest: Option<i64> = select.query_row([], |row| row.get(0))?;
                Ok(count(newest.unwrap_or(0)))
            };
            Ok(NewestPlace {
                event: newest("SELECT max(rowid) FROM events")?,
                end: newest("SELECT max(number) FROM run_ends")?,
            })
        })
    }
}
