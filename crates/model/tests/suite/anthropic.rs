//! The Anthropic protocol.

use serde_json::json;
use windlass_core::model::{ModelErrorKind, RequestedArguments};

use super::server::{MockReply, MockServer};
use super::support::{KEY, Outcome, ask_as, call, call_event, longer_request, text};

async fn ask_server(server: &MockServer) -> Outcome {
    ask_as("Anthropic/claude-test", server, &longer_request()).await
}

fn started() -> MockReply {
    let usage = json!({"input_tokens": 20, "output_tokens": 1});
    MockReply::stream().named_event(
        "message_start",
        &json!({"type": "message_start", "message": {"usage": usage}}),
    )
}

fn block(
    reply: MockReply,
    index: u32,
    start: serde_json::Value,
    deltas: &[serde_json::Value],
) -> MockReply {
    let reply = reply.named_event(
        "content_block_start",
        &json!({"type": "content_block_start", "index": index, "content_block": start}),
    );
    deltas.iter().fold(reply, |reply, delta| {
        reply.named_event(
            "content_block_delta",
            &json!({"type": "content_block_delta", "index": index, "delta": delta}),
        )
    })
}

fn stopped(reply: MockReply, index: u32) -> MockReply {
    reply.named_event(
        "content_block_stop",
        &json!({"type": "content_block_stop", "index": index}),
    )
}

fn ended(reply: MockReply) -> MockReply {
    reply
        .named_event(
            "message_delta",
            &json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}}),
        )
        .named_event("message_stop", &json!({"type": "message_stop"}))
}

#[tokio::test]
async fn text_and_calls_are_parsed_and_the_request_has_the_right_form() {
    let reply = started().named_event("ping", &json!({"type": "ping"}));
    let deltas = [
        json!({"type": "text_delta", "text": "Let "}),
        json!({"type": "text_delta", "text": "me."}),
    ];
    let reply = stopped(
        block(reply, 0, json!({"type": "text", "text": ""}), &deltas),
        0,
    );
    let deltas = ["{\"query\":", " \"rust\"}"]
        .map(|part| json!({"type": "input_json_delta", "partial_json": part}));
    let start = json!({"type": "tool_use", "id": "t1", "name": "search", "input": {}});
    let reply = ended(stopped(block(reply, 1, start, &deltas), 1));
    let server = MockServer::start([reply]).await;
    let outcome = ask_server(&server).await;
    let answer = outcome.answer.unwrap();
    assert_eq!(
        (
            answer.text.as_str(),
            answer.usage.input_tokens,
            answer.usage.output_tokens
        ),
        ("Let me.", 20, 9)
    );
    assert_eq!(answer.calls, [call("search", json!({"query": "rust"}))]);
    assert_eq!(
        outcome.events[..3],
        [text("Let "), text("me."), call_event("search")]
    );

    let sent = server.requests().remove(0);
    assert_eq!(sent.path, "/v1/messages");
    assert!(
        sent.headers.contains(&format!("x-api-key: {KEY}")),
        "{}",
        sent.headers
    );
    insta::assert_snapshot!(serde_json::to_string_pretty(&sent.body).unwrap());
}

#[tokio::test]
async fn two_calls_are_parsed_and_one_without_arguments_has_an_empty_object() {
    let start =
        |id: &str, name: &str| json!({"type": "tool_use", "id": id, "name": name, "input": {}});
    let deltas = ["{\"query\":", " \"rust\"}"]
        .map(|part| json!({"type": "input_json_delta", "partial_json": part}));
    let reply = stopped(block(started(), 0, start("t1", "search"), &deltas), 0);
    let reply = stopped(block(reply, 1, start("t2", "search"), &[]), 1);
    let server = MockServer::start([ended(reply)]).await;
    let outcome = ask_server(&server).await;
    let wanted = [json!({"query": "rust"}), json!({})].map(|arguments| call("search", arguments));
    assert_eq!(outcome.answer.unwrap().calls, wanted);
    assert_eq!(
        outcome.events[..2],
        [call_event("search"), call_event("search")]
    );
}

#[tokio::test]
async fn truncated_arguments_are_kept_as_text() {
    let deltas = [json!({"type": "input_json_delta", "partial_json": "{\"query\": \"ru"})];
    let start = json!({"type": "tool_use", "id": "t1", "name": "search", "input": {}});
    let server = MockServer::start([ended(block(started(), 0, start, &deltas))]).await;
    let answer = ask_server(&server).await.answer.unwrap();
    assert_eq!(
        answer.calls[0].arguments,
        RequestedArguments::Text("{\"query\": \"ru".to_owned())
    );
}

#[tokio::test]
async fn an_overload_event_is_retried_and_a_truncated_stream_is_not() {
    let overloaded =
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    let server = MockServer::start([started().named_event("error", &overloaded)]).await;
    let error = ask_server(&server).await.answer.unwrap_err();
    let seen = (error.kind, server.requests().len());
    assert_eq!(seen, (ModelErrorKind::Overloaded, 3));
    assert_eq!(
        error.message,
        "Anthropic is unavailable at the moment (in the stream: Overloaded). Try again later."
    );

    let server = MockServer::start([started()]).await;
    let error = ask_server(&server).await.answer.unwrap_err();
    let seen = (error.kind, server.requests().len());
    assert_eq!(seen, (ModelErrorKind::Malformed, 1));
}

#[tokio::test]
async fn statuses_have_their_kinds() {
    let refusal =
        |message: &str| json!({"type": "error", "error": {"type": "x", "message": message}});
    for (status, message, kind) in [
        (529, "Overloaded", ModelErrorKind::Overloaded),
        (401, "invalid x-api-key", ModelErrorKind::Authentication),
        (404, "model: claude-test", ModelErrorKind::UnknownModel),
        (
            400,
            "prompt is too long: 210000 tokens > 200000 maximum",
            ModelErrorKind::ContextTooLong,
        ),
    ] {
        let server = MockServer::start([MockReply::status(status, refusal(message))]).await;
        assert_eq!(ask_server(&server).await.answer.unwrap_err().kind, kind);
    }
}
