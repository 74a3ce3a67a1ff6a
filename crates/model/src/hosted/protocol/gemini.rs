//! Google's Gemini.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::super::draft::{Draft, Stop};
use super::super::json::{Count, Items, Text};
use super::{
    BodyParts, EventError, Fields, JsonList, JsonResult, Progress, ToolDefinition, Turn,
    WireFormat, WireTarget, exact_numbers, parse, past_arguments,
};

pub(super) struct Gemini;

/// Gemini 3 refuses the first call of a turn without a signature, and accepts this instead of one.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

#[derive(Serialize)]
struct Content<'a> {
    role: &'a str,
    parts: Vec<Part<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Part<'a> {
    Text {
        text: &'a str,
    },
    #[serde(rename_all = "camelCase")]
    Call {
        function_call: FunctionCall<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        thought_signature: Option<&'a str>,
    },
    #[serde(rename_all = "camelCase")]
    Result {
        function_response: FunctionResponse<'a>,
    },
}

#[derive(Serialize)]
struct FunctionCall<'a> {
    id: &'a str,
    name: String,
    args: Cow<'a, Value>,
}

#[derive(Serialize)]
struct FunctionResponse<'a> {
    name: String,
    response: ResponseContent<'a>,
    id: &'a str,
}

#[derive(Serialize)]
struct ResponseContent<'a> {
    name: String,
    content: &'a str,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Event<'a> {
    #[serde(borrow)]
    candidates: Items<Candidate<'a>>,
    usage_metadata: Option<UsageMetadata>,
    #[serde(borrow)]
    prompt_feedback: Option<PromptFeedback<'a>>,
    #[serde(borrow)]
    error: Text<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Candidate<'a> {
    #[serde(borrow)]
    content: Option<CandidateContent<'a>>,
    #[serde(borrow)]
    finish_reason: Text<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CandidateContent<'a> {
    #[serde(borrow)]
    parts: Items<CandidatePart<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct CandidatePart<'a> {
    #[serde(borrow)]
    text: Text<'a>,
    thought: Option<bool>,
    #[serde(borrow)]
    function_call: Option<CandidateCall<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CandidateCall<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    args: Option<Value>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct UsageMetadata {
    prompt_token_count: Count,
    tool_use_prompt_token_count: Count,
    candidates_token_count: Count,
    thoughts_token_count: Count,
    cached_content_token_count: Count,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PromptFeedback<'a> {
    #[serde(borrow)]
    block_reason: Text<'a>,
}

impl WireFormat for Gemini {
    fn path(&self, model: &str) -> String {
        format!("models/{model}:streamGenerateContent?alt=sse")
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        // Not in the address, which may be logged.
        let key = key.map(|key| ("x-goog-api-key", key.to_owned()));
        key.into_iter().collect()
    }

    fn has_system_messages(&self) -> bool {
        false
    }

    fn write_tool(&self, list: &mut JsonList, tool: &ToolDefinition<'_>) -> JsonResult {
        list.push(&json!({
            "name": tool.name,
            "description": tool.description,
            "parametersJsonSchema": tool.schema,
        }))
    }

    fn write_turn(&self, list: &mut JsonList, turn: &Turn<'_>, to: &WireTarget<'_>) -> JsonResult {
        let content = match turn {
            Turn::System(_)
            | Turn::Assistant {
                text: "",
                calls: [],
            } => return Ok(()),
            Turn::User(text) => Content {
                role: "user",
                parts: vec![Part::Text { text }],
            },
            Turn::Assistant { text, calls } => {
                let needs_signature = to.model.contains("gemini-3");
                let text = (!text.is_empty()).then_some(Part::Text { text });
                let calls = calls.iter().enumerate().map(|(index, call)| Part::Call {
                    function_call: FunctionCall {
                        id: &call.id,
                        name: to.names.wire_name(&call.tool),
                        args: past_arguments(&call.arguments),
                    },
                    thought_signature: (needs_signature && index == 0).then_some(NO_SIGNATURE),
                });
                Content {
                    role: "model",
                    parts: text.into_iter().chain(calls).collect(),
                }
            }
            Turn::Results(results) => {
                let parts = results.iter().map(|result| {
                    let name = to.names.wire_name(result.tool);
                    Part::Result {
                        function_response: FunctionResponse {
                            name: name.clone(),
                            response: ResponseContent {
                                name,
                                content: result.content,
                            },
                            id: result.id,
                        },
                    }
                });
                Content {
                    role: "user",
                    parts: parts.collect(),
                }
            }
        };
        list.push(&content)
    }

    fn write_body(&self, body: &mut Vec<u8>, parts: &BodyParts<'_>) -> JsonResult {
        let mut fields = Fields::open(body);
        if let Some(system) = &parts.system {
            fields.field("systemInstruction", &json!({"parts": [{"text": system}]}))?;
        }
        if !parts.tools.is_empty() {
            let tools = [b"[{\"functionDeclarations\":", parts.tools, b"}]"].concat();
            fields.raw("tools", &tools)?;
        }
        fields.raw("contents", parts.turns)?;
        let mut options = serde_json::Map::new();
        if let Some(temperature) = parts.temperature {
            options.insert("temperature".to_owned(), json!(temperature));
        }
        if let Some(tokens) = parts.max_output_tokens {
            options.insert("maxOutputTokens".to_owned(), json!(tokens));
        }
        if !options.is_empty() {
            fields.field("generationConfig", &options)?;
        }
        fields.close();
        Ok(())
    }

    fn read_event(&self, data: &[u8], draft: &mut Draft<'_>) -> Result<Progress, EventError> {
        let data = exact_numbers(data);
        let event: Event<'_> = parse(&data)?;
        if event.error.is_present() {
            return Err(EventError::Refused);
        }
        if let Some(usage) = event.usage_metadata {
            let sum = |counts: [Count; 2]| {
                let counts = counts.iter().filter_map(|count| count.0);
                counts.fold(0, u64::saturating_add)
            };
            draft.usage.input_tokens =
                sum([usage.prompt_token_count, usage.tool_use_prompt_token_count]);
            draft.usage.output_tokens =
                sum([usage.candidates_token_count, usage.thoughts_token_count]);
            draft.usage.cached_tokens = usage.cached_content_token_count.0.unwrap_or(0);
        }
        let Some(candidate) = event.candidates.0.into_iter().next() else {
            let blocked = event.prompt_feedback.map(|feedback| feedback.block_reason);
            return match blocked.as_ref().map(Text::as_str) {
                None | Some("") => Ok(Progress::None),
                Some(reason) => Err(EventError::Blocked(reason.to_owned())),
            };
        };
        let mut progress = Progress::None;
        for part in candidate
            .content
            .map(|content| content.parts.0)
            .unwrap_or_default()
        {
            progress = Progress::Some;
            if let Some(call) = part.function_call {
                draft.whole_call(call.name.as_str(), call.args)?;
            } else if part.thought == Some(true) {
                draft.thought(part.text.as_str())?;
            } else if !part.text.as_str().is_empty() {
                draft.text(part.text.as_str())?;
            }
        }
        // There is no other sign of the end.
        match candidate.finish_reason.text() {
            None => Ok(progress),
            Some(reason) => {
                draft.stop = Some(match reason {
                    "MAX_TOKENS" => Stop::CutOff,
                    _ => Stop::Finished,
                });
                Ok(Progress::End)
            }
        }
    }
}
