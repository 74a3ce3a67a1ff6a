//! The chain of a run's events: how one is signed, and how they are checked in their order.

use std::sync::LazyLock;

use rusqlite::types::ValueRef;
use rusqlite::{OptionalExtension, Row};
use windlass_keys::{Tag, sha256};
use windlass_spec::RunId;

use super::{Database, Evidence, RUNS, Record, blob, foreign};
use crate::error::Error;
use crate::journal::{EventRow, kind, refusal_reason};

/// What the first event follows.
const BEGINNING: Tag = [0; 32];

/// The events of a run in order, those that were purged without their payload.
pub(crate) const EVENTS: &str =
    "SELECT seq, kind, at, tenant, principal, digest, mac, payload FROM events
     WHERE run = ?1 AND seq >= ?2
     UNION ALL
     SELECT seq, kind, at, tenant, principal, digest, mac, NULL FROM purged_events
     WHERE run = ?1 AND seq >= ?2
     ORDER BY seq";

static SELECT_RUN: LazyLock<String> = LazyLock::new(|| format!("{} WHERE run = ?1", RUNS.select()));

/// Appends an event to the chain of its run, if its sender still owns the run.
pub(crate) fn append(database: &Database, event: &EventRow<'_>) -> Result<(), Error> {
    let kind = kind(event.payload)?;
    let digest = sha256(event.payload.as_bytes());
    let mut select = database.prepare_cached(&SELECT_RUN)?;
    let mut rows = select.query([event.run.as_str()])?;
    let owned = match rows.next()? {
        Some(row) => {
            let owner = RunColumns::of(row)?;
            (owner.epoch == event.epoch && owner.state == "open").then_some((row, owner))
        }
        None => None,
    };
    let Some((row, columns)) = owned else {
        drop(rows);
        return Err(refusal_reason(database, event.run, event.epoch)?);
    };
    RUNS.check(&database.evidence, row)?;
    if columns.last_event != event.seq - 1 {
        let reason = format!(
            "it has {} events instead of {}",
            columns.last_event,
            event.seq - 1
        );
        return Err(Error::altered(
            format!("the journal of the run `{}`", event.run),
            reason,
        ));
    }
    let record = event_record(&EventColumns {
        run: event.run.as_str(),
        seq: event.seq,
        kind,
        at: event.at,
        tenant: columns.tenant,
        principal: columns.principal,
        digest: &digest,
        previous: columns.head.unwrap_or(&BEGINNING),
    });
    let mac = database.evidence.sign(&record);
    let head = mac
        .as_ref()
        .map_or(ValueRef::Null, |mac| ValueRef::Blob(mac));
    let changed = [("last_event", ValueRef::Integer(event.seq)), ("head", head)];
    let run_mac = database.evidence.sign(&RUNS.record(row, &changed)?);
    let mut insert = database.prepare_cached(
        "INSERT INTO events (run, seq, kind, at, payload, tenant, principal, digest, mac)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?;
    insert.execute(rusqlite::params![
        event.run.as_str(),
        event.seq,
        kind,
        event.at,
        event.payload,
        columns.tenant,
        columns.principal,
        digest,
        mac
    ])?;
    let number = columns.number;
    drop(rows);
    let mut update = database
        .prepare_cached("UPDATE runs SET last_event = ?2, head = ?3, mac = ?4 WHERE rowid = ?1")?;
    update.execute((number, event.seq, mac, run_mac))?;
    Ok(())
}

/// The columns of a run's row that its chain needs.
struct RunColumns<'r> {
    tenant: &'r str,
    principal: &'r str,
    state: &'r str,
    epoch: i64,
    last_event: i64,
    head: Option<&'r [u8]>,
    unsigned_events: Option<i64>,
    number: i64,
}

impl<'r> RunColumns<'r> {
    /// The columns of a row that was selected with [`super::SealedTable::select`].
    fn of(row: &'r Row<'_>) -> Result<Self, Error> {
        let place = |name: &str| RUNS.columns.iter().position(|column| *column == name);
        let index = |name: &str| place(name).unwrap_or(usize::MAX);
        let text = |name: &str| -> Result<&'r str, Error> {
            Ok(row
                .get_ref(index(name))?
                .as_str()
                .map_err(rusqlite::Error::from)?)
        };
        Ok(Self {
            tenant: text("tenant")?,
            principal: text("principal")?,
            state: text("state")?,
            epoch: row.get(index("epoch"))?,
            last_event: row.get(index("last_event"))?,
            head: blob(row, index("head"))?,
            unsigned_events: row.get(index("unsigned_events"))?,
            number: row.get(RUNS.columns.len() + 1)?,
        })
    }
}

/// What the MAC of an event covers.
pub(super) struct EventColumns<'e> {
    pub(super) run: &'e str,
    pub(super) seq: i64,
    pub(super) kind: &'e str,
    pub(super) at: i64,
    pub(super) tenant: &'e str,
    pub(super) principal: &'e str,
    pub(super) digest: &'e [u8],
    pub(super) previous: &'e [u8],
}

pub(super) fn event_record(event: &EventColumns<'_>) -> Record {
    Record::new("event")
        .text("run", event.run)
        .number("seq", event.seq)
        .text("kind", event.kind)
        .number("at", event.at)
        .text("tenant", event.tenant)
        .text("principal", event.principal)
        .bytes("digest", event.digest)
        .bytes("previous", event.previous)
}

/// Checks the events of a run, from one on and in order.
pub(crate) struct Chain<'d> {
    evidence: &'d Evidence,
    run: RunId,
    tenant: String,
    principal: String,
    /// The MAC of the event before the next one.
    previous: Vec<u8>,
    /// The number of the next event.
    pub(crate) next: i64,
    pub(crate) last: i64,
    head: Option<Vec<u8>>,
    pub(crate) unsigned_events: Option<i64>,
}

/// An event that is not the one that was stored, and why.
pub(crate) struct Break {
    pub(crate) seq: i64,
    pub(crate) reason: String,
}

impl<'d> Chain<'d> {
    /// The chain of a run from the event with this number on. `None` if there is no such run.
    pub(crate) fn from(
        database: &'d Database,
        run: &RunId,
        first: i64,
    ) -> Result<Option<Self>, Error> {
        let mut select = database.prepare_cached(&SELECT_RUN)?;
        let mut rows = select.query([run.as_str()])?;
        let Some(row) = rows.next()? else {
            return Ok(None);
        };
        RUNS.check(&database.evidence, row)?;
        let columns = RunColumns::of(row)?;
        let mut chain = Self {
            evidence: &database.evidence,
            run: run.clone(),
            tenant: columns.tenant.to_owned(),
            principal: columns.principal.to_owned(),
            previous: BEGINNING.to_vec(),
            next: first.max(1),
            last: columns.last_event,
            head: columns.head.map(<[u8]>::to_vec),
            unsigned_events: columns.unsigned_events,
        };
        if chain.next > 1 && chain.is_checked() {
            chain.previous = mac_of(database, run, chain.next - 1)?.unwrap_or_default();
        }
        Ok(Some(chain))
    }

    /// Whether the events have MACs to check. Those of a run that ended before there were any have none, which the MAC
    /// of its row covers.
    pub(crate) fn is_checked(&self) -> bool {
        let is_unsigned = self.head.is_none() && self.unsigned_events.is_some();
        self.evidence.is_on() && !is_unsigned
    }

    /// Checks the next row of [`EVENTS`]. Returns what is wrong with it, and continues after it.
    pub(crate) fn take(&mut self, row: &Row<'_>) -> Result<Option<Break>, Error> {
        if !self.is_checked() {
            return Ok(None);
        }
        let seq: i64 = row.get(0)?;
        let expected = self.next;
        self.next = seq + 1;
        let mac = blob(row, 6)?;
        let reason = self.reason(row, seq, expected, mac)?;
        self.previous = mac.unwrap_or_default().to_vec();
        Ok(reason.map(|(seq, reason)| Break { seq, reason }))
    }

    fn reason(
        &self,
        row: &Row<'_>,
        seq: i64,
        expected: i64,
        mac: Option<&[u8]>,
    ) -> Result<Option<(i64, String)>, Error> {
        if seq > expected {
            return Ok(Some((expected, "it is missing".to_owned())));
        }
        if seq < expected {
            return Ok(Some((seq, "it is stored twice".to_owned())));
        }
        if seq > self.last {
            return Ok(Some((seq, "it was added".to_owned())));
        }
        let text = |column: usize| row.get_ref(column).map(|value| value.as_str().ok());
        let (kind, tenant, principal) = (text(1)?, text(3)?, text(4)?);
        let digest = blob(row, 5)?.unwrap_or_default();
        if let ValueRef::Text(payload) = row.get_ref(7)?
            && sha256(payload) != digest
        {
            return Ok(Some((seq, "its content was changed".to_owned())));
        }
        let is_of_run =
            tenant == Some(self.tenant.as_str()) && principal == Some(self.principal.as_str());
        let record = event_record(&EventColumns {
            run: self.run.as_str(),
            seq,
            kind: kind.unwrap_or_default(),
            at: row.get(2)?,
            tenant: tenant.unwrap_or_default(),
            principal: principal.unwrap_or_default(),
            digest,
            previous: &self.previous,
        });
        match is_of_run && self.evidence.is_authentic(&record, mac)? {
            true => Ok(None),
            false => Ok(Some((seq, foreign(mac.is_none()).to_owned()))),
        }
    }

    /// What is wrong with the end, after all events were taken.
    pub(crate) fn end(&self) -> Option<Break> {
        let is_whole = self.next > self.last;
        let is_known = self.head.as_ref() == Some(&self.previous) || self.next > self.last + 1;
        match self.is_checked() {
            true if !is_whole => Some(Break {
                seq: self.next,
                reason: "it is missing".to_owned(),
            }),
            true if !is_known => Some(Break {
                seq: self.last,
                reason: "it is not the event that was stored last".to_owned(),
            }),
            _ => None,
        }
    }

    /// The error for a break.
    pub(crate) fn error(&self, found: &Break) -> Error {
        Error::altered(
            format!("event {} of the run `{}`", found.seq, self.run),
            &found.reason,
        )
    }
}

/// The MAC of an event.
fn mac_of(database: &Database, run: &RunId, seq: i64) -> Result<Option<Vec<u8>>, Error> {
    let mut select = database.prepare_cached(
        "SELECT mac FROM events WHERE run = ?1 AND seq = ?2
         UNION ALL SELECT mac FROM purged_events WHERE run = ?1 AND seq = ?2",
    )?;
    let mac: Option<Option<Vec<u8>>> = select
        .query_row((run.as_str(), seq), |row| row.get(0))
        .optional()?;
    Ok(mac.flatten())
}

/// Signs the events of a run that have no MACs, and returns the MAC of the last one.
pub(super) fn sign_all(database: &Database, run: &RunId) -> Result<Tag, Error> {
    let mut select = database.prepare_cached(
        "SELECT seq, kind, at, tenant, principal, payload, rowid FROM events WHERE run = ?1 ORDER BY seq",
    )?;
    let mut update =
        database.prepare_cached("UPDATE events SET digest = ?2, mac = ?3 WHERE rowid = ?1")?;
    let mut rows = select.query([run.as_str()])?;
    let mut previous = BEGINNING;
    let mut signed = Vec::new();
    while let Some(row) = rows.next()? {
        let text = |column: usize| -> Result<&str, Error> {
            Ok(row
                .get_ref(column)?
                .as_str()
                .map_err(rusqlite::Error::from)?)
        };
        let digest = sha256(text(5)?.as_bytes());
        let record = event_record(&EventColumns {
            run: run.as_str(),
            seq: row.get(0)?,
            kind: text(1)?,
            at: row.get(2)?,
            tenant: text(3)?,
            principal: text(4)?,
            digest: &digest,
            previous: &previous,
        });
        previous = database.evidence.sign(&record).unwrap_or(BEGINNING);
        signed.push((row.get::<_, i64>(6)?, digest, previous));
    }
    for (row, digest, mac) in signed {
        update.execute((row, digest, mac))?;
    }
    Ok(previous)
}
