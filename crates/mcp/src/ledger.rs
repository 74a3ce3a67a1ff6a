//! What is known of servers, as the store keeps it: how each was met, what it runs, and the pins of its
//! tools. Pins are met and accepted by the rules of `pin`; here they are only read and written.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;
use windlass_core::approval::Digest;
use windlass_spec::Timestamp;
use windlass_spec::server::{
    CommandTransport, HttpTransport, OAuth, ServerName, ServerSettings, Transport,
};
use windlass_store::{Error, Store, StoredDefinition, StoredPin, StoredPins, StoredServer};

use crate::definition::Definition;
use crate::pin::{self, Pin};
use crate::program::Program;
use crate::{Era, Greeting};

/// How often pins that others change at the same time are read again.
const ATTEMPTS: usize = 10;

/// The part of a store that is about servers, for one tenant. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Ledger {
    store: Arc<Store>,
    tenant: String,
}

/// What went wrong with what is known of a server. Nothing is assumed then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("what is known of the server `{server}` cannot be used: {why}")]
pub struct LedgerError {
    /// The server.
    pub server: ServerName,
    /// What went wrong.
    pub why: String,
}

impl Ledger {
    /// What a store knows of the servers of a tenant.
    #[must_use]
    pub fn new(store: Arc<Store>, tenant: impl Into<String>) -> Self {
        Self {
            store,
            tenant: tenant.into(),
        }
    }

    /// What is known of a server; nothing if it was never met.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn server(&self, name: &ServerName) -> Result<Option<StoredServer>, LedgerError> {
        self.store
            .known_server(&self.tenant, name.as_str())
            .map_err(|error| failed(name, error))
    }

    /// The era that a server was found to speak.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn era(&self, name: &ServerName) -> Result<Option<Era>, LedgerError> {
        let known = self.server(name)?.and_then(|server| server.era);
        Ok(known.and_then(|era| era.parse().ok()))
    }

    /// The pins of a server; nothing if it was never met.
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

    /// Notes how a server was met, and holds what it offers against what was accepted. What it runs
    /// and how it is reached are written down when it is first met; from then on only a person changes
    /// that, by [`Ledger::accept_program`]. If another process met it first meanwhile, what was started
    /// here must be the same.
    pub(crate) fn meet(
        &self,
        settings: &ServerSettings,
        greeting: &Greeting,
        program: Option<&Program>,
        offered: &[Definition],
    ) -> Result<Vec<Pin>, LedgerError> {
        let name = &settings.name;
        let failed = |error| failed(name, error);
        let server = StoredServer {
            name: name.to_string(),
            era: Some(greeting.era.as_str().to_owned()),
            settings_digest: settings_digest(settings),
            program: program_json(name, program)?,
            greeting: Some(greeting_json(greeting)),
            first_seen: now(),
        };
        let noted = self.store.note_server(&self.tenant, &server);
        noted.map_err(failed)?;
        let refused = |why: String| LedgerError {
            server: name.clone(),
            why,
        };
        let changed = self.program_changes(settings, program).map_err(refused)?;
        if !changed.is_empty() {
            return Err(refused(format!(
                "it was started as something else than what was accepted since: {}",
                changed.join("; ")
            )));
        }
        for _ in 0..ATTEMPTS {
            let stored = self.store.pins(&self.tenant, name.as_str());
            let stored = stored.map_err(failed)?;
            let known = read(name, &stored)?;
            let is_first = stored.revision.is_first();
            let met = pin::meet(&known, offered.to_vec(), is_first, now());
            if !is_first && is_same(&known, &met) {
                return Ok(met);
            }
            let rows: Vec<StoredPin> = met.iter().map(written).collect();
            let revision = stored.revision;
            match self
                .store
                .write_pins(&self.tenant, name.as_str(), revision, &rows)
            {
                Ok(_) => return Ok(met),
                Err(Error::PinsChanged(_)) => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Err(refused("others keep changing it".to_owned()))
    }

    /// Accepts what a server offers of a tool now, which must be what `digest` says.
    ///
    /// # Errors
    /// If it offers something else, nothing, or the store cannot be used.
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
                why: error.to_string(),
            });
        }
        self.store
            .accept_pin(&self.tenant, name.as_str(), tool, *digest, by, now())
            .map(drop)
            .map_err(|error| failed(name, error))
    }

    /// What is different in how a server is reached, or in what it runs (`program`, if it is one), from
    /// what was accepted, in words. Whoever can change a project's configuration could otherwise have
    /// anything started.
    ///
    /// # Errors
    /// If what it ran cannot be told.
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
                "the configuration says otherwise how it is reached: {}",
                reached(settings)
            )]);
        }
        let Some(program) = program else {
            return Ok(Vec::new());
        };
        let Some(accepted) = known.program else {
            return Ok(vec!["what it ran before was not written down".to_owned()]);
        };
        let accepted: Program = serde_json::from_value(accepted)
            .map_err(|error| format!("what it ran cannot be read: {error}"))?;
        Ok(accepted.difference(program))
    }

    /// Accepts what a server runs now in the place of what it ran.
    ///
    /// # Errors
    /// If the server was never met or the store cannot be used.
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

    /// Forgets a server and all its pins. Whether it was known.
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
        why: error.to_string(),
    }
}

/// How a server is reached, on one line. Secrets are named in it, not written.
#[must_use]
pub fn reached(settings: &ServerSettings) -> String {
    match &settings.transport {
        Transport::Http(http) => http.url.clone(),
        Transport::Command(command) => {
            let words = std::iter::once(&command.program).chain(&command.arguments);
            let words: Vec<String> = words.map(|word| quoted(word)).collect();
            words.join(" ")
        }
    }
}

/// A word as it would be typed.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:@%+,".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// The digest of how a server is reached. Secrets are named in it, not written.
pub(crate) fn settings_digest(settings: &ServerSettings) -> String {
    let written = match &settings.transport {
        Transport::Command(command) => command_json(command),
        Transport::Http(http) => http_json(http),
    };
    Digest::of_json(&written).to_string()
}

// Taken apart in full, so that nothing that is added later is forgotten here.
fn command_json(command: &CommandTransport) -> Value {
    let CommandTransport {
        program,
        arguments,
        directory,
        environment,
        parts,
    } = command;
    let path = |path: &PathBuf| path.to_string_lossy().into_owned();
    serde_json::json!({
        "command": program,
        "arguments": arguments,
        "directory": directory.as_ref().map(path),
        "environment": environment,
        "parts": parts.iter().map(path).collect::<Vec<_>>(),
    })
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
    let written = program.map(serde_json::to_value).transpose();
    written.map_err(|error| LedgerError {
        server: server.clone(),
        why: format!("what it runs cannot be written down: {error}"),
    })
}

fn greeting_json(greeting: &Greeting) -> Value {
    serde_json::json!({
        "protocol_version": greeting.protocol_version,
        "server_name": greeting.server_name,
        "server_version": greeting.server_version,
        "instructions": greeting.instructions,
    })
}

fn read(server: &ServerName, stored: &StoredPins) -> Result<Vec<Pin>, LedgerError> {
    let definition = |stored: &Option<StoredDefinition>| match stored.as_ref().map(|it| &it.body) {
        None => Ok(None),
        Some(Value::Object(body)) => Ok(Some(Definition::new(body.clone()))),
        Some(_) => Err(LedgerError {
            server: server.clone(),
            why: "a definition is no object".to_owned(),
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

fn written(pin: &Pin) -> StoredPin {
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

/// Whether nothing changed but when the tools were last seen, which is not worth writing down.
fn is_same(known: &[Pin], met: &[Pin]) -> bool {
    known.len() == met.len()
        && known.iter().zip(met).all(|(known, met)| {
            known.tool == met.tool
                && known.accepted == met.accepted
                && known.offered == met.offered
                && known.findings == met.findings
        })
}

#[cfg(test)]
mod tests;

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let micros = since.unwrap_or_default().as_micros();
    Timestamp::from_microseconds(i64::try_from(micros).unwrap_or(i64::MAX))
}
