//! Tests of the messages for tools that cannot be bound.

use serde_json::json;
use windlass_tools::{BindingMode, Tool};

use super::{DESCRIPTION, builder, described, library, specification, tool};

fn failure(signature: &str, tool: Tool, mode: BindingMode) -> String {
    let specification = specification("sayHello", signature);
    library([tool])
        .bind_tool(&specification, mode)
        .unwrap_err()
        .to_string()
}

#[test]
fn exact_mismatches_are_shown_side_by_side() {
    let signature = r#"(name: Text "Who to greet", age: Int, tone: "warm" | "cool") --> IO Text"#;
    let implementation = Tool::builder("sayHello")
        .description("Says\nhello")
        .signature(r#"(name: Int, tone: "warm" | "dry" = "dry") --> IO [Text]"#)
        .handler(|_| async { Ok(json!(null)) })
        .build()
        .unwrap();
    insta::assert_snapshot!(failure(signature, implementation, BindingMode::Exact));
}

#[test]
fn incompatibilities_are_shown_with_their_location() {
    let signature = r#"(name: Text, people: [{zip: Text}], tone: "warm" | "cool") --> IO {items: [{price: Int}]}"#;
    let implementation = r#"(name: Int, people: [{zip: Int}], tone: "warm", age: Int)
        --> IO {items: [{price: Double}]}"#;
    insta::assert_snapshot!(failure(
        signature,
        tool("sayHello", implementation),
        BindingMode::Compatible
    ));
}

#[test]
fn inexpressible_schemas_are_shown_with_the_keyword() {
    let foreign = builder("sayHello")
        .schema(json!({
            "type": "object",
            "properties": {"name": {"type": "string", "minLength": 1}},
        }))
        .returns(json!({"oneOf": [{"type": "string"}, {"type": "integer"}]}))
        .build()
        .unwrap();
    insta::assert_snapshot!(failure(
        "(name: Text) --> IO Text",
        foreign,
        BindingMode::Compatible
    ));
}

#[test]
fn missing_tools_are_shown_with_suggestions() {
    let library =
        library(["sayHello", "say_hi", "say", "stop"].map(|name| tool(name, "() --> IO Text")));
    let text = |name| {
        library
            .bind_tool(
                &described(name, DESCRIPTION, "() --> IO Text"),
                BindingMode::Exact,
            )
            .unwrap_err()
            .to_string()
    };
    let texts = ["say_hello", "stopp", "launch"].map(text);
    insta::assert_snapshot!(texts.join("\n"));
}
