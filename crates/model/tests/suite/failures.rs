//! Errors of providers: their kind, their message, and whether the request is retried.

use std::time::Duration;

use serde_json::{Value, json};
use windlass_core::model::ModelErrorKind;
use windlass_model::{HostedModel, HostedSettings};

use super::server::{MockReply, MockServer, delta};
use super::support::{
    KEY, ask, ask_server, error_and_attempts, keys, model, request, settings, text,
};

fn refusal(message: &str) -> Value {
    json!({"error": {"message": message, "type": "whatever"}})
}

#[tokio::test]
async fn a_retry_waits_as_long_as_the_provider_asks() {
    let limited = MockReply::status(429, refusal("Slow down.")).header("retry-after", "0");
    let server = MockServer::start([limited, MockReply::text("Yes.")]).await;
    // The default wait would not end within the time limit.
    let settings = HostedSettings {
        first_wait: Duration::from_secs(600),
        longest_wait: Duration::from_secs(600),
        ..settings(&server)
    };
    let outcome = ask(&model(settings), &request()).await;
    assert_eq!(
        (
            outcome.answer.unwrap().text.as_str(),
            server.requests().len()
        ),
        ("Yes.", 2)
    );
    assert_eq!(outcome.events[0], text("Yes."));
}

#[tokio::test]
async fn a_persistent_rate_limit_is_an_error_after_three_attempts() {
    let limited = MockReply::status(429, refusal("Slow down.")).header("retry-after-ms", "5");
    let server = MockServer::start([limited]).await;
    let (error, tries) = error_and_attempts(&server).await;
    assert_eq!((error.kind, tries), (ModelErrorKind::RateLimited, 3));
    assert_eq!(
        error.message,
        "OpenAI limits the request rate (429: Slow down.)."
    );
    assert_eq!(error.retry_after, Some(Duration::from_millis(5)));
}

#[tokio::test]
async fn a_long_retry_after_is_not_waited_for() {
    let server = MockServer::start([
        MockReply::status(429, refusal("Slow down.")).header("retry-after", "7")
    ])
    .await;
    let (error, tries) = error_and_attempts(&server).await;
    let seven_seconds = Some(Duration::from_secs(7));
    assert_eq!((error.retry_after, tries), (seven_seconds, 1));
}

#[tokio::test]
async fn an_exhausted_quota_is_not_retried() {
    let body =
        json!({"error": {"message": "You exceeded your quota.", "code": "insufficient_quota"}});
    let server = MockServer::start([MockReply::status(429, body)]).await;
    let (error, tries) = error_and_attempts(&server).await;
    assert_eq!((error.kind, tries), (ModelErrorKind::RateLimited, 1));
}

#[tokio::test]
async fn a_server_error_is_retried_and_then_reported() {
    let down = || MockReply::status(500, refusal("Oh no."));
    let server = MockServer::start([down(), down(), MockReply::text("Yes.")]).await;
    assert_eq!(ask_server(&server).await.answer.unwrap().text, "Yes.");

    let server = MockServer::start([down()]).await;
    let (error, tries) = error_and_attempts(&server).await;
    assert_eq!((error.kind, tries), (ModelErrorKind::Overloaded, 3));
    assert_eq!(
        error.message,
        "OpenAI is unavailable at the moment (500: Oh no.). Try again later."
    );
}

#[tokio::test]
async fn permanent_errors_have_their_kind_and_are_not_retried() {
    let too_long = "This model's maximum context length is 8192 tokens.";
    let cases = [
        (
            401,
            refusal("No."),
            ModelErrorKind::Authentication,
            "OpenAI refused the key in `OPENAI_API_KEY` (401: No.).",
        ),
        (
            403,
            refusal("No."),
            ModelErrorKind::Authentication,
            "OpenAI refused the key in `OPENAI_API_KEY` (403: No.).",
        ),
        (
            400,
            refusal(too_long),
            ModelErrorKind::ContextTooLong,
            "The conversation is too long for test-model (400: This model's maximum context length is 8192 tokens.).",
        ),
        (
            400,
            json!({"error": {"code": 400, "message": "the request exceeds the available context size", "type": "exceed_context_size_error"}}),
            ModelErrorKind::ContextTooLong,
            "The conversation is too long for test-model (400: the request exceeds the available context size).",
        ),
        (
            422,
            refusal("Odd."),
            ModelErrorKind::Malformed,
            "OpenAI did not accept the request (422: Odd.).",
        ),
        (
            302,
            json!("<html>"),
            ModelErrorKind::Malformed,
            "OpenAI did not accept the request (302: \"<html>\").",
        ),
    ];
    for (status, body, kind, message) in cases {
        let server = MockServer::start([MockReply::status(status, body)]).await;
        let (error, tries) = error_and_attempts(&server).await;
        let seen = (error.kind, error.message.as_str(), tries);
        assert_eq!(seen, (kind, message, 1));
    }
}

#[tokio::test]
async fn the_error_for_an_unknown_model_names_model_and_address() {
    let server =
        MockServer::start([MockReply::status(404, refusal("The model does not exist"))]).await;
    let (error, _) = error_and_attempts(&server).await;
    assert_eq!(error.kind, ModelErrorKind::UnknownModel);
    assert_eq!(
        error.message,
        format!(
            "OpenAI has no model `test-model` at {}/ (404: The model does not exist). Check the name and the address.",
            server.url
        )
    );
}

#[tokio::test]
async fn an_error_event_is_retried_only_before_the_first_event() {
    let overloaded = json!({"error": {"message": "Overloaded", "type": "server_error"}});
    let server = MockServer::start([
        MockReply::events(std::slice::from_ref(&overloaded)),
        MockReply::text("Yes."),
    ])
    .await;
    assert_eq!(ask_server(&server).await.answer.unwrap().text, "Yes.");

    let begun = MockReply::events(&[delta(json!({"content": "Rust"})), overloaded]);
    let server = MockServer::start([begun, MockReply::text("Yes.")]).await;
    let outcome = ask_server(&server).await;
    let error = outcome.answer.unwrap_err();
    assert_eq!(
        (error.kind, outcome.events, server.requests().len()),
        (ModelErrorKind::Overloaded, vec![text("Rust")], 1)
    );
    assert_eq!(
        error.message,
        "OpenAI is unavailable at the moment (in the stream: Overloaded). Try again later."
    );
}

#[tokio::test]
async fn a_missing_server_is_unreachable() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    let wait = Duration::from_millis(1);
    let settings = HostedSettings {
        base_url: Some(url.clone()),
        first_wait: wait,
        ..HostedSettings::default()
    };
    let error = ask(&model(settings), &request()).await.answer.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Unreachable);
    let message = format!("OpenAI could not be reached at {url}/: ");
    assert!(error.message.starts_with(&message), "{}", error.message);
    assert!(
        error
            .message
            .ends_with("(os error 111). Check that the server is running."),
        "{}",
        error.message
    );
}

#[tokio::test]
async fn errors_and_debug_output_contain_neither_the_key_nor_the_request() {
    let echo = format!(
        "Incorrect API key provided: {KEY} and sk-proj-abcdefgh1234. {}",
        "What is Rust? ".repeat(1000)
    );
    let replies: [MockReply; 4] = [
        MockReply::status(401, refusal(&echo)),
        MockReply::status(400, json!(echo)),
        MockReply::events(&[refusal(&echo)]),
        MockReply::stream()
            .chunk(format!("data: {echo}\n\n").as_bytes())
            .done(),
    ];
    for reply in replies {
        let server = MockServer::start([reply]).await;
        let model = model(settings(&server));
        let error = ask(&model, &request()).await.answer.unwrap_err();
        let shown = format!("{error} {error:?} {model:?}");
        assert!(
            !shown.contains(KEY) && !shown.contains("sk-proj"),
            "{shown}"
        );
        assert!(error.message.len() < 500, "{shown}");
        // The key was sent, so the server could echo it.
        assert!(
            server.requests()[0]
                .headers
                .contains(&format!("authorization: bearer {KEY}"))
        );
    }
}

#[test]
fn the_error_for_a_missing_key_names_its_variable() {
    for (model, variable) in [
        ("OpenAI/x", "OPENAI_API_KEY"),
        ("Anthropic/x", "ANTHROPIC_API_KEY"),
        ("Google/x", "GEMINI_API_KEY"),
    ] {
        let model = model.parse().unwrap();
        for empty in [None, Some(String::new())] {
            let error =
                HostedModel::with_variables(&model, HostedSettings::default(), &|_| empty.clone())
                    .unwrap_err();
            assert_eq!(error.kind, ModelErrorKind::Authentication);
            let provider = model.provider().as_str();
            assert_eq!(
                error.message,
                format!("The key for {provider} is missing. Set `{variable}`.")
            );
        }
        assert!(HostedModel::with_variables(&model, HostedSettings::default(), &keys).is_ok());
    }
}
