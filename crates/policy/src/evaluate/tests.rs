use std::borrow::Cow;

use cedar_policy::{Policy, Request as CedarRequest};
use serde_json::{Value, json};
use windlass_spec::{
    Confidence, NonEmptyText, RiskLevel, Signature, ToolAttributes, ToolName, ToolSpecification,
};

use super::{Parties, context};
use crate::analysis::analyse;
use crate::request::{Request, Session};
use crate::schema::{EntityTypes, Tools};

fn tool() -> ToolSpecification {
    let signature = "(text: Text, whole: Int, number: Number, truth: Bool, word: \"a\" | \"b\", \
         list: [Number], record: {name: Text, age: Int?, size: Int = 3}, rows: [{x: Int}], \
         maybe: Text?, filled: Int = 7, object: Object?, holes: Maybe [Text?]) --> Text";
    ToolSpecification::new(
        ToolName::new("sample").unwrap(),
        NonEmptyText::new("a tool").unwrap(),
        Signature::parse(signature).unwrap(),
    )
    .with_attributes(ToolAttributes {
        category: Some(NonEmptyText::new("odd").unwrap()),
        open_world: Some(true),
        ..ToolAttributes::default()
    })
    .unwrap()
}

/// The context is built without checking it against the schema, which would cost more than the decision.
/// So it must be correct by construction.
#[test]
fn the_context_of_a_call_fits_the_schema_that_rules_are_checked_against() {
    let tools = Tools::new(&[tool()]).unwrap();
    let (schema, types) = (tools.schema().unwrap(), EntityTypes::new().unwrap());
    let sample = tools.get("sample").unwrap();
    let everything = "permit(principal, action, resource) when { context == {a: 1} };";
    let everything = analyse(&Policy::parse(None, everything).unwrap()).mentions;
    let least = json!({
        "text": "t", "whole": 3.0, "number": 2, "truth": true, "word": "a", "list": [],
        "record": {"name": "n"}, "rows": [],
    });
    let mut most = least.clone();
    most["record"] = json!({"name": "n", "age": 1, "size": 2});
    most["list"] = json!([1, 2.5]);
    most["rows"] = json!([{"x": 1}, {"x": 2}]);
    most["maybe"] = json!("m");
    most["object"] = json!({"any": null});
    most["holes"] = json!([null]);
    for (input, confidence) in [(least, None), (most, Some(Confidence::FULL))] {
        let Value::Object(input) = input else {
            panic!("arguments are an object")
        };
        let request = Request {
            principal: Cow::Borrowed("ann"),
            tenant: Cow::Borrowed("acme"),
            agent: Cow::Borrowed("clerk"),
            tool: Cow::Borrowed("sample"),
            input: Cow::Owned(input),
            risk: RiskLevel::Reversible,
            confidence,
            environment: Cow::Borrowed("production"),
            tainted: false,
            session: Session::default(),
        };
        let parties = Parties::new(&types, sample, &request).unwrap();
        let context = context(&everything, sample, &request, true).unwrap();
        let checked = CedarRequest::new(
            parties.principal,
            parties.action,
            parties.resource,
            context,
            Some(&schema),
        );
        assert!(checked.is_ok(), "{checked:?}");
    }
}
