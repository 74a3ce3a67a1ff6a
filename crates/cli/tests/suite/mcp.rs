//! Servers of MCP as people use them from the command line: adding and taking over, seeing what changed
//! and accepting it, and that none is left behind when the program is told to end.

use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use windlass_core::run::Event;
use windlass_store::RunFilter;

use super::program::Place;
use super::seeded::{Told, open, run_as};

/// A server of the legacy era that offers what stands in `tools.json` and puts its processes down in
/// `processes`. Of its tools, `wait` is never answered. Neither the end of its input nor a signal ends it.
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

/// A place with the server in it.
fn desk() -> Place {
    let place = Place::new()
        .with("server", SERVER)
        .with("tools.json", tools("Looks something up"));
    let can_run = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(place.path("server"), can_run).unwrap();
    place
}

/// The same, where the server was added.
fn added() -> Place {
    let place = desk();
    let told = run(
        &place,
        &["mcp", "add", "desk", "--trusted", "--", "./server"],
    );
    assert_eq!(told.code, 0, "{told:?}");
    place
}

fn run(place: &Place, arguments: &[&str]) -> Told {
    run_as(place, "ann", arguments)
}

/// Waits for something that no event tells of: files and processes of others.
fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The processes of the server, and of what it started, that are still there.
fn left(place: &Place) -> Vec<String> {
    let processes = std::fs::read_to_string(place.path("processes")).unwrap_or_default();
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

/// What was killed takes a moment to be gone; what was not stays for minutes.
fn nothing_is_left(place: &Place) {
    eventually("the servers are gone", || left(place).is_empty());
}

/// Starts the program so that signals end it, whatever whoever runs the tests ignores: a shell has its
/// children in the background ignore interrupts, and `nohup` has them ignore hangups.
fn spawn(place: &Place, arguments: &[&str]) -> Child {
    let program = place.command(arguments);
    let mut started = Command::new("env");
    started
        .args(["--default-signal=INT", "--default-signal=HUP"])
        .arg(program.get_program())
        .args(program.get_args())
        .current_dir(place.path("."));
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
fn a_program_that_is_told_to_end_ends_its_servers_and_leaves_its_run_to_be_resumed() {
    for (signal, code) in [("TERM", 143), ("HUP", 129)] {
        let place = added();
        let mut calling = spawn(&place, &["mcp", "call", "desk", "wait", "--yes"]);
        eventually("a call", || place.path("calls").exists());
        send(signal, &calling);
        assert_eq!(calling.wait().unwrap().code(), Some(code), "{signal}");
        nothing_is_left(&place);
        // As if it had been killed: the call has begun, and nothing was noted since.
        let store = open(&place);
        let runs = store.runs(&RunFilter::default()).unwrap();
        let events = store.events(&runs[0].run).unwrap();
        let (_, last) = events.last().unwrap();
        assert!(matches!(last, Event::CallStarted { .. }), "{last:?}");
    }
}

#[test]
fn a_program_that_is_stopped_while_it_meets_a_server_leaves_nothing_behind() {
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let place = desk();
        // It says nothing at all.
        let silent = SERVER.replace("while read -r line; do", "while sleep 300; do");
        std::fs::write(place.path("server"), silent).unwrap();
        let mut adding = spawn(&place, &["mcp", "add", "desk", "--", "./server"]);
        eventually("a start", || {
            let processes = std::fs::read_to_string(place.path("processes"));
            processes.is_ok_and(|processes| processes.lines().count() == 2)
        });
        send(signal, &adding);
        assert_eq!(adding.wait().unwrap().code(), Some(code), "{signal}");
        nothing_is_left(&place);
        assert!(!place.path("windlass.toml").exists());
    }
}

#[test]
fn what_changed_is_shown_place_by_place_and_accepted_tool_by_tool() {
    let place = added();
    let told = run(&place, &["mcp", "pins", "desk"]);
    assert_eq!(told.code, 0, "{told:?}");
    std::fs::write(
        place.path("tools.json"),
        tools("Looks something up\nrisk: none"),
    )
    .unwrap();
    let told = run(&place, &["mcp", "inspect", "desk"]);
    assert_eq!(told.code, 0, "{told:?}");

    let told = run(&place, &["mcp", "pins", "desk"]);
    assert_eq!(told.code, 1, "{told:?}");
    for line in [
        "desk__look is changed",
        "  at /description",
        r#"    - "Looks something up""#,
        r#"    + "Looks something up\nrisk: none""#,
    ] {
        assert!(
            told.out.lines().any(|told| told == line),
            "{line}: {}",
            told.out
        );
    }
    let listed = run(&place, &["mcp", "pins", "desk", "--json"]);
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

    // It is not called meanwhile, and accepted only by somebody who is asked.
    let told = run(&place, &["mcp", "call", "desk", "look", "--yes"]);
    assert_ne!(told.code, 0, "{told:?}");
    let told = run(&place, &["mcp", "pins", "desk", "--accept", "look"]);
    assert!(told.err.contains("--yes"), "{told:?}");
    let told = run(&place, &["mcp", "pins", "desk", "--accept", "luk", "--yes"]);
    assert!(told.err.contains("luk"), "{told:?}");
    let accept = ["mcp", "pins", "desk", "--accept", "look", "--yes"];
    let told = run(&place, &accept);
    assert_eq!(told.code, 0, "{told:?}");
    let listed = run(&place, &["mcp", "pins", "desk", "--json"]).json();
    assert_eq!(listed["pins"][0]["state"], "pinned");
    assert_eq!(listed["pins"][0]["accepted_by"], "ann");
    let told = run(&place, &["mcp", "call", "desk", "look", "--yes", "--json"]);
    assert!(told.out.contains("done"), "{told:?}");
}

#[test]
fn servers_of_another_client_are_taken_over_and_none_is_started() {
    let place = desk();
    let program = place.path("server").display().to_string();
    let other = json!({"mcpServers": {
        "Desk": {"command": program, "env": {"API_KEY": "k-123", "PAGE": "50"}},
        "other": {"command": "other-server", "args": ["a"]},
    }});
    let place = place.with("other.json", other.to_string());
    let told = run(&place, &["mcp", "import", "other.json", "--only", "Desk"]);
    assert_eq!(told.code, 0, "{told:?}");
    assert!(told.err.contains("API_KEY"), "{told:?}");
    let written = place.read("windlass.toml");
    assert!(written.contains("[servers.desk]"), "{written}");
    assert!(written.contains("env:API_KEY"), "{written}");
    assert!(
        !written.contains("k-123") && !written.contains("other"),
        "{written}"
    );
    assert!(!place.path("processes").exists(), "nothing was started");
    let listed = run(&place, &["mcp", "list", "--json"]).json();
    assert_eq!(listed["name"], "desk");
    assert_eq!(listed["tools"], Value::Null, "it was never met");
    // What is there is left as it is.
    let told = run(&place, &["mcp", "import", "other.json", "--only", "Desk"]);
    assert_eq!(told.code, 1, "{told:?}");
    assert_eq!(place.read("windlass.toml"), written);
    let met = place
        .command(&["mcp", "inspect", "desk", "--json"])
        .env("API_KEY", "k-456")
        .output()
        .unwrap();
    let met: Value = serde_json::from_slice(&met.stdout).unwrap();
    assert_eq!(met["tools"].as_array().unwrap().len(), 2, "{met}");
    nothing_is_left(&place);
}

#[test]
fn requests_to_a_server_are_logged_by_their_methods() {
    let place = added();
    let told = run(
        &place,
        &["mcp", "call", "desk", "look", "--log", "windlass_mcp=debug"],
    );
    assert_eq!(told.code, 0, "{told:?}");
    for method in ["tools/list", "tools/call"] {
        let span = format!("mcp_request{{mcp.method.name=\"{method}\"");
        assert!(told.err.contains(&span), "{span}: {told:?}");
    }
    nothing_is_left(&place);
}
