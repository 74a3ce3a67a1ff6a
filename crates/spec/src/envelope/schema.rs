//! The JSON Schemas of the envelope and of stream frames. They are written by hand because one
//! enum has many shapes that a derive cannot distinguish. The words come from the enums themselves, and
//! tests check both against everything the types can write.

use serde_json::{Value, json};

use super::words::{
    ExecutionMode, HilAction, InterventionStatus, InterventionType, SecurityLevel, ToolStatus,
    WorkStatus,
};
use crate::failure::{Effect, ErrorCategory};
use crate::models::with_examples;
use crate::words::Word;

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// The JSON Schema of [`ToolResponse`](super::ToolResponse).
#[must_use]
pub fn tool_response_schema() -> Value {
    let schema = json!({
        "$schema": DIALECT,
        "title": "ToolResponse",
        "description": "The one shape of every tool answer.",
        "oneOf": [
            { "$ref": "#/$defs/Success" },
            { "$ref": "#/$defs/Error" },
            { "$ref": "#/$defs/AskHuman" },
            { "$ref": "#/$defs/AuthorizationRequest" },
            { "$ref": "#/$defs/CredentialAuthorization" },
            { "$ref": "#/$defs/Intervention" },
            { "$ref": "#/$defs/Plan" },
            { "$ref": "#/$defs/Work" },
        ],
        "$defs": {
            "Text": { "type": "string", "pattern": "\\S" },
            "Action": { "type": "string", "pattern": "\\S", "maxLength": 128 },
            "Time": { "type": "string", "format": "date-time" },
            "Success": answer(&[ToolStatus::Success.as_str()], &json!({
                "data": {
                    "description": "Any JSON. Page, Nested and Batch are recognised forms.",
                    "anyOf": [
                        { "$ref": "#/$defs/Page" },
                        { "$ref": "#/$defs/Nested" },
                        { "$ref": "#/$defs/Batch" },
                        true,
                    ],
                },
            })),
            "Page": {
                "type": "object",
                "properties": {
                    "total": { "type": "integer", "minimum": 0 },
                    "results": { "type": "array" },
                    "aggregation": true,
                },
                "required": ["total", "results"],
            },
            "Nested": {
                "type": "object",
                "properties": { "result": true, "metadata": { "type": "object" } },
                "required": ["result", "metadata"],
            },
            "Batch": {
                "type": "object",
                "properties": {
                    "total_processed": { "type": "integer", "minimum": 0 },
                    "successful": { "type": "integer", "minimum": 0 },
                    "failed": { "type": "integer", "minimum": 0 },
                    "results": { "type": "array" },
                },
                "required": ["total_processed", "successful", "failed", "results"],
            },
            "Error": error(),
            "AskHuman": hil(HilAction::AskHuman, &[ToolStatus::HumanInputRequested.as_str()], &json!({
                "type": "object",
                "properties": {
                    "question": text(),
                    "context": maybe_text(),
                    "user_id": maybe_text(),
                    "instruction": maybe_text(),
                },
                "required": ["question"],
            })),
            "AuthorizationRequest": hil(
                HilAction::RequestAuthorization,
                &[ToolStatus::AuthorizationRequested.as_str()],
                &json!({
                    "type": "object",
                    "properties": {
                        "request_id": text(),
                        "tool_name": { "$ref": "#/$defs/Action" },
                        "tool_args": { "type": "object" },
                        "reason": text(),
                        "security_level": word::<SecurityLevel>(),
                        "expires_at": { "$ref": "#/$defs/Time" },
                        "user_id": maybe_text(),
                        "instruction": maybe_text(),
                    },
                    "required": super::human::AuthorizationRequest::REQUIRED,
                }),
            ),
            "CredentialAuthorization": hil(
                HilAction::RequestAuthorization,
                &[ToolStatus::AuthorizationRequired.as_str()],
                &json!({
                    "type": "object",
                    "properties": {
                        "auth_type": maybe_text(),
                        "provider": maybe_text(),
                        "url": maybe_text(),
                        "credential_preview": {
                            "type": ["object", "null"],
                            "properties": { "provider": true, "vault_id": true, "stored_at": true },
                        },
                        "screenshot": maybe_text(),
                        "details": true,
                        "instruction": maybe_text(),
                    },
                }),
            ),
            "Intervention": hil(HilAction::AskHuman, &InterventionStatus::spellings(), &json!({
                "type": "object",
                "properties": {
                    "intervention_type": word::<InterventionType>(),
                    "provider": text(),
                    "url": maybe_text(),
                    "screenshot": maybe_text(),
                    "oauth_url": maybe_text(),
                    "details": true,
                    "instruction": maybe_text(),
                },
                "required": ["intervention_type", "provider"],
            })),
            "Plan": answer(&WorkStatus::spellings(), &json!({
                "data": {
                    "type": "object",
                    "properties": {
                        "plan_id": text(),
                        "tasks": { "type": "array" },
                        "execution_mode": word::<ExecutionMode>(),
                        "dependencies": {
                            "type": "object",
                            "additionalProperties": { "type": "array", "items": { "type": "string" } },
                        },
                    },
                    "required": ["plan_id", "tasks", "execution_mode", "dependencies"],
                },
            })),
            "Work": answer(&WorkStatus::spellings(), &json!({
                "data": { "type": "object", "properties": { "plan_id": false } },
            })),
        },
    });
    with_examples("ToolResponse", schema)
}

/// The JSON Schema of [`StreamFrame`](super::StreamFrame). A schema cannot express the rule that a
/// step is at most the total.
#[must_use]
pub fn stream_frame_schema() -> Value {
    let frame = |name: &str, mut properties: Value| {
        properties["type"] = json!({ "const": name });
        closed(&properties, &[])
    };
    let schema = json!({
        "$schema": DIALECT,
        "title": "StreamFrame",
        "description": "One frame of a running call, sent as a server-sent event. `step` is at most `total`.",
        "oneOf": [
            frame("progress", json!({
                "content": { "type": "string" },
                "step": { "type": "integer", "minimum": 1, "maximum": u32::MAX },
                "total": { "type": "integer", "minimum": 1, "maximum": u32::MAX },
            })),
            frame("content", json!({ "content": { "type": "string" } })),
            frame("done", json!({})),
        ],
    });
    with_examples("StreamFrame", schema)
}

fn text() -> Value {
    json!({ "$ref": "#/$defs/Text" })
}

fn maybe_text() -> Value {
    json!({ "type": ["string", "null"] })
}

fn word<W: Word>() -> Value {
    json!({ "enum": W::spellings() })
}

/// An answer: the four common fields, and the properties in `more`.
fn answer(statuses: &[&str], more: &Value) -> Value {
    answer_with_optional(statuses, more, &[])
}

fn answer_with_optional(statuses: &[&str], more: &Value, optional: &[&str]) -> Value {
    let mut properties = json!({
        "status": { "enum": statuses },
        "action": { "$ref": "#/$defs/Action" },
        "timestamp": { "$ref": "#/$defs/Time" },
        "cost_usd": {
            "description": "What the call cost, in US dollars. It counts in the budgets of the run.",
            "type": ["string", "null"],
            "pattern": "^\\s*\\$?[0-9]{1,13}(\\.[0-9]{1,6}0*)?\\s*$",
        },
    });
    for (name, schema) in more.as_object().into_iter().flatten() {
        properties[name] = schema.clone();
    }
    closed(&properties, &[optional, &["cost_usd"]].concat())
}

fn error() -> Value {
    let more = json!({
        "data": { "type": "object" },
        "error": text(),
        "category": {
            "description": "Why it failed: one of a closed set of categories.",
            "enum": ErrorCategory::spellings(),
        },
        "retryable": { "type": "boolean" },
        "effect": word::<Effect>(),
        "model_message": {
            "description": "The message for a model, which does not see `error`. Without it, the model gets only the category.",
            "type": ["string", "null"],
        },
    });
    answer_with_optional(&[ToolStatus::Error.as_str()], &more, &["model_message"])
}

fn hil(action: HilAction, statuses: &[&str], data: &Value) -> Value {
    let mut data = data.clone();
    // The older name of `instruction`, which would otherwise be an unknown field.
    data["properties"]["instructions"] = json!({ "type": "null" });
    let more = json!({
        "action": { "const": action.as_str() },
        "hil_required": { "const": true },
        "message": text(),
        "data": data,
    });
    answer(statuses, &more)
}

/// An object with these properties and no others.
fn closed(properties: &Value, optional: &[&str]) -> Value {
    let names = properties.as_object().into_iter().flatten();
    let required: Vec<_> = names
        .map(|(name, _)| name.as_str())
        .filter(|name| !optional.contains(name))
        .collect();
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}
