//! The structural comparison of schemas.

use serde_json::{Value, json};
use windlass_tools::{Difference, differences};

fn pointers(specification: &Value, implementation: &Value) -> Vec<String> {
    differences(specification, implementation)
        .into_iter()
        .map(|difference| difference.pointer)
        .collect()
}

#[test]
fn the_order_of_keys_and_of_required_enum_and_type_does_not_matter() {
    let specification = json!({
        "type": "object",
        "required": ["a", "b"],
        "properties": {"a": {"type": ["string", "null"], "enum": ["x", "y", null]}, "b": {}},
    });
    let implementation = json!({
        "properties": {"b": {}, "a": {"enum": [null, "y", "x"], "type": ["null", "string"]}},
        "required": ["b", "a"],
        "type": "object",
    });
    assert_eq!(differences(&specification, &implementation), []);
}

#[test]
fn names_are_keywords_only_in_schemas() {
    let schema = |order: Value| json!({"default": {"required": order}});
    assert_eq!(
        pointers(&schema(json!(["a", "b"])), &schema(json!(["b", "a"]))),
        ["/default"]
    );
    let property = |order: Value| json!({"properties": {"required": {"enum": order}}});
    assert_eq!(
        differences(&property(json!([1, 2])), &property(json!([2, 1]))),
        []
    );
}

#[test]
fn elements_of_a_set_are_reported_one_by_one() {
    assert_eq!(
        differences(
            &json!({"required": ["a", "b", "c"]}),
            &json!({"required": ["d", "b"]})
        ),
        [("a", true), ("c", true), ("d", false)].map(|(name, ours)| Difference {
            pointer: "/required".to_owned(),
            specification: ours.then(|| json!(name)),
            implementation: (!ours).then(|| json!(name)),
        })
    );
}

#[test]
fn equal_numbers_with_different_notation_do_not_differ() {
    assert_eq!(
        differences(&json!({"default": 2}), &json!({"default": 2.0})),
        []
    );
    assert_eq!(
        differences(&json!({"enum": [1.0]}), &json!({"enum": [1]})),
        []
    );
    assert_eq!(
        pointers(&json!({"default": [2]}), &json!({"default": [2.5]})),
        ["/default"]
    );
    let large = (
        json!({"default": u64::MAX}),
        json!({"default": u64::MAX as f64}),
    );
    assert_eq!(pointers(&large.0, &large.1), ["/default"]);
}

#[test]
fn pointers_locate_the_difference_and_are_escaped() {
    let schema = |kind: &str| {
        json!({
            "properties": {"a/b~c": {"items": {"anyOf": [{"type": "null"}, {"type": kind}]}}},
            "additionalProperties": false,
        })
    };
    let found = differences(&schema("string"), &schema("integer"));
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].pointer, "/properties/a~1b~0c/items/anyOf/1/type");
    assert_eq!(
        schema("string").pointer(&found[0].pointer),
        found[0].specification.as_ref(),
        "it is a JSON pointer"
    );
}

#[test]
fn values_on_only_one_side_are_reported() {
    let found = differences(&json!({"a": 1}), &json!({"b": 2}));
    let texts: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "/a: only the specification has 1",
            "/b: only the implementation has 2"
        ]
    );
    assert_eq!(
        pointers(&json!({"items": true}), &json!({"items": {}})),
        ["/items"]
    );
    assert_eq!(
        differences(&json!(true), &json!({}))[0].to_string(),
        "/: specification true, implementation {}"
    );
}
