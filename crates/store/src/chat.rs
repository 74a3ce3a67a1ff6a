//! Requests of chat clients, which send the whole conversation each time. The digest of its messages finds the run that
//! answers them.

use rusqlite::{OptionalExtension as _, params};
use windlass_core::approval::TenantPrincipal;
use windlass_core::model::Usage;
use windlass_spec::{RunId, Timestamp};

use crate::error::Error;
use crate::read::{count, run_id};
use crate::store::Store;

/// How long a turn is known whose run has ended, in microseconds: 30 days.
const KEPT: i64 = 30 * 24 * 3_600 * 1_000_000;

/// How long a client may repeat a request, in microseconds: an hour.
const REPEATABLE: i64 = 3_600 * 1_000_000;

/// The conversation that a client sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatKey {
    /// The agent.
    pub agent: String,
    /// The digest of all messages.
    pub digest: [u8; 32],
    /// The digest of the messages up to the previous one of the user, if there is one.
    pub before: Option<[u8; 32]>,
}

/// The run that answers a request of a chat client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatTurn {
    /// Its id.
    pub run: RunId,
    /// Whether it exists already.
    pub exists: bool,
}

/// What a chat client was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChatOutcome {
    /// The run waits for a person.
    Waiting,
    /// The end of the run.
    Ended,
}

impl ChatOutcome {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Ended => "ended",
        }
    }
}

impl Store {
    /// The run that answers a conversation: the one that was started for these very messages if it waits for a person or
    /// the client repeats its request, the one that waited when the messages before were answered, or else `new`. Waits
    /// for the disk.
    ///
    /// # Errors
    /// If it cannot be stored.
    pub fn reserve_chat_turn(
        &self,
        who: &TenantPrincipal,
        key: &ChatKey,
        is_repeated: bool,
        new: &RunId,
        now: Timestamp,
    ) -> Result<ChatTurn, Error> {
        let (tenant, principal) = (who.tenant.to_string(), who.principal.to_string());
        let (key, new, now) = (key.clone(), new.clone(), now.as_microseconds());
        self.transact("chat_turn", move |database| {
            let mut delete = database.prepare_cached(
                "DELETE FROM chat_turns WHERE at < ?1
                 AND run NOT IN (SELECT run FROM runs WHERE state IN ('open', 'waiting'))",
            )?;
            delete.execute([now.saturating_sub(KEPT)])?;
            let mut same = database.prepare_cached(
                "SELECT turn.run, runs.run IS NOT NULL
                 FROM chat_turns AS turn LEFT JOIN runs ON runs.run = turn.run
                 WHERE turn.tenant = ?1 AND turn.principal = ?2 AND turn.agent = ?3 AND turn.digest = ?4
                     AND (runs.state = 'waiting' OR turn.continues OR (?5 AND turn.at >= ?6))
                 ORDER BY runs.state = 'waiting' DESC, turn.at DESC, turn.run DESC LIMIT 1",
            )?;
            let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
            let earliest = now.saturating_sub(REPEATABLE);
            let values = params![tenant, principal, key.agent, key.digest, is_repeated, earliest];
            let found: Option<(String, bool)> = same.query_row(values, read).optional()?;
            if let Some((run, exists)) = found {
                return Ok(ChatTurn {
                    run: run_id(run)?,
                    exists,
                });
            }
            // The end of a run is answered once.
            let mut waited = database.prepare_cached(
                "SELECT turn.run, 1 FROM chat_turns AS turn JOIN runs ON runs.run = turn.run
                 WHERE turn.tenant = ?1 AND turn.principal = ?2 AND turn.agent = ?3 AND turn.digest = ?4
                     AND (runs.state = 'waiting' OR (turn.outcome = 'waiting' AND NOT EXISTS (
                         SELECT 1 FROM chat_turns AS other
                         WHERE other.run = turn.run AND other.outcome = 'ended'
                     )))
                 ORDER BY runs.state = 'waiting' DESC, turn.at DESC, turn.run DESC LIMIT 1",
            )?;
            let found: Option<(String, bool)> = match key.before {
                Some(before) => waited
                    .query_row(params![tenant, principal, key.agent, before], read)
                    .optional()?,
                None => None,
            };
            let (run, continues) = match found {
                Some((run, _)) => (run_id(run)?, true),
                None => (new.clone(), false),
            };
            let mut insert = database.prepare_cached(
                "INSERT OR IGNORE INTO chat_turns (tenant, principal, agent, digest, run, at, continues)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?;
            insert.execute(params![
                tenant,
                principal,
                key.agent,
                key.digest,
                run.as_str(),
                now,
                continues
            ])?;
            Ok(ChatTurn {
                run,
                exists: continues,
            })
        })
    }

    /// Records what a chat client is answered, with the usage of the run so far. Returns the usage of the run that its
    /// earlier answers reported. Waits for the disk.
    ///
    /// # Errors
    /// If it cannot be stored.
    pub fn record_chat_answer(
        &self,
        who: &TenantPrincipal,
        key: &ChatKey,
        run: &RunId,
        outcome: ChatOutcome,
        usage: Usage,
    ) -> Result<Usage, Error> {
        let (tenant, principal) = (who.tenant.to_string(), who.principal.to_string());
        let (key, run) = (key.clone(), run.clone());
        let number = |tokens: u64| i64::try_from(tokens).unwrap_or(i64::MAX);
        self.transact("chat_answer", move |database| {
            let mut update = database.prepare_cached(
                "UPDATE chat_turns SET outcome = ?6, input_tokens = ?7, output_tokens = ?8
                 WHERE tenant = ?1 AND principal = ?2 AND agent = ?3 AND digest = ?4 AND run = ?5",
            )?;
            update.execute(params![
                tenant,
                principal,
                key.agent,
                key.digest,
                run.as_str(),
                outcome.as_str(),
                number(usage.input_tokens),
                number(usage.output_tokens)
            ])?;
            let mut select = database.prepare_cached(
                "SELECT coalesce(max(input_tokens), 0), coalesce(max(output_tokens), 0)
                 FROM chat_turns WHERE run = ?1 AND digest <> ?2",
            )?;
            let earlier = select.query_row(params![run.as_str(), key.digest], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })?;
            Ok(Usage {
                input_tokens: count(earlier.0),
                output_tokens: count(earlier.1),
                ..Usage::default()
            })
        })
    }
}
