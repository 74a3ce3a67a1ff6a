//! JSON Schemas of what an operator lays down. Most of a schema is derived; here are the rules of
//! checked texts and numbers that a derive cannot know.

use std::borrow::Cow;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value};

use super::{ToolCategory, ToolConfiguration, ToolExecutionContext};
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

fn schema_of<T: JsonSchema>() -> Value {
    let generator = SchemaGenerator::new(SchemaSettings::draft2020_12());
    let mut generated = generator.into_root_schema_for::<T>();
    // People open these files too: what it is comes before what it holds.
    let mut schema = Map::new();
    for key in ["$schema", "title", "description"] {
        schema.extend(generated.remove(key).map(|value| (key.to_owned(), value)));
    }
    if let Value::Object(rest) = generated.to_value() {
        schema.extend(rest);
    }
    Value::Object(schema)
}

/// Defines a type that only stands for a schema.
macro_rules! stands_for {
    ($( $(#[$doc:meta])* $name:ident = $schema:expr; )+) => {
        $(
            $(#[$doc])*
            pub(super) struct $name;

            impl JsonSchema for $name {
                fn inline_schema() -> bool {
                    true
                }

                fn schema_name() -> Cow<'static, str> {
                    stringify!($name).into()
                }

                fn json_schema(_: &mut SchemaGenerator) -> Schema {
                    $schema
                }
            }
        )+
    };
}

stands_for! {
    /// The name of a tool.
    Name = json_schema!({
        "type": "string", "minLength": 1, "maxLength": 128, "pattern": "\\S",
    });
    /// A tool's time limit.
    Timeout = json_schema!({ "type": "integer", "minimum": 1, "maximum": TimeoutSeconds::MAX });
    /// What a user asked.
    Request = json_schema!({
        "type": "string", "minLength": 1, "maxLength": 2000, "pattern": "\\S",
    });
}
