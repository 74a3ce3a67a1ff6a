//! Reading external schemas: exact conversions, and rejections with their reasons.

use serde_json::{Value, json};

use crate::signature::{Field, Inexpressible, Signature, Type, parameters_from_schema};

fn read(schema: Value) -> String {
    match Type::from_schema(&schema) {
        Ok(ty) => ty.to_string(),
        Err(problems) => panic!("{schema}: {problems:#?}"),
    }
}

fn reasons(schema: &Value) -> Vec<String> {
    let problems = Type::from_schema(schema).expect_err("the schema should be rejected");
    problems.iter().map(Inexpressible::to_string).collect()
}

fn closed(properties: Value, required: Value) -> Value {
    json!({
        "type": "object", "properties": properties, "required": required,
        "additionalProperties": false,
    })
}

#[test]
fn annotations_are_dropped() {
    assert_eq!(
        read(json!({
            "type": "string", "title": "T", "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$id": "x", "$comment": "c", "examples": [1], "deprecated": true, "readOnly": true,
            "format": "date-time", "default": "x", "x-unknown": {"minimum": 3},
        })),
        "Text"
    );
}

#[test]
fn keywords_without_effect_are_dropped() {
    assert_eq!(
        read(json!({"type": "string", "minimum": 3, "minLength": 0})),
        "Text"
    );
    assert_eq!(
        read(json!({"type": "array", "items": {}, "uniqueItems": false})),
        "Array"
    );
    assert_eq!(
        read(json!({"type": "object", "additionalProperties": true})),
        "Object"
    );
    assert_eq!(
        read(json!({"type": "object", "properties": {}, "required": []})),
        "Object"
    );
    assert_eq!(
        read(json!({"type": "integer", "properties": {"a": {}}})),
        "Int"
    );
}

#[test]
fn enums_and_constants_of_strings_are_enums() {
    assert_eq!(read(json!({"enum": ["a", "b", "a"]})), "\"a\" | \"b\"");
    assert_eq!(
        read(json!({"type": "string", "enum": ["a", 1, null]})),
        "\"a\""
    );
    assert_eq!(read(json!({"const": "a"})), "\"a\"");
    assert_eq!(read(json!({"enum": ["a", "b"], "const": "b"})), "\"b\"");
    assert_eq!(read(json!({"enum": ["a", null]})), "Maybe \"a\"");
    assert_eq!(
        read(json!({"type": ["string", "null"], "enum": ["a", null]})),
        "Maybe \"a\""
    );
    assert_eq!(
        read(json!({"type": ["string", "null"], "enum": ["a"]})),
        "\"a\""
    );
    assert_eq!(
        read(json!({"oneOf": [{"const": "a", "title": "A"}, {"const": "b"}, {"enum": ["c"]}]})),
        "\"a\" | \"b\" | \"c\""
    );
    assert_eq!(
        read(json!({"oneOf": [{"enum": ["a", "b"]}, {"enum": ["b", "c"]}]})),
        "\"a\" | \"c\""
    );
}

#[test]
fn null_among_the_choices_makes_a_type_nullable() {
    assert_eq!(read(json!({"type": ["integer", "null"]})), "Maybe Int");
    assert_eq!(
        read(json!({"type": ["null", "integer", "number"]})),
        "Maybe Double"
    );
    assert_eq!(
        read(json!({"anyOf": [{"type": "string"}, {"type": "null"}]})),
        "Maybe Text"
    );
    assert_eq!(
        read(json!({"oneOf": [{"type": "string"}, {"const": null}]})),
        "Maybe Text"
    );
    assert_eq!(
        read(json!({"oneOf": [{"type": ["string", "null"]}, {"type": "null"}]})),
        "Text"
    );
    assert_eq!(
        read(json!({"type": "array", "items": {"type": ["string", "null"]}})),
        "[Maybe Text]"
    );
}

#[test]
fn combinations_equivalent_to_one_type_are_read() {
    assert_eq!(
        read(json!({"allOf": [{"type": "string"}], "description": "d"})),
        "Text"
    );
    assert_eq!(
        read(json!({"anyOf": [{"type": "integer"}, {"type": "number"}]})),
        "Double"
    );
    assert_eq!(
        read(json!({"anyOf": [{"enum": ["a"]}, {"type": "string"}]})),
        "Text"
    );
}

#[test]
fn local_references_are_followed() {
    let schema = json!({
        "type": "array", "items": {"$ref": "#/$defs/a~1b%20c", "description": "one"},
        "$defs": {"a/b c": {"anyOf": [{"$ref": "#/$defs/n"}, {"type": "null"}]}, "n": {"type": "number"}},
    });
    assert_eq!(read(schema), "[Maybe Double]");
    let schema = json!({"$ref": "#/definitions/x", "definitions": {"x": {"type": "string"}}});
    assert_eq!(read(schema), "Text");
}

#[test]
fn all_inexpressible_parts_are_reported_with_their_places() {
    let schema = closed(
        json!({
            "a": {"type": "string", "pattern": "x", "maxLength": 3},
            "b": {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1},
            "c/d": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
            "e": {"type": ["string", "integer"]},
            "f": {"type": "object", "properties": {"g": true}},
            "h": {"type": ["string", "null"]},
            "i": {"type": "string", "default": "x"},
            "j": {"type": "string", "default": 1},
            "k": {"enum": [1, 2]},
            "l": {"not": {"type": "string"}, "type": "string"},
            "m": {"type": "object", "additionalProperties": {"type": "string"}},
            "n": {},
            "o": {"minLength": 3},
            "p": {"type": "null"},
            "q": {"type": "strin"},
            "r": false,
            "s": {"$ref": "https://example.org/schema"},
            "t": {"$ref": "#/$defs/none"},
            "u": {"allOf": [{"type": "string"}, {"minLength": 2}]},
            "v": {"anyOf": [{"type": "string"}], "minLength": 2},
        }),
        json!(["h", "i", "z"]),
    );
    assert_eq!(
        reasons(&schema),
        [
            "/required: `z` is required, but not allowed: no value is accepted",
            "/properties/a/maxLength: `maxLength` cannot be expressed",
            "/properties/a/pattern: `pattern` cannot be expressed",
            "/properties/b/minItems: `minItems` cannot be expressed",
            "/properties/b/items/minimum: `minimum` cannot be expressed",
            "/properties/c~1d/oneOf: a choice between types cannot be expressed",
            "/properties/e/type: a choice between kinds of values cannot be expressed",
            "/properties/f: extra keys are allowed: `additionalProperties` is not `false`",
            "/properties/h: it may be null; a field can be absent, but its value is never null",
            "/properties/i: it is required and has a default, which cannot be expressed",
            "/properties/j/default: the default does not fit its schema: expected Text, found 1",
            "/properties/k/enum: only strings can be listed as options, not other values",
            "/properties/l/not: `not` cannot be expressed",
            "/properties/m/additionalProperties: extra keys of a given type are allowed, which cannot be expressed",
            "/properties/o: without `type`, values of every other kind are accepted too",
            "/properties/p: only null is accepted",
            "/properties/q/type: `strin` is not a type of JSON Schema",
            "/properties/r: no value is accepted",
            "/properties/s/$ref: `https://example.org/schema` is not followed; only `#/$defs/name` references are",
            "/properties/t/$ref: `#/$defs/none` does not exist",
            "/properties/u/allOf: `allOf` of several schemas cannot be expressed",
            "/properties/v: `anyOf` together with `minLength` cannot be expressed",
        ]
    );
}

#[test]
fn parameters_must_be_a_closed_object() {
    let reason = |schema: Value| {
        parameters_from_schema(&schema).unwrap_err()[0]
            .reason
            .clone()
    };
    let open = "extra keys are allowed: `additionalProperties` is not `false`";
    assert_eq!(reason(json!({"type": "object"})), open);
    assert_eq!(
        reason(json!({"type": "object", "properties": {"a": {"type": "string"}}})),
        open
    );
    assert_eq!(
        reason(json!({"type": "string"})),
        "arguments must be an object with named fields, not Text"
    );
    assert!(
        reason(json!({"type": ["object", "null"], "additionalProperties": false})).contains("null")
    );
    assert_eq!(
        reason(json!(true)),
        "arguments must be an object with named fields, not Any"
    );
    let schema = json!({"$ref": "#/$defs/a", "$defs": {"a": closed(json!({}), json!([]))}});
    assert_eq!(parameters_from_schema(&schema), Ok(vec![]));
    let properties = json!({"a": {"type": "integer", "default": 3, "description": "d"}, "b": {"type": "string"}});
    assert_eq!(
        parameters_from_schema(&closed(properties, json!(["b"]))),
        Ok(vec![
            Field::with_default("a", Type::Integer, 3).described("d"),
            Field::required("b", Type::Text),
        ])
    );
}

#[test]
fn problems_of_the_two_schemas_have_different_prefixes() {
    let problems = Signature::from_schemas(&json!({"type": "object"}), &json!({"type": "null"}));
    let problems = problems.unwrap_err();
    let pointers: Vec<&str> = problems
        .iter()
        .map(|problem| problem.pointer.as_str())
        .collect();
    assert_eq!(pointers, ["/parameters", "/returns"]);
}

#[test]
fn cyclic_references_are_rejected() {
    let cyclic = json!({
        "$ref": "#/$defs/a",
        "$defs": {
            "a": {"type": "array", "items": {"$ref": "#/$defs/b"}},
            "b": {"anyOf": [{"$ref": "#/$defs/a"}, {"type": "null"}]},
        },
    });
    assert!(
        reasons(&cyclic)[0].contains("refers to itself"),
        "{:?}",
        reasons(&cyclic)
    );
    assert!(reasons(&json!({"type": "array", "items": {"$ref": "#"}}))[0].contains("itself"));
    assert!(
        reasons(&json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}))[0]
            .contains("itself")
    );
}

#[test]
fn references_inside_another_resource_are_not_resolved_locally() {
    let schema = json!({
        "type": "array",
        "items": {"$id": "https://example.org/i", "$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}},
        "$defs": {"a": {"type": "integer"}},
    });
    assert!(reasons(&schema)[0].contains("is not followed"));
}

#[test]
fn exponential_references_are_bounded() {
    let mut definitions = serde_json::Map::new();
    definitions.insert(
        "d0".to_owned(),
        json!({"type": "string", "description": "d".repeat(100_000)}),
    );
    for level in 1..20 {
        let below = json!({"$ref": format!("#/$defs/d{}", level - 1)});
        let properties: serde_json::Map<String, Value> = (0..10)
            .map(|index| (format!("p{index}"), below.clone()))
            .collect();
        definitions.insert(
            format!("d{level}"),
            closed(Value::Object(properties), json!([])),
        );
    }
    let schema = json!({"$ref": "#/$defs/d19", "$defs": definitions});
    let reasons = reasons(&schema);
    assert_eq!(reasons.len(), 1, "{reasons:?}");
    assert!(reasons[0].contains("too large"), "{reasons:?}");
}

#[test]
fn schemas_nested_too_deep_are_rejected() {
    // `json!` traverses its argument recursively, so it would overflow before the reader.
    let object = |entries: Vec<(&str, Value)>| {
        Value::Object(
            entries
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value))
                .collect(),
        )
    };
    let list = |item: Value| object(vec![("type", json!("array")), ("items", item)]);
    let record = |field: Value| {
        object(vec![
            ("type", json!("object")),
            ("properties", object(vec![("a", field)])),
            ("additionalProperties", json!(false)),
        ])
    };
    let wraps: [&dyn Fn(Value) -> Value; 5] = [
        &list,
        &record,
        &|schema| object(vec![("anyOf", Value::Array(vec![schema]))]),
        &|schema| list(object(vec![("unevaluatedItems", schema)])),
        &|schema| object(vec![("not", schema)]),
    ];
    for wrap in wraps {
        let schema = (0..2_000).fold(json!({"type": "string"}), |schema, _| wrap(schema));
        assert!(Type::from_schema(&schema).is_err());
        assert!(parameters_from_schema(&schema).is_err());
    }
    let default = (0..2_000).fold(json!(1), |value, _| Value::Array(vec![value]));
    let schema = object(vec![("type", json!("array")), ("default", default)]);
    assert_eq!(
        reasons(&schema),
        ["/default: it is nested deeper than 32 levels"]
    );
}

#[test]
fn the_read_type_accepts_the_same_values_as_the_schema() {
    let schemas = [
        json!({"type": "string", "enum": ["a", 1, null]}),
        json!({"enum": ["a", null]}),
        json!({"type": ["string", "null"], "enum": ["a"]}),
        json!({"oneOf": [{"type": ["string", "null"]}, {"type": "null"}]}),
        json!({"oneOf": [{"enum": ["a", "b"]}, {"enum": ["b", "c"]}]}),
        json!({"anyOf": [{"type": "integer"}, {"type": "number"}]}),
        json!({"type": ["null", "integer", "number"]}),
        json!({"type": "string", "minimum": 3}),
        json!({"type": "array", "items": {"title": "any"}}),
        json!({"type": "object", "additionalProperties": {}}),
        json!({"type": "object", "additionalProperties": {"not": {}}}),
        closed(json!({"a": {"type": "integer"}}), json!(["a"])),
    ];
    let values = [
        json!(null),
        json!(true),
        json!(1),
        json!(1.0),
        json!(1.5),
        json!(""),
        json!("a"),
        json!("b"),
        json!("c"),
        json!([]),
        json!([1, null]),
        json!({}),
        json!({"a": 1}),
        json!({"a": "x"}),
        json!({"a": 1, "b": 1}),
    ];
    for schema in schemas {
        let written = jsonschema::validator_for(&schema).unwrap();
        let read = Type::from_schema(&schema).unwrap();
        let read = jsonschema::validator_for(&read.schema()).unwrap();
        for value in &values {
            assert_eq!(
                written.is_valid(value),
                read.is_valid(value),
                "{schema} on {value}"
            );
        }
    }
}
