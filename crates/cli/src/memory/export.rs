//! Documents as JSON Lines: one line a document, with its whole text.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use windlass_spec::Timestamp;
use windlass_store::{MemoryError, Reach};

use super::Own;
use crate::Outcome;
use crate::arguments::MemoryExport;
use crate::terminal::put;

/// One document on its way.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Line {
    /// Which form of lines this is.
    pub(super) windlass_memory: u32,
    pub(super) scope: Reach,
    pub(super) text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) source: Option<String>,
    #[serde(default)]
    pub(super) tainted: bool,
    pub(super) stored_at: Timestamp,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(super) metadata: Map<String, Value>,
}

/// The form of lines that this version writes, and reads.
pub(super) const FORM: u32 = 1;

pub(super) fn run(own: &Own, command: &MemoryExport) -> anyhow::Result<Outcome> {
    let scopes = own.scopes(&command.scope)?;
    // Listed once: what comes while this is written may be left out, but nothing is written twice.
    for document in own.memory.documents(&scopes, 0, usize::MAX)? {
        let text = match own.memory.text(&scopes, &document.id) {
            Ok(text) => text,
            // Somebody forgot it since.
            Err(MemoryError::NoSuchDocument(_)) => continue,
            Err(error) => return Err(error.into()),
        };
        let line = Line {
            windlass_memory: FORM,
            text,
            scope: document.scope,
            title: document.title,
            source: document.source,
            tainted: document.tainted,
            stored_at: document.updated_at,
            metadata: document.metadata,
        };
        put(&format!("{}\n", json!(line)))?;
    }
    Ok(Outcome::Done)
}
