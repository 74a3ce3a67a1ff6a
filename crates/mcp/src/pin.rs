//! Pins: the accepted definitions of a server's tools, compared with the definitions it offers now.
//!
//! The tools of a server are accepted on the first connection, unless a definition is suspicious. From then
//! on a tool is used only while the server offers exactly the accepted definition, including annotations,
//! output schema and `_meta`. Any other definition needs the approval of the operator, who accepts exactly
//! the definition that was shown.

mod difference;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
pub use windlass_core::approval::Digest;
use windlass_spec::Timestamp;

use crate::bounds::{self, OutOfBounds};
use crate::definition::Definition;
use crate::text;

pub use difference::{Change, Rename, diff, renames};

/// The accepted and the offered definition of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Pin {
    /// The server's name for the tool.
    pub tool: String,
    /// The accepted definition.
    pub accepted: Option<Definition>,
    /// The definition that the server offered last. `None` if it no longer offers the tool.
    pub offered: Option<Definition>,
    /// What is suspicious about the offered definition.
    pub findings: Vec<String>,
    /// Who accepted it. `None` if it was accepted on the first connection.
    pub accepted_by: Option<String>,
    /// When it was accepted.
    pub accepted_at: Option<Timestamp>,
    /// When the server last offered it.
    pub seen_at: Timestamp,
}

windlass_spec::word_set! {
    /// The state of a tool: its offered definition compared with the accepted one.
    PinState, "state of a pin" {
        /// The accepted definition is offered. Only then can the tool be used.
        Pinned = "pinned",
        /// Another definition is offered.
        Changed = "changed",
        /// The tool was added after the first connection.
        New = "new",
        /// The offered definition is suspicious.
        Quarantined = "quarantined",
        /// The tool is no longer offered.
        Gone = "gone",
    }
}

/// The digest of a whole definition, independent of the formatting of its JSON.
#[must_use]
pub fn digest(definition: &Definition) -> Digest {
    Digest::of_json(&Value::Object(definition.as_map().clone()))
}

impl Pin {
    /// The state of the tool.
    #[must_use]
    pub fn state(&self) -> PinState {
        let Some(offered) = &self.offered else {
            return PinState::Gone;
        };
        let is_accepted = self
            .accepted
            .as_ref()
            .is_some_and(|accepted| is_same(accepted, offered));
        match (is_accepted, &self.accepted) {
            (true, _) => PinState::Pinned,
            (false, _) if !self.findings.is_empty() => PinState::Quarantined,
            (false, Some(_)) => PinState::Changed,
            (false, None) => PinState::New,
        }
    }

    /// The definition that may be used: the accepted one, as long as it is offered.
    #[must_use]
    pub fn usable(&self) -> Option<&Definition> {
        match self.state() {
            PinState::Pinned => self.accepted.as_ref(),
            _ => None,
        }
    }
}

fn is_same(one: &Definition, other: &Definition) -> bool {
    one == other || digest(one) == digest(other)
}

/// The findings about a definition: the bound it exceeds, or else the suspicious content.
#[must_use]
pub fn assess(definition: &Definition) -> Vec<String> {
    match bounds::check(definition) {
        Err(broken) => {
            // A definition that is too large to use is too large to search.
            vec![text::visible(&broken.to_string()).into_owned()]
        }
        Ok(()) => {
            let findings = text::findings(definition);
            findings.iter().map(ToString::to_string).collect()
        }
    }
}

/// Compares the offered tools of a server with its pins and returns the new pins. `is_first` is whether
/// this is the first connection; it is ignored if there are pins. A tool that was never accepted and is no
/// longer offered is dropped, so that a server cannot fill the store with names.
///
/// Two definitions with the same name are suspicious, since it is unclear which one a call would use. Then
/// the pin gets an offered definition that was not accepted.
#[must_use]
pub fn reconcile(
    known: &[Pin],
    offered: Vec<Definition>,
    is_first: bool,
    now: Timestamp,
) -> Vec<Pin> {
    let is_first = is_first && known.is_empty();
    let known: BTreeMap<&str, &Pin> = known.iter().map(|pin| (pin.tool.as_str(), pin)).collect();
    let mut by_name: BTreeMap<String, Vec<Definition>> = BTreeMap::new();
    for definition in offered {
        let same_name = by_name.entry(definition.name().to_owned()).or_default();
        if !same_name.iter().any(|other| is_same(other, &definition)) {
            same_name.push(definition);
        }
    }
    let names: BTreeSet<&str> = known
        .keys()
        .copied()
        .chain(by_name.keys().map(String::as_str))
        .collect();
    let mut pins = Vec::with_capacity(names.len());
    for name in names {
        let offers = by_name.get(name).map_or(&[][..], Vec::as_slice);
        pins.extend(reconcile_one(
            name,
            known.get(name).copied(),
            offers,
            is_first,
            now,
        ));
    }
    pins
}

fn reconcile_one(
    name: &str,
    known: Option<&Pin>,
    offers: &[Definition],
    is_first: bool,
    now: Timestamp,
) -> Option<Pin> {
    let accepted = known.and_then(|pin| pin.accepted.clone());
    let is_accepted = |offer: &&Definition| {
        let accepted = accepted.as_ref();
        accepted.is_some_and(|accepted| is_same(accepted, offer))
    };
    // Prefers a definition that was not accepted, so that an ambiguous tool cannot be used.
    let offered = offers
        .iter()
        .find(|offer| !is_accepted(offer))
        .or_else(|| offers.first());
    let Some(offered) = offered else {
        let gone = known.filter(|pin| pin.accepted.is_some())?;
        return Some(Pin {
            offered: None,
            findings: Vec::new(),
            ..gone.clone()
        });
    };
    let mut findings = assess(offered);
    if offers.len() > 1 {
        let count = offers.len();
        findings.push(format!(
            "the server offers {count} different tools with this name"
        ));
    }
    let is_trusted = is_first && findings.is_empty();
    Some(Pin {
        tool: name.to_owned(),
        accepted: accepted.or_else(|| is_trusted.then(|| offered.clone())),
        offered: Some(offered.clone()),
        findings,
        accepted_by: known.and_then(|pin| pin.accepted_by.clone()),
        accepted_at: match known {
            Some(pin) => pin.accepted_at,
            None => is_trusted.then_some(now),
        },
        seen_at: now,
    })
}

/// Why an offered definition was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AcceptError {
    /// The server no longer offers the tool.
    #[error("the server no longer offers the tool `{0}`")]
    NotOffered(String),
    /// The offered definition is not the one that was reviewed.
    #[error(
        "the server now offers the tool `{tool}` with digest {offered}, not {found}\n\
         hint: review it again before you accept it"
    )]
    DigestDiffers {
        /// The tool.
        tool: String,
        /// The digest of the offered definition.
        offered: Digest,
        /// The digest of the reviewed definition.
        found: Digest,
    },
    /// The definition exceeds a bound, which no approval can override.
    #[error("the tool `{tool}` cannot be used: {broken}")]
    Unusable {
        /// The tool.
        tool: String,
        /// The bound it exceeds.
        broken: OutOfBounds,
    },
}

/// Accepts the offered definition of a pin. `digest` is that of the definition that was reviewed. A
/// suspicious definition can be accepted; one that exceeds a bound cannot.
///
/// # Errors
/// If no definition or another one is offered, or it exceeds a bound.
pub fn accept(pin: &Pin, digest: &Digest, by: &str, at: Timestamp) -> Result<Pin, AcceptError> {
    let tool = || text::visible(&pin.tool).into_owned();
    let offered = pin
        .offered
        .as_ref()
        .ok_or_else(|| AcceptError::NotOffered(tool()))?;
    let now = self::digest(offered);
    if now != *digest {
        return Err(AcceptError::DigestDiffers {
            tool: tool(),
            offered: now,
            found: *digest,
        });
    }
    bounds::check(offered).map_err(|broken| AcceptError::Unusable {
        tool: tool(),
        broken,
    })?;
    Ok(Pin {
        accepted: Some(offered.clone()),
        accepted_by: Some(by.to_owned()),
        accepted_at: Some(at),
        ..pin.clone()
    })
}
