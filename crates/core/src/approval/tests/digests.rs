use proptest::prelude::*;

use super::*;

fn digest(arguments: &str) -> Digest {
    let arguments = serde_json::from_str(arguments).unwrap();
    Digest::of_call(&tool(), &arguments)
}

#[test]
fn the_digest_is_the_sha_256_of_the_canonical_call() {
    // printf '{"arguments":{"amount":10,"to":"bob"},"tool":"pay"}' | sha256sum
    assert_eq!(
        digest(r#"{"to": "bob", "amount": 10}"#).to_string(),
        "sha256:22323ca7e76a0070a86beb9361c03b4a214c20dd86c0f72d0f45741aa12bf1c7"
    );
}

#[test]
fn the_order_of_keys_does_not_matter_at_any_depth() {
    assert_eq!(
        digest(r#"{"a": 1, "b": [{"c": 2, "d": 3}]}"#),
        digest(r#"{"b": [{"d": 3, "c": 2}], "a": 1}"#)
    );
    assert_ne!(digest(r#"{"a": [1, 2]}"#), digest(r#"{"a": [2, 1]}"#));
}

#[test]
fn equal_numbers_have_the_same_digest_in_any_notation() {
    for (one, other) in [
        ("1", "1.0"),
        ("1", "10e-1"),
        ("0", "-0.0"),
        ("100", "1e2"),
        ("0.5", "5e-1"),
        ("10000000000000000000", "1e19"),
    ] {
        let (left, right) = (format!(r#"{{"n":{one}}}"#), format!(r#"{{"n":{other}}}"#));
        assert_eq!(digest(&left), digest(&right), "{one} and {other}");
    }
}

#[test]
fn different_numbers_have_different_digests() {
    for (one, other) in [
        ("9007199254740992", "9007199254740993"),
        ("18446744073709551615", "18446744073709551614"),
        ("0.1", "0.10000000000000002"),
        ("1", "-1"),
        ("1", "\"1\""),
    ] {
        let (left, right) = (format!(r#"{{"n":{one}}}"#), format!(r#"{{"n":{other}}}"#));
        assert_ne!(digest(&left), digest(&right), "{one} and {other}");
    }
}

#[test]
fn texts_are_not_normalized() {
    assert_ne!(digest(r#"{"a": "é"}"#), digest(r#"{"a": "e\u0301"}"#));
    assert_eq!(digest(r#"{"a": "\u00e9"}"#), digest(r#"{"a": "é"}"#));
    assert_ne!(digest(r#"{"a": null}"#), digest("{}"));
}

#[test]
fn the_tool_is_part_of_the_digest() {
    let other = ToolName::new("repay").unwrap();
    let none = Map::new();
    assert_ne!(
        Digest::of_call(&tool(), &none),
        Digest::of_call(&other, &none)
    );
}

#[test]
fn questions_of_different_kinds_have_different_digests() {
    assert_ne!(ask().digest(), intervene().digest());
    assert_eq!(ask().digest(), ask().digest());
}

#[test]
fn digest_has_exactly_one_spelling() {
    let written = digest("{}").to_string();
    assert_eq!(written.parse::<Digest>().unwrap(), digest("{}"));
    for refused in [
        written.to_uppercase(),
        written.replace("sha256:", ""),
        written[..70].to_owned(),
        format!("{written}0"),
        String::new(),
    ] {
        assert!(refused.parse::<Digest>().is_err(), "{refused}");
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((".{0,4}", inner), 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

#[test]
fn shown_numbers_are_written_as_usual() {
    let value = json!({"price": 19.5, "count": 3, "ratio": 1.0});
    assert_eq!(
        sorted_json(&value),
        r#"{"count":3,"price":19.5,"ratio":1.0}"#
    );
}

proptest! {
    #[test]
    fn canonical_text_is_json_of_the_same_value(value in any_json()) {
        let text = canonical(&value);
        let read: Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(canonical(&read), text);
    }

    #[test]
    fn shown_text_has_the_digest_of_its_value(value in any_json()) {
        let shown: Value = serde_json::from_str(&sorted_json(&value)).unwrap();
        prop_assert_eq!(Digest::of_json(&shown), Digest::of_json(&value));
    }

    #[test]
    fn stored_value_has_the_same_digest_when_read_back(value in any_json()) {
        let stored = serde_json::to_string(&value).unwrap();
        let read: Value = serde_json::from_str(&stored).unwrap();
        prop_assert_eq!(Digest::of_json(&read), Digest::of_json(&value));
    }
}
