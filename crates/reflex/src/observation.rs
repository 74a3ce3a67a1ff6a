//! Observations of tool calls: whether they are errors, how they are shown to people, and the values in them
//! for later calls.

use serde_json::{Map, Value};
use windlass_core::run::{ALTERNATIVES, is_refused_by_person};

/// The longest observation that is parsed, in bytes.
const LONGEST: usize = 200_000;

/// What a call returned, without what the runtime says about it.
pub(crate) fn returned(content: &str) -> &str {
    let before = content.rsplit_once(ALTERNATIVES);
    before.map_or(content, |(before, _)| before.trim_end())
}

/// The error message of an observation, if the call failed.
pub(crate) fn failure(content: &str) -> Option<String> {
    let trimmed = content.trim();
    if let Some(Value::Object(fields)) = parsed(trimmed) {
        let status = fields.get("status").and_then(Value::as_str).unwrap_or("");
        let error = ["error", "error_message", "errorMessage"]
            .iter()
            .filter_map(|key| fields.get(*key))
            .find(|error| !error.is_null() && *error != &Value::Bool(false));
        let failed = matches!(status, "error" | "failed" | "failure")
            || fields.get("success") == Some(&Value::Bool(false));
        return match error {
            Some(error) => Some(render(error)),
            None if failed => Some(
                fields
                    .get("message")
                    .map_or_else(|| render(&Value::Object(fields.clone())), render),
            ),
            None => None,
        };
    }
    const LEADS: [&str; 5] = [
        "the tool failed (",
        "Error:",
        "error:",
        "ERROR",
        "The call failed",
    ];
    let is_failure = LEADS.iter().any(|lead| trimmed.starts_with(lead)) || !was_made(trimmed);
    is_failure.then(|| trimmed.to_owned())
}

/// Whether the call of an observation was made: the runtime did not refuse it, no approver did, and its tool is
/// configured.
pub(crate) fn was_made(content: &str) -> bool {
    const NOT_MADE: [&str; 7] = [
        "There is no tool `",
        "The arguments do not fit",
        "The arguments are not valid",
        "The call was",
        "At most ",
        "You made exactly this call before",
        "the call ",
    ];
    let text = content.trim();
    let is_unconfigured = text
        .strip_prefix('`')
        .and_then(|rest| rest.split_once('`'))
        .is_some_and(|(_, rest)| rest.starts_with(" is not configured"));
    !is_unconfigured
        && !NOT_MADE.iter().any(|lead| text.starts_with(lead))
        && !is_refused_by_person(text)
}

fn parsed(content: &str) -> Option<Value> {
    let looks = content.starts_with(['{', '[']) && content.len() <= LONGEST;
    looks.then(|| serde_json::from_str(content).ok()).flatten()
}

/// An observation as text for people: strings as they are, records as `name: value`.
pub(crate) fn readable(content: &str) -> String {
    match parsed(content.trim()) {
        Some(value) => render(payload(&value)),
        None => content.to_owned(),
    }
}

/// The data of an envelope; the value itself if it is not an envelope.
fn payload(value: &Value) -> &Value {
    let Some(fields) = value.as_object() else {
        return value;
    };
    let is_envelope = fields.contains_key("status") && fields.contains_key("data");
    if is_envelope {
        return fields.get("data").unwrap_or(value);
    }
    match (
        fields.len(),
        fields.get("result").or_else(|| fields.get("data")),
    ) {
        (1, Some(inner)) => inner,
        _ => value,
    }
}

/// The longest list item that is shown in one line with others.
const SHORT: usize = 40;

/// Whether a value is a record without records or lists in it.
fn is_flat(value: &Value) -> bool {
    let is_plain = |field: &Value| !field.is_object() && !field.is_array();
    value
        .as_object()
        .is_some_and(|fields| !fields.is_empty() && fields.values().all(is_plain))
}

fn render(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items)
            if items
                .iter()
                .all(|item| !item.is_object() && !item.is_array()) =>
        {
            let items: Vec<String> = items.iter().map(render).collect();
            // Short items are shown in one line, longer ones in a line each.
            let is_short = |item: &String| item.len() <= SHORT && !item.contains(',');
            let between = if items.iter().all(is_short) {
                ", "
            } else {
                "\n"
            };
            items.join(between)
        }
        Value::Array(items) if items.iter().all(is_flat) => {
            let rows: Vec<String> = items
                .iter()
                .map(|item| render(item).replace('\n', ", "))
                .collect();
            rows.join("\n")
        }
        Value::Object(fields)
            if fields.values().all(|field| !field.is_object()) && !fields.is_empty() =>
        {
            fields
                .iter()
                .map(|(name, field)| {
                    format!(
                        "{}: {}",
                        crate::text::name_words(name).join(" "),
                        render(field)
                    )
                })
                .collect::<Vec<_>>()
                .join("\n")
        }
        other => other.to_string(),
    }
}

/// The value of the field with this name in an observation, at any depth.
pub(crate) fn value_named(content: &str, name: &str) -> Option<Value> {
    let value = parsed(content.trim())?;
    let wanted = crate::text::name_words(name);
    let mut level = vec![&value];
    // Breadth first: fields near the top are more likely meant.
    for _ in 0..6 {
        let mut next = Vec::new();
        for value in level {
            match value {
                Value::Object(fields) => {
                    if let Some(found) = field_named(fields, &wanted) {
                        return Some(found.clone());
                    }
                    next.extend(fields.values());
                }
                Value::Array(items) => next.extend(items.iter().take(20)),
                _ => {}
            }
        }
        level = next;
    }
    None
}

fn field_named<'a>(fields: &'a Map<String, Value>, wanted: &[String]) -> Option<&'a Value> {
    let exact = fields
        .iter()
        .find(|(key, _)| crate::text::name_words(key) == wanted);
    // `order_id` is the `id` of the order that was just created.
    let tail = || {
        let last = wanted.last()?;
        (last == "id" || wanted.len() > 1 && last == "name")
            .then(|| {
                fields
                    .iter()
                    .find(|(key, _)| key.eq_ignore_ascii_case(last))
            })
            .flatten()
    };
    exact
        .or_else(tail)
        .map(|(_, value)| value)
        .filter(|value| !value.is_null())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn failures_are_distinguished_from_results() {
        assert!(failure("the tool failed (timeout): try again").is_some());
        assert_eq!(
            failure(r#"{"error": "no such file"}"#).as_deref(),
            Some("no such file")
        );
        assert_eq!(failure(r#"{"error": null, "value": 3}"#), None);
        assert_eq!(failure("Hello, Ada! Nice to meet you."), None);
        assert_eq!(failure("The error rate is 3 %"), None);
    }

    #[test]
    fn texts_stay_as_they_are_and_records_become_lines() {
        assert_eq!(readable("  Hello, Ada!"), "  Hello, Ada!");
        assert_eq!(
            readable(r#"{"status":"success","data":{"total_price":12,"paid":true}}"#),
            "total price: 12\npaid: true"
        );
        assert_eq!(readable("[1,2]"), "1, 2");
    }

    #[test]
    fn lists_are_shown_in_one_line_if_their_items_are_short() {
        assert_eq!(readable(r#"["a", "b"]"#), "a, b");
        assert_eq!(readable(r#"["One, two.", "three"]"#), "One, two.\nthree");
        assert_eq!(
            readable(r#"[{"id": 1, "name": "Ada"}, {"id": 2, "name": "Bob"}]"#),
            "id: 1, name: Ada\nid: 2, name: Bob"
        );
        assert_eq!(readable("[]"), "");
    }

    #[test]
    fn values_are_found_by_name() {
        let content = r#"{"order": {"id": "A7", "items": [{"sku": 5}]}}"#;
        assert_eq!(value_named(content, "order_id"), Some(json!("A7")));
        assert_eq!(value_named(content, "sku"), Some(json!(5)));
        assert_eq!(value_named(content, "city"), None);
    }
}
