//! Parses the JSON that models write. Errors with only one possible meaning are repaired. Truncated or
//! ambiguous text is refused, because a guessed argument is worse than an error.

use serde_json::Value;
use windlass_spec::number::read_json;

/// Why a text is not JSON, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotJson {
    /// Line and column of the first problem, from 1. Zero if it has no place.
    pub position: (usize, usize),
    /// What is wrong there.
    pub message: String,
}

/// Parses JSON and repairs unambiguous errors: code fences, trailing commas, Python's `True`, `False`
/// and `None`, JSON inside a JSON string, and an empty text for no arguments. Returns whether anything
/// was repaired.
///
/// # Errors
/// Where and why the text is not JSON.
pub fn repair_json(text: &str) -> Result<(Value, bool), NotJson> {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Ok((Value::Object(serde_json::Map::new()), true));
    }
    let error = match read_json::<Value>(trimmed) {
        Ok(Value::String(inner)) if inner.trim_start().starts_with('{') => {
            return read_json(&inner)
                .map(|value| (value, true))
                .map_err(|error| not_json(&error));
        }
        Ok(value) => return Ok((value, false)),
        Err(error) => error,
    };
    let repaired = with_fixed_syntax(without_fence(trimmed));
    match read_json(&repaired) {
        Ok(value) => Ok((value, true)),
        Err(_) => Err(not_json(&error)),
    }
}

fn not_json(error: &serde_json::Error) -> NotJson {
    let message = error.to_string();
    let message = message
        .split(" at line ")
        .next()
        .unwrap_or_default()
        .to_owned();
    NotJson {
        position: (error.line(), error.column()),
        message,
    }
}

fn without_fence(text: &str) -> &str {
    let Some(inner) = text
        .strip_prefix("```")
        .and_then(|rest| rest.strip_suffix("```"))
    else {
        return text;
    };
    // The opening fence may name a language.
    inner
        .trim_start_matches(|c: char| c.is_ascii_alphanumeric())
        .trim()
}

/// Removes commas before a closing bracket and replaces Python's literals, outside of strings.
fn with_fixed_syntax(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if c == '"' {
            let end = string_end(rest);
            out.push_str(&rest[..end]);
            rest = &rest[end..];
            continue;
        }
        let python = [("True", "true"), ("False", "false"), ("None", "null")];
        let word = python.iter().find(|(word, _)| {
            rest.strip_prefix(word)
                .is_some_and(|after| !after.starts_with(char::is_alphanumeric))
                && !out.ends_with(char::is_alphanumeric)
        });
        if let Some((word, json)) = word {
            out.push_str(json);
            rest = &rest[word.len()..];
            continue;
        }
        let is_trailing = c == ',' && rest[1..].trim_start().starts_with(['}', ']']);
        if !is_trailing {
            out.push(c);
        }
        rest = &rest[c.len_utf8()..];
    }
    out
}

/// The end of the JSON string that `text` starts with.
fn string_end(text: &str) -> usize {
    let mut escaped = false;
    for (offset, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return offset + 1,
            _ => {}
        }
    }
    text.len()
}
