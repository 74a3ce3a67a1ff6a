//! Replays responses in the form that each provider documents (`tests/wire`).

use std::time::Duration;

use serde_json::json;
use windlass_core::model::{ModelErrorKind, RequestedCall};
use windlass_model::{HostedSettings, ModelError};

use super::server::{MockReply, MockServer};
use super::support::{Outcome, ask, call, call_event, model_of, request, settings, text};

/// The model that a file's protocol is used with.
fn model_name(file: &str) -> &'static str {
    match file.split('-').next() {
        Some("openai") => "OpenAI/gpt-4.1-mini",
        Some("responses") => "OpenAI/gpt-5-codex",
        Some("anthropic") => "Anthropic/claude-sonnet-4-5",
        Some("gemini") => "Google/gemini-3-flash",
        Some("ollama") => "Ollama/llama3.2",
        _ => "my-lab/some-model",
    }
}

fn reply(file: &str) -> MockReply {
    let path = format!("{}/tests/wire/{file}.http", env!("CARGO_MANIFEST_DIR"));
    let response = std::fs::read_to_string(path).unwrap();
    let (head, body) = response.split_once("\n\n").unwrap();
    let head = format!("{}\r\n\r\n", head.replace('\n', "\r\n"));
    MockReply::raw()
        .chunk(head.as_bytes())
        .chunk(body.as_bytes())
}

async fn replay(file: &str) -> (Outcome, usize) {
    let server = MockServer::start([reply(file)]).await;
    let settings = HostedSettings {
        tries: 2,
        ..settings(&server)
    };
    let outcome = ask(&model_of(model_name(file), settings), &request()).await;
    (outcome, server.requests().len())
}

async fn error(file: &str) -> (ModelError, usize) {
    let (outcome, tries) = replay(file).await;
    (outcome.answer.unwrap_err(), tries)
}

fn two_calls() -> [RequestedCall; 2] {
    [
        call("search", json!({"query": "one"})),
        call("search", json!({"query": "two", "limit": 3})),
    ]
}

#[tokio::test]
async fn streamed_text_and_usage() {
    for (file, input, output) in [
        ("openai-text", 19, 6),
        ("responses-text", 20, 12),
        ("anthropic-text", 2125, 15),
        ("gemini-text", 24, 19),
    ] {
        let (outcome, _) = replay(file).await;
        let answer = outcome.answer.unwrap();
        assert_eq!(answer.text, "Rust is a language.", "{file}");
        let usage = (answer.usage.input_tokens, answer.usage.output_tokens);
        assert_eq!(usage, (input, output), "{file}");
        for part in [text("Rust is"), text(" a language.")] {
            assert!(outcome.events.contains(&part), "{file}");
        }
    }
}

#[tokio::test]
async fn parallel_calls_with_partial_arguments() {
    for (file, input, output) in [
        ("openai-calls", 61, 44),
        ("responses-calls", 60, 40),
        ("anthropic-calls", 2125, 89),
        ("gemini-calls", 24, 19),
        ("ollama-calls", 165, 37),
        ("vllm-calls", 90, 30),
    ] {
        let (outcome, _) = replay(file).await;
        let answer = outcome.answer.unwrap();
        assert_eq!(answer.calls, two_calls(), "{file}");
        let usage = (answer.usage.input_tokens, answer.usage.output_tokens);
        assert_eq!(usage, (input, output), "{file}");
        let calls = outcome.events.iter();
        let calls = calls.filter(|event| **event == call_event("search"));
        assert_eq!(calls.count(), 2, "{file}");
    }
}

#[tokio::test]
async fn reasoning_is_kept_apart_from_text() {
    for file in [
        "openai-reasoning",
        "anthropic-thinking",
        "gemini-thinking",
        "mistral-thinking",
    ] {
        let answer = replay(file).await.0.answer.unwrap();
        let seen = (answer.thought.as_deref(), answer.text.as_str());
        assert_eq!(seen, (Some("First I compare."), "Rust."), "{file}");
    }
    let answer = replay("responses-text").await.0.answer.unwrap();
    assert_eq!(answer.thought.as_deref(), Some("**Comparing**"));
}

#[tokio::test]
async fn refused_requests() {
    for (file, kind) in [
        ("openai-400", ModelErrorKind::Malformed),
        ("openai-401", ModelErrorKind::Authentication),
        ("openai-quota", ModelErrorKind::RateLimited),
        ("responses-400", ModelErrorKind::Malformed),
        ("responses-incomplete", ModelErrorKind::Malformed),
        ("anthropic-400", ModelErrorKind::Malformed),
        ("anthropic-401", ModelErrorKind::Authentication),
        ("gemini-400", ModelErrorKind::Malformed),
        ("gemini-401", ModelErrorKind::Authentication),
        ("gemini-blocked", ModelErrorKind::Malformed),
    ] {
        let (error, tries) = error(file).await;
        assert_eq!((error.kind, tries), (kind, 1), "{file}: {error}");
    }
    let (blocked, _) = error("gemini-blocked").await;
    assert_eq!(
        blocked.message,
        "Google did not accept the request (PROHIBITED_CONTENT). Change what is asked."
    );
}

#[tokio::test]
async fn limited_and_overloaded_providers() {
    for (file, wait) in [
        ("openai-429", 20_000),
        ("anthropic-429", 37_000),
        ("gemini-429", 28_500),
    ] {
        let (error, tries) = error(file).await;
        // Longer than the longest wait, so there is no retry.
        assert_eq!((error.kind, tries), (ModelErrorKind::RateLimited, 1));
        assert_eq!(
            error.retry_after,
            Some(Duration::from_millis(wait)),
            "{file}"
        );
    }
    for file in [
        "anthropic-529",
        "anthropic-overloaded",
        "gemini-503",
        "responses-failed",
    ] {
        let (error, tries) = error(file).await;
        assert_eq!(
            (error.kind, tries),
            (ModelErrorKind::Overloaded, 2),
            "{file}: {error}"
        );
    }
    let (failed, _) = error("responses-failed").await;
    assert_eq!(
        failed.message,
        "OpenAI is unavailable at the moment (in the stream: The model failed to generate a response.). Try again later."
    );
}
