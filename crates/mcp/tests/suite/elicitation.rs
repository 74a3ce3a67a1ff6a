//! Elicitation and sampling requests of servers during calls.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use windlass_mcp::{
    BoxFuture, CallOutcome, CallRequest, Elicitation, ElicitationReply, SampleAnswer,
    SampleRequest, Sampler, ServerOptions,
};
use windlass_spec::{Effect, ErrorCategory};

use super::scripted::{ScriptedServer, eventually, expect_answer, is_running, options, request};

const ERAS: [&str; 2] = ["legacy", "modern"];

fn fields(fields: Value) -> Map<String, Value> {
    let Value::Object(fields) = fields else {
        panic!("fields are an object");
    };
    fields
}

fn field_of(outcome: &CallOutcome) -> String {
    let CallOutcome::NeedsInput(Elicitation::Form { message, schema }) = outcome else {
        panic!("the outcome is not a form: {outcome:?}");
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
async fn a_call_resumes_with_the_reply_to_its_elicitation() {
    for era in ERAS {
        let scripted = ScriptedServer::new(&["--era", era]);
        let outcome = scripted.call("ask", json!({})).await;
        assert_eq!(field_of(&outcome), "colour");
        let reply = ElicitationReply::Accept(fields(json!({ "colour": "red" })));
        let outcome = scripted.reply("ask", json!({}), reply).await;
        let value = expect_answer(outcome).value;
        assert_eq!(value["q0"]["action"], "accept", "{era}");
        assert_eq!(value["q0"]["content"], json!({ "colour": "red" }), "{era}");
        if era == "modern" {
            assert_eq!(scripted.count("state \"sealed\""), 1);
        }
    }
}

#[tokio::test]
async fn decline_and_cancel_are_distinct_replies() {
    for era in ERAS {
        let scripted = ScriptedServer::new(&["--era", era]);
        for (reply, action) in [
            (ElicitationReply::Decline, "decline"),
            (ElicitationReply::Cancel, "cancel"),
        ] {
            scripted.call("ask", json!({})).await;
            let outcome = scripted.reply("ask", json!({}), reply).await;
            assert_eq!(
                expect_answer(outcome).value["q0"]["action"],
                action,
                "{era}"
            );
        }
    }
}

#[tokio::test]
async fn several_elicitations_come_in_order() {
    for era in ERAS {
        let scripted = ScriptedServer::new(&["--era", era]);
        let outcome = scripted.call("ask_twice", json!({})).await;
        assert_eq!(field_of(&outcome), "colour");
        let reply = ElicitationReply::Accept(fields(json!({ "colour": "red" })));
        let outcome = scripted.reply("ask_twice", json!({}), reply).await;
        assert_eq!(field_of(&outcome), "name");
        let reply = ElicitationReply::Accept(fields(json!({ "name": "Ada" })));
        let outcome = scripted.reply("ask_twice", json!({}), reply).await;
        let value = expect_answer(outcome).value;
        assert_eq!(value["q0"]["content"]["colour"], "red", "{era}");
        assert_eq!(value["q1"]["content"]["name"], "Ada", "{era}");
    }
}

#[tokio::test]
async fn urls_are_passed_on_and_not_opened() {
    for era in ERAS {
        let scripted = ScriptedServer::new(&["--era", era]);
        let outcome = scripted.call("visit", json!({})).await;
        let CallOutcome::NeedsInput(Elicitation::Url { url, .. }) = outcome else {
            panic!("the outcome is not a URL");
        };
        assert_eq!(url, "https://example.com/x");
        let reply = ElicitationReply::Accept(Map::new());
        let outcome = scripted.reply("visit", json!({}), reply).await;
        assert_eq!(
            expect_answer(outcome).value["q0"]["action"],
            "accept",
            "{era}"
        );
    }
}

#[tokio::test]
async fn a_form_that_asks_for_a_secret_is_declined() {
    for era in ERAS {
        let scripted = ScriptedServer::new(&["--era", era]);
        let outcome = scripted.call("ask_secret", json!({})).await;
        assert_eq!(
            expect_answer(outcome).value["q0"],
            json!({ "action": "decline" }),
            "{era}"
        );
    }
}

#[tokio::test]
async fn the_number_of_elicitations_is_limited() {
    for era in ERAS {
        let scripted = ScriptedServer::new(&["--era", era]);
        let mut outcome = scripted.server.call(request("ask_on", json!({}))).await;
        let mut questions = 0;
        while let Ok(CallOutcome::NeedsInput(_)) = outcome {
            questions += 1;
            assert!(questions <= 10, "{era}");
            outcome = scripted
                .server
                .reply(request("ask_on", json!({})), ElicitationReply::Decline)
                .await;
        }
        assert_eq!(questions, 10, "{era}");
        match era {
            "modern" => assert!(
                outcome
                    .unwrap_err()
                    .message
                    .contains("requests input too often")
            ),
            _ => assert!(
                expect_answer(outcome.unwrap())
                    .value
                    .as_str()
                    .unwrap()
                    .contains("too often")
            ),
        }
    }
}

#[tokio::test]
async fn an_ambiguous_elicitation_is_refused() {
    let scripted = ScriptedServer::new(&["--era", "legacy"]);
    let server = scripted.server.clone();
    let hanging = tokio::spawn(async move { server.call(request("hang", json!({}))).await });
    scripted.wait_for_line("call hang").await;
    let outcome = scripted.call("ask", json!({})).await;
    let value = expect_answer(outcome).value;
    assert!(
        value["q0"]["message"]
            .as_str()
            .unwrap()
            .contains("matched to a call"),
        "{value}"
    );
    hanging.abort();
}

#[tokio::test]
async fn the_server_is_notified_of_a_cancelled_waiting_call() {
    let scripted = ScriptedServer::new(&["--era", "legacy"]);
    let call = request("ask", json!({}));
    let cancel = call.cancel.clone();
    scripted.server.call(call).await.unwrap();
    cancel.cancel();
    scripted.wait_for_line("cancelled").await;
    scripted
        .wait_for_line("reply {\"action\":\"cancel\"}")
        .await;
    let error = scripted
        .server
        .reply(request("ask", json!({})), ElicitationReply::Decline)
        .await
        .unwrap_err();
    assert_eq!(error.effect, Effect::Unknown);
}

#[tokio::test]
async fn a_waiting_call_ends_with_its_server() {
    for era in ERAS {
        let scripted = ScriptedServer::new(&["--era", era]);
        scripted.call("ask", json!({})).await;
        let _ = scripted.server.call(request("die", json!({}))).await;
        let process = scripted.process();
        eventually("the server has ended", || !is_running(process)).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        let reply = scripted
            .server
            .reply(request("ask", json!({})), ElicitationReply::Decline)
            .await;
        let error = reply.unwrap_err();
        assert_eq!(
            (error.category, error.effect),
            (ErrorCategory::Unavailable, Effect::Unknown)
        );
    }
}

#[tokio::test]
async fn a_waiting_call_ends_when_the_server_is_closed() {
    let scripted = ScriptedServer::new(&["--era", "legacy"]);
    scripted.call("ask", json!({})).await;
    scripted.server.close().await;
    assert!(
        scripted
            .server
            .reply(request("ask", json!({})), ElicitationReply::Decline)
            .await
            .is_err()
    );
    assert!(!is_running(scripted.process()));
}

#[tokio::test]
async fn a_reply_without_a_waiting_call_is_an_error() {
    let scripted = ScriptedServer::new(&[]);
    let error = scripted
        .server
        .reply(request("ask", json!({})), ElicitationReply::Decline)
        .await
        .unwrap_err();
    assert_eq!(error.category, ErrorCategory::Unavailable);
    assert_eq!(scripted.count("start"), 0);
}

struct EchoSampler;

impl Sampler for EchoSampler {
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
async fn sampling_needs_the_permission_of_the_operator() {
    for era in ERAS {
        let with_sampler = || ServerOptions {
            sampler: Some(Arc::new(EchoSampler)),
            ..options()
        };
        let allowed = ScriptedServer::with(&["--era", era], with_sampler(), |settings| {
            settings.may_sample = true;
        });
        let outcome = allowed.call("sample", json!({})).await;
        let value = expect_answer(outcome).value;
        assert_eq!(value["content"]["text"], "Be brief What is it?", "{era}");
        assert_eq!(value["model"], "parrot", "{era}");

        let refused = ScriptedServer::with(&["--era", era], with_sampler(), |_| {});
        let outcome = refused.server.call(request("sample", json!({}))).await;
        match era {
            "modern" => assert!(
                outcome
                    .unwrap_err()
                    .message
                    .contains("does not allow sampling")
            ),
            _ => {
                let value = expect_answer(outcome.unwrap()).value;
                assert!(
                    value["message"]
                        .as_str()
                        .unwrap()
                        .contains("does not allow sampling"),
                    "{value}"
                );
                let lines = refused.log_lines();
                let client = lines
                    .iter()
                    .find(|line| line.starts_with("client"))
                    .unwrap();
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
async fn the_request_of_the_reply_can_cancel_the_call() {
    let scripted = ScriptedServer::new(&["--era", "legacy"]);
    scripted.call("ask_twice", json!({})).await;
    let second: CallRequest = request("ask_twice", json!({}));
    let cancel = second.cancel.clone();
    let outcome = scripted
        .server
        .reply(second, ElicitationReply::Decline)
        .await
        .unwrap();
    assert_eq!(field_of(&outcome), "name");
    cancel.cancel();
    scripted.wait_for_line("cancelled").await;
}
