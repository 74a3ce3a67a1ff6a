//! The gate: what every call passes before a tool may run. Whatever leaves it with leave to run
//! carries a [`Permit`]; running the tool is not the gate's business.

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
