//! Converts the output of a program or server to the JSON that a tool declares. Nothing is guessed: only
//! a declared text, and a stream of frames, may be written without quotes.

use serde_json::Value;
use windlass_spec::number::with_inexact_as_texts;
use windlass_spec::{ErrorCategory, Type};

use crate::envelope::is_stream;
use crate::error::ToolError;

/// The value in `bytes`. Without a declared type, JSON is read as JSON and anything else as text.
pub(crate) fn value(bytes: &[u8], declared: Option<&Type>) -> Result<Value, ToolError> {
    // A number that a value cannot keep becomes a text with its digits.
    let parsed = match std::str::from_utf8(bytes) {
        Ok(text) => serde_json::from_str::<Value>(&with_inexact_as_texts(text)),
        Err(_) => serde_json::from_slice(bytes),
    };
    match (parsed, declared) {
        (Ok(Value::Null), Some(Type::Nullable(_))) => Ok(Value::Null),
        (Ok(value), Some(ty)) if !is_text(ty) || value.is_string() => Ok(value),
        (Ok(value), None) => Ok(value),
        (Err(_), Some(ty)) if !is_text(ty) && std::str::from_utf8(bytes).is_ok_and(is_stream) => {
            text(bytes)
        }
        (Err(error), Some(ty)) if !is_text(ty) => Err(ToolError::foreign(
            ErrorCategory::InvalidOutput,
            format!(
                "the declared result is {ty}, but the output is not JSON: {error}; it begins with {:?}",
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

/// The text without its final line break.
fn text(bytes: &[u8]) -> Result<Value, ToolError> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let message = format!("the output is neither JSON nor UTF-8 text: {error}");
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

/// The error of a result that is larger than the limit.
pub(crate) fn too_large(max_bytes: usize) -> ToolError {
    ToolError::of(
        ErrorCategory::InvalidOutput,
        format!("the result is larger than {max_bytes} bytes; ask for less at a time"),
    )
}

/// `text` without these secrets. Very short values are not removed: they occur by chance, and removing
/// them would make the text unreadable.
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

    fn read(bytes: &str, declared: Type) -> Option<Value> {
        value(bytes.as_bytes(), Some(&declared)).ok()
    }

    #[test]
    fn a_declared_text_needs_no_quotes_and_is_never_parsed_as_another_type() {
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
    fn a_declared_type_other_than_text_must_be_json() {
        assert_eq!(
            read("[1, 2]\n", Type::list(Type::Integer)),
            Some(json!([1, 2]))
        );
        assert_eq!(read("one, two", Type::list(Type::Text)), None);
        assert_eq!(read("", Type::Integer), None);
    }

    #[test]
    fn a_number_keeps_all_its_digits() {
        let bytes =
            b"{\"id\": 123456789012345678901234, \"price\": 19.5, \"n\": 12345678901234567890}";
        let expected =
            json!({"id": "123456789012345678901234", "price": 19.5, "n": 12345678901234567890_u64});
        assert_eq!(value(bytes, Some(&Type::Object)), Ok(expected));
    }

    #[test]
    fn a_stream_of_frames_is_read_whatever_type_is_declared() {
        let frames = "data: {\"type\": \"done\"}\n\n";
        assert_eq!(
            read(frames, Type::Object),
            Some(json!(frames.trim_end_matches('\n').to_owned() + "\n"))
        );
    }

    #[test]
    fn without_a_declared_type_json_is_parsed_and_text_is_kept() {
        assert_eq!(value(b"{\"a\": 1}", None), Ok(json!({"a": 1})));
        assert_eq!(value(b"plain", None), Ok(json!("plain")));
        assert!(value(&[0xff, 0xfe], None).is_err());
    }

    #[test]
    fn secrets_are_redacted() {
        let secrets = ["tok-12345".to_owned(), "a".to_owned()];
        assert_eq!(
            redacted("a tok-12345 leaked".to_owned(), &secrets),
            "a [redacted] leaked"
        );
    }
}
