//! Arguments that refer to the result of an earlier task: `{"$from": "task"}`, or with `"at"` a JSON
//! Pointer into it. A reference replaces a whole value, so a result is never interpreted as anything but
//! a value.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::{PlanError, PlanTask, PlanTaskId, Work};

/// The key that makes an object a reference.
pub const FROM: &str = "$from";

/// The key of the JSON Pointer into the result.
const AT: &str = "at";

struct Reference<'v> {
    task: &'v str,
    at: &'v str,
}

/// Reads an object as a reference; `None` if it is not one.
fn reference(fields: &Map<String, Value>) -> Option<Reference<'_>> {
    let task = fields.get(FROM)?.as_str()?;
    let at = match fields.get(AT) {
        None => "",
        Some(at) => at.as_str()?,
    };
    let count = 1 + usize::from(fields.contains_key(AT));
    (fields.len() == count).then_some(Reference { task, at })
}

fn visit<'v>(value: &'v Value, take: &mut dyn FnMut(Reference<'v>)) {
    match value {
        Value::Object(fields) => match reference(fields) {
            Some(reference) => take(reference),
            None => fields.values().for_each(|field| visit(field, take)),
        },
        Value::Array(items) => items.iter().for_each(|item| visit(item, take)),
        _ => {}
    }
}

/// Whether any of the arguments contains a reference.
pub(super) fn has_references(arguments: &Map<String, Value>) -> bool {
    let mut found = false;
    for value in arguments.values() {
        visit(value, &mut |_| found = true);
    }
    found
}

/// Finds references to tasks that are not dependencies, direct or indirect.
pub(super) fn check(tasks: &[PlanTask], errors: &mut Vec<PlanError>) {
    let by_name: BTreeMap<&str, &PlanTask> =
        tasks.iter().map(|task| (task.id.as_str(), task)).collect();
    for task in tasks {
        let Work::Call { arguments, .. } = &task.work else {
            continue;
        };
        if !has_references(arguments) {
            continue;
        }
        let mut dependencies = BTreeSet::new();
        let mut open: Vec<&str> = task.depends_on.iter().map(PlanTaskId::as_str).collect();
        while let Some(name) = open.pop() {
            if dependencies.insert(name) {
                let further = by_name.get(name).map(|task| task.depends_on.iter());
                open.extend(further.into_iter().flatten().map(PlanTaskId::as_str));
            }
        }
        for value in arguments.values() {
            visit(value, &mut |reference| {
                if !dependencies.contains(reference.task) {
                    errors.push(PlanError::MissingDependency {
                        task: task.id.clone(),
                        from: reference.task.chars().take(64).collect(),
                    });
                }
            });
        }
    }
}

/// The arguments with references replaced by the results.
pub(super) fn resolve<'r>(
    arguments: &Map<String, Value>,
    result: &dyn Fn(&str) -> Option<&'r Value>,
) -> Result<Map<String, Value>, String> {
    let mut resolved = arguments.clone();
    for value in resolved.values_mut() {
        resolve_value(value, result)?;
    }
    Ok(resolved)
}

fn resolve_value<'r>(
    value: &mut Value,
    result: &dyn Fn(&str) -> Option<&'r Value>,
) -> Result<(), String> {
    let found = match value {
        Value::Array(items) => {
            return items
                .iter_mut()
                .try_for_each(|item| resolve_value(item, result));
        }
        Value::Object(fields) => match reference(fields) {
            None => {
                let mut fields = fields.values_mut();
                return fields.try_for_each(|field| resolve_value(field, result));
            }
            Some(Reference { task, at }) => {
                let whole = result(task)
                    .ok_or_else(|| format!("the task `{task}` has no result to use"))?;
                whole.pointer(at).cloned().ok_or_else(|| {
                    format!("the result of the task `{task}` has no value at `{at}`")
                })?
            }
        },
        _ => return Ok(()),
    };
    *value = found;
    Ok(())
}
