//! JSON Schemas of the records. Most of a schema is derived from the raw form it describes; here
//! are the parts a derive does not know: the rules of validated texts and those between fields.

mod rules;

pub(super) use rules::*;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value};

use super::{
    AgentReply, AgentResponse, CallRecord, Conversation, Message, RawUserIntent, ReasoningStep,
    TaskInput, TaskOutput, ToolCall, ToolCallRecord, ToolCallStatus, ToolCallingStrategy,
    ToolCounters, ToolExecutionResult, ToolGapReport, ToolInvocation,
};
use crate::failure::ErrorCategory;
use crate::models::with_examples;

/// The JSON Schema of every record, by name.
#[must_use]
pub fn record_schemas() -> Vec<(&'static str, Value)> {
    let schemas = vec![
        ("AgentReply", schema_of::<AgentReply>()),
        ("AgentResponse", schema_of::<AgentResponse>()),
        ("CallRecord", schema_of::<CallRecord>()),
        ("Conversation", schema_of::<Conversation>()),
        ("Message", schema_of::<Message>()),
        ("ReasoningStep", schema_of::<ReasoningStep>()),
        ("TaskInput", schema_of::<TaskInput>()),
        ("TaskOutput", schema_of::<TaskOutput>()),
        ("ToolCall", schema_of::<ToolCall>()),
        ("ToolCallingStrategy", schema_of::<ToolCallingStrategy>()),
        ("ToolCallRecord", schema_of::<ToolCallRecord>()),
        ("ToolCounters", schema_of::<ToolCounters>()),
        ("ToolExecutionResult", schema_of::<ToolExecutionResult>()),
        ("ToolGapReport", schema_of::<ToolGapReport>()),
        ("ToolInvocation", schema_of::<ToolInvocation>()),
        ("UserIntent", schema_of::<RawUserIntent>()),
    ];
    let with_examples = |(name, schema)| (name, with_examples(name, schema));
    schemas.into_iter().map(with_examples).collect()
}

/// The JSON Schema of a type, as it is written to a file.
pub(crate) fn schema_of<T: JsonSchema>() -> Value {
    let generator = SchemaGenerator::new(SchemaSettings::draft2020_12());
    let mut generated = generator.into_root_schema_for::<T>();
    // For human readers, the title and the description come first.
    let mut schema = Map::new();
    for key in ["$schema", "title", "description"] {
        schema.extend(generated.remove(key).map(|value| (key.to_owned(), value)));
    }
    if let Value::Object(rest) = generated.to_value() {
        schema.extend(rest);
    }
    Value::Object(schema)
}

/// The schema of a closed set of words.
pub(crate) fn one_of_words<const N: usize>(words: [&'static str; N]) -> Schema {
    json_schema!({ "type": "string", "enum": words.as_slice() })
}

/// Implements the JSON Schema of a type, which is written where it is used.
macro_rules! inline_schema {
    ($name:ident = $schema:expr) => {
        impl schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                $schema
            }
        }
    };
}

/// Defines types that only have a schema.
macro_rules! schema_types {
    ($( $(#[$doc:meta])* $name:ident = $schema:expr; )+) => {
        $(
            $(#[$doc])*
            pub(super) struct $name;

            $crate::records::schema::inline_schema!($name = $schema);
        )+
    };
}

pub(crate) use {inline_schema, schema_types};

schema_types! {
    /// A text that is not blank.
    Text = json_schema!({ "type": "string", "pattern": "\\S" });
    /// The name of a tool.
    Name = json_schema!({
        "type": "string", "minLength": 1, "maxLength": 128, "pattern": "\\S",
    });
    /// A timestamp.
    Time = json_schema!({ "type": "string", "format": "date-time" });
    /// The id of a run.
    RunId = json_schema!({
        "type": "string", "maxLength": 128, "pattern": "^[A-Za-z0-9][A-Za-z0-9._:-]*$",
    });
    /// The id of a call.
    CallId = json_schema!({
        "type": "string",
        "pattern": "^[A-Za-z0-9][A-Za-z0-9._:-]*:[1-9][0-9]*:(0|[1-9][0-9]*)$",
    });
    /// A confidence.
    ZeroToOne = json_schema!({ "type": "number", "minimum": 0, "maximum": 1 });
    /// A duration.
    ZeroOrMore = json_schema!({ "type": "number", "minimum": 0 });
    /// A kind of error.
    Category = one_of_words(ErrorCategory::ALL.map(ErrorCategory::as_str));
    /// The status of a call in lower or upper case.
    StatusInAnyCase = {
        let written = ToolCallStatus::ALL.map(|status| status.as_str().to_owned());
        let also_read = ToolCallStatus::ALL.map(|status| status.as_str().to_ascii_uppercase());
        let words: Vec<_> = written.into_iter().chain(also_read).collect();
        json_schema!({ "type": "string", "enum": words })
    };
    /// The failure of a call.
    Failure = json_schema!({
        "type": "object",
        "required": ["category", "retryable", "effect", "operator_message", "model_message"],
        "properties": {
            "category": { "type": "string", "enum": ErrorCategory::ALL.map(ErrorCategory::as_str).as_slice() },
            "retryable": { "type": "boolean" },
            "effect": { "type": "string", "enum": ["none", "applied", "unknown"] },
            "operator_message": { "type": "string" },
            "model_message": { "type": "string" },
            "retry_after_seconds": { "type": "integer", "minimum": 0 },
        },
    });
}
