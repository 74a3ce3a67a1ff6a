//! Known MCP servers and the pins of their tools: the accepted and the offered definitions. What
//! follows from a difference is decided elsewhere.
//!
//! Several processes may connect to one server at once, while a person accepts a definition. So pins are read
//! with a [`PinsRevision`] and written only if they have not changed since; the second writer must read
//! again. Accepted definitions change only by [`Store::accept_pin`], or when pins are written for the
//! first time. A row that cannot be read, or whose text does not match its digest, is an error for the
//! whole server: a skipped pin would be a tool that is not reviewed.

use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::Value;
use windlass_core::approval::Digest;
use windlass_spec::Timestamp;

use crate::error::Error;
use crate::rows;
use crate::store::Store;
use windlass_core::redact::Redactor;

/// A known server: Windlass has connected to it.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredServer {
    /// The operator's name for it.
    pub name: String,
    /// The protocol generation it supports, `legacy` or `modern`, if that is known.
    pub era: Option<String>,
    /// The digest of its connection settings.
    pub settings_digest: String,
    /// The files it runs, if it is a program.
    pub program: Option<Value>,
    /// Its response to `initialize`.
    pub greeting: Option<Value>,
    /// When Windlass first connected to it.
    pub first_seen: Timestamp,
}

/// A tool's definition and its digest.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredDefinition {
    /// The whole definition.
    pub body: Value,
    /// Its digest.
    pub digest: Digest,
}

impl StoredDefinition {
    /// A definition with its digest.
    #[must_use]
    pub fn new(body: Value) -> Self {
        let digest = Digest::of_json(&body);
        Self { body, digest }
    }
}

/// The pin of one tool.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredPin {
    /// The server's name for the tool.
    pub tool: String,
    /// The accepted definition.
    pub accepted: Option<StoredDefinition>,
    /// The principal that accepted it; `None` if it was accepted on the first connection.
    pub accepted_by: Option<String>,
    /// When it was accepted.
    pub accepted_at: Option<Timestamp>,
    /// The definition that the server offered last.
    pub offered: Option<StoredDefinition>,
    /// What is suspicious about the offered definition.
    pub findings: Vec<String>,
    /// When the server last offered it.
    pub seen_at: Timestamp,
}

/// The revision of a server's pins that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PinsRevision {
    server: i64,
    number: i64,
}

impl PinsRevision {
    /// Whether no pins of the server were ever written: this is the first connection.
    #[must_use]
    pub const fn is_first(self) -> bool {
        self.number == 0
    }
}

/// The pins of a server, in the order of the tools' names.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredPins {
    /// The revision of the pins.
    pub revision: PinsRevision,
    /// The pins.
    pub pins: Vec<StoredPin>,
}

const SELECT_SERVER: &str = "SELECT name, era, settings_digest, program, greeting, first_seen \
     FROM servers WHERE tenant = ?1 ";

const SELECT_PINS: &str = "SELECT tool, accepted, accepted_digest, accepted_by, accepted_at, \
     offered, offered_digest, findings, seen_at FROM pins WHERE server = ?1 ";

impl Store {
    /// What is stored about a server; `None` if Windlass never connected to it.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn known_server(&self, tenant: &str, name: &str) -> Result<Option<StoredServer>, Error> {
        self.readers.read(|connection| {
            let mut select =
                connection.prepare_cached(&format!("{SELECT_SERVER} AND name = ?2"))?;
            rows::first(select.query([tenant, name])?, server_from_row)
        })
    }

    /// Records a connection to a server. The time of the first connection, the program and the connection
    /// settings stay as they were first recorded, even if other processes connect at the same time, and so do the pins.
    ///
    /// # Errors
    /// If it could not be stored.
    pub fn note_server(&self, tenant: &str, server: &StoredServer) -> Result<(), Error> {
        let (tenant, server) = (tenant.to_owned(), server.clone());
        let json = |value: &Option<Value>| -> Result<Option<String>, Error> {
            let json = |value| self.redactor.json::<Value>(value, &[]);
            Ok(value.as_ref().map(json).transpose()?)
        };
        // Not redacted: the program is compared by paths and digests. The greeting is only shown.
        let program = server.program.as_ref().map(Value::to_string);
        let greeting = json(&server.greeting)?;
        self.transact("note_server", move |connection| {
            let mut insert = connection.prepare_cached(
                "INSERT INTO servers
                     (tenant, name, era, settings_digest, program, greeting, first_seen)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
                 ON CONFLICT (tenant, name) DO UPDATE SET
                     era = excluded.era, greeting = excluded.greeting",
            )?;
            insert.execute(params![
                tenant,
                server.name,
                server.era,
                server.settings_digest,
                program,
                greeting,
                server.first_seen.as_microseconds()
            ])?;
            Ok(())
        })
    }

    /// Accepts the current program and connection settings of a server. Returns whether the server was known;
    /// if not, nothing is stored.
    ///
    /// # Errors
    /// If it could not be stored.
    pub fn accept_program(
        &self,
        tenant: &str,
        name: &str,
        settings_digest: &str,
        program: Option<&Value>,
    ) -> Result<bool, Error> {
        let [tenant, name, settings_digest] = [tenant, name, settings_digest].map(str::to_owned);
        let program = program.map(Value::to_string);
        self.transact("accept_program", move |connection| {
            let mut update = connection.prepare_cached(
                "UPDATE servers SET settings_digest = ?3, program = ?4
                 WHERE tenant = ?1 AND name = ?2",
            )?;
            Ok(update.execute(params![tenant, name, settings_digest, program])? > 0)
        })
    }

    /// The pins of a server.
    ///
    /// # Errors
    /// If the server is not known ([`Error::NoSuchServer`]), or a pin cannot be read.
    pub fn pins(&self, tenant: &str, name: &str) -> Result<StoredPins, Error> {
        self.readers.read(|connection| {
            // One transaction reads both, so that they belong to the same revision.
            let transaction = connection.unchecked_transaction()?;
            let revision = revision(&transaction, tenant, name)?;
            let mut select = transaction.prepare_cached(&format!("{SELECT_PINS} ORDER BY tool"))?;
            let mut rows = select.query([revision.server])?;
            let mut pins = Vec::new();
            while let Some(row) = rows.next()? {
                pins.push(pin_from_row(row, name)?);
            }
            Ok(StoredPins { revision, pins })
        })
    }

    /// Writes all pins of a server, if they have not changed since `revision` was read. Pins that
    /// are not in `pins` are deleted. Accepted pins must be in it, unchanged.
    ///
    /// # Errors
    /// If they were changed meanwhile or would lose or gain an acceptance ([`Error::PinsChanged`]: read
    /// them again), the server is not known, a secret occurs in a definition, or they could not be
    /// stored. Then nothing is written.
    pub fn write_pins(
        &self,
        tenant: &str,
        name: &str,
        revision: PinsRevision,
        pins: &[StoredPin],
    ) -> Result<PinsRevision, Error> {
        let (tenant, name) = (tenant.to_owned(), name.to_owned());
        let pins = pins
            .iter()
            .map(|pin| PinRow::new(pin, &self.redactor))
            .collect::<Result<Vec<_>, _>>()?;
        self.transact("write_pins", move |connection| {
            if self::revision(connection, &tenant, &name)? != revision {
                return Err(Error::PinsChanged(name.clone()));
            }
            let mut accepted = connection.prepare_cached(
                "SELECT tool, accepted_digest FROM pins WHERE server = ?1
                 AND accepted_digest IS NOT NULL",
            )?;
            let accepted = accepted
                .query_map([revision.server], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect::<Result<Vec<(String, String)>, _>>()?;
            // Writing pins neither accepts nor loses a definition, except on the first connection.
            let new = || pins.iter().filter_map(PinRow::accepted);
            let known = accepted.iter().map(|(tool, digest)| (tool, digest));
            let loses_none = known.clone().all(|one| new().any(|other| one == other));
            let adds_none = new().all(|one| known.clone().any(|other| one == other));
            if !loses_none || !adds_none && !revision.is_first() {
                return Err(Error::PinsChanged(name.clone()));
            }
            connection
                .prepare_cached("DELETE FROM pins WHERE server = ?1")?
                .execute([revision.server])?;
            for pin in &pins {
                pin.insert(connection, revision.server)?;
            }
            next_revision(connection, revision)
        })
    }

    /// Accepts the definition that a server offers for a tool, if its digest is exactly `digest`.
    ///
    /// # Errors
    /// If the server or the tool is not known, no definition or another one is offered
    /// ([`Error::OfferDiffers`]), or it could not be stored.
    pub fn accept_pin(
        &self,
        tenant: &str,
        name: &str,
        tool: &str,
        digest: Digest,
        by: &str,
        at: Timestamp,
    ) -> Result<StoredPin, Error> {
        let [tenant, name, tool, by] = [tenant, name, tool, by].map(str::to_owned);
        self.transact("accept_pin", move |connection| {
            let revision = revision(connection, &tenant, &name)?;
            let found = find(connection, revision, &name, &tool)?;
            let offered = found.offered.as_ref().map(|offered| offered.digest);
            if offered != Some(digest) {
                return Err(Error::OfferDiffers {
                    tool: tool.clone(),
                    found: digest,
                    offered,
                });
            }
            let mut update = connection.prepare_cached(
                "UPDATE pins SET accepted = offered, accepted_digest = offered_digest,
                     accepted_by = ?3, accepted_at = ?4
                 WHERE server = ?1 AND tool = ?2",
            )?;
            update.execute(params![revision.server, tool, by, at.as_microseconds()])?;
            next_revision(connection, revision)?;
            find(connection, revision, &name, &tool)
        })
    }

    /// Forgets a server with its pins, so that the next connection is the first again. Returns whether it was known.
    ///
    /// # Errors
    /// If the database fails.
    pub fn forget_server(&self, tenant: &str, name: &str) -> Result<bool, Error> {
        let (tenant, name) = (tenant.to_owned(), name.to_owned());
        self.transact("forget_server", move |connection| {
            let mut delete =
                connection.prepare_cached("DELETE FROM servers WHERE tenant = ?1 AND name = ?2")?;
            Ok(delete.execute([&tenant, &name])? > 0)
        })
    }
}

/// A pin as it is stored.
struct PinRow {
    pin: StoredPin,
    accepted: Option<(String, String)>,
    offered: Option<(String, String)>,
    findings: String,
}

impl PinRow {
    fn new(pin: &StoredPin, redactor: &Redactor) -> Result<Self, Error> {
        let text = |definition: &Option<StoredDefinition>| match definition {
            None => Ok(None),
            Some(definition) => {
                let text = definition.body.to_string();
                // Redacting the secret would change the definition.
                match redactor.text(&text) == text {
                    true => Ok(Some((text, definition.digest.to_string()))),
                    false => Err(Error::SecretInStructure),
                }
            }
        };
        Ok(Self {
            accepted: text(&pin.accepted)?,
            offered: text(&pin.offered)?,
            findings: redactor.json(&pin.findings, &[])?,
            pin: pin.clone(),
        })
    }

    fn accepted(&self) -> Option<(&String, &String)> {
        let (_, digest) = self.accepted.as_ref()?;
        Some((&self.pin.tool, digest))
    }

    fn insert(&self, connection: &Connection, server: i64) -> Result<(), Error> {
        let parts = |definition: &Option<(String, String)>| match definition {
            Some((text, digest)) => (Some(text.clone()), Some(digest.clone())),
            None => (None, None),
        };
        let (accepted, accepted_digest) = parts(&self.accepted);
        let (offered, offered_digest) = parts(&self.offered);
        let mut insert = connection.prepare_cached(
            "INSERT INTO pins (server, tool, accepted, accepted_digest, accepted_by, accepted_at,
                 offered, offered_digest, findings, seen_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        )?;
        insert.execute(params![
            server,
            self.pin.tool,
            accepted,
            accepted_digest,
            self.pin.accepted_by,
            self.pin.accepted_at.map(Timestamp::as_microseconds),
            offered,
            offered_digest,
            self.findings,
            self.pin.seen_at.as_microseconds()
        ])?;
        Ok(())
    }
}

fn revision(connection: &Connection, tenant: &str, name: &str) -> Result<PinsRevision, Error> {
    let mut select = connection
        .prepare_cached("SELECT id, revision FROM servers WHERE tenant = ?1 AND name = ?2")?;
    let found = select
        .query_row([tenant, name], |row| {
            Ok(PinsRevision {
                server: row.get(0)?,
                number: row.get(1)?,
            })
        })
        .optional()?;
    found.ok_or_else(|| Error::NoSuchServer(name.to_owned()))
}

fn next_revision(connection: &Connection, revision: PinsRevision) -> Result<PinsRevision, Error> {
    let mut update = connection.prepare_cached(
        "UPDATE servers SET revision = revision + 1 WHERE id = ?1 RETURNING revision",
    )?;
    let number = update.query_row([revision.server], |row| row.get(0))?;
    Ok(PinsRevision { number, ..revision })
}

fn find(
    connection: &Connection,
    revision: PinsRevision,
    server: &str,
    tool: &str,
) -> Result<StoredPin, Error> {
    let mut select = connection.prepare_cached(&format!("{SELECT_PINS} AND tool = ?2"))?;
    let found = select
        .query_row(params![revision.server, tool], |row| {
            Ok(pin_from_row(row, server))
        })
        .optional()?;
    found.unwrap_or_else(|| {
        Err(Error::NoSuchPin {
            server: server.to_owned(),
            tool: tool.to_owned(),
        })
    })
}

fn server_from_row(row: &Row<'_>) -> Result<StoredServer, Error> {
    let name: String = row.get("name")?;
    let json = |column: &str| -> Result<Option<Value>, Error> {
        let text: Option<String> = row.get(column)?;
        let read = |text: String| {
            serde_json::from_str(&text)
                .map_err(|error| Error::unreadable(format!("the server `{name}`"), error))
        };
        text.map(read).transpose()
    };
    Ok(StoredServer {
        era: row.get("era")?,
        settings_digest: row.get("settings_digest")?,
        program: json("program")?,
        greeting: json("greeting")?,
        first_seen: Timestamp::from_microseconds(row.get("first_seen")?),
        name: name.clone(),
    })
}

fn pin_from_row(row: &Row<'_>, server: &str) -> Result<StoredPin, Error> {
    let tool: String = row.get("tool")?;
    let unreadable = |reason: &dyn std::fmt::Display| {
        Error::unreadable(
            format!("the pin of the tool `{tool}` of the server `{server}`"),
            reason,
        )
    };
    let definition =
        |column: &str, digest_column: &str| -> Result<Option<StoredDefinition>, Error> {
            let (text, digest): (Option<String>, Option<String>) =
                (row.get(column)?, row.get(digest_column)?);
            let (Some(text), Some(digest)) = (text, digest) else {
                return Ok(None);
            };
            let body: Value = serde_json::from_str(&text).map_err(|error| unreadable(&error))?;
            let digest: Digest = digest.parse().map_err(|error| unreadable(&error))?;
            match StoredDefinition::new(body) {
                stored if stored.digest == digest => Ok(Some(stored)),
                _ => Err(unreadable(&"its text does not match its digest")),
            }
        };
    let findings: String = row.get("findings")?;
    let accepted_at: Option<i64> = row.get("accepted_at")?;
    Ok(StoredPin {
        accepted: definition("accepted", "accepted_digest")?,
        accepted_by: row.get("accepted_by")?,
        accepted_at: accepted_at.map(Timestamp::from_microseconds),
        offered: definition("offered", "offered_digest")?,
        findings: serde_json::from_str(&findings).map_err(|error| unreadable(&error))?,
        seen_at: Timestamp::from_microseconds(row.get("seen_at")?),
        tool: tool.clone(),
    })
}
