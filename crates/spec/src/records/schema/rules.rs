//! Rules between the fields of a record, as JSON Schema. They are the same as the checks of the raw
//! forms; a test compares both.

use schemars::Schema;
use serde_json::{Map, Value, json};

pub(in crate::records) fn call_record(schema: &mut Schema) {
    let failed = ["error", "timeout", "cancelled", "unknown"];
    add_rules(
        schema,
        [
            (
                field_is("state", &["success"]),
                both(
                    json!({ "required": ["result", "ended_at"] }),
                    lacks(&["failure"]),
                ),
            ),
            (
                field_is("state", &failed),
                both(has(&["failure", "ended_at"]), forbids(&["result"])),
            ),
            (
                field_is("state", &["pending", "running"]),
                both(lacks(&["failure", "ended_at"]), forbids(&["result"])),
            ),
            (
                field_is("state", &["pending"]),
                json!({ "properties": { "permitted": { "const": false } } }),
            ),
            (
                field_is("state", &["running", "success", "timeout", "unknown"]),
                json!({ "properties": { "permitted": { "const": true } } }),
            ),
            (
                json!({ "properties": { "permitted": { "const": true } } }),
                both(
                    has(&["started_at"]),
                    json!({ "properties": { "attempts": { "minimum": 1 } } }),
                ),
            ),
            (
                json!({ "properties": { "permitted": { "const": false } } }),
                both(
                    lacks(&["started_at"]),
                    json!({ "properties": { "attempts": { "maximum": 0 } } }),
                ),
            ),
        ],
    );
}

pub(in crate::records) fn tool_call_record(schema: &mut Schema) {
    let without_result = ["failed", "timeout", "FAILED", "TIMEOUT"];
    add_rules(
        schema,
        [(field_is("status", &without_result), lacks(&["result"]))],
    );
}

pub(in crate::records) fn tool_call(schema: &mut Schema) {
    let success = |is: bool| json!({ "properties": { "success": { "const": is } } });
    add_rules(
        schema,
        [
            (success(true), lacks(&["error_message"])),
            (
                success(false),
                both(has(&["error_message"]), lacks(&["result"])),
            ),
        ],
    );
}

pub(in crate::records) fn tool_execution_result(schema: &mut Schema) {
    let failed = ["error", "timeout", "cancelled"];
    let end = ["end_time", "duration_ms"];
    add_rules(
        schema,
        [
            (
                field_is("status", &["success"]),
                both(
                    has(&["result_data", "end_time"]),
                    lacks(&["error_message", "error_category"]),
                ),
            ),
            (
                field_is("status", &failed),
                both(has(&["error_message", "end_time"]), lacks(&["result_data"])),
            ),
            (
                field_is("status", &["running"]),
                both(
                    lacks(&end),
                    lacks(&["result_data", "error_message", "error_category"]),
                ),
            ),
        ],
    );
}

pub(in crate::records) fn reasoning_step(schema: &mut Schema) {
    let answer = json!({
        "properties": { "observation": { "type": "string", "pattern": "\\S" } },
        "required": ["observation"],
    });
    add_rules(
        schema,
        [
            (
                field_is("action", &["call_tool"]),
                has(&["tool_name", "tool_args"]),
            ),
            (
                field_is("action", &["finish"]),
                both(answer, lacks(&["tool_name", "tool_args"])),
            ),
        ],
    );
}

pub(in crate::records) fn task_output(schema: &mut Schema) {
    let limit_reached = json!({
        "properties": { "iteration_limit_reached": { "const": true } },
        "required": ["iteration_limit_reached"],
    });
    add_rules(
        schema,
        [(
            json!({ "not": limit_reached }),
            json!({ "properties": { "answer": { "pattern": "\\S" } } }),
        )],
    );
}

pub(in crate::records) fn message(schema: &mut Schema) {
    add_rules(
        schema,
        [
            (field_is("role", &["function"]), has(&["name"])),
            (
                json!({ "not": field_is("role", &["function"]) }),
                lacks(&["name", "call_id"]),
            ),
            (
                json!({ "not": field_is("role", &["assistant"]) }),
                json!({ "properties": { "calls": { "maxItems": 0 } } }),
            ),
        ],
    );
}

/// Adds rules between fields: each has an `if` and a `then`.
fn add_rules<const N: usize>(schema: &mut Schema, rules: [(Value, Value); N]) {
    let rules: Vec<_> = rules
        .into_iter()
        .map(|(condition, rule)| json!({ "if": condition, "then": rule }))
        .collect();
    schema.insert("allOf".to_owned(), Value::Array(rules));
}

/// The condition that a field is present with one of these values.
fn field_is(field: &str, values: &[&str]) -> Value {
    json!({ "properties": { field: { "enum": values } }, "required": [field] })
}

/// The rule that these fields are present and not null.
fn has(fields: &[&str]) -> Value {
    let present = fields
        .iter()
        .map(|&field| (field.to_owned(), json!({ "not": { "type": "null" } })));
    let properties: Map<_, _> = present.collect();
    json!({ "properties": properties, "required": fields })
}

/// The rule that these fields are absent or null.
fn lacks(fields: &[&str]) -> Value {
    let absent = fields
        .iter()
        .map(|&field| (field.to_owned(), json!({ "type": "null" })));
    let properties: Map<_, _> = absent.collect();
    json!({ "properties": properties })
}

/// The rule that these fields are absent.
fn forbids(fields: &[&str]) -> Value {
    let never = fields.iter().map(|&field| (field.to_owned(), json!(false)));
    let properties: Map<_, _> = never.collect();
    json!({ "properties": properties })
}

fn both(first: Value, second: Value) -> Value {
    json!({ "allOf": [first, second] })
}
