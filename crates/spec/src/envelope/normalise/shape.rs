//! Which fields stand where: what belongs in `data` goes there, what has no place goes away, and
//! what is always there gets there.

use serde_json::Value;

use super::draft::{Draft, text_of};
use super::failure::says_error;
use super::notice::DeprecationCode;
use crate::envelope::action::Action;
use crate::envelope::error::pointer;
use crate::envelope::words::{HilAction, ToolStatus};

/// Drops `billing`: what a call costs is told by events, and not by its answer.
pub(super) fn drop_billing(draft: &mut Draft) {
    if let Some(billing) = draft.top.shift_remove("billing") {
        let instead = "nothing; costs are reported by events";
        draft.found(DeprecationCode::Billing, "/billing", &billing, instead);
    }
}

/// Moves every field to its place.
pub(super) fn settle(draft: &mut Draft, status: ToolStatus) {
    if status != ToolStatus::Error {
        drop_empty_errors(draft);
    }
    settle_flag(draft, status);
    let moved = move_flat_fields(draft, status);
    if !draft.has_data && !moved {
        draft.missing(DeprecationCode::DataMissing, "/data", "`{}`");
    }
    settle_plain(draft, status);
}

fn drop_empty_errors(draft: &mut Draft) {
    for name in ["error", "error_message"] {
        if says_error(draft.top.get(name)) {
            continue;
        }
        if let Some(error) = draft.top.shift_remove(name) {
            draft.found(
                DeprecationCode::EmptyError,
                pointer("", name),
                &error,
                "nothing where there is no error",
            );
        }
    }
}

fn settle_flag(draft: &mut Draft, status: ToolStatus) {
    let flag = draft.top.shift_remove("hil_required");
    match (status.is_hil(), flag) {
        (true, flag) => {
            const INSTEAD: &str = "`true` whenever a person is asked";
            let (code, at) = (DeprecationCode::HilFlagMissing, "/hil_required");
            match flag {
                Some(Value::Bool(true)) => {}
                Some(found) => draft.found(code, at, &found, INSTEAD),
                None => draft.missing(code, at, INSTEAD),
            }
            draft.top.insert("hil_required".to_owned(), true.into());
        }
        (false, Some(flag)) => {
            draft.found(
                DeprecationCode::HilFlagMisplaced,
                "/hil_required",
                &flag,
                "nothing where nobody is asked",
            );
        }
        (false, None) => {}
    }
}

/// Moves into `data` what stands beside it without belonging there; says whether anything did.
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
        draft.found(
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
            Some(_) => draft.put_aside(&name, value),
        }
    }
    moved
}

/// Data that is no object stays in a success, unless other fields have to stand beside it; then it
/// is their `result`. Everywhere else it is put into an object.
fn settle_plain(draft: &mut Draft, status: ToolStatus) {
    let beside = !draft.data.is_empty();
    if status == ToolStatus::Success && !beside {
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
    draft.found(DeprecationCode::DataNotObject, "/data", &value, "an object");
    if !value.is_null() {
        let name = if draft.data.contains_key("value") {
            "reported_value"
        } else {
            "value"
        };
        draft.set(name, value);
    }
}

/// Decides the action. Of answers that wait for a person it is fixed.
pub(super) fn settle_action(draft: &mut Draft, status: ToolStatus, fallback: &Action) {
    if let Some(expected) = status.hil_action() {
        settle_hil_action(draft, expected);
        return;
    }
    let given = draft.top.get("action").filter(|value| !value.is_null());
    let given = given.cloned();
    let instead = "the name of the tool";
    match given {
        None => draft.missing(DeprecationCode::ActionMissing, "/action", instead),
        Some(Value::String(name)) if Action::new(name.as_str()).is_ok() => return,
        Some(given) => {
            draft.found(DeprecationCode::ActionInvalid, "/action", &given, instead);
            draft.put_aside("action", given);
        }
    }
    draft
        .top
        .insert("action".to_owned(), fallback.as_str().into());
}

fn settle_hil_action(draft: &mut Draft, expected: HilAction) {
    if draft.top_word::<HilAction>("action") == Some(expected) {
        return;
    }
    let expected = expected.as_str();
    let given = draft.top.insert("action".to_owned(), expected.into());
    let instead = format!("`{expected}`");
    match given.filter(|given| text_of(Some(given)).is_some()) {
        None => draft.missing(DeprecationCode::ActionMissing, "/action", instead),
        Some(given) => {
            draft.found(DeprecationCode::HilAction, "/action", &given, instead);
            draft.put_aside("action", given);
        }
    }
}
