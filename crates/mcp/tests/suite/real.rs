//! Tests against real, published servers. `cargo xtask test` installs them and sets `WINDLASS_MCP_SERVERS`
//! to their directory.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::{Mutex, MutexGuard};
use windlass_mcp::{
    CallError, CallOutcome, Elicitation, ElicitationReply, Era, Health, Ledger, PinState, Progress,
    Server, ServerOptions, Servers, ToolAnswer, tool_name,
};
use windlass_spec::server::{CommandTransport, EnvTemplate, ServerName, ServerSettings, Transport};
use windlass_spec::{Effect, ErrorCategory};
use windlass_store::Store;

use super::scripted::{eventually, expect_answer, recorder, request};

/// The variable that marks the processes of a test.
const MARK: &str = "WINDLASS_TEST_MARK";

/// Lets one test run at a time, because interpreters start slowly on few cores.
static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());

/// The servers that are installed for these tests.
const SERVERS: [&str; 7] = [
    "everything",
    "filesystem",
    "memory",
    "time",
    "git",
    "sqlite",
    "excel",
];

/// A directory for servers, with the lock to start some.
struct TestWorkspace {
    directory: TempDir,
    _lock: MutexGuard<'static, ()>,
}

impl TestWorkspace {
    async fn new() -> Self {
        let _lock = ONE_AT_A_TIME.lock().await;
        let directory = TempDir::new().unwrap();
        std::fs::write(directory.path().join("note.txt"), "Buy tea.\n").unwrap();
        Self { directory, _lock }
    }

    fn path(&self, name: &str) -> String {
        self.directory.path().join(name).display().to_string()
    }

    /// A repository with one commit.
    fn repository(&self) -> String {
        let repository = self.path("repository");
        std::fs::create_dir(&repository).unwrap();
        for words in [
            &["init", "--quiet"][..],
            &["commit", "--quiet", "--allow-empty", "--message", "Begin"],
        ] {
            let done = Command::new("git")
                .args(["-c", "user.name=Ann", "-c", "user.email=ann@example.com"])
                .args(words)
                .current_dir(&repository)
                .status()
                .unwrap();
            assert!(done.success());
        }
        repository
    }

    /// The server with that name.
    fn server(&self, name: &str) -> Server {
        self.server_with(name, &[], ServerOptions::default())
    }

    fn server_with(
        &self,
        name: &str,
        environment: &[(&str, &str)],
        options: ServerOptions,
    ) -> Server {
        let (program, arguments): (&str, Vec<String>) = match name {
            "everything" => ("mcp-server-everything", vec!["stdio".to_owned()]),
            "filesystem" => ("mcp-server-filesystem", vec![self.path("")]),
            "memory" => ("mcp-server-memory", Vec::new()),
            "time" => (
                "mcp-server-time",
                vec!["--local-timezone".to_owned(), "UTC".to_owned()],
            ),
            "git" => ("mcp-server-git", Vec::new()),
            "sqlite" => (
                "mcp-server-sqlite",
                vec!["--db-path".to_owned(), self.path("notes.db")],
            ),
            "excel" => ("excel-mcp-server", vec!["stdio".to_owned()]),
            other => panic!("there is no server {other}"),
        };
        let memory = self.path("memory.jsonl");
        let mark = self.path("");
        let mut variables = vec![(MARK, mark.as_str())];
        if name == "memory" {
            variables.push(("MEMORY_FILE_PATH", &memory));
        }
        variables.extend(environment);
        let environment: BTreeMap<String, EnvTemplate> = variables
            .into_iter()
            .map(|(name, value)| (name.to_owned(), EnvTemplate::new(value).unwrap()))
            .collect();
        let command = CommandTransport {
            program: programs().join(program).display().to_string(),
            arguments,
            directory: None,
            environment,
            parts: Vec::new(),
            access: Default::default(),
        };
        let name = ServerName::new(name).unwrap();
        let mut settings = ServerSettings::new(name, Transport::Command(command));
        settings.start_timeout = Duration::from_secs(180);
        Server::new(settings, options)
    }

    /// Asserts that no process of the servers of this workspace is left.
    fn assert_no_processes(&self) {
        let processes = self.processes();
        assert!(processes.is_empty(), "{processes:?}");
    }

    /// The processes of all servers of this workspace, including child processes.
    fn processes(&self) -> Vec<u32> {
        let mark = format!("{MARK}={}", self.path(""));
        let is_marked = |directory: &Path| {
            let environment = std::fs::read(directory.join("environ")).unwrap_or_default();
            environment
                .split(|byte| *byte == 0)
                .any(|variable| variable == mark.as_bytes())
        };
        std::fs::read_dir("/proc")
            .unwrap()
            .filter_map(|entry| {
                let entry = entry.unwrap();
                let process = entry.file_name().to_str()?.parse().ok()?;
                is_marked(&entry.path()).then_some(process)
            })
            .collect()
    }
}

fn programs() -> PathBuf {
    match std::env::var_os("WINDLASS_MCP_SERVERS") {
        Some(programs) => programs.into(),
        None => panic!(
            "this test needs real MCP servers: run it with `cargo xtask test`, or set \
             WINDLASS_MCP_SERVERS to what `cargo xtask servers` prints"
        ),
    }
}

async fn call(server: &Server, tool: &str, arguments: Value) -> ToolAnswer {
    expect_answer(server.call(request(tool, arguments)).await.unwrap())
}

/// Connects, lists the tools, and checks the era and the number of tools. Returns the output schemas.
async fn check_server(server: &Server, era: Era, tools: usize) -> BTreeMap<String, Option<Value>> {
    let info = server.connect().await.unwrap();
    assert_eq!(info.era, era, "{info:?}");
    let version = match era {
        Era::Legacy => "2025-11-25",
        Era::Modern => "2026-07-28",
    };
    assert_eq!(info.protocol_version, version);
    assert!(!info.server_name.is_empty());
    let definitions = server.definitions().await.unwrap();
    let schemas: BTreeMap<String, Option<Value>> = definitions
        .iter()
        .map(|tool| (tool.name().to_owned(), tool.output_schema().cloned()))
        .collect();
    let names: Vec<&String> = schemas.keys().collect();
    assert_eq!(schemas.len(), tools, "{names:?}");
    assert!(matches!(server.health(), Health::Ready { .. }));
    schemas
}

fn text(answer: &ToolAnswer) -> &str {
    answer.value.as_str().unwrap()
}

#[tokio::test]
async fn everything_speaks_the_legacy_era_and_answers() {
    let workspace = TestWorkspace::new().await;
    let server = workspace.server("everything");
    // Thirteen tools for all clients, and two for clients with elicitation.
    let schemas = check_server(&server, Era::Legacy, 15).await;
    let sum = call(&server, "get-sum", json!({ "a": 2, "b": 3 })).await;
    assert_eq!(text(&sum), "The sum of 2 and 3 is 5.");
    assert!(!sum.is_error);
    let wrong = call(&server, "get-sum", json!({ "a": "two" })).await;
    assert!(wrong.is_error);
    assert!(text(&wrong).contains("expected number"), "{wrong:?}");

    let mut structured = request("get-structured-content", json!({ "location": "Chicago" }));
    structured.output_schema = schemas["get-structured-content"].clone();
    assert!(structured.output_schema.is_some());
    let structured = expect_answer(server.call(structured).await.unwrap());
    assert!(
        structured.value["temperature"].is_number(),
        "{structured:?}"
    );
    server.close().await;
    workspace.assert_no_processes();
}

#[tokio::test]
async fn filesystem_speaks_the_legacy_era_and_answers() {
    let workspace = TestWorkspace::new().await;
    let server = workspace.server("filesystem");
    let schemas = check_server(&server, Era::Legacy, 14).await;
    let mut read = request(
        "read_text_file",
        json!({ "path": workspace.path("note.txt") }),
    );
    read.output_schema = schemas["read_text_file"].clone();
    let read = expect_answer(server.call(read).await.unwrap());
    assert_eq!(read.value, json!({ "content": "Buy tea.\n" }));
    let outside = call(&server, "read_text_file", json!({ "path": "/etc/passwd" })).await;
    assert!(outside.is_error);
    assert!(text(&outside).starts_with("Access denied"), "{outside:?}");
    server.close().await;
    workspace.assert_no_processes();
}

#[tokio::test]
async fn memory_speaks_the_legacy_era_and_answers() {
    let workspace = TestWorkspace::new().await;
    let server = workspace.server("memory");
    check_server(&server, Era::Legacy, 9).await;
    let ada = json!({ "name": "Ada", "entityType": "person", "observations": ["likes tea"] });
    call(&server, "create_entities", json!({ "entities": [ada] })).await;
    let graph = call(&server, "read_graph", json!({})).await;
    assert_eq!(graph.value["entities"][0]["name"], "Ada", "{graph:?}");
    let nobody = json!([{ "entityName": "Nobody", "contents": ["is there"] }]);
    let failed = call(
        &server,
        "add_observations",
        json!({ "observations": nobody }),
    )
    .await;
    assert!(failed.is_error, "{failed:?}");
    // The variable of the settings has arrived: the server stores its memory there.
    let kept = std::fs::read_to_string(workspace.path("memory.jsonl")).unwrap();
    assert!(kept.contains("likes tea"));
    server.close().await;
    workspace.assert_no_processes();
}

#[tokio::test]
async fn time_speaks_the_modern_era_and_answers() {
    let workspace = TestWorkspace::new().await;
    let server = workspace.server("time");
    let schemas = check_server(&server, Era::Modern, 2).await;
    let tokyo = |zone: &str| json!({ "source_timezone": zone, "time": "12:00", "target_timezone": "Asia/Tokyo" });
    let mut convert = request("convert_time", tokyo("UTC"));
    convert.output_schema = schemas["convert_time"].clone();
    assert!(convert.output_schema.is_some());
    let noon = expect_answer(server.call(convert).await.unwrap());
    assert_eq!(noon.value["time_difference"], "+9.0h", "{noon:?}");
    let nowhere = call(&server, "convert_time", tokyo("Nowhere")).await;
    assert!(nowhere.is_error);
    assert!(text(&nowhere).contains("Invalid timezone"), "{nowhere:?}");
    let unknown = server.call(request("no_such_tool", json!({}))).await;
    let Err(CallError { effect, .. }) = unknown else {
        panic!("{unknown:?}");
    };
    assert_eq!(effect, Effect::None);
    server.close().await;
    workspace.assert_no_processes();
}

#[tokio::test]
async fn git_speaks_the_modern_era_and_answers() {
    let workspace = TestWorkspace::new().await;
    let repository = workspace.repository();
    let server = workspace.server("git");
    check_server(&server, Era::Modern, 12).await;
    let log = json!({ "repo_path": repository, "max_count": 1 });
    let log = call(&server, "git_log", log).await;
    assert!(text(&log).contains("Message: Begin"), "{log:?}");
    let nowhere = call(&server, "git_log", json!({ "repo_path": "/nowhere" })).await;
    assert!(nowhere.is_error, "{nowhere:?}");
    server.close().await;
    workspace.assert_no_processes();
}

#[tokio::test]
async fn sqlite_speaks_the_legacy_era_and_answers() {
    let workspace = TestWorkspace::new().await;
    let server = workspace.server("sqlite");
    check_server(&server, Era::Legacy, 6).await;
    let query = |query: &str| json!({ "query": query });
    let two = call(&server, "read_query", query("SELECT 1 + 1 AS two")).await;
    assert_eq!(text(&two), "[{'two': 2}]");
    // This server reports an error only in its text.
    let failed = call(&server, "read_query", query("SELECT * FROM nowhere")).await;
    assert!(!failed.is_error);
    assert!(text(&failed).starts_with("Database error"), "{failed:?}");
    server.close().await;
    workspace.assert_no_processes();
}

#[tokio::test]
async fn excel_speaks_the_modern_era_and_answers() {
    let workspace = TestWorkspace::new().await;
    let server = workspace.server("excel");
    let schemas = check_server(&server, Era::Modern, 46).await;
    let workbook = json!({ "path": workspace.path("book.xlsx") });
    let mut create = request("create_workbook", workbook.clone());
    create.output_schema = schemas["create_workbook"].clone();
    let created = expect_answer(server.call(create).await.unwrap());
    assert!(!created.is_error, "{created:?}");
    assert!(Path::new(&workspace.path("book.xlsx")).exists());
    let again = call(&server, "create_workbook", workbook).await;
    assert!(again.is_error);
    assert!(text(&again).contains("already exists"), "{again:?}");
    server.close().await;
    workspace.assert_no_processes();
}

#[tokio::test]
async fn a_stored_era_is_used_and_a_wrong_one_is_corrected() {
    let workspace = TestWorkspace::new().await;
    for (name, remembered, era) in [
        ("time", Era::Legacy, Era::Legacy),
        ("everything", Era::Modern, Era::Legacy),
    ] {
        let options = ServerOptions {
            era: Some(remembered),
            ..ServerOptions::default()
        };
        let server = workspace.server_with(name, &[], options);
        assert_eq!(server.connect().await.unwrap().era, era, "{name}");
        server.close().await;
    }
    workspace.assert_no_processes();
}

fn long_operation(seconds: u32, steps: u32) -> windlass_mcp::CallRequest {
    let arguments = json!({ "duration": seconds, "steps": steps });
    request("trigger-long-running-operation", arguments)
}

#[tokio::test]
async fn progress_of_a_long_operation_arrives_in_order() {
    let workspace = TestWorkspace::new().await;
    let server = workspace.server("everything");
    let (recorded, progress) = recorder::<Progress>();
    let mut operation = long_operation(1, 4);
    operation.progress = Some(progress);
    let done = expect_answer(server.call(operation).await.unwrap());
    assert!(text(&done).contains("completed"), "{done:?}");
    let recorded: Vec<(f64, Option<f64>)> = recorded
        .lock()
        .unwrap()
        .iter()
        .map(|progress| (progress.done, progress.total))
        .collect();
    let all = [1.0, 2.0, 3.0, 4.0].map(|done| (done, Some(4.0)));
    assert_eq!(recorded, all);
    server.close().await;
}

#[tokio::test]
async fn a_cancelled_operation_ends_at_once() {
    let workspace = TestWorkspace::new().await;
    let server = workspace.server("everything");
    let mut operation = long_operation(600, 6_000);
    let cancel = operation.cancel.clone();
    operation.progress = Some(Arc::new(move |_| cancel.cancel()));
    let within = Duration::from_secs(60);
    let ended = tokio::time::timeout(within, server.call(operation)).await;
    let Ok(Err(error)) = ended else {
        panic!("{ended:?}");
    };
    assert_eq!(error.category, ErrorCategory::Cancelled);
    assert_eq!(error.effect, Effect::Unknown);
    // The connection still works.
    let sum = call(&server, "get-sum", json!({ "a": 1, "b": 1 })).await;
    assert_eq!(text(&sum), "The sum of 1 and 1 is 2.");
    server.close().await;
    workspace.assert_no_processes();
}

#[tokio::test]
async fn a_server_sees_a_minimal_environment_and_no_secret() {
    let workspace = TestWorkspace::new().await;
    let variables = |name: &str| match name {
        "TEST_GREETING" => Some("hello".to_owned()),
        "TEST_TOKEN" => Some("s3cret-of-ours".to_owned()),
        _ => None,
    };
    let options = ServerOptions {
        lookup: Arc::new(variables),
        ..ServerOptions::default()
    };
    let server = workspace.server_with("everything", &[("GREETING", "env:TEST_GREETING")], options);
    let shown = call(&server, "get-env", json!({})).await;
    let seen: BTreeMap<String, String> = serde_json::from_str(text(&shown)).unwrap();
    assert_eq!(seen["GREETING"], "hello");
    let allowed = BTreeSet::from(["PATH", "HOME", "LANG", "GREETING", MARK]);
    let more: Vec<&String> = seen
        .keys()
        .filter(|name| !allowed.contains(name.as_str()))
        .collect();
    assert!(more.is_empty(), "{more:?}");
    assert!(!text(&shown).contains("s3cret-of-ours"));
    // This process has more variables, which could have leaked.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    server.close().await;
}

#[tokio::test]
async fn a_url_elicitation_waits_for_its_reply() {
    let workspace = TestWorkspace::new().await;
    let server = workspace.server("everything");
    let arguments = json!({ "url": "https://example.com/sign-in", "message": "Please sign in." });
    let asked = request("trigger-url-elicitation", arguments);
    let outcome = server.call(asked.clone()).await.unwrap();
    let wanted = Elicitation::Url {
        message: "Please sign in.".to_owned(),
        url: "https://example.com/sign-in".to_owned(),
    };
    assert_eq!(outcome, CallOutcome::NeedsInput(wanted));
    // Other calls work meanwhile.
    let sum = call(&server, "get-sum", json!({ "a": 1, "b": 2 })).await;
    assert_eq!(text(&sum), "The sum of 1 and 2 is 3.");
    let outcome = server
        .reply(asked, ElicitationReply::Decline)
        .await
        .unwrap();
    let declined = expect_answer(outcome).value.to_string();
    assert!(declined.contains("declined"), "{declined}");
    server.close().await;
}

#[tokio::test]
async fn a_kill_during_a_call_leaves_the_effect_unknown_and_the_server_restarts() {
    let workspace = TestWorkspace::new().await;
    let server = workspace.server("everything");
    call(&server, "get-sum", json!({ "a": 1, "b": 1 })).await;
    let generation = server.generation();
    let (recorded, progress) = recorder::<Progress>();
    let mut operation = long_operation(600, 6_000);
    operation.progress = Some(progress);
    let calling = tokio::spawn({
        let server = server.clone();
        async move { server.call(operation).await }
    });
    eventually("progress", || !recorded.lock().unwrap().is_empty()).await;
    for process in workspace.processes() {
        let killed = Command::new("kill")
            .args(["-KILL", &process.to_string()])
            .status();
        assert!(killed.unwrap().success());
    }
    let error = calling.await.unwrap().unwrap_err();
    assert_eq!(error.effect, Effect::Unknown);
    assert_eq!(error.category, ErrorCategory::Unavailable);

    let sum = call(&server, "get-sum", json!({ "a": 2, "b": 2 })).await;
    assert_eq!(text(&sum), "The sum of 2 and 2 is 4.");
    assert_ne!(server.generation(), generation);
    server.close().await;
    workspace.assert_no_processes();
}

#[tokio::test]
async fn closing_seven_servers_leaves_no_process() {
    let workspace = TestWorkspace::new().await;
    let servers = SERVERS.map(|name| workspace.server(name));
    assert!(
        workspace.processes().is_empty(),
        "servers are started on first use"
    );
    let mut tools = 0;
    for server in &servers {
        tools += server.definitions().await.unwrap().len();
    }
    assert_eq!(tools, 15 + 14 + 9 + 2 + 12 + 6 + 46);
    assert!(workspace.processes().len() >= servers.len());
    let mut closing = tokio::task::JoinSet::new();
    for server in servers {
        closing.spawn(async move { server.close().await });
    }
    closing.join_all().await;
    workspace.assert_no_processes();
}

#[tokio::test(flavor = "multi_thread")]
async fn all_tools_of_seven_servers_are_pinned_and_usable() {
    let workspace = TestWorkspace::new().await;
    let store = Arc::new(Store::open(workspace.path("windlass.db")).unwrap());
    let ledger = Ledger::new(store, "local");
    let settings = SERVERS.map(|name| workspace.server(name).settings().clone());
    let options = |_: &ServerSettings| ServerOptions::default();
    let servers = Servers::new(settings.clone(), &ledger, options).unwrap();
    assert_eq!(servers.unpinned().unwrap().len(), SERVERS.len());
    let mut names = BTreeSet::new();
    for server in servers.iter() {
        let name = &server.settings().name;
        let (_, pins) = server.connect().await.unwrap();
        server.close().await;
        for pin in pins {
            assert_eq!(pin.state(), PinState::Pinned, "{name}: {pin:?}");
            names.insert(tool_name(name, &pin.tool).unwrap().to_string());
        }
    }
    assert_eq!(names.len(), 15 + 14 + 9 + 2 + 12 + 6 + 46);
    let offered = servers.accepted_tools().unwrap();
    assert_eq!(offered.notices, []);
    let library: BTreeSet<String> = offered
        .library
        .iter()
        .map(|tool| tool.name().to_string())
        .collect();
    assert_eq!(library, names);
    // A second connection finds the same tools.
    assert!(servers.unpinned().unwrap().is_empty());
    let again = Servers::new(settings, &ledger, options).unwrap();
    let time = ServerName::new("time").unwrap();
    let (_, pins) = again.get(&time).unwrap().connect().await.unwrap();
    assert!(pins.iter().all(|pin| pin.state() == PinState::Pinned));
    again.close().await;
    workspace.assert_no_processes();
}
