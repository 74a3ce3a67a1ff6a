//! From declarations, a library and models to agents that can work, and what is stored with their runs so
//! that these can be bound again.

use std::io;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use windlass_model::{HostedModel, HostedSettings, ModelClient, ModelError};
use windlass_spec::Agent;
use windlass_tools::{BindingMode, ToolLibrary};

use crate::crew::{Crew, CrewError};

/// The name under which a program that has its own tools is stored with a run.
pub const PROGRAM: &str = "program";

/// Which model each agent asks.
#[derive(Clone, Default)]
pub struct Models {
    /// Asked by all of them instead of what they declare.
    pub instead: Option<Arc<dyn ModelClient>>,
    /// How declared models are asked.
    pub settings: HostedSettings,
}

impl std::fmt::Debug for Models {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Models")
            .field("is_instead", &self.instead.is_some())
            .finish_non_exhaustive()
    }
}

impl Models {
    fn of(&self, agent: &Agent) -> Result<Arc<dyn ModelClient>, ModelError> {
        match &self.instead {
            Some(model) => Ok(Arc::clone(model)),
            None => Ok(Arc::new(HostedModel::new(
                agent.model(),
                self.settings.clone(),
            )?)),
        }
    }
}

/// Puts the agent `lead` together with those of `agents` it may hand work to.
///
/// # Errors
/// If an agent is missing, cannot be bound to the library, or has no model.
pub fn assemble(
    agents: &[Agent],
    lead: &Agent,
    library: &ToolLibrary,
    mode: BindingMode,
    models: &Models,
) -> Result<Crew, CrewError> {
    Crew::assemble(agents, lead, library, mode, &|agent| models.of(agent))
}

/// The digest of all tools that agents are bound to: names, descriptions, schemas.
#[must_use]
pub fn tools_digest(crew: &Crew) -> String {
    let mut hash = Sha256::new();
    for worker in crew.iter() {
        hash.update(worker.agent.name().as_str());
        for bound in &worker.tools {
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

/// What a program stores with runs whose tools are its own functions: no other program can resume them.
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

/// The digest of all that a reader yields.
///
/// # Errors
/// If it cannot be read.
pub fn reader_digest(mut reader: impl io::Read) -> io::Result<String> {
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => return Ok(hex(&digest.finalize())),
            Ok(count) => digest.update(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}
