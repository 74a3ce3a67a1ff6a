//! Finds calls in what a model wrote as text: JSON alone, in a code fence, in `<tool_call>` tags
//! or with prose around it. A text that holds no call stays the text it is, so that a model may
//! show JSON to a person without anything being called.

use serde_json::{Deserializer, Value};
use windlass_core::model::{RequestedArguments, RequestedCall};
use windlass_core::run::repair_json;

use super::shape::{Step, step};

/// Every opening bracket might start a call; a text with more of them than this holds none.
const MOST_STARTS: usize = 200;

const TAGS: [(&str, &str); 3] = [
    ("<tool_call>", "</tool_call>"),
    ("<function_call>", "</function_call>"),
    ("<|tool_call|>", "<|/tool_call|>"),
];

/// What a text was found to hold.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Found {
    /// The calls, in order; without any, `text` is all that was written.
    pub(crate) calls: Vec<RequestedCall>,
    /// What the model thought.
    pub(crate) thought: Option<String>,
    /// What was written around the calls.
    pub(crate) text: String,
}

/// Reads what a model wrote. `is_offered` says whether a tool of that name can be called.
pub(crate) fn find(text: &str, is_offered: &dyn Fn(&str) -> bool) -> Found {
    let (thinking, spoken) = without_thinking(text);
    let mut found = tagged(spoken)
        .or_else(|| whole(spoken, is_offered))
        .or_else(|| embedded(spoken, is_offered))
        .unwrap_or_else(|| Found {
            text: spoken.to_owned(),
            ..Found::default()
        });
    if !thinking.is_empty() {
        found.thought = Some(thinking.to_owned());
    }
    found
}

/// Reasoning models behind servers that do not know them think in the text itself.
fn without_thinking(text: &str) -> (&str, &str) {
    let opened = text.trim_start().strip_prefix("<think>");
    match opened.and_then(|rest| rest.split_once("</think>")) {
        Some((thinking, spoken)) => (thinking.trim(), spoken.trim_start()),
        None => ("", text),
    }
}

/// Calls in tags. Tags leave no doubt that a call was meant, so the name need not be known.
fn tagged(text: &str) -> Option<Found> {
    let (opening, closing) = *TAGS.iter().find(|(opening, _)| text.contains(opening))?;
    let mut parts = text.split(opening);
    let mut around = vec![parts.next().unwrap_or_default().trim()];
    let mut steps = Vec::new();
    for part in parts {
        // A model that was cut off, or forgot, leaves the last tag open.
        let (inside, after) = part.split_once(closing).unwrap_or((part, ""));
        let (value, _) = repair_json(inside)
            .ok()
            .filter(|_| !inside.trim().is_empty())?;
        steps.extend(meant(value)?);
        around.push(after.trim());
    }
    gathered(steps, &around)
}

/// The whole text is a call, or several, perhaps in a fence. The name need not be known as long
/// as there are arguments by name: models invent tools, and are told so.
fn whole(text: &str, is_offered: &dyn Fn(&str) -> bool) -> Option<Found> {
    let trimmed = text.trim();
    if !trimmed.starts_with(['{', '[', '`']) {
        return None;
    }
    let values = match repair_json(trimmed) {
        Ok((value, _)) => vec![value],
        // One object a line is how several calls are asked for where only one fits the schema.
        Err(_) => Deserializer::from_str(trimmed)
            .into_iter()
            .collect::<Result<_, _>>()
            .ok()?,
    };
    let steps: Option<Vec<Vec<Step>>> = values.into_iter().map(meant).collect();
    let steps: Vec<Step> = steps?.into_iter().flatten().collect();
    let is_call = |step: &Step| {
        let has_named_arguments = matches!(
            step.call.arguments,
            RequestedArguments::Json(Value::Object(_))
        );
        has_named_arguments || is_offered(&step.call.tool)
    };
    if steps.iter().all(is_call) {
        gathered(steps, &[])
    } else {
        None
    }
}

/// Calls somewhere in prose. Only names that are offered count here: JSON in prose may be an
/// example or data.
fn embedded(text: &str, is_offered: &dyn Fn(&str) -> bool) -> Option<Found> {
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
        if let Some(meant) =
            meant(value).filter(|steps| steps.iter().all(|step| is_offered(&step.call.tool)))
        {
            around.push(prose(&text[done..start]));
            steps.extend(meant);
            done = at;
        }
    }
    around.push(prose(&text[done..]));
    gathered(steps, &around)
}

/// The JSON that `text` starts with and how long it is.
fn json_at(text: &str) -> Option<(Value, usize)> {
    let mut values = Deserializer::from_str(text).into_iter::<Value>();
    if let Some(Ok(value)) = values.next() {
        return Some((value, values.byte_offset()));
    }
    let length = balanced(text)?;
    let (value, _) = repair_json(&text[..length]).ok()?;
    Some((value, length))
}

/// How far it is to the bracket that closes the one `text` starts with.
fn balanced(text: &str) -> Option<usize> {
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

/// The steps a JSON value means, or none if any of it is something else.
fn meant(value: Value) -> Option<Vec<Step>> {
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

fn gathered(steps: Vec<Step>, around: &[&str]) -> Option<Found> {
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
    Some(Found {
        calls: steps.into_iter().map(|step| step.call).collect(),
        thought,
        text,
    })
}

/// Prose without the fence that surrounded a call.
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
