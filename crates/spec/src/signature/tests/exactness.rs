//! A type read from a schema accepts the same values as the schema, for schemas composed of
//! random keywords.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use serde_json::{Map, Value, json};

use super::generate::{any_json, sample, value_of_other_type, values};
use crate::signature::Type;

/// Keywords with plain settings: expressible ones, inexpressible ones and ones without effect.
fn plain_keywords() -> impl Strategy<Value = (&'static str, Value)> {
    prop::sample::select(vec![
        ("enum", json!(["x", "y"])),
        ("enum", json!(["x", null, "x"])),
        ("enum", json!(["x", 1, true])),
        ("const", json!("x")),
        ("const", json!(null)),
        ("const", json!(1)),
        ("required", json!(["a"])),
        ("required", json!([])),
        ("additionalProperties", json!(true)),
        ("additionalProperties", json!({"not": {}})),
        ("properties", json!({})),
        ("items", json!(true)),
        ("items", json!(false)),
        ("minimum", json!(1)),
        ("minLength", json!(0)),
        ("minLength", json!(1)),
        ("minItems", json!(0)),
        ("maxItems", json!(0)),
        ("uniqueItems", json!(false)),
        ("minProperties", json!(1)),
        ("patternProperties", json!({"b": true})),
        ("propertyNames", json!({"maxLength": 1})),
        ("unevaluatedProperties", json!(false)),
        ("dependentRequired", json!({"a": ["b"]})),
        ("contains", json!({"type": "string"})),
        ("not", json!({"type": "string"})),
        ("not", json!(true)),
        ("if", json!({"type": "string"})),
        ("then", json!(false)),
        ("format", json!("date")),
        ("title", json!("t")),
        ("default", json!("x")),
        ("$ref", json!("#/$defs/d")),
    ])
}

fn kinds() -> impl Strategy<Value = Value> {
    let names = vec![
        "string", "integer", "number", "boolean", "object", "array", "null",
    ];
    let name = prop::sample::select(names);
    prop_oneof![
        4 => name.clone().prop_map(Value::from),
        1 => name.prop_filter_map("null beside null", |name| {
            (name != "null").then(|| json!([name, "null"]))
        }),
        1 => Just(json!(["integer", "number"])),
        1 => Just(json!(["string", "number"])),
    ]
}

fn schemas() -> impl Strategy<Value = Value> {
    let leaf = (
        prop::option::weighted(0.8, kinds()),
        prop::option::weighted(0.3, plain_keywords()),
    )
        .prop_map(|(kind, keyword)| {
            let mut schema = Map::new();
            schema.extend(kind.map(|kind| ("type".to_owned(), kind)));
            schema.extend(keyword.map(|(keyword, setting)| (keyword.to_owned(), setting)));
            Value::Object(schema)
        });
    leaf.prop_recursive(3, 12, 3, |inner| {
        let few = prop::collection::vec(inner.clone(), 1..3);
        let extra = prop::option::weighted(0.1, plain_keywords());
        let combined = prop::sample::select(vec!["anyOf", "oneOf", "allOf"]);
        let main = prop_oneof![
            inner
                .clone()
                .prop_map(|items| json!({"type": "array", "items": items})),
            (few.clone(), 0..4_usize, any::<bool>()).prop_map(|(fields, required, closed)| {
                let names = ["a", "b"];
                let properties: Map<String, Value> = names
                    .iter()
                    .map(|name| (*name).to_owned())
                    .zip(fields)
                    .collect();
                let required: Vec<&str> = names.into_iter().take(required / 2).collect();
                let mut schema = json!({
                    "type": "object", "properties": properties, "required": required,
                });
                if closed {
                    schema["additionalProperties"] = json!(false);
                }
                schema
            }),
            (combined, few).prop_map(|(keyword, branches)| json!({keyword: branches})),
            inner.prop_map(|other| json!({"anyOf": [other, {"type": "null"}]})),
        ];
        (main, extra).prop_map(|(mut schema, extra)| {
            if let Some((keyword, setting)) = extra {
                schema[keyword] = setting;
            }
            schema
        })
    })
}

fn probes() -> Vec<Value> {
    vec![
        json!(null),
        json!(true),
        json!(0),
        json!(1),
        json!(1.0),
        json!(1.5),
        json!(""),
        json!("x"),
        json!("y"),
        json!([]),
        json!([null]),
        json!(["x"]),
        json!([1]),
        json!([[]]),
        json!({}),
        json!({"a": "x"}),
        json!({"a": 1}),
        json!({"a": null}),
        json!({"b": 1}),
        json!({"a": "x", "b": "x"}),
        json!({"a": 1, "b": 1, "c": 1}),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1500, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn a_type_read_from_any_schema_accepts_the_same_values(
        mut schema in schemas(), definition in schemas(), anything in any_json()
    ) {
        schema["$defs"] = json!({"d": definition});
        let Ok(ty) = Type::from_schema(&schema) else {
            return Ok(());
        };
        let written = jsonschema::validator_for(&schema)
            .map_err(|_| TestCaseError::fail("an invalid schema was generated"))?;
        let read = jsonschema::validator_for(&ty.schema()).unwrap();
        let mut runner = proptest::test_runner::TestRunner::deterministic();
        let of_type = (0..4).map(|_| values(&ty).new_tree(&mut runner).unwrap().current());
        let made = [sample(&ty, true), sample(&ty, false), value_of_other_type(&ty), anything];
        for value in probes().into_iter().chain(of_type).chain(made) {
            prop_assert_eq!(
                written.is_valid(&value), read.is_valid(&value), "{} as {} on {}", schema, ty, value
            );
        }
    }
}

#[test]
fn enough_random_schemas_are_expressible_for_a_meaningful_comparison() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut read = 0;
    for _ in 0..500 {
        let schema = schemas().new_tree(&mut runner).unwrap().current();
        read += usize::from(Type::from_schema(&schema).is_ok());
    }
    assert!(read > 100, "{read} of 500");
}
