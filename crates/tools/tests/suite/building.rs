//! Building tools by hand.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass_spec::{Field, Signature, Type};
use windlass_tools::{Tool, ToolError, ToolProblem};

use super::{builder, tool};

#[test]
fn a_signature_as_text_and_as_a_value_give_the_same_tool() {
    let signature =
        Signature::new(vec![Field::required("name", Type::Text)], Type::Integer).unwrap();
    let by_value = builder("count").signature(signature).build().unwrap();
    let by_text = tool("count", "(name: Text) --> IO Int");
    assert_eq!(by_value.schema(), by_text.schema());
    assert_eq!(by_value.returns_schema(), Some(&json!({"type": "integer"})));
}

#[test]
fn a_tool_keeps_its_schemas_and_needs_no_return_schema() {
    let schema = json!({"type": "object", "properties": {"q": {"type": "string", "minLength": 2}}});
    let without_returns = builder("search").schema(schema.clone()).build().unwrap();
    assert_eq!(without_returns.schema(), &schema);
    assert_eq!(without_returns.returns_schema(), None);
    let with_returns = builder("search")
        .schema(schema)
        .returns(json!({"type": "string"}))
        .build()
        .unwrap();
    assert_eq!(
        with_returns.returns_schema(),
        Some(&json!({"type": "string"}))
    );
}

#[test]
fn a_handler_can_use_rust_types() {
    #[derive(Deserialize)]
    struct Sum {
        left: i64,
        right: i64,
    }
    #[derive(Serialize)]
    struct Total {
        total: i64,
    }
    let built = Tool::builder("add")
        .description("Adds two numbers")
        .signature("(left: Int, right: Int) --> IO {total: Int}")
        .typed(|sum: Sum| async move {
            Ok(Total {
                total: sum.left + sum.right,
            })
        })
        .build();
    assert_eq!(built.unwrap().name().as_str(), "add");
}

#[test]
fn every_problem_of_a_tool_is_reported_at_once() {
    let error = Tool::builder(" ")
        .schema(json!("text"))
        .returns(json!(["string"]))
        .build()
        .unwrap_err();
    insta::assert_snapshot!(error, @r"
    the tool ` ` cannot be built
      the name is not valid: it is empty
      the description is empty: describe what the tool does, for the model that may choose it
      the schema of the arguments is not a JSON object: give one with `properties`
      the schema of the result is neither a JSON object nor a boolean
      it has no implementation: give a `handler`, or a `typed` one
    ");
}

#[test]
fn an_invalid_signature_is_reported_with_its_position_and_a_hint() {
    let error = builder("greet")
        .signature("(name: Strin, age: Int) --> ")
        .build()
        .unwrap_err();
    insta::assert_snapshot!(error);
}

#[test]
fn a_tool_must_declare_its_parameters() {
    let error = builder("greet").build().unwrap_err();
    assert_eq!(error.problems, [ToolProblem::NoSignature]);
}

#[test]
fn arguments_must_be_an_object() {
    let error = builder("greet")
        .schema(json!({"type": "string"}))
        .build()
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "the tool `greet` cannot be built\n  \
         the schema describes arguments of type \"string\": arguments must be an object"
    );
}

#[test]
fn an_inconsistent_signature_is_a_problem_of_the_tool() {
    let twice = vec![
        Field::required("name", Type::Text),
        Field::required("name", Type::Text),
    ];
    let error = builder("greet")
        .signature(Signature::new(twice, Type::Text))
        .build()
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "the tool `greet` cannot be built\n  the signature is inconsistent: `name` is declared twice"
    );
}

#[test]
fn debug_output_of_a_tool_omits_its_handler() {
    let shown = format!("{:?}", tool("greet", "() --> IO Text"));
    assert!(
        shown.starts_with("Tool { name: ToolName(\"greet\")"),
        "{shown}"
    );
    assert!(shown.ends_with(", .. }"), "{shown}");
}

#[test]
fn deserialization_errors_are_invalid_arguments() {
    let error = serde_json::from_value::<i64>(Value::from("three")).unwrap_err();
    let error = ToolError::from(error);
    assert!(
        error.message().starts_with("invalid arguments: "),
        "{error}"
    );
}

#[test]
fn reserved_name_is_refused() {
    let error = builder("ask_human")
        .signature("(question: Text) --> IO Text")
        .build()
        .unwrap_err();
    assert!(
        matches!(error.problems.as_slice(), [ToolProblem::Reserved(_)]),
        "{error}"
    );
    assert!(error.to_string().contains("`ask_human` is reserved"));
}
