//! Servers that send too much.

use std::time::{Duration, Instant};

use serde_json::json;
use windlass_mcp::{CallRequest, Progress};
use windlass_spec::{Effect, ErrorCategory};

use super::start::{Scripted, answered, keeping, options, request};

/// The memory this process uses at the most so far, in bytes.
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
async fn flood_of_progress_is_thinned_out_and_its_end_told() {
    let scripted = Scripted::new(&[]);
    let (kept, progress) = keeping::<Progress>();
    let call = CallRequest {
        progress: Some(progress),
        ..request("progress", json!({ "count": 50_000 }))
    };
    let begun = Instant::now();
    scripted.server.call(call).await.unwrap();
    let kept = kept.lock().unwrap();
    let most = begun.elapsed().as_millis() / 50 + 3;
    assert!((kept.len() as u128) <= most, "{} tellings", kept.len());
    assert_eq!(kept.last().unwrap().done, 50_000.0);
}

#[tokio::test]
async fn flood_of_logs_does_no_harm() {
    let scripted = Scripted::new(&[]);
    let came = scripted
        .server
        .call(request("logs", json!({ "count": 100_000 })))
        .await
        .unwrap();
    assert_eq!(answered(came).value, json!("done"));
}

#[tokio::test]
async fn flood_of_changes_makes_few_generations() {
    for era in ["legacy", "modern"] {
        let scripted = Scripted::new(&["--era", era]);
        scripted.server.definitions().await.unwrap();
        if era == "modern" {
            scripted.says("listen").await;
        }
        let generation = scripted.server.generation();
        let begun = Instant::now();
        scripted
            .server
            .call(request("changes", json!({ "count": 20_000 })))
            .await
            .unwrap();
        let now = scripted.server.generation();
        assert!(now > generation, "{era}: a change is told");
        let most = begun.elapsed().as_secs() + 2;
        assert!(
            now - generation <= most,
            "{era}: {} generations",
            now - generation
        );
    }
}

#[tokio::test]
async fn huge_answer_is_a_clear_error_and_the_connection_lives_on() {
    for id_last in [false, true] {
        let scripted = Scripted::new(&[]);
        scripted.server.connect().await.unwrap();
        let starts = scripted.count("start");
        let server = scripted.server.clone();
        let beside = tokio::spawn(async move { server.call(request("hang", json!({}))).await });
        scripted.says("call hang").await;
        let before = peak_memory();
        let arguments = json!({ "bytes": 50 << 20, "id_last": id_last });
        let error = scripted
            .server
            .call(request("huge", arguments))
            .await
            .unwrap_err();
        assert_eq!(
            (error.category, error.effect),
            (ErrorCategory::InvalidOutput, Effect::Unknown)
        );
        assert!(
            error.message.contains("larger than 16777216 bytes"),
            "{error}"
        );
        assert!(!beside.is_finished(), "the call beside it is not touched");
        let came = scripted
            .server
            .call(request("echo", json!({ "a": 1 })))
            .await
            .unwrap();
        assert_eq!(answered(came).value, json!({ "a": 1 }));
        assert_eq!(scripted.count("start"), starts);
        // Other tests of this process use memory too; fifty megabytes read whole would be far more.
        assert!(peak_memory() - before < 200 << 20);
        beside.abort();
    }
}

#[tokio::test]
async fn large_answer_within_the_limits_comes_whole() {
    let scripted = Scripted::new(&[]);
    let call = CallRequest {
        max_output_bytes: 16 << 20,
        ..request("huge", json!({ "bytes": 8 << 20 }))
    };
    let answer = answered(scripted.server.call(call).await.unwrap());
    assert_eq!(answer.value.as_str().unwrap().len(), 8 << 20);
}

#[tokio::test]
async fn answers_that_cannot_be_read_end_their_calls() {
    let scripted = Scripted::new(&[]);
    for tool in ["deep", "broken"] {
        let error = scripted
            .server
            .call(request(tool, json!({})))
            .await
            .unwrap_err();
        assert_eq!(error.category, ErrorCategory::InvalidOutput, "{tool}");
        assert!(error.message.contains("cannot be read"), "{error}");
    }
    scripted
        .server
        .call(request("echo", json!({})))
        .await
        .unwrap();
}

#[tokio::test]
async fn small_limits_hold() {
    let mut options = options();
    options.limits.message_bytes = 4_000;
    let scripted = Scripted::with(&["--tools", "5", "--page", "2"], options, |_| {});
    assert_eq!(scripted.server.definitions().await.unwrap().len(), 5);
    let call = request("echo", json!({ "a": "x".repeat(5_000) }));
    let within = Duration::from_secs(20);
    let error = tokio::time::timeout(within, scripted.server.call(call))
        .await
        .unwrap()
        .unwrap_err();
    assert_eq!(error.category, ErrorCategory::InvalidOutput);
}
