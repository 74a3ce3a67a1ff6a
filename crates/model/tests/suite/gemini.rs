//! The same over Gemini's protocol.

use std::time::Duration;

use serde_json::{Value, json};
use windlass_core::model::{ModelErrorKind, RequestedCall};
use windlass_model::{HostedSettings, ModelEvent};

use super::server::{Reply, Server};
use super::support::{
    KEY, ask, ask_as, call, called, longer_request, model_of, request, text, tool,
};

const MODEL: &str = "Google/gemini-test";

/// A piece of an answer that goes on.
fn piece(parts: &Value) -> Value {
    json!({"candidates": [{"content": {"role": "model", "parts": parts}, "index": 0}],
           "usageMetadata": {"promptTokenCount": 20}})
}

/// The last piece of an answer.
fn last(parts: &Value) -> Value {
    json!({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}],
           "usageMetadata": {"promptTokenCount": 20, "candidatesTokenCount": 7, "thoughtsTokenCount": 2}})
}

fn asks_for(name: &str, arguments: &Value) -> Value {
    json!({"functionCall": {"name": name, "args": arguments}})
}

fn stream(events: &[Value]) -> Reply {
    events.iter().fold(Reply::stream(), Reply::event)
}

async fn calls_of(events: &[Value]) -> (Vec<RequestedCall>, Vec<ModelEvent>) {
    let server = Server::start([stream(events)]).await;
    let mut outcome = ask_as(MODEL, &server, &longer_request()).await;
    assert!(matches!(
        outcome.events.pop(),
        Some(ModelEvent::Usage { .. })
    ));
    (outcome.answer.unwrap().calls, outcome.events)
}

#[tokio::test]
async fn text_thoughts_and_usage_arrive_and_the_request_is_as_it_must_be() {
    let server = Server::start([stream(&[
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

    let asked = server.asked().remove(0);
    // The key is in a header and not in the address, which others see.
    assert_eq!(
        asked.path,
        "/v1/models/gemini-test:streamGenerateContent?alt=sse"
    );
    assert!(
        asked.headers.contains(&format!("x-goog-api-key: {KEY}")),
        "{}",
        asked.headers
    );
    insta::assert_snapshot!(serde_json::to_string_pretty(&asked.body).unwrap());
}

#[tokio::test]
async fn one_call_is_one_call() {
    let parts = json!([{"text": "Let me."}, asks_for("search", &json!({"query": "rust"}))]);
    let (calls, events) = calls_of(&[last(&parts)]).await;
    assert_eq!(calls, [call("search", json!({"query": "rust"}))]);
    assert_eq!(events, [text("Let me."), called("search")]);
}

#[tokio::test]
async fn two_calls_are_two_calls_in_one_piece_and_in_two() {
    let (one, two) = (json!({"query": "one"}), json!({"query": "two"}));
    let (first, second) = (asks_for("search", &one), asks_for("search", &two));
    let wanted = [call("search", one), call("search", two)];
    let at_once = [last(&json!([first, second]))];
    // The library gives these two the same id.
    let apart = [piece(&json!([first])), last(&json!([second]))];
    for pieces in [&at_once[..], &apart] {
        let (calls, events) = calls_of(pieces).await;
        assert_eq!(calls, wanted);
        assert_eq!(events, [called("search"), called("search")]);
    }
}

#[tokio::test]
async fn a_call_without_arguments_has_none() {
    let parts = json!([{"functionCall": {"name": "search"}}]);
    let (calls, _) = calls_of(&[last(&parts)]).await;
    assert_eq!(calls, [call("search", json!({}))]);
}

#[tokio::test]
async fn a_stream_that_is_cut_is_no_answer() {
    let begun = || stream(&[piece(&json!([{"text": "Rust is"}]))]);
    for reply in [begun(), begun().cut()] {
        let server = Server::start([reply]).await;
        let error = ask_as(MODEL, &server, &request()).await.answer.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Malformed);
        let said = "The connection to Google was cut before the answer was complete.";
        assert!(error.message.starts_with(said), "{error}");
    }
}

#[tokio::test]
async fn refusals_have_their_kinds_before_and_in_the_stream() {
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
            _ => Reply::status(status, body.clone()),
        };
        let server = Server::start([reply]).await;
        let error = ask_as(MODEL, &server, &request()).await.answer.unwrap_err();
        let seen = (error.kind, server.asked().len());
        assert_eq!(seen, (kind, tries), "{status} {body}");
        let message = body["error"]["message"].as_str().unwrap();
        assert!(error.message.contains(message), "{error}");
    }
}

#[tokio::test]
async fn the_wait_that_is_asked_for_in_the_body_is_heard() {
    let details =
        json!([{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7.5s"}]);
    let body = json!({"error": {"code": 429, "message": "Slow down.", "status": "RESOURCE_EXHAUSTED", "details": details}});
    let server = Server::start([Reply::status(429, body)]).await;
    let error = ask_as(MODEL, &server, &request()).await.answer.unwrap_err();
    assert_eq!(error.retry_after, Some(Duration::from_millis(7500)));
    // Longer than the longest wait, so it was not asked again.
    assert_eq!(server.asked().len(), 1);
}

#[tokio::test]
async fn names_are_sent_as_they_are_and_googles_own_tools_are_not_called() {
    let parts = json!([asks_for("urlContext_2", &json!({}))]);
    let server = Server::start([stream(&[last(&parts)])]).await;
    let mut request = request();
    request.tools = vec![tool("urlContext", "() --> IO Text")];
    let settings = HostedSettings {
        max_output_tokens: Some(50),
        ..super::support::settings(&server)
    };
    let model = model_of("Google/gemini-test-high", settings);
    let answer = ask(&model, &request).await.answer.unwrap();
    assert_eq!(answer.calls, [call("urlContext", json!({}))]);
    let asked = server.asked().remove(0);
    assert!(
        asked.path.starts_with("/v1/models/gemini-test-high:"),
        "{}",
        asked.path
    );
    assert_eq!(
        asked.body["generationConfig"],
        json!({"maxOutputTokens": 50})
    );
}
