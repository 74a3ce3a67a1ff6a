//! The exact requests that are sent to models.

use serde_json::json;
use windlass_core::model::{ChatCall, ChatMessage};
use windlass_model::{Dialect, HostedSettings};

use super::server::{MockReply, MockServer, delta};
use super::support::{KEY, ask, call, longer_request, model, model_of, request, settings, tool};

async fn body(dialect: Dialect) -> String {
    let server = MockServer::start([MockReply::text("Yes.")]).await;
    let settings = HostedSettings {
        dialect,
        temperature: Some(0.5),
        ..settings(&server)
    };
    ask(&model(settings), &longer_request())
        .await
        .answer
        .unwrap();
    serde_json::to_string_pretty(&server.requests()[0].body).unwrap()
}

#[tokio::test]
async fn the_request_of_the_native_dialect() {
    insta::assert_snapshot!(body(Dialect::Native).await);
}

#[tokio::test]
async fn the_request_of_the_structured_dialect() {
    insta::assert_snapshot!(body(Dialect::Structured).await);
}

#[tokio::test]
async fn the_request_of_openai_responses() {
    let reply = MockReply::events(&[json!({"type": "response.completed"})]);
    let server = MockServer::start([reply]).await;
    let settings = HostedSettings {
        temperature: Some(0.5),
        max_output_tokens: Some(50),
        ..settings(&server)
    };
    let model = model_of("OpenAI/gpt-5-codex", settings);
    ask(&model, &longer_request()).await.answer.unwrap();
    let sent = server.requests().remove(0);
    let key = format!("authorization: bearer {KEY}");
    assert!(sent.headers.contains(&key), "{}", sent.headers);
    insta::assert_snapshot!(serde_json::to_string_pretty(&sent.body).unwrap());
}

#[tokio::test]
async fn the_next_request_continues_the_one_before() {
    let server = MockServer::start([MockReply::text("Yes.")]).await;
    let model = model(settings(&server));
    let mut request = longer_request();
    ask(&model, &request).await.answer.unwrap();
    let message = ChatMessage::User {
        content: "And then?".to_owned(),
    };
    request.messages.push(message.into());
    ask(&model, &request).await.answer.unwrap();
    let [first, second] = [0, 1].map(|index| server.requests()[index].body["messages"].clone());
    let (first, second) = (first.as_array().unwrap(), second.as_array().unwrap());
    assert_eq!(first[..], second[..first.len()]);
    let added = json!({"role": "user", "content": "And then?"});
    assert_eq!(second[first.len()..], [added]);
}

#[tokio::test]
async fn invalid_tool_names_are_mapped_both_ways() {
    let call_of = |name: &str| json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": name, "arguments": "{}"}}]});
    let server = MockServer::start([MockReply::events(&[delta(call_of("look_up__2"))])]).await;
    let mut request = request();
    request.tools = vec![
        tool("look up!", "() --> IO Text"),
        tool("look.up?", "() --> IO Text"),
    ];
    let calls = vec![ChatCall {
        id: "call_1_0".to_owned(),
        tool: "söme töol".to_owned(),
        arguments: json!(null),
    }];
    let message = ChatMessage::Assistant {
        content: String::new(),
        calls,
    };
    request.messages.push(message.into());
    let answer = ask(&model(settings(&server)), &request)
        .await
        .answer
        .unwrap();
    assert_eq!(answer.calls, [call("look.up?", json!({}))]);
    let body = server.requests().remove(0).body;
    let sent: Vec<_> = (0..3)
        .map(|index| body["tools"][index]["function"]["name"].clone())
        .collect();
    assert_eq!(sent, ["look_up_", "look_up__2", "finish"]);
    let past = &body["messages"][2]["tool_calls"][0]["function"];
    assert_eq!(*past, json!({"name": "s_me_t_ol", "arguments": "{}"}));
}
