//! The rules of user intents, one test each.

use serde_json::{Value, json};

use super::{text, tool, with, without};
use crate::records::{RawUserIntent, UserIntent, UserIntentError, record_schemas};
use crate::{Signature, ToolSpecification};

const TYPES: [&str; 4] = ["summarize", "analyze", "fetch", "explain"];

fn specification(name: &str, signature: &str) -> ToolSpecification {
    ToolSpecification::new(
        tool(name),
        text("Does what it says"),
        Signature::parse(signature).unwrap(),
    )
}

fn tools() -> Vec<ToolSpecification> {
    vec![
        specification("http_get", "(url: Text, limit: Int = 10) --> Text"),
        specification("read_file", "(path: Text) --> Text"),
    ]
}

fn example() -> Value {
    json!({
        "intent_type": "fetch",
        "confidence": 0.9,
        "parameters": { "url": "https://example.org" },
        "context_requirements": ["where it is"],
        "suggested_tools": ["http_get", "read_file"],
        "fallback_options": ["ask for the address"],
    })
}

fn checked(value: Value) -> Result<UserIntent, UserIntentError> {
    let raw: RawUserIntent = serde_json::from_value(value).unwrap();
    raw.check(TYPES, &tools())
}

fn check_error(key: &str, value: Value) -> String {
    checked(with(example(), key, value))
        .unwrap_err()
        .to_string()
}

#[test]
fn a_valid_intent_is_written_unchanged() {
    let intent = checked(example()).unwrap();
    assert_eq!(serde_json::to_value(&intent).unwrap(), example());
    assert_eq!(intent.intent_type(), "fetch");
    assert_eq!(intent.confidence().get(), 0.9);
    assert_eq!(
        intent.suggested_tools(),
        [tool("http_get"), tool("read_file")]
    );
    assert_eq!(intent.context_requirements(), [text("where it is")]);
    assert_eq!(intent.fallback_options(), [text("ask for the address")]);
    assert_eq!(intent.parameters()["url"], "https://example.org");
}

#[test]
fn intent_type_must_be_declared() {
    assert_eq!(
        check_error("intent_type", json!("fetsh")),
        "intent_type: `fetsh` is not declared; did you mean `fetch`?"
    );
    for declared in TYPES {
        assert!(checked(with(example(), "intent_type", json!(declared))).is_ok());
    }
}

#[test]
fn confidence_must_be_between_zero_and_one() {
    for number in [-0.1, 1.01] {
        assert_eq!(
            check_error("confidence", json!(number)),
            format!("confidence: a confidence must be between 0.0 and 1.0, not {number}")
        );
    }
    for number in [0.0, 1.0] {
        assert!(checked(with(example(), "confidence", json!(number))).is_ok());
    }
}

#[test]
fn parameters_must_fit_the_schema_of_a_suggested_tool() {
    assert_eq!(
        check_error("parameters", json!({ "url": 7 })),
        "parameters: they do not fit `http_get`: /url: expected Text, got 7"
    );
    assert_eq!(
        check_error("parameters", json!({ "path": "a", "url": "b", "limit": 1 })),
        "parameters: they do not fit `http_get`: /path: expected no such key, got a value"
    );
    // Fits only the second tool.
    assert!(
        checked(with(
            example(),
            "parameters",
            json!({ "path": "notes.txt" })
        ))
        .is_ok()
    );
}

#[test]
fn a_required_parameter_may_be_missing() {
    for parameters in [json!({}), json!({ "limit": 3 })] {
        assert!(checked(with(example(), "parameters", parameters)).is_ok());
    }
}

#[test]
fn parameters_need_a_suggested_tool() {
    assert_eq!(
        check_error("suggested_tools", json!([])),
        "parameters: there is no suggested tool for them; add one to suggested_tools"
    );
    let without_both = with(example(), "suggested_tools", json!([]));
    assert!(checked(with(without_both, "parameters", json!({}))).is_ok());
}

#[test]
fn suggested_tools_must_exist() {
    assert_eq!(
        check_error("suggested_tools", json!(["http_get", "read_fil"])),
        "suggested_tools: there is no tool `read_fil`; did you mean `read_file`?"
    );
}

#[test]
fn requirements_and_fallbacks_must_not_be_empty() {
    assert_eq!(
        check_error("context_requirements", json!(["a", " "])),
        "context_requirements: entry 2: it is empty"
    );
    assert_eq!(
        check_error("fallback_options", json!([""])),
        "fallback_options: entry 1: it is empty"
    );
}

#[test]
fn the_schema_of_an_intent_has_the_rules_that_do_not_need_the_tools() {
    let schemas = record_schemas();
    let (_, schema) = schemas
        .iter()
        .find(|(name, _)| *name == "UserIntent")
        .unwrap();
    let validator = jsonschema::validator_for(schema).unwrap();
    assert!(validator.is_valid(&example()));
    assert!(validator.is_valid(&json!({ "intent_type": "fetch", "confidence": 0 })));
    for wrong in [
        with(example(), "confidence", json!(1.5)),
        with(example(), "intent_type", json!(" ")),
        with(example(), "suggested_tools", json!([""])),
        with(example(), "fallback_options", json!([""])),
        with(example(), "parameters", json!([])),
        with(example(), "surprise", json!(1)),
        without(example(), "confidence"),
    ] {
        assert!(!validator.is_valid(&wrong), "{wrong}");
    }
}
