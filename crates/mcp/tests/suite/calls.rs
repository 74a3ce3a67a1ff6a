//! Calls: answers, errors, progress and cancellation.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use windlass_mcp::{CallRequest, Era, Progress};
use windlass_spec::{Effect, ErrorCategory};

use super::scripted::{ScriptedServer, expect_answer, options, recorder, request};

fn with_output_schema(tool: &str) -> CallRequest {
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
async fn calls_are_answered_in_both_eras() {
    for era in ["legacy", "modern"] {
        let scripted = ScriptedServer::new(&["--era", era]);
        let outcome = scripted.call("echo", json!({ "a": [1, "é"] })).await;
        assert_eq!(expect_answer(outcome).value, json!({ "a": [1, "é"] }));
        let outcome = scripted.call("effect", json!({})).await;
        assert_eq!(expect_answer(outcome).value, json!("done"));
        let answer = expect_answer(scripted.call("fail", json!({})).await);
        assert!(answer.is_error);
        assert_eq!(answer.value, json!("it did not work"));
    }
}

#[tokio::test]
async fn protocol_errors_determine_the_effect() {
    let scripted = ScriptedServer::new(&[]);
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
        let error = scripted.call_error("refuse", arguments).await;
        assert_eq!(
            (error.category, error.effect),
            (category, effect),
            "{error}"
        );
    }
    let error = scripted.call_error("no_such", json!({})).await;
    assert_eq!(error.category, ErrorCategory::UnknownTool);
    let error = scripted
        .server
        .call(request("refuse", json!({ "message": "\u{1b}[31mred" })))
        .await;
    assert!(!error.unwrap_err().message.contains('\u{1b}'));
}

#[tokio::test]
async fn answers_are_checked_against_the_output_schema() {
    let scripted = ScriptedServer::new(&[]);
    let outcome = scripted
        .server
        .call(with_output_schema("echo"))
        .await
        .unwrap();
    assert_eq!(expect_answer(outcome).value, json!({ "n": 3 }));
    for tool in ["wrong_structure", "no_structure"] {
        let error = scripted
            .server
            .call(with_output_schema(tool))
            .await
            .unwrap_err();
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
async fn large_answers_are_refused_and_large_errors_are_truncated() {
    let scripted = ScriptedServer::new(&[]);
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
    let answer = expect_answer(scripted.server.call(small).await.unwrap());
    assert!(answer.is_error && answer.value.as_str().unwrap().len() <= 1_000);
}

#[tokio::test]
async fn progress_is_reported_in_both_eras() {
    for era in ["legacy", "modern"] {
        let scripted = ScriptedServer::new(&["--era", era]);
        let (recorded, progress) = recorder::<Progress>();
        let call = CallRequest {
            progress: Some(progress),
            ..request("progress", json!({ "count": 3 }))
        };
        scripted.server.call(call).await.unwrap();
        let recorded = recorded.lock().unwrap();
        assert_eq!(recorded.first().unwrap().done, 1.0, "{era}");
        let last = recorded.last().unwrap();
        assert_eq!((last.done, last.total), (3.0, Some(3.0)), "{era}");
        assert!(
            last.message.as_ref().unwrap().chars().count() <= 4_001,
            "{era}"
        );
    }
}

#[tokio::test]
async fn the_server_is_notified_of_a_cancelled_call() {
    for era in ["legacy", "modern"] {
        let scripted = Arc::new(ScriptedServer::new(&["--era", era]));
        let call = request("hang", json!({}));
        let cancel = call.cancel.clone();
        let server = scripted.server.clone();
        let calling = tokio::spawn(async move { server.call(call).await });
        scripted.wait_for_line("call hang").await;
        cancel.cancel();
        let error = calling.await.unwrap().unwrap_err();
        assert_eq!(
            (error.category, error.effect),
            (ErrorCategory::Cancelled, Effect::Unknown)
        );
        scripted.wait_for_line("cancelled").await;
        let outcome = scripted.call("echo", json!({})).await;
        assert_eq!(
            expect_answer(outcome).value,
            json!({}),
            "the connection stays open"
        );
        assert_eq!(
            scripted
                .log_lines()
                .iter()
                .filter(|line| line.starts_with("cancelled"))
                .count(),
            1
        );
    }
}

#[tokio::test]
async fn the_server_is_notified_of_a_dropped_call() {
    let scripted = ScriptedServer::new(&[]);
    let server = scripted.server.clone();
    let calling = tokio::spawn(async move { server.call(request("hang", json!({}))).await });
    scripted.wait_for_line("call hang").await;
    calling.abort();
    scripted.wait_for_line("cancelled").await;
}

#[tokio::test]
async fn a_call_cancelled_before_it_was_sent_has_no_effect() {
    let scripted = ScriptedServer::new(&["--start-delay", "600000"]);
    let call = request("effect", json!({}));
    let cancel = call.cancel.clone();
    let server = scripted.server.clone();
    let calling = tokio::spawn(async move { server.call(call).await });
    scripted.wait_for_line("start").await;
    cancel.cancel();
    let error = calling.await.unwrap().unwrap_err();
    assert_eq!(
        (error.category, error.effect),
        (ErrorCategory::Cancelled, Effect::None)
    );
    assert_eq!(scripted.count("effect"), 0);
}

#[tokio::test]
async fn calls_run_concurrently() {
    let scripted = ScriptedServer::new(&[]);
    scripted.server.connect().await.unwrap();
    let hanging = {
        let server = scripted.server.clone();
        tokio::spawn(async move { server.call(request("hang", json!({}))).await })
    };
    scripted.wait_for_line("call hang").await;
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
        let (n, outcome) = call.await.unwrap();
        assert_eq!(expect_answer(outcome).value, json!({ "n": n }));
    }
    hanging.abort();
}

#[tokio::test]
async fn an_unrequested_task_is_an_error() {
    let scripted = ScriptedServer::new(&["--era", "modern"]);
    let error = scripted.call_error("task", json!({})).await;
    assert_eq!(error.effect, Effect::Unknown);
    assert!(error.message.contains("task"), "{error}");
}

#[tokio::test]
async fn a_server_that_stops_reading_can_be_closed() {
    let scripted = ScriptedServer::new(&[]);
    let server = scripted.server.clone();
    let deaf = tokio::spawn(async move { server.call(request("deaf", json!({}))).await });
    scripted.wait_for_line("call deaf").await;
    // More than the pipe holds, so the writer blocks.
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
async fn null_arguments_are_sent_in_the_modern_era() {
    let mut options = options();
    options.era = Some(Era::Modern);
    let scripted = ScriptedServer::with(&["--era", "modern"], options, |_| {});
    let call = request("echo", json!({ "nothing": null }));
    assert_eq!(
        expect_answer(scripted.server.call(call).await.unwrap()).value,
        json!({ "nothing": null })
    );
}
