//! Questions of servers in the middle of calls.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use windlass_mcp::{
    BoxFuture, CallRequest, Came, Elicitation, Reply, SampleAnswer, SampleRequest, Sampler,
    ServerOptions,
};
use windlass_spec::{Effect, ErrorCategory};

use super::start::{Scripted, answered, eventually, is_running, options, request};

const ERAS: [&str; 2] = ["legacy", "modern"];

fn fields(fields: Value) -> Map<String, Value> {
    let Value::Object(fields) = fields else {
        panic!("fields are an object");
    };
    fields
}

fn field_of(came: &Came) -> String {
    let Came::Asks(Elicitation::Form { message, schema }) = came else {
        panic!("it asks with a form, not {came:?}");
    };
    assert_eq!(message, "Please tell");
    schema["properties"]
        .as_object()
        .unwrap()
        .keys()
        .next()
        .unwrap()
        .clone()
}

#[tokio::test]
async fn question_waits_for_its_reply_and_the_call_goes_on() {
    for era in ERAS {
        let scripted = Scripted::new(&["--era", era]);
        let came = scripted
            .server
            .call(request("ask", json!({})))
            .await
            .unwrap();
        assert_eq!(field_of(&came), "colour");
        let reply = Reply::Accept(fields(json!({ "colour": "red" })));
        let came = scripted
            .server
            .reply(request("ask", json!({})), reply)
            .await
            .unwrap();
        let value = answered(came).value;
        assert_eq!(value["q0"]["action"], "accept", "{era}");
        assert_eq!(value["q0"]["content"], json!({ "colour": "red" }), "{era}");
        if era == "modern" {
            assert_eq!(scripted.count("state \"sealed\""), 1);
        }
    }
}

#[tokio::test]
async fn no_and_neither_yes_nor_no_are_told_apart() {
    for era in ERAS {
        let scripted = Scripted::new(&["--era", era]);
        for (reply, action) in [(Reply::Decline, "decline"), (Reply::Cancel, "cancel")] {
            scripted
                .server
                .call(request("ask", json!({})))
                .await
                .unwrap();
            let came = scripted
                .server
                .reply(request("ask", json!({})), reply)
                .await
                .unwrap();
            assert_eq!(answered(came).value["q0"]["action"], action, "{era}");
        }
    }
}

#[tokio::test]
async fn several_questions_come_one_after_the_other() {
    for era in ERAS {
        let scripted = Scripted::new(&["--era", era]);
        let came = scripted
            .server
            .call(request("ask_twice", json!({})))
            .await
            .unwrap();
        assert_eq!(field_of(&came), "colour");
        let reply = Reply::Accept(fields(json!({ "colour": "red" })));
        let came = scripted
            .server
            .reply(request("ask_twice", json!({})), reply)
            .await
            .unwrap();
        assert_eq!(field_of(&came), "name");
        let reply = Reply::Accept(fields(json!({ "name": "Ada" })));
        let came = scripted
            .server
            .reply(request("ask_twice", json!({})), reply)
            .await
            .unwrap();
        let value = answered(came).value;
        assert_eq!(value["q0"]["content"]["colour"], "red", "{era}");
        assert_eq!(value["q1"]["content"]["name"], "Ada", "{era}");
    }
}

#[tokio::test]
async fn addresses_are_shown_and_not_opened() {
    for era in ERAS {
        let scripted = Scripted::new(&["--era", era]);
        let came = scripted
            .server
            .call(request("visit", json!({})))
            .await
            .unwrap();
        let Came::Asks(Elicitation::Url { url, .. }) = came else {
            panic!("it asks to visit");
        };
        assert_eq!(url, "https://example.com/x");
        let reply = Reply::Accept(Map::new());
        let came = scripted
            .server
            .reply(request("visit", json!({})), reply)
            .await
            .unwrap();
        assert_eq!(answered(came).value["q0"]["action"], "accept", "{era}");
    }
}

#[tokio::test]
async fn nobody_sees_a_form_that_asks_for_a_secret() {
    for era in ERAS {
        let scripted = Scripted::new(&["--era", era]);
        let came = scripted
            .server
            .call(request("ask_secret", json!({})))
            .await
            .unwrap();
        assert_eq!(
            answered(came).value["q0"],
            json!({ "action": "decline" }),
            "{era}"
        );
    }
}

#[tokio::test]
async fn server_that_asks_on_and_on_is_stopped() {
    for era in ERAS {
        let scripted = Scripted::new(&["--era", era]);
        let mut came = scripted.server.call(request("ask_on", json!({}))).await;
        let mut questions = 0;
        while let Ok(Came::Asks(_)) = came {
            questions += 1;
            assert!(questions <= 10, "{era}");
            came = scripted
                .server
                .reply(request("ask_on", json!({})), Reply::Decline)
                .await;
        }
        assert_eq!(questions, 10, "{era}");
        match era {
            "modern" => assert!(came.unwrap_err().message.contains("on and on")),
            _ => assert!(
                answered(came.unwrap())
                    .value
                    .as_str()
                    .unwrap()
                    .contains("too often")
            ),
        }
    }
}

#[tokio::test]
async fn question_that_may_be_of_several_calls_is_put_to_nobody() {
    let scripted = Scripted::new(&["--era", "legacy"]);
    let server = scripted.server.clone();
    let hanging = tokio::spawn(async move { server.call(request("hang", json!({}))).await });
    scripted.says("call hang").await;
    let came = scripted
        .server
        .call(request("ask", json!({})))
        .await
        .unwrap();
    let value = answered(came).value;
    assert!(
        value["q0"]["message"]
            .as_str()
            .unwrap()
            .contains("which call"),
        "{value}"
    );
    hanging.abort();
}

#[tokio::test]
async fn cancelled_call_that_waits_is_told_to_the_server() {
    let scripted = Scripted::new(&["--era", "legacy"]);
    let call = request("ask", json!({}));
    let cancel = call.cancel.clone();
    scripted.server.call(call).await.unwrap();
    cancel.cancel();
    scripted.says("cancelled").await;
    scripted.says("reply {\"action\":\"cancel\"}").await;
    let error = scripted
        .server
        .reply(request("ask", json!({})), Reply::Decline)
        .await
        .unwrap_err();
    assert_eq!(error.effect, Effect::Unknown);
}

#[tokio::test]
async fn call_that_waits_ends_with_its_server() {
    for era in ERAS {
        let scripted = Scripted::new(&["--era", era]);
        scripted
            .server
            .call(request("ask", json!({})))
            .await
            .unwrap();
        let _ = scripted.server.call(request("die", json!({}))).await;
        let process = scripted.process();
        eventually("it is gone", || !is_running(process)).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        let reply = scripted
            .server
            .reply(request("ask", json!({})), Reply::Decline)
            .await;
        let error = reply.unwrap_err();
        assert_eq!(
            (error.category, error.effect),
            (ErrorCategory::Unavailable, Effect::Unknown)
        );
    }
}

#[tokio::test]
async fn call_that_waits_ends_when_the_server_is_closed() {
    let scripted = Scripted::new(&["--era", "legacy"]);
    scripted
        .server
        .call(request("ask", json!({})))
        .await
        .unwrap();
    scripted.server.close().await;
    assert!(
        scripted
            .server
            .reply(request("ask", json!({})), Reply::Decline)
            .await
            .is_err()
    );
    assert!(!is_running(scripted.process()));
}

#[tokio::test]
async fn reply_to_nothing_is_an_error() {
    let scripted = Scripted::new(&[]);
    let error = scripted
        .server
        .reply(request("ask", json!({})), Reply::Decline)
        .await
        .unwrap_err();
    assert_eq!(error.category, ErrorCategory::Unavailable);
    assert_eq!(scripted.count("start"), 0);
}

struct Parrot;

impl Sampler for Parrot {
    fn sample(&self, request: SampleRequest) -> BoxFuture<'_, Result<SampleAnswer, String>> {
        Box::pin(async move {
            Ok(SampleAnswer {
                model: "parrot".to_owned(),
                text: format!(
                    "{} {}",
                    request.system_prompt.unwrap(),
                    request.messages[0].text
                ),
            })
        })
    }
}

#[tokio::test]
async fn model_is_lent_only_where_the_operator_allows_it() {
    for era in ERAS {
        let with_sampler = || ServerOptions {
            sampler: Some(Arc::new(Parrot)),
            ..options()
        };
        let allowed = Scripted::with(&["--era", era], with_sampler(), |settings| {
            settings.may_sample = true;
        });
        let came = allowed
            .server
            .call(request("sample", json!({})))
            .await
            .unwrap();
        let value = answered(came).value;
        assert_eq!(value["content"]["text"], "Be brief What is it?", "{era}");
        assert_eq!(value["model"], "parrot", "{era}");

        let refused = Scripted::with(&["--era", era], with_sampler(), |_| {});
        let came = refused.server.call(request("sample", json!({}))).await;
        match era {
            "modern" => assert!(came.unwrap_err().message.contains("no model")),
            _ => {
                let value = answered(came.unwrap()).value;
                assert!(
                    value["message"].as_str().unwrap().contains("no model"),
                    "{value}"
                );
                let said = refused.said();
                let client = said.iter().find(|line| line.starts_with("client")).unwrap();
                assert!(
                    !client.contains("sampling") && client.contains("elicitation"),
                    "{client}"
                );
                assert!(!client.contains("roots"), "{client}");
            }
        }
    }
}

#[tokio::test]
async fn who_replies_hears_the_rest_and_can_stop_it() {
    let scripted = Scripted::new(&["--era", "legacy"]);
    scripted
        .server
        .call(request("ask_twice", json!({})))
        .await
        .unwrap();
    let second: CallRequest = request("ask_twice", json!({}));
    let cancel = second.cancel.clone();
    let came = scripted.server.reply(second, Reply::Decline).await.unwrap();
    assert_eq!(field_of(&came), "name");
    cancel.cancel();
    scripted.says("cancelled").await;
}
