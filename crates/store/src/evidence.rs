//! Evidence that rows are those that Windlass wrote: a MAC of every row that counts, by a key that is not in the
//! database.
//!
//! The MAC of an event covers the MAC of the event before, and the row of a run covers the last one and how many rows
//! belong to the run. So a row that was edited, moved, added, removed or reordered is noticed when it is read. Rows are
//! checked before they are signed again, so that no change is signed by accident.

mod adopt;
pub(crate) mod chain;
pub(crate) mod position;
pub(crate) mod verify;

use std::cell::Cell;
use std::ops::Deref;
use std::sync::Arc;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row};
use windlass_keys::{JournalKey, Tag};
use windlass_spec::RunId;

pub(crate) use adopt::establish;

use crate::error::Error;

/// How a store authenticates the rows of its database.
#[derive(Debug, Clone, Default)]
pub enum Authentication {
    /// Without a key: rows are neither signed nor checked. A database with signed rows can be read and not written.
    #[default]
    None,
    /// With this key. A database that has no signed rows gets them.
    Key(JournalKey),
    /// The key cannot be used, for this reason: lists can be read, journals cannot, and nothing is written.
    Unusable(String),
}

/// How the rows of an opened database are authenticated.
#[derive(Debug)]
pub(crate) enum Evidence {
    /// There are no MACs, and none are written.
    Off,
    /// There are MACs, and the caller has no key and checks nothing. Nothing is written.
    Unchecked,
    /// Rows are signed and checked.
    On(JournalKey),
    /// Rows cannot be checked, for this reason. Nothing is written.
    Refused(Error),
}

impl Evidence {
    /// Why nothing may be written, if that is so.
    pub(crate) fn refusal(&self) -> Option<Error> {
        match self {
            Self::Off | Self::On(_) => None,
            Self::Unchecked => Some(Error::KeyUnusable(
                "it was opened without the key that its rows are authenticated with".to_owned(),
            )),
            Self::Refused(error) => Some(error.clone()),
        }
    }

    /// Whether rows are signed.
    pub(crate) fn is_on(&self) -> bool {
        matches!(self, Self::On(_))
    }

    /// The MAC of a record, if rows are signed.
    pub(crate) fn sign(&self, record: &Record) -> Option<Tag> {
        match self {
            Self::On(key) => Some(key.authenticate(&record.0)),
            _ => None,
        }
    }

    /// Whether a MAC is that of a record. Without a key, every MAC is.
    pub(crate) fn is_authentic(&self, record: &Record, mac: Option<&[u8]>) -> Result<bool, Error> {
        match self {
            Self::Off | Self::Unchecked => Ok(true),
            Self::On(key) => Ok(mac.is_some_and(|mac| key.is_authentic(&record.0, mac))),
            Self::Refused(error) => Err(error.clone()),
        }
    }

    /// Refuses a record whose MAC does not fit.
    pub(crate) fn check(
        &self,
        record: &Record,
        mac: Option<&[u8]>,
        place: impl FnOnce() -> String,
    ) -> Result<(), Error> {
        match self.is_authentic(record, mac)? {
            true => Ok(()),
            false => Err(Error::altered(place(), foreign(mac.is_none()))),
        }
    }
}

/// What is wrong with a row whose MAC does not fit.
pub(crate) const fn foreign(is_missing: bool) -> &'static str {
    match is_missing {
        true => "it was written without the key of this installation",
        false => "it was changed or moved, or written with another key",
    }
}

/// A connection to the database, and how its rows are authenticated.
pub(crate) struct Database {
    connection: Connection,
    pub(crate) evidence: Arc<Evidence>,
    /// How many runs the present transaction has added, less those that it has removed.
    new_runs: Cell<i64>,
}

impl Deref for Database {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

impl Database {
    pub(crate) fn new(connection: Connection, evidence: Arc<Evidence>) -> Self {
        Self {
            connection,
            evidence,
            new_runs: Cell::new(0),
        }
    }

    /// The same connection, for a database whose rows cannot be checked.
    pub(crate) fn refused(self, error: Error) -> Self {
        Self::new(self.connection, Arc::new(Evidence::Refused(error)))
    }

    /// Notes that the present transaction adds a run.
    pub(crate) fn note_new_run(&self) {
        self.new_runs.set(self.new_runs.get() + 1);
    }

    /// Notes that the present transaction removes a run.
    pub(crate) fn note_removed_run(&self) {
        self.new_runs.set(self.new_runs.get() - 1);
    }

    /// How many runs were noted since the last call.
    pub(crate) fn take_new_runs(&self) -> i64 {
        self.new_runs.take()
    }
}

/// The bytes that a MAC is made of: what kind of record it is, then names and values. Absent values leave no bytes, so
/// that a column that is added later does not change the MACs of older rows.
pub(crate) struct Record(Vec<u8>);

impl Record {
    pub(crate) fn new(kind: &str) -> Self {
        let mut record = Self(Vec::with_capacity(512));
        record.sized(kind.as_bytes());
        record
    }

    pub(crate) fn text(mut self, name: &str, value: &str) -> Self {
        self.named(name, b't');
        self.sized(value.as_bytes());
        self
    }

    pub(crate) fn number(mut self, name: &str, value: i64) -> Self {
        self.named(name, b'i');
        self.0.extend(value.to_le_bytes());
        self
    }

    pub(crate) fn bytes(mut self, name: &str, value: &[u8]) -> Self {
        self.named(name, b'b');
        self.sized(value);
        self
    }

    fn value(self, name: &str, value: ValueRef<'_>) -> Self {
        match value {
            ValueRef::Null => self,
            ValueRef::Integer(number) => self.number(name, number),
            ValueRef::Real(number) => self.number(name, i64::from_le_bytes(number.to_le_bytes())),
            ValueRef::Text(text) => {
                let mut record = self;
                record.named(name, b't');
                record.sized(text);
                record
            }
            ValueRef::Blob(bytes) => self.bytes(name, bytes),
        }
    }

    fn named(&mut self, name: &str, kind: u8) {
        self.sized(name.as_bytes());
        self.0.push(kind);
    }

    fn sized(&mut self, bytes: &[u8]) {
        // Lengths in front: no two records have the same bytes.
        self.0.extend((bytes.len() as u64).to_le_bytes());
        self.0.extend(bytes);
    }
}

/// A table whose rows have a MAC in the column `mac`.
pub(crate) struct SealedTable {
    pub(crate) name: &'static str,
    /// What one row is, for messages.
    what: &'static str,
    /// The columns that the MAC covers.
    pub(crate) columns: &'static [&'static str],
    /// The columns that say which row it is, for messages.
    key: &'static [usize],
}

pub(crate) const RUNS: SealedTable = SealedTable {
    name: "runs",
    what: "the row of the run",
    columns: &[
        "run",
        "tenant",
        "principal",
        "agent",
        "task_id",
        "task",
        "started_at",
        "ended_at",
        r#""end""#,
        "state",
        "epoch",
        "event_count",
        "purged_at",
        "purged_events",
        "purged_bytes",
        "last_event",
        "head",
        "unsigned_events",
        "questions",
        "held_calls",
        "commands",
        "damage",
        "wake_at",
    ],
    key: &[0],
};

pub(crate) const APPROVALS: SealedTable = SealedTable {
    name: "approvals",
    what: "the request about the call",
    columns: &[
        "run",
        "call",
        "number",
        "tenant",
        "principal",
        "kind",
        "tool",
        "status",
        "asked_at",
        "expires_at",
        "settled_at",
        "body",
    ],
    key: &[1],
};

pub(crate) const HOLDS: SealedTable = SealedTable {
    name: "holds",
    what: "the hold of the call",
    columns: &[
        "run",
        "call",
        "tenant",
        "principal",
        "tool",
        "status",
        "held_at",
        "due_at",
        "body",
    ],
    key: &[1],
};

/// A purge empties the body of a command, so the MAC covers its digest.
pub(crate) const COMMANDS: SealedTable = SealedTable {
    name: "mailbox",
    what: "the inbox command",
    columns: &[
        "id",
        "run",
        "tenant",
        "principal",
        "kind",
        "call",
        "number",
        "digest",
        "sent_by",
        "sent_at",
        "taken_at",
        "taken_seq",
    ],
    key: &[0],
};

pub(crate) const STANDING: SealedTable = SealedTable {
    name: "standing_approvals",
    what: "the standing approval",
    columns: &[
        "id",
        "tenant",
        "principal",
        "tool",
        "granted_at",
        "revoked_at",
        "body",
    ],
    key: &[0],
};

pub(crate) const TOKENS: SealedTable = SealedTable {
    name: "tokens",
    what: "the access token",
    columns: &[
        "id",
        "digest",
        "tenant",
        "principal",
        "name",
        "scopes",
        "created_by",
        "created_at",
        "expires_at",
        "revoked_at",
        "revoked_by",
    ],
    key: &[0],
};

pub(crate) const STOPS: SealedTable = SealedTable {
    name: "stops",
    what: "the list of what is stopped",
    columns: &["only_row", "revision", "body"],
    key: &[],
};

pub(crate) const LEGAL_HOLDS: SealedTable = SealedTable {
    name: "legal_holds",
    what: "the legal hold",
    columns: &[
        "number",
        "tenant",
        "run",
        "reason",
        "placed_by",
        "placed_at",
        "lifted_by",
        "lifted_at",
        "lift_reason",
    ],
    key: &[2],
};

impl SealedTable {
    /// Selects the columns that the MAC covers, in order, then the MAC and the number of the row.
    pub(crate) fn select(&self) -> String {
        let (columns, name) = (self.columns.join(", "), self.name);
        format!("SELECT {columns}, mac, rowid FROM {name} ")
    }

    /// The record of a row that was selected with [`SealedTable::select`], with other values in some columns.
    fn record(&self, row: &Row<'_>, changed: &[(&str, ValueRef<'_>)]) -> Result<Record, Error> {
        let mut record = Record::new(self.name);
        for (index, name) in self.columns.iter().enumerate() {
            let other = changed.iter().find(|(changed, _)| changed == name);
            let value = match other {
                Some((_, value)) => *value,
                None => row.get_ref(index)?,
            };
            record = record.value(name, value);
        }
        Ok(record)
    }

    /// Checks the MAC of a row that was selected with [`SealedTable::select`].
    pub(crate) fn check(&self, evidence: &Evidence, row: &Row<'_>) -> Result<(), Error> {
        match evidence {
            Evidence::Off | Evidence::Unchecked => Ok(()),
            Evidence::On(_) | Evidence::Refused(_) => {
                let record = self.record(row, &[])?;
                let mac = blob(row, self.columns.len())?;
                evidence.check(&record, mac, || self.place(row))
            }
        }
    }

    /// Which row it is, for messages.
    pub(crate) fn place(&self, row: &Row<'_>) -> String {
        let key = self.key.iter().map(|index| match row.get_ref(*index) {
            Ok(ValueRef::Text(text)) => String::from_utf8_lossy(text).into_owned(),
            Ok(ValueRef::Integer(number)) => number.to_string(),
            _ => "?".to_owned(),
        });
        let key: Vec<String> = key.collect();
        format!("{} `{}`", self.what, key.join(" "))
    }

    /// Signs a row as it is now.
    pub(crate) fn seal(&self, database: &Database, row: i64) -> Result<(), Error> {
        if !database.evidence.is_on() {
            return Ok(());
        }
        let mut select = database.prepare_cached(&format!("{} WHERE rowid = ?1", self.select()))?;
        let mut rows = select.query([row])?;
        let Some(found) = rows.next()? else {
            return Ok(());
        };
        let mac = database.evidence.sign(&self.record(found, &[])?);
        drop(rows);
        let name = self.name;
        let mut update =
            database.prepare_cached(&format!("UPDATE {name} SET mac = ?2 WHERE rowid = ?1"))?;
        update.execute((row, mac))?;
        Ok(())
    }
}

/// Checks the row of a run, and returns its number. `None` if there is none.
pub(crate) fn check_run(database: &Database, run: &RunId) -> Result<Option<i64>, Error> {
    let mut select = database.prepare_cached(&format!("{} WHERE run = ?1", RUNS.select()))?;
    let mut rows = select.query([run.as_str()])?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    RUNS.check(&database.evidence, row)?;
    Ok(Some(row.get(RUNS.columns.len() + 1)?))
}

/// Changes the row of a run: checks it before and signs it afterwards.
pub(crate) fn change_run<T>(
    database: &Database,
    run: &RunId,
    change: impl FnOnce() -> Result<T, Error>,
) -> Result<T, Error> {
    let row = check_run(database, run)?;
    let changed = change()?;
    if let Some(row) = row {
        RUNS.seal(database, row)?;
    }
    Ok(changed)
}

/// What belongs to a run besides its events, each counted in a column of its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Belonging {
    Question,
    HeldCall,
    Command,
}

impl Belonging {
    pub(crate) const ALL: [Self; 3] = [Self::Question, Self::HeldCall, Self::Command];

    pub(crate) const fn column(self) -> &'static str {
        match self {
            Self::Question => "questions",
            Self::HeldCall => "held_calls",
            Self::Command => "commands",
        }
    }

    pub(crate) const fn table(self) -> &'static SealedTable {
        match self {
            Self::Question => &APPROVALS,
            Self::HeldCall => &HOLDS,
            Self::Command => &COMMANDS,
        }
    }
}

/// Signs the row that was just inserted for a run, and counts it.
pub(crate) fn seal_new(
    database: &Database,
    run: &RunId,
    belonging: Belonging,
) -> Result<(), Error> {
    if !database.evidence.is_on() {
        return Ok(());
    }
    belonging
        .table()
        .seal(database, database.last_insert_rowid())?;
    change_run(database, run, || {
        let column = belonging.column();
        let mut update = database.prepare_cached(&format!(
            "UPDATE runs SET {column} = {column} + 1 WHERE run = ?1"
        ))?;
        update.execute([run.as_str()])?;
        Ok(())
    })
}

/// The damage that a run may have suffered, if there is any.
pub(crate) fn damage(database: &Database, run: &RunId) -> Result<Option<String>, Error> {
    let mut select = database.prepare_cached("SELECT damage FROM runs WHERE run = ?1")?;
    let damage: Option<Option<String>> = select
        .query_row([run.as_str()], |row| row.get(0))
        .optional()?;
    Ok(damage.flatten())
}

/// The bytes of a column; `None` if it has none.
pub(crate) fn blob<'r>(row: &'r Row<'_>, column: usize) -> Result<Option<&'r [u8]>, Error> {
    Ok(match row.get_ref(column)? {
        ValueRef::Blob(bytes) => Some(bytes),
        _ => None,
    })
}
