//! Parses calls that a model wrote as text: bare JSON, in a code fence, in `<tool_call>` tags or within
//! prose. A text without a call is unchanged, so that a model can show JSON to the user without making a
//! call.

use serde_json::{Deserializer, Value};
use windlass_core::model::{RequestedArguments, RequestedCall};
use windlass_core::run::repair_json;
use windlass_spec::number::with_inexact_as_texts;

use super::shape::{Step, step};

/// The most opening brackets that are tried as the start of a call.
const MOST_STARTS: usize = 200;

const TAGS: [(&str, &str); 3] = [
    ("<tool_call>", "</tool_call>"),
    ("<function_call>", "</function_call>"),
    ("<|tool_call|>", "<|/tool_call|>"),
];

/// A parsed text.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ParsedText {
    /// The calls, in order. Without calls, `text` is the whole text.
    pub(crate) calls: Vec<RequestedCall>,
    /// The reasoning of the model.
    pub(crate) thought: Option<String>,
    /// The text around the calls.
    pub(crate) text: String,
}

/// Parses the text of a model. `is_offered` returns whether a tool with that name is offered.
pub(crate) fn parse_calls(text: &str, is_offered: &dyn Fn(&str) -> bool) -> ParsedText {
    let (thought, rest) = split_thought(text);
    let mut parsed = parse_tagged(rest)
        .or_else(|| parse_whole(rest, is_offered))
        .or_else(|| parse_embedded(rest, is_offered))
        .unwrap_or_else(|| ParsedText {
            text: rest.to_owned(),
            ..ParsedText::default()
        });
    if !thought.is_empty() {
        parsed.thought = Some(thought.to_owned());
    }
    parsed
}

/// Splits off a `<think>` block, which some servers leave in the text of reasoning models.
fn split_thought(text: &str) -> (&str, &str) {
    let opened = text.trim_start().strip_prefix("<think>");
    match opened.and_then(|rest| rest.split_once("</think>")) {
        Some((thought, rest)) => (thought.trim(), rest.trim_start()),
        None => ("", text),
    }
}

/// Parses calls in tags. Tags are unambiguous, so the tool need not be offered.
fn parse_tagged(text: &str) -> Option<ParsedText> {
    let (opening, closing) = *TAGS.iter().find(|(opening, _)| text.contains(opening))?;
    let mut parts = text.split(opening);
    let mut around = vec![parts.next().unwrap_or_default().trim()];
    let mut steps = Vec::new();
    for part in parts {
        // The last tag may be unclosed.
        let (inside, after) = part.split_once(closing).unwrap_or((part, ""));
        let (value, _) = repair_json(inside)
            .ok()
            .filter(|_| !inside.trim().is_empty())?;
        steps.extend(steps_in(value)?);
        around.push(after.trim());
    }
    combine(steps, &around)
}

/// Parses a text that consists of calls, possibly in a code fence. The tool need not be offered if there
/// are named arguments: models invent tools, and then get an error.
fn parse_whole(text: &str, is_offered: &dyn Fn(&str) -> bool) -> Option<ParsedText> {
    let trimmed = text.trim();
    if !trimmed.starts_with(['{', '[', '`']) {
        return None;
    }
    // A number that cannot be kept is refused where the type of the argument is checked.
    let trimmed = with_inexact_as_texts(trimmed);
    let values = match repair_json(&trimmed) {
        Ok((value, _)) => vec![value],
        // Several calls may be written as one object per line.
        Err(_) => Deserializer::from_str(&trimmed)
            .into_iter()
            .collect::<Result<_, _>>()
            .ok()?,
    };
    let steps: Option<Vec<Vec<Step>>> = values.into_iter().map(steps_in).collect();
    let steps: Vec<Step> = steps?.into_iter().flatten().collect();
    let is_call = |step: &Step| {
        let has_named_arguments = matches!(
            step.call.arguments,
            RequestedArguments::Json(Value::Object(_))
        );
        has_named_arguments || is_offered(&step.call.tool)
    };
    if steps.iter().all(is_call) {
        combine(steps, &[])
    } else {
        None
    }
}

/// Parses calls within prose. Only offered tools count, because JSON in prose may be an example or data.
fn parse_embedded(text: &str, is_offered: &dyn Fn(&str) -> bool) -> Option<ParsedText> {
    let mut steps = Vec::new();
    let mut around = Vec::new();
    let mut done = 0;
    let mut at = 0;
    for _ in 0..MOST_STARTS {
        let Some(start) = text[at..].find(['{', '[']).map(|offset| at + offset) else {
            break;
        };
        let Some((value, length)) = json_at(&text[start..]) else {
            at = start + 1;
            continue;
        };
        at = start + length;
        if let Some(found) =
            steps_in(value).filter(|steps| steps.iter().all(|step| is_offered(&step.call.tool)))
        {
            around.push(prose(&text[done..start]));
            steps.extend(found);
            done = at;
        }
    }
    around.push(prose(&text[done..]));
    combine(steps, &around)
}

/// The JSON at the start of `text`, and its length.
fn json_at(text: &str) -> Option<(Value, usize)> {
    let mut values = Deserializer::from_str(text).into_iter::<Value>();
    if let Some(Ok(_)) = values.next() {
        let length = values.byte_offset();
        let value = serde_json::from_str(&with_inexact_as_texts(&text[..length])).ok()?;
        return Some((value, length));
    }
    let length = balanced_length(text)?;
    let (value, _) = repair_json(&with_inexact_as_texts(&text[..length])).ok()?;
    Some((value, length))
}

/// The length up to the bracket that closes the first one of `text`.
fn balanced_length(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut in_string = false;
    let mut escaped = false;
    for (offset, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => depth += 1,
            b'}' | b']' if !in_string => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(offset + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// The steps in a JSON value. `None` if any part of it is not a step.
fn steps_in(value: Value) -> Option<Vec<Step>> {
    match value {
        Value::Array(items) if !items.is_empty() => items.into_iter().map(step).collect(),
        Value::Object(mut fields) => match fields.get_mut("tool_calls").map(Value::take) {
            Some(Value::Array(items)) if !items.is_empty() => items.into_iter().map(step).collect(),
            Some(_) => None,
            None => step(Value::Object(fields)).map(|step| vec![step]),
        },
        _ => None,
    }
}

fn combine(steps: Vec<Step>, around: &[&str]) -> Option<ParsedText> {
    if steps.is_empty() {
        return None;
    }
    let thoughts: Vec<&str> = steps
        .iter()
        .filter_map(|step| step.thought.as_deref())
        .collect();
    let thought = (!thoughts.is_empty()).then(|| thoughts.join("\n"));
    let text: Vec<&str> = around
        .iter()
        .copied()
        .filter(|text| !text.is_empty())
        .collect();
    let text = text.join("\n");
    Some(ParsedText {
        calls: steps.into_iter().map(|step| step.call).collect(),
        thought,
        text,
    })
}

/// Prose without the code fence around a call.
fn prose(text: &str) -> &str {
    let text = text.trim();
    let text = text
        .strip_suffix("```json")
        .or_else(|| text.strip_suffix("```"))
        .unwrap_or(text);
    text.trim_end().strip_prefix("```").unwrap_or(text).trim()
}

#[cfg(test)]
mod tests;
