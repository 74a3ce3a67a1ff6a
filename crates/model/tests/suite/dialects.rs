//! The dialects, and answers in another form than requested.

use serde_json::json;
use windlass_core::model::RequestedCall;
use windlass_model::{Dialect, HostedSettings, ModelEvent};

use super::server::{MockReply, MockServer, delta};
use super::support::{ask, call, call_event, model, request, settings, text};

const STEP: &str = r#"{"thought": "Look.", "action": "call_tool", "tool_name": "search", "tool_args": {"query": "rust"}, "confidence": 0.7}"#;

fn in_dialect(server: &MockServer, dialect: Dialect) -> HostedSettings {
    HostedSettings {
        dialect,
        ..settings(server)
    }
}

#[tokio::test]
async fn a_structured_step_is_a_call_and_its_json_is_not_emitted() {
    let (first, second) = STEP.split_at(20);
    let events = [
        delta(json!({"content": first})),
        delta(json!({"content": second})),
    ];
    let server = MockServer::start([MockReply::events(&events)]).await;
    let outcome = ask(&model(in_dialect(&server, Dialect::Structured)), &request()).await;
    let answer = outcome.answer.unwrap();
    assert_eq!(
        (answer.thought.as_deref(), answer.text.as_str()),
        (Some("Look."), "")
    );
    let wanted = RequestedCall {
        confidence: Some(0.7),
        ..call("search", json!({"query": "rust"}))
    };
    assert_eq!(answer.calls, [wanted]);
    let thought = ModelEvent::Thought {
        text: "Look.".to_owned(),
    };
    assert_eq!(outcome.events[..2], [thought, call_event("search")]);
}

#[tokio::test]
async fn text_in_the_structured_dialect_stays_text() {
    let server = MockServer::start([MockReply::text("I would rather talk.")]).await;
    let outcome = ask(&model(in_dialect(&server, Dialect::Structured)), &request()).await;
    assert_eq!(outcome.answer.unwrap().text, "I would rather talk.");
    assert_eq!(outcome.events[0], text("I would rather talk."));
}

#[tokio::test]
async fn a_call_written_as_text_is_parsed_and_its_json_is_not_emitted() {
    let written = "```json\n{\"name\": \"search\", \"arguments\": {\"query\": \"rust\"}}\n```";
    let server = MockServer::start([MockReply::text(written)]).await;
    let model = model(in_dialect(&server, Dialect::Native));
    for _ in 0..2 {
        let outcome = ask(&model, &request()).await;
        assert_eq!(
            outcome.answer.unwrap().calls,
            [call("search", json!({"query": "rust"}))]
        );
        assert_eq!(outcome.events[..1], [call_event("search")]);
    }
    assert!(
        server
            .requests()
            .iter()
            .all(|request| request.body.get("response_format").is_none())
    );
}

#[tokio::test]
async fn json_that_is_not_a_call_is_emitted_at_the_end() {
    let events = [
        delta(json!({"content": "{\"a\":"})),
        delta(json!({"content": " 1}"})),
    ];
    let server = MockServer::start([MockReply::events(&events)]).await;
    let outcome = ask(&model(in_dialect(&server, Dialect::Native)), &request()).await;
    assert_eq!(outcome.answer.unwrap().text, "{\"a\": 1}");
    assert_eq!(outcome.events[..1], [text("{\"a\": 1}")]);
}

#[tokio::test]
async fn auto_switches_to_structured_for_a_model_that_writes_calls_as_text() {
    let written = "{\"name\": \"search\", \"arguments\": {\"query\": \"rust\"}}";
    let server = MockServer::start([MockReply::text(written), MockReply::text(STEP)]).await;
    let model = model(in_dialect(&server, Dialect::Auto));
    for _ in 0..2 {
        assert_eq!(
            ask(&model, &request()).await.answer.unwrap().calls[0].tool,
            "search"
        );
    }
    let forms: Vec<_> = server
        .requests()
        .iter()
        .map(|request| request.body.get("tools").is_some())
        .collect();
    assert_eq!(forms, [true, false]);
    assert_eq!(
        server.requests()[1].body["response_format"]["type"],
        "json_schema"
    );
}

#[tokio::test]
async fn auto_stays_native_for_native_calls_and_plain_text() {
    let native = json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "search", "arguments": "{}"}}]});
    let server = MockServer::start([
        MockReply::events(&[delta(native)]),
        MockReply::text("Just talk."),
    ])
    .await;
    let model = model(in_dialect(&server, Dialect::Auto));
    for _ in 0..3 {
        ask(&model, &request()).await.answer.unwrap();
    }
    assert!(
        server
            .requests()
            .iter()
            .all(|request| request.body.get("tools").is_some())
    );
}

#[tokio::test]
async fn auto_retries_without_tools_if_the_model_does_not_support_them() {
    let refusal =
        json!({"error": {"message": "registry.ollama.ai/library/tiny does not support tools"}});
    let server = MockServer::start([
        MockReply::status(400, refusal.clone()),
        MockReply::text(STEP),
    ])
    .await;
    let answer = ask(&model(in_dialect(&server, Dialect::Auto)), &request())
        .await
        .answer
        .unwrap();
    assert_eq!(answer.calls[0].tool, "search");

    let server = MockServer::start([MockReply::status(400, refusal)]).await;
    let error = ask(&model(in_dialect(&server, Dialect::Native)), &request())
        .await
        .answer
        .unwrap_err();
    assert!(error.message.contains("does not support tools"), "{error}");
}

#[test]
fn dialect_names_are_parsed_and_displayed() {
    for (name, dialect) in Dialect::ALL {
        assert_eq!(name.parse(), Ok(dialect));
        assert_eq!(dialect.to_string(), name);
    }
    let error = "xml".parse::<Dialect>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "`xml` is not a dialect; use `native`, `structured` or `auto`"
    );
}
