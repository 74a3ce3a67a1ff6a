//! Webhooks and what is to be sent to them. A delivery is stored by a trigger of the database, in the transaction of the
//! event that it is about (`migrations/0022_webhooks.sql`). A worker claims it for a time, so that only one sends it; if
//! that worker dies, another one sends it again with the same id.

use std::time::Duration;

use rusqlite::{Row, named_params, params};
use windlass_core::approval::Approval;
use windlass_spec::{CallId, RunId, Timestamp};

use crate::approval::approval_by_number;
use crate::error::Error;
use crate::evidence::Database;
use crate::gap::{StoredGap, gap_by_number};
use crate::read::{count, run_id};
use crate::rows;
use crate::store::Store;

/// How long a webhook is known that no worker has in its configuration, in microseconds: 7 days.
const FORGOTTEN: i64 = 7 * DAY;

/// How long deliveries are kept that were received, and those that were given up.
const KEPT_DELIVERED: i64 = 7 * DAY;
const KEPT_DEAD: i64 = 90 * DAY;

/// How often it is recorded that a webhook is in use.
const SEEN: i64 = DAY / 24;

/// The longest time before its expiry that a question is announced.
const LONGEST_ANNOUNCEMENT: i64 = DAY;

const DAY: i64 = 24 * 3_600 * 1_000_000;

/// Why deliveries of a webhook that is gone are given up.
const NOT_CONFIGURED: &str = "the webhook is not in the configuration any more";

/// A webhook in the configuration of a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookRegistration {
    /// The file that declares it.
    pub declared_in: String,
    /// Its name.
    pub name: String,
    /// The names of its events.
    pub events: Vec<&'static str>,
    /// How long before its expiry a question is announced.
    pub expiring: Duration,
}

windlass_spec::word_set! {
    /// Whether an event was received.
    DeliveryState, "state of a delivery" {
        /// It will be sent.
        Pending = "pending",
        /// It was received.
        Delivered = "delivered",
        /// It was given up.
        Dead = "dead",
    }
}

/// An event for a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookDelivery {
    /// Its number.
    pub number: i64,
    /// The id that the receiver sees.
    pub id: String,
    /// The file that declares the webhook.
    pub declared_in: String,
    /// The name of the webhook.
    pub webhook: String,
    /// The name of the event.
    pub event: String,
    /// The tenant.
    pub tenant: String,
    /// The run.
    pub run: Option<RunId>,
    /// The call that a question is about.
    pub call: Option<CallId>,
    /// The number of the question about the call.
    pub question: Option<i64>,
    /// The number of the decision about the question, from 0.
    pub decision: Option<u64>,
    /// The number of the gap.
    pub gap: Option<i64>,
    /// When it happened.
    pub at: Timestamp,
    /// Whether it was received.
    pub state: DeliveryState,
    /// How many attempts were made.
    pub attempts: u32,
    /// When the next attempt is due.
    pub due_at: Timestamp,
    /// When the last attempt was made.
    pub attempted_at: Option<Timestamp>,
    /// When it was received or given up.
    pub settled_at: Option<Timestamp>,
    /// Why the last attempt failed.
    pub error: Option<String>,
}

/// Which deliveries are listed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeliveryFilter {
    /// Only those of this tenant.
    pub tenant: Option<String>,
    /// Only those of the webhook of this name.
    pub webhook: Option<String>,
    /// Only those in this state.
    pub state: Option<DeliveryState>,
    /// Only those before the one with this id.
    pub before: Option<String>,
    /// At most this many.
    pub limit: Option<u32>,
}

/// How many deliveries a webhook has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeliveryCounts {
    /// The file that declares the webhook.
    pub declared_in: String,
    /// Its name.
    pub webhook: String,
    /// Those that will be sent.
    pub pending: u64,
    /// Those that were received lately.
    pub delivered: u64,
    /// Those that were given up.
    pub dead: u64,
}

/// A claim of a worker to send events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryClaim {
    /// The worker.
    pub worker: String,
    /// The file that declares the webhook.
    pub declared_in: String,
    /// The name of the webhook.
    pub webhook: String,
    /// Only those of this tenant.
    pub tenant: Option<String>,
    /// For how long.
    pub lease: Duration,
    /// At most this many.
    pub limit: u32,
}

/// The outcome of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryOutcome {
    /// It was received.
    Received,
    /// It was not, for this reason, and is sent again then.
    Again(String, Timestamp),
    /// It was not, for this reason, and is given up.
    Dead(String),
}

impl Store {
    /// Makes these the webhooks of the configuration files `files`. From then on, events for them are stored. Pending
    /// events of webhooks that are gone are given up.
    ///
    /// # Errors
    /// If it cannot be stored.
    pub fn register_webhooks(
        &self,
        webhooks: &[WebhookRegistration],
        files: &[String],
        now: Timestamp,
    ) -> Result<(), Error> {
        let now = now.as_microseconds();
        let rows: Vec<(String, String, String, i64)> = webhooks
            .iter()
            .map(|webhook| {
                let expiring = i64::try_from(webhook.expiring.as_micros()).unwrap_or(i64::MAX);
                (
                    webhook.declared_in.clone(),
                    webhook.name.clone(),
                    format!(" {} ", webhook.events.join(" ")),
                    expiring.min(LONGEST_ANNOUNCEMENT),
                )
            })
            .collect();
        let files = files.to_vec();
        let is_registered = self.readers.read(|database| {
            let mut select = database.prepare_cached(
                "SELECT declared_in, name, events, expiring, seen_at FROM webhooks",
            )?;
            let known = rows::all(select.query([])?, |row| {
                let webhook: (String, String, String, i64) =
                    (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
                Ok((webhook, row.get::<_, i64>(4)?))
            })?;
            let is_recent = |seen_at: i64| seen_at > now - SEEN;
            let has = |row: &(String, String, String, i64)| {
                let mut known = known.iter();
                known.any(|(known, seen_at)| known == row && is_recent(*seen_at))
            };
            let is_gone = |(known, seen_at): &((String, String, String, i64), i64)| {
                let is_ours = files.contains(&known.0);
                (is_ours && !rows.iter().any(|row| row.1 == known.1 && row.0 == known.0))
                    || *seen_at < now - FORGOTTEN
            };
            Ok(rows.iter().all(has) && !known.iter().any(is_gone))
        })?;
        if is_registered {
            return Ok(());
        }
        self.transact("webhooks", move |database| {
            for (declared_in, name, events, expiring) in &rows {
                let mut upsert = database.prepare_cached(
                    "INSERT INTO webhooks (declared_in, name, events, expiring, seen_at)
                     VALUES (?1, ?2, ?3, ?4, ?5)
                     ON CONFLICT DO UPDATE SET events = ?3, expiring = ?4, seen_at = ?5",
                )?;
                upsert.execute(params![declared_in, name, events, expiring, now])?;
            }
            let mut select =
                database.prepare_cached("SELECT declared_in, name, seen_at FROM webhooks")?;
            let known: Vec<(String, String, i64)> = rows::all(select.query([])?, |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })?;
            for (declared_in, name, seen_at) in known {
                let is_here = rows
                    .iter()
                    .any(|row| (&row.0, &row.1) == (&declared_in, &name));
                if is_here || (!files.contains(&declared_in) && seen_at >= now - FORGOTTEN) {
                    continue;
                }
                let webhook = params![declared_in, name];
                database.execute(
                    "DELETE FROM webhooks WHERE declared_in = ?1 AND name = ?2",
                    webhook,
                )?;
                database.execute(
                    "UPDATE webhook_deliveries SET state = 'dead', settled_at = ?3, error = ?4,
                         claimed_by = NULL, claimed_until = NULL
                     WHERE declared_in = ?1 AND webhook = ?2 AND state = 'pending'",
                    params![declared_in, name, now, NOT_CONFIGURED],
                )?;
            }
            let mut forget = database.prepare_cached(
                "DELETE FROM webhook_deliveries WHERE state = ?1 AND settled_at < ?2",
            )?;
            forget.execute(params!["delivered", now - KEPT_DELIVERED])?;
            forget.execute(params!["dead", now - KEPT_DEAD])?;
            Ok(())
        })
    }

    /// Stores the announcements of questions that will expire soon, each once.
    ///
    /// # Errors
    /// If they cannot be stored.
    pub fn announce_expiring(&self, now: Timestamp) -> Result<(), Error> {
        const SOON: &str = "FROM webhooks JOIN approvals
             WHERE approvals.status = 'pending' AND instr(events, ' approval.expiring ') > 0
                 AND expires_at <= :now + :longest
                 AND expires_at - min(expiring, (expires_at - asked_at) / 2) <= :now
                 AND NOT EXISTS (
                     SELECT 1 FROM webhook_deliveries AS known
                     WHERE known.event = 'approval.expiring' AND known.declared_in = webhooks.declared_in
                         AND known.webhook = webhooks.name AND known.run = approvals.run
                         AND known.call = approvals.call AND known.question = approvals.number
                 )";
        let now = now.as_microseconds();
        let is_due = self.readers.read(|database| {
            let mut select =
                database.prepare_cached(&format!("SELECT EXISTS (SELECT 1 {SOON})"))?;
            let values = named_params! {":now": now, ":longest": LONGEST_ANNOUNCEMENT};
            Ok(select.query_row(values, |row| row.get::<_, bool>(0))?)
        })?;
        if !is_due {
            return Ok(());
        }
        self.transact("announce", move |database| {
            let mut insert = database.prepare_cached(&format!(
                "INSERT INTO webhook_deliveries
                     (id, declared_in, webhook, event, tenant, run, call, question, at)
                 SELECT 'msg_' || lower(hex(randomblob(16))), declared_in, name, 'approval.expiring',
                     approvals.tenant, approvals.run, approvals.call, approvals.number, :now {SOON}"
            ))?;
            insert.execute(named_params! {":now": now, ":longest": LONGEST_ANNOUNCEMENT})?;
            Ok(())
        })
    }

    /// Takes events of a webhook that are due, for a time, and counts an attempt for each.
    ///
    /// # Errors
    /// If it cannot be stored.
    pub fn claim_deliveries(
        &self,
        claim: &DeliveryClaim,
        now: Timestamp,
    ) -> Result<Vec<WebhookDelivery>, Error> {
        const DUE: &str = "declared_in = :declared_in AND webhook = :webhook AND state = 'pending'
             AND due_at <= :now AND (claimed_until IS NULL OR claimed_until <= :now)
             AND (:tenant IS NULL OR tenant = :tenant)";
        let now = now.as_microseconds();
        let is_due = self.readers.read(|database| {
            let query = format!("SELECT EXISTS (SELECT 1 FROM webhook_deliveries WHERE {DUE})");
            let mut select = database.prepare_cached(&query)?;
            let values = named_params! {
                ":declared_in": claim.declared_in, ":webhook": claim.webhook, ":now": now,
                ":tenant": claim.tenant,
            };
            Ok(select.query_row(values, |row| row.get::<_, bool>(0))?)
        })?;
        if !is_due {
            return Ok(Vec::new());
        }
        let claim = claim.clone();
        let until = i64::try_from(claim.lease.as_micros()).unwrap_or(i64::MAX);
        let until = now.saturating_add(until);
        self.transact("claim", move |database| {
            let mut select = database.prepare_cached(&format!(
                "SELECT * FROM webhook_deliveries WHERE {DUE} ORDER BY due_at, number LIMIT :limit"
            ))?;
            let values = named_params! {
                ":declared_in": claim.declared_in, ":webhook": claim.webhook, ":now": now,
                ":tenant": claim.tenant, ":limit": claim.limit,
            };
            let mut due = rows::all(select.query(values)?, from_row)?;
            for delivery in &mut due {
                let mut update = database.prepare_cached(
                    "UPDATE webhook_deliveries
                     SET claimed_by = ?2, claimed_until = ?3, attempts = attempts + 1, attempted_at = ?4
                     WHERE number = ?1",
                )?;
                update.execute(params![delivery.number, claim.worker, until, now])?;
                delivery.attempts += 1;
            }
            Ok(due)
        })
    }

    /// Records the outcome of an attempt. Returns false if the delivery is not this worker's any more.
    ///
    /// # Errors
    /// If it cannot be stored.
    pub fn settle_delivery(
        &self,
        number: i64,
        worker: &str,
        outcome: &DeliveryOutcome,
        now: Timestamp,
    ) -> Result<bool, Error> {
        let (worker, outcome, now) = (worker.to_owned(), outcome.clone(), now.as_microseconds());
        let redacted = |reason: &str| self.redactor.text(reason);
        let (state, due_at, error) = match &outcome {
            DeliveryOutcome::Received => (DeliveryState::Delivered, None, None),
            DeliveryOutcome::Again(reason, at) => (
                DeliveryState::Pending,
                Some(at.as_microseconds()),
                Some(redacted(reason)),
            ),
            DeliveryOutcome::Dead(reason) => (DeliveryState::Dead, None, Some(redacted(reason))),
        };
        let settled_at = (state != DeliveryState::Pending).then_some(now);
        self.transact("deliver", move |database| {
            let mut update = database.prepare_cached(
                "UPDATE webhook_deliveries
                 SET state = ?3, due_at = coalesce(?4, due_at), error = ?5, settled_at = ?6,
                     claimed_by = NULL, claimed_until = NULL
                 WHERE number = ?1 AND claimed_by = ?2 AND state = 'pending'",
            )?;
            let changed = update.execute(params![
                number,
                worker,
                state.as_str(),
                due_at,
                error,
                settled_at
            ])?;
            Ok(changed > 0)
        })
    }

    /// Events for webhooks, the latest first.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn deliveries(&self, filter: &DeliveryFilter) -> Result<Vec<WebhookDelivery>, Error> {
        self.readers.read(|database| {
            let mut select = database.prepare_cached(
                "SELECT * FROM webhook_deliveries
                 WHERE (:tenant IS NULL OR tenant = :tenant) AND (:webhook IS NULL OR webhook = :webhook)
                     AND (:state IS NULL OR state = :state)
                     AND (:before IS NULL OR number < (SELECT number FROM webhook_deliveries WHERE id = :before))
                 ORDER BY number DESC LIMIT :limit",
            )?;
            let values = named_params! {
                ":tenant": filter.tenant,
                ":webhook": filter.webhook,
                ":state": filter.state.map(DeliveryState::as_str),
                ":before": filter.before,
                ":limit": filter.limit.map_or(-1, i64::from),
            };
            rows::all(select.query(values)?, from_row)
        })
    }

    /// How many events each webhook of a tenant has; of all tenants without one.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn delivery_counts(&self, tenant: Option<&str>) -> Result<Vec<DeliveryCounts>, Error> {
        self.readers.read(|database| {
            let mut select = database.prepare_cached(
                "SELECT declared_in, webhook, sum(state = 'pending'), sum(state = 'delivered'),
                     sum(state = 'dead')
                 FROM webhook_deliveries WHERE ?1 IS NULL OR tenant = ?1
                 GROUP BY declared_in, webhook ORDER BY webhook, declared_in",
            )?;
            rows::all(select.query([tenant])?, |row| {
                Ok(DeliveryCounts {
                    declared_in: row.get(0)?,
                    webhook: row.get(1)?,
                    pending: count(row.get(2)?),
                    delivered: count(row.get(3)?),
                    dead: count(row.get(4)?),
                })
            })
        })
    }

    /// The event of a tenant with that id.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn delivery(&self, tenant: &str, id: &str) -> Result<Option<WebhookDelivery>, Error> {
        self.readers
            .read(|database| one_delivery(database, tenant, id))
    }

    /// Sends an event of a tenant again, now: one that was given up, or that waits for its next attempt. `None` if there
    /// is none with that id. One that was received stays unchanged.
    ///
    /// # Errors
    /// If it cannot be stored.
    pub fn retry_delivery(&self, tenant: &str, id: &str) -> Result<Option<WebhookDelivery>, Error> {
        let (tenant, id) = (tenant.to_owned(), id.to_owned());
        self.transact("retry", move |database| {
            let mut update = database.prepare_cached(
                "UPDATE webhook_deliveries
                 SET state = 'pending', attempts = 0, due_at = 0, settled_at = NULL
                 WHERE tenant = ?1 AND id = ?2 AND state <> 'delivered'",
            )?;
            update.execute([&tenant, &id])?;
            one_delivery(database, &tenant, &id)
        })
    }

    /// The question about a call with this number.
    ///
    /// # Errors
    /// If there is none, or it cannot be read.
    pub fn numbered_approval(&self, call: &CallId, number: i64) -> Result<Approval, Error> {
        self.readers
            .read(|database| approval_by_number(database, call, number))
    }

    /// The gap with this number, if there is one.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn numbered_gap(&self, number: i64) -> Result<Option<StoredGap>, Error> {
        self.readers
            .read(|database| gap_by_number(database, number))
    }
}

fn one_delivery(
    database: &Database,
    tenant: &str,
    id: &str,
) -> Result<Option<WebhookDelivery>, Error> {
    let mut select = database
        .prepare_cached("SELECT * FROM webhook_deliveries WHERE tenant = ?1 AND id = ?2")?;
    rows::first(select.query([tenant, id])?, from_row)
}

fn from_row(row: &Row<'_>) -> Result<WebhookDelivery, Error> {
    let id: String = row.get("id")?;
    let unreadable = |error: String| Error::unreadable(format!("the delivery `{id}`"), error);
    let run: Option<String> = row.get("run")?;
    let call: Option<String> = row.get("call")?;
    let call = call.map(|text| text.parse::<CallId>()).transpose();
    let state: String = row.get("state")?;
    let time = |column: &str| -> Result<Option<Timestamp>, Error> {
        let time: Option<i64> = row.get(column)?;
        Ok(time.map(Timestamp::from_microseconds))
    };
    let decision: Option<i64> = row.get("decision")?;
    Ok(WebhookDelivery {
        number: row.get("number")?,
        declared_in: row.get("declared_in")?,
        webhook: row.get("webhook")?,
        event: row.get("event")?,
        tenant: row.get("tenant")?,
        run: run.map(run_id).transpose()?,
        call: call.map_err(|error| unreadable(error.to_string()))?,
        question: row.get("question")?,
        decision: decision.map(count),
        gap: row.get("gap")?,
        at: Timestamp::from_microseconds(row.get("at")?),
        state: state
            .parse()
            .map_err(|error: windlass_spec::UnknownWord| unreadable(error.to_string()))?,
        attempts: row.get("attempts")?,
        due_at: Timestamp::from_microseconds(row.get("due_at")?),
        attempted_at: time("attempted_at")?,
        settled_at: time("settled_at")?,
        error: row.get("error")?,
        id,
    })
}
