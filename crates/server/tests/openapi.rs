//! The committed OpenAPI document is that of the routes.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;
use windlass_server::openapi_document;

#[test]
fn the_committed_document_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi.json");
    let current = format!("{:#}\n", openapi_document());
    if std::env::var_os("UPDATE_SCHEMAS").is_some_and(|value| value == "1") {
        std::fs::write(&path, &current).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap();
    assert!(committed == current, "run with UPDATE_SCHEMAS=1");
}

#[test]
fn every_operation_has_a_name_of_its_own_and_every_reference_a_schema() {
    let document = openapi_document();
    let mut names = BTreeSet::new();
    for methods in document["paths"].as_object().unwrap().values() {
        for operation in methods.as_object().unwrap().values() {
            let name = operation["operationId"].as_str().unwrap();
            assert!(names.insert(name.to_owned()), "{name}");
            assert!(operation["responses"]["default"].is_object(), "{name}");
        }
    }
    assert!(names.len() > 40, "{}", names.len());
    check_references(&document, &document);
}

fn check_references(document: &Value, part: &Value) {
    match part {
        Value::Object(fields) => {
            if let Some(Value::String(reference)) = fields.get("$ref") {
                let pointer = reference.strip_prefix('#').unwrap();
                assert!(document.pointer(pointer).is_some(), "{reference}");
            }
            fields
                .values()
                .for_each(|value| check_references(document, value));
        }
        Value::Array(values) => values
            .iter()
            .for_each(|value| check_references(document, value)),
        _ => {}
    }
}
