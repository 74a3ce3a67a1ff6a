//! Restarts of servers that end.

use std::time::{Duration, Instant};

use serde_json::json;
use windlass_mcp::{Era, Health, ServerOptions};
use windlass_spec::{Effect, ErrorCategory};

use super::scripted::{ScriptedServer, eventually, options, request};

fn legacy() -> ServerOptions {
    ServerOptions {
        era: Some(Era::Legacy),
        ..options()
    }
}

#[tokio::test]
async fn concurrent_callers_share_one_start() {
    let scripted = ScriptedServer::with(&["--start-delay", "300"], legacy(), |_| {});
    let mut users = Vec::new();
    for n in 0..10 {
        let server = scripted.server.clone();
        users.push(tokio::spawn(async move {
            server.call(request("echo", json!({ "n": n }))).await
        }));
    }
    for user in users {
        user.await.unwrap().unwrap();
    }
    assert_eq!(scripted.count("start"), 1);
    assert_eq!(scripted.server.generation(), 1);
    assert!(matches!(scripted.server.health(), Health::Ready { .. }));
}

#[tokio::test]
async fn a_crash_during_a_call_leaves_the_effect_unknown_and_the_server_restarts() {
    for era in ["legacy", "modern"] {
        let scripted = ScriptedServer::new(&["--era", era]);
        scripted.server.definitions().await.unwrap();
        let generation = scripted.server.generation();
        let starts = scripted.count("start");
        let error = scripted.call_error("die", json!({})).await;
        assert_eq!(
            (error.category, error.effect),
            (ErrorCategory::Unavailable, Effect::Unknown)
        );
        assert!(error.message.contains("exit status: 7"), "{error}");
        assert!(error.message.contains("cannot go on"), "{error}");
        assert!(matches!(scripted.server.health(), Health::Failing { .. }));
        scripted.assert_echoes().await;
        assert_eq!(scripted.count("start"), starts + 1, "{era}");
        assert_eq!(scripted.server.generation(), generation + 1, "{era}");
    }
}

#[tokio::test]
async fn a_kill_during_a_call_is_detected_at_once() {
    let scripted = ScriptedServer::with(&[], legacy(), |_| {});
    scripted.server.definitions().await.unwrap();
    let server = scripted.server.clone();
    let calling = tokio::spawn(async move { server.call(request("hang", json!({}))).await });
    scripted.wait_for_line("call hang").await;
    let begun = Instant::now();
    let killed = std::process::Command::new("kill")
        .args(["-9", &scripted.process().to_string()])
        .status()
        .unwrap();
    assert!(killed.success());
    let error = calling.await.unwrap().unwrap_err();
    assert_eq!(error.effect, Effect::Unknown);
    assert!(begun.elapsed() < Duration::from_secs(3));
    scripted.call("echo", json!({})).await;
}

#[tokio::test]
async fn failed_starts_are_retried_with_backoff() {
    let scripted = ScriptedServer::with(&["--die", "start"], legacy(), |_| {});
    let mut waits = Vec::new();
    for attempt in 1..=3u32 {
        let starts = scripted.count("start");
        assert!(scripted.server.connect().await.is_err());
        assert!(
            scripted.count("start") > starts,
            "attempt {attempt} was made"
        );
        let Health::Failing {
            attempts,
            next_try,
            error,
        } = scripted.server.health()
        else {
            panic!("the server is not failing");
        };
        assert_eq!(attempts, attempt);
        assert!(error.message.contains("exit status: 3"));
        waits.push(next_try - Instant::now());
        // A call during the backoff fails without a start.
        let starts = scripted.count("start");
        let error = scripted.call_error("echo", json!({})).await;
        assert_eq!(
            (error.category, error.effect),
            (ErrorCategory::Unavailable, Effect::None)
        );
        assert!(
            error.message.contains("next attempt is possible in"),
            "{error}"
        );
        assert_eq!(scripted.count("start"), starts);
        tokio::time::sleep_until(next_try.into()).await;
    }
    assert!(waits[2] > waits[0], "{waits:?}");
}

#[tokio::test]
async fn a_server_that_dies_after_the_handshake_is_not_restarted_in_a_loop() {
    let scripted = ScriptedServer::with(&["--die", "greeted"], legacy(), |_| {});
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(1_500) {
        let _ = scripted.server.call(request("echo", json!({}))).await;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let starts = scripted.count("start");
    assert!((2..=12).contains(&starts), "{starts} starts in 1.5 seconds");
    assert!(matches!(scripted.server.health(), Health::Failing { .. }));
}

#[tokio::test]
async fn an_idle_server_that_ends_is_restarted_on_the_next_use() {
    let scripted = ScriptedServer::with(&[], legacy(), |_| {});
    scripted.server.definitions().await.unwrap();
    let process = scripted.process();
    std::process::Command::new("kill")
        .args(["-9", &process.to_string()])
        .status()
        .unwrap();
    eventually("the end is detected", || {
        matches!(scripted.server.health(), Health::Failing { .. })
    })
    .await;
    assert_eq!(
        scripted.count("start"),
        1,
        "it is not restarted before it is used"
    );
    scripted.call("echo", json!({})).await;
    assert_eq!(scripted.count("start"), 2);
}

#[tokio::test]
async fn an_aborted_start_is_repeated_by_the_next_caller() {
    let scripted = ScriptedServer::with(&["--start-delay", "400"], legacy(), |_| {});
    let server = scripted.server.clone();
    let first = tokio::spawn(async move { server.connect().await });
    scripted.wait_for_line("start").await;
    first.abort();
    let _ = first.await;
    scripted.server.connect().await.unwrap();
}
