//! The JSON forms of a call: that of the structured dialect, and those that models write because they were
//! trained on them.

use serde_json::{Map, Value};
use windlass_core::model::{FINISH, RequestedArguments, RequestedCall};
use windlass_spec::number::read_json;

/// A call and the thought that came with it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Step {
    pub(super) thought: Option<String>,
    pub(super) call: RequestedCall,
}

const NAMES: [&str; 4] = ["tool_name", "name", "tool", "function"];
const ARGUMENTS: [&str; 8] = [
    "tool_args",
    "arguments",
    "parameters",
    "args",
    "tool_input",
    "action_input",
    "input",
    "tool_arguments",
];

/// Parses an object as a step, if it has a known form.
pub(super) fn step(value: Value) -> Option<Step> {
    let Value::Object(mut fields) = value else {
        return None;
    };
    let thought = text(&mut fields, "thought").filter(|thought| !thought.trim().is_empty());
    // `{"type": "function", "function": {"name": .., "arguments": ..}}` wraps a call.
    if let Some(inner @ Value::Object(_)) = fields.get_mut("function") {
        return step(inner.take());
    }
    let call = match text(&mut fields, "action") {
        Some(action) if action == FINISH => finish(fields),
        Some(action) if action == "call_tool" => {
            let tool = name(&mut fields)?;
            call(
                tool,
                arguments(&mut fields).unwrap_or_default(),
                confidence(&fields),
            )
        }
        // `{"action": "search", "action_input": {..}}`
        Some(tool) => call(tool, arguments(&mut fields)?, confidence(&fields)),
        None if is_answer(&fields) => finish(fields),
        None => {
            let tool = name(&mut fields)?;
            call(tool, arguments(&mut fields)?, confidence(&fields))
        }
    };
    Some(Step { thought, call })
}

/// Whether an object has only the arguments of `finish`: then it is a `finish` call without its name.
fn is_answer(fields: &Map<String, Value>) -> bool {
    let known = ["answer", "reasoning", "confidence"];
    fields.contains_key("answer")
        && fields.len() > 1
        && fields.keys().all(|name| known.contains(&name.as_str()))
}

fn finish(mut fields: Map<String, Value>) -> RequestedCall {
    // Some models write the answer as the arguments of a tool `finish`.
    if let Some(Value::Object(inner)) =
        arguments(&mut fields).filter(|_| !fields.contains_key("answer"))
    {
        return call(FINISH.to_owned(), Value::Object(inner), None);
    }
    fields.retain(|name, _| !NAMES.contains(&name.as_str()));
    call(FINISH.to_owned(), Value::Object(fields), None)
}

fn call(tool: String, arguments: Value, confidence: Option<f64>) -> RequestedCall {
    // `finish` has its own argument for the confidence.
    let confidence = confidence.filter(|_| tool != FINISH);
    let arguments = match arguments {
        Value::Null => RequestedArguments::Json(Value::Object(Map::new())),
        Value::String(text) => match read_json(&text) {
            Ok(value @ Value::Object(_)) => RequestedArguments::Json(value),
            _ => RequestedArguments::Text(text),
        },
        other => RequestedArguments::Json(other),
    };
    RequestedCall {
        tool,
        arguments,
        confidence,
    }
}

fn name(fields: &mut Map<String, Value>) -> Option<String> {
    NAMES
        .iter()
        .find_map(|key| text(fields, key))
        .filter(|name| !name.trim().is_empty())
}

fn arguments(fields: &mut Map<String, Value>) -> Option<Value> {
    ARGUMENTS.iter().find_map(|key| fields.shift_remove(*key))
}

fn text(fields: &mut Map<String, Value>, key: &str) -> Option<String> {
    match fields.get(key) {
        Some(Value::String(_)) => match fields.shift_remove(key) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        },
        _ => None,
    }
}

fn confidence(fields: &Map<String, Value>) -> Option<f64> {
    fields.get("confidence").and_then(Value::as_f64)
}
