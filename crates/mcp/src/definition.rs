//! A tool as a server describes it. Nothing here is believed yet.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A tool as a server describes it, all of it: what is not here did not come.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Definition(Map<String, Value>);

/// What a server says about the effects of a tool. `None` where it says nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Hints {
    /// The tool changes nothing.
    pub read_only: Option<bool>,
    /// The tool may destroy.
    pub destructive: Option<bool>,
    /// Calling it twice is the same as calling it once.
    pub idempotent: Option<bool>,
    /// It deals with the world outside.
    pub open_world: Option<bool>,
}

impl Definition {
    /// What the server sent, under the keys of the protocol (`name`, `title`, `description`,
    /// `inputSchema`, `outputSchema`, `annotations`, `_meta`, ...).
    #[must_use]
    pub fn new(sent: Map<String, Value>) -> Self {
        Self(sent)
    }

    /// All of it.
    #[must_use]
    pub fn as_map(&self) -> &Map<String, Value> {
        &self.0
    }

    /// The server's own name for the tool; empty if it gave none.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// What it says the tool does.
    #[must_use]
    pub fn description(&self) -> Option<&str> {
        self.0.get("description").and_then(Value::as_str)
    }

    /// The JSON Schema of what the tool takes.
    #[must_use]
    pub fn input_schema(&self) -> Option<&Value> {
        self.0.get("inputSchema")
    }

    /// The JSON Schema of what the tool gives, if the server says.
    #[must_use]
    pub fn output_schema(&self) -> Option<&Value> {
        self.0.get("outputSchema")
    }

    /// What it says about the tool's effects.
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
