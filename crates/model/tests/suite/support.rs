//! Requests and helpers for the tests.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio_util::sync::CancellationToken;
use windlass_core::model::{
    ChatCall, ChatMessage, ModelAnswer, ModelRequest, RequestedArguments, RequestedCall,
};
use windlass_model::{Dialect, HostedModel, HostedSettings, ModelClient, ModelError, ModelEvent};
use windlass_spec::{NonEmptyText, Signature, ToolName, ToolSpecification};

use super::server::{MockReply, MockServer};

pub(crate) const KEY: &str = "secret-key-of-the-tests";

/// Returns the key for every variable of a key.
pub(crate) fn keys(name: &str) -> Option<String> {
    name.ends_with("_API_KEY").then(|| KEY.to_owned())
}

pub(crate) fn tool(name: &str, signature: &str) -> Arc<ToolSpecification> {
    let description = NonEmptyText::new(format!("Does {name}.")).unwrap();
    Arc::new(ToolSpecification::new(
        ToolName::new(name).unwrap(),
        description,
        Signature::parse(signature).unwrap(),
    ))
}

pub(crate) fn request() -> ModelRequest {
    ModelRequest {
        messages: vec![
            Arc::new(ChatMessage::System {
                content: "You are helpful.".to_owned(),
            }),
            Arc::new(ChatMessage::User {
                content: "What is Rust?".to_owned(),
            }),
        ],
        tools: vec![tool(
            "search",
            "(query: Text, limit: Maybe Int) --> IO Text",
        )],
    }
}

/// A conversation with one valid and one invalid call, both with results.
pub(crate) fn longer_request() -> ModelRequest {
    let mut request = request();
    let call = |id: &str, arguments| ChatCall {
        id: id.to_owned(),
        tool: "search".to_owned(),
        arguments,
    };
    let result = |id: &str, content: &str| ChatMessage::Tool {
        call_id: id.to_owned(),
        tool: "search".to_owned(),
        content: content.to_owned(),
        untrusted: false,
    };
    let more = [
        ChatMessage::Assistant {
            content: "Let me look.".to_owned(),
            calls: vec![
                call("call_1_0", json!({"query": "rust"})),
                call("call_1_1", json!("{\"query\": \"ru")),
            ],
        },
        result("call_1_0", "A language."),
        result("call_1_1", "The arguments are not JSON."),
        ChatMessage::User {
            content: "Go on.".to_owned(),
        },
    ];
    request.messages.extend(more.map(Arc::new));
    request
}

pub(crate) fn settings(server: &MockServer) -> HostedSettings {
    HostedSettings {
        base_url: Some(server.url.clone()),
        dialect: Dialect::Native,
        first_wait: Duration::from_millis(1),
        longest_wait: Duration::from_secs(1),
        time_limit: Duration::from_secs(20),
        first_byte_limit: Duration::from_secs(10),
        idle_limit: Duration::from_secs(10),
        ..HostedSettings::default()
    }
}

pub(crate) fn model(settings: HostedSettings) -> HostedModel {
    model_of("OpenAI/test-model", settings)
}

pub(crate) fn model_of(name: &str, settings: HostedSettings) -> HostedModel {
    HostedModel::with_variables(&name.parse().unwrap(), settings, &keys).unwrap()
}

/// The answer to a request, and the emitted events.
pub(crate) struct Outcome {
    pub(crate) answer: Result<ModelAnswer, ModelError>,
    pub(crate) events: Vec<ModelEvent>,
}

pub(crate) async fn ask(model: &dyn ModelClient, request: &ModelRequest) -> Outcome {
    let mut events = Vec::new();
    let mut emit = |event| events.push(event);
    let answer = model
        .answer(request, &CancellationToken::new(), &mut emit)
        .await;
    Outcome { answer, events }
}

/// Asks a native model with this name at the server.
pub(crate) async fn ask_as(name: &str, server: &MockServer, request: &ModelRequest) -> Outcome {
    ask(&model_of(name, settings(server)), request).await
}

/// Asks a native model at the server.
pub(crate) async fn ask_server(server: &MockServer) -> Outcome {
    ask_as("OpenAI/test-model", server, &request()).await
}

/// The answer of a native model to these OpenAI events.
pub(crate) async fn answer_to(events: &[serde_json::Value]) -> ModelAnswer {
    let server = MockServer::start([MockReply::events(events)]).await;
    ask_server(&server).await.answer.unwrap()
}

/// The error of a native model at the server, and the number of attempts.
pub(crate) async fn error_and_attempts(server: &MockServer) -> (ModelError, usize) {
    (
        ask_server(server).await.answer.unwrap_err(),
        server.requests().len(),
    )
}

pub(crate) fn call(tool: &str, arguments: serde_json::Value) -> RequestedCall {
    RequestedCall {
        tool: tool.to_owned(),
        arguments: RequestedArguments::Json(arguments),
        confidence: None,
    }
}

pub(crate) fn text(text: &str) -> ModelEvent {
    ModelEvent::Text {
        text: text.to_owned(),
    }
}

pub(crate) fn call_event(tool: &str) -> ModelEvent {
    ModelEvent::Call {
        tool: tool.to_owned(),
    }
}
