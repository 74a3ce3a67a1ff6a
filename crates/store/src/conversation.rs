//! Conversations: the messages of several runs, stored so that a conversation can be resumed.

use rusqlite::{OptionalExtension, Row, params};
use serde::Serialize;
use serde::de::DeserializeOwned;
use windlass_core::approval::TenantPrincipal;
use windlass_core::model::ChatMessage;
use windlass_core::redact::RedactError;
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
    /// When the last message was added.
    pub updated_at: Timestamp,
}

const SELECT: &str = "SELECT conversation, tenant, principal, agent, runs, messages, updated_at
    FROM conversations ";

impl Store {
    /// Stores a conversation, replaces an earlier version of it, and waits for the disk.
    ///
    /// # Errors
    /// If it could not be stored, or there is one of that id of another tenant or principal.
    pub fn save_conversation(&self, conversation: &StoredConversation) -> Result<(), Error> {
        let runs = self.redacted_list(&conversation.runs)?;
        let messages = self.redacted_list(&conversation.messages)?;
        let StoredConversation {
            id,
            tenant,
            principal,
            agent,
            updated_at,
            ..
        } = conversation.clone();
        self.writer
            .wait_for(Work::new(CrashPoints::of("save"), move |connection| {
                let mut insert = connection.prepare_cached(
                    "INSERT INTO conversations
                     (conversation, tenant, principal, agent, runs, messages, updated_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
                 ON CONFLICT (conversation) DO UPDATE SET agent = excluded.agent,
                     runs = excluded.runs, messages = excluded.messages,
                     updated_at = excluded.updated_at
                 WHERE tenant = excluded.tenant AND principal = excluded.principal",
                )?;
                let at = updated_at.as_microseconds();
                let row = params![id, tenant, principal, agent, runs, messages, at];
                match insert.execute(row)? {
                    0 => Err(Error::ConversationExists(id.clone())),
                    _ => Ok(0),
                }
            }))?;
        Ok(())
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

    /// The most recently updated conversation of a user with an agent, if there is one.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn latest_conversation(
        &self,
        user: &TenantPrincipal,
        agent: &str,
    ) -> Result<Option<StoredConversation>, Error> {
        let chosen = "AND agent = ?3 ORDER BY updated_at DESC, conversation DESC LIMIT 1";
        self.one_conversation(chosen, user, agent)
    }

    fn one_conversation(
        &self,
        chosen: &str,
        user: &TenantPrincipal,
        parameter: &str,
    ) -> Result<Option<StoredConversation>, Error> {
        self.readers.read(|connection| {
            let query = format!("{SELECT} WHERE tenant = ?1 AND principal = ?2 {chosen}");
            let mut select = connection.prepare_cached(&query)?;
            let user = (user.tenant.as_str(), user.principal.as_str());
            let found = select
                .query_row((user.0, user.1, parameter), |row| {
                    Ok(conversation_from_row(row))
                })
                .optional()?;
            found.transpose()
        })
    }

    fn redacted_list<T>(&self, items: &[T]) -> Result<String, Error>
    where
        T: Serialize + DeserializeOwned,
    {
        let items: Result<Vec<String>, RedactError> = items
            .iter()
            .map(|item| self.redactor.json(item, &["role"]))
            .collect();
        Ok(format!("[{}]", items?.join(",")))
    }
}

fn conversation_from_row(row: &Row<'_>) -> Result<StoredConversation, Error> {
    let id: String = row.get("conversation")?;
    let unreadable = |error| Error::unreadable(format!("the conversation `{id}`"), error);
    let runs: String = row.get("runs")?;
    let messages: String = row.get("messages")?;
    Ok(StoredConversation {
        tenant: row.get("tenant")?,
        principal: row.get("principal")?,
        agent: row.get("agent")?,
        runs: serde_json::from_str(&runs).map_err(unreadable)?,
        messages: serde_json::from_str(&messages).map_err(unreadable)?,
        updated_at: Timestamp::from_microseconds(row.get("updated_at")?),
        id,
    })
}
