//! `windlass memory export`: documents as JSON Lines, one line a document, with its whole text.

use serde_json::json;

use super::Own;
use crate::Outcome;
use crate::arguments::MemoryExport;
use crate::terminal::put;

pub(super) fn run(own: &Own, command: &MemoryExport) -> anyhow::Result<Outcome> {
    for document in own.service.export_memory(&own.identity, &command.scope)? {
        put(&format!("{}\n", json!(document?)))?;
    }
    Ok(Outcome::Done)
}
