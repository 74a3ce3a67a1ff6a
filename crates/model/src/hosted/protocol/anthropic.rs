//! Anthropic's messages.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::borrow::Cow;

use super::super::draft::{Draft, Stop};
use super::super::json::{Count, Text};
use super::{
    BodyParts, EventError, Fields, JsonList, JsonResult, Progress, ToolDefinition, Turn,
    WireFormat, WireTarget, parse, past_arguments,
};

pub(super) struct Anthropic;

#[derive(Serialize)]
struct Message<'a, T> {
    role: &'a str,
    content: T,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text {
        text: &'a str,
    },
    ToolUse {
        id: &'a str,
        name: String,
        input: Cow<'a, Value>,
    },
    ToolResult {
        content: &'a str,
        tool_use_id: &'a str,
    },
}

/// Every event, with the fields that are used of any.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Event<'a> {
    #[serde(borrow)]
    r#type: Text<'a>,
    index: Count,
    message: Option<StartedMessage>,
    #[serde(borrow)]
    content_block: Option<StartedBlock<'a>>,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    usage: Option<EventUsage>,
    #[serde(borrow)]
    error: Text<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct StartedMessage {
    usage: Option<EventUsage>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct StartedBlock<'a> {
    #[serde(borrow)]
    r#type: Text<'a>,
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow)]
    text: Text<'a>,
    #[serde(borrow)]
    thinking: Text<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Delta<'a> {
    #[serde(borrow)]
    text: Text<'a>,
    #[serde(borrow)]
    partial_json: Text<'a>,
    #[serde(borrow)]
    thinking: Text<'a>,
    #[serde(borrow)]
    stop_reason: Text<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct EventUsage {
    input_tokens: Count,
    cache_creation_input_tokens: Count,
    cache_read_input_tokens: Count,
    output_tokens: Count,
}

impl WireFormat for Anthropic {
    fn path(&self, _: &str) -> String {
        "messages".to_owned()
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        let key = key.map(|key| ("x-api-key", key.to_owned()));
        let version = ("anthropic-version", "2023-06-01".to_owned());
        key.into_iter().chain([version]).collect()
    }

    fn has_system_messages(&self) -> bool {
        false
    }

    fn write_tool(&self, list: &mut JsonList, tool: &ToolDefinition<'_>) -> JsonResult {
        list.push(&json!({
            "name": tool.name,
            "input_schema": tool.schema,
            "description": tool.description,
        }))
    }

    fn write_turn(&self, list: &mut JsonList, turn: &Turn<'_>, to: &WireTarget<'_>) -> JsonResult {
        match turn {
            Turn::System(_) => Ok(()),
            Turn::User(content) => list.push(&Message {
                role: "user",
                content,
            }),
            Turn::Assistant {
                text: "",
                calls: [],
            } => Ok(()),
            Turn::Assistant {
                text: content,
                calls: [],
            } => list.push(&Message {
                role: "assistant",
                content,
            }),
            Turn::Assistant { text, calls } => {
                let text = (!text.is_empty()).then_some(Block::Text { text });
                let calls = calls.iter().map(|call| Block::ToolUse {
                    id: &call.id,
                    name: to.names.wire_name(&call.tool),
                    input: past_arguments(&call.arguments),
                });
                let content: Vec<Block<'_>> = text.into_iter().chain(calls).collect();
                list.push(&Message {
                    role: "assistant",
                    content,
                })
            }
            Turn::Results(results) => {
                let content = results.iter().map(|result| Block::ToolResult {
                    content: result.content,
                    tool_use_id: result.id,
                });
                let content: Vec<Block<'_>> = content.collect();
                list.push(&Message {
                    role: "user",
                    content,
                })
            }
        }
    }

    fn write_body(&self, body: &mut Vec<u8>, parts: &BodyParts<'_>) -> JsonResult {
        let mut fields = Fields::open(body);
        fields.field("model", &parts.model)?;
        fields.field("stream", &true)?;
        fields.optional("system", parts.system.as_ref())?;
        if !parts.tools.is_empty() {
            fields.raw("tools", parts.tools)?;
        }
        fields.raw("messages", parts.turns)?;
        fields.optional("temperature", parts.temperature.as_ref())?;
        let limit = parts.max_output_tokens;
        fields.field(
            "max_tokens",
            &limit.unwrap_or_else(|| most_output_tokens(parts.model)),
        )?;
        fields.close();
        Ok(())
    }

    fn read_event(&self, data: &[u8], draft: &mut Draft<'_>) -> Result<Progress, EventError> {
        let event: Event<'_> = parse(data)?;
        let number = event.index.0.unwrap_or(0);
        match event.r#type.as_str() {
            "message_start" => {
                read_usage(event.message.and_then(|message| message.usage), draft);
                return Ok(Progress::None);
            }
            "content_block_start" => {
                let block = event.content_block.unwrap_or_default();
                match block.r#type.as_str() {
                    "tool_use" => draft.begin_call(number, block.name.as_str())?,
                    "thinking" if !block.thinking.as_str().is_empty() => {
                        draft.thought(block.thinking.as_str())?;
                    }
                    "text" if !block.text.as_str().is_empty() => draft.text(block.text.as_str())?,
                    _ => {}
                }
            }
            "content_block_delta" => {
                let delta = event.delta.unwrap_or_default();
                if let Some(text) = delta.text.text() {
                    draft.text(text)?;
                }
                if let Some(text) = delta.partial_json.text() {
                    draft.append_arguments(number, text)?;
                }
                if let Some(text) = delta.thinking.text() {
                    draft.thought(text)?;
                }
            }
            "message_delta" => {
                read_usage(event.usage, draft);
                draft.stop = match event.delta.unwrap_or_default().stop_reason.text() {
                    Some("max_tokens" | "model_context_window_exceeded") => Some(Stop::CutOff),
                    Some(_) => Some(Stop::Finished),
                    None => draft.stop,
                };
                return Ok(Progress::None);
            }
            "ping" => {}
            "message_stop" => return Ok(Progress::End),
            "error" => return Err(EventError::Refused),
            // An error that comes instead of a stream has no type.
            "" if event.error.is_present() => return Err(EventError::Refused),
            _ => return Ok(Progress::None),
        }
        Ok(Progress::Some)
    }
}

/// Counts what was read from or written to the cache as input: it is not part of the other count.
fn read_usage(usage: Option<EventUsage>, draft: &mut Draft<'_>) {
    let Some(usage) = usage else {
        return;
    };
    if let Some(tokens) = usage.input_tokens.0 {
        let written = usage.cache_creation_input_tokens.0.unwrap_or(0);
        let cached = usage.cache_read_input_tokens.0.unwrap_or(0);
        draft.usage.input_tokens = tokens.saturating_add(written).saturating_add(cached);
        draft.usage.cached_tokens = cached;
        draft.usage.cache_write_tokens = written;
    }
    if let Some(tokens) = usage.output_tokens.0 {
        draft.usage.output_tokens = tokens;
    }
}

/// The most output tokens of a model. Requests must say a limit, and a higher one is refused.
fn most_output_tokens(model: &str) -> u32 {
    let version_of = |family: &str| {
        let (_, version) = model.split_once(family)?;
        // The date of a model is no part of its version.
        let mut numbers = version
            .split('-')
            .map(|part| part.parse::<u32>().ok().filter(|number| *number < 100));
        Some((numbers.next()??, numbers.next().flatten().unwrap_or(0)))
    };
    match version_of("claude-opus-") {
        Some(version) if version >= (4, 8) => return 128_000,
        Some(version) if version >= (4, 5) => return 64_000,
        Some(version) if version >= (4, 0) => return 32_000,
        _ => {}
    }
    let is_newest_haiku = version_of("claude-haiku-").is_some_and(|version| version >= (5, 0));
    if is_newest_haiku || model.contains("fable") || model.contains("mythos") {
        return 128_000;
    }
    if model.contains("claude-3-opus") || model.contains("claude-3-haiku") {
        return 4_096;
    }
    if model.contains("claude-3-5") {
        return 8_192;
    }
    64_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_limit_is_that_of_the_model() {
        for (model, tokens) in [
            ("claude-opus-4-8", 128_000),
            ("claude-opus-5", 128_000),
            ("claude-opus-4-5-20251101", 64_000),
            ("claude-opus-4-20250514", 32_000),
            ("claude-opus-4-1", 32_000),
            ("claude-sonnet-4-5", 64_000),
            ("claude-haiku-4-5", 64_000),
            ("claude-haiku-5", 128_000),
            ("claude-3-7-sonnet-latest", 64_000),
            ("claude-3-5-haiku-latest", 8_192),
            ("claude-3-opus-20240229", 4_096),
            ("claude-3-haiku-20240307", 4_096),
            ("something-else", 64_000),
        ] {
            assert_eq!(most_output_tokens(model), tokens, "{model}");
        }
    }
}
