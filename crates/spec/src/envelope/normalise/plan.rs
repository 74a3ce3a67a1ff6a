//! Plans with parts that are missing or written otherwise. Where it is not said how tasks run, they
//! run one after the other, which is right for every plan and only slower for some.

use serde_json::{Value, json};

use super::draft::{Draft, as_text};
use super::notice::DeprecationCode;
use crate::envelope::Object;
use crate::envelope::error::pointer;
use crate::envelope::plan::Plan;
use crate::envelope::words::ExecutionMode;

/// Decides the fields of a plan, if the data is one.
pub(super) fn settle(draft: &mut Draft) {
    if draft.data.get(Plan::MARK).is_none_or(Value::is_null) {
        draft.data.shift_remove(Plan::MARK);
        return;
    }
    settle_id(draft);
    if !draft.data.contains_key(Plan::MARK) {
        return;
    }
    if !draft.data.get("tasks").is_some_and(Value::is_array) {
        replaced(draft, "tasks", "a list", json!([]));
    }
    if draft.data_word::<ExecutionMode>("execution_mode").is_none() {
        let default = ExecutionMode::Sequential.as_str();
        replaced(
            draft,
            "execution_mode",
            "parallel or sequential",
            default.into(),
        );
    }
    settle_dependencies(draft);
}

fn settle_id(draft: &mut Draft) {
    if draft.text(Plan::MARK).is_some() {
        return;
    }
    let name = Plan::MARK;
    if let Some(number) = draft.data.get(name).filter(|id| id.is_number()).cloned() {
        let at = pointer("/data", name);
        draft.found(DeprecationCode::FieldNotText, at, &number, "a text");
        draft.set(name, as_text(&number));
    } else {
        draft.put_field_aside(name, DeprecationCode::FieldInvalid, "a text");
    }
}

/// Fills a field that is missing or cannot be read.
fn replaced(draft: &mut Draft, name: &str, instead: &str, default: Value) {
    if draft.data.get(name).is_none_or(Value::is_null) {
        let at = pointer("/data", name);
        draft.missing(DeprecationCode::FieldMissing, &at, instead);
    } else {
        draft.put_field_aside(name, DeprecationCode::FieldInvalid, instead);
    }
    draft.set(name, default);
}

fn settle_dependencies(draft: &mut Draft) {
    const INSTEAD: &str = "an object: for each task, the list of those it waits for";
    let given = draft.data.get("dependencies").cloned().unwrap_or_default();
    let Some(dependencies) = as_dependencies(&given) else {
        replaced(draft, "dependencies", INSTEAD, json!({}));
        return;
    };
    let dependencies = Value::Object(dependencies);
    if dependencies != given {
        let at = "/data/dependencies";
        draft.found(DeprecationCode::FieldNotText, at, &given, INSTEAD);
        draft.set("dependencies", dependencies);
    }
}

/// Dependencies by name, also where tasks are numbered or one stands without a list.
fn as_dependencies(given: &Value) -> Option<Object> {
    let entries = given.as_object()?.iter();
    entries
        .map(|(task, names)| Some((task.clone(), as_names(names)?)))
        .collect()
}

fn as_names(names: &Value) -> Option<Value> {
    let name = |value: &Value| {
        let is_name = value.is_string() || value.is_number();
        is_name.then(|| Value::from(as_text(value)))
    };
    match names {
        Value::Null => Some(json!([])),
        Value::Array(names) => names.iter().map(name).collect(),
        one => Some(json!([name(one)?])),
    }
}
