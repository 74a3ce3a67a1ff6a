//! The errors of `Signature::new`, and the schemas of its results.

use serde_json::{Value, json};

use crate::signature::{Field, MAX_DEPTH, Signature, SignatureError, Type};

fn error_message(parameters: Vec<Field>) -> String {
    Signature::new(parameters, Type::Text)
        .unwrap_err()
        .to_string()
}

#[test]
fn names_are_unique_and_not_empty_at_every_level() {
    let twice = vec![
        Field::required("a", Type::Text),
        Field::optional("a", Type::Integer),
    ];
    assert_eq!(error_message(twice.clone()), "`a` is declared twice");
    assert_eq!(
        error_message(vec![Field::required("r", Type::list(Type::Record(twice)))]),
        "`r[].a` is declared twice"
    );
    let unnamed = vec![Field::required("", Type::Text)];
    assert_eq!(error_message(unnamed.clone()), "a parameter has no name");
    assert_eq!(
        error_message(vec![Field::required("r", Type::Record(unnamed))]),
        "a field of `r` has no name"
    );
}

#[test]
fn enum_options_are_not_empty_and_unique() {
    let none = Type::options::<String>([]);
    assert_eq!(
        Signature::new(vec![], none),
        Err(SignatureError::EmptyEnum {
            path: "the return type".to_owned()
        })
    );
    let twice = vec![Field::required("a", Type::options(["x", "y", "x"]))];
    assert_eq!(error_message(twice), "the enum at `a` lists \"x\" twice");
}

#[test]
fn defaults_must_fit_their_types_at_every_level() {
    let assert_rejected = |ty: Type, value: Value, reason: &str| {
        let expected = format!("the default of `a` does not fit: {reason}");
        assert_eq!(
            error_message(vec![Field::with_default("a", ty, value)]),
            expected
        );
    };
    assert_rejected(Type::Integer, json!("x"), "expected Int, found \"x\"");
    assert_rejected(Type::Integer, json!(0.5), "expected Int, found 0.5");
    assert_rejected(Type::Text, Value::Null, "expected Text, found null");
    assert_rejected(
        Type::options(["x"]),
        json!("y"),
        "expected \"x\", found \"y\"",
    );
    assert_rejected(
        Type::list(Type::Text),
        json!(["x", 1]),
        "`[]`: expected Text, found 1",
    );
    let record = || Type::Record(vec![Field::required("b", Type::list(Type::Boolean))]);
    assert_rejected(record(), json!({}), "the field `b` is missing");
    assert_rejected(record(), json!({"b": [], "c": 1}), "there is no field `c`");
    assert_rejected(
        record(),
        json!({"b": [[]]}),
        "`b[]`: expected Bool, found an array",
    );
    let inner = Field::with_default("b", Type::Integer, "x");
    assert_eq!(
        error_message(vec![Field::required("a", Type::Record(vec![inner]))]),
        "the default of `a.b` does not fit: expected Int, found \"x\""
    );
}

#[test]
fn nullable_types_are_allowed_only_for_list_items_and_return_types() {
    let nullable = Type::nullable(Type::Text);
    let list = Type::list(nullable.clone());
    assert!(Signature::new(vec![Field::required("a", list)], nullable.clone()).is_ok());
    assert!(
        error_message(vec![Field::required("a", nullable.clone())]).contains("cannot be nullable")
    );
    let twice = Type::Nullable(Box::new(nullable));
    assert!(
        error_message(vec![Field::required("a", Type::list(twice))]).contains("cannot be nullable")
    );
}

#[test]
fn types_and_defaults_nest_up_to_the_limit() {
    let nested = |levels: usize| (1..levels).fold(Type::Text, |ty, _| Type::list(ty));
    assert!(Signature::new(vec![], nested(MAX_DEPTH)).is_ok());
    assert!(Signature::new(vec![], nested(MAX_DEPTH + 1)).is_err());
    let parameter = |levels| Signature::new(vec![Field::optional("a", nested(levels))], Type::Text);
    let deepest = parameter(MAX_DEPTH).unwrap();
    assert_eq!(Signature::parse(&deepest.to_string()), Ok(deepest.clone()));
    let again = Signature::from_schemas(&deepest.parameters_schema(), &deepest.returns_schema());
    assert_eq!(again, Ok(deepest));
    assert!(
        parameter(MAX_DEPTH + 1)
            .unwrap_err()
            .to_string()
            .contains("deeper than 32")
    );

    let value = |levels: usize| (1..levels).fold(json!(1), |value, _| json!([value]));
    let default = |levels| {
        Signature::new(
            vec![Field::with_default("a", Type::Array, value(levels))],
            Type::Text,
        )
    };
    let deepest = default(MAX_DEPTH).unwrap();
    assert_eq!(Signature::parse(&deepest.to_string()), Ok(deepest));
    assert!(default(MAX_DEPTH + 1).is_err());
}

#[test]
fn schemas_are_written_in_order_and_complete() {
    let text = "(name: Text \"full name\", age: Maybe Int, unit: \"c\" | \"f\" = \"c\", \
                tags: [Maybe Bool], at: {x: Double, any: Maybe Object, all: Array}) \
                --> IO (Maybe \"a\" | \"b\")";
    let signature = Signature::parse(text).unwrap();
    let expected = r#"{"type":"object","properties":{"name":{"type":"string","description":"full name"},"age":{"type":"integer"},"unit":{"type":"string","enum":["c","f"],"default":"c"},"tags":{"type":"array","items":{"type":["boolean","null"]}},"at":{"type":"object","properties":{"x":{"type":"number"},"any":{"type":"object"},"all":{"type":"array"}},"required":["x","all"],"additionalProperties":false}},"required":["name","tags","at"],"additionalProperties":false}"#;
    assert_eq!(signature.parameters_schema().to_string(), expected);
    let expected = r#"{"type":["string","null"],"enum":["a","b",null]}"#;
    assert_eq!(signature.returns_schema().to_string(), expected);
    let nothing = Signature::new(vec![], Type::Text)
        .unwrap()
        .parameters_schema();
    let expected =
        r#"{"type":"object","properties":{},"required":[],"additionalProperties":false}"#;
    assert_eq!(nothing.to_string(), expected);
}
