//! The only module that uses `genai`. Converts requests into its types and its stream into ours. Answers
//! are always streamed: without streaming, `genai` refuses a whole answer if the arguments of one call are
//! truncated, and its error contains the full request.
//!
//! Known limitation: `genai` buffers an event until it is complete, so a hostile server can fill memory
//! with one endless event or error until a time limit ends it. There is no hook to count the bytes.

use std::sync::Arc;

use futures::StreamExt;
use genai::adapter::AdapterKind;
use genai::chat::{
    ChatMessage as WireMessage, ChatOptions, ChatRequest, ChatStream, ChatStreamEvent, ContentPart,
    MessageContent, ReasoningEffort, StopReason, StreamEnd, Tool, ToolCall, ToolResponse,
};
use genai::resolver::{AuthData, Endpoint as WireEndpoint};
use genai::{Client, Headers, ModelIden, ServiceTarget};
use serde_json::{Value, json};
use tracing::{Instrument as _, debug_span};
use windlass_core::model::{
    ChatMessage, FINISH, ModelErrorKind, ModelRequest, RequestedCall, Usage, finish_schema,
};
use windlass_core::run::repair_json;

use super::calls::Calls;
use super::endpoint::{Endpoint, Protocol};
use super::failure::{Failure, retry_after};
use super::names::WireNames;
use super::{Form, HostedSettings};
use crate::client::ModelError;
use crate::definition::{shown_description, shown_schema};
use crate::dialect::{Speaker, conversation, schema};

/// A part of an answer as it arrives.
pub(super) enum Piece {
    /// A keep-alive without content.
    KeepAlive,
    Text(String),
    Thought(String),
    /// The call at this position among the answer's, and how long its arguments are so far.
    Call {
        position: usize,
        tool: String,
        length: usize,
    },
    End {
        calls: Vec<RequestedCall>,
        usage: Usage,
        /// Whether the answer was cut off at the output token limit.
        is_cut_off: bool,
    },
}

/// A connection to one provider.
pub(super) struct Wire {
    client: Client,
    endpoint: Arc<Endpoint>,
}

impl Wire {
    pub(super) fn new(endpoint: Arc<Endpoint>) -> Result<Self, ModelError> {
        let failed = |error: &dyn std::error::Error| {
            let message = format!(
                "The HTTP client could not be created: {}.",
                root_cause(error)
            );
            ModelError::new(ModelErrorKind::Unreachable, message)
        };
        // A redirect could send the request, and on the same host the key, to an unexpected place.
        let mut http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
        if endpoint.is_local() {
            http = http.no_proxy();
        }
        let http = http.build().map_err(|error| failed(&error))?;
        let client = Client::builder()
            .with_reqwest(http)
            .build()
            .map_err(|error| failed(&error))?;
        Ok(Self { client, endpoint })
    }

    /// Sends a request. An error of the provider comes with the first piece, not here.
    pub(super) async fn send(
        &self,
        request: &ModelRequest,
        form: Form,
        settings: &HostedSettings,
    ) -> Result<Pieces, Failure> {
        let names = WireNames::new(request);
        let mut options = ChatOptions::default().with_capture_usage(true);
        options.temperature = settings.temperature;
        options.max_tokens = settings.max_output_tokens;
        // Otherwise `genai` would request the model `something` for `something-high`. These efforts have
        // no equivalent in each protocol, so none is sent.
        options.reasoning_effort = match self.endpoint.protocol {
            Protocol::OpenAi => Some(ReasoningEffort::Budget(0)),
            Protocol::Gemini => Some(ReasoningEffort::Zero),
            Protocol::Anthropic => None,
        };
        let chat = match form {
            Form::Native => native(request, &names),
            Form::Structured => {
                if self.endpoint.protocol == Protocol::OpenAi {
                    options = options.with_extra_body(response_format(request));
                }
                structured(request)
            }
        };
        let answer = self
            .client
            .exec_chat_stream(self.target()?, chat, Some(&options))
            .instrument(debug_span!(
                "http_request",
                http.request.method = "POST",
                server.address = self.endpoint.base_url.host_str(),
                gen_ai.request.model = self.endpoint.model.as_str(),
            ))
            .await;
        let answer = answer.map_err(|error| failure(&self.endpoint, error))?;
        Ok(Pieces {
            stream: answer.stream,
            endpoint: Arc::clone(&self.endpoint),
            names,
            calls: Calls::default(),
        })
    }

    fn target(&self) -> Result<ServiceTarget, Failure> {
        let endpoint = &self.endpoint;
        let kind = match endpoint.protocol {
            Protocol::OpenAi => AdapterKind::OpenAI,
            Protocol::Anthropic => AdapterKind::Anthropic,
            Protocol::Gemini => AdapterKind::Gemini,
        };
        let auth = match &endpoint.key {
            Some(key) => AuthData::from_single(key.expose()),
            // Without a key, no authorization header is sent.
            None => {
                let url = endpoint
                    .base_url
                    .join("chat/completions")
                    .map_err(|error| {
                        Failure::permanent(
                            ModelErrorKind::Unreachable,
                            format!("The base URL is not valid: {error}."),
                        )
                    })?;
                AuthData::RequestOverride {
                    url: url.into(),
                    headers: Headers::default(),
                }
            }
        };
        // `genai` treats the text before `::` as a namespace.
        let model = match endpoint.model.contains("::") {
            true => format!("model::{}", endpoint.model),
            false => endpoint.model.clone(),
        };
        let endpoint = WireEndpoint::from_owned(endpoint.base_url.as_str());
        Ok(ServiceTarget {
            endpoint,
            auth,
            model: ModelIden::new(kind, model),
        })
    }
}

/// The pieces of one answer.
pub(super) struct Pieces {
    stream: ChatStream,
    endpoint: Arc<Endpoint>,
    names: WireNames,
    calls: Calls,
}

impl Pieces {
    /// The next piece. Nothing after the end or an error.
    pub(super) async fn next(&mut self) -> Option<Result<Piece, Failure>> {
        loop {
            let event = match self.stream.next().await? {
                Ok(event) => event,
                Err(error) => return Some(Err(failure(&self.endpoint, error))),
            };
            return Some(Ok(match event {
                // Comes before the request was sent and has no content.
                ChatStreamEvent::Start => continue,
                ChatStreamEvent::Heartbeat | ChatStreamEvent::ThoughtSignatureChunk(_) => {
                    Piece::KeepAlive
                }
                ChatStreamEvent::Chunk(chunk) => Piece::Text(chunk.content),
                ChatStreamEvent::ReasoningChunk(chunk) => Piece::Thought(chunk.content),
                ChatStreamEvent::ToolCallChunk(chunk) => self.call(chunk.tool_call),
                ChatStreamEvent::End(end) => return Some(self.end(end)),
            }));
        }
    }

    /// The failure for a stream that ended without an end event.
    pub(super) fn truncated(&self) -> Failure {
        connection_lost(&self.endpoint)
    }

    fn call(&mut self, call: ToolCall) -> Piece {
        let ToolCall {
            call_id,
            fn_name,
            fn_arguments,
            ..
        } = &call;
        let text = fn_arguments.as_str().unwrap_or_default();
        let update = match self.endpoint.protocol {
            Protocol::OpenAi => self.calls.append(call_id, fn_name, text),
            Protocol::Anthropic => self.calls.replace(call_id, fn_name, text),
            Protocol::Gemini => self.calls.add(fn_name, fn_arguments),
        };
        Piece::Call {
            position: update.position,
            tool: self.names.tool_name(update.name),
            length: update.length,
        }
    }

    fn end(&mut self, end: StreamEnd) -> Result<Piece, Failure> {
        let reason = end.captured_stop_reason;
        // For this protocol `genai` invents an end event when the connection is lost.
        if self.endpoint.protocol == Protocol::Gemini && reason.is_none() {
            return Err(connection_lost(&self.endpoint));
        }
        let usage = end.captured_usage.unwrap_or_default();
        let count = |tokens: Option<i32>| {
            tokens
                .and_then(|tokens| u64::try_from(tokens).ok())
                .unwrap_or(0)
        };
        let usage = Usage {
            input_tokens: count(usage.prompt_tokens),
            output_tokens: count(usage.completion_tokens),
            microdollars: None,
        };
        let calls = std::mem::take(&mut self.calls).finish();
        let calls = calls.map(|(name, arguments)| RequestedCall {
            tool: self.names.tool_name(&name),
            arguments,
            confidence: None,
        });
        Ok(Piece::End {
            calls: calls.collect(),
            usage,
            is_cut_off: matches!(reason, Some(StopReason::MaxTokens(_))),
        })
    }
}

fn native(request: &ModelRequest, names: &WireNames) -> ChatRequest {
    let mut messages: Vec<WireMessage> = Vec::new();
    let mut results: Vec<ToolResponse> = Vec::new();
    for message in &request.messages {
        if let ChatMessage::Tool {
            call_id,
            tool,
            content,
        } = message
        {
            // Anthropic requires the results of a turn's calls in one message.
            results.push(ToolResponse::new(call_id, content).with_fn_name(names.wire_name(tool)));
            continue;
        }
        if !results.is_empty() {
            messages.push(std::mem::take(&mut results).into());
        }
        match message {
            ChatMessage::System { content } => messages.push(WireMessage::system(content)),
            ChatMessage::User { content } => messages.push(WireMessage::user(content)),
            ChatMessage::Assistant { content, calls } => {
                let text = (!content.is_empty()).then(|| ContentPart::Text(content.clone()));
                let calls = calls.iter().map(|call| {
                    ContentPart::ToolCall(ToolCall {
                        call_id: call.id.clone(),
                        fn_name: names.wire_name(&call.tool),
                        fn_arguments: past_arguments(&call.arguments),
                        thought_signatures: None,
                    })
                });
                messages.push(WireMessage::assistant(
                    text.into_iter().chain(calls).collect::<MessageContent>(),
                ));
            }
            ChatMessage::Tool { .. } => {}
        }
    }
    if !results.is_empty() {
        messages.push(results.into());
    }
    let tools = request.tools.iter().map(|tool| {
        Tool::new(names.wire_name(tool.name().as_str()))
            .with_description(shown_description(tool))
            .with_schema(shown_schema(tool))
    });
    let finish = Tool::new(names.wire_name(FINISH))
        .with_description("Ends the task with its answer.")
        .with_schema(finish_schema());
    ChatRequest::new(messages).with_tools(tools.chain([finish]).collect::<Vec<_>>())
}

/// The arguments of a past call as providers accept them: an object, whatever the model wrote.
fn past_arguments(arguments: &Value) -> Value {
    match arguments {
        Value::Object(_) => arguments.clone(),
        Value::String(text) => match repair_json(text) {
            Ok((value @ Value::Object(_), _)) => value,
            _ => json!({"not_json": text}),
        },
        Value::Null => json!({}),
        other => json!({"value": other}),
    }
}

fn structured(request: &ModelRequest) -> ChatRequest {
    let messages = conversation(request)
        .into_iter()
        .map(|line| match line.speaker {
            Speaker::System => WireMessage::system(line.text),
            Speaker::User => WireMessage::user(line.text),
            Speaker::Assistant => WireMessage::assistant(line.text),
        });
    ChatRequest::new(messages.collect())
}

/// The response format as raw JSON: `genai` would make it strict, which makes optional arguments required
/// and free-form objects empty.
fn response_format(request: &ModelRequest) -> Value {
    json!({
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "step", "strict": false, "schema": schema(request)},
        }
    })
}

fn connection_lost(endpoint: &Endpoint) -> Failure {
    let message = format!(
        "The connection to {} was lost before the answer was complete. Try again; if it happens \
         again, check whether the server at {} still runs.",
        endpoint.provider,
        endpoint.shown_url()
    );
    Failure::permanent(ModelErrorKind::Malformed, message)
}

/// Converts an error of `genai`. Its text is never used, because it may contain the request.
fn failure(endpoint: &Endpoint, error: genai::Error) -> Failure {
    let header = |name: &str| {
        let value = error.headers()?.get(name)?;
        value.to_str().ok().map(str::to_owned)
    };
    let wait = retry_after(header);
    match error {
        genai::Error::HttpError { status, body, .. } => {
            Failure::from_status(endpoint, status.as_u16(), &body, wait)
        }
        // The cause of a failed stream is boxed inside the error.
        genai::Error::WebStream { error, .. } => match error.downcast::<genai::Error>() {
            Ok(inner) => failure(endpoint, *inner),
            Err(other) => match other.downcast::<reqwest::Error>() {
                Ok(error) => transport(endpoint, &error),
                Err(_) => connection_lost(endpoint),
            },
        },
        genai::Error::ChatResponse { body, .. } => Failure::from_event(endpoint, &body),
        other => match other.status() {
            Some(status) => Failure::from_status(endpoint, status.as_u16(), "", wait),
            None => {
                let message = format!(
                    "{} at {} sent an unexpected response. Check that the address is that of a model server.",
                    endpoint.provider,
                    endpoint.shown_url()
                );
                Failure::permanent(ModelErrorKind::Malformed, message)
            }
        },
    }
}

fn transport(endpoint: &Endpoint, error: &reqwest::Error) -> Failure {
    let (provider, url) = (&endpoint.provider, endpoint.shown_url());
    if error.is_timeout() {
        return Failure::permanent(
            ModelErrorKind::Timeout,
            format!("{provider} did not answer in time."),
        );
    }
    if error.is_body() || error.is_decode() {
        return connection_lost(endpoint);
    }
    let message = format!(
        "{provider} could not be reached at {url}: {}. Check that the server is running.",
        root_cause(error)
    );
    if error.is_builder() {
        return Failure::permanent(ModelErrorKind::Unreachable, message);
    }
    Failure::transient(ModelErrorKind::Unreachable, message)
}

/// The innermost cause, which is the most specific and does not contain the address.
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
