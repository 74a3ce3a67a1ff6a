//! The committed JSON Schemas are up to date and agree with deserialization.

use serde_json::{Value, json};

use crate::records::tests::schemas::assert_up_to_date;
use crate::registry::*;

/// Set `UPDATE_SCHEMAS=1` to regenerate them.
#[test]
fn committed_schemas_are_up_to_date() {
    assert_up_to_date(registry_schemas());
}

fn is_read(name: &str, value: Value) -> bool {
    match name {
        "ToolCategory" => serde_json::from_value::<ToolCategory>(value).is_ok(),
        "ToolConfiguration" => serde_json::from_value::<ToolConfiguration>(value).is_ok(),
        "ToolExecutionContext" => serde_json::from_value::<ToolExecutionContext>(value).is_ok(),
        other => panic!("{other} is not covered"),
    }
}

#[test]
fn schemas_and_deserialization_agree() {
    let context = |key: &str, value: Value| {
        let mut context = json!({ "user_request": "hi", "environment": "staging" });
        context[key] = value;
        context
    };
    let configuration = |key: &str, value: Value| json!({ "tool_name": "t", key: value });
    let category = |key: &str, value: Value| json!({ "name": "slack_tools", key: value });
    let cases = [
        (
            "ToolExecutionContext",
            context("environment", json!("qa")),
            true,
        ),
        (
            "ToolExecutionContext",
            context("channel_id", json!("C024BE91L")),
            true,
        ),
        (
            "ToolExecutionContext",
            context("channel_id", json!("general")),
            false,
        ),
        (
            "ToolExecutionContext",
            context("user_id", json!("ada")),
            false,
        ),
        (
            "ToolExecutionContext",
            context("thread_ts", json!("12")),
            false,
        ),
        (
            "ToolExecutionContext",
            context("user_request", json!("")),
            false,
        ),
        (
            "ToolExecutionContext",
            context("user_request", json!("x".repeat(2001))),
            false,
        ),
        (
            "ToolExecutionContext",
            context("environment", json!("Staging")),
            false,
        ),
        ("ToolExecutionContext", context("surprise", json!(1)), false),
        (
            "ToolExecutionContext",
            context(
                "conversation_history",
                json!(vec![json!({ "role": "user", "content": "a" }); 101]),
            ),
            false,
        ),
        (
            "ToolConfiguration",
            configuration("timeout_seconds", json!(300)),
            true,
        ),
        (
            "ToolConfiguration",
            configuration("timeout_seconds", json!(301)),
            false,
        ),
        (
            "ToolConfiguration",
            configuration("timeout_seconds", json!(0)),
            false,
        ),
        (
            "ToolConfiguration",
            configuration("rate_limits", json!({ "per_day": 1 })),
            true,
        ),
        (
            "ToolConfiguration",
            configuration("rate_limits", json!({ "per_day": 0 })),
            false,
        ),
        (
            "ToolConfiguration",
            configuration("rate_limits", json!({ "per_week": 1 })),
            false,
        ),
        (
            "ToolConfiguration",
            configuration("surprise", json!(1)),
            false,
        ),
        (
            "ToolCategory",
            category("permissions", json!(["chat:write"])),
            true,
        ),
        (
            "ToolCategory",
            category("permissions", json!(["Chat"])),
            false,
        ),
        ("ToolCategory", category("name", json!("Slack")), false),
        ("ToolCategory", category("surprise", json!(1)), false),
    ];
    for (name, value, good) in cases {
        let schemas = registry_schemas();
        let (_, schema) = schemas.iter().find(|(known, _)| *known == name).unwrap();
        assert!(jsonschema::meta::is_valid(schema), "{name}");
        assert_eq!(
            jsonschema::is_valid(schema, &value),
            good,
            "{name}: {value}"
        );
        assert_eq!(is_read(name, value.clone()), good, "{name}: {value}");
    }
}
