//! Normalises the error of an answer, from any place and form.

use serde_json::Value;

use super::draft::{Draft, as_text, text_of};
use super::notice::DeprecationCode;
use crate::failure::{Effect, ErrorCategory};
use crate::words::Word;

/// Whether the value of an error field means that there is an error.
pub(super) fn is_error_value(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(Value::String(text)) => !text.trim().is_empty(),
        Some(Value::Array(list)) => !list.is_empty(),
        Some(Value::Object(object)) => !object.is_empty(),
        Some(Value::Bool(true) | Value::Number(_)) => true,
    }
}

/// Normalises the fields of an error. `category` is the one from the status word.
pub(super) fn normalise_error(draft: &mut Draft, category: Option<ErrorCategory>) {
    let error = error_text(draft);
    draft.top.insert("error".to_owned(), error.into());

    let mut absent = Vec::new();
    let category = word_or_absent(draft, "category", &mut absent)
        .or(category)
        .unwrap_or(ErrorCategory::ToolFailure);
    let effect = word_or_absent(draft, "effect", &mut absent).unwrap_or(Effect::Unknown);
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
        // An unknown word or a value of another type is kept.
        if let Some(given) = given.filter(|given| !given.is_null() && *given != value) {
            draft.keep_as_reported(name, given);
        }
    }
    if let Some(first) = absent.first() {
        draft.report_missing(
            DeprecationCode::ErrorIncomplete,
            &format!("/{first}"),
            format!("`{}` next to `error`", absent.join("`, `")),
        );
    }
    normalise_model_message(draft);
}

/// The word in the field `name`. Adds the name to `absent` if there is none.
fn word_or_absent<W: Word>(
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
        Some(given) => draft.report(
            DeprecationCode::WordUnknown,
            format!("/{name}"),
            &given,
            format!("one of {}", W::known()),
        ),
    }
    None
}

/// Takes the text of the error from its place: `error`, another name, `data`, or the message.
fn error_text(draft: &mut Draft) -> String {
    const INSTEAD: &str = "the text in `error`, next to `data`";
    if let Some(error) = draft.top.shift_remove("error") {
        if let Some(text) = text_of(Some(&error)) {
            return text.to_owned();
        }
        if is_error_value(Some(&error)) {
            draft.report(DeprecationCode::ErrorNotText, "/error", &error, INSTEAD);
            let text = message_of(&error);
            draft.keep_as_reported("error", error);
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
        if !is_error_value(object.get(name)) {
            continue;
        }
        let Some(error) = object.shift_remove(name) else {
            continue;
        };
        let place = if in_data { "/data" } else { "" };
        draft.report(code, format!("{place}/{name}"), &error, INSTEAD);
        let text = message_of(&error);
        if !error.is_string() {
            draft.keep_as_reported("error", error);
        }
        return text;
    }
    draft.report_missing(DeprecationCode::ErrorTextMissing, "/error", INSTEAD);
    "the tool reported an error without a message".to_owned()
}

/// An error as one text: its message if it is an object that has one.
fn message_of(error: &Value) -> String {
    let mut names = ["message", "error", "detail", "description"].into_iter();
    let message = names.find_map(|name| text_of(error.get(name)));
    message.map_or_else(|| as_text(error), str::to_owned)
}

fn normalise_model_message(draft: &mut Draft) {
    let given = draft.top.shift_remove("model_message");
    match given.filter(|given| !given.is_null()) {
        None => {}
        Some(Value::String(text)) => {
            draft.top.insert("model_message".to_owned(), text.into());
        }
        Some(given) => {
            draft.report(
                DeprecationCode::FieldNotText,
                "/model_message",
                &given,
                "a text, or omit it",
            );
            draft.keep_as_reported("model_message", given);
        }
    }
}
