//! OpenAI's responses, which its newest models need for calls.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::super::draft::{Draft, Stop};
use super::super::json::{Count, Text, TextOr};
use super::openai::CachedTokens;
use super::{
    BodyParts, EventError, Fields, JsonList, JsonResult, Progress, ToolDefinition, Turn,
    WireFormat, WireTarget, parse, past_arguments,
};

pub(super) struct Responses;

#[derive(Serialize)]
struct Message<'a> {
    role: &'a str,
    content: &'a str,
}

#[derive(Serialize)]
struct FunctionCall<'a> {
    r#type: &'a str,
    call_id: &'a str,
    name: String,
    arguments: String,
}

#[derive(Serialize)]
struct FunctionOutput<'a> {
    r#type: &'a str,
    call_id: &'a str,
    output: &'a str,
}

/// Every event, with the fields that are used of any.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Event<'a> {
    #[serde(borrow)]
    r#type: Text<'a>,
    #[serde(borrow)]
    delta: Text<'a>,
    output_index: Count,
    #[serde(borrow)]
    item: Option<Item<'a>>,
    #[serde(borrow)]
    response: Option<Response<'a>>,
    #[serde(borrow)]
    error: Text<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Item<'a> {
    #[serde(borrow)]
    r#type: Text<'a>,
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow)]
    arguments: Text<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Response<'a> {
    #[serde(borrow)]
    usage: Option<ResponseUsage<'a>>,
    #[serde(borrow)]
    incomplete_details: Option<IncompleteDetails<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ResponseUsage<'a> {
    input_tokens: Count,
    output_tokens: Count,
    #[serde(borrow)]
    input_tokens_details: TextOr<'a, CachedTokens>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct IncompleteDetails<'a> {
    #[serde(borrow)]
    reason: Text<'a>,
}

impl WireFormat for Responses {
    fn path(&self, _: &str) -> String {
        "responses".to_owned()
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        super::openai::OpenAi.headers(key)
    }

    fn write_tool(&self, list: &mut JsonList, tool: &ToolDefinition<'_>) -> JsonResult {
        list.push(&json!({
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.schema,
            "strict": false,
        }))
    }

    fn write_turn(&self, list: &mut JsonList, turn: &Turn<'_>, to: &WireTarget<'_>) -> JsonResult {
        match turn {
            Turn::System(content) => list.push(&Message {
                role: "system",
                content,
            }),
            Turn::User(content) => list.push(&Message {
                role: "user",
                content,
            }),
            Turn::Assistant { text, calls } => {
                if !text.is_empty() {
                    list.push(&Message {
                        role: "assistant",
                        content: text,
                    })?;
                }
                calls.iter().try_for_each(|call| {
                    list.push(&FunctionCall {
                        r#type: "function_call",
                        call_id: &call.id,
                        name: to.names.wire_name(&call.tool),
                        arguments: past_arguments(&call.arguments).to_string(),
                    })
                })
            }
            Turn::Results(results) => results.iter().try_for_each(|result| {
                list.push(&FunctionOutput {
                    r#type: "function_call_output",
                    call_id: result.id,
                    output: result.content,
                })
            }),
        }
    }

    fn write_body(&self, body: &mut Vec<u8>, parts: &BodyParts<'_>) -> JsonResult {
        let mut fields = Fields::open(body);
        fields.field("model", &parts.model)?;
        fields.field("stream", &true)?;
        // The provider keeps no copy: every request has the whole conversation.
        fields.field("store", &false)?;
        if !parts.tools.is_empty() {
            fields.raw("tools", parts.tools)?;
        }
        fields.raw("input", parts.turns)?;
        fields.optional("temperature", parts.temperature.as_ref())?;
        fields.optional("max_output_tokens", parts.max_output_tokens.as_ref())?;
        if let Some(schema) = &parts.answer_schema {
            let format: Value =
                json!({"type": "json_schema", "name": "step", "strict": false, "schema": schema});
            fields.field("text", &json!({"format": format}))?;
        }
        fields.close();
        Ok(())
    }

    fn read_event(&self, data: &[u8], draft: &mut Draft<'_>) -> Result<Progress, EventError> {
        let event: Event<'_> = parse(data)?;
        let number = event.output_index.0.unwrap_or(0);
        let is_call = |item: &Item<'_>| item.r#type.as_str() == "function_call";
        match event.r#type.as_str() {
            "response.output_text.delta" | "response.refusal.delta" => {
                draft.text(event.delta.as_str())?;
            }
            "response.reasoning_text.delta" | "response.reasoning_summary_text.delta" => {
                draft.thought(event.delta.as_str())?;
            }
            "response.output_item.added" => {
                if let Some(item) = event.item.filter(is_call) {
                    draft.begin_call(number, item.name.as_str())?;
                    draft.append_arguments(number, item.arguments.as_str())?;
                }
            }
            "response.function_call_arguments.delta" => {
                draft.append_arguments(number, event.delta.as_str())?;
            }
            "response.output_item.done" => {
                // What is complete counts, whatever arrived before.
                let item = event.item.filter(is_call);
                if let Some(item) = item.filter(|item| !item.arguments.as_str().is_empty()) {
                    draft.set_arguments(number, item.name.as_str(), item.arguments.as_str())?;
                }
            }
            kind @ ("response.completed" | "response.incomplete") => {
                let response = event.response;
                let is_cut_off = response
                    .as_ref()
                    .and_then(|response| response.incomplete_details.as_ref())
                    .is_none_or(|details| details.reason.as_str() != "content_filter");
                draft.stop = Some(match kind == "response.incomplete" && is_cut_off {
                    true => Stop::CutOff,
                    false => Stop::Finished,
                });
                if let Some(usage) = response.and_then(|response| response.usage) {
                    draft.usage.input_tokens = usage.input_tokens.0.unwrap_or(0);
                    draft.usage.output_tokens = usage.output_tokens.0.unwrap_or(0);
                    let cached = usage.input_tokens_details.other();
                    let cached = cached.and_then(|details| details.cached_tokens.0);
                    draft.usage.cached_tokens = cached.unwrap_or(0);
                }
                return Ok(Progress::End);
            }
            "response.failed" | "error" => return Err(EventError::Refused),
            // An error that comes instead of a stream has no type.
            "" if event.error.is_present() => return Err(EventError::Refused),
            _ => return Ok(Progress::None),
        }
        Ok(Progress::Some)
    }
}
