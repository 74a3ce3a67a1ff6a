//! The data that is stored with a run so that it can be bound again: digests, and the program with its own tools.

use std::path::Path;

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::crew::Crew;

/// The key under which the name of a program with its own tools is stored with a run.
pub const PROGRAM: &str = "program";

/// The digest of all tools that the crew is bound to: names, descriptions, schemas.
#[must_use]
pub fn tools_digest(crew: &Crew) -> String {
    let mut hash = Sha256::new();
    for member in crew.iter() {
        hash.update(member.agent.name().as_str());
        for bound in &member.tools {
            let tool = bound.tool();
            let definition = json!([
                tool.name(),
                tool.description(),
                tool.schema(),
                tool.returns_schema()
            ]);
            hash.update(definition.to_string());
        }
    }
    hex(&hash.finalize())
}

/// The assembly of runs whose tools are functions of this program: no other program can resume them.
pub(crate) fn program_assembly(crew: &Crew) -> Map<String, Value> {
    let program = std::env::current_exe().ok();
    let program = program.as_deref().and_then(Path::file_name);
    let program = program.map(|name| name.to_string_lossy().into_owned());
    let stored = [
        (PROGRAM, json!(program)),
        ("tools", json!(tools_digest(crew))),
    ];
    let stored = stored.into_iter();
    stored
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// The digest of a text.
#[must_use]
pub fn text_digest(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}
