//! Hostile servers behind a bare connection, in both eras where possible. `attacks` tests them behind pins
//! and the gate.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use windlass_mcp::{
    CallOutcome, CallRequest, Definition, Elicitation, ElicitationReply, Progress, Server,
    ServerOptions, ToolAnswer,
};
use windlass_spec::server::Transport;
use windlass_spec::{Effect, ErrorCategory};

use super::scripted::{
    eventually, expect_answer, is_running, listener, options, recorder, request, settings,
};

/// The flags for either era.
const ERAS: [&[&str]; 2] = [&[], &["--modern"]];

/// The timeout of calls: long enough for a busy machine.
const WITHIN: Duration = Duration::from_secs(60);

/// A hostile server and the files that it records its effects in.
struct HostileServer {
    server: Server,
    directory: TempDir,
}

impl HostileServer {
    fn new(mode: &str, flags: &[&str]) -> Self {
        Self::with(mode, flags, options())
    }

    fn with(mode: &str, flags: &[&str], options: ServerOptions) -> Self {
        let directory = TempDir::new().unwrap();
        let words: Vec<&str> = [mode].iter().chain(flags).copied().collect();
        let mut settings = settings(env!("CARGO_BIN_EXE_windlass-mcp-hostile"), &words);
        if let Transport::Command(command) = &mut settings.transport {
            for name in ["effects", "seen"] {
                let file = directory.path().join(name).display().to_string();
                command.arguments.extend([format!("--{name}"), file]);
            }
        }
        Self {
            server: Server::new(settings, options),
            directory,
        }
    }

    fn lines(&self, name: &str) -> Vec<Value> {
        let file: PathBuf = self.directory.path().join(name);
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        lines.collect()
    }

    /// The effects of its tools, by tool name.
    fn effects(&self) -> Vec<String> {
        let tool = |line: &Value| line["tool"].as_str().unwrap().to_owned();
        self.lines("effects").iter().map(tool).collect()
    }

    fn assert_no_effects(&self) {
        let effects = self.effects();
        assert!(effects.is_empty(), "{effects:?}");
    }

    /// The events that it recorded under a word.
    fn seen(&self, word: &str) -> Vec<Value> {
        let mut lines = self.lines("seen");
        lines.retain(|line| line["seen"] == word);
        lines
    }

    /// Calls a tool without arguments.
    async fn call(&self, tool: &str) -> Result<CallOutcome, windlass_mcp::CallError> {
        self.call_with(request(tool, json!({}))).await
    }

    async fn call_with(
        &self,
        request: CallRequest,
    ) -> Result<CallOutcome, windlass_mcp::CallError> {
        let called = tokio::time::timeout(WITHIN, self.server.call(request)).await;
        called.expect("the call ends")
    }

    /// Asserts that the connection works or recovers.
    async fn assert_usable(&self) {
        let note = request("read_note", json!({ "name": "welcome" }));
        let note = expect_answer(self.call_with(note).await.unwrap());
        let hello = ToolAnswer {
            is_error: false,
            value: json!("Hello."),
        };
        assert_eq!(note, hello);
    }
}

fn schema_of(definitions: &[Definition], tool: &str) -> Option<Value> {
    let found = definitions.iter().find(|found| found.name() == tool);
    found.unwrap().output_schema().cloned()
}

#[tokio::test]
async fn an_honest_server_works_in_either_era() {
    for flags in ERAS {
        let honest = HostileServer::new("honest", flags);
        let definitions = honest.server.definitions().await.unwrap();
        let names: Vec<&str> = definitions.iter().map(Definition::name).collect();
        assert_eq!(
            names,
            ["read_note", "add_note", "delete_note", "count_notes"]
        );
        honest.assert_usable().await;
        let tea = request("add_note", json!({ "name": "tea", "text": "Buy tea." }));
        assert!(!expect_answer(honest.call_with(tea).await.unwrap()).is_error);
        let mut count = request("count_notes", json!({}));
        count.output_schema = schema_of(&definitions, "count_notes");
        let count = expect_answer(honest.call_with(count).await.unwrap());
        assert_eq!(count.value, json!({ "count": 2 }));
        assert_eq!(honest.effects(), ["add_note"]);
        honest.server.close().await;
    }
}

#[tokio::test]
async fn a_change_of_definitions_is_detected_during_a_session() {
    for flags in ERAS {
        let flags: Vec<&str> = flags.iter().copied().chain(["--turn", "1"]).collect();
        let changing = HostileServer::new("pull-hint", &flags);
        let before = changing.server.definitions().await.unwrap();
        let generation = changing.server.generation();
        changing.assert_usable().await;
        eventually("another generation", || {
            changing.server.generation() != generation
        })
        .await;
        let after = changing.server.definitions().await.unwrap();
        let hint = |all: &[Definition]| {
            let archive = all.iter().find(|tool| tool.name() == "archive_notes");
            archive.unwrap().hints().read_only
        };
        assert_eq!(hint(&before), Some(false));
        assert_eq!(hint(&after), Some(true));
        changing.server.close().await;
    }
}

#[tokio::test]
async fn a_server_gets_only_named_variables() {
    let server = HostileServer::new("environment", &[]);
    let got = expect_answer(server.call("get_env").await.unwrap());
    let got: BTreeMap<String, String> = serde_json::from_str(got.value.as_str().unwrap()).unwrap();
    let more: Vec<&String> = got
        .keys()
        .filter(|name| !["PATH", "HOME", "LANG"].contains(&name.as_str()))
        .collect();
    assert!(more.is_empty(), "{more:?}");
    server.server.close().await;
}

#[tokio::test]
async fn too_large_or_too_deep_results_fail_and_the_next_call_works() {
    for (mode, tool) in [("result-huge", "read_page"), ("result-deep", "read_tree")] {
        for flags in ERAS {
            let hostile = HostileServer::new(mode, flags);
            hostile.assert_usable().await;
            let error = hostile.call(tool).await.unwrap_err();
            assert_ne!(error.effect, Effect::None, "{mode}: {error:?}");
            assert!(error.message.len() < 10_000, "{mode}");
            hostile.assert_usable().await;
            hostile.server.close().await;
        }
    }
}

#[tokio::test]
async fn a_call_with_an_endless_line_can_be_cancelled() {
    let hostile = HostileServer::new("flood-line", &[]);
    hostile.assert_usable().await;
    let flood = request("flood", json!({}));
    let cancel = flood.cancel.clone();
    let (server, flooding) = (hostile.server.clone(), flood.clone());
    let calling = tokio::spawn(async move { server.call(flooding).await });
    let is_flooding = || {
        hostile
            .seen("called")
            .iter()
            .any(|call| call["tool"] == "flood")
    };
    eventually("the flood", is_flooding).await;
    cancel.cancel();
    let error = calling.await.unwrap().unwrap_err();
    assert_eq!(error.category, ErrorCategory::Cancelled);
    assert_eq!(error.effect, Effect::Unknown);
    // The next answer is on the same line and is lost.
    let _ = hostile.call_with(request("count_notes", json!({}))).await;
    hostile.assert_usable().await;
    hostile.server.close().await;
}

#[tokio::test]
async fn a_truncated_message_fails_at_most_one_call() {
    for flags in ERAS {
        let hostile = HostileServer::new("truncated", &[flags, &["--count", "1"]].concat());
        let error = hostile.call("count_notes").await.unwrap_err();
        assert_eq!(error.category, ErrorCategory::InvalidOutput);
        assert_eq!(error.effect, Effect::Unknown);
        hostile.assert_usable().await;
        hostile.server.close().await;
    }
}

#[tokio::test]
async fn results_that_violate_their_output_schema_are_refused() {
    for mode in ["result-breaks-schema", "result-no-structure"] {
        for flags in ERAS {
            let hostile = HostileServer::new(mode, flags);
            let definitions = hostile.server.definitions().await.unwrap();
            let mut weather = request("read_weather", json!({}));
            weather.output_schema = schema_of(&definitions, "read_weather");
            let error = hostile.call_with(weather).await.unwrap_err();
            assert_eq!(error.category, ErrorCategory::InvalidOutput, "{mode}");
            hostile.assert_usable().await;
            hostile.server.close().await;
        }
    }
}

#[tokio::test]
async fn malicious_output_schemas_neither_hang_nor_connect() {
    let (address, visits) = listener();
    let mut refused = Vec::new();
    for (mode, tools) in [
        ("schema-recursive", &["loops_output", "rings_output"][..]),
        ("schema-any-of", &["any_of_output"]),
        ("schema-doubling", &["doubling_output"]),
        ("schema-external", &["address_output", "file_output"]),
        ("schema-pattern", &["pattern_output"]),
    ] {
        let hostile = HostileServer::new(mode, &["--url", &address]);
        let definitions = hostile.server.definitions().await.unwrap();
        for tool in tools {
            let mut call = request(tool, json!({}));
            call.output_schema = schema_of(&definitions, tool);
            assert!(call.output_schema.is_some());
            let called = hostile.seen("called").len();
            // The call may fail or succeed, but it must end soon.
            if let Err(error) = hostile.call_with(call).await
                && error.effect == Effect::None
            {
                // A tool whose answer could not be checked is not called.
                assert_eq!(hostile.seen("called").len(), called, "{tool}: {error}");
                refused.push(*tool);
            }
        }
        hostile.assert_usable().await;
        hostile.server.close().await;
    }
    assert_eq!(visits.load(Ordering::SeqCst), 0);
    assert!(refused.contains(&"address_output"), "{refused:?}");
}

#[tokio::test]
async fn a_slow_start_is_waited_for_until_the_timeout() {
    let slow = HostileServer::new("slow-start", &["--delay", "700"]);
    slow.assert_usable().await;
    slow.server.close().await;
    let mut settings = slow.server.settings().clone();
    settings.start_timeout = Duration::from_millis(100);
    let hasty = Server::new(settings, options());
    let error = hasty.connect().await.unwrap_err();
    assert_eq!(error.category, ErrorCategory::Timeout, "{error}");
    hasty.close().await;
}

#[tokio::test]
async fn the_server_is_usable_after_floods() {
    for mode in [
        "flood-progress",
        "flood-log",
        "flood-list-changed",
        "flood-requests",
    ] {
        for flags in ERAS {
            let hostile = HostileServer::new(mode, flags);
            let (recorded, progress) = recorder::<Progress>();
            let mut flood = request("flood", json!({}));
            flood.progress = Some(progress);
            let done = expect_answer(hostile.call_with(flood).await.unwrap());
            assert_eq!(done.value, json!("looked at all notes"), "{mode}");
            let reports = recorded.lock().unwrap().len();
            assert!(reports < 10_000, "{mode}: {reports} progress reports");
            hostile.assert_usable().await;
            hostile.assert_no_effects();
            hostile.server.close().await;
        }
    }
    let hostile = HostileServer::new("flood-errors", &[]);
    hostile.assert_usable().await;
    hostile.server.close().await;
}

#[tokio::test]
async fn endless_calls_can_be_cancelled_and_the_server_is_notified() {
    for flags in ERAS {
        let hostile = HostileServer::new("endless-call", flags);
        for tool in ["wait_silently", "wait_with_progress", "wait_deaf"] {
            let cancelled = hostile.seen("cancelled").len();
            let called = hostile.seen("called").len();
            let wait = request(tool, json!({}));
            let cancel = wait.cancel.clone();
            let (server, waiting) = (hostile.server.clone(), wait.clone());
            let calling = tokio::spawn(async move { server.call(waiting).await });
            eventually("the call", || hostile.seen("called").len() > called).await;
            cancel.cancel();
            let error = calling.await.unwrap().unwrap_err();
            assert_eq!(error.category, ErrorCategory::Cancelled, "{tool}");
            eventually("a cancellation", || {
                hostile.seen("cancelled").len() > cancelled
            })
            .await;
        }
        hostile.assert_usable().await;
        hostile.server.close().await;
    }
}

#[tokio::test]
async fn endless_lists_are_refused_and_long_ones_are_read() {
    for mode in ["endless-list", "circular-list"] {
        let hostile = HostileServer::new(mode, &[]);
        let listed = tokio::time::timeout(WITHIN, hostile.server.definitions()).await;
        assert!(listed.expect("the list ends").is_err(), "{mode}");
        hostile.server.close().await;
    }
    let many = HostileServer::new("many-tools", &[]);
    assert_eq!(many.server.definitions().await.unwrap().len(), 5_004);
    many.server.close().await;
}

#[tokio::test]
async fn a_harmless_elicitation_is_passed_on_and_its_reply_is_returned() {
    for flags in ERAS {
        let hostile = HostileServer::new("ask-name", flags);
        let asking = request("register", json!({}));
        let outcome = hostile.call_with(asking.clone()).await.unwrap();
        let CallOutcome::NeedsInput(Elicitation::Form { message, schema }) = outcome else {
            panic!("{outcome:?}");
        };
        assert_eq!(message, "Who keeps these notes?");
        assert_eq!(schema["properties"]["colour"]["enum"][0], "red");
        hostile.assert_no_effects();
        let Value::Object(reply) = json!({ "name": "Ann", "colour": "red" }) else {
            panic!("the reply is not an object");
        };
        let outcome = hostile
            .server
            .reply(asking, ElicitationReply::Accept(reply))
            .await
            .unwrap();
        assert!(!expect_answer(outcome).is_error);
        let given = json!({ "name": "Ann", "colour": "red" });
        assert_eq!(hostile.lines("effects")[0]["arguments"], given);
        hostile.server.close().await;
    }
}

#[tokio::test]
async fn elicitations_for_secrets_scripts_and_sampling_are_refused() {
    for mode in [
        "ask-secret",
        "ask-secret-disguised",
        "ask-secret-choice",
        "ask-url-script",
        "ask-model",
    ] {
        for flags in ERAS {
            let hostile = HostileServer::new(mode, flags);
            let outcome = hostile.call("register").await;
            assert!(
                !matches!(outcome, Ok(CallOutcome::NeedsInput(_))),
                "{mode}: {outcome:?}"
            );
            hostile.assert_no_effects();
            hostile.assert_usable().await;
            hostile.server.close().await;
        }
    }
}

#[tokio::test]
async fn a_url_is_passed_on_complete_and_not_opened() {
    let (address, visits) = listener();
    for flags in ERAS {
        let hostile = HostileServer::new("ask-url", &[flags, &["--url", &address]].concat());
        let asking = request("register", json!({}));
        let outcome = hostile.call_with(asking.clone()).await.unwrap();
        let CallOutcome::NeedsInput(Elicitation::Url { url, .. }) = outcome else {
            panic!("{outcome:?}");
        };
        assert_eq!(url, address);
        let declined = hostile
            .server
            .reply(asking, ElicitationReply::Decline)
            .await
            .unwrap();
        assert!(expect_answer(declined).is_error);
        hostile.assert_no_effects();
        hostile.server.close().await;
    }
    assert_eq!(visits.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn an_elicitation_without_a_call_is_refused() {
    let hostile = HostileServer::new("ask-unasked", &[]);
    hostile.server.connect().await.unwrap();
    eventually("a reply", || !hostile.seen("replied").is_empty()).await;
    let reply = &hostile.seen("replied")[0]["reply"];
    assert!(reply.get("error").is_some(), "{reply}");
    hostile.assert_usable().await;
    hostile.server.close().await;
}

#[tokio::test]
async fn endless_elicitations_are_stopped() {
    for flags in ERAS {
        let hostile = HostileServer::new("flood-questions", flags);
        let asking = request("register", json!({}));
        let mut outcome = hostile.call_with(asking.clone()).await;
        let mut asked = 0;
        while let Ok(CallOutcome::NeedsInput(_)) = outcome {
            asked += 1;
            assert!(asked <= 10, "there are too many elicitations");
            let Value::Object(reply) = json!({ "name": "Ann", "colour": "red" }) else {
                panic!("the reply is not an object");
            };
            outcome = hostile
                .server
                .reply(asking.clone(), ElicitationReply::Accept(reply))
                .await;
        }
        assert!(asked >= 2);
        hostile.assert_no_effects();
        hostile.assert_usable().await;
        hostile.server.close().await;
    }
}

#[tokio::test]
async fn each_input_request_counts_towards_the_limit() {
    let hostile = HostileServer::new("ask-many", &["--modern"]);
    let error = hostile.call("register").await.unwrap_err();
    assert_eq!(error.effect, Effect::Unknown);
    assert!(
        error.message.contains("requests input too often"),
        "{error}"
    );
    hostile.assert_no_effects();
    hostile.assert_usable().await;
    hostile.server.close().await;
    // A number within the limit is passed on.
    let hostile = HostileServer::new("ask-many", &["--modern", "--count", "3"]);
    let asking = request("register", json!({}));
    let mut outcome = hostile.call_with(asking.clone()).await.unwrap();
    for _ in 0..3 {
        assert!(matches!(outcome, CallOutcome::NeedsInput(_)), "{outcome:?}");
        let reply = ElicitationReply::Accept(serde_json::Map::new());
        outcome = hostile.server.reply(asking.clone(), reply).await.unwrap();
    }
    assert!(!expect_answer(outcome).is_error);
    hostile.server.close().await;
}

#[tokio::test]
async fn noise_on_standard_output_is_skipped_up_to_a_limit() {
    for mode in ["noise", "noise-dictionary"] {
        for flags in ERAS {
            let hostile = HostileServer::new(mode, flags);
            hostile.assert_usable().await;
            hostile.server.close().await;
        }
    }
    let hostile = HostileServer::new("noise-only", &[]);
    let connected = tokio::time::timeout(WITHIN, hostile.server.connect()).await;
    assert!(connected.expect("the start fails").is_err());
    hostile.server.close().await;
}

#[tokio::test]
async fn answers_to_unknown_requests_are_ignored() {
    for flags in ERAS {
        let hostile = HostileServer::new("confused", flags);
        let note = request("read_note", json!({ "name": "welcome" }));
        match hostile.call_with(note).await {
            Ok(outcome) => assert_eq!(expect_answer(outcome).value, json!("Hello.")),
            // A message without an id may have been the answer.
            Err(error) => {
                assert_eq!(error.category, ErrorCategory::InvalidOutput, "{error}");
                assert_eq!(error.effect, Effect::Unknown);
            }
        }
        hostile.server.close().await;
    }
}

#[tokio::test]
async fn closing_ends_all_processes_of_a_stubborn_server() {
    for mode in ["stays", "grandchild"] {
        let hostile = HostileServer::new(mode, &[]);
        hostile.assert_usable().await;
        let started = [hostile.seen("started"), hostile.seen("grandchild")].concat();
        let process = |line: &Value| u32::try_from(line["pid"].as_u64().unwrap()).unwrap();
        let processes: Vec<u32> = started.iter().map(process).collect();
        // There are two starts if the other era was tried first, each with a grandchild.
        assert!(processes.len() >= 2, "{mode}: {started:?}");
        hostile.server.close().await;
        for process in processes {
            eventually("the end of a process", || !is_running(process)).await;
        }
    }
}

#[tokio::test]
async fn an_escaped_grandchild_does_not_block_closing() {
    let hostile = HostileServer::new("grandchild-escapes", &[]);
    hostile.assert_usable().await;
    let process = |line: &Value| u32::try_from(line["pid"].as_u64().unwrap()).unwrap();
    let (started, escaped) = (hostile.seen("started"), hostile.seen("grandchild"));
    let closed = tokio::time::timeout(WITHIN, hostile.server.close()).await;
    closed.expect("closing ends");
    for server in started.iter().map(process) {
        eventually("the end of a process", || !is_running(server)).await;
    }
    // In its own process group it is not found, as the guide documents.
    for grandchild in escaped.iter().map(process) {
        let killed = std::process::Command::new("kill")
            .arg(grandchild.to_string())
            .status();
        assert!(killed.unwrap().success());
    }
}

#[tokio::test]
async fn a_crash_during_a_call_leaves_the_effect_unknown() {
    for flags in ERAS {
        let hostile = HostileServer::new("dies-in-call", flags);
        hostile.assert_usable().await;
        let error = hostile.call("crash").await.unwrap_err();
        assert_eq!(error.effect, Effect::Unknown);
        assert_eq!(error.category, ErrorCategory::Unavailable);
        assert_eq!(hostile.effects(), ["crash"]);
        hostile.assert_usable().await;
        assert_eq!(hostile.effects(), ["crash"], "nothing is repeated");
        hostile.server.close().await;
    }
}

#[tokio::test]
async fn the_error_of_a_failed_start_contains_standard_error() {
    let hostile = HostileServer::new("dies-at-start", &[]);
    let error = hostile.server.connect().await.unwrap_err();
    assert!(error.message.contains("no licence found"), "{error}");
    hostile.server.close().await;
}
