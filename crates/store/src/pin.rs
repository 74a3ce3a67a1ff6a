//! MCP servers that were met, and the pins of their tools: what was accepted and what is offered. What
//! follows from a difference is decided elsewhere.
//!
//! Several processes may meet one server at once, while a person accepts something. So pins are read
//! with a [`PinsRevision`] and written only if nobody changed them since; whoever comes second reads
//! again. What was accepted changes only by [`Store::accept_pin`], or when pins are written for the
//! first time. A row that cannot be read, or whose text is not what its digest says, is an error for the
//! whole server: a pin that is skipped would be a tool nobody looks at.

use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::Value;
use windlass_core::approval::Digest;
use windlass_spec::Timestamp;

use crate::error::Error;
use crate::store::Store;
use windlass_core::redact::Redactor;

/// A server that was met.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredServer {
    /// The operator's name for it.
    pub name: String,
    /// Which form of the protocol it speaks, `legacy` or `modern`, if that is known.
    pub era: Option<String>,
    /// The digest of how it is reached.
    pub settings_digest: String,
    /// The files it runs, if it is a program.
    pub program: Option<Value>,
    /// How it introduced itself.
    pub greeting: Option<Value>,
    /// When it was first met.
    pub first_seen: Timestamp,
}

/// A tool's definition and the digest of it.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredDefinition {
    /// All of it.
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
    /// What was accepted.
    pub accepted: Option<StoredDefinition>,
    /// Who accepted it; nobody if that was when the server was first met.
    pub accepted_by: Option<String>,
    /// When it was accepted.
    pub accepted_at: Option<Timestamp>,
    /// What the server said last.
    pub offered: Option<StoredDefinition>,
    /// What is suspicious about that.
    pub findings: Vec<String>,
    /// When the server last offered it.
    pub seen_at: Timestamp,
}

/// Which state of a server's pins was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PinsRevision {
    server: i64,
    number: i64,
}

impl PinsRevision {
    /// Whether no pins of the server were ever written: it is met for the first time.
    #[must_use]
    pub const fn is_first(self) -> bool {
        self.number == 0
    }
}

/// The pins of a server, in the order of the tools' names.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredPins {
    /// Which state of them this is.
    pub revision: PinsRevision,
    /// The pins.
    pub pins: Vec<StoredPin>,
}

const SELECT_SERVER: &str = "SELECT name, era, settings_digest, program, greeting, first_seen \
     FROM servers WHERE tenant = ?1 ";

const SELECT_PINS: &str = "SELECT tool, accepted, accepted_digest, accepted_by, accepted_at, \
     offered, offered_digest, findings, seen_at FROM pins WHERE server = ?1 ";

impl Store {
    /// What is known of a server; nothing if it was never met.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn known_server(&self, tenant: &str, name: &str) -> Result<Option<StoredServer>, Error> {
        self.readers.read(|connection| {
            let mut select =
                connection.prepare_cached(&format!("{SELECT_SERVER} AND name = ?2"))?;
            let found = select
                .query_row([tenant, name], |row| Ok(server(row)))
                .optional()?;
            found.transpose()
        })
    }

    /// All servers that were met, by name.
    ///
    /// # Errors
    /// If one of them cannot be read.
    pub fn known_servers(&self, tenant: &str) -> Result<Vec<StoredServer>, Error> {
        self.readers.read(|connection| {
            let mut select =
                connection.prepare_cached(&format!("{SELECT_SERVER} ORDER BY name"))?;
            let mut rows = select.query([tenant])?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                found.push(server(row)?);
            }
            Ok(found)
        })
    }

    /// Notes how a server was met. When it was first met, what it ran then and how it was reached stay as they
    /// were, whoever else meets it at the same time, and so do its pins.
    ///
    /// # Errors
    /// If it could not be stored.
    pub fn note_server(&self, tenant: &str, server: &StoredServer) -> Result<(), Error> {
        let (tenant, server) = (tenant.to_owned(), server.clone());
        let json = |value: &Option<Value>| -> Result<Option<String>, Error> {
            let json = |value| self.redactor.json::<Value>(value, &[]);
            Ok(value.as_ref().map(json).transpose()?)
        };
        // Paths and digests are what the program is compared by; an introduction is only shown.
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

    /// Accepts what a server runs, and how it is reached, in the place of what was known. Whether it was met before;
    /// if not, nothing is noted.
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
    /// If the server was never met ([`Error::NoSuchServer`]), or one of them cannot be read.
    pub fn pins(&self, tenant: &str, name: &str) -> Result<StoredPins, Error> {
        self.readers.read(|connection| {
            // One transaction reads both, so that they are of one state.
            let transaction = connection.unchecked_transaction()?;
            let revision = revision(&transaction, tenant, name)?;
            let mut select = transaction.prepare_cached(&format!("{SELECT_PINS} ORDER BY tool"))?;
            let mut rows = select.query([revision.server])?;
            let mut pins = Vec::new();
            while let Some(row) = rows.next()? {
                pins.push(pin(row, name)?);
            }
            Ok(StoredPins { revision, pins })
        })
    }

    /// Writes all pins of a server, if they are still as they were when `revision` was read. Those that
    /// are not among `pins` are forgotten; those that were accepted must be among them, as they were
    /// accepted.
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
            .map(|pin| Written::new(pin, &self.redactor))
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
            // Nobody accepts anything by the way, and nothing accepted is lost.
            let written = || pins.iter().filter_map(Written::accepted);
            let known = accepted.iter().map(|(tool, digest)| (tool, digest));
            let is_kept = known.clone().all(|one| written().any(|other| one == other));
            let is_all = written().all(|one| known.clone().any(|other| one == other));
            if !is_kept || !is_all && !revision.is_first() {
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

    /// Accepts what a server offers under a name, if that is exactly what `digest` says.
    ///
    /// # Errors
    /// If the server or the tool is not known, nothing or something else is offered
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

    /// Forgets a server with its pins, so that it is met for the first time again. Whether it was known.
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

/// A pin as it is written.
struct Written {
    pin: StoredPin,
    accepted: Option<(String, String)>,
    offered: Option<(String, String)>,
    findings: String,
}

impl Written {
    fn new(pin: &StoredPin, redactor: &Redactor) -> Result<Self, Error> {
        let text = |definition: &Option<StoredDefinition>| match definition {
            None => Ok(None),
            Some(definition) => {
                let text = definition.body.to_string();
                // Without the secret it would be another definition.
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
        .query_row(params![revision.server, tool], |row| Ok(pin(row, server)))
        .optional()?;
    found.unwrap_or_else(|| {
        Err(Error::NoSuchPin {
            server: server.to_owned(),
            tool: tool.to_owned(),
        })
    })
}

fn server(row: &Row<'_>) -> Result<StoredServer, Error> {
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

fn pin(row: &Row<'_>, server: &str) -> Result<StoredPin, Error> {
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
                _ => Err(unreadable(&"its text is not what its digest says")),
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
