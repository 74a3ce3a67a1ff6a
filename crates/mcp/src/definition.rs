//! The definition of a tool as a server sends it. It is untrusted.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The complete definition of a tool as a server sent it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Definition(Map<String, Value>);

/// The annotations of a tool about its effects. `None` where the server gives none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Hints {
    /// The tool changes nothing.
    pub read_only: Option<bool>,
    /// The tool may make destructive changes.
    pub destructive: Option<bool>,
    /// Repeating a call has no further effect.
    pub idempotent: Option<bool>,
    /// The tool interacts with external entities.
    pub open_world: Option<bool>,
}

impl Definition {
    /// The definition with the keys of the protocol (`name`, `title`, `description`,
    /// `inputSchema`, `outputSchema`, `annotations`, `_meta`, ...).
    #[must_use]
    pub fn new(sent: Map<String, Value>) -> Self {
        Self(sent)
    }

    /// The complete definition.
    #[must_use]
    pub fn as_map(&self) -> &Map<String, Value> {
        &self.0
    }

    /// The server's name for the tool. Empty if it gave none.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// The description of the tool.
    #[must_use]
    pub fn description(&self) -> Option<&str> {
        self.0.get("description").and_then(Value::as_str)
    }

    /// The JSON Schema of the arguments.
    #[must_use]
    pub fn input_schema(&self) -> Option<&Value> {
        self.0.get("inputSchema")
    }

    /// The JSON Schema of the result, if the server gives one.
    #[must_use]
    pub fn output_schema(&self) -> Option<&Value> {
        self.0.get("outputSchema")
    }

    /// The annotations about the tool's effects.
    #[must_use]
    pub fn hints(&self) -> Hints {
        let annotations = self.0.get("annotations");
        let hint = |name: &str| annotations.and_then(|all| all.get(name)?.as_bool());
        Hints {
            read_only: hint("readOnlyHint"),
            destructive: hint("destructiveHint"),
            idempotent: hint("idempotentHint"),
            open_world: hint("openWorldHint"),
        }
    }
}
