//! Normalises plans with missing or malformed parts. Without an execution mode, tasks run in sequence,
//! which is correct for every plan and only slower for some.

use serde_json::{Value, json};

use super::draft::{Draft, as_text};
use super::notice::DeprecationCode;
use crate::envelope::Object;
use crate::envelope::error::pointer;
use crate::envelope::plan::PlanReport;
use crate::envelope::words::ExecutionMode;

/// Normalises the fields of a plan, if the data is one.
pub(super) fn normalise_plan(draft: &mut Draft) {
    if draft.data.get(PlanReport::MARK).is_none_or(Value::is_null) {
        draft.data.shift_remove(PlanReport::MARK);
        return;
    }
    normalise_id(draft);
    if !draft.data.contains_key(PlanReport::MARK) {
        return;
    }
    if !draft.data.get("tasks").is_some_and(Value::is_array) {
        set_default(draft, "tasks", "a list", json!([]));
    }
    if draft.data_word::<ExecutionMode>("execution_mode").is_none() {
        let default = ExecutionMode::Sequential.as_str();
        set_default(
            draft,
            "execution_mode",
            "parallel or sequential",
            default.into(),
        );
    }
    normalise_dependencies(draft);
}

fn normalise_id(draft: &mut Draft) {
    if draft.text(PlanReport::MARK).is_some() {
        return;
    }
    let name = PlanReport::MARK;
    if let Some(number) = draft.data.get(name).filter(|id| id.is_number()).cloned() {
        let at = pointer("/data", name);
        draft.report(DeprecationCode::FieldNotText, at, &number, "a text");
        draft.set(name, as_text(&number));
    } else {
        draft.keep_field_as_reported(name, DeprecationCode::FieldInvalid, "a text");
    }
}

/// Sets a field that is missing or invalid to a default.
fn set_default(draft: &mut Draft, name: &str, instead: &str, default: Value) {
    if draft.data.get(name).is_none_or(Value::is_null) {
        let at = pointer("/data", name);
        draft.report_missing(DeprecationCode::FieldMissing, &at, instead);
    } else {
        draft.keep_field_as_reported(name, DeprecationCode::FieldInvalid, instead);
    }
    draft.set(name, default);
}

fn normalise_dependencies(draft: &mut Draft) {
    const INSTEAD: &str = "an object: for each task, the list of its dependencies";
    let given = draft.data.get("dependencies").cloned().unwrap_or_default();
    let Some(dependencies) = as_dependencies(&given) else {
        set_default(draft, "dependencies", INSTEAD, json!({}));
        return;
    };
    let dependencies = Value::Object(dependencies);
    if dependencies != given {
        let at = "/data/dependencies";
        draft.report(DeprecationCode::FieldNotText, at, &given, INSTEAD);
        draft.set("dependencies", dependencies);
    }
}

/// Dependencies by name, also if tasks are numbers or a single one has no list.
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
