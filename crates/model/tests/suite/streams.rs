//! Parsing of streams.

use std::time::Duration;

use serde_json::json;
use tokio_util::sync::CancellationToken;
use windlass_core::model::{ModelErrorKind, RequestedArguments, Usage};
use windlass_model::{HostedSettings, ModelClient, ModelEvent};

use super::server::{MockReply, MockServer, delta};
use super::support::{
    answer_to, ask, ask_server, call, call_event, error_and_attempts, model, request, settings,
    text,
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
async fn text_is_emitted_while_it_arrives_and_usage_at_the_end() {
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15}});
    let events = [
        delta(json!({"content": "Rust is"})),
        delta(json!({"content": " a language."})),
        usage,
    ];
    let server = MockServer::start([MockReply::events(&events)]).await;
    let outcome = ask_server(&server).await;
    let usage = Usage {
        input_tokens: 12,
        output_tokens: 3,
        ..Usage::default()
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
async fn thoughts_are_separated_from_text() {
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
async fn a_call_in_several_chunks_is_one_call_and_emitted_once() {
    let events = [
        delta(json!({"tool_calls": [call_delta(0, "a", "search", "")]})),
        delta(json!({"tool_calls": [more(0, "{\"que")]})),
        delta(json!({"tool_calls": [more(0, "ry\": \"ru")]})),
        delta(json!({"tool_calls": [more(0, "st\"}")]})),
    ];
    let outcome = ask_server(&MockServer::start([MockReply::events(&events)]).await).await;
    assert_eq!(
        outcome.answer.unwrap().calls,
        [call("search", json!({"query": "rust"}))]
    );
    assert_eq!(outcome.events[..1], [call_event("search")]);
    assert_eq!(outcome.events.len(), 2, "{:?}", outcome.events);
}

#[tokio::test]
async fn two_calls_in_one_delta_are_parsed() {
    let events = [delta(json!({"tool_calls": [
        call_delta(0, "a", "search", "{\"query\": \"one\"}"),
        call_delta(1, "b", "finish", "{\"answer\": \"two\"}"),
    ]}))];
    let outcome = ask_server(&MockServer::start([MockReply::events(&events)]).await).await;
    let wanted = [
        call("search", json!({"query": "one"})),
        call("finish", json!({"answer": "two"})),
    ];
    assert_eq!(outcome.answer.unwrap().calls, wanted);
    assert_eq!(
        outcome.events[..2],
        [call_event("search"), call_event("finish")]
    );
}

#[tokio::test]
async fn calls_numbered_from_one_are_not_duplicated() {
    let events = [
        delta(json!({"tool_calls": [call_delta(1, "a", "search", "{\"query\":")]})),
        delta(json!({"tool_calls": [more(1, " \"one\"}")]})),
    ];
    let answer = answer_to(&events).await;
    assert_eq!(answer.calls, [call("search", json!({"query": "one"}))]);
}

#[tokio::test]
async fn calls_that_are_all_numbered_zero_are_not_merged() {
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
async fn interleaved_calls_are_distinguished_by_their_number() {
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
async fn calls_without_ids_and_with_repeated_names_are_parsed() {
    let unnamed = |arguments: &str| json!({"tool_calls": [{"index": 0, "function": {"name": "search", "arguments": arguments}}]});
    let pieces = ["{\"query\":", " \"one\"}", "{\"query\": \"two\"}"];
    let answer = answer_to(&pieces.map(|piece| delta(unnamed(piece)))).await;
    let wanted = ["one", "two"].map(|query| call("search", json!({"query": query})));
    assert_eq!(answer.calls, wanted);
}

#[tokio::test]
async fn a_huge_call_number_allocates_nothing() {
    // Not one call for each number below.
    let answer = answer_to(&[
        delta(json!({"tool_calls": [call_delta(u32::MAX, "a", "search", "{\"query\":")]})),
        delta(json!({"tool_calls": [more(u32::MAX, " \"one\"}")]})),
    ])
    .await;
    assert_eq!(answer.calls, [call("search", json!({"query": "one"}))]);
}

#[tokio::test]
async fn too_many_calls_are_stopped() {
    let calls: Vec<_> = (0..129)
        .map(|number| call_delta(number, &format!("id{number}"), "search", "{}"))
        .collect();
    let server =
        MockServer::start([MockReply::events(&[delta(json!({"tool_calls": calls}))])]).await;
    let (error, tries) = error_and_attempts(&server).await;
    assert_eq!((error.kind, tries), (ModelErrorKind::Malformed, 1));
    assert_eq!(
        error.message,
        "The answer was stopped: it requests more than 128 calls. Ask for fewer steps at once."
    );
}

#[tokio::test]
async fn an_answer_cut_off_at_the_token_limit_is_refused_only_without_content() {
    let cut_off = |delta: serde_json::Value| json!({"choices": [{"delta": delta, "finish_reason": "length"}]});
    for nothing in [
        json!({"content": "{\"action\": \"fin"}),
        json!({"reasoning_content": "Hm."}),
    ] {
        let server = MockServer::start([MockReply::events(&[cut_off(nothing)])]).await;
        let (error, tries) = error_and_attempts(&server).await;
        assert_eq!((error.kind, tries), (ModelErrorKind::Malformed, 1));
        let message = "The answer was cut off at the output token limit before it contained \
                       anything usable. Allow more output tokens, or ask for less at once.";
        assert_eq!(error.message, message);
    }
    let answer = answer_to(&[cut_off(json!({"content": "Rust is"}))]).await;
    assert_eq!(answer.text, "Rust is");
    let begun = json!({"tool_calls": [call_delta(0, "a", "search", "{\"que")]});
    assert_eq!(answer_to(&[cut_off(begun)]).await.calls.len(), 1);
}

#[tokio::test]
async fn truncated_arguments_are_kept_as_text() {
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
async fn a_character_split_over_chunks_is_complete() {
    let event = format!("data: {}\n\n", delta(json!({"content": "naïve 🦀"})));
    let bytes = event.as_bytes();
    let reply = bytes
        .iter()
        .fold(MockReply::stream(), |reply, byte| reply.chunk(&[*byte]))
        .done();
    let answer = ask_server(&MockServer::start([reply]).await)
        .await
        .answer
        .unwrap();
    assert_eq!(answer.text, "naïve 🦀");
}

#[tokio::test]
async fn a_lost_connection_is_an_error_and_not_retried() {
    let begun = || MockReply::stream().event(&delta(json!({"content": "Rust is"})));
    // A disconnect in the middle of the body, and an end without an end event.
    for reply in [begun().cut(), begun()] {
        let server = MockServer::start([reply]).await;
        let outcome = ask_server(&server).await;
        let error = outcome.answer.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Malformed);
        assert_eq!(
            error.message,
            format!(
                "The connection to OpenAI was lost before the answer was complete. Try again; if \
                 it happens again, check whether the server at {}/ still runs.",
                server.url
            )
        );
        assert_eq!(
            (outcome.events, server.requests().len()),
            (vec![text("Rust is")], 1)
        );
    }
}

#[tokio::test]
async fn an_answer_that_has_stopped_needs_no_sign_of_its_end() {
    let stopped = json!({"choices": [{"delta": {"content": "Yes."}, "finish_reason": "stop"}]});
    // Nor does the last event need an empty line after it.
    let line = format!("data: {stopped}");
    for reply in [
        MockReply::stream().event(&stopped),
        MockReply::stream().chunk(line.as_bytes()),
    ] {
        let server = MockServer::start([reply]).await;
        assert_eq!(ask_server(&server).await.answer.unwrap().text, "Yes.");
    }
}

#[tokio::test]
async fn an_error_instead_of_a_stream_is_read() {
    let body = json!({"error": {"message": "Slow down.", "type": "rate_limit_error"}});
    let server = MockServer::start([MockReply::status(200, body)]).await;
    let (error, tries) = error_and_attempts(&server).await;
    assert_eq!((error.kind, tries), (ModelErrorKind::RateLimited, 3));

    let server = MockServer::start([MockReply::status(200, json!("<html>"))]).await;
    let (error, _) = error_and_attempts(&server).await;
    let message = "sent an unexpected response. Check that the address is that of a model server.";
    assert!(error.message.ends_with(message), "{error}");
}

#[tokio::test]
async fn arguments_that_are_no_text_and_unexpected_types_are_accepted() {
    let answer = answer_to(&[
        json!({"choices": null, "usage": "none", "error": ""}),
        delta(json!({"content": null, "reasoning": {"a": [1]}, "refusal": 7})),
        delta(json!({"tool_calls": [{"index": null, "id": 5, "function": {"name": "search", "arguments": {"query": "one"}}}]})),
    ])
    .await;
    assert_eq!(answer.calls, [call("search", json!({"query": "one"}))]);
    assert_eq!(answer.thought, None);
}

#[tokio::test]
async fn invalid_json_in_a_stream_is_malformed() {
    let server = MockServer::start([MockReply::stream().chunk(b"data: <html>\n\n").done()]).await;
    let (error, _) = error_and_attempts(&server).await;
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
        let server = MockServer::start([MockReply::stream()
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
            "The answer was stopped: it is longer than 20000 bytes. Ask for less at once."
        );
        server.until_disconnected().await;
    }
}

#[tokio::test]
async fn an_endless_stream_without_content_times_out() {
    let server = MockServer::start([MockReply::stream().endless(&json!({"choices": []}))]).await;
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
    server.until_disconnected().await;
}

#[tokio::test]
async fn first_byte_pause_and_total_time_have_their_limits() {
    let short = Duration::from_millis(50);
    let begun = || {
        MockReply::stream()
            .event(&delta(json!({"content": "Rust is"})))
            .silence()
    };
    let cases: [(MockReply, Limit, &str); 3] = [
        (
            MockReply::stream().silence(),
            |s, short| s.first_byte_limit = short,
            "OpenAI did not start to answer within 0.05 seconds.",
        ),
        (
            begun(),
            |s, short| s.idle_limit = short,
            "OpenAI paused its answer for 0.05 seconds.",
        ),
        (
            begun(),
            |s, short| s.time_limit = short,
            "OpenAI did not finish its answer within 0.05 seconds.",
        ),
    ];
    for (reply, limit, message) in cases {
        let server = MockServer::start([reply]).await;
        let mut settings = settings(&server);
        limit(&mut settings, short);
        let error = ask(&model(settings), &request()).await.answer.unwrap_err();
        assert_eq!(
            (error.kind, error.message.as_str()),
            (ModelErrorKind::Timeout, message)
        );
        server.until_disconnected().await;
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn cancelling_during_the_stream_disconnects_at_once() {
    let server = MockServer::start([MockReply::stream()
        .event(&delta(json!({"content": "Rust is"})))
        .silence()])
    .await;
    let cancel = CancellationToken::new();
    // Cancelled by the first event, so no timer is needed.
    let stop = cancel.clone();
    let mut emit = move |_| stop.cancel();
    let error = model(settings(&server))
        .answer(&request(), &cancel, &mut emit)
        .await
        .unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Cancelled);
    server.until_disconnected().await;
}
