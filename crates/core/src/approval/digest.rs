//! The digest that an approval is bound to: the SHA-256 of a canonical JSON text.
//!
//! Canonical JSON has object keys sorted by their bytes, no whitespace between tokens, and numbers
//! written by value: `1`, `1.0` and `10e-1` are the same number and have the same digest, `-0` is `0`.
//! Integers are written in full, so that two large ones stay different, which they would not as
//! floating-point numbers. Other numbers have the fewest digits that parse back to the same value. Texts
//! are not normalized: two spellings of one letter are two texts, because a tool may distinguish them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};
use sha2::{Digest as _, Sha256};
use windlass_spec::{ToolName, parsed_text};

const PREFIX: &str = "sha256:";

/// The digest of one exact call or question: `sha256:` and 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest([u8; 32]);

/// A text that is not a digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a digest; write `sha256:` and 64 digits of 0-9 and a-f")]
pub struct NotADigest(String);

impl Digest {
    /// The digest of a tool with its arguments: of `{"arguments":{...},"tool":"..."}`.
    #[must_use]
    pub fn of_call(tool: &ToolName, arguments: &Map<String, Value>) -> Self {
        let mut text = r#"{"arguments":"#.to_owned();
        write_object(&mut text, arguments, by_value);
        text.push_str(r#","tool":"#);
        write_text(&mut text, tool.as_str());
        text.push('}');
        Self::of_text(&text)
    }

    /// The digest of any JSON.
    #[must_use]
    pub fn of_json(value: &Value) -> Self {
        Self::of_text(&canonical(value))
    }

    fn of_text(text: &str) -> Self {
        Self(Sha256::digest(text.as_bytes()).into())
    }
}

/// Returns the canonical JSON text of a value.
#[must_use]
pub fn canonical(value: &Value) -> String {
    let mut text = String::new();
    write_value(&mut text, value, by_value);
    text
}

/// Returns the JSON text of a value for people and models: keys sorted as in its canonical text, and
/// numbers as they are usually written (`19.5`, which is `1.95e1` in canonical text).
#[must_use]
pub fn sorted_json(value: &Value) -> String {
    let mut text = String::new();
    write_value(&mut text, value, without_exponent);
    text
}

/// The text of a number for people, without an exponent unless it would have very many digits.
fn without_exponent(number: &Number) -> String {
    let text = number.to_string();
    match number.as_f64() {
        Some(float) if text.contains('e') && (1e-12..1e24).contains(&float.abs()) => {
            let point = if float.fract() == 0.0 { ".0" } else { "" };
            format!("{float}{point}")
        }
        _ => text,
    }
}

/// Writes a number.
type WriteNumber = fn(&Number) -> String;

fn write_value(text: &mut String, value: &Value, write_number: WriteNumber) {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(true) => text.push_str("true"),
        Value::Bool(false) => text.push_str("false"),
        Value::Number(number) => text.push_str(&write_number(number)),
        Value::String(content) => write_text(text, content),
        Value::Array(items) => {
            text.push('[');
            for (position, item) in items.iter().enumerate() {
                if position > 0 {
                    text.push(',');
                }
                write_value(text, item, write_number);
            }
            text.push(']');
        }
        Value::Object(fields) => write_object(text, fields, write_number),
    }
}

fn write_object(text: &mut String, fields: &Map<String, Value>, write_number: WriteNumber) {
    let mut sorted: Vec<_> = fields.iter().collect();
    sorted.sort_unstable_by_key(|(name, _)| *name);
    text.push('{');
    for (position, (name, value)) in sorted.into_iter().enumerate() {
        if position > 0 {
            text.push(',');
        }
        write_text(text, name);
        text.push(':');
        write_value(text, value, write_number);
    }
    text.push('}');
}

fn write_text(text: &mut String, content: &str) {
    text.push_str(&Value::from(content).to_string());
}

/// The canonical text of a number: the same for every spelling of a value.
fn by_value(number: &Number) -> String {
    match number.as_f64() {
        Some(float) if number.is_f64() => {
            if float == 0.0 {
                "0".to_owned()
            } else if float.fract() == 0.0 {
                // All digits of a whole number, like an integer of that value.
                format!("{float:.0}")
            } else {
                format!("{float:e}")
            }
        }
        _ => number.to_string(),
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

impl FromStr for Digest {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<Self, NotADigest> {
        let refused = || NotADigest(text.chars().take(80).collect());
        let digits = text.strip_prefix(PREFIX).ok_or_else(refused)?;
        // Each digest has one spelling, so capitals are refused.
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if digits.len() != 64 || !digits.bytes().all(is_digit) {
            return Err(refused());
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.as_bytes().chunks_exact(2)) {
            let pair = std::str::from_utf8(pair).map_err(|_| refused())?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| refused())?;
        }
        Ok(Self(bytes))
    }
}

parsed_text!(Digest);
