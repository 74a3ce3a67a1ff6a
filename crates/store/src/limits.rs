//! Rate limits: one timestamp per limit, stored where every process sees it. The arithmetic is in
//! `windlass-core`.

use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{Connection, OptionalExtension, params};
use windlass_core::limits::{ExhaustedLimit, Limit, LimitState, take_all};
use windlass_spec::Timestamp;

use crate::crash::CrashPoints;
use crate::error::Error;
use crate::store::Store;
use crate::writer::Work;

impl Store {
    /// The limit that blocks a call for the longest time, or `None` if the call is allowed now. Nothing is
    /// counted.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn used_up(
        &self,
        tenant: &str,
        limits: &[Limit],
        now: Timestamp,
    ) -> Result<Option<ExhaustedLimit>, Error> {
        if limits.is_empty() {
            return Ok(None);
        }
        self.readers
            .read(|connection| Ok(limits_after_call(connection, tenant, limits, now)?.err()))
    }

    /// Takes the exclusive slot for a key until `until`. Returns when the slot is free again, if it is taken.
    ///
    /// # Errors
    /// If it could not be stored.
    pub fn take_turn(
        &self,
        tenant: &str,
        key: &str,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Option<Timestamp>, Error> {
        let (tenant, key) = (tenant.to_owned(), key.to_owned());
        let (now, until) = (now.as_microseconds(), until.as_microseconds());
        let taken =
            self.writer
                .wait_for(Work::new(CrashPoints::of("take"), move |connection| {
                    let mut take = connection.prepare_cached(
                    "INSERT INTO rate_limits (tenant, limited, due, flow) VALUES (?1, ?2, ?4, 1)
                     ON CONFLICT (tenant, limited) DO UPDATE SET due = excluded.due
                     -- After a clock was set back no call waits much longer than a turn lasts.
                     WHERE due <= ?3 OR due > 2 * ?4 - ?3",
                )?;
                    if take.execute(params![tenant, key, now, until])? > 0 {
                        return Ok(i64::MIN);
                    }
                    let mut select = connection.prepare_cached(
                        "SELECT due FROM rate_limits WHERE tenant = ?1 AND limited = ?2",
                    )?;
                    Ok(select.query_row(params![tenant, key], |row| row.get(0))?)
                }))?;
        Ok((taken != i64::MIN).then(|| Timestamp::from_microseconds(taken)))
    }

    /// Counts a call against all limits, or against none of them if one is used up.
    ///
    /// # Errors
    /// If it could not be stored.
    pub fn take(
        &self,
        tenant: &str,
        limits: &[Limit],
        now: Timestamp,
    ) -> Result<Result<(), ExhaustedLimit>, Error> {
        if limits.is_empty() {
            return Ok(Ok(()));
        }
        let (tenant, limits) = (tenant.to_owned(), limits.to_vec());
        let answer = Arc::new(Mutex::new(Ok(())));
        let answer_in_work = Arc::clone(&answer);
        self.writer
            .wait_for(Work::new(CrashPoints::of("take"), move |connection| {
                let taken = limits_after_call(connection, &tenant, &limits, now)?;
                if let Ok(dues) = &taken {
                    let mut keep = connection.prepare_cached(
                        "INSERT INTO rate_limits (tenant, limited, due, flow) VALUES (?1, ?2, ?3, ?4)
                     ON CONFLICT (tenant, limited)
                     DO UPDATE SET due = excluded.due, flow = excluded.flow",
                    )?;
                    for (limit, due) in limits.iter().zip(dues) {
                        keep.execute(params![
                        tenant,
                        limit.key(),
                        due.due.as_microseconds(),
                        due.interval
                    ])?;
                    }
                }
                *answer_in_work
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner) = taken.map(drop);
                Ok(0)
            }))?;
        let answer = answer.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(answer.clone())
    }
}

/// The state of each limit after one more call, or the limit that blocks the call for the longest time.
fn limits_after_call(
    connection: &Connection,
    tenant: &str,
    limits: &[Limit],
    now: Timestamp,
) -> Result<Result<Vec<LimitState>, ExhaustedLimit>, Error> {
    let mut select = connection
        .prepare_cached("SELECT due, flow FROM rate_limits WHERE tenant = ?1 AND limited = ?2")?;
    take_all(limits, now, |limit| {
        let kept = select.query_row(params![tenant, limit.key()], |row| {
            Ok(LimitState {
                due: Timestamp::from_microseconds(row.get(0)?),
                interval: row.get(1)?,
            })
        });
        Ok(kept.optional()?)
    })
}
