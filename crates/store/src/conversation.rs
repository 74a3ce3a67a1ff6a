//! Conversations: the messages of several runs, stored so that a conversation can be resumed.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use windlass_core::approval::TenantPrincipal;
use windlass_core::model::ChatMessage;
use windlass_core::redact::{RedactError, Redactor};
use windlass_spec::{RunId, Timestamp};

use crate::conditions::Conditions;
use crate::crash::CrashPoints;
use crate::error::Error;
use crate::store::Store;
use crate::writer::Work;

/// A stored conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredConversation {
    /// Its id, chosen by the caller that began it.
    pub id: String,
    /// The organisation it belongs to.
    pub tenant: String,
    /// The person or program that talks to the agent.
    pub principal: String,
    /// The agent's name.
    pub agent: String,
    /// The runs of the conversation, in order.
    pub runs: Vec<RunId>,
    /// The messages, in order.
    pub messages: Vec<ChatMessage>,
    /// The runs whose answers are not final.
    pub open: Vec<OpenExchange>,
    /// When the last message was added.
    pub updated_at: Timestamp,
}

/// The messages of a run that has not ended. They are replaced when it has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenExchange {
    /// The run.
    pub run: RunId,
    /// The place of its first message among the messages of the conversation.
    pub first: usize,
    /// How many messages it has so far.
    pub count: usize,
}

const SELECT: &str =
    "SELECT conversation, tenant, principal, agent, runs, messages, open, updated_at
    FROM conversations ";

impl Store {
    /// Stores a conversation, replaces an earlier version of it, and waits for the disk.
    ///
    /// # Errors
    /// If it could not be stored, or there is one of that id of another tenant or principal.
    pub fn save_conversation(&self, conversation: &StoredConversation) -> Result<(), Error> {
        let (redactor, conversation) = (Arc::clone(&self.redactor), conversation.clone());
        self.writer
            .wait_for(Work::new(CrashPoints::of("save"), move |connection| {
                write(connection, &redactor, &conversation).map(|()| 0)
            }))?;
        Ok(())
    }

    /// Changes the conversation of a user in one transaction, and waits for the disk. Returns what `change` does;
    /// `None` if there is no such conversation.
    ///
    /// # Errors
    /// If it could not be read or stored.
    pub fn change_conversation<T: Send + 'static>(
        &self,
        user: &TenantPrincipal,
        id: &str,
        change: impl Fn(&mut StoredConversation) -> T + Send + 'static,
    ) -> Result<Option<T>, Error> {
        let (redactor, id) = (Arc::clone(&self.redactor), id.to_owned());
        let user = user.clone();
        self.transact("change_conversation", move |connection| {
            let parameters = (user.tenant.as_str(), user.principal.as_str(), id.as_str());
            let Some(mut conversation) = one(connection, "AND conversation = ?3", parameters)?
            else {
                return Ok(None);
            };
            let changed = change(&mut conversation);
            write(connection, &redactor, &conversation)?;
            Ok(Some(changed))
        })
    }

    /// The conversations that wait for the answers of their runs: of this run, or of any run.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn open_conversations(
        &self,
        run: Option<&RunId>,
    ) -> Result<Vec<StoredConversation>, Error> {
        self.readers.read(|connection| {
            let query = format!(
                "{SELECT} WHERE open <> '[]' AND (?1 IS NULL OR EXISTS
                    (SELECT 1 FROM json_each(open) WHERE value ->> 'run' = ?1))"
            );
            let mut select = connection.prepare_cached(&query)?;
            let rows = select.query_map([run.map(RunId::as_str)], |row| {
                Ok(conversation_from_row(row))
            })?;
            rows.map(|row| row?).collect()
        })
    }

    /// The conversation of a user with this id, if there is one.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn conversation(
        &self,
        user: &TenantPrincipal,
        id: &str,
    ) -> Result<Option<StoredConversation>, Error> {
        self.one_conversation("AND conversation = ?3", user, id)
    }

    /// The conversations of a user, the most recently updated first; with `agent`, only those with that agent,
    /// and with `after`, those after the conversation of that id in the list.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn conversations(
        &self,
        user: &TenantPrincipal,
        agent: Option<&str>,
        limit: u32,
        after: Option<&str>,
    ) -> Result<Vec<StoredConversation>, Error> {
        let conditions = Conditions::default()
            .equal("tenant", Some(user.tenant.as_str()))
            .equal("principal", Some(user.principal.as_str()))
            .equal("agent", agent)
            .after("conversations", ("updated_at", "conversation"), after);
        let order = "updated_at DESC, conversation DESC";
        let query = conditions.query(SELECT, order, Some(limit));
        self.readers.read(|connection| {
            let mut select = connection.prepare_cached(&query)?;
            let rows =
                select.query_map(conditions.values(), |row| Ok(conversation_from_row(row)))?;
            rows.map(|row| row?).collect()
        })
    }

    /// Removes a conversation of a user; its runs stay. Returns whether there was one.
    ///
    /// # Errors
    /// If it could not be removed.
    pub fn delete_conversation(&self, user: &TenantPrincipal, id: &str) -> Result<bool, Error> {
        let user = (user.tenant.to_string(), user.principal.to_string());
        let id = id.to_owned();
        self.transact("delete_conversation", move |connection| {
            let mut delete = connection.prepare_cached(
                "DELETE FROM conversations
                 WHERE conversation = ?1 AND tenant = ?2 AND principal = ?3",
            )?;
            Ok(delete.execute(params![id, user.0, user.1])? > 0)
        })
    }

    /// The most recently updated conversation of a user with an agent that has messages, if there is one.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn latest_conversation(
        &self,
        user: &TenantPrincipal,
        agent: &str,
    ) -> Result<Option<StoredConversation>, Error> {
        let chosen = "AND agent = ?3 AND messages <> '[]' ORDER BY updated_at DESC, conversation DESC LIMIT 1";
        self.one_conversation(chosen, user, agent)
    }

    fn one_conversation(
        &self,
        chosen: &str,
        user: &TenantPrincipal,
        parameter: &str,
    ) -> Result<Option<StoredConversation>, Error> {
        let parameters = (user.tenant.as_str(), user.principal.as_str(), parameter);
        self.readers
            .read(|connection| one(connection, chosen, parameters))
    }
}

/// The conversation of a user that is chosen.
fn one(
    connection: &Connection,
    chosen: &str,
    parameters: (&str, &str, &str),
) -> Result<Option<StoredConversation>, Error> {
    let query = format!("{SELECT} WHERE tenant = ?1 AND principal = ?2 {chosen}");
    let mut select = connection.prepare_cached(&query)?;
    let found = select.query_row(parameters, |row| Ok(conversation_from_row(row)));
    found.optional()?.transpose()
}

/// Stores a conversation without secrets, unless there is one of that id of another user.
fn write(
    connection: &Connection,
    redactor: &Redactor,
    conversation: &StoredConversation,
) -> Result<(), Error> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO conversations
             (conversation, tenant, principal, agent, runs, messages, open, updated_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
         ON CONFLICT (conversation) DO UPDATE SET agent = excluded.agent,
             runs = excluded.runs, messages = excluded.messages, open = excluded.open,
             updated_at = excluded.updated_at
         WHERE tenant = excluded.tenant AND principal = excluded.principal",
    )?;
    let StoredConversation {
        id,
        tenant,
        principal,
        agent,
        ..
    } = conversation;
    let row = params![
        id,
        tenant,
        principal,
        agent,
        redacted_list(redactor, &conversation.runs)?,
        redacted_list(redactor, &conversation.messages)?,
        redacted_list(redactor, &conversation.open)?,
        conversation.updated_at.as_microseconds()
    ];
    match insert.execute(row)? {
        0 => Err(Error::ConversationExists(id.clone())),
        _ => Ok(()),
    }
}

fn redacted_list<T>(redactor: &Redactor, items: &[T]) -> Result<String, Error>
where
    T: Serialize + DeserializeOwned,
{
    let items: Result<Vec<String>, RedactError> = items
        .iter()
        .map(|item| redactor.json(item, &["role"]))
        .collect();
    Ok(format!("[{}]", items?.join(",")))
}

fn conversation_from_row(row: &Row<'_>) -> Result<StoredConversation, Error> {
    let id: String = row.get("conversation")?;
    let unreadable = |error| Error::unreadable(format!("the conversation `{id}`"), error);
    let runs: String = row.get("runs")?;
    let messages: String = row.get("messages")?;
    let open: String = row.get("open")?;
    Ok(StoredConversation {
        tenant: row.get("tenant")?,
        principal: row.get("principal")?,
        agent: row.get("agent")?,
        runs: serde_json::from_str(&runs).map_err(unreadable)?,
        messages: serde_json::from_str(&messages).map_err(unreadable)?,
        open: serde_json::from_str(&open).map_err(unreadable)?,
        updated_at: Timestamp::from_microseconds(row.get("updated_at")?),
        id,
    })
}
