//! JSON Schemas of an operator's settings. Most of a schema is derived; here are the rules of
//! validated texts and numbers that a derive does not know.

use schemars::json_schema;
use serde_json::Value;

use super::{ToolCategory, ToolConfiguration, ToolExecutionContext};
use crate::records::schema::{schema_of, schema_types};
use crate::tool::TimeoutSeconds;

/// The JSON Schema of every model of the registry that is written as JSON, by name.
#[must_use]
pub fn registry_schemas() -> Vec<(&'static str, Value)> {
    vec![
        ("ToolCategory", schema_of::<ToolCategory>()),
        ("ToolConfiguration", schema_of::<ToolConfiguration>()),
        ("ToolExecutionContext", schema_of::<ToolExecutionContext>()),
    ]
}

schema_types! {
    /// The name of a tool.
    Name = json_schema!({
        "type": "string", "minLength": 1, "maxLength": 128, "pattern": "\\S",
    });
    /// A tool's time limit.
    Timeout = json_schema!({ "type": "integer", "minimum": 1, "maximum": TimeoutSeconds::MAX });
    /// A user's request.
    Request = json_schema!({
        "type": "string", "minLength": 1, "maxLength": 2000, "pattern": "\\S",
    });
}
