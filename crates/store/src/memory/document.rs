//! The values of memory: scopes, documents, and the check that a document is text.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use windlass_core::approval::Digest;
use windlass_spec::{Timestamp, parsed_text};

use super::error::MemoryError;

/// The default maximum size of a document.
pub const DEFAULT_MAX_DOCUMENT_BYTES: u64 = 16 * 1024 * 1024;

/// Which agents and runs of a principal share a memory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum ScopeReach {
    /// The agent with this name, in all its runs for the principal.
    Agent(String),
    /// All agents that work for the principal.
    Principal,
    /// Only the run with this id.
    Run(String),
}

impl ScopeReach {
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

    pub(super) fn from_parts(kind: &str, value: String) -> Result<Self, MemoryError> {
        match (kind, value.is_empty()) {
            ("agent", false) => Ok(Self::Agent(value)),
            ("run", false) => Ok(Self::Run(value)),
            ("principal", true) => Ok(Self::Principal),
            _ => Err(MemoryError::BadScope(format!("{kind}:{value}"))),
        }
    }
}

impl fmt::Display for ScopeReach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Principal => f.write_str("principal"),
            Self::Agent(value) | Self::Run(value) => write!(f, "{}:{value}", self.kind()),
        }
    }
}

impl FromStr for ScopeReach {
    type Err = MemoryError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad_scope = |_| MemoryError::BadScope(text.to_owned());
        match text.split_once(':') {
            Some((kind, value)) => Self::from_parts(kind, value.to_owned()).map_err(bad_scope),
            None => Self::from_parts(text, String::new()).map_err(bad_scope),
        }
    }
}

parsed_text!(ScopeReach);

/// A scope of memory. Documents of a scope are not visible from any other scope.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemoryScope {
    /// The organisation.
    pub tenant: String,
    /// The person or program.
    pub principal: String,
    /// Which agents and runs of the principal share it.
    pub reach: ScopeReach,
}

impl MemoryScope {
    /// A scope of a tenant and principal.
    pub fn new(tenant: impl Into<String>, principal: impl Into<String>, reach: ScopeReach) -> Self {
        Self {
            tenant: tenant.into(),
            principal: principal.into(),
            reach,
        }
    }

    /// The id of the document whose text has this digest. The same text in the same scope has the same id, also
    /// after it was forgotten and stored again.
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

/// A document to remember.
#[derive(Debug, Clone, PartialEq)]
pub struct NewDocument {
    /// Its text.
    pub text: String,
    /// Its title.
    pub title: Option<String>,
    /// Where it came from.
    pub source: Option<String>,
    /// Whether it is derived from untrusted content.
    pub is_tainted: bool,
    /// Further information about it.
    pub metadata: Map<String, Value>,
    /// Whether it replaces earlier documents from the same source. Documents that also have another source
    /// stay.
    pub replaces_source: bool,
    /// When it is stored.
    pub at: Timestamp,
}

impl NewDocument {
    /// A document with only a text.
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

/// The result of storing a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RememberedDocument {
    /// The document.
    pub id: String,
    /// Whether it is new.
    pub outcome: RememberOutcome,
    /// How many chunks it has.
    pub chunks: usize,
}

/// Whether a stored document is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RememberOutcome {
    /// It is new.
    Added,
    /// It replaced earlier documents from the same source.
    Replaced,
    /// The same text was there; only its time or its source is new.
    Known,
}

/// A stored document, without its text.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StoredDocument {
    /// Its id.
    pub id: String,
    /// Which agents and runs share it.
    pub scope: ScopeReach,
    /// Its title.
    pub title: Option<String>,
    /// Where it came from; if from several sources, one of them.
    pub source: Option<String>,
    /// The digest of its text.
    pub digest: String,
    /// The size of the text in bytes.
    pub bytes: u64,
    /// How many chunks it has.
    pub chunks: u64,
    /// Whether it is derived from untrusted content.
    pub tainted: bool,
    /// When it was first stored.
    pub created_at: Timestamp,
    /// When it was last stored again.
    pub updated_at: Timestamp,
    /// Further information about it.
    pub metadata: Map<String, Value>,
}

/// Decodes the bytes of a document as UTF-8 text.
///
/// # Errors
/// If they are not text.
pub fn document_text(bytes: Vec<u8>) -> Result<String, MemoryError> {
    let text = String::from_utf8(bytes).map_err(|error| MemoryError::Binary {
        what: "invalid character",
        at: error.utf8_error().valid_up_to(),
    })?;
    check_text(&text)?;
    Ok(text)
}

pub(super) fn check_text(text: &str) -> Result<(), MemoryError> {
    match text.bytes().position(|byte| byte == 0) {
        None => Ok(()),
        Some(at) => Err(MemoryError::Binary {
            what: "NUL character",
            at,
        }),
    }
}
