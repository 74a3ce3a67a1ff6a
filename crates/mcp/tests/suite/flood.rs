//! Servers that send too many or too large messages.

use std::time::{Duration, Instant};

use serde_json::json;
use windlass_mcp::{CallRequest, Progress};
use windlass_spec::{Effect, ErrorCategory};

use super::scripted::{ScriptedServer, expect_answer, options, recorder, request};

/// The peak memory of this process, in bytes.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    let kilobytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kilobytes * 1024
}

#[tokio::test]
async fn a_flood_of_progress_is_throttled_and_its_end_is_reported() {
    let scripted = ScriptedServer::new(&[]);
    let (recorded, progress) = recorder::<Progress>();
    let call = CallRequest {
        progress: Some(progress),
        ..request("progress", json!({ "count": 50_000 }))
    };
    let begun = Instant::now();
    scripted.server.call(call).await.unwrap();
    let recorded = recorded.lock().unwrap();
    let most = begun.elapsed().as_millis() / 50 + 3;
    assert!(
        (recorded.len() as u128) <= most,
        "{} reports",
        recorded.len()
    );
    assert_eq!(recorded.last().unwrap().done, 50_000.0);
}

#[tokio::test]
async fn a_flood_of_log_messages_is_ignored() {
    let scripted = ScriptedServer::new(&[]);
    let outcome = scripted.call("logs", json!({ "count": 100_000 })).await;
    assert_eq!(expect_answer(outcome).value, json!("done"));
}

#[tokio::test]
async fn a_flood_of_list_changes_makes_few_generations() {
    for era in ["legacy", "modern"] {
        let scripted = ScriptedServer::new(&["--era", era]);
        scripted.server.definitions().await.unwrap();
        if era == "modern" {
            scripted.wait_for_line("listen").await;
        }
        let generation = scripted.server.generation();
        let begun = Instant::now();
        scripted.call("changes", json!({ "count": 20_000 })).await;
        let now = scripted.server.generation();
        assert!(now > generation, "{era}: a change makes a new generation");
        let most = begun.elapsed().as_secs() + 2;
        assert!(
            now - generation <= most,
            "{era}: {} generations",
            now - generation
        );
    }
}

#[tokio::test]
async fn a_huge_answer_is_an_error_and_the_connection_stays_open() {
    for id_last in [false, true] {
        let scripted = ScriptedServer::new(&[]);
        scripted.server.connect().await.unwrap();
        let starts = scripted.count("start");
        let server = scripted.server.clone();
        let concurrent = tokio::spawn(async move { server.call(request("hang", json!({}))).await });
        scripted.wait_for_line("call hang").await;
        let before = peak_memory();
        let arguments = json!({ "bytes": 50 << 20, "id_last": id_last });
        let error = scripted.call_error("huge", arguments).await;
        assert_eq!(
            (error.category, error.effect),
            (ErrorCategory::InvalidOutput, Effect::Unknown)
        );
        assert!(
            error.message.contains("larger than 16777216 bytes"),
            "{error}"
        );
        assert!(
            !concurrent.is_finished(),
            "a concurrent call is not affected"
        );
        scripted.assert_echoes().await;
        assert_eq!(scripted.count("start"), starts);
        // Other tests of this process use memory too, so the limit is generous.
        assert!(peak_memory() - before < 200 << 20);
        concurrent.abort();
    }
}

#[tokio::test]
async fn a_large_answer_within_the_limits_is_complete() {
    let scripted = ScriptedServer::new(&[]);
    let call = CallRequest {
        max_output_bytes: 16 << 20,
        ..request("huge", json!({ "bytes": 8 << 20 }))
    };
    let answer = expect_answer(scripted.server.call(call).await.unwrap());
    assert_eq!(answer.value.as_str().unwrap().len(), 8 << 20);
}

#[tokio::test]
async fn unreadable_answers_fail_their_calls() {
    let scripted = ScriptedServer::new(&[]);
    for tool in ["deep", "broken"] {
        let error = scripted.call_error(tool, json!({})).await;
        assert_eq!(error.category, ErrorCategory::InvalidOutput, "{tool}");
        assert!(error.message.contains("cannot be read"), "{error}");
    }
    scripted.call("echo", json!({})).await;
}

#[tokio::test]
async fn the_message_limit_is_enforced() {
    let mut options = options();
    options.limits.message_bytes = 4_000;
    let scripted = ScriptedServer::with(&["--tools", "5", "--page", "2"], options, |_| {});
    assert_eq!(scripted.server.definitions().await.unwrap().len(), 5);
    let call = request("echo", json!({ "a": "x".repeat(5_000) }));
    let within = Duration::from_secs(20);
    let error = tokio::time::timeout(within, scripted.server.call(call))
        .await
        .unwrap()
        .unwrap_err();
    assert_eq!(error.category, ErrorCategory::InvalidOutput);
}
