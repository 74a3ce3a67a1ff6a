//! Servers that end, and how they come back.

use std::time::{Duration, Instant};

use serde_json::json;
use windlass_mcp::{Era, Health, ServerOptions};
use windlass_spec::{Effect, ErrorCategory};

use super::start::{Scripted, answered, eventually, options, request};

fn legacy() -> ServerOptions {
    ServerOptions {
        era: Some(Era::Legacy),
        ..options()
    }
}

#[tokio::test]
async fn first_users_share_one_start() {
    let scripted = Scripted::with(&["--start-delay", "300"], legacy(), |_| {});
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
async fn server_that_dies_in_mid_call_leaves_the_effect_unknown_and_comes_back() {
    for era in ["legacy", "modern"] {
        let scripted = Scripted::new(&["--era", era]);
        scripted.server.definitions().await.unwrap();
        let generation = scripted.server.generation();
        let starts = scripted.count("start");
        let error = scripted
            .server
            .call(request("die", json!({})))
            .await
            .unwrap_err();
        assert_eq!(
            (error.category, error.effect),
            (ErrorCategory::Unavailable, Effect::Unknown)
        );
        assert!(error.message.contains("exit status: 7"), "{error}");
        assert!(error.message.contains("cannot go on"), "{error}");
        assert!(matches!(scripted.server.health(), Health::Failing { .. }));
        let came = scripted
            .server
            .call(request("echo", json!({ "a": 1 })))
            .await
            .unwrap();
        assert_eq!(answered(came).value, json!({ "a": 1 }));
        assert_eq!(scripted.count("start"), starts + 1, "{era}");
        assert_eq!(scripted.server.generation(), generation + 1, "{era}");
    }
}

#[tokio::test]
async fn server_killed_in_mid_call_is_noticed_at_once() {
    let scripted = Scripted::with(&[], legacy(), |_| {});
    scripted.server.definitions().await.unwrap();
    let server = scripted.server.clone();
    let calling = tokio::spawn(async move { server.call(request("hang", json!({}))).await });
    scripted.says("call hang").await;
    let begun = Instant::now();
    let killed = std::process::Command::new("kill")
        .args(["-9", &scripted.process().to_string()])
        .status()
        .unwrap();
    assert!(killed.success());
    let error = calling.await.unwrap().unwrap_err();
    assert_eq!(error.effect, Effect::Unknown);
    assert!(begun.elapsed() < Duration::from_secs(3));
    scripted
        .server
        .call(request("echo", json!({})))
        .await
        .unwrap();
}

#[tokio::test]
async fn server_that_never_starts_is_left_alone_longer_and_longer() {
    let scripted = Scripted::with(&["--die", "start"], legacy(), |_| {});
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
            panic!("it fails");
        };
        assert_eq!(attempts, attempt);
        assert!(error.message.contains("exit status: 3"));
        waits.push(next_try - Instant::now());
        // Whoever comes too early is told without anything being started.
        let starts = scripted.count("start");
        let error = scripted
            .server
            .call(request("echo", json!({})))
            .await
            .unwrap_err();
        assert_eq!(
            (error.category, error.effect),
            (ErrorCategory::Unavailable, Effect::None)
        );
        assert!(error.message.contains("tried again in"), "{error}");
        assert_eq!(scripted.count("start"), starts);
        tokio::time::sleep_until(next_try.into()).await;
    }
    assert!(waits[2] > waits[0], "{waits:?}");
}

#[tokio::test]
async fn server_that_dies_as_soon_as_it_is_there_is_not_started_in_a_loop() {
    let scripted = Scripted::with(&["--die", "greeted"], legacy(), |_| {});
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
async fn server_that_ends_while_nobody_uses_it_is_started_on_the_next_use() {
    let scripted = Scripted::with(&[], legacy(), |_| {});
    scripted.server.definitions().await.unwrap();
    let process = scripted.process();
    std::process::Command::new("kill")
        .args(["-9", &process.to_string()])
        .status()
        .unwrap();
    eventually("it is noticed", || {
        matches!(scripted.server.health(), Health::Failing { .. })
    })
    .await;
    assert_eq!(
        scripted.count("start"),
        1,
        "nothing is started until it is used"
    );
    scripted
        .server
        .call(request("echo", json!({})))
        .await
        .unwrap();
    assert_eq!(scripted.count("start"), 2);
}

#[tokio::test]
async fn start_that_was_given_up_is_made_anew_by_the_next() {
    let scripted = Scripted::with(&["--start-delay", "400"], legacy(), |_| {});
    let server = scripted.server.clone();
    let first = tokio::spawn(async move { server.connect().await });
    scripted.says("start").await;
    first.abort();
    let _ = first.await;
    scripted.server.connect().await.unwrap();
}
