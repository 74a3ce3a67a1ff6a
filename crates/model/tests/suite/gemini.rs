//! The Gemini protocol.

use std::time::Duration;

use serde_json::{Value, json};
use windlass_core::model::{ModelErrorKind, RequestedCall};
use windlass_model::{HostedSettings, ModelEvent};

use super::server::{MockReply, MockServer};
use super::support::{
    KEY, ask, ask_as, call, call_event, longer_request, model_of, request, text, tool,
};

const MODEL: &str = "Google/gemini-test";

/// A piece of an answer that is not the last.
fn piece(parts: &Value) -> Value {
    json!({"candidates": [{"content": {"role": "model", "parts": parts}, "index": 0}],
           "usageMetadata": {"promptTokenCount": 20}})
}

/// The last piece of an answer.
fn last(parts: &Value) -> Value {
    json!({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}],
           "usageMetadata": {"promptTokenCount": 20, "candidatesTokenCount": 7, "thoughtsTokenCount": 2}})
}

fn function_call(name: &str, arguments: &Value) -> Value {
    json!({"functionCall": {"name": name, "args": arguments}})
}

fn stream(events: &[Value]) -> MockReply {
    events.iter().fold(MockReply::stream(), MockReply::event)
}

async fn calls_of(events: &[Value]) -> (Vec<RequestedCall>, Vec<ModelEvent>) {
    let server = MockServer::start([stream(events)]).await;
    let mut outcome = ask_as(MODEL, &server, &longer_request()).await;
    assert!(matches!(
        outcome.events.pop(),
        Some(ModelEvent::Usage { .. })
    ));
    (outcome.answer.unwrap().calls, outcome.events)
}

#[tokio::test]
async fn text_thoughts_and_usage_are_parsed_and_the_request_has_the_right_form() {
    let server = MockServer::start([stream(&[
        piece(&json!([{"text": "Hm.", "thought": true}])),
        piece(&json!([{"text": "Rust is"}])),
        last(&json!([{"text": " a language."}])),
    ])])
    .await;
    let outcome = ask_as(MODEL, &server, &longer_request()).await;
    let answer = outcome.answer.unwrap();
    assert_eq!(
        (answer.text.as_str(), answer.thought.as_deref()),
        ("Rust is a language.", Some("Hm."))
    );
    assert_eq!(
        (answer.usage.input_tokens, answer.usage.output_tokens),
        (20, 9)
    );
    assert_eq!(
        outcome.events[1..3],
        [text("Rust is"), text(" a language.")]
    );

    let sent = server.requests().remove(0);
    // The key is in a header, not in the URL, which may be logged.
    assert_eq!(
        sent.path,
        "/v1/models/gemini-test:streamGenerateContent?alt=sse"
    );
    assert!(
        sent.headers.contains(&format!("x-goog-api-key: {KEY}")),
        "{}",
        sent.headers
    );
    insta::assert_snapshot!(serde_json::to_string_pretty(&sent.body).unwrap());
}

#[tokio::test]
async fn a_call_is_parsed() {
    let parts = json!([{"text": "Let me."}, function_call("search", &json!({"query": "rust"}))]);
    let (calls, events) = calls_of(&[last(&parts)]).await;
    assert_eq!(calls, [call("search", json!({"query": "rust"}))]);
    assert_eq!(events, [text("Let me."), call_event("search")]);
}

#[tokio::test]
async fn two_calls_are_parsed_from_one_piece_or_two() {
    let (one, two) = (json!({"query": "one"}), json!({"query": "two"}));
    let (first, second) = (function_call("search", &one), function_call("search", &two));
    let wanted = [call("search", one), call("search", two)];
    let at_once = [last(&json!([first, second]))];
    // They have no ids.
    let apart = [piece(&json!([first])), last(&json!([second]))];
    for pieces in [&at_once[..], &apart] {
        let (calls, events) = calls_of(pieces).await;
        assert_eq!(calls, wanted);
        assert_eq!(events, [call_event("search"), call_event("search")]);
    }
}

#[tokio::test]
async fn a_call_without_arguments_has_an_empty_object() {
    let parts = json!([{"functionCall": {"name": "search"}}]);
    let (calls, _) = calls_of(&[last(&parts)]).await;
    assert_eq!(calls, [call("search", json!({}))]);
}

#[tokio::test]
async fn a_truncated_stream_is_an_error() {
    let begun = || stream(&[piece(&json!([{"text": "Rust is"}]))]);
    for reply in [begun(), begun().cut()] {
        let server = MockServer::start([reply]).await;
        let error = ask_as(MODEL, &server, &request()).await.answer.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Malformed);
        let message = "The connection to Google was lost before the answer was complete.";
        assert!(error.message.starts_with(message), "{error}");
    }
}

#[tokio::test]
async fn errors_have_their_kinds_before_and_in_the_stream() {
    let refusal = |code: u16, status: &str, message: &str| json!({"error": {"code": code, "message": message, "status": status}});
    let bad_key = refusal(
        400,
        "INVALID_ARGUMENT",
        "API key not valid. Please pass a valid API key.",
    );
    let too_long = refusal(
        400,
        "INVALID_ARGUMENT",
        "The input token count (2000000) exceeds the maximum number of tokens allowed (1048576).",
    );
    let odd = refusal(400, "INVALID_ARGUMENT", "Invalid JSON payload received.");
    let unknown = refusal(404, "NOT_FOUND", "models/gemini-test is not found");
    let limited = refusal(429, "RESOURCE_EXHAUSTED", "Too many requests.");
    let overloaded = refusal(503, "UNAVAILABLE", "The model is overloaded.");
    for (status, body, kind, tries) in [
        (400, &bad_key, ModelErrorKind::Authentication, 1),
        (400, &too_long, ModelErrorKind::ContextTooLong, 1),
        (400, &odd, ModelErrorKind::Malformed, 1),
        (404, &unknown, ModelErrorKind::UnknownModel, 1),
        (429, &limited, ModelErrorKind::RateLimited, 3),
        (503, &overloaded, ModelErrorKind::Overloaded, 3),
        (200, &limited, ModelErrorKind::RateLimited, 3),
        (200, &overloaded, ModelErrorKind::Overloaded, 3),
    ] {
        let reply = match status {
            200 => stream(std::slice::from_ref(body)),
            _ => MockReply::status(status, body.clone()),
        };
        let server = MockServer::start([reply]).await;
        let error = ask_as(MODEL, &server, &request()).await.answer.unwrap_err();
        let seen = (error.kind, server.requests().len());
        assert_eq!(seen, (kind, tries), "{status} {body}");
        let message = body["error"]["message"].as_str().unwrap();
        assert!(error.message.contains(message), "{error}");
    }
}

#[tokio::test]
async fn a_retry_delay_in_the_body_is_used() {
    let details =
        json!([{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7.5s"}]);
    let body = json!({"error": {"code": 429, "message": "Slow down.", "status": "RESOURCE_EXHAUSTED", "details": details}});
    let server = MockServer::start([MockReply::status(429, body)]).await;
    let error = ask_as(MODEL, &server, &request()).await.answer.unwrap_err();
    assert_eq!(error.retry_after, Some(Duration::from_millis(7500)));
    // It is longer than the longest wait, so there is no retry.
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn model_names_are_unchanged_and_reserved_tool_names_are_mapped() {
    let parts = json!([function_call("urlContext_2", &json!({}))]);
    let server = MockServer::start([stream(&[last(&parts)])]).await;
    let mut request = request();
    request.tools = vec![tool("urlContext", "() --> IO Text")];
    let settings = HostedSettings {
        max_output_tokens: Some(50),
        ..super::support::settings(&server)
    };
    let model = model_of("Google/gemini-test-high", settings);
    let answer = ask(&model, &request).await.answer.unwrap();
    assert_eq!(answer.calls, [call("urlContext", json!({}))]);
    let sent = server.requests().remove(0);
    assert!(
        sent.path.starts_with("/v1/models/gemini-test-high:"),
        "{}",
        sent.path
    );
    assert_eq!(
        sent.body["generationConfig"],
        json!({"maxOutputTokens": 50})
    );
}
