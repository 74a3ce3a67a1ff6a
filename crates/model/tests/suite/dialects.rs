//! How calls are asked for, and what happens when a model answers in another way.

use serde_json::json;
use windlass_core::model::RequestedCall;
use windlass_model::{Dialect, HostedSettings, ModelEvent};

use super::server::{Reply, Server, delta};
use super::support::{ask, call, called, model, request, settings, text};

const STEP: &str = r#"{"thought": "Look.", "action": "call_tool", "tool_name": "search", "tool_args": {"query": "rust"}, "confidence": 0.7}"#;

fn in_dialect(server: &Server, dialect: Dialect) -> HostedSettings {
    HostedSettings {
        dialect,
        ..settings(server)
    }
}

#[tokio::test]
async fn a_structured_step_is_a_call_with_thought_and_confidence_and_shows_no_json() {
    let (first, second) = STEP.split_at(20);
    let events = [
        delta(json!({"content": first})),
        delta(json!({"content": second})),
    ];
    let server = Server::start([Reply::events(&events)]).await;
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
    assert_eq!(outcome.events[..2], [thought, called("search")]);
}

#[tokio::test]
async fn text_in_the_structured_dialect_stays_text() {
    let server = Server::start([Reply::text("I would rather talk.")]).await;
    let outcome = ask(&model(in_dialect(&server, Dialect::Structured)), &request()).await;
    assert_eq!(outcome.answer.unwrap().text, "I would rather talk.");
    assert_eq!(outcome.events[0], text("I would rather talk."));
}

#[tokio::test]
async fn a_native_call_written_as_text_is_taken_and_shows_no_json() {
    let written = "```json\n{\"name\": \"search\", \"arguments\": {\"query\": \"rust\"}}\n```";
    let server = Server::start([Reply::text(written)]).await;
    let model = model(in_dialect(&server, Dialect::Native));
    for _ in 0..2 {
        let outcome = ask(&model, &request()).await;
        assert_eq!(
            outcome.answer.unwrap().calls,
            [call("search", json!({"query": "rust"}))]
        );
        assert_eq!(outcome.events[..1], [called("search")]);
    }
    assert!(
        server
            .asked()
            .iter()
            .all(|asked| asked.body.get("response_format").is_none())
    );
}

#[tokio::test]
async fn json_that_is_no_call_is_shown_once_it_is_known_to_be_none() {
    let events = [
        delta(json!({"content": "{\"a\":"})),
        delta(json!({"content": " 1}"})),
    ];
    let server = Server::start([Reply::events(&events)]).await;
    let outcome = ask(&model(in_dialect(&server, Dialect::Native)), &request()).await;
    assert_eq!(outcome.answer.unwrap().text, "{\"a\": 1}");
    assert_eq!(outcome.events[..1], [text("{\"a\": 1}")]);
}

#[tokio::test]
async fn auto_remembers_a_model_that_writes_its_calls_as_text() {
    let written = "{\"name\": \"search\", \"arguments\": {\"query\": \"rust\"}}";
    let server = Server::start([Reply::text(written), Reply::text(STEP)]).await;
    let model = model(in_dialect(&server, Dialect::Auto));
    for _ in 0..2 {
        assert_eq!(
            ask(&model, &request()).await.answer.unwrap().calls[0].tool,
            "search"
        );
    }
    let forms: Vec<_> = server
        .asked()
        .iter()
        .map(|asked| asked.body.get("tools").is_some())
        .collect();
    assert_eq!(forms, [true, false]);
    assert_eq!(
        server.asked()[1].body["response_format"]["type"],
        "json_schema"
    );
}

#[tokio::test]
async fn auto_stays_native_with_a_model_that_calls_natively_or_just_talks() {
    let native = json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "search", "arguments": "{}"}}]});
    let server = Server::start([Reply::events(&[delta(native)]), Reply::text("Just talk.")]).await;
    let model = model(in_dialect(&server, Dialect::Auto));
    for _ in 0..3 {
        ask(&model, &request()).await.answer.unwrap();
    }
    assert!(
        server
            .asked()
            .iter()
            .all(|asked| asked.body.get("tools").is_some())
    );
}

#[tokio::test]
async fn auto_asks_again_without_tools_when_the_model_takes_none() {
    let refusal =
        json!({"error": {"message": "registry.ollama.ai/library/tiny does not support tools"}});
    let server = Server::start([Reply::status(400, refusal.clone()), Reply::text(STEP)]).await;
    let answer = ask(&model(in_dialect(&server, Dialect::Auto)), &request())
        .await
        .answer
        .unwrap();
    assert_eq!(answer.calls[0].tool, "search");

    let server = Server::start([Reply::status(400, refusal)]).await;
    let error = ask(&model(in_dialect(&server, Dialect::Native)), &request())
        .await
        .answer
        .unwrap_err();
    assert!(error.message.contains("does not support tools"), "{error}");
}

#[test]
fn dialects_have_names() {
    for (name, dialect) in Dialect::ALL {
        assert_eq!(name.parse(), Ok(dialect));
        assert_eq!(dialect.to_string(), name);
    }
    let error = "xml".parse::<Dialect>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "`xml` is no dialect; write `native`, `structured` or `auto`"
    );
}
