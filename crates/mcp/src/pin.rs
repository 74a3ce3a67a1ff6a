//! Pins: what a server said of its tools when they were accepted, held against what it says now.
//!
//! The tools of a server are accepted when it is first met, unless there is something suspicious about
//! one. From then on a tool is used only while the server describes it exactly as it was accepted: all
//! of the definition counts, annotations, output schema and `_meta` included. Whatever else the server
//! says waits for a person, who accepts exactly what was shown to them.

mod difference;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::Value;
pub use windlass_core::approval::Digest;
use windlass_spec::Timestamp;

use crate::bounds::{self, OutOfBounds};
use crate::definition::Definition;
use crate::text;

pub use difference::{Change, Rename, diff, renames};

/// A tool of a server, as it was accepted and as it is offered.
#[derive(Debug, Clone, PartialEq)]
pub struct Pin {
    /// The server's own name for the tool.
    pub tool: String,
    /// What was accepted.
    pub accepted: Option<Definition>,
    /// What the server said last; nothing if it no longer has the tool.
    pub offered: Option<Definition>,
    /// What is suspicious about what is offered.
    pub findings: Vec<String>,
    /// Who accepted it; nobody if it was accepted when the server was first met.
    pub accepted_by: Option<String>,
    /// When it was accepted.
    pub accepted_at: Option<Timestamp>,
    /// When the server last offered it.
    pub seen_at: Timestamp,
}

/// Where a tool stands between what was accepted and what is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PinState {
    /// It is offered as it was accepted. Only then can it be used.
    Pinned,
    /// It is offered differently.
    Changed,
    /// It came after the server was first met.
    New,
    /// There is something suspicious about what is offered.
    Quarantined,
    /// It is no longer offered.
    Gone,
}

impl PinState {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pinned => "pinned",
            Self::Changed => "changed",
            Self::New => "new",
            Self::Quarantined => "quarantined",
            Self::Gone => "gone",
        }
    }
}

impl fmt::Display for PinState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The digest of a whole definition, the same however its JSON was written.
#[must_use]
pub fn digest(definition: &Definition) -> Digest {
    Digest::of_json(&Value::Object(definition.as_map().clone()))
}

impl Pin {
    /// Where the tool stands.
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

    /// The definition that may be used: the accepted one, while it is offered.
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

/// What is wrong or suspicious about a definition: the bound it breaks, else what is hidden in it.
#[must_use]
pub fn assess(definition: &Definition) -> Vec<String> {
    match bounds::check(definition) {
        Err(broken) => {
            // What is too large to use is too large to search.
            vec![text::visible(&broken.to_string()).into_owned()]
        }
        Ok(()) => {
            let findings = text::findings(definition);
            findings.iter().map(ToString::to_string).collect()
        }
    }
}

/// Holds what a server offers against what is known of it. `is_first` says that the server was never
/// met before; it counts only while nothing is known. A tool that was never accepted and is no longer
/// offered is forgotten, so that a server cannot fill the store with names.
///
/// The same name twice with two definitions is suspicious, since nobody can say which one is called:
/// then the tool is offered as it was not accepted.
#[must_use]
pub fn meet(known: &[Pin], offered: Vec<Definition>, is_first: bool, now: Timestamp) -> Vec<Pin> {
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
    let mut met = Vec::with_capacity(names.len());
    for name in names {
        let offers = by_name.get(name).map_or(&[][..], Vec::as_slice);
        met.extend(meet_one(
            name,
            known.get(name).copied(),
            offers,
            is_first,
            now,
        ));
    }
    met
}

fn meet_one(
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
    // Of several, one that was not accepted: the tool cannot be used then.
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
            "the server offers {count} different tools of this name"
        ));
    }
    let trusts = is_first && findings.is_empty();
    Some(Pin {
        tool: name.to_owned(),
        accepted: accepted.or_else(|| trusts.then(|| offered.clone())),
        offered: Some(offered.clone()),
        findings,
        accepted_by: known.and_then(|pin| pin.accepted_by.clone()),
        accepted_at: match known {
            Some(pin) => pin.accepted_at,
            None => trusts.then_some(now),
        },
        seen_at: now,
    })
}

/// Why what is offered was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AcceptError {
    /// The server no longer has the tool.
    #[error("the server no longer offers the tool `{0}`")]
    NotOffered(String),
    /// Something else is offered than what was looked at.
    #[error(
        "the tool `{tool}` is now {offered}, not {found}\n\
         hint: look at it again before you accept it"
    )]
    DigestDiffers {
        /// The tool.
        tool: String,
        /// What is offered.
        offered: Digest,
        /// What was looked at.
        found: Digest,
    },
    /// It cannot be used whatever anybody says.
    #[error("the tool `{tool}` cannot be used: {broken}")]
    Unusable {
        /// The tool.
        tool: String,
        /// The bound it breaks.
        broken: OutOfBounds,
    },
}

/// The pin with what is offered accepted by somebody who looked at exactly that: `digest` is of what
/// they were shown. What is suspicious can be accepted; what breaks a bound cannot, because bounds are
/// no matter of trust.
///
/// # Errors
/// If nothing is offered, something else is, or it cannot be used.
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
