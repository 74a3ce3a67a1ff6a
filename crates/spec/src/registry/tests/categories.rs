//! Categories.

use serde_json::json;

use super::read_error;
use crate::registry::*;

#[test]
fn categories_are_predefined_or_declared() {
    let mut known = Categories::default();
    for name in ["slack_tools", "openai_tools", "analysis_tools"] {
        assert_eq!(known.require(name).unwrap().as_str(), name);
    }
    for name in CategoryName::PREDEFINED {
        assert!(known.contains(&name));
        assert!(known.fields(&name).is_some_and(|fields| !fields.is_empty()));
        assert_eq!(CategoryName::new(name.as_str()), Ok(name));
    }
    let unknown = known.require("slak_tools").unwrap_err();
    assert_eq!(unknown.to_string(), "there is no category `slak_tools`");
    assert_eq!(unknown.nearest.as_deref(), Some("slack_tools"));
    let crm: CategoryName = "crm_tools".parse().unwrap();
    known.declare(crm.clone(), Vec::new());
    assert_eq!(known.require("crm_tools"), Ok(&crm));
}

#[test]
fn a_category_has_exactly_these_keys() {
    let full = json!({
        "name": "slack_tools",
        "enabled": true,
        "permissions": ["channels:history", "chat:write"],
        "global_config": { "channel": "general" },
        "tools": {
            "post_message": {
                "tool_name": "post_message",
                "enabled": true,
                "parameters": {},
                "environment_overrides": {},
                "rate_limits": { "per_minute": 30 },
                "timeout_seconds": 10,
            },
        },
    });
    let read: ToolCategory = serde_json::from_value(full.clone()).unwrap();
    assert_eq!(json!(read), full);
    let error = read_error::<ToolCategory>(json!({ "name": "slack_tools", "tool": {} }));
    assert!(error.contains("`tool`"), "{error}");
    let error = read_error::<ToolCategory>(json!({ "name": "slack_tools", "permissions": ["X"] }));
    assert!(error.contains("is not a permission"), "{error}");
}

#[test]
fn the_key_of_a_tool_must_be_its_tool_name() {
    let other = json!({ "name": "slack_tools", "tools": { "a": { "tool_name": "b" } } });
    let error = read_error::<ToolCategory>(other);
    assert!(error.contains("tools.a: its tool_name is `b`"), "{error}");
    let mut category = ToolCategory::new(CategoryName::SLACK_TOOLS);
    category.configure(ToolConfiguration::new("post".parse().unwrap()));
    assert!(category.tools().contains_key("post"));
    assert!(category.enabled);
}
