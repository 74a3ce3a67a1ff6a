//! How refusals of a provider come out: their kind, what is said, whether it is asked again.

use std::time::Duration;

use serde_json::{Value, json};
use windlass_core::model::ModelErrorKind;
use windlass_model::{HostedModel, HostedSettings};

use super::server::{Reply, Server, delta};
use super::support::{KEY, ask, asked, keys, model, refused, request, settings, text};

fn refusal(message: &str) -> Value {
    json!({"error": {"message": message, "type": "whatever"}})
}

#[tokio::test]
async fn a_rate_limit_is_waited_for_as_long_as_was_asked() {
    let limited = Reply::status(429, refusal("Slow down.")).header("retry-after", "0");
    let server = Server::start([limited, Reply::text("Yes.")]).await;
    // A wait of its own would not end within the time limit.
    let settings = HostedSettings {
        first_wait: Duration::from_secs(600),
        longest_wait: Duration::from_secs(600),
        ..settings(&server)
    };
    let outcome = ask(&model(settings), &request()).await;
    assert_eq!(
        (outcome.answer.unwrap().text.as_str(), server.asked().len()),
        ("Yes.", 2)
    );
    assert_eq!(outcome.events[0], text("Yes."));
}

#[tokio::test]
async fn a_rate_limit_that_stays_is_an_error_after_three_tries() {
    let limited = Reply::status(429, refusal("Slow down.")).header("retry-after-ms", "5");
    let server = Server::start([limited]).await;
    let (error, tries) = refused(&server).await;
    assert_eq!((error.kind, tries), (ModelErrorKind::RateLimited, 3));
    assert_eq!(
        error.message,
        "OpenAI limits how often it is asked (429: Slow down.)."
    );
    assert_eq!(error.retry_after, Some(Duration::from_millis(5)));
}

#[tokio::test]
async fn a_provider_that_wants_a_long_wait_is_not_asked_again() {
    let server =
        Server::start([Reply::status(429, refusal("Slow down.")).header("retry-after", "7")]).await;
    let (error, tries) = refused(&server).await;
    let seven_seconds = Some(Duration::from_secs(7));
    assert_eq!((error.retry_after, tries), (seven_seconds, 1));
}

#[tokio::test]
async fn a_quota_that_is_used_up_is_not_asked_again() {
    let body =
        json!({"error": {"message": "You exceeded your quota.", "code": "insufficient_quota"}});
    let server = Server::start([Reply::status(429, body)]).await;
    let (error, tries) = refused(&server).await;
    assert_eq!((error.kind, tries), (ModelErrorKind::RateLimited, 1));
}

#[tokio::test]
async fn a_server_error_is_tried_again_and_then_told() {
    let down = || Reply::status(500, refusal("Oh no."));
    let server = Server::start([down(), down(), Reply::text("Yes.")]).await;
    assert_eq!(asked(&server).await.answer.unwrap().text, "Yes.");

    let server = Server::start([down()]).await;
    let (error, tries) = refused(&server).await;
    assert_eq!((error.kind, tries), (ModelErrorKind::Overloaded, 3));
    assert_eq!(
        error.message,
        "OpenAI cannot answer at the moment (500: Oh no.)."
    );
}

#[tokio::test]
async fn every_lasting_refusal_has_its_kind_and_is_not_tried_again() {
    let too_long = "This model's maximum context length is 8192 tokens.";
    let cases = [
        (
            401,
            refusal("No."),
            ModelErrorKind::Authentication,
            "OpenAI refused the key in OPENAI_API_KEY (401: No.).",
        ),
        (
            403,
            refusal("No."),
            ModelErrorKind::Authentication,
            "OpenAI refused the key in OPENAI_API_KEY (403: No.).",
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
        let server = Server::start([Reply::status(status, body)]).await;
        let (error, tries) = refused(&server).await;
        let seen = (error.kind, error.message.as_str(), tries);
        assert_eq!(seen, (kind, message, 1));
    }
}

#[tokio::test]
async fn an_unknown_model_is_named_with_where_it_was_looked_for() {
    let server = Server::start([Reply::status(404, refusal("The model does not exist"))]).await;
    let (error, _) = refused(&server).await;
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
async fn an_error_in_the_stream_has_its_kind_and_is_tried_again_only_before_anything_was_told() {
    let overloaded = json!({"error": {"message": "Overloaded", "type": "server_error"}});
    let server = Server::start([
        Reply::events(std::slice::from_ref(&overloaded)),
        Reply::text("Yes."),
    ])
    .await;
    assert_eq!(asked(&server).await.answer.unwrap().text, "Yes.");

    let begun = Reply::events(&[delta(json!({"content": "Rust"})), overloaded]);
    let server = Server::start([begun, Reply::text("Yes.")]).await;
    let outcome = asked(&server).await;
    let error = outcome.answer.unwrap_err();
    assert_eq!(
        (error.kind, outcome.events, server.asked().len()),
        (ModelErrorKind::Overloaded, vec![text("Rust")], 1)
    );
    assert_eq!(
        error.message,
        "OpenAI cannot answer at the moment (in the stream: Overloaded)."
    );
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unreachable() {
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
            .ends_with("(os error 111). Is the server running?"),
        "{}",
        error.message
    );
}

#[tokio::test]
async fn the_key_and_the_request_are_in_no_error_and_no_debug_output() {
    let echo = format!(
        "Incorrect API key provided: {KEY} and sk-proj-abcdefgh1234. {}",
        "What is Rust? ".repeat(1000)
    );
    let replies: [Reply; 4] = [
        Reply::status(401, refusal(&echo)),
        Reply::status(400, json!(echo)),
        Reply::events(&[refusal(&echo)]),
        Reply::stream()
            .chunk(format!("data: {echo}\n\n").as_bytes())
            .done(),
    ];
    for reply in replies {
        let server = Server::start([reply]).await;
        let model = model(settings(&server));
        let error = ask(&model, &request()).await.answer.unwrap_err();
        let shown = format!("{error} {error:?} {model:?}");
        assert!(
            !shown.contains(KEY) && !shown.contains("sk-proj"),
            "{shown}"
        );
        assert!(error.message.len() < 500, "{shown}");
        // The key was really sent, so this test would see it.
        assert!(
            server.asked()[0]
                .headers
                .contains(&format!("authorization: bearer {KEY}"))
        );
    }
}

#[test]
fn a_missing_key_is_told_by_the_name_of_its_variable() {
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
                format!("There is no key for {provider}. Set {variable} to one.")
            );
        }
        assert!(HostedModel::with_variables(&model, HostedSettings::default(), &keys).is_ok());
    }
}
