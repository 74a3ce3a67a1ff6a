//! What is stopped does not begin, in any process of the store, until it is started again.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::client::{Answer, Request};
use super::server::{TestServer, check_answer};
use crate::suite::acting::{call, finish};
use crate::suite::seeded::CommandOutput;

/// Each run reads and then writes a line, which is held for a second.
fn writing_server() -> TestServer {
    TestServer::start(&[
        call("listFiles", json!({})),
        call(
            "writeNote",
            json!({"file": "journal.txt", "line": "A line."}),
        ),
        finish("Done."),
    ])
}

fn start_run(address: std::net::SocketAddr, token: &str) -> String {
    let body = json!({"agent": "clerk", "task": {"task_id": "t", "description": "Keep order."}});
    let answer = Request::post("/v1/runs", &body).token(token).send(address);
    assert_eq!(answer.status, 202, "{answer:?}");
    answer.json()["run"].as_str().unwrap().to_owned()
}

fn lines(server: &TestServer) -> usize {
    let journal = server.office.project.path("files/journal.txt");
    let written = std::fs::read_to_string(journal).unwrap_or_default();
    written
        .lines()
        .filter(|line| line.contains("A line."))
        .count()
}

fn run_command(server: &TestServer, arguments: &[&str]) -> CommandOutput {
    CommandOutput::of(&mut server.office.command(arguments))
}

fn is(answer: &Answer, status: u16, code: &str) {
    assert_eq!(
        (answer.status, answer.problem().as_str()),
        (status, code),
        "{answer:?}"
    );
}

/// Waits until the run is suspended because of a stop, and returns it.
fn wait_until_stopped(server: &TestServer, token: &str, run: &str) -> Value {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let answer = server.get(token, &format!("/v1/runs/{run}"));
        check_answer("GET", "/v1/runs/{run}", &answer);
        let shown = answer.json();
        if shown["stopped"].is_object() {
            return shown;
        }
        assert!(Instant::now() < deadline, "{shown}");
        std::thread::sleep(Duration::from_millis(30));
    }
}

#[test]
fn what_is_stopped_begins_in_no_process_until_it_is_started() {
    let server = writing_server();
    let other = server.with_rate("100000");
    let token = server.token("ann", "run");
    let mut runs: Vec<String> = Vec::new();
    for _ in 0..4 {
        runs.push(start_run(server.address, &token));
        runs.push(start_run(other.address, &token));
    }
    let stopped = run_command(
        &server,
        &["stop", "--all", "--reason", "wrong figures", "--json"],
    );
    assert_eq!(stopped.code, 0, "{stopped:?}");
    assert_eq!(stopped.json()["reason"], "wrong figures");
    // A call with an effect that began before may still end.
    std::thread::sleep(Duration::from_millis(500));
    let written = lines(&server);
    // The undo windows of all calls end meanwhile.
    std::thread::sleep(Duration::from_millis(2_500));
    assert_eq!(lines(&server), written, "a call began after the stop");
    assert!(
        written < runs.len(),
        "the stop came too late to stop anything"
    );
    let late = start_run(other.address, &token);
    let shown = wait_until_stopped(&server, &token, &late);
    assert_eq!(shown["stopped"]["kind"], "all", "{shown}");
    assert_eq!(shown["stopped"]["by"], "ann");
    assert_eq!(shown["state"], "open");
    runs.push(late);
    let shown = run_command(&server, &["runs", "show", &runs[8]]);
    assert!(shown.out.contains("stopped by an operator"), "{shown:?}");
    assert!(shown.out.contains("windlass start --all"), "{shown:?}");

    let started = run_command(&server, &["start", "--all"]);
    assert_eq!(started.code, 0, "{started:?}");
    for run in &runs {
        let ended = server.wait_for(&token, run, "ended");
        assert_eq!(ended["end"]["end"], "completed", "{ended}");
    }
    assert_eq!(
        lines(&server),
        runs.len(),
        "nothing is lost and nothing is done twice"
    );
}

#[test]
fn a_stopped_tool_suspends_a_run_only_when_it_gets_to_it() {
    let server = writing_server();
    let admin = server.token("ann", "run,operate");
    let body = json!({"tool": "writeNote", "reason": "the printer burns"});
    let stopped = server.post(&admin, "/v1/stops", &body);
    check_answer("POST", "/v1/stops", &stopped);
    assert_eq!(stopped.status, 201, "{stopped:?}");
    let run = start_run(server.address, &admin);
    let shown = wait_until_stopped(&server, &admin, &run);
    assert_eq!(shown["calls"][0]["state"], "success", "{shown}");
    assert_eq!(shown["stopped"]["name"], "writeNote");
    std::thread::sleep(Duration::from_millis(1_500));
    assert_eq!(lines(&server), 0);
    let listed = server.get(&admin, "/v1/stops");
    check_answer("GET", "/v1/stops", &listed);
    assert_eq!(listed.json()["items"][0]["reason"], "the printer burns");
    let started = server.post(&admin, "/v1/starts", &json!({"tool": "writeNote"}));
    check_answer("POST", "/v1/starts", &started);
    assert_eq!(started.status, 200, "{started:?}");
    server.wait_for(&admin, &run, "ended");
    assert_eq!(lines(&server), 1);
    let again = server.post(&admin, "/v1/starts", &json!({"tool": "writeNote"}));
    is(&again, 404, "not_stopped");
}

#[test]
fn a_stopped_run_can_be_cancelled() {
    let server = writing_server();
    let token = server.token("ann", "run,operate");
    let stopped = server.post(&token, "/v1/stops", &json!({"agent": "clerk"}));
    assert_eq!(stopped.status, 201);
    let run = start_run(server.address, &token);
    wait_until_stopped(&server, &token, &run);
    let cancelled = server.post(&token, &format!("/v1/runs/{run}/cancel"), &json!({}));
    assert_eq!(cancelled.status, 200, "{cancelled:?}");
    assert_eq!(cancelled.json()["run"]["end"]["end"], "cancelled");
    assert_eq!(lines(&server), 0);
}

#[test]
fn only_operators_stop_and_only_their_own_tenant() {
    let server = writing_server();
    let runner = server.token("ann", "run");
    is(
        &server.post(&runner, "/v1/stops", &json!({"all": true})),
        403,
        "scope_missing",
    );
    is(
        &server.post(&runner, "/v1/starts", &json!({"all": true})),
        403,
        "scope_missing",
    );
    let create = ["--name", "eve", "--scopes", "operate", "--tenant", "evil"];
    let (foreign, _) = server.token_with(&create);
    let run = start_run(server.address, &runner);
    is(
        &server.post(&foreign, "/v1/stops", &json!({"run": run})),
        404,
        "no_such_run",
    );
    let every = json!({"all": true, "every_tenant": true});
    is(
        &server.post(&foreign, "/v1/stops", &every),
        403,
        "scope_missing",
    );
    assert_eq!(
        server
            .post(&foreign, "/v1/stops", &json!({"all": true}))
            .status,
        201
    );
    let ended = server.wait_for(&runner, &run, "ended");
    assert_eq!(ended["end"]["end"], "completed", "{ended}");
    assert_eq!(server.get(&runner, "/v1/stops").json()["items"], json!([]));
    is(
        &server.post(&foreign, "/v1/stops", &json!({})),
        422,
        "invalid_stop",
    );
    let two = json!({"all": true, "tool": "writeNote"});
    is(
        &server.post(&foreign, "/v1/stops", &two),
        422,
        "invalid_stop",
    );
}
