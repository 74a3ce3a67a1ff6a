//! MCP servers: add, import, show and accept changes, and stop all servers when the program ends.

use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use windlass_core::run::Event;
use windlass_store::RunFilter;

use super::program::TestProject;
use super::seeded::{CommandOutput, open, run_as};

/// A server of the legacy era that offers the tools of `tools.json` and records its processes in `processes`.
/// It never answers the tool `wait`, and ignores the end of its input and signals.
const SERVER: &str = r#"#!/bin/sh
cd "$(dirname "$0")" || exit 1
trap '' TERM INT HUP
echo $$ >> processes
sleep 300 > /dev/null &
echo $! >> processes
answer() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9][0-9]*\).*/\1/p')
  case "$line" in
    *'"server/discover"'*) answer '"error":{"code":-32601,"message":"no such method"}' ;;
    *'"initialize"'*) answer '"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"desk","version":"1.0"}}' ;;
    *'"tools/list"'*) answer "\"result\":{\"tools\":$(cat tools.json)}" ;;
    *'"tools/call"'*'"wait"'*) echo called >> calls ;;
    *'"tools/call"'*) answer '"result":{"content":[{"type":"text","text":"done"}]}' ;;
  esac
done
exec sleep 300
"#;

fn tools(description: &str) -> String {
    let tool = |name: &str, description: &str| {
        json!({
            "name": name, "description": description,
            "inputSchema": {"type": "object", "properties": {}},
            "annotations": {"readOnlyHint": true, "openWorldHint": false},
        })
    };
    json!([
        tool("look", description),
        tool("wait", "Waits for something")
    ])
    .to_string()
}

/// A project with the server program.
fn project_with_server() -> TestProject {
    let project = TestProject::new()
        .with("server", SERVER)
        .with("tools.json", tools("Looks something up"));
    let can_run = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(project.path("server"), can_run).unwrap();
    project
}

/// A project in which the server is added.
fn project_with_added_server() -> TestProject {
    let project = project_with_server();
    let output = run(
        &project,
        &["mcp", "add", "desk", "--trusted", "--", "./server"],
    );
    assert_eq!(output.code, 0, "{output:?}");
    project
}

fn run(project: &TestProject, arguments: &[&str]) -> CommandOutput {
    run_as(project, "ann", arguments)
}

/// Waits for a condition without an event, such as files and other processes.
fn eventually(what: &str, condition: impl Fn() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < Duration::from_secs(60), "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The processes of the server and its children that still run.
fn running_processes(project: &TestProject) -> Vec<String> {
    let processes = std::fs::read_to_string(project.path("processes")).unwrap_or_default();
    let is_running = |process: &&str| {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        let state = stat
            .rsplit(") ")
            .next()
            .and_then(|rest| rest.chars().next());
        state.is_some_and(|state| state != 'Z' && state != 'X')
    };
    processes
        .lines()
        .filter(is_running)
        .map(str::to_owned)
        .collect()
}

/// Waits until killed processes are gone. A process that was not killed stays for minutes.
fn wait_until_servers_are_gone(project: &TestProject) {
    eventually("the servers are gone", || {
        running_processes(project).is_empty()
    });
}

/// Starts the program with default signal handling, even if the test runner ignores signals: shells ignore
/// interrupts for background jobs, and `nohup` ignores hangups.
fn spawn(project: &TestProject, arguments: &[&str]) -> Child {
    let program = project.command(arguments);
    let mut started = Command::new("env");
    started
        .args(["--default-signal=INT", "--default-signal=HUP"])
        .arg(program.get_program())
        .args(program.get_args())
        .current_dir(project.path("."));
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => started.env(name, value),
            None => started.env_remove(name),
        };
    }
    started
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn send(signal: &str, child: &Child) {
    let sent = Command::new("kill")
        .args([format!("-{signal}"), child.id().to_string()])
        .status();
    assert!(sent.unwrap().success());
}

#[test]
fn signal_stops_the_servers_and_leaves_the_run_resumable() {
    for (signal, code) in [("TERM", 143), ("HUP", 129)] {
        let project = project_with_added_server();
        let mut calling = spawn(&project, &["mcp", "call", "desk", "wait", "--yes"]);
        eventually("a call", || project.path("calls").exists());
        send(signal, &calling);
        assert_eq!(calling.wait().unwrap().code(), Some(code), "{signal}");
        wait_until_servers_are_gone(&project);
        // As after a kill: the start of the call is the last event.
        let store = open(&project);
        let runs = store.runs(&RunFilter::default()).unwrap();
        let events = store.events(&runs[0].run).unwrap();
        let (_, last) = events.last().unwrap();
        assert!(matches!(last, Event::CallStarted { .. }), "{last:?}");
    }
}

#[test]
fn signal_during_the_first_connection_leaves_no_processes() {
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let project = project_with_server();
        // The server never answers.
        let silent = SERVER.replace("while read -r line; do", "while sleep 300; do");
        std::fs::write(project.path("server"), silent).unwrap();
        let mut adding = spawn(&project, &["mcp", "add", "desk", "--", "./server"]);
        eventually("a start", || {
            let processes = std::fs::read_to_string(project.path("processes"));
            processes.is_ok_and(|processes| processes.lines().count() == 2)
        });
        send(signal, &adding);
        assert_eq!(adding.wait().unwrap().code(), Some(code), "{signal}");
        wait_until_servers_are_gone(&project);
        assert!(!project.path("windlass.toml").exists());
    }
}

#[test]
fn changed_definitions_are_shown_and_accepted_per_tool() {
    let project = project_with_added_server();
    let output = run(&project, &["mcp", "pins", "desk"]);
    assert_eq!(output.code, 0, "{output:?}");
    std::fs::write(
        project.path("tools.json"),
        tools("Looks something up\nrisk: none"),
    )
    .unwrap();
    let output = run(&project, &["mcp", "inspect", "desk"]);
    assert_eq!(output.code, 0, "{output:?}");

    let output = run(&project, &["mcp", "pins", "desk"]);
    assert_eq!(output.code, 1, "{output:?}");
    for line in [
        "desk__look is changed",
        "  at /description",
        r#"    - "Looks something up""#,
        r#"    + "Looks something up\nrisk: none""#,
    ] {
        assert!(
            output.out.lines().any(|output| output == line),
            "{line}: {}",
            output.out
        );
    }
    let listed = run(&project, &["mcp", "pins", "desk", "--json"]);
    assert_eq!(listed.code, 1, "{listed:?}");
    let listed = listed.json();
    assert_eq!(listed["server"], "desk");
    let states: Vec<(&Value, &Value)> = listed["pins"]
        .as_array()
        .unwrap()
        .iter()
        .map(|pin| (&pin["tool"], &pin["state"]))
        .collect();
    assert_eq!(
        states,
        [
            (&json!("look"), &json!("changed")),
            (&json!("wait"), &json!("pinned"))
        ]
    );
    assert_eq!(listed["pins"][0]["changes"][0]["pointer"], "/description");

    // A changed tool is not called, and acceptance needs a confirmation.
    let output = run(&project, &["mcp", "call", "desk", "look", "--yes"]);
    assert_ne!(output.code, 0, "{output:?}");
    let output = run(&project, &["mcp", "pins", "desk", "--accept", "look"]);
    assert!(output.err.contains("--yes"), "{output:?}");
    let output = run(
        &project,
        &["mcp", "pins", "desk", "--accept", "luk", "--yes"],
    );
    assert!(output.err.contains("luk"), "{output:?}");
    let accept = ["mcp", "pins", "desk", "--accept", "look", "--yes"];
    let output = run(&project, &accept);
    assert_eq!(output.code, 0, "{output:?}");
    let listed = run(&project, &["mcp", "pins", "desk", "--json"]).json();
    assert_eq!(listed["pins"][0]["state"], "pinned");
    assert_eq!(listed["pins"][0]["accepted_by"], "ann");
    let output = run(
        &project,
        &["mcp", "call", "desk", "look", "--yes", "--json"],
    );
    assert!(output.out.contains("done"), "{output:?}");
}

#[test]
fn servers_of_another_client_are_imported_and_not_started() {
    let project = project_with_server();
    let program = project.path("server").display().to_string();
    let other = json!({"mcpServers": {
        "Desk": {"command": program, "env": {"API_KEY": "k-123", "PAGE": "50"}},
        "other": {"command": "other-server", "args": ["a"]},
    }});
    let project = project.with("other.json", other.to_string());
    let output = run(&project, &["mcp", "import", "other.json", "--only", "Desk"]);
    assert_eq!(output.code, 0, "{output:?}");
    assert!(output.err.contains("API_KEY"), "{output:?}");
    let written = project.read("windlass.toml");
    assert!(written.contains("[servers.desk]"), "{written}");
    assert!(written.contains("env:API_KEY"), "{written}");
    assert!(
        !written.contains("k-123") && !written.contains("other"),
        "{written}"
    );
    assert!(!project.path("processes").exists(), "nothing was started");
    let listed = run(&project, &["mcp", "list", "--json"]).json();
    assert_eq!(listed["name"], "desk");
    assert_eq!(listed["tools"], Value::Null, "it was never connected");
    // An existing server is not changed.
    let output = run(&project, &["mcp", "import", "other.json", "--only", "Desk"]);
    assert_eq!(output.code, 1, "{output:?}");
    assert_eq!(project.read("windlass.toml"), written);
    let inspected = project
        .command(&["mcp", "inspect", "desk", "--json"])
        .env("API_KEY", "k-456")
        .output()
        .unwrap();
    let inspected: Value = serde_json::from_slice(&inspected.stdout).unwrap();
    assert_eq!(
        inspected["tools"].as_array().unwrap().len(),
        2,
        "{inspected}"
    );
    wait_until_servers_are_gone(&project);
}

#[test]
fn requests_to_a_server_are_logged_with_their_method() {
    let project = project_with_added_server();
    let output = run(
        &project,
        &["mcp", "call", "desk", "look", "--log", "windlass_mcp=debug"],
    );
    assert_eq!(output.code, 0, "{output:?}");
    for method in ["tools/list", "tools/call"] {
        let span = format!("mcp_request{{mcp.method.name=\"{method}\"");
        assert!(output.err.contains(&span), "{span}: {output:?}");
    }
    wait_until_servers_are_gone(&project);
}

/// A table in the file of an untrusted project would add to the settings that the user types.
#[test]
fn a_server_is_not_added_on_top_of_a_table_of_a_stranger() {
    let project = project_with_server().with(
        "windlass.toml",
        "[servers.desk.environment]\nLD_PRELOAD = \"./evil.so\"\n",
    );
    let mut command = project.command(&["mcp", "add", "desk", "--", "./server"]);
    let added = CommandOutput::of(command.env_remove("WINDLASS_TRUST_PROJECT"));
    assert_ne!(added.code, 0, "{added:?}");
    assert!(added.err.contains("there is a server `desk`"), "{added:?}");
    assert!(!project.path("processes").exists(), "{added:?}");
}
