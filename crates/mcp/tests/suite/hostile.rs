//! What the connection alone makes of servers that do wrong, in both eras where both have it. What the
//! pins make of them is tested where pins and connections come together.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use windlass_mcp::{
    Answered, CallRequest, Came, Definition, Elicitation, Progress, Reply, Server, ServerOptions,
};
use windlass_spec::server::Transport;
use windlass_spec::{Effect, ErrorCategory};

use super::start::{
    answered, eventually, is_running, keeping, listener, options, request, settings,
};

/// The flags for either era.
const ERAS: [&[&str]; 2] = [&[], &["--modern"]];

/// Long enough for a busy machine, too short for what never ends.
const WITHIN: Duration = Duration::from_secs(60);

/// A server that does wrong, and what it puts down about it.
struct Hostile {
    server: Server,
    directory: TempDir,
}

impl Hostile {
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

    /// What its tools really did, by name.
    fn effects(&self) -> Vec<String> {
        let tool = |line: &Value| line["tool"].as_str().unwrap().to_owned();
        self.lines("effects").iter().map(tool).collect()
    }

    fn did_nothing(&self) {
        let effects = self.effects();
        assert!(effects.is_empty(), "{effects:?}");
    }

    /// What it noticed under a word.
    fn seen(&self, word: &str) -> Vec<Value> {
        let mut lines = self.lines("seen");
        lines.retain(|line| line["seen"] == word);
        lines
    }

    /// Calls a tool that takes nothing.
    async fn call(&self, tool: &str) -> Result<Came, windlass_mcp::CallError> {
        self.go(request(tool, json!({}))).await
    }

    async fn go(&self, request: CallRequest) -> Result<Came, windlass_mcp::CallError> {
        let called = tokio::time::timeout(WITHIN, self.server.call(request)).await;
        called.expect("the call ends")
    }

    /// The connection is good, or mended by itself.
    async fn still_works(&self) {
        let note = request("read_note", json!({ "name": "welcome" }));
        let note = answered(self.go(note).await.unwrap());
        let hello = Answered {
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
async fn an_honest_server_is_used_in_either_era() {
    for flags in ERAS {
        let honest = Hostile::new("honest", flags);
        let definitions = honest.server.definitions().await.unwrap();
        let names: Vec<&str> = definitions.iter().map(Definition::name).collect();
        assert_eq!(
            names,
            ["read_note", "add_note", "delete_note", "count_notes"]
        );
        honest.still_works().await;
        let tea = request("add_note", json!({ "name": "tea", "text": "Buy tea." }));
        assert!(!answered(honest.go(tea).await.unwrap()).is_error);
        let mut count = request("count_notes", json!({}));
        count.output_schema = schema_of(&definitions, "count_notes");
        let count = answered(honest.go(count).await.unwrap());
        assert_eq!(count.value, json!({ "count": 2 }));
        assert_eq!(honest.effects(), ["add_note"]);
        honest.server.close().await;
    }
}

#[tokio::test]
async fn a_change_of_definitions_is_noticed_in_mid_session() {
    for flags in ERAS {
        let flags: Vec<&str> = flags.iter().copied().chain(["--turn", "1"]).collect();
        let pulled = Hostile::new("pull-hint", &flags);
        let before = pulled.server.definitions().await.unwrap();
        let generation = pulled.server.generation();
        pulled.still_works().await;
        eventually("another generation", || {
            pulled.server.generation() != generation
        })
        .await;
        let after = pulled.server.definitions().await.unwrap();
        let hint = |all: &[Definition]| {
            let archive = all.iter().find(|tool| tool.name() == "archive_notes");
            archive.unwrap().hints().read_only
        };
        assert_eq!(hint(&before), Some(false));
        assert_eq!(hint(&after), Some(true));
        pulled.server.close().await;
    }
}

#[tokio::test]
async fn a_server_gets_no_variable_that_is_not_named() {
    let curious = Hostile::new("environment", &[]);
    let got = answered(curious.call("get_env").await.unwrap());
    let got: BTreeMap<String, String> = serde_json::from_str(got.value.as_str().unwrap()).unwrap();
    let more: Vec<&String> = got
        .keys()
        .filter(|name| !["PATH", "HOME", "LANG"].contains(&name.as_str()))
        .collect();
    assert!(more.is_empty(), "{more:?}");
    curious.server.close().await;
}

#[tokio::test]
async fn results_too_large_or_too_deep_fail_and_the_next_call_works() {
    for (mode, tool) in [("result-huge", "read_page"), ("result-deep", "read_tree")] {
        for flags in ERAS {
            let hostile = Hostile::new(mode, flags);
            hostile.still_works().await;
            let error = hostile.call(tool).await.unwrap_err();
            assert_ne!(error.effect, Effect::None, "{mode}: {error:?}");
            assert!(error.message.len() < 10_000, "{mode}");
            hostile.still_works().await;
            hostile.server.close().await;
        }
    }
}

#[tokio::test]
async fn a_line_that_never_ends_ends_with_its_call() {
    let hostile = Hostile::new("flood-line", &[]);
    hostile.still_works().await;
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
    // The next answer ends the line, and is lost with it.
    let _ = hostile.go(request("count_notes", json!({}))).await;
    hostile.still_works().await;
    hostile.server.close().await;
}

#[tokio::test]
async fn a_message_that_is_cut_off_costs_one_call_at_most() {
    for flags in ERAS {
        let hostile = Hostile::new("truncated", &[flags, &["--count", "1"]].concat());
        let error = hostile.call("count_notes").await.unwrap_err();
        assert_eq!(error.category, ErrorCategory::InvalidOutput);
        assert_eq!(error.effect, Effect::Unknown);
        hostile.still_works().await;
        hostile.server.close().await;
    }
}

#[tokio::test]
async fn results_that_break_their_schema_are_refused() {
    for mode in ["result-breaks-schema", "result-no-structure"] {
        for flags in ERAS {
            let hostile = Hostile::new(mode, flags);
            let definitions = hostile.server.definitions().await.unwrap();
            let mut weather = request("read_weather", json!({}));
            weather.output_schema = schema_of(&definitions, "read_weather");
            let error = hostile.go(weather).await.unwrap_err();
            assert_eq!(error.category, ErrorCategory::InvalidOutput, "{mode}");
            hostile.still_works().await;
            hostile.server.close().await;
        }
    }
}

#[tokio::test]
async fn output_schemas_that_are_bombs_neither_hang_nor_reach_out() {
    let (address, visits) = listener();
    let mut refused = Vec::new();
    for (mode, tools) in [
        ("schema-recursive", &["loops_output", "rings_output"][..]),
        ("schema-any-of", &["any_of_output"]),
        ("schema-doubling", &["doubling_output"]),
        ("schema-external", &["address_output", "file_output"]),
        ("schema-pattern", &["pattern_output"]),
    ] {
        let hostile = Hostile::new(mode, &["--url", &address]);
        let definitions = hostile.server.definitions().await.unwrap();
        for tool in tools {
            let mut call = request(tool, json!({}));
            call.output_schema = schema_of(&definitions, tool);
            assert!(call.output_schema.is_some());
            let called = hostile.seen("called").len();
            // Whether it is refused or passes is not the point: it ends, and soon.
            if let Err(error) = hostile.go(call).await
                && error.effect == Effect::None
            {
                // What could not be used afterwards was not begun.
                assert_eq!(hostile.seen("called").len(), called, "{tool}: {error}");
                refused.push(*tool);
            }
        }
        hostile.still_works().await;
        hostile.server.close().await;
    }
    assert_eq!(visits.load(Ordering::SeqCst), 0);
    assert!(refused.contains(&"address_output"), "{refused:?}");
}

#[tokio::test]
async fn a_server_that_starts_slowly_is_waited_for_as_long_as_it_may_take() {
    let slow = Hostile::new("slow-start", &["--delay", "700"]);
    slow.still_works().await;
    slow.server.close().await;
    let mut settings = slow.server.settings().clone();
    settings.start_timeout = Duration::from_millis(100);
    let hasty = Server::new(settings, options());
    let error = hasty.connect().await.unwrap_err();
    assert_eq!(error.category, ErrorCategory::Timeout, "{error}");
    hasty.close().await;
}

#[tokio::test]
async fn floods_are_survived() {
    for mode in [
        "flood-progress",
        "flood-log",
        "flood-list-changed",
        "flood-requests",
    ] {
        for flags in ERAS {
            let hostile = Hostile::new(mode, flags);
            let (heard, progress) = keeping::<Progress>();
            let mut flood = request("flood", json!({}));
            flood.progress = Some(progress);
            let done = answered(hostile.go(flood).await.unwrap());
            assert_eq!(done.value, json!("looked at all notes"), "{mode}");
            let heard = heard.lock().unwrap().len();
            assert!(heard < 10_000, "{mode}: {heard} times progress");
            hostile.still_works().await;
            hostile.did_nothing();
            hostile.server.close().await;
        }
    }
    let hostile = Hostile::new("flood-errors", &[]);
    hostile.still_works().await;
    hostile.server.close().await;
}

#[tokio::test]
async fn calls_that_never_end_are_cancelled_and_the_server_is_told() {
    for flags in ERAS {
        let hostile = Hostile::new("endless-call", flags);
        for tool in ["wait_silently", "wait_with_progress", "wait_deaf"] {
            let told = hostile.seen("cancelled").len();
            let called = hostile.seen("called").len();
            let wait = request(tool, json!({}));
            let cancel = wait.cancel.clone();
            let (server, waiting) = (hostile.server.clone(), wait.clone());
            let calling = tokio::spawn(async move { server.call(waiting).await });
            eventually("the call", || hostile.seen("called").len() > called).await;
            cancel.cancel();
            let error = calling.await.unwrap().unwrap_err();
            assert_eq!(error.category, ErrorCategory::Cancelled, "{tool}");
            eventually("a cancellation", || hostile.seen("cancelled").len() > told).await;
        }
        hostile.still_works().await;
        hostile.server.close().await;
    }
}

#[tokio::test]
async fn lists_without_end_are_refused_and_long_ones_read() {
    for mode in ["endless-list", "circular-list"] {
        let hostile = Hostile::new(mode, &[]);
        let listed = tokio::time::timeout(WITHIN, hostile.server.definitions()).await;
        assert!(listed.expect("the list ends").is_err(), "{mode}");
        hostile.server.close().await;
    }
    let many = Hostile::new("many-tools", &[]);
    assert_eq!(many.server.definitions().await.unwrap().len(), 5_004);
    many.server.close().await;
}

#[tokio::test]
async fn an_honest_question_is_passed_on_and_its_reply_goes_back() {
    for flags in ERAS {
        let hostile = Hostile::new("ask-name", flags);
        let asking = request("register", json!({}));
        let came = hostile.go(asking.clone()).await.unwrap();
        let Came::Asks(Elicitation::Form { message, schema }) = came else {
            panic!("{came:?}");
        };
        assert_eq!(message, "Who keeps these notes?");
        assert_eq!(schema["properties"]["colour"]["enum"][0], "red");
        hostile.did_nothing();
        let Value::Object(reply) = json!({ "name": "Ann", "colour": "red" }) else {
            panic!("it is an object");
        };
        let came = hostile
            .server
            .reply(asking, Reply::Accept(reply))
            .await
            .unwrap();
        assert!(!answered(came).is_error);
        let given = json!({ "name": "Ann", "colour": "red" });
        assert_eq!(hostile.lines("effects")[0]["arguments"], given);
        hostile.server.close().await;
    }
}

#[tokio::test]
async fn questions_for_secrets_scripts_and_models_reach_nobody() {
    for mode in [
        "ask-secret",
        "ask-secret-disguised",
        "ask-secret-choice",
        "ask-url-script",
        "ask-model",
    ] {
        for flags in ERAS {
            let hostile = Hostile::new(mode, flags);
            let came = hostile.call("register").await;
            assert!(!matches!(came, Ok(Came::Asks(_))), "{mode}: {came:?}");
            hostile.did_nothing();
            hostile.still_works().await;
            hostile.server.close().await;
        }
    }
}

#[tokio::test]
async fn an_address_to_visit_is_passed_on_whole_and_not_visited() {
    let (address, visits) = listener();
    for flags in ERAS {
        let hostile = Hostile::new("ask-url", &[flags, &["--url", &address]].concat());
        let asking = request("register", json!({}));
        let came = hostile.go(asking.clone()).await.unwrap();
        let Came::Asks(Elicitation::Url { url, .. }) = came else {
            panic!("{came:?}");
        };
        assert_eq!(url, address);
        let declined = hostile.server.reply(asking, Reply::Decline).await.unwrap();
        assert!(answered(declined).is_error);
        hostile.did_nothing();
        hostile.server.close().await;
    }
    assert_eq!(visits.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_question_that_belongs_to_no_call_reaches_nobody() {
    let hostile = Hostile::new("ask-unasked", &[]);
    hostile.server.connect().await.unwrap();
    eventually("a reply", || !hostile.seen("replied").is_empty()).await;
    let reply = &hostile.seen("replied")[0]["reply"];
    assert!(reply.get("error").is_some(), "{reply}");
    hostile.still_works().await;
    hostile.server.close().await;
}

#[tokio::test]
async fn questions_without_end_are_ended() {
    for flags in ERAS {
        let hostile = Hostile::new("flood-questions", flags);
        let asking = request("register", json!({}));
        let mut came = hostile.go(asking.clone()).await;
        let mut asked = 0;
        while let Ok(Came::Asks(_)) = came {
            asked += 1;
            assert!(asked <= 10, "it asks on");
            let Value::Object(reply) = json!({ "name": "Ann", "colour": "red" }) else {
                panic!("it is an object");
            };
            came = hostile
                .server
                .reply(asking.clone(), Reply::Accept(reply))
                .await;
        }
        assert!(asked >= 2);
        hostile.did_nothing();
        hostile.still_works().await;
        hostile.server.close().await;
    }
}

#[tokio::test]
async fn many_questions_at_once_count_one_by_one() {
    let hostile = Hostile::new("ask-many", &["--modern"]);
    let error = hostile.call("register").await.unwrap_err();
    assert_eq!(error.effect, Effect::Unknown);
    assert!(error.message.contains("asks on and on"), "{error}");
    hostile.did_nothing();
    hostile.still_works().await;
    hostile.server.close().await;
    // As many as may be asked in a call are asked.
    let hostile = Hostile::new("ask-many", &["--modern", "--count", "3"]);
    let asking = request("register", json!({}));
    let mut came = hostile.go(asking.clone()).await.unwrap();
    for _ in 0..3 {
        assert!(matches!(came, Came::Asks(_)), "{came:?}");
        let reply = Reply::Accept(serde_json::Map::new());
        came = hostile.server.reply(asking.clone(), reply).await.unwrap();
    }
    assert!(!answered(came).is_error);
    hostile.server.close().await;
}

#[tokio::test]
async fn noise_is_passed_over_up_to_a_limit() {
    for mode in ["noise", "noise-dictionary"] {
        for flags in ERAS {
            let hostile = Hostile::new(mode, flags);
            hostile.still_works().await;
            hostile.server.close().await;
        }
    }
    let hostile = Hostile::new("noise-only", &[]);
    let connected = tokio::time::timeout(WITHIN, hostile.server.connect()).await;
    assert!(connected.expect("it is given up").is_err());
    hostile.server.close().await;
}

#[tokio::test]
async fn an_answer_to_nobody_is_taken_for_no_answer() {
    for flags in ERAS {
        let hostile = Hostile::new("confused", flags);
        let note = request("read_note", json!({ "name": "welcome" }));
        match hostile.go(note).await {
            Ok(came) => assert_eq!(answered(came).value, json!("Hello.")),
            // Something without an id came, which may have been the answer.
            Err(error) => {
                assert_eq!(error.category, ErrorCategory::InvalidOutput, "{error}");
                assert_eq!(error.effect, Effect::Unknown);
            }
        }
        hostile.server.close().await;
    }
}

#[tokio::test]
async fn no_process_is_left_of_a_server_that_will_not_go() {
    for mode in ["stays", "grandchild"] {
        let hostile = Hostile::new(mode, &[]);
        hostile.still_works().await;
        let started = [hostile.seen("started"), hostile.seen("grandchild")].concat();
        let process = |line: &Value| u32::try_from(line["pid"].as_u64().unwrap()).unwrap();
        let processes: Vec<u32> = started.iter().map(process).collect();
        // Two starts if it was asked for the other era first, each with a grandchild.
        assert!(processes.len() >= 2, "{mode}: {started:?}");
        hostile.server.close().await;
        for process in processes {
            eventually("the end of a process", || !is_running(process)).await;
        }
    }
}

#[tokio::test]
async fn a_grandchild_that_escapes_does_not_hold_up_the_end() {
    let hostile = Hostile::new("grandchild-escapes", &[]);
    hostile.still_works().await;
    let process = |line: &Value| u32::try_from(line["pid"].as_u64().unwrap()).unwrap();
    let (started, escaped) = (hostile.seen("started"), hostile.seen("grandchild"));
    let closed = tokio::time::timeout(WITHIN, hostile.server.close()).await;
    closed.expect("the end ends");
    for server in started.iter().map(process) {
        eventually("the end of a process", || !is_running(server)).await;
    }
    // In a group of its own nobody finds it, as the guide says.
    for grandchild in escaped.iter().map(process) {
        let killed = std::process::Command::new("kill")
            .arg(grandchild.to_string())
            .status();
        assert!(killed.unwrap().success());
    }
}

#[tokio::test]
async fn a_server_that_dies_in_a_call_may_have_done_it() {
    for flags in ERAS {
        let hostile = Hostile::new("dies-in-call", flags);
        hostile.still_works().await;
        let error = hostile.call("crash").await.unwrap_err();
        assert_eq!(error.effect, Effect::Unknown);
        assert_eq!(error.category, ErrorCategory::Unavailable);
        assert_eq!(hostile.effects(), ["crash"]);
        hostile.still_works().await;
        assert_eq!(hostile.effects(), ["crash"], "nothing is repeated");
        hostile.server.close().await;
    }
}

#[tokio::test]
async fn a_server_that_dies_at_once_says_why() {
    let hostile = Hostile::new("dies-at-start", &[]);
    let error = hostile.server.connect().await.unwrap_err();
    assert!(error.message.contains("no licence found"), "{error}");
    hostile.server.close().await;
}
