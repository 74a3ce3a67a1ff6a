//! What comes of calls: answers, failures, progress, cancellation.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use windlass_mcp::{CallRequest, Era, Progress};
use windlass_spec::{Effect, ErrorCategory};

use super::start::{Scripted, answered, keeping, options, request};

fn promising(tool: &str) -> CallRequest {
    CallRequest {
        output_schema: Some(json!({
            "type": "object",
            "properties": { "n": { "type": "integer" } },
            "required": ["n"],
        })),
        ..request(tool, json!({ "n": 3 }))
    }
}

#[tokio::test]
async fn answers_come_in_both_eras() {
    for era in ["legacy", "modern"] {
        let scripted = Scripted::new(&["--era", era]);
        let came = scripted
            .server
            .call(request("echo", json!({ "a": [1, "é"] })))
            .await
            .unwrap();
        assert_eq!(answered(came).value, json!({ "a": [1, "é"] }));
        let came = scripted
            .server
            .call(request("effect", json!({})))
            .await
            .unwrap();
        assert_eq!(answered(came).value, json!("done"));
        let answer = answered(
            scripted
                .server
                .call(request("fail", json!({})))
                .await
                .unwrap(),
        );
        assert!(answer.is_error);
        assert_eq!(answer.value, json!("it did not work"));
    }
}

#[tokio::test]
async fn errors_of_the_protocol_say_whether_the_tool_ran() {
    let scripted = Scripted::new(&[]);
    for (arguments, category, effect) in [
        (
            json!({ "code": -32601 }),
            ErrorCategory::UnknownTool,
            Effect::None,
        ),
        (
            json!({ "code": -32602 }),
            ErrorCategory::InvalidArguments,
            Effect::None,
        ),
        (
            json!({ "code": -32603 }),
            ErrorCategory::ToolFailure,
            Effect::Unknown,
        ),
        (
            json!({ "code": 5 }),
            ErrorCategory::ToolFailure,
            Effect::Unknown,
        ),
    ] {
        let error = scripted
            .server
            .call(request("refuse", arguments))
            .await
            .unwrap_err();
        assert_eq!(
            (error.category, error.effect),
            (category, effect),
            "{error}"
        );
    }
    let error = scripted
        .server
        .call(request("no_such", json!({})))
        .await
        .unwrap_err();
    assert_eq!(error.category, ErrorCategory::UnknownTool);
    let error = scripted
        .server
        .call(request("refuse", json!({ "message": "\u{1b}[31mred" })))
        .await;
    assert!(!error.unwrap_err().message.contains('\u{1b}'));
}

#[tokio::test]
async fn promised_structure_is_checked() {
    let scripted = Scripted::new(&[]);
    let came = scripted.server.call(promising("echo")).await.unwrap();
    assert_eq!(answered(came).value, json!({ "n": 3 }));
    for tool in ["wrong_structure", "no_structure"] {
        let error = scripted.server.call(promising(tool)).await.unwrap_err();
        assert_eq!(error.category, ErrorCategory::InvalidOutput, "{tool}");
        assert_eq!(error.effect, Effect::Applied, "{tool}");
    }
    let hostile = CallRequest {
        output_schema: Some(json!({ "$ref": "#" })),
        ..request("echo", json!({ "n": 3 }))
    };
    let error = scripted.server.call(hostile).await.unwrap_err();
    assert_eq!(error.category, ErrorCategory::InvalidOutput);
}

#[tokio::test]
async fn answer_larger_than_the_call_allows_is_refused_and_a_failure_cut() {
    let scripted = Scripted::new(&[]);
    let small = CallRequest {
        max_output_bytes: 1_000,
        ..request("echo", json!({ "a": "x".repeat(1_000) }))
    };
    let error = scripted.server.call(small).await.unwrap_err();
    assert_eq!(error.category, ErrorCategory::InvalidOutput);
    let small = CallRequest {
        max_output_bytes: 1_000,
        ..request("long_error", json!({}))
    };
    let answer = answered(scripted.server.call(small).await.unwrap());
    assert!(answer.is_error && answer.value.as_str().unwrap().len() <= 1_000);
}

#[tokio::test]
async fn progress_is_told_in_both_eras() {
    for era in ["legacy", "modern"] {
        let scripted = Scripted::new(&["--era", era]);
        let (kept, progress) = keeping::<Progress>();
        let call = CallRequest {
            progress: Some(progress),
            ..request("progress", json!({ "count": 3 }))
        };
        scripted.server.call(call).await.unwrap();
        let kept = kept.lock().unwrap();
        assert_eq!(kept.first().unwrap().done, 1.0, "{era}");
        let last = kept.last().unwrap();
        assert_eq!((last.done, last.total), (3.0, Some(3.0)), "{era}");
        assert!(
            last.message.as_ref().unwrap().chars().count() <= 4_001,
            "{era}"
        );
    }
}

#[tokio::test]
async fn cancelled_call_is_told_to_the_server() {
    for era in ["legacy", "modern"] {
        let scripted = Arc::new(Scripted::new(&["--era", era]));
        let call = request("hang", json!({}));
        let cancel = call.cancel.clone();
        let server = scripted.server.clone();
        let calling = tokio::spawn(async move { server.call(call).await });
        scripted.says("call hang").await;
        cancel.cancel();
        let error = calling.await.unwrap().unwrap_err();
        assert_eq!(
            (error.category, error.effect),
            (ErrorCategory::Cancelled, Effect::Unknown)
        );
        scripted.says("cancelled").await;
        let came = scripted
            .server
            .call(request("echo", json!({})))
            .await
            .unwrap();
        assert_eq!(answered(came).value, json!({}), "the connection lives on");
        assert_eq!(
            scripted
                .said()
                .iter()
                .filter(|line| line.starts_with("cancelled"))
                .count(),
            1
        );
    }
}

#[tokio::test]
async fn dropped_call_is_told_to_the_server() {
    let scripted = Scripted::new(&[]);
    let server = scripted.server.clone();
    let calling = tokio::spawn(async move { server.call(request("hang", json!({}))).await });
    scripted.says("call hang").await;
    calling.abort();
    scripted.says("cancelled").await;
}

#[tokio::test]
async fn call_that_was_cancelled_before_it_was_sent_had_no_effect() {
    let scripted = Scripted::new(&["--start-delay", "600000"]);
    let call = request("effect", json!({}));
    let cancel = call.cancel.clone();
    let server = scripted.server.clone();
    let calling = tokio::spawn(async move { server.call(call).await });
    scripted.says("start").await;
    cancel.cancel();
    let error = calling.await.unwrap().unwrap_err();
    assert_eq!(
        (error.category, error.effect),
        (ErrorCategory::Cancelled, Effect::None)
    );
    assert_eq!(scripted.count("effect"), 0);
}

#[tokio::test]
async fn calls_run_beside_each_other() {
    let scripted = Scripted::new(&[]);
    scripted.server.connect().await.unwrap();
    let hanging = {
        let server = scripted.server.clone();
        tokio::spawn(async move { server.call(request("hang", json!({}))).await })
    };
    scripted.says("call hang").await;
    let mut calls = Vec::new();
    for n in 0..50 {
        let server = scripted.server.clone();
        calls.push(tokio::spawn(async move {
            (
                n,
                server
                    .call(request("echo", json!({ "n": n })))
                    .await
                    .unwrap(),
            )
        }));
    }
    for call in calls {
        let (n, came) = call.await.unwrap();
        assert_eq!(answered(came).value, json!({ "n": n }));
    }
    hanging.abort();
}

#[tokio::test]
async fn task_nobody_asked_for_is_an_error() {
    let scripted = Scripted::new(&["--era", "modern"]);
    let error = scripted
        .server
        .call(request("task", json!({})))
        .await
        .unwrap_err();
    assert_eq!(error.effect, Effect::Unknown);
    assert!(error.message.contains("task"), "{error}");
}

#[tokio::test]
async fn server_that_does_not_read_any_more_can_still_be_left() {
    let scripted = Scripted::new(&[]);
    let server = scripted.server.clone();
    let deaf = tokio::spawn(async move { server.call(request("deaf", json!({}))).await });
    scripted.says("call deaf").await;
    // More than the pipe holds: the writer gets stuck in the middle of it.
    let call = request("echo", json!({ "a": "x".repeat(1 << 20) }));
    let cancel = call.cancel.clone();
    let server = scripted.server.clone();
    let stuck = tokio::spawn(async move { server.call(call).await });
    tokio::time::sleep(Duration::from_millis(200)).await;
    cancel.cancel();
    let error = stuck.await.unwrap().unwrap_err();
    assert_eq!(
        (error.category, error.effect),
        (ErrorCategory::Cancelled, Effect::Unknown)
    );
    let closing = tokio::time::timeout(Duration::from_secs(15), scripted.server.close());
    assert!(closing.await.is_ok());
    assert_eq!(deaf.await.unwrap().unwrap_err().effect, Effect::Unknown);
}

#[tokio::test]
async fn era_does_not_change_what_is_sent() {
    let mut options = options();
    options.era = Some(Era::Modern);
    let scripted = Scripted::with(&["--era", "modern"], options, |_| {});
    let call = request("echo", json!({ "nothing": null }));
    assert_eq!(
        answered(scripted.server.call(call).await.unwrap()).value,
        json!({ "nothing": null })
    );
}
