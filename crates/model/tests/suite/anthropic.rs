//! The same over Anthropic's protocol.

use serde_json::json;
use windlass_core::model::{ModelErrorKind, RequestedArguments};

use super::server::{Reply, Server};
use super::support::{KEY, Outcome, ask_as, call, called, longer_request, text};

async fn asked(server: &Server) -> Outcome {
    ask_as("Anthropic/claude-test", server, &longer_request()).await
}

fn started() -> Reply {
    let usage = json!({"input_tokens": 20, "output_tokens": 1});
    Reply::stream().named_event(
        "message_start",
        &json!({"type": "message_start", "message": {"usage": usage}}),
    )
}

fn block(
    reply: Reply,
    index: u32,
    start: serde_json::Value,
    deltas: &[serde_json::Value],
) -> Reply {
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

fn stopped(reply: Reply, index: u32) -> Reply {
    reply.named_event(
        "content_block_stop",
        &json!({"type": "content_block_stop", "index": index}),
    )
}

fn ended(reply: Reply) -> Reply {
    reply
        .named_event(
            "message_delta",
            &json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}}),
        )
        .named_event("message_stop", &json!({"type": "message_stop"}))
}

#[tokio::test]
async fn text_and_calls_arrive_and_the_request_is_as_it_must_be() {
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
    let server = Server::start([reply]).await;
    let outcome = asked(&server).await;
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
        [text("Let "), text("me."), called("search")]
    );

    let asked = server.asked().remove(0);
    assert_eq!(asked.path, "/v1/messages");
    assert!(
        asked.headers.contains(&format!("x-api-key: {KEY}")),
        "{}",
        asked.headers
    );
    insta::assert_snapshot!(serde_json::to_string_pretty(&asked.body).unwrap());
}

#[tokio::test]
async fn two_calls_are_two_calls_and_one_without_arguments_has_none() {
    let start =
        |id: &str, name: &str| json!({"type": "tool_use", "id": id, "name": name, "input": {}});
    let deltas = ["{\"query\":", " \"rust\"}"]
        .map(|part| json!({"type": "input_json_delta", "partial_json": part}));
    let reply = stopped(block(started(), 0, start("t1", "search"), &deltas), 0);
    let reply = stopped(block(reply, 1, start("t2", "search"), &[]), 1);
    let server = Server::start([ended(reply)]).await;
    let outcome = asked(&server).await;
    let wanted = [json!({"query": "rust"}), json!({})].map(|arguments| call("search", arguments));
    assert_eq!(outcome.answer.unwrap().calls, wanted);
    assert_eq!(outcome.events[..2], [called("search"), called("search")]);
}

#[tokio::test]
async fn a_call_cut_off_by_the_length_limit_is_text() {
    let deltas = [json!({"type": "input_json_delta", "partial_json": "{\"query\": \"ru"})];
    let start = json!({"type": "tool_use", "id": "t1", "name": "search", "input": {}});
    let server = Server::start([ended(block(started(), 0, start, &deltas))]).await;
    let answer = asked(&server).await.answer.unwrap();
    assert_eq!(
        answer.calls[0].arguments,
        RequestedArguments::Text("{\"query\": \"ru".to_owned())
    );
}

#[tokio::test]
async fn an_overload_in_the_stream_is_tried_again_and_a_cut_is_not() {
    let overloaded =
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    let server = Server::start([started().named_event("error", &overloaded)]).await;
    let error = asked(&server).await.answer.unwrap_err();
    let seen = (error.kind, server.asked().len());
    assert_eq!(seen, (ModelErrorKind::Overloaded, 3));
    assert_eq!(
        error.message,
        "Anthropic cannot answer at the moment (in the stream: Overloaded)."
    );

    let server = Server::start([started()]).await;
    let error = asked(&server).await.answer.unwrap_err();
    let seen = (error.kind, server.asked().len());
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
        let server = Server::start([Reply::status(status, refusal(message))]).await;
        assert_eq!(asked(&server).await.answer.unwrap_err().kind, kind);
    }
}
