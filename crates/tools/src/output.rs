//! What a program printed or a server sent, as the JSON a tool promises. Nothing is guessed: only
//! where a text is promised may it stand as it is, without quotes.

use serde_json::Value;
use windlass_spec::{ErrorCategory, Type};

use crate::error::ToolError;

/// The value in `bytes`. Without a promise, whatever is JSON is read as JSON.
pub(crate) fn value(bytes: &[u8], promised: Option<&Type>) -> Result<Value, ToolError> {
    let parsed = serde_json::from_slice::<Value>(bytes);
    match (parsed, promised) {
        (Ok(Value::Null), Some(Type::Nullable(_))) => Ok(Value::Null),
        (Ok(value), Some(ty)) if !is_text(ty) || value.is_string() => Ok(value),
        (Ok(value), None) => Ok(value),
        (Err(error), Some(ty)) if !is_text(ty) => Err(ToolError::foreign(
            ErrorCategory::InvalidOutput,
            format!(
                "what was promised is {ty}, but the answer is not JSON: {error}; it begins with {:?}",
                beginning(bytes)
            ),
        )),
        (Ok(_) | Err(_), _) => text(bytes),
    }
}

fn is_text(ty: &Type) -> bool {
    match ty {
        Type::Text | Type::Enum(_) => true,
        Type::Nullable(inner) => is_text(inner),
        _ => false,
    }
}

/// The text without the line break that programs end their output with.
fn text(bytes: &[u8]) -> Result<Value, ToolError> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let message = format!("the answer is neither JSON nor text in UTF-8: {error}");
        ToolError::foreign(ErrorCategory::InvalidOutput, message)
    })?;
    let text = text.strip_suffix('\n').unwrap_or(text);
    Ok(Value::String(
        text.strip_suffix('\r').unwrap_or(text).to_owned(),
    ))
}

fn beginning(bytes: &[u8]) -> String {
    const SHOWN: usize = 120;
    String::from_utf8_lossy(bytes).chars().take(SHOWN).collect()
}

/// The error of an answer that holds more than a call may keep.
pub(crate) fn too_large(max_bytes: usize) -> ToolError {
    ToolError::of(
        ErrorCategory::InvalidOutput,
        format!("the result is larger than {max_bytes} bytes; ask for less at a time"),
    )
}

/// `text` without these secrets. Very short values are left: they occur by chance, and taking them
/// out would leave nothing readable.
pub(crate) fn redacted(mut text: String, secrets: &[String]) -> String {
    const SHORTEST_SECRET: usize = 6;
    for secret in secrets
        .iter()
        .filter(|secret| secret.len() >= SHORTEST_SECRET)
    {
        if text.contains(secret.as_str()) {
            text = text.replace(secret.as_str(), "[redacted]");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use windlass_spec::Type;

    use super::{redacted, value};

    fn read(bytes: &str, promised: Type) -> Option<Value> {
        value(bytes.as_bytes(), Some(&promised)).ok()
    }

    #[test]
    fn a_promised_text_may_stand_without_quotes_and_is_never_taken_for_something_else() {
        assert_eq!(read("all well\n", Type::Text), Some(json!("all well")));
        assert_eq!(
            read("\"all\\nwell\"\n", Type::Text),
            Some(json!("all\nwell"))
        );
        assert_eq!(read("42\n", Type::Text), Some(json!("42")));
        assert_eq!(read("null", Type::nullable(Type::Text)), Some(Value::Null));
        assert_eq!(read("", Type::Text), Some(json!("")));
    }

    #[test]
    fn anything_else_that_is_promised_must_be_json() {
        assert_eq!(
            read("[1, 2]\n", Type::list(Type::Integer)),
            Some(json!([1, 2]))
        );
        assert_eq!(read("one, two", Type::list(Type::Text)), None);
        assert_eq!(read("", Type::Integer), None);
    }

    #[test]
    fn without_a_promise_json_is_read_and_text_is_kept() {
        assert_eq!(value(b"{\"a\": 1}", None), Ok(json!({"a": 1})));
        assert_eq!(value(b"plain", None), Ok(json!("plain")));
        assert!(value(&[0xff, 0xfe], None).is_err());
    }

    #[test]
    fn secrets_are_taken_out_of_what_is_shown() {
        let secrets = ["tok-12345".to_owned(), "a".to_owned()];
        assert_eq!(
            redacted("a tok-12345 leaked".to_owned(), &secrets),
            "a [redacted] leaked"
        );
    }
}
