//! Reads the JSON that models write. What can only mean one thing is mended; what was cut off or
//! could mean several things is not, because a guessed argument is worse than a question.

use serde_json::Value;

/// Why a text is not JSON, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotJson {
    /// Line and column of the first problem, from 1.
    pub position: (usize, usize),
    /// What is wrong there.
    pub message: String,
}

/// Reads JSON, mending what is unambiguous: code fences around it, trailing commas, Python's
/// `True`, `False` and `None`, JSON written as a JSON string, and nothing at all for no arguments.
/// Says whether anything was mended.
///
/// # Errors
/// Where and why the text is not JSON.
pub fn repair_json(text: &str) -> Result<(Value, bool), NotJson> {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Ok((Value::Object(serde_json::Map::new()), true));
    }
    let error = match serde_json::from_str::<Value>(trimmed) {
        Ok(Value::String(inner)) if inner.trim_start().starts_with('{') => {
            return serde_json::from_str(&inner)
                .map(|value| (value, true))
                .map_err(|error| not_json(&error));
        }
        Ok(value) => return Ok((value, false)),
        Err(error) => error,
    };
    let mended = without_slips(without_fence(trimmed));
    match serde_json::from_str(&mended) {
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

/// Drops commas before a closing bracket and translates Python's words, outside of strings.
fn without_slips(text: &str) -> String {
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

/// Just after the JSON string that `text` starts with.
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
