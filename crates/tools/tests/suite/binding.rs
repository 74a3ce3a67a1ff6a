//! Tests of which implementations match which specifications.

use serde_json::json;
use windlass_tools::{BindingFailure, BindingMode, BindingReason, SchemaPart, Tool, bind};

use super::{agent, builder, described, library, specification, tool};

/// Binds one tool and returns the reasons why it failed.
fn reasons(signature: &str, tool: Tool, mode: BindingMode) -> Vec<BindingReason> {
    let specification = specification(tool.name().as_str(), signature);
    library([tool])
        .bind_tool(&specification, mode)
        .err()
        .map(|failure| failure.reasons)
        .unwrap_or_default()
}

#[track_caller]
fn assert_binds(signature: &str, implementation: &str, mode: BindingMode) {
    assert_eq!(reasons(signature, tool("t", implementation), mode), []);
}

#[test]
fn exact_binding_ignores_the_order_within_schemas() {
    assert_binds(
        r#"(a: Text, b: "x" | "y") --> IO {c: Int, d: Int}"#,
        r#"(b: "y" | "x", a: Text) --> IO {d: Int, c: Int}"#,
        BindingMode::Exact,
    );
}

#[test]
fn exact_binding_reports_description_and_schemas_together() {
    let specification = described("t", "Says hello", "(a: Text) --> IO Text");
    let failure = library([tool("t", "(a: Int) --> IO Int")])
        .bind_tool(&specification, BindingMode::Exact)
        .unwrap_err();
    assert!(matches!(
        failure.reasons[..],
        [
            BindingReason::DescriptionDiffers { .. },
            BindingReason::SchemaDiffers { .. },
            BindingReason::ReturnDiffers { .. }
        ]
    ));
}

#[test]
fn descriptions_alone_do_not_stop_an_exact_binding_and_are_noted() {
    let specification = described("t", "Says hello", r#"(a: Text "Whom") --> IO Text"#);
    let bound = library([tool("t", r#"(a: Text "The name") --> IO Text"#)])
        .bind_tool(&specification, BindingMode::Exact)
        .unwrap();
    assert!(matches!(
        bound.notes(),
        [
            BindingReason::DescriptionDiffers { .. },
            BindingReason::SchemaDiffers { .. }
        ]
    ));
    // A property that is called `description` is part of the schema.
    let reasons = reasons(
        "(description: Text) --> IO Text",
        tool("t", "(description: Int) --> IO Text"),
        BindingMode::Exact,
    );
    assert!(matches!(reasons[..], [BindingReason::SchemaDiffers { .. }]));
    let same = specification_without_notes();
    assert_eq!(same, 0);
}

/// How many notes there are about equal tools.
fn specification_without_notes() -> usize {
    let specification = specification("t", "(a: Text) --> IO Text");
    let bound =
        library([tool("t", "(a: Text) --> IO Text")]).bind_tool(&specification, BindingMode::Exact);
    bound.unwrap().notes().len()
}

#[test]
fn exact_binding_compares_the_return_schema_only_if_there_is_one() {
    let without_return_schema = |name| {
        let schema = tool(name, "(a: Text) --> IO Text").schema().clone();
        builder(name).schema(schema).build().unwrap()
    };
    assert_eq!(
        reasons(
            "(a: Text) --> IO [Int]",
            without_return_schema("t"),
            BindingMode::Exact
        ),
        []
    );
    assert_eq!(
        reasons(
            "(a: Text) --> IO [Int]",
            without_return_schema("t"),
            BindingMode::Compatible
        ),
        []
    );
}

#[test]
fn an_implementation_that_accepts_more_and_returns_less_is_compatible() {
    assert_binds(
        r#"(a: "x" | "y", n: Int) --> IO Double"#,
        "(a: Text, n: Double, more: Maybe Bool) --> IO Int",
        BindingMode::Compatible,
    );
}

#[test]
fn an_implementation_that_accepts_less_is_not_compatible() {
    for (signature, implementation) in [
        ("(a: Text) --> IO Text", r#"(a: "x") --> IO Text"#),
        ("(a: Maybe Text) --> IO Text", "(a: Text) --> IO Text"),
        ("(a: Text) --> IO Text", "() --> IO Text"),
        ("() --> IO Text", "(a: Text) --> IO Text"),
    ] {
        let reasons = reasons(
            signature,
            tool("t", implementation),
            BindingMode::Compatible,
        );
        assert!(
            matches!(reasons[..], [BindingReason::Incompatible { .. }]),
            "{signature}: {reasons:?}"
        );
    }
}

#[test]
fn an_implementation_that_returns_more_is_not_compatible() {
    for (signature, implementation) in [
        ("() --> IO Int", "() --> IO Double"),
        ("() --> IO Text", "() --> IO (Maybe Text)"),
        ("() --> IO {a: Text}", "() --> IO {a: Maybe Text}"),
    ] {
        let reasons = reasons(
            signature,
            tool("t", implementation),
            BindingMode::Compatible,
        );
        assert!(
            matches!(reasons[..], [BindingReason::ReturnIncompatible { .. }]),
            "{signature}: {reasons:?}"
        );
    }
}

#[test]
fn descriptions_may_differ_in_both_kinds_of_binding() {
    let specification = described("t", "Says hello", r#"(a: Text "whom") --> IO Text"#);
    let library = library([tool("t", r#"(a: Text "who") --> IO Text"#)]);
    for mode in [BindingMode::Compatible, BindingMode::Exact] {
        assert!(library.bind_tool(&specification, mode).is_ok());
    }
}

#[test]
fn an_inexpressible_schema_is_refused() {
    let foreign = builder("t")
        .schema(json!({
            "type": "object",
            "properties": {"a": {"type": "string", "pattern": "^x"}},
            "required": ["a"],
            "additionalProperties": false,
        }))
        .returns(json!({"type": ["string", "integer"]}))
        .build()
        .unwrap();
    let reasons = reasons("(a: Text) --> IO Text", foreign, BindingMode::Compatible);
    let parts: Vec<SchemaPart> = reasons
        .iter()
        .map(|reason| match reason {
            BindingReason::Undecidable {
                part,
                inexpressible,
            } => {
                assert!(!inexpressible.is_empty());
                *part
            }
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(parts, [SchemaPart::Parameters, SchemaPart::Returns]);
}

#[test]
fn a_schema_too_large_to_convert_still_binds_to_an_equal_schema() {
    let options: Vec<String> = (0..20_000).map(|option| format!("\"{option}\"")).collect();
    let signature = format!("(a: {}) --> IO Text", options.join(" | "));
    assert_binds(&signature, &signature, BindingMode::Compatible);
}

#[test]
fn a_missing_tool_is_reported_with_similar_names() {
    let library =
        library(["sayHello", "say_hello_twice", "stop"].map(|name| tool(name, "() --> IO Text")));
    let failure = library.bind_tool(
        &specification("say_hello", "() --> IO Text"),
        BindingMode::Exact,
    );
    assert_eq!(
        failure.unwrap_err().reasons,
        [BindingReason::Missing {
            library: "local".to_owned(),
            nearest: vec!["sayHello".to_owned(), "say_hello_twice".to_owned()],
        }]
    );
}

#[test]
fn binding_an_agent_reports_every_tool_that_fails() {
    let agent = agent(["a", "b", "c"].map(|name| specification(name, "() --> IO Text")));
    let library = library([tool("b", "() --> IO Text"), tool("c", "() --> IO Int")]);
    let failures = bind(&agent, &library, BindingMode::Exact).unwrap_err();
    let failed: Vec<&str> = failures
        .iter()
        .map(|BindingFailure { tool, .. }| tool.as_str())
        .collect();
    assert_eq!(failed, ["a", "c"]);
}

#[test]
fn bound_tools_keep_the_order_and_specifications_of_the_agent() {
    let agent = agent(["b", "a"].map(|name| specification(name, "() --> IO Text")));
    let library = library(["a", "b", "c"].map(|name| tool(name, "() --> IO Text")));
    let bound = bind(&agent, &library, BindingMode::default()).unwrap();
    let names: Vec<&str> = bound.iter().map(|tool| tool.name().as_str()).collect();
    assert_eq!(names, ["b", "a"]);
    assert_eq!(
        (bound.len(), bound.is_empty(), bound.get("c").is_none()),
        (2, false, true)
    );
    for (tool, declared) in bound.iter().zip(agent.tools()) {
        assert!(std::sync::Arc::ptr_eq(tool.specification(), declared));
    }
}
