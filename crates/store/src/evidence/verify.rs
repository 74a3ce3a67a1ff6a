//! Checks everything that is stored about runs, and reports all that is wrong.

use rusqlite::OptionalExtension;
use windlass_keys::sha256;
use windlass_spec::RunId;

use super::chain::{Chain, EVENTS};
use super::position::Position;
use super::{Belonging, Database, SealedTable, check_run};
use crate::admin;
use crate::error::Error;
use crate::legal_hold;
use crate::read::count;
use crate::store::Store;

/// What the check of a run found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunVerification {
    /// The run.
    pub run: RunId,
    /// Its tenant.
    pub tenant: String,
    /// How many events it has, with those that were purged.
    pub events: u64,
    /// How many of them only their digest is left of.
    pub purged_events: u64,
    /// Whether its rows are authenticated.
    pub signature: SignatureState,
    /// Why its last events may be missing, if they may.
    pub damage: Option<String>,
    /// What was changed. Empty if nothing was.
    pub alterations: Vec<Alteration>,
}

/// Whether the rows of a run are authenticated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignatureState {
    /// All are.
    Signed,
    /// The events up to this number were stored before there were MACs. They were signed later, as they were then.
    SignedFrom(u64),
    /// The run ended before there were MACs: its events have none.
    Unsigned,
}

/// Something that was changed outside Windlass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alteration {
    /// What was changed.
    pub place: String,
    /// The number of the event, if it is one.
    pub event: Option<u64>,
    /// What is wrong with it.
    pub reason: String,
}

impl Alteration {
    /// The alteration that an error reports; the error itself if it reports another problem.
    fn of(error: Error) -> Result<Self, Error> {
        match error {
            Error::Altered { place, reason } => Ok(Self {
                place,
                event: None,
                reason,
            }),
            other => Err(other),
        }
    }
}

impl Store {
    /// Checks a run: its row, its events, its questions, holds and inbox commands. One snapshot is checked.
    ///
    /// # Errors
    /// If there is no such run, there is no usable key, or it cannot be read. What was changed is in the result.
    pub fn verify_run(&self, run: &RunId) -> Result<RunVerification, Error> {
        self.readers.read(|database| {
            let transaction = database.unchecked_transaction()?;
            let verified = verify_run(database, run);
            drop(transaction);
            verified
        })
    }

    /// Checks what belongs to no run: standing approvals, the record of changes by administrators, the number of runs,
    /// and rows of runs that do not exist.
    ///
    /// # Errors
    /// If there is no usable key, or it cannot be read. What was changed is in the result.
    pub fn verify_rest(&self) -> Result<Vec<Alteration>, Error> {
        self.readers.read(|database| {
            let transaction = database.unchecked_transaction()?;
            let verified = verify_rest(database);
            drop(transaction);
            verified
        })
    }

    /// Refuses a run that was changed outside Windlass.
    pub(crate) fn check_unaltered(&self, run: &RunId) -> Result<(), Error> {
        self.readers.read(|database| {
            if !database.evidence.is_on() {
                return match database.evidence.refusal() {
                    Some(error) => Err(error),
                    None => Ok(()),
                };
            }
            let transaction = database.unchecked_transaction()?;
            let verified = verify_run(database, run)?;
            drop(transaction);
            if verified.signature == SignatureState::Unsigned {
                let place = format!("the journal of the run `{run}`");
                return Err(Error::altered(place, "its events are not signed"));
            }
            match verified.alterations.into_iter().next() {
                None => Ok(()),
                Some(found) => Err(Error::altered(found.place, found.reason)),
            }
        })
    }
}

fn verify_run(database: &Database, run: &RunId) -> Result<RunVerification, Error> {
    if let Some(error) = database.evidence.refusal() {
        return Err(error);
    }
    let summary = RunColumns::read(database, run)?;
    let mut verification = RunVerification {
        run: run.clone(),
        tenant: summary.tenant,
        events: count(summary.last_event),
        purged_events: 0,
        signature: match summary.unsigned_events {
            _ if !database.evidence.is_on() => SignatureState::Unsigned,
            Some(_) if !summary.has_head => SignatureState::Unsigned,
            Some(last) => SignatureState::SignedFrom(count(last)),
            None => SignatureState::Signed,
        },
        damage: summary.damage,
        alterations: Vec::new(),
    };
    let alterations = &mut verification.alterations;
    if let Err(error) = check_run(database, run) {
        // Nothing else can be compared with a row that was changed.
        alterations.push(Alteration::of(error)?);
        return Ok(verification);
    }
    let chain = Chain::from(database, run, 1)?;
    let mut chain = chain.ok_or_else(|| Error::NoSuchRun(run.clone()))?;
    let mut select = database.prepare_cached(EVENTS)?;
    let mut rows = select.query((run.as_str(), 1))?;
    let altered = |chain: &Chain<'_>, found| match chain.error(&found) {
        Error::Altered { place, reason } => Some(Alteration {
            place,
            event: Some(count(found.seq)),
            reason,
        }),
        _ => None,
    };
    while let Some(row) = rows.next()? {
        if let Some(found) = chain.take(row)? {
            alterations.extend(altered(&chain, found));
        }
        verification.purged_events += u64::from(row.get_ref(7)? == rusqlite::types::ValueRef::Null);
    }
    if let Some(found) = chain.end() {
        alterations.extend(altered(&chain, found));
    }
    for belonging in Belonging::ALL {
        let expected = count_of(database, run, belonging)?;
        let (found, wrong) = check_rows(database, belonging.table(), Some(run))?;
        alterations.extend(wrong);
        if let Some(expected) = expected
            && found != expected
        {
            alterations.push(Alteration {
                place: format!("the {} of the run `{run}`", describe(belonging)),
                event: None,
                reason: format!("{found} are stored, and {expected} were written"),
            });
        }
    }
    Ok(verification)
}

const fn describe(belonging: Belonging) -> &'static str {
    match belonging {
        Belonging::Question => "requests",
        Belonging::HeldCall => "held calls",
        Belonging::Command => "inbox commands",
    }
}

fn verify_rest(database: &Database) -> Result<Vec<Alteration>, Error> {
    if let Some(error) = database.evidence.refusal() {
        return Err(error);
    }
    let (_, mut alterations) = check_rows(database, &super::STANDING, None)?;
    alterations.extend(check_rows(database, &super::TOKENS, None)?.1);
    if let Err(error) = crate::stop::read(database) {
        alterations.push(Alteration::of(error)?);
    }
    alterations.extend(check_rows(database, &super::LEGAL_HOLDS, None)?.1);
    if let Some(reason) = legal_hold::missing_holds(database)? {
        alterations.push(Alteration {
            place: "the list of legal holds".to_owned(),
            event: None,
            reason,
        });
    }
    for error in admin::check_all(database)? {
        alterations.push(Alteration::of(error)?);
    }
    if !database.evidence.is_on() {
        return Ok(alterations);
    }
    let found: i64 = database.query_row("SELECT count(*) FROM runs", [], |row| row.get(0))?;
    match Position::read(database) {
        Ok(position) if position.runs == found => {}
        Ok(position) => alterations.push(Alteration {
            place: "the list of runs".to_owned(),
            event: None,
            reason: format!("{found} are stored, and {} were written", position.runs),
        }),
        Err(error) => alterations.push(Alteration::of(error)?),
    }
    for table in ["events", "purged_events", "approvals", "holds", "mailbox"] {
        let mut select = database.prepare(&format!(
            "SELECT DISTINCT run FROM {table} EXCEPT SELECT run FROM runs"
        ))?;
        let runs = select.query_map([], |row| row.get::<_, String>(0))?;
        for run in runs {
            alterations.push(Alteration {
                place: format!("the run `{}`", run?),
                event: None,
                reason: format!("it is missing, and there are rows of it in `{table}`"),
            });
        }
    }
    Ok(alterations)
}

/// The columns of a run's row that a report shows.
struct RunColumns {
    tenant: String,
    last_event: i64,
    has_head: bool,
    unsigned_events: Option<i64>,
    damage: Option<String>,
}

impl RunColumns {
    fn read(database: &Database, run: &RunId) -> Result<Self, Error> {
        let mut select = database.prepare_cached(
            "SELECT tenant, last_event, head IS NOT NULL, unsigned_events, damage
             FROM runs WHERE run = ?1",
        )?;
        let found = select
            .query_row([run.as_str()], |row| {
                Ok(Self {
                    tenant: row.get(0)?,
                    last_event: row.get(1)?,
                    has_head: row.get(2)?,
                    unsigned_events: row.get(3)?,
                    damage: row.get(4)?,
                })
            })
            .optional()?;
        found.ok_or_else(|| Error::NoSuchRun(run.clone()))
    }
}

/// How many rows belong to a run, as its row says; `None` if that is not counted.
fn count_of(database: &Database, run: &RunId, belonging: Belonging) -> Result<Option<i64>, Error> {
    if !database.evidence.is_on() {
        return Ok(None);
    }
    let column = belonging.column();
    let mut select =
        database.prepare_cached(&format!("SELECT {column} FROM runs WHERE run = ?1"))?;
    Ok(Some(select.query_row([run.as_str()], |row| row.get(0))?))
}

/// Checks the rows of a table, or those of a run. Returns how many there are, and which were changed.
fn check_rows(
    database: &Database,
    table: &SealedTable,
    run: Option<&RunId>,
) -> Result<(i64, Vec<Alteration>), Error> {
    let of_run = run.map_or("", |_| "WHERE run = ?1");
    let mut select = database.prepare_cached(&format!("{} {of_run}", table.select()))?;
    let mut rows = match run {
        Some(run) => select.query([run.as_str()])?,
        None => select.query([])?,
    };
    let (mut found, mut alterations) = (0, Vec::new());
    while let Some(row) = rows.next()? {
        found += 1;
        if let Err(error) = table.check(&database.evidence, row) {
            alterations.push(Alteration::of(error)?);
        }
    }
    if let (Some(run), "mailbox") = (run, table.name) {
        alterations.extend(check_bodies(database, run)?);
    }
    Ok((found, alterations))
}

/// Checks the bodies of the commands of a run, unless they were purged.
fn check_bodies(database: &Database, run: &RunId) -> Result<Vec<Alteration>, Error> {
    if !database.evidence.is_on() {
        return Ok(Vec::new());
    }
    let mut select = database.prepare_cached(
        "SELECT id, body, digest FROM mailbox
         WHERE run = ?1 AND (body IS NOT NULL OR digest IS NOT NULL)
             AND (SELECT purged_at FROM runs WHERE runs.run = mailbox.run) IS NULL",
    )?;
    let mut rows = select.query([run.as_str()])?;
    let mut alterations = Vec::new();
    while let Some(row) = rows.next()? {
        let (id, body): (i64, Option<String>) = (row.get(0)?, row.get(1)?);
        let digest = super::blob(row, 2)?;
        let expected = body.map(|body| sha256(body.as_bytes()));
        if expected.as_ref().map(|digest| &digest[..]) != digest {
            alterations.push(Alteration {
                place: format!("the inbox command `{id}`"),
                event: None,
                reason: "its content was changed".to_owned(),
            });
        }
    }
    Ok(alterations)
}
