//! Permits: leave to run one tool once.

use serde_json::Value;
use windlass_spec::ToolName;

/// Leave to run one tool once with these arguments.
///
/// Only the gate makes one. A tool takes it by value, so whoever has no permit cannot run anything,
/// and whoever has one can run that one call and no other, once. That is why it has no public
/// constructor and can be neither copied nor read back from data: a permit that outlived its call
/// would be a second call that nobody decided on.
#[derive(Debug)]
#[must_use = "a call that was allowed and not run leaves its decision without an outcome"]
pub struct Permit {
    tool: ToolName,
    arguments: Value,
}

impl Permit {
    /// Called by the run machine alone, for a call its journal shows as allowed and about to run.
    pub(crate) fn mint(tool: ToolName, arguments: Value) -> Self {
        Self { tool, arguments }
    }

    /// The tool that may run.
    #[must_use]
    pub fn tool(&self) -> &ToolName {
        &self.tool
    }

    /// The arguments it may run with.
    #[must_use]
    pub fn arguments(&self) -> &Value {
        &self.arguments
    }

    /// The arguments, in exchange for the permit.
    #[must_use]
    pub fn into_arguments(self) -> Value {
        self.arguments
    }
}
