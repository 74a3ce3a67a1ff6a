//! What a stream becomes, however it is cut into pieces.

use std::time::Duration;

use serde_json::json;
use tokio_util::sync::CancellationToken;
use windlass_core::model::{ModelErrorKind, RequestedArguments, Usage};
use windlass_model::{HostedSettings, ModelClient, ModelEvent};

use super::server::{Reply, Server, delta};
use super::support::{
    answer_to, ask, asked, call, called, model, refused, request, settings, text,
};

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
    let answer = answer_to(&events).await;
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
    let answer = answer_to(&events).await;
    assert_eq!(answer.calls, [call("search", json!({"query": "one"}))]);
}

#[tokio::test]
async fn calls_that_are_all_numbered_zero_are_not_joined() {
    let answer = answer_to(&[
        delta(json!({"tool_calls": [call_delta(0, "a", "search", "{\"query\":")]})),
        delta(json!({"tool_calls": [more(0, " \"one\"}")]})),
        delta(json!({"tool_calls": [call_delta(0, "b", "finish", "")]})),
        delta(json!({"tool_calls": [more(0, "{\"answer\": \"two\"}")]})),
    ])
    .await;
    let wanted = [
        call("search", json!({"query": "one"})),
        call("finish", json!({"answer": "two"})),
    ];
    assert_eq!(answer.calls, wanted);
}

#[tokio::test]
async fn calls_that_arrive_by_turns_are_told_apart_by_their_number() {
    let answer = answer_to(&[
        delta(json!({"tool_calls": [call_delta(0, "a", "search", "{\"query\":")]})),
        delta(json!({"tool_calls": [call_delta(1, "b", "search", "{\"query\":")]})),
        delta(json!({"tool_calls": [more(0, " \"{one\"}")]})),
        delta(json!({"tool_calls": [more(1, " \"two\\\"}\"}")]})),
    ])
    .await;
    let wanted = ["{one", "two\"}"].map(|query| call("search", json!({"query": query})));
    assert_eq!(answer.calls, wanted);
}

#[tokio::test]
async fn a_server_that_gives_no_ids_or_repeats_names_is_understood() {
    let unnamed = |arguments: &str| json!({"tool_calls": [{"index": 0, "function": {"name": "search", "arguments": arguments}}]});
    let pieces = ["{\"query\":", " \"one\"}", "{\"query\": \"two\"}"];
    let answer = answer_to(&pieces.map(|piece| delta(unnamed(piece)))).await;
    let wanted = ["one", "two"].map(|query| call("search", json!({"query": query})));
    assert_eq!(answer.calls, wanted);
}

#[tokio::test]
async fn a_number_that_is_far_too_high_costs_nothing() {
    // The library would make room for four thousand million calls.
    let answer = answer_to(&[
        delta(json!({"tool_calls": [call_delta(u32::MAX, "a", "search", "{\"query\":")]})),
        delta(json!({"tool_calls": [more(u32::MAX, " \"one\"}")]})),
    ])
    .await;
    assert_eq!(answer.calls, [call("search", json!({"query": "one"}))]);
}

#[tokio::test]
async fn more_calls_than_anyone_means_are_stopped() {
    let calls: Vec<_> = (0..129)
        .map(|number| call_delta(number, &format!("id{number}"), "search", "{}"))
        .collect();
    let server = Server::start([Reply::events(&[delta(json!({"tool_calls": calls}))])]).await;
    let (error, tries) = refused(&server).await;
    assert_eq!((error.kind, tries), (ModelErrorKind::Malformed, 1));
    assert_eq!(
        error.message,
        "The answer was stopped: it asks for more than 128 calls."
    );
}

#[tokio::test]
async fn an_answer_cut_off_at_its_length_is_refused_only_while_it_says_nothing() {
    let cut_off = |delta: serde_json::Value| json!({"choices": [{"delta": delta, "finish_reason": "length"}]});
    for nothing in [
        json!({"content": "{\"action\": \"fin"}),
        json!({"reasoning_content": "Hm."}),
    ] {
        let server = Server::start([Reply::events(&[cut_off(nothing)])]).await;
        let (error, tries) = refused(&server).await;
        assert_eq!((error.kind, tries), (ModelErrorKind::Malformed, 1));
        let message = "The answer broke off before it said anything: it was longer than it was \
                       allowed to be. Allow more output tokens, or ask for less at once.";
        assert_eq!(error.message, message);
    }
    let answer = answer_to(&[cut_off(json!({"content": "Rust is"}))]).await;
    assert_eq!(answer.text, "Rust is");
    let begun = json!({"tool_calls": [call_delta(0, "a", "search", "{\"que")]});
    assert_eq!(answer_to(&[cut_off(begun)]).await.calls.len(), 1);
}

#[tokio::test]
async fn cut_off_arguments_arrive_as_the_text_they_are() {
    let events = [delta(
        json!({"tool_calls": [call_delta(0, "a", "search", "{\"query\": \"ru")]}),
    )];
    let answer = answer_to(&events).await;
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
            format!(
                "The connection to OpenAI was cut before the answer was complete. Ask again; if \
                 it happens again, see whether the server at {}/ still runs.",
                server.url
            )
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
    let (error, _) = refused(&server).await;
    assert_eq!(error.kind, ModelErrorKind::Malformed);
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
