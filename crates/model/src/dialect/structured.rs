//! The structured dialect: tools as text, the conversation as plain turns, and a schema for the answer. The
//! schema has one variant per tool, so that a constrained model can only write arguments that match the
//! tool it names.

use serde_json::{Value, json};
use windlass_core::model::{ChatCall, ChatMessage, FINISH, ModelRequest, finish_schema};

use crate::definition::{shown_description, shown_schema};

/// A turn of a conversation without tool calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    /// The role.
    pub(crate) speaker: Speaker,
    /// The text.
    pub(crate) text: String,
}

/// The role of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speaker {
    System,
    User,
    Assistant,
}

const HOW_TO_ANSWER: &str = r#"Answer with exactly one JSON object and nothing else. To use a tool:
{"thought": "why", "action": "call_tool", "tool_name": "the tool", "tool_args": {}, "confidence": 0.9}
To end the task:
{"thought": "why", "action": "finish", "answer": "the answer", "reasoning": "how it was found", "confidence": 0.9}"#;

/// The conversation as plain turns. Adjacent turns of one speaker are merged, because many chat templates
/// refuse two user messages in a row.
pub(crate) fn conversation(request: &ModelRequest) -> Vec<Line> {
    let mut lines = vec![Line {
        speaker: Speaker::System,
        text: instructions(request),
    }];
    for message in &request.messages {
        match &**message {
            // The system prompt comes first, then the instructions how to answer.
            ChatMessage::System { content } if lines.len() == 1 => {
                lines[0].text = format!("{content}\n\n{}", lines[0].text);
            }
            ChatMessage::System { content } => push_turn(&mut lines, Speaker::System, content),
            ChatMessage::User { content } => push_turn(&mut lines, Speaker::User, content),
            ChatMessage::Tool { tool, content, .. } => {
                push_turn(
                    &mut lines,
                    Speaker::User,
                    &format!("Observation from {tool}:\n{content}"),
                );
            }
            ChatMessage::Assistant { content, calls } if calls.is_empty() => {
                push_turn(&mut lines, Speaker::Assistant, content);
            }
            ChatMessage::Assistant { content, calls } => {
                for call in calls {
                    push_turn(
                        &mut lines,
                        Speaker::Assistant,
                        &step(content, call).to_string(),
                    );
                }
            }
        }
    }
    lines
}

/// The schema of one answer.
pub(crate) fn schema(request: &ModelRequest) -> Value {
    let calls = request.tools.iter().map(|tool| {
        json!({
            "type": "object",
            "properties": {
                "thought": {"type": "string"},
                "action": {"type": "string", "enum": ["call_tool"]},
                "tool_name": {"type": "string", "enum": [tool.name().as_str()]},
                "tool_args": shown_schema(tool),
                "confidence": {"type": "number", "minimum": 0, "maximum": 1},
            },
            "required": ["thought", "action", "tool_name", "tool_args", "confidence"],
            "additionalProperties": false,
        })
    });
    // OpenAI requires an object at the root and refuses a bare union.
    json!({"type": "object", "anyOf": calls.chain([finish_variant()]).collect::<Vec<_>>()})
}

fn finish_variant() -> Value {
    let mut properties = json!({
        "thought": {"type": "string"},
        "action": {"type": "string", "enum": [FINISH]},
    });
    let mut required = vec![json!("thought"), json!("action")];
    if let Value::Object(own) = finish_schema()["properties"].take() {
        for (name, property) in own {
            required.push(Value::String(name.clone()));
            properties[name] = property;
        }
    }
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

fn instructions(request: &ModelRequest) -> String {
    let mut text = HOW_TO_ANSWER.to_owned();
    if !request.tools.is_empty() {
        text.push_str("\n\nThe tools:");
    }
    for tool in &request.tools {
        text.push_str(&format!(
            "\n- {}: {}\n  tool_args schema: {}",
            tool.name().as_str(),
            shown_description(tool),
            shown_schema(tool)
        ));
    }
    text
}

/// A past call, in the form the model is asked to write.
fn step(thought: &str, call: &ChatCall) -> Value {
    let mut step = json!({});
    // Empty thoughts in the history would teach the model to omit reasoning.
    if !thought.trim().is_empty() {
        step["thought"] = json!(thought);
    }
    if call.tool != FINISH {
        step["action"] = json!("call_tool");
        step["tool_name"] = json!(call.tool);
        step["tool_args"] = call.arguments.clone();
        return step;
    }
    step["action"] = json!(FINISH);
    match &call.arguments {
        Value::Object(arguments) => {
            for (name, value) in arguments {
                step[name] = value.clone();
            }
        }
        other => step["answer"] = other.clone(),
    }
    step
}

fn push_turn(lines: &mut Vec<Line>, speaker: Speaker, text: &str) {
    match lines.last_mut() {
        Some(last) if last.speaker == speaker => {
            // The calls of one turn are one JSON object per line; everything else is a paragraph.
            last.text.push_str(if speaker == Speaker::Assistant {
                "\n"
            } else {
                "\n\n"
            });
            last.text.push_str(text);
        }
        _ => lines.push(Line {
            speaker,
            text: text.to_owned(),
        }),
    }
}
