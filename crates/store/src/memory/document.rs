//! What is remembered and for whom, as values: scopes, documents, and the check that a document is text.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use windlass_core::approval::Digest;
use windlass_spec::Timestamp;

use super::error::MemoryError;

/// How large a document may be unless something else is said.
pub const DEFAULT_MAX_DOCUMENT_BYTES: u64 = 16 * 1024 * 1024;

/// Whose memory something is, within a tenant and for a principal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Reach {
    /// That of the agent of this name, in all its runs for the principal.
    Agent(String),
    /// That of all agents that work for the principal.
    Principal,
    /// That of the run of this id alone.
    Run(String),
}

impl Reach {
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Agent(_) => "agent",
            Self::Principal => "principal",
            Self::Run(_) => "run",
        }
    }

    pub(super) fn value(&self) -> &str {
        match self {
            Self::Agent(value) | Self::Run(value) => value,
            Self::Principal => "",
        }
    }

    pub(super) fn of(kind: &str, value: String) -> Result<Self, MemoryError> {
        match (kind, value.is_empty()) {
            ("agent", false) => Ok(Self::Agent(value)),
            ("run", false) => Ok(Self::Run(value)),
            ("principal", true) => Ok(Self::Principal),
            _ => Err(MemoryError::BadScope(format!("{kind}:{value}"))),
        }
    }
}

impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Principal => f.write_str("principal"),
            Self::Agent(value) | Self::Run(value) => write!(f, "{}:{value}", self.kind()),
        }
    }
}

impl FromStr for Reach {
    type Err = MemoryError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = |_| MemoryError::BadScope(text.to_owned());
        match text.split_once(':') {
            Some((kind, value)) => Self::of(kind, value.to_owned()).map_err(wrong),
            None => Self::of(text, String::new()).map_err(wrong),
        }
    }
}

impl From<Reach> for String {
    fn from(reach: Reach) -> Self {
        reach.to_string()
    }
}

impl TryFrom<String> for Reach {
    type Error = MemoryError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

/// A scope: nothing in it is seen from any other.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemoryScope {
    /// The organisation.
    pub tenant: String,
    /// The person or program.
    pub principal: String,
    /// Whose memory it is among what is done for them.
    pub reach: Reach,
}

impl MemoryScope {
    /// The scope of that reach.
    pub fn new(tenant: impl Into<String>, principal: impl Into<String>, reach: Reach) -> Self {
        Self {
            tenant: tenant.into(),
            principal: principal.into(),
            reach,
        }
    }

    /// The id of a document with that text. The same text in the same scope has the same id, also after
    /// it was forgotten and told again.
    pub(super) fn document_id(&self, digest: Digest) -> String {
        let whole = Value::from(vec![
            self.tenant.clone(),
            self.principal.clone(),
            self.reach.to_string(),
            digest.to_string(),
        ]);
        let digest = Digest::of_json(&whole).to_string();
        let digits: String = digest
            .trim_start_matches("sha256:")
            .chars()
            .take(20)
            .collect();
        format!("doc-{digits}")
    }
}

/// Something to remember.
#[derive(Debug, Clone, PartialEq)]
pub struct NewDocument {
    /// What.
    pub text: String,
    /// What it is called.
    pub title: Option<String>,
    /// Where it came from.
    pub source: Option<String>,
    /// Whether it comes from what was read outside.
    pub is_tainted: bool,
    /// What else is known about it.
    pub metadata: Map<String, Value>,
    /// Whether it takes the place of what came from the same source before. What came from elsewhere, too,
    /// stays.
    pub replaces_source: bool,
    /// When.
    pub at: Timestamp,
}

impl NewDocument {
    /// A text without anything else known about it.
    #[must_use]
    pub fn new(text: impl Into<String>, at: Timestamp) -> Self {
        Self {
            text: text.into(),
            title: None,
            source: None,
            is_tainted: false,
            metadata: Map::new(),
            replaces_source: false,
            at,
        }
    }
}

/// What came of storing a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Remembered {
    /// The document.
    pub id: String,
    /// Whether it is new.
    pub outcome: RememberOutcome,
    /// How many chunks it has.
    pub chunks: usize,
}

/// Whether a document is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RememberOutcome {
    /// It is.
    Added,
    /// It took the place of what came from the same source before.
    Replaced,
    /// The same text was there; only its time is new, or from where it was told.
    Known,
}

/// A document as it is kept, without its text.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StoredDocument {
    /// Its id.
    pub id: String,
    /// Whose it is.
    pub scope: Reach,
    /// What it is called.
    pub title: Option<String>,
    /// Where it came from; if from several places, one of them.
    pub source: Option<String>,
    /// The digest of its text.
    pub digest: String,
    /// How large the text is.
    pub bytes: u64,
    /// How many chunks it has.
    pub chunks: u64,
    /// Whether it comes from what was read outside.
    pub tainted: bool,
    /// When it was first stored.
    pub created_at: Timestamp,
    /// When it was last told again.
    pub updated_at: Timestamp,
    /// What else is known about it.
    pub metadata: Map<String, Value>,
}

/// The text that bytes are.
///
/// # Errors
/// If they are not text.
pub fn document_text(bytes: Vec<u8>) -> Result<String, MemoryError> {
    let text = String::from_utf8(bytes).map_err(|error| MemoryError::Binary {
        what: "there is no character",
        at: error.utf8_error().valid_up_to(),
    })?;
    check_text(&text)?;
    Ok(text)
}

pub(super) fn check_text(text: &str) -> Result<(), MemoryError> {
    match text.bytes().position(|byte| byte == 0) {
        None => Ok(()),
        Some(at) => Err(MemoryError::Binary {
            what: "there is a NUL",
            at,
        }),
    }
}
