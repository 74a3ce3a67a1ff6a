//! `windlass memory export`: prints documents as JSON Lines, one per line, with their full text.

use serde_json::json;

use super::MemorySession;
use crate::CommandOutcome;
use crate::arguments::MemoryExport;
use crate::terminal::print_json;

pub(super) fn run(
    session: &MemorySession,
    command: &MemoryExport,
) -> anyhow::Result<CommandOutcome> {
    for document in session
        .service
        .export_memory(&session.identity, &command.scope)?
    {
        print_json(&format!("{}\n", json!(document?)))?;
    }
    Ok(CommandOutcome::Done)
}
