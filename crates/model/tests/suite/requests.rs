//! The exact requests that are sent to models.

use serde_json::json;
use windlass_core::model::{ChatCall, ChatMessage};
use windlass_model::{Dialect, HostedSettings};

use super::server::{MockReply, MockServer, delta};
use super::support::{ask, call, longer_request, model, request, settings, tool};

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
    request.messages.push(ChatMessage::Assistant {
        content: String::new(),
        calls,
    });
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
