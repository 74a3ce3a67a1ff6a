//! The committed schemas are up to date and agree with the strict reader.

use std::path::PathBuf;
use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::{Value, json};

use super::TIME;
use crate::envelope::{ToolResponse, stream_frame_schema, tool_response_schema};

static TOOL_RESPONSE: LazyLock<Validator> = LazyLock::new(|| validator(&tool_response_schema()));

fn validator(schema: &Value) -> Validator {
    jsonschema::meta::validate(schema).unwrap();
    jsonschema::options()
        .should_validate_formats(true)
        .build(schema)
        .unwrap()
}

pub(super) fn assert_valid(json: &Value) {
    let errors: Vec<_> = TOOL_RESPONSE
        .iter_errors(json)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{json:#}\n{errors:#?}");
}

pub(super) fn is_valid(json: &Value) -> bool {
    TOOL_RESPONSE.is_valid(json)
}

fn assert_committed(name: &str, schema: &Value) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("schemas")
        .join(name);
    let text = format!("{schema:#}\n");
    if std::env::var_os("UPDATE_SCHEMAS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &text).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == text,
        "{} is out of date; run the tests with UPDATE_SCHEMAS=1",
        path.display()
    );
}

#[test]
fn the_committed_schema_of_tool_response_is_the_generated_one() {
    assert_committed("tool-response.json", &tool_response_schema());
}

#[test]
fn the_committed_schema_of_stream_frame_is_the_generated_one() {
    assert_committed("stream-frame.json", &stream_frame_schema());
}

#[test]
fn the_schema_of_stream_frame_accepts_only_frames() {
    let schema = validator(&stream_frame_schema());
    for frame in [
        json!({"type": "progress", "content": "Processing...", "step": 1, "total": 5}),
        json!({"type": "content", "content": "Result data..."}),
        json!({"type": "done"}),
    ] {
        assert!(schema.is_valid(&frame), "{frame}");
    }
    for other in [
        json!({"type": "progress", "content": "x", "step": 0, "total": 5}),
        json!({"type": "progress", "content": "x", "step": 1}),
        json!({"type": "content"}),
        json!({"type": "more"}),
        json!({}),
    ] {
        assert!(!schema.is_valid(&other), "{other}");
    }
}

#[test]
fn json_that_the_schema_rejects_is_rejected_by_the_reader_too() {
    for json in [
        json!({}),
        json!({"status": "success", "action": "a", "data": {}}),
        json!({"status": "success", "action": "", "data": {}, "timestamp": TIME}),
        json!({"status": "success", "action": "a", "timestamp": TIME}),
        json!({"status": "success", "action": "a", "data": {}, "timestamp": TIME, "billing": {}}),
        json!({"status": "error", "action": "a", "data": {}, "error": "e", "timestamp": TIME}),
        json!({"status": "created", "action": "a", "data": {"plan_id": 5}, "timestamp": TIME}),
        json!({
            "status": "human_input_requested", "action": "ask_human", "hil_required": true,
            "message": "m", "data": {}, "timestamp": TIME,
        }),
        json!({
            "status": "human_required", "action": "ask_human", "hil_required": false,
            "message": "m", "data": {"intervention_type": "captcha", "provider": "p"},
            "timestamp": TIME,
        }),
    ] {
        assert!(!is_valid(&json), "{json}");
        ToolResponse::from_value(json).unwrap_err();
    }
}
