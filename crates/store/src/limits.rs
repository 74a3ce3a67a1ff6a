//! Rate limits: one moment for each, kept where every process sees it. The arithmetic is in
//! `windlass-core`.

use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{Connection, OptionalExtension, params};
use windlass_core::limits::Limit;
use windlass_spec::Timestamp;

use crate::crash::Points;
use crate::error::Error;
use crate::store::Store;
use crate::writer::Work;

/// A limit that is used up, and when a call can be taken again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsedUp {
    /// Which.
    pub limit: Limit,
    /// When a call can be taken again.
    pub until: Timestamp,
}

impl Store {
    /// Whether a call could be taken now; the limit that stands in its way longest if not. Nothing is
    /// used up.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn used_up(
        &self,
        tenant: &str,
        limits: &[Limit],
        now: Timestamp,
    ) -> Result<Option<UsedUp>, Error> {
        if limits.is_empty() {
            return Ok(None);
        }
        self.readers
            .read(|connection| Ok(taken(connection, tenant, limits, now)?.err()))
    }

    /// Takes a call from all of the limits, or from none of them if one is used up.
    ///
    /// # Errors
    /// If it could not be stored.
    pub fn take(
        &self,
        tenant: &str,
        limits: &[Limit],
        now: Timestamp,
    ) -> Result<Result<(), UsedUp>, Error> {
        if limits.is_empty() {
            return Ok(Ok(()));
        }
        let (tenant, limits) = (tenant.to_owned(), limits.to_vec());
        let answer = Arc::new(Mutex::new(Ok(())));
        let told = Arc::clone(&answer);
        self.writer
            .wait_for(Work::new(Points::of("take"), move |connection| {
                let taken = taken(connection, &tenant, &limits, now)?;
                if let Ok(dues) = &taken {
                    let mut keep = connection.prepare_cached(
                        "INSERT INTO rate_limits (tenant, limited, due) VALUES (?1, ?2, ?3)
                     ON CONFLICT (tenant, limited) DO UPDATE SET due = excluded.due",
                    )?;
                    for (limit, due) in limits.iter().zip(dues) {
                        keep.execute(params![tenant, limit.key(), due.as_microseconds()])?;
                    }
                }
                *told.lock().unwrap_or_else(PoisonError::into_inner) = taken.map(drop);
                Ok(0)
            }))?;
        let answer = answer.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(answer.clone())
    }
}

/// What would be kept of each limit if a call were taken from it, or the one that refuses it longest.
fn taken(
    connection: &Connection,
    tenant: &str,
    limits: &[Limit],
    now: Timestamp,
) -> Result<Result<Vec<Timestamp>, UsedUp>, Error> {
    let mut select = connection
        .prepare_cached("SELECT due FROM rate_limits WHERE tenant = ?1 AND limited = ?2")?;
    let mut dues = Vec::with_capacity(limits.len());
    let mut used_up: Option<UsedUp> = None;
    for limit in limits {
        let kept: Option<i64> = select
            .query_row(params![tenant, limit.key()], |row| row.get(0))
            .optional()?;
        match limit.take(kept.map(Timestamp::from_microseconds), now) {
            Ok(due) => dues.push(due),
            Err(until) => {
                if used_up.as_ref().is_none_or(|other| other.until < until) {
                    let limit = limit.clone();
                    used_up = Some(UsedUp { limit, until });
                }
            }
        }
    }
    Ok(match used_up {
        Some(used_up) => Err(used_up),
        None => Ok(dues),
    })
}
