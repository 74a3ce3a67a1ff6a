//! What a stream becomes, however it is cut into pieces.

use std::time::Duration;

use serde_json::json;
use tokio_util::sync::CancellationToken;
use windlass_core::model::{ModelErrorKind, RequestedArguments, Usage};
use windlass_model::{HostedSettings, ModelClient, ModelEvent};

use super::server::{Reply, Server, delta};
use super::support::{ask, asked, call, called, model, request, settings, text};

/// Sets one of the limits.
type Limit = fn(&mut HostedSettings, Duration);

fn call_delta(index: u32, id: &str, name: &str, arguments: &str) -> serde_json::Value {
    json!({"index": index, "id": id, "function": {"name": name, "arguments": arguments}})
}

fn more(index: u32, arguments: &str) -> serde_json::Value {
    json!({"index": index, "function": {"arguments": arguments}})
}

#[tokio::test]
async fn text_is_told_while_it_arrives_and_usage_at_the_end() {
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15}});
    let events = [
        delta(json!({"content": "Rust is"})),
        delta(json!({"content": " a language."})),
        usage,
    ];
    let server = Server::start([Reply::events(&events)]).await;
    let outcome = asked(&server).await;
    let usage = Usage {
        input_tokens: 12,
        output_tokens: 3,
        microdollars: None,
    };
    let answer = outcome.answer.unwrap();
    assert_eq!(
        (answer.text.as_str(), answer.usage),
        ("Rust is a language.", usage)
    );
    assert_eq!(
        outcome.events,
        [
            text("Rust is"),
            text(" a language."),
            ModelEvent::Usage { usage }
        ]
    );
}

#[tokio::test]
async fn thoughts_are_told_apart_from_text() {
    let events = [
        delta(json!({"reasoning_content": "Hm."})),
        delta(json!({"content": "Yes."})),
    ];
    let answer = asked(&Server::start([Reply::events(&events)]).await)
        .await
        .answer
        .unwrap();
    assert_eq!(
        (answer.thought.as_deref(), answer.text.as_str()),
        (Some("Hm."), "Yes.")
    );
}

#[tokio::test]
async fn a_call_split_over_chunks_is_one_call_and_told_once() {
    let events = [
        delta(json!({"tool_calls": [call_delta(0, "a", "search", "")]})),
        delta(json!({"tool_calls": [more(0, "{\"que")]})),
        delta(json!({"tool_calls": [more(0, "ry\": \"ru")]})),
        delta(json!({"tool_calls": [more(0, "st\"}")]})),
    ];
    let outcome = asked(&Server::start([Reply::events(&events)]).await).await;
    assert_eq!(
        outcome.answer.unwrap().calls,
        [call("search", json!({"query": "rust"}))]
    );
    assert_eq!(outcome.events[..1], [called("search")]);
    assert_eq!(outcome.events.len(), 2, "{:?}", outcome.events);
}

#[tokio::test]
async fn two_calls_in_one_delta_are_two_calls() {
    let events = [delta(json!({"tool_calls": [
        call_delta(0, "a", "search", "{\"query\": \"one\"}"),
        call_delta(1, "b", "finish", "{\"answer\": \"two\"}"),
    ]}))];
    let outcome = asked(&Server::start([Reply::events(&events)]).await).await;
    let wanted = [
        call("search", json!({"query": "one"})),
        call("finish", json!({"answer": "two"})),
    ];
    assert_eq!(outcome.answer.unwrap().calls, wanted);
    assert_eq!(outcome.events[..2], [called("search"), called("finish")]);
}

#[tokio::test]
async fn calls_numbered_from_one_are_not_doubled() {
    let events = [
        delta(json!({"tool_calls": [call_delta(1, "a", "search", "{\"query\":")]})),
        delta(json!({"tool_calls": [more(1, " \"one\"}")]})),
    ];
    let answer = asked(&Server::start([Reply::events(&events)]).await)
        .await
        .answer
        .unwrap();
    assert_eq!(answer.calls, [call("search", json!({"query": "one"}))]);
}

#[tokio::test]
async fn calls_that_are_all_numbered_zero_are_not_joined() {
    let events = [
        delta(json!({"tool_calls": [call_delta(0, "a", "search", "{\"query\": \"one\"}")]})),
        delta(json!({"tool_calls": [call_delta(0, "b", "finish", "{\"answer\": \"two\"}")]})),
    ];
    let answer = asked(&Server::start([Reply::events(&events)]).await)
        .await
        .answer
        .unwrap();
    let wanted = [
        call("search", json!({"query": "one"})),
        call("finish", json!({"answer": "two"})),
    ];
    assert_eq!(answer.calls, wanted);
}

#[tokio::test]
async fn cut_off_arguments_arrive_as_the_text_they_are() {
    let events = [delta(
        json!({"tool_calls": [call_delta(0, "a", "search", "{\"query\": \"ru")]}),
    )];
    let answer = asked(&Server::start([Reply::events(&events)]).await)
        .await
        .answer
        .unwrap();
    assert_eq!(
        answer.calls[0].arguments,
        RequestedArguments::Text("{\"query\": \"ru".to_owned())
    );
}

#[tokio::test]
async fn a_character_split_over_chunks_arrives_whole() {
    let event = format!("data: {}\n\n", delta(json!({"content": "naïve 🦀"})));
    let bytes = event.as_bytes();
    let reply = bytes
        .iter()
        .fold(Reply::stream(), |reply, byte| reply.chunk(&[*byte]))
        .done();
    let answer = asked(&Server::start([reply]).await).await.answer.unwrap();
    assert_eq!(answer.text, "naïve 🦀");
}

#[tokio::test]
async fn a_connection_that_is_cut_is_no_answer_and_not_asked_again() {
    let begun = || Reply::stream().event(&delta(json!({"content": "Rust is"})));
    // Cut in the middle of the body, and an end that is none.
    for reply in [begun().cut(), begun()] {
        let server = Server::start([reply]).await;
        let outcome = asked(&server).await;
        let error = outcome.answer.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Malformed);
        assert_eq!(
            error.message,
            "The connection to OpenAI was cut before the answer was complete."
        );
        assert_eq!(
            (outcome.events, server.asked().len()),
            (vec![text("Rust is")], 1)
        );
    }
}

#[tokio::test]
async fn what_is_not_json_in_a_stream_is_malformed() {
    let server = Server::start([Reply::stream().chunk(b"data: <html>\n\n").done()]).await;
    assert_eq!(
        asked(&server).await.answer.unwrap_err().kind,
        ModelErrorKind::Malformed
    );
}

#[tokio::test]
async fn an_endless_stream_is_stopped() {
    let arguments = json!({"tool_calls": [more(0, "xxxxxxxxxxxxxxxx")]});
    for piece in [
        json!({"content": "and on "}),
        json!({"reasoning": "hm "}),
        arguments,
    ] {
        let server = Server::start([Reply::stream()
            .event(&delta(
                json!({"tool_calls": [call_delta(0, "a", "search", "")]}),
            ))
            .endless(&delta(piece))])
        .await;
        let settings = HostedSettings {
            longest_answer: 20_000,
            ..settings(&server)
        };
        let error = ask(&model(settings), &request()).await.answer.unwrap_err();
        assert_eq!(
            error.message,
            "The answer was stopped: it did not end within 20000 bytes."
        );
        server.until_hung_up().await;
    }
}

#[tokio::test]
async fn an_endless_stream_of_nothing_meets_the_time_limit() {
    let server = Server::start([Reply::stream().endless(&json!({"choices": []}))]).await;
    let settings = HostedSettings {
        idle_limit: Duration::from_millis(50),
        ..settings(&server)
    };
    let settings = HostedSettings {
        first_byte_limit: Duration::from_millis(50),
        ..settings
    };
    let error = ask(&model(settings), &request()).await.answer.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Timeout);
    server.until_hung_up().await;
}

#[tokio::test]
async fn a_slow_first_byte_a_pause_and_a_long_answer_each_have_their_limit() {
    let short = Duration::from_millis(50);
    let begun = || {
        Reply::stream()
            .event(&delta(json!({"content": "Rust is"})))
            .silence()
    };
    let cases: [(Reply, Limit, &str); 3] = [
        (
            Reply::stream().silence(),
            |s, short| s.first_byte_limit = short,
            "OpenAI did not begin to answer within 0.05 seconds.",
        ),
        (
            begun(),
            |s, short| s.idle_limit = short,
            "OpenAI paused its answer for 0.05 seconds.",
        ),
        (
            begun(),
            |s, short| s.time_limit = short,
            "OpenAI did not finish within 0.05 seconds.",
        ),
    ];
    for (reply, limit, message) in cases {
        let server = Server::start([reply]).await;
        let mut settings = settings(&server);
        limit(&mut settings, short);
        let error = ask(&model(settings), &request()).await.answer.unwrap_err();
        assert_eq!(
            (error.kind, error.message.as_str()),
            (ModelErrorKind::Timeout, message)
        );
        server.until_hung_up().await;
        assert_eq!(server.asked().len(), 1);
    }
}

#[tokio::test]
async fn cancelling_in_mid_stream_hangs_up_at_once() {
    let server = Server::start([Reply::stream()
        .event(&delta(json!({"content": "Rust is"})))
        .silence()])
    .await;
    let cancel = CancellationToken::new();
    // Cancelled by the first thing that is heard: no clock is needed.
    let stop = cancel.clone();
    let mut tell = move |_| stop.cancel();
    let error = model(settings(&server))
        .answer(&request(), &cancel, &mut tell)
        .await
        .unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Cancelled);
    server.until_hung_up().await;
}
