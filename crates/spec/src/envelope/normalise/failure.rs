//! What went wrong, wherever and however an answer says it.

use serde_json::Value;

use super::draft::{Draft, as_text, text_of};
use super::notice::DeprecationCode;
use crate::envelope::words::Word;
use crate::failure::{Effect, ErrorCategory};

/// Whether a value in the place of an error says that there is one.
pub(super) fn says_error(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(Value::String(text)) => !text.trim().is_empty(),
        Some(Value::Array(list)) => !list.is_empty(),
        Some(Value::Object(object)) => !object.is_empty(),
        Some(Value::Bool(true) | Value::Number(_)) => true,
    }
}

/// Decides the fields of an error. `category` is what the status said about it.
pub(super) fn settle(draft: &mut Draft, category: Option<ErrorCategory>) {
    let error = error_text(draft);
    draft.top.insert("error".to_owned(), error.into());

    let mut absent = Vec::new();
    let category = stated_or(draft, "category", &mut absent)
        .or(category)
        .unwrap_or(ErrorCategory::ToolFailure);
    let effect = stated_or(draft, "effect", &mut absent).unwrap_or(Effect::Unknown);
    let retryable = draft.top.get("retryable").and_then(Value::as_bool);
    if retryable.is_none() {
        absent.push("retryable");
    }
    let retryable = retryable.unwrap_or(category.is_retryable());
    let fields = [
        ("category", Value::from(category.word())),
        ("retryable", retryable.into()),
        ("effect", effect.word().into()),
    ];
    for (name, value) in fields {
        let given = draft.top.insert(name.to_owned(), value.clone());
        // What was no known word, or no boolean, is kept.
        if let Some(given) = given.filter(|given| !given.is_null() && *given != value) {
            draft.put_aside(name, given);
        }
    }
    if let Some(first) = absent.first() {
        draft.missing(
            DeprecationCode::ErrorIncomplete,
            &format!("/{first}"),
            format!("`{}` beside `error`", absent.join("`, `")),
        );
    }
    settle_model_message(draft);
}

/// The word in the field `name`, or a note that it is absent.
fn stated_or<W: Word>(
    draft: &mut Draft,
    name: &'static str,
    absent: &mut Vec<&'static str>,
) -> Option<W> {
    let word = draft.top_word(name);
    if word.is_some() {
        return word;
    }
    match draft.top.get(name).cloned() {
        None | Some(Value::Null) => absent.push(name),
        Some(given) => draft.found(
            DeprecationCode::WordUnknown,
            format!("/{name}"),
            &given,
            format!("one of {}", W::known()),
        ),
    }
    None
}

/// Takes the error from where it stands: in its place, under another name, in `data`, or in the
/// message.
fn error_text(draft: &mut Draft) -> String {
    const INSTEAD: &str = "the text in `error`, beside `data`";
    if let Some(error) = draft.top.shift_remove("error") {
        if let Some(text) = text_of(Some(&error)) {
            return text.to_owned();
        }
        if says_error(Some(&error)) {
            draft.found(DeprecationCode::ErrorNotText, "/error", &error, INSTEAD);
            let text = described(&error);
            draft.put_aside("error", error);
            return text;
        }
    }
    let places = [
        ("error_message", DeprecationCode::ErrorMessageField, false),
        ("error", DeprecationCode::ErrorInData, true),
        ("error_message", DeprecationCode::ErrorInData, true),
        ("message", DeprecationCode::ErrorMessageField, false),
    ];
    for (name, code, in_data) in places {
        let object = if in_data {
            &mut draft.data
        } else {
            &mut draft.top
        };
        if !says_error(object.get(name)) {
            continue;
        }
        let Some(error) = object.shift_remove(name) else {
            continue;
        };
        let place = if in_data { "/data" } else { "" };
        draft.found(code, format!("{place}/{name}"), &error, INSTEAD);
        let text = described(&error);
        if !error.is_string() {
            draft.put_aside("error", error);
        }
        return text;
    }
    draft.missing(DeprecationCode::ErrorTextMissing, "/error", INSTEAD);
    "the tool reported an error and did not say which".to_owned()
}

/// An error as one text: its message if it is an object that has one.
fn described(error: &Value) -> String {
    let mut names = ["message", "error", "detail", "description"].into_iter();
    let message = names.find_map(|name| text_of(error.get(name)));
    message.map_or_else(|| as_text(error), str::to_owned)
}

fn settle_model_message(draft: &mut Draft) {
    let given = draft.top.shift_remove("model_message");
    match given.filter(|given| !given.is_null()) {
        None => {}
        Some(Value::String(text)) => {
            draft.top.insert("model_message".to_owned(), text.into());
        }
        Some(given) => {
            draft.found(
                DeprecationCode::FieldNotText,
                "/model_message",
                &given,
                "a text, or nothing",
            );
            draft.put_aside("model_message", given);
        }
    }
}
