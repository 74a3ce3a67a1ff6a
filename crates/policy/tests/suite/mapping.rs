//! How arguments are represented in rules: the table of docs/policy.md, row by row.

use serde_json::{Value, json};
use windlass_policy::{Policies, Verdict};
use windlass_spec::ToolSpecification;

use super::support::{call, tool};

fn sample() -> ToolSpecification {
    tool(
        "sample",
        "(text: Text, whole: Int, number: Number, truth: Bool, word: \"a\" | \"b\", \
         list: [Int], record: {name: Text, age: Int?, any: Object?}, maybe: Text?, \
         filled: Int = 7, rows: [{x: Int}], object: Object?, array: Array?, holes: Maybe [Text?]) --> Text",
        Default::default(),
    )
}

fn input() -> Value {
    json!({
        "text": "t", "whole": 3, "number": 1.5, "truth": true, "word": "a", "list": [2, 1, 2],
        "record": {"name": "n"}, "rows": [{"x": 1}],
    })
}

/// Whether a condition holds for the sample with these changes.
fn holds(condition: &str, changes: Value) -> bool {
    let text = format!("@id(\"a\") permit (principal, action, resource) when {{ {condition} }};");
    let policies =
        Policies::load(&text, &[sample()]).unwrap_or_else(|errors| panic!("{}", errors[0]));
    let mut input = input();
    for (name, value) in changes.as_object().unwrap() {
        input[name] = value.clone();
    }
    let decision = policies.decide(&call("sample", input));
    assert!(decision.faults.is_empty(), "{:?}", decision.faults);
    decision.verdict == Verdict::Allow
}

#[test]
fn every_documented_type_mapping_works() {
    for condition in [
        "context.input.text == \"t\"",
        "context.input.text like \"t*\"",
        "context.input.whole == 3",
        "context.input.number == decimal(\"1.5\")",
        "context.input.truth",
        "context.input.word == \"a\"",
        "context.input.list == [1, 2]",
        "context.input.list.contains(2)",
        "context.input.record.name == \"n\"",
        "!(context.input.record has age)",
        "!(context.input has maybe)",
        "context.input.filled == 7",
        "context.input.rows.contains({x: 1})",
    ] {
        assert!(holds(condition, json!({})), "{condition}");
        assert!(!holds(&format!("!({condition})"), json!({})), "{condition}");
    }
}

#[test]
fn numbers_keep_their_value_in_any_notation() {
    assert!(holds("context.input.whole == 3", json!({"whole": 3.0})));
    assert!(holds(
        "context.input.number == decimal(\"3.0\")",
        json!({"number": 3})
    ));
    assert!(holds(
        "context.input.number == decimal(\"-0.0001\")",
        json!({"number": -0.0001})
    ));
    assert!(holds(
        "context.input.number == decimal(\"0.0\")",
        json!({"number": -0.0})
    ));
    assert!(holds(
        "context.input.number == decimal(\"922337203685477.0\")",
        json!({"number": 922_337_203_685_477_i64})
    ));
}

#[test]
fn given_value_replaces_the_default() {
    assert!(holds("context.input.filled == 8", json!({"filled": 8})));
    assert!(holds(
        "context.input has maybe && context.input.maybe == \"m\"",
        json!({"maybe": "m"})
    ));
}

#[test]
fn an_empty_list_is_an_empty_set() {
    assert!(holds("context.input.list.isEmpty()", json!({"list": []})));
}

#[test]
fn arguments_without_representation_cannot_be_named() {
    for argument in ["object", "array", "holes", "record.any"] {
        let (before, last) = argument
            .rsplit_once('.')
            .map_or(("", argument), |(b, l)| (b, l));
        let dot = if before.is_empty() { "" } else { "." };
        let text = format!(
            "@id(\"a\") permit (principal, action, resource) when {{ context.input{dot}{before} has {last} }};"
        );
        assert!(Policies::load(&text, &[sample()]).is_err(), "{argument}");
    }
}
