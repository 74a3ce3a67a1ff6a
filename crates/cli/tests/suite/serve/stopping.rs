//! What remains of a server that stops or is killed: every run can be resumed, and nothing is done twice.

use std::time::Duration;

use serde_json::{Value, json};

use super::client::Request;
use super::server::TestServer;
use crate::suite::acting::{call, finish};

fn task(number: usize) -> Value {
    let id = format!("task-{number}");
    json!({"agent": "clerk", "task": {"task_id": id, "description": "Keep order."}})
}

/// Each run reads twice and writes a line, which is held for a second.
fn busy_server() -> TestServer {
    TestServer::start(&[
        call("listFiles", json!({})),
        call(
            "writeNote",
            json!({"file": "journal.txt", "line": "A line."}),
        ),
        call("listFiles", json!({})),
        finish("Done."),
    ])
}

fn start_runs(server: &TestServer, token: &str, count: usize) -> Vec<String> {
    let start = |number| {
        let request = Request::post("/v1/runs", &task(number)).token(token);
        let answer = server.send(&request.header("Idempotency-Key", &format!("run-{number}")));
        assert_eq!(answer.status, 202, "{answer:?}");
        answer.json()["run"].as_str().unwrap().to_owned()
    };
    (0..count).map(start).collect()
}

/// How often the line is in the file that the runs write.
fn lines(server: &TestServer) -> usize {
    let journal = server.office.project.path("files/journal.txt");
    let written = std::fs::read_to_string(journal).unwrap_or_default();
    written
        .lines()
        .filter(|line| line.contains("A line."))
        .count()
}

#[test]
fn a_server_that_stops_leaves_its_runs_to_the_next_one() {
    let mut server = busy_server();
    let token = server.token("ann", "run");
    let runs = start_runs(&server, &token, 6);
    assert_eq!(server.stop(), Some(0));
    server.restart();
    for run in &runs {
        let ended = server.wait_for(&token, run, "ended");
        assert_eq!(ended["end"]["end"], "completed", "{ended}");
    }
    assert_eq!(lines(&server), runs.len());
}

#[test]
fn a_killed_server_loses_and_repeats_nothing() {
    let mut server = busy_server();
    let token = server.token("ann", "run,approve");
    let runs = start_runs(&server, &token, 12);
    for pause in [40, 400, 900] {
        std::thread::sleep(Duration::from_millis(pause));
        server.kill();
        server.restart();
        // The same requests again, as a client repeats them that got no answer.
        assert_eq!(start_runs(&server, &token, 12), runs);
    }
    let deadline = std::time::Instant::now() + Duration::from_secs(120);
    let mut unknown = 0;
    for run in &runs {
        let shown = loop {
            let shown = server.get(&token, &format!("/v1/runs/{run}")).json();
            if shown["state"] != "open" && shown["holds"] == json!([]) {
                break shown;
            }
            assert!(std::time::Instant::now() < deadline, "{shown}");
            std::thread::sleep(Duration::from_millis(50));
        };
        match shown["state"].as_str() {
            Some("ended") => assert_eq!(shown["end"]["end"], "completed", "{shown}"),
            // A call whose outcome is unknown waits for a person.
            _ => unknown += 1,
        }
    }
    let written = lines(&server);
    let certain = runs.len() - unknown;
    assert!(
        written >= certain && written <= runs.len(),
        "{written} of {certain} to {}",
        runs.len()
    );
}

#[test]
fn a_server_stops_while_a_client_waits_for_a_run() {
    let mut server = busy_server();
    let token = server.token("ann", "run");
    let request = Request::post("/v1/runs", &task(1)).token(&token);
    let request = request.header("Prefer", "wait=60");
    let address = server.address;
    let waiting = std::thread::spawn(move || request.send(address));
    // The run exists when it is listed.
    while server.get(&token, "/v1/runs").json()["items"] == json!([]) {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(server.stop(), Some(0));
    let answer = waiting.join().unwrap();
    assert!([200, 202].contains(&answer.status), "{answer:?}");
    let run = answer.json()["run"].as_str().unwrap().to_owned();
    server.restart();
    server.wait_for(&token, &run, "ended");
}
