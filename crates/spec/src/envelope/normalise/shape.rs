//! Normalises the places of fields: moves fields into `data`, drops unused ones, and adds the required
//! ones.

use serde_json::Value;

use super::draft::{Draft, text_of};
use super::failure::is_error_value;
use super::notice::DeprecationCode;
use crate::envelope::action::Action;
use crate::envelope::error::pointer;
use crate::envelope::words::{HilAction, ToolStatus};
use crate::money::Money;

/// The fields in which tools state a sum in dollars in `billing`, the first one counts.
const BILLED: [&str; 6] = ["cost_usd", "usd", "cost", "total_cost", "total", "amount"];

/// Normalises what the call cost: `cost_usd`, or what can be read of `billing`, its older form.
pub(super) fn normalise_cost(draft: &mut Draft) -> Option<Money> {
    let billing = draft.top.shift_remove("billing");
    let stated = draft.top.shift_remove("cost_usd");
    let mut cost = None;
    if let Some(stated) = stated.filter(|stated| !stated.is_null()) {
        cost = dollars(&stated);
        const INSTEAD: &str = "the cost in dollars as text, such as `\"0.0042\"`";
        let code = match (&cost, &stated) {
            (Some(_), Value::String(_)) => None,
            (Some(_), _) => Some(DeprecationCode::FieldNotText),
            (None, _) => Some(DeprecationCode::FieldInvalid),
        };
        if let Some(code) = code {
            draft.report(code, "/cost_usd", &stated, INSTEAD);
        }
        if cost.is_none() {
            draft.keep_as_reported("cost_usd", stated);
        }
    }
    if let Some(billing) = billing {
        let billed = billed(&billing);
        let instead = match billed {
            Some(billed) => format!("`cost_usd` with the value `\"{}\"`", billed.to_decimal()),
            None => "`cost_usd` with the cost in dollars; this value is dropped".to_owned(),
        };
        draft.report(DeprecationCode::Billing, "/billing", &billing, instead);
        cost = cost.or(billed);
    }
    if let Some(cost) = cost {
        let cost = cost.to_decimal().into();
        draft.top.insert("cost_usd".to_owned(), cost);
    }
    cost
}

/// The sum in dollars of an older `billing` field, if it states one.
fn billed(billing: &Value) -> Option<Money> {
    let Value::Object(fields) = billing else {
        return dollars(billing);
    };
    let is_in_dollars = match fields.get("currency") {
        None | Some(Value::Null) => true,
        Some(currency) => currency
            .as_str()
            .is_some_and(|currency| currency == "$" || currency.eq_ignore_ascii_case("usd")),
    };
    let stated = BILLED.iter().find_map(|name| fields.get(*name));
    stated.filter(|_| is_in_dollars).and_then(dollars)
}

/// An amount in dollars as a text or a number. A number with more digits than an amount can have is rounded up.
fn dollars(value: &Value) -> Option<Money> {
    /// What the result of an addition of floating-point numbers may be off, in millionths of a dollar.
    const NOISE: f64 = 1e-3;
    const LARGEST: f64 = 1e15;
    match value {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => number.to_string().parse().ok().or_else(|| {
            let microdollars = (number.as_f64()? * 1e6 - NOISE).ceil();
            (0.0..LARGEST)
                .contains(&microdollars)
                .then(|| Money::from_microdollars(microdollars as u64))
        }),
        _ => None,
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
        if ["action", "timestamp", "cost_usd"].contains(&name.as_str())
            || own.contains(&name.as_str())
        {
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
