//! The stored records of servers: how each is reached, its program, and the pins of its tools. The rules
//! for pins are in `pin`; this module only reads and writes them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;
use windlass_core::approval::Digest;
use windlass_spec::server::{
    CommandTransport, HttpTransport, OAuth, ServerName, ServerSettings, Transport,
};
use windlass_spec::{ProgramAccess, Timestamp};
use windlass_store::{Error, Store, StoredDefinition, StoredPin, StoredPins, StoredServer};

use crate::definition::Definition;
use crate::pin::{self, Pin};
use crate::program::Program;
use crate::{Era, ServerInfo};

/// How often pins are read again if another process changes them at the same time.
const ATTEMPTS: usize = 10;

/// The records of servers in a store, for one tenant. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Ledger {
    store: Arc<Store>,
    tenant: String,
}

/// The records of a server cannot be used. Then the server is not used either.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot use the stored records of the server `{server}`: {reason}")]
pub struct LedgerError {
    /// The server.
    pub server: ServerName,
    /// What went wrong.
    pub reason: String,
}

impl Ledger {
    /// The records of a tenant's servers.
    #[must_use]
    pub fn new(store: Arc<Store>, tenant: impl Into<String>) -> Self {
        Self {
            store,
            tenant: tenant.into(),
        }
    }

    /// The record of a server. `None` if it was never connected to.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn server(&self, name: &ServerName) -> Result<Option<StoredServer>, LedgerError> {
        self.store
            .known_server(&self.tenant, name.as_str())
            .map_err(|error| failed(name, error))
    }

    /// The protocol era that a server was found to speak.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn era(&self, name: &ServerName) -> Result<Option<Era>, LedgerError> {
        let known = self.server(name)?.and_then(|server| server.era);
        Ok(known.and_then(|era| era.parse().ok()))
    }

    /// The pins of a server. `None` if it was never connected to.
    ///
    /// # Errors
    /// If one of them cannot be read.
    pub fn pins(&self, name: &ServerName) -> Result<Option<Vec<Pin>>, LedgerError> {
        match self.store.pins(&self.tenant, name.as_str()) {
            Ok(stored) if stored.revision.is_first() => Ok(None),
            Ok(stored) => Ok(Some(read(name, &stored)?)),
            Err(Error::NoSuchServer(_)) => Ok(None),
            Err(error) => Err(failed(name, error)),
        }
    }

    /// Stores a connection to a server, and compares the offered tools with the accepted ones. The
    /// program and the transport are stored on the first connection. Later, only the operator changes
    /// them, with [`Ledger::accept_program`]. If another process made the first connection meanwhile, the
    /// program that was started here must be the same.
    pub(crate) fn record_connection(
        &self,
        settings: &ServerSettings,
        info: &ServerInfo,
        program: Option<&Program>,
        offered: &[Definition],
    ) -> Result<Vec<Pin>, LedgerError> {
        let name = &settings.name;
        let failed = |error| failed(name, error);
        let server = StoredServer {
            name: name.to_string(),
            era: Some(info.era.as_str().to_owned()),
            settings_digest: settings_digest(settings),
            program: program_json(name, program)?,
            greeting: Some(info_json(info)),
            first_seen: now(),
        };
        let noted = self.store.note_server(&self.tenant, &server);
        noted.map_err(failed)?;
        let refused = |reason: String| LedgerError {
            server: name.clone(),
            reason,
        };
        let changed = self.program_changes(settings, program).map_err(refused)?;
        if !changed.is_empty() {
            return Err(refused(format!(
                "the program that was started is not the one that was accepted meanwhile: {}",
                changed.join("; ")
            )));
        }
        for _ in 0..ATTEMPTS {
            let stored = self.store.pins(&self.tenant, name.as_str());
            let stored = stored.map_err(failed)?;
            let known = read(name, &stored)?;
            let is_first = stored.revision.is_first();
            let pins = pin::reconcile(&known, offered.to_vec(), is_first, now());
            if !is_first && is_same(&known, &pins) {
                return Ok(pins);
            }
            let rows: Vec<StoredPin> = pins.iter().map(to_stored).collect();
            let revision = stored.revision;
            match self
                .store
                .write_pins(&self.tenant, name.as_str(), revision, &rows)
            {
                Ok(_) => return Ok(pins),
                Err(Error::PinsChanged(_)) => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Err(refused(
            "other processes keep changing them; try again".to_owned(),
        ))
    }

    /// Accepts the definition of a tool that a server offers now, which must have this digest.
    ///
    /// # Errors
    /// If it offers another definition or none, or the store cannot be used.
    pub fn accept(
        &self,
        name: &ServerName,
        tool: &str,
        digest: &Digest,
        by: &str,
    ) -> Result<(), LedgerError> {
        let pins = self.pins(name)?.unwrap_or_default();
        let pin = pins.iter().find(|pin| pin.tool == tool);
        let allowed = pin.map(|pin| pin::accept(pin, digest, by, now()));
        if let Some(Err(error)) = allowed {
            return Err(LedgerError {
                server: name.clone(),
                reason: error.to_string(),
            });
        }
        self.store
            .accept_pin(&self.tenant, name.as_str(), tool, *digest, by, now())
            .map(drop)
            .map_err(|error| failed(name, error))
    }

    /// Describes how the transport of a server, or its program, differs from what was accepted. Without
    /// this check, a change to a project's configuration could start any program.
    ///
    /// # Errors
    /// If the accepted program cannot be read.
    pub fn program_changes(
        &self,
        settings: &ServerSettings,
        program: Option<&Program>,
    ) -> Result<Vec<String>, String> {
        let known = self
            .server(&settings.name)
            .map_err(|error| error.to_string())?;
        let Some(known) = known else {
            return Ok(Vec::new());
        };
        if known.settings_digest != settings_digest(settings) {
            return Ok(vec![format!(
                "the configuration now reaches it by `{}`",
                describe_transport(settings)
            )]);
        }
        let Some(program) = program else {
            return Ok(Vec::new());
        };
        let Some(accepted) = known.program else {
            return Ok(vec!["the accepted program was not stored".to_owned()]);
        };
        let accepted: Program = serde_json::from_value(accepted)
            .map_err(|error| format!("cannot read the accepted program: {error}"))?;
        Ok(accepted.difference(program))
    }

    /// Accepts the current program and transport of a server.
    ///
    /// # Errors
    /// If the server was never connected to, or the store cannot be used.
    pub fn accept_program(
        &self,
        settings: &ServerSettings,
        program: Option<&Program>,
    ) -> Result<(), LedgerError> {
        let name = &settings.name;
        let program = program_json(name, program)?;
        let accepted = self.store.accept_program(
            &self.tenant,
            name.as_str(),
            &settings_digest(settings),
            program.as_ref(),
        );
        accepted.map(drop).map_err(|error| failed(name, error))
    }

    /// Deletes a server and all its pins. Returns whether it was known.
    ///
    /// # Errors
    /// If the store cannot be used.
    pub fn forget(&self, name: &ServerName) -> Result<bool, LedgerError> {
        self.store
            .forget_server(&self.tenant, name.as_str())
            .map_err(|error| failed(name, error))
    }
}

fn failed(server: &ServerName, error: Error) -> LedgerError {
    LedgerError {
        server: server.clone(),
        reason: error.to_string(),
    }
}

/// The command line or URL of a server, on one line. It contains the names of secrets, not their values.
#[must_use]
pub fn describe_transport(settings: &ServerSettings) -> String {
    match &settings.transport {
        Transport::Http(http) => http.url.clone(),
        Transport::Command(command) => {
            let words = std::iter::once(&command.program).chain(&command.arguments);
            let words: Vec<String> = words.map(|word| quoted(word)).collect();
            words.join(" ")
        }
    }
}

/// A word, quoted for a shell if necessary.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:@%+,".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// The digest of a server's transport settings. It covers the names of secrets, not their values.
pub(crate) fn settings_digest(settings: &ServerSettings) -> String {
    let json = match &settings.transport {
        Transport::Command(command) => command_json(command),
        Transport::Http(http) => http_json(http),
    };
    Digest::of_json(&json).to_string()
}

// Destructured in full, so that a new field cannot be forgotten here.
fn command_json(command: &CommandTransport) -> Value {
    let CommandTransport {
        program,
        arguments,
        directory,
        environment,
        parts,
        access,
    } = command;
    let path = |path: &PathBuf| path.to_string_lossy().into_owned();
    let mut json = serde_json::json!({
        "command": program,
        "arguments": arguments,
        "directory": directory.as_ref().map(path),
        "environment": environment,
        "parts": parts.iter().map(path).collect::<Vec<_>>(),
    });
    // Only if something is declared: settings that were accepted before keep their digest.
    if *access != ProgramAccess::default() {
        json["access"] = Value::String(access.to_string());
    }
    json
}

fn http_json(http: &HttpTransport) -> Value {
    let HttpTransport {
        url,
        headers,
        oauth,
    } = http;
    let oauth = oauth.as_ref().map(|oauth| {
        let OAuth {
            client_id,
            client_secret,
            scopes,
        } = oauth;
        serde_json::json!({
            "client_id": client_id,
            "client_secret": client_secret,
            "scopes": scopes,
        })
    });
    serde_json::json!({"url": url, "headers": headers, "oauth": oauth})
}

fn program_json(
    server: &ServerName,
    program: Option<&Program>,
) -> Result<Option<Value>, LedgerError> {
    let json = program.map(serde_json::to_value).transpose();
    json.map_err(|error| LedgerError {
        server: server.clone(),
        reason: format!("cannot store its program: {error}"),
    })
}

fn info_json(info: &ServerInfo) -> Value {
    serde_json::json!({
        "protocol_version": info.protocol_version,
        "server_name": info.server_name,
        "server_version": info.server_version,
        "instructions": info.instructions,
    })
}

fn read(server: &ServerName, stored: &StoredPins) -> Result<Vec<Pin>, LedgerError> {
    let definition = |stored: &Option<StoredDefinition>| match stored.as_ref().map(|it| &it.body) {
        None => Ok(None),
        Some(Value::Object(body)) => Ok(Some(Definition::new(body.clone()))),
        Some(_) => Err(LedgerError {
            server: server.clone(),
            reason: "a definition is not a JSON object".to_owned(),
        }),
    };
    let pins = stored.pins.iter().map(|pin| {
        Ok(Pin {
            tool: pin.tool.clone(),
            accepted: definition(&pin.accepted)?,
            offered: definition(&pin.offered)?,
            findings: pin.findings.clone(),
            accepted_by: pin.accepted_by.clone(),
            accepted_at: pin.accepted_at,
            seen_at: pin.seen_at,
        })
    });
    pins.collect()
}

fn to_stored(pin: &Pin) -> StoredPin {
    let definition = |definition: &Option<Definition>| {
        let body = definition.as_ref()?.as_map().clone();
        Some(StoredDefinition::new(Value::Object(body)))
    };
    StoredPin {
        tool: pin.tool.clone(),
        accepted: definition(&pin.accepted),
        accepted_by: pin.accepted_by.clone(),
        accepted_at: pin.accepted_at,
        offered: definition(&pin.offered),
        findings: pin.findings.clone(),
        seen_at: pin.seen_at,
    }
}

/// Whether the pins are the same except for the time the tools were last seen, which is not stored alone.
fn is_same(known: &[Pin], current: &[Pin]) -> bool {
    known.len() == current.len()
        && known.iter().zip(current).all(|(known, current)| {
            known.tool == current.tool
                && known.accepted == current.accepted
                && known.offered == current.offered
                && known.findings == current.findings
        })
}

#[cfg(test)]
mod tests;

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let micros = since.unwrap_or_default().as_micros();
    Timestamp::from_microseconds(i64::try_from(micros).unwrap_or(i64::MAX))
}
