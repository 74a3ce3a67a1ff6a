use std::time::{Duration, Instant};

use serde_json::json;

use super::*;

fn tool(input: Value) -> Definition {
    serde_json::from_value(json!({"name": "x", "inputSchema": input})).unwrap()
}

fn checked(input: Value) -> Result<(), OutOfBounds> {
    check(&tool(input))
}

fn error_message(input: Value) -> String {
    checked(input).unwrap_err().to_string()
}

#[test]
fn ordinary_schemas_pass() {
    for schema in [
        json!({"type": "object"}),
        json!({"type": "object", "$id": "https://example.org/x", "$defs": {"a": {"type": "string"}},
               "properties": {"x": {"$ref": "#/$defs/a"}, "y": {"allOf": [{"$ref": "#/$defs/a"}]}}}),
        // Values of these keywords are data, not schemas.
        json!({"type": "object", "properties": {"x": {"const": {"$ref": "http://example.org"}},
               "$ref": {"type": "string"}}}),
        json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/a~1b%20c"}}, "$defs": {"a/b c": true}}),
    ] {
        assert_eq!(checked(schema.clone()), Ok(()), "{schema}");
    }
}

#[test]
fn a_tool_needs_a_name_and_an_object_schema() {
    let definition = |value: Value| serde_json::from_value::<Definition>(value).unwrap();
    let object = json!({"type": "object"});
    let nameless = definition(json!({"inputSchema": object}));
    assert_eq!(check(&nameless), Err(NamingProblem::Empty.into()));
    let wrong = definition(json!({"name": 5, "inputSchema": object}));
    assert_eq!(check(&wrong), Err(NamingProblem::Empty.into()));
    assert_eq!(
        check(&definition(json!({"name": "x"}))),
        Err(OutOfBounds::NoSchema)
    );
    for (schema, problem) in [
        (json!(true), OutOfBounds::NoSchema),
        (json!({}), OutOfBounds::NotAnObject("inputSchema")),
        (
            json!({"type": "string"}),
            OutOfBounds::NotAnObject("inputSchema"),
        ),
        (
            json!({"type": ["object", "null"]}),
            OutOfBounds::NotAnObject("inputSchema"),
        ),
    ] {
        assert_eq!(checked(schema), Err(problem));
    }
    let output = definition(json!({"name": "x", "inputSchema": object, "outputSchema": 5}));
    assert_eq!(
        check(&output),
        Err(OutOfBounds::NotAnObject("outputSchema"))
    );
    let output = json!({"name": "x", "inputSchema": object, "outputSchema": {"items": {"$ref": "file:///etc/passwd"}}});
    assert_eq!(
        check(&definition(output)).unwrap_err().to_string(),
        "/outputSchema/items/$ref: the reference `file:///etc/passwd` leads out of the schema; only `#/...` is allowed"
    );
}

#[test]
fn depth_size_and_count_are_bounded() {
    let nested = |levels: usize| {
        (0..levels).fold(
            json!({"type": "object"}),
            |inner, _| json!({"type": "object", "properties": {"p": inner}}),
        )
    };
    assert_eq!(checked(nested(30)), Ok(()));
    assert_eq!(checked(nested(40)), Err(OutOfBounds::TooDeep));
    let described = |bytes: usize| json!({"type": "object", "description": "x".repeat(bytes)});
    assert_eq!(checked(described(250_000)), Ok(()));
    assert_eq!(checked(described(263_000)), Err(OutOfBounds::TooLarge));
    let choices = |count: usize| json!({"type": "object", "properties": {"x": {"anyOf": vec![json!({"type": "string"}); count]}}});
    assert_eq!(checked(choices(1_000)), Ok(()));
    assert_eq!(
        error_message(choices(1_001)),
        "/inputSchema/properties/x/anyOf: the list has more than 1000 schemas"
    );
    assert_eq!(checked(choices(10_000)), Err(OutOfBounds::TooManyNodes));
    // The count is bounded outside of schemas too.
    let meta =
        json!({"name": "x", "inputSchema": {"type": "object"}, "_meta": {"x": vec![0; 20_000]}});
    assert_eq!(
        check(&serde_json::from_value(meta).unwrap()),
        Err(OutOfBounds::TooManyNodes)
    );
}

#[test]
fn references_out_of_the_schema_are_refused() {
    for reference in [
        "https://example.org/s.json#/a",
        "other.json",
        "#anchor",
        "file:///etc/passwd",
        "urn:x",
    ] {
        let message = error_message(json!({"type": "object", "anyOf": [{"$ref": reference}]}));
        assert!(
            message.contains(reference) && message.contains("leads out"),
            "{message}"
        );
    }
    for reference in ["#/$defs/none", "#/%ZZ", "#/properties/x/1"] {
        let message =
            error_message(json!({"type": "object", "properties": {"x": {"$ref": reference}}}));
        assert!(message.contains("does not exist"), "{message}");
    }
    let nested = json!({"type": "object", "properties": {"x": {"$id": "http://evil.example", "$ref": "#/a"}}});
    assert_eq!(
        checked(nested),
        Err(OutOfBounds::NestedIdentifier(
            "/inputSchema/properties/x".to_owned()
        ))
    );
}

#[test]
fn recursive_references_into_the_data_are_allowed() {
    for schema in [
        json!({"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#"}}}}),
        json!({"type": "object", "properties": {"f": {"$ref": "#/$defs/filter"}}, "$defs": {"filter": {"oneOf": [
            {"properties": {"and": {"items": {"$ref": "#/$defs/filter"}}}},
            {"properties": {"or": {"items": {"$ref": "#/$defs/filter"}}}}]}}}),
    ] {
        assert_eq!(checked(schema.clone()), Ok(()), "{schema}");
    }
}

#[test]
fn reference_cycles_are_refused() {
    for schema in [
        json!({"type": "object", "$ref": "#"}),
        json!({"type": "object", "anyOf": [{"not": {"$ref": "#"}}]}),
        json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/a"}},
               "$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"if": {"$ref": "#/$defs/a"}}}}),
        // Also if only the cycle itself refers to it.
        json!({"type": "object", "$defs": {"a": {"$ref": "#/$defs/a"}}}),
        json!({"type": "object", "x-own": {"a": {"$ref": "#/x-own/a"}}, "properties": {"x": {"$ref": "#/x-own/a"}}}),
    ] {
        assert!(
            matches!(checked(schema.clone()), Err(OutOfBounds::ReferenceCycle(_))),
            "{schema}"
        );
    }
}

#[test]
fn references_that_multiply_are_refused_quickly() {
    let mut definitions = serde_json::Map::new();
    for level in 0..100 {
        let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
        definitions.insert(format!("d{level}"), json!({"allOf": [next, next]}));
    }
    definitions.insert("d100".to_owned(), json!({"type": "string"}));
    let schema = json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": definitions});
    let begun = Instant::now();
    assert!(matches!(
        checked(schema),
        Err(OutOfBounds::TooManyApplied(_))
    ));
    assert!(begun.elapsed() < Duration::from_secs(1));
}

#[test]
fn checking_the_largest_definitions_is_fast() {
    let properties: serde_json::Map<String, Value> = (0..1_900)
        .map(|number| (format!("p{number}"), json!({"$ref": "#/$defs/a"})))
        .collect();
    let schema =
        json!({"type": "object", "properties": properties, "$defs": {"a": {"type": "string"}}});
    let definition = tool(schema);
    let begun = Instant::now();
    assert_eq!(check(&definition), Ok(()));
    assert!(
        begun.elapsed() < Duration::from_secs(1),
        "{:?}",
        begun.elapsed()
    );
}
