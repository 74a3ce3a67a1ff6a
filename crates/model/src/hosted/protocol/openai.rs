//! OpenAI's chat completions, which most other servers offer too.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::super::calls::CallKey;
use super::super::draft::{Draft, Stop};
use super::super::json::{Count, Items, Text, TextOr};
use super::{
    BodyParts, EventError, Fields, JsonList, JsonResult, Progress, ToolDefinition, Turn,
    WireFormat, WireTarget, exact_numbers, parse, past_arguments,
};

pub(super) struct OpenAi;

/// The names of models that take the output limit under its newer name, and refuse the older one.
const NEWER_LIMIT: [&str; 5] = ["gpt-5", "gpt-6", "o1", "o3", "o4"];

#[derive(Serialize)]
struct Message<'a> {
    role: &'a str,
    content: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_calls: Option<Vec<Call>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

#[derive(Serialize)]
struct Call {
    r#type: &'static str,
    id: String,
    function: Function,
}

#[derive(Serialize)]
struct Function {
    name: String,
    arguments: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Chunk<'a> {
    #[serde(borrow)]
    choices: Items<Choice<'a>>,
    #[serde(borrow)]
    usage: TextOr<'a, ChunkUsage<'a>>,
    #[serde(borrow)]
    error: Text<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Choice<'a> {
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    #[serde(borrow)]
    finish_reason: Text<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Delta<'a> {
    #[serde(borrow)]
    content: TextOr<'a, Items<ContentPart<'a>>>,
    #[serde(borrow)]
    reasoning_content: Text<'a>,
    /// Ollama and OpenRouter.
    #[serde(borrow)]
    reasoning: Text<'a>,
    #[serde(borrow)]
    refusal: Text<'a>,
    #[serde(borrow)]
    tool_calls: Items<CallDelta<'a>>,
}

/// Mistral's reasoning models send a list instead of a text.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ContentPart<'a> {
    #[serde(borrow)]
    text: Text<'a>,
    #[serde(borrow)]
    thinking: TextOr<'a, Items<ThinkingPart<'a>>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ThinkingPart<'a> {
    #[serde(borrow)]
    text: Text<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CallDelta<'a> {
    index: Count,
    #[serde(borrow)]
    id: Text<'a>,
    #[serde(borrow)]
    function: Option<FunctionDelta<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct FunctionDelta<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    /// Some servers send the arguments as an object.
    #[serde(borrow)]
    arguments: TextOr<'a, Value>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ChunkUsage<'a> {
    prompt_tokens: Count,
    completion_tokens: Count,
    #[serde(borrow)]
    prompt_tokens_details: TextOr<'a, CachedTokens>,
    /// DeepSeek's name for the cached tokens.
    prompt_cache_hit_tokens: Count,
}

/// A part of the input tokens.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct CachedTokens {
    pub(super) cached_tokens: Count,
}

impl WireFormat for OpenAi {
    fn path(&self, _: &str) -> String {
        "chat/completions".to_owned()
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        let authorization = key.map(|key| ("authorization", format!("Bearer {key}")));
        authorization.into_iter().collect()
    }

    fn write_tool(&self, list: &mut JsonList, tool: &ToolDefinition<'_>) -> JsonResult {
        list.push(&json!({
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.schema,
                "strict": false,
            },
        }))
    }

    fn write_turn(&self, list: &mut JsonList, turn: &Turn<'_>, to: &WireTarget<'_>) -> JsonResult {
        let message = |role, content| Message {
            role,
            content,
            tool_calls: None,
            tool_call_id: None,
        };
        match turn {
            Turn::System(text) => list.push(&message("system", text)),
            Turn::User(text) => list.push(&message("user", text)),
            Turn::Assistant { text, calls } => {
                let calls = calls.iter().map(|call| Call {
                    r#type: "function",
                    id: call.id.clone(),
                    function: Function {
                        name: to.names.wire_name(&call.tool),
                        arguments: past_arguments(&call.arguments).to_string(),
                    },
                });
                let calls: Vec<Call> = calls.collect();
                list.push(&Message {
                    tool_calls: (!calls.is_empty()).then_some(calls),
                    ..message("assistant", text)
                })
            }
            Turn::Results(results) => results.iter().try_for_each(|result| {
                list.push(&Message {
                    tool_call_id: Some(result.id),
                    ..message("tool", result.content)
                })
            }),
        }
    }

    fn write_body(&self, body: &mut Vec<u8>, parts: &BodyParts<'_>) -> JsonResult {
        let mut fields = Fields::open(body);
        fields.field("model", &parts.model)?;
        fields.field("stream", &true)?;
        if !parts.tools.is_empty() {
            fields.raw("tools", parts.tools)?;
        }
        fields.raw("messages", parts.turns)?;
        fields.field("stream_options", &json!({"include_usage": true}))?;
        fields.optional("temperature", parts.temperature.as_ref())?;
        let is_newer = NEWER_LIMIT.iter().any(|name| parts.model.starts_with(name));
        let limit = if is_newer {
            "max_completion_tokens"
        } else {
            "max_tokens"
        };
        fields.optional(limit, parts.max_output_tokens.as_ref())?;
        if let Some(schema) = &parts.answer_schema {
            // Strict schemas make optional arguments required and free-form objects empty.
            let format = json!({
                "type": "json_schema",
                "json_schema": {"name": "step", "strict": false, "schema": schema},
            });
            fields.field("response_format", &format)?;
        }
        fields.close();
        Ok(())
    }

    fn read_event(&self, data: &[u8], draft: &mut Draft<'_>) -> Result<Progress, EventError> {
        if data.trim_ascii() == b"[DONE]" {
            return Ok(Progress::End);
        }
        let data = exact_numbers(data);
        let chunk: Chunk<'_> = parse(&data)?;
        if chunk.error.is_present() {
            return Err(EventError::Refused);
        }
        if let Some(usage) = chunk.usage.other() {
            let counts = (usage.prompt_tokens.0, usage.completion_tokens.0);
            draft.usage.input_tokens = counts.0.unwrap_or(draft.usage.input_tokens);
            draft.usage.output_tokens = counts.1.unwrap_or(draft.usage.output_tokens);
            let cached = usage.prompt_tokens_details.other();
            let cached = cached.and_then(|details| details.cached_tokens.0);
            let cached = cached.or(usage.prompt_cache_hit_tokens.0);
            draft.usage.cached_tokens = cached.unwrap_or(draft.usage.cached_tokens);
        }
        let Some(choice) = chunk.choices.0.into_iter().next() else {
            return Ok(Progress::None);
        };
        let has_content = read_delta(&choice.delta.unwrap_or_default(), draft)?;
        draft.stop = match choice.finish_reason.text() {
            Some("length" | "model_length" | "max_tokens") => Some(Stop::CutOff),
            Some(_) => Some(Stop::Finished),
            None => draft.stop,
        };
        Ok(match has_content {
            true => Progress::Some,
            false => Progress::None,
        })
    }
}

/// Returns whether there was anything in it.
fn read_delta(delta: &Delta<'_>, draft: &mut Draft<'_>) -> Result<bool, EventError> {
    let mut has_content = false;
    let mut thought = |text: &str, draft: &mut Draft<'_>| {
        has_content |= !text.is_empty();
        match text {
            "" => Ok(()),
            text => draft.thought(text),
        }
    };
    match delta.reasoning_content.as_str() {
        "" => thought(delta.reasoning.as_str(), draft)?,
        text => thought(text, draft)?,
    }
    if let TextOr::Other(parts) = &delta.content {
        for part in &parts.0 {
            thought(part.thinking.as_str(), draft)?;
            if let TextOr::Other(inner) = &part.thinking {
                for part in &inner.0 {
                    thought(part.text.as_str(), draft)?;
                }
            }
        }
    }
    let parts: &[ContentPart<'_>] = match &delta.content {
        TextOr::Other(parts) => &parts.0,
        TextOr::Text(_) | TextOr::Nothing => &[],
    };
    let parts = parts.iter().map(|part| part.text.as_str());
    for text in [delta.content.as_str(), delta.refusal.as_str()]
        .into_iter()
        .chain(parts)
    {
        if !text.is_empty() {
            has_content = true;
            draft.text(text)?;
        }
    }
    for call in &delta.tool_calls.0 {
        has_content = true;
        let Some(function) = &call.function else {
            continue;
        };
        let key = match (call.id.as_str(), call.index.0) {
            ("", number) => CallKey::Number(number.unwrap_or(0)),
            (id, _) => CallKey::Id(id),
        };
        let arguments = match &function.arguments {
            TextOr::Other(json) => json.to_string(),
            text => text.as_str().to_owned(),
        };
        draft.call_piece(key, function.name.as_str(), &arguments)?;
    }
    Ok(has_content)
}
