//! Normalises the places of fields: moves fields into `data`, drops unused ones, and adds the required
//! ones.

use serde_json::Value;

use super::draft::{Draft, text_of};
use super::failure::is_error_value;
use super::notice::DeprecationCode;
use crate::envelope::action::Action;
use crate::envelope::error::pointer;
use crate::envelope::words::{HilAction, ToolStatus};

/// Drops `billing`: costs are reported by events, not by answers.
pub(super) fn drop_billing(draft: &mut Draft) {
    if let Some(billing) = draft.top.shift_remove("billing") {
        let instead = "nothing; costs are reported by events";
        draft.report(DeprecationCode::Billing, "/billing", &billing, instead);
    }
}

/// Moves every field to its place.
pub(super) fn normalise_shape(draft: &mut Draft, status: ToolStatus) {
    if status != ToolStatus::Error {
        drop_empty_errors(draft);
    }
    normalise_flag(draft, status);
    let moved = move_flat_fields(draft, status);
    if !draft.has_data && !moved {
        draft.report_missing(DeprecationCode::DataMissing, "/data", "`{}`");
    }
    normalise_plain(draft, status);
}

fn drop_empty_errors(draft: &mut Draft) {
    for name in ["error", "error_message"] {
        if is_error_value(draft.top.get(name)) {
            continue;
        }
        if let Some(error) = draft.top.shift_remove(name) {
            draft.report(
                DeprecationCode::EmptyError,
                pointer("", name),
                &error,
                "nothing if there is no error",
            );
        }
    }
}

fn normalise_flag(draft: &mut Draft, status: ToolStatus) {
    let flag = draft.top.shift_remove("hil_required");
    match (status.is_hil(), flag) {
        (true, flag) => {
            const INSTEAD: &str = "`true` if the answer waits for a person";
            let (code, at) = (DeprecationCode::HilFlagMissing, "/hil_required");
            match flag {
                Some(Value::Bool(true)) => {}
                Some(found) => draft.report(code, at, &found, INSTEAD),
                None => draft.report_missing(code, at, INSTEAD),
            }
            draft.top.insert("hil_required".to_owned(), true.into());
        }
        (false, Some(flag)) => {
            draft.report(
                DeprecationCode::HilFlagMisplaced,
                "/hil_required",
                &flag,
                "nothing if the answer does not wait for a person",
            );
        }
        (false, None) => {}
    }
}

/// Moves fields that do not belong next to `data` into it. Returns true if there were any.
fn move_flat_fields(draft: &mut Draft, status: ToolStatus) -> bool {
    let own: &[&str] = match status {
        ToolStatus::Error => &["error", "category", "retryable", "effect", "model_message"],
        _ if status.is_hil() => &["hil_required", "message"],
        _ => &[],
    };
    let top = std::mem::take(&mut draft.top);
    let mut moved = false;
    for (name, value) in top {
        if ["action", "timestamp"].contains(&name.as_str()) || own.contains(&name.as_str()) {
            draft.top.insert(name, value);
            continue;
        }
        moved = true;
        let instead = format!("`data.{name}`");
        draft.report(
            DeprecationCode::FlatField,
            pointer("", &name),
            &value,
            instead,
        );
        match draft.data.get(&name) {
            None => {
                draft.data.insert(name, value);
            }
            Some(same) if *same == value => {}
            Some(_) => draft.keep_as_reported(&name, value),
        }
    }
    moved
}

/// Data that is not an object is allowed in a success without other fields; with other fields it
/// becomes their `result`. In all other answers it is wrapped in an object.
fn normalise_plain(draft: &mut Draft, status: ToolStatus) {
    let has_fields = !draft.data.is_empty();
    if status == ToolStatus::Success && !has_fields {
        return;
    }
    let Some(value) = draft.plain.take() else {
        return;
    };
    if status == ToolStatus::Success {
        if !value.is_null() {
            let metadata = std::mem::take(&mut draft.data);
            draft.set("result", value);
            draft.set("metadata", metadata);
        }
        return;
    }
    draft.report(DeprecationCode::DataNotObject, "/data", &value, "an object");
    if !value.is_null() {
        let name = if draft.data.contains_key("value") {
            "reported_value"
        } else {
            "value"
        };
        draft.set(name, value);
    }
}

/// Normalises the action, which is fixed for answers that wait for a person.
pub(super) fn normalise_action(draft: &mut Draft, status: ToolStatus, fallback: &Action) {
    if let Some(expected) = status.hil_action() {
        normalise_hil_action(draft, expected);
        return;
    }
    let given = draft.top.get("action").filter(|value| !value.is_null());
    let given = given.cloned();
    let instead = "the name of the tool";
    match given {
        None => draft.report_missing(DeprecationCode::ActionMissing, "/action", instead),
        Some(Value::String(name)) if Action::new(name.as_str()).is_ok() => return,
        Some(given) => {
            draft.report(DeprecationCode::ActionInvalid, "/action", &given, instead);
            draft.keep_as_reported("action", given);
        }
    }
    draft
        .top
        .insert("action".to_owned(), fallback.as_str().into());
}

fn normalise_hil_action(draft: &mut Draft, expected: HilAction) {
    if draft.top_word::<HilAction>("action") == Some(expected) {
        return;
    }
    let expected = expected.as_str();
    let given = draft.top.insert("action".to_owned(), expected.into());
    let instead = format!("`{expected}`");
    match given.filter(|given| text_of(Some(given)).is_some()) {
        None => draft.report_missing(DeprecationCode::ActionMissing, "/action", instead),
        Some(given) => {
            draft.report(DeprecationCode::HilAction, "/action", &given, instead);
            draft.keep_as_reported("action", given);
        }
    }
}
