//! Servers that try to exhaust the client. Every limit has its own error, and every one of these servers is
//! disconnected.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use windlass_core::model::ModelErrorKind;
use windlass_model::{
    AnswerLimits, Dialect, ExceededLimit, HostedSettings, ModelClient, ModelError,
};

use super::server::{MockReply, MockServer, delta};
use super::support::{KEY, ask, ask_as, ask_server, model, model_of, request, settings};

/// Bytes of gzip that would expand to a thousand times as many.
const COMPRESSED: &[u8] = &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0xed, 0xc1, 1, 1];

/// Small limits, so that the tests are fast.
fn limits() -> AnswerLimits {
    AnswerLimits {
        stream_bytes: 100_000,
        line_bytes: 10_000,
        events: 1_000,
        error_bytes: 5_000,
        calls: 8,
        argument_bytes: 20_000,
    }
}

fn small(server: &MockServer) -> HostedSettings {
    HostedSettings {
        limits: limits(),
        longest_answer: 50_000,
        ..settings(server)
    }
}

/// The error for a reply, and that the server was disconnected.
async fn error_of(reply: MockReply) -> ModelError {
    let server = MockServer::start([reply]).await;
    let error = ask(&model(small(&server)), &request())
        .await
        .answer
        .unwrap_err();
    server.until_disconnected().await;
    assert_eq!(server.requests().len(), 1, "{error}");
    error
}

async fn exceeded(reply: MockReply) -> ExceededLimit {
    let error = error_of(reply).await;
    let limit = error.exceeded.unwrap_or_else(|| panic!("{error}"));
    assert_eq!(
        (error.kind, error.message),
        (ModelErrorKind::Malformed, limit.to_string())
    );
    limit
}

#[tokio::test]
async fn an_endless_line_is_stopped() {
    for line in [
        &b"data: xxxxxxxx"[..],
        b"xxxxxxxx",
        b"data: \"\\\"",
        b": no",
    ] {
        let reply = MockReply::stream().chunk(line).endless_bytes(b"xxxxxxxx");
        assert_eq!(exceeded(reply).await, ExceededLimit::LineBytes(10_000));
    }
}

#[tokio::test]
async fn an_endless_event_of_many_lines_is_stopped() {
    let reply = MockReply::stream().endless_bytes(b"data: xxxxxxxx\n");
    assert_eq!(exceeded(reply).await, ExceededLimit::LineBytes(10_000));
}

#[tokio::test]
async fn endless_comments_empty_lines_and_events_are_stopped() {
    let comments = MockReply::stream().endless_bytes(b": still here\n\n");
    assert_eq!(exceeded(comments).await, ExceededLimit::Events(1_000));
    let pings = MockReply::stream().endless(&json!({"choices": []}));
    assert_eq!(exceeded(pings).await, ExceededLimit::Events(1_000));
    let lines = MockReply::stream().endless_bytes(b"\n\n\n\n\n\n\n\n\n\n");
    assert_eq!(exceeded(lines).await, ExceededLimit::StreamBytes(100_000));
}

#[tokio::test]
async fn a_stream_of_padded_events_is_stopped() {
    let padded = json!({"choices": [], "padding": "x".repeat(5_000)});
    let reply = MockReply::stream().endless(&padded);
    assert_eq!(exceeded(reply).await, ExceededLimit::StreamBytes(100_000));
}

#[tokio::test]
async fn an_endless_answer_is_stopped_without_waiting_for_its_end() {
    let reply = MockReply::stream().endless(&delta(json!({"content": "x".repeat(3_000)})));
    assert_eq!(exceeded(reply).await, ExceededLimit::AnswerBytes(50_000));
}

#[tokio::test]
async fn too_many_calls_and_too_long_arguments_are_stopped() {
    let call = |number: usize| json!({"tool_calls": [{"index": number, "id": format!("a{number}"), "function": {"name": "search", "arguments": "{}"}}]});
    let many = (0..20).fold(MockReply::stream(), |reply, number| {
        reply.event(&delta(call(number)))
    });
    let limit = exceeded(many.endless(&delta(call(30)))).await;
    assert_eq!(limit, ExceededLimit::Calls(8));

    let more = json!({"tool_calls": [{"index": 0, "function": {"arguments": "x".repeat(1_000)}}]});
    let long = MockReply::stream()
        .event(&delta(call(0)))
        .endless(&delta(more));
    assert_eq!(exceeded(long).await, ExceededLimit::ArgumentBytes(20_000));
}

#[tokio::test]
async fn calls_written_as_text_are_counted_too() {
    let text = r#"{"action": "call_tool", "tool_name": "search", "tool_args": {}}"#;
    let reply = MockReply::text(&[text; 20].join("\n"));
    let server = MockServer::start([reply]).await;
    let error = ask(&model(small(&server)), &request())
        .await
        .answer
        .unwrap_err();
    assert_eq!(error.exceeded, Some(ExceededLimit::Calls(8)));
}

#[tokio::test]
async fn deeply_nested_json_is_stopped() {
    let deep = format!("{{\"a\":{}", "[".repeat(4_000));
    let arguments = json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "search", "arguments": deep}}]});
    let reply = MockReply::stream().event(&delta(arguments)).silence();
    assert_eq!(exceeded(reply).await, ExceededLimit::Depth(128));

    // Google sends arguments as JSON, not as text.
    let nested = format!("{}{}", "[".repeat(1_000), "]".repeat(1_000));
    let event = format!(
        "data: {{\"candidates\": [{{\"content\": {{\"parts\": [{{\"functionCall\": {{\"name\": \"search\", \"args\": {nested}}}}}]}}}}]}}\n\n"
    );
    let server = MockServer::start([MockReply::stream().chunk(event.as_bytes()).silence()]).await;
    let error = ask_as("Google/g", &server, &request()).await;
    let error = error.answer.unwrap_err();
    assert_eq!(error.exceeded, Some(ExceededLimit::Depth(128)), "{error}");

    // Where it is ignored, it does no harm.
    let event = format!("data: {{\"choices\": [], \"deep\": {nested}}}\n\n");
    let server = MockServer::start([MockReply::stream()
        .chunk(event.as_bytes())
        .event(&delta(json!({"content": "Yes."})))
        .done()])
    .await;
    assert_eq!(ask_server(&server).await.answer.unwrap().text, "Yes.");
}

#[tokio::test]
async fn text_full_of_brackets_is_read_in_linear_time() {
    for text in ["{", "[", "{\"a\":", "```json\n{", "<tool_call>{"] {
        let text = text.repeat(200_000 / text.len());
        let events: Vec<Value> = text
            .as_bytes()
            .chunks(50_000)
            .map(|part| delta(json!({"content": str::from_utf8(part).unwrap()})))
            .collect();
        let server = MockServer::start([MockReply::events(&events)]).await;
        let started = Instant::now();
        let _ = ask_server(&server).await;
        assert!(started.elapsed() < Duration::from_secs(5), "{text:.20}");
    }
}

#[tokio::test]
async fn an_endless_error_is_cut_and_its_status_reported() {
    let reply = MockReply::empty(400).endless_bytes(b"No, not at all. ");
    let error = error_of(reply).await;
    assert_eq!(error.exceeded, Some(ExceededLimit::ErrorBytes(5_000)));
    assert_eq!(error.kind, ModelErrorKind::Malformed);
    let start = "OpenAI did not accept the request (400: No, not at all. No, not";
    assert!(error.message.starts_with(start), "{error}");
    let end = "The error is longer than 5000 bytes; the rest was not read.";
    assert!(error.message.ends_with(end), "{error}");
}

#[tokio::test]
async fn an_error_that_never_ends_is_reported_with_what_was_sent() {
    let body = json!({"error": {"message": "No."}}).to_string();
    let server = MockServer::start([MockReply::empty(401).chunk(body.as_bytes()).silence()]).await;
    let settings = HostedSettings {
        idle_limit: Duration::from_millis(50),
        ..small(&server)
    };
    let error = ask(&model(settings), &request()).await.answer.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Authentication);
    assert!(error.message.contains("(401: No.)"), "{error}");
    server.until_disconnected().await;
}

#[tokio::test]
async fn a_compressed_answer_is_refused_and_none_is_requested() {
    for status in [200, 400] {
        let reply = MockReply::empty(status)
            .header("content-encoding", "gzip")
            .chunk(COMPRESSED)
            .endless_bytes(&[0; 64]);
        let server = MockServer::start([reply]).await;
        let error = ask(&model(small(&server)), &request())
            .await
            .answer
            .unwrap_err();
        assert_eq!(error.exceeded, Some(ExceededLimit::Compressed), "{error}");
        server.until_disconnected().await;
        let headers = server.requests().remove(0).headers;
        assert!(!headers.contains("accept-encoding"), "{headers}");
    }
}

#[tokio::test]
async fn endless_and_too_many_headers_are_stopped() {
    let start = MockReply::raw().chunk(b"HTTP/1.1 200 OK\r\n");
    let endless = start
        .clone()
        .endless_bytes(b"x-header: xxxxxxxxxxxxxxxxxxxxxxxx\r\n");
    assert_eq!(exceeded(endless).await, ExceededLimit::Headers);
    let one = start.chunk(b"x-header: ").endless_bytes(&[b'x'; 100]);
    assert_eq!(exceeded(one).await, ExceededLimit::Headers);
    let line = MockReply::raw().endless_bytes(b"HTTP/1.1 200 OKKKKKKKKKKKKKKKKK");
    assert_eq!(error_of(line).await.kind, ModelErrorKind::Malformed);
}

#[tokio::test]
async fn a_server_that_sends_a_byte_now_and_then_is_too_slow() {
    let pause = Duration::from_millis(5);
    let head = b"HTTP/1.1 200 OK\r\n";
    let replies = [
        MockReply::stream().drip(b"x", pause),
        MockReply::stream().drip(b": still here\n\n", pause),
        MockReply::stream().drip(b"data: {\"choices\": []}\n\n", pause),
        MockReply::raw().drip(b"H", pause),
        MockReply::raw().chunk(head).drip(b"a: b\r\n", pause),
        MockReply::raw().silence(),
    ];
    for reply in replies {
        let server = MockServer::start([reply]).await;
        let settings = HostedSettings {
            first_byte_limit: Duration::from_millis(100),
            idle_limit: Duration::from_millis(100),
            ..small(&server)
        };
        let error = ask(&model(settings), &request()).await.answer.unwrap_err();
        assert_eq!(
            error.message,
            "OpenAI did not start to answer within 0.1 seconds."
        );
        server.until_disconnected().await;
    }
}

#[tokio::test]
async fn the_time_limit_and_a_cancellation_hold_against_every_server() {
    let pause = Duration::from_millis(1);
    let replies = || {
        [
            MockReply::stream().endless_bytes(b"xxxxxxxxxxxxxxxx"),
            MockReply::stream().endless_bytes(b": still here\n"),
            MockReply::stream().endless(&delta(json!({"content": ""}))),
            MockReply::stream().drip(b"x", pause),
            MockReply::stream().silence(),
            MockReply::empty(500).endless_bytes(b"xxxxxxxxxxxxxxxx"),
            MockReply::empty(500).silence(),
            MockReply::raw().drip(b"H", pause),
            MockReply::raw()
                .chunk(b"HTTP/1.1 200 OK\r\n")
                .drip(b"a: b\r\n", pause),
        ]
    };
    // No other limit ends these.
    let endless = |server: &MockServer| HostedSettings {
        limits: AnswerLimits {
            stream_bytes: usize::MAX,
            line_bytes: 1024 * 1024 * 1024,
            events: usize::MAX,
            error_bytes: usize::MAX,
            ..limits()
        },
        longest_answer: usize::MAX,
        tries: 1,
        ..settings(server)
    };
    for reply in replies() {
        let server = MockServer::start([reply]).await;
        let settings = HostedSettings {
            time_limit: Duration::from_millis(200),
            ..endless(&server)
        };
        let started = Instant::now();
        let error = ask(&model(settings), &request()).await.answer.unwrap_err();
        assert_eq!(
            error.message,
            "OpenAI did not finish its answer within 0.2 seconds."
        );
        assert!(started.elapsed() < Duration::from_secs(5), "{started:?}");
        server.until_disconnected().await;
    }
    for reply in replies() {
        let server = MockServer::start([reply]).await;
        let model = model(endless(&server));
        let cancel = CancellationToken::new();
        let stop = cancel.clone();
        let (request, mut ignore) = (request(), |_| {});
        let answer = model.answer(&request, &cancel, &mut ignore);
        let cancelling = async {
            while server.requests().is_empty() {
                tokio::task::yield_now().await;
            }
            stop.cancel();
        };
        let (answer, ()) = futures::join!(answer, cancelling);
        assert_eq!(answer.unwrap_err().kind, ModelErrorKind::Cancelled);
        server.until_disconnected().await;
    }
}

#[tokio::test]
async fn a_redirect_is_reported_and_never_followed() {
    let other = MockServer::start([MockReply::text("Give me the key.")]).await;
    for status in [301, 302, 303, 307, 308] {
        let target = format!("{}/chat/completions?secret={KEY}", other.url);
        let server =
            MockServer::start([MockReply::empty(status).header("location", &target)]).await;
        let error = ask(&model(small(&server)), &request())
            .await
            .answer
            .unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Malformed);
        assert!(
            error.message.contains("redirects to `http://127.0.0.1"),
            "{error}"
        );
        assert!(!error.message.contains(KEY), "{error}");
        assert_eq!(server.requests().len(), 1);
    }
    assert_eq!(other.connections(), 0);

    // A redirect to itself is not followed for ever either.
    let loops = MockServer::start([MockReply::empty(302).header("location", "/v1/loop")]).await;
    let error = ask(&model(small(&loops)), &request()).await.answer;
    assert_eq!(error.unwrap_err().kind, ModelErrorKind::Malformed);
    assert_eq!(loops.requests().len(), 1);
}

#[tokio::test]
async fn the_limits_hold_for_every_protocol() {
    for name in ["Anthropic/claude", "Google/gemini", "OpenAI/gpt-5-codex"] {
        let server =
            MockServer::start([MockReply::stream().endless_bytes(b"data: xxxxxxxx")]).await;
        let settings = HostedSettings {
            dialect: Dialect::Native,
            ..small(&server)
        };
        let error = ask(&model_of(name, settings), &request()).await.answer;
        let exceeded = error.unwrap_err().exceeded;
        assert_eq!(exceeded, Some(ExceededLimit::LineBytes(10_000)));
        server.until_disconnected().await;
    }
}

#[tokio::test]
async fn two_requests_use_one_connection() {
    let reply = || MockReply::text("Yes.").kept();
    let server = MockServer::start([reply()]).await;
    for model in [
        model(small(&server)),
        model_of("OpenAI/other", small(&server)),
    ] {
        for _ in 0..2 {
            let answer = ask(&model, &request()).await.answer.unwrap();
            assert_eq!(answer.text, "Yes.");
        }
    }
    assert_eq!((server.requests().len(), server.connections()), (4, 1));
    // An error leaves the connection usable too.
    let limited = MockReply::status(429, json!({"error": {"message": "Slow down."}}))
        .header("retry-after", "0")
        .kept();
    let server = MockServer::start([limited, reply()]).await;
    let answer = ask(&model(small(&server)), &request()).await.answer;
    assert_eq!(answer.unwrap().text, "Yes.");
    assert_eq!((server.requests().len(), server.connections()), (2, 1));
}
