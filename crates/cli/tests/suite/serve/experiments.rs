//! Experiments over HTTP: started, polled, stopped and continued.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::client::{Answer, Request};
use super::server::{TestServer, check_answer};
use crate::suite::acting::finish;
use crate::suite::program::example;

/// A server with the example of the prices.
fn serve() -> TestServer {
    TestServer::start_project(&[finish("Done.")], "", &[], |office| {
        for file in ["old.toml", "new.toml"] {
            let text = example(&format!("prices/{file}"));
            std::fs::write(office.project.path(file), text).unwrap();
        }
        let agent = example("prices/agent.gram");
        std::fs::write(office.project.path("prices.gram"), agent).unwrap();
        let path = office.project.path("windlass.toml");
        let text = std::fs::read_to_string(&path).unwrap();
        let text = text.replace("scripted:answers.jsonl", "reflex");
        std::fs::write(&path, text).unwrap();
        Vec::new()
    })
}

fn experiment(name: &str) -> Value {
    let tasks = example("prices/tasks.jsonl");
    let tasks: Vec<Value> = tasks
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    json!({"agent": "prices", "a": "old.toml", "b": "new.toml", "tasks": tasks, "name": name, "jobs": 2})
}

fn start(server: &TestServer, token: &str, body: &Value, wait: bool) -> Answer {
    let request = Request::post("/v1/experiments", body).token(token);
    let answer = server.send(&match wait {
        true => request.header("Prefer", "wait=120"),
        false => request,
    });
    check_answer("POST", "/v1/experiments", &answer);
    answer
}

fn is(answer: &Answer, status: u16, code: &str) {
    assert_eq!(
        (answer.status, answer.problem().as_str()),
        (status, code),
        "{answer:?}"
    );
}

/// How many runs of the agent there are.
fn runs(server: &TestServer, token: &str) -> usize {
    let listed = server.get(token, "/v1/runs?agent=prices&limit=200").json();
    listed["items"].as_array().unwrap().len()
}

/// The experiment when it does not run any more.
fn ended(server: &TestServer, token: &str, name: &str) -> Value {
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        let shown = server.get(token, &format!("/v1/experiments/{name}"));
        check_answer("GET", "/v1/experiments/{experiment}", &shown);
        let shown = shown.json();
        if shown["state"] != "running" {
            return shown;
        }
        assert!(Instant::now() < deadline, "{shown}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn an_experiment_runs_in_the_background_and_shows_its_verdict() {
    let server = serve();
    let admin = server.token("ann", "admin");
    let body = experiment("fruit");
    let request = Request::post("/v1/experiments", &body)
        .token(&admin)
        .header("Idempotency-Key", "once");
    let begun = server.send(&request);
    check_answer("POST", "/v1/experiments", &begun);
    assert_eq!(begun.status, 202, "{begun:?}");
    assert_eq!(begun.header("location"), Some("/v1/experiments/fruit"));
    // The same request again starts nothing.
    let again = server.send(&request);
    assert!([200, 202].contains(&again.status), "{again:?}");
    assert_eq!(again.json()["experiment"], "fruit");
    let shown = ended(&server, &admin, "fruit");
    assert_eq!(shown["state"], "done", "{shown}");
    assert_eq!(
        (&shown["pairs"], &shown["pairs_done"]),
        (&json!(12), &json!(12))
    );
    let success = &shown["findings"]["metrics"][0];
    assert_eq!(
        (&success["verdict"], &success["arm"]),
        (&json!("better"), &json!("b")),
        "{success}"
    );
    assert_eq!(shown["principal"], "ann");
    let listed = server.get(&admin, "/v1/experiments");
    check_answer("GET", "/v1/experiments", &listed);
    assert_eq!(listed.json()["items"][0]["experiment"], "fruit");
    assert_eq!(runs(&server, &admin), 24);
    is(&start(&server, &admin, &body, false), 409, "has_runs");
    // Continued, it has nothing left to do.
    let mut resumed = body.clone();
    resumed["resume"] = json!(true);
    let resumed = start(&server, &admin, &resumed, true);
    assert_eq!(resumed.status, 200, "{resumed:?}");
    assert_eq!(
        resumed.json()["findings"]["metrics"],
        shown["findings"]["metrics"]
    );
    assert_eq!(runs(&server, &admin), 24);
    let rival = ["--name", "eve", "--scopes", "admin", "--tenant", "rival"];
    let (rival, _) = server.token_with(&rival);
    is(
        &server.get(&rival, "/v1/experiments/fruit"),
        404,
        "no_such_experiment",
    );
    assert_eq!(
        server.get(&rival, "/v1/experiments").json()["items"],
        json!([])
    );
}

#[test]
fn an_experiment_needs_the_rights_that_its_parts_need() {
    let server = serve();
    let (reader, runner) = (server.token("ben", "read"), server.token("bob", "run"));
    let body = experiment("fruit");
    is(&start(&server, &reader, &body, false), 403, "scope_missing");
    // Its libraries are files that the configuration does not name.
    is(&start(&server, &runner, &body, false), 403, "scope_missing");
    let with = |field: &str, value: Value| {
        let mut body = body.clone();
        (body["a"], body["b"]) = (json!("builtin"), json!("builtin"));
        body[field] = value;
        start(&server, &runner, &body, false)
    };
    is(
        &with("metrics", json!(["check:true"])),
        403,
        "scope_missing",
    );
    is(
        &with("libraries", json!(["/etc/passwd"])),
        403,
        "scope_missing",
    );
    // It may use the built-in libraries, which do not have the tool.
    is(&with("seed", json!(2)), 409, "cannot_be_started");
    is(&with("agent", json!("nobody")), 404, "no_such_agent");
    is(&with("metrics", json!(["beauty"])), 422, "unknown_metric");
    is(&with("tasks", json!([])), 422, "does_not_fit");
    is(&with("name", json!("variants")), 409, "cannot_be_started");
    assert_eq!(runs(&server, &server.token("ann", "admin")), 0);
}

#[test]
fn an_experiment_that_was_stopped_or_killed_is_continued_and_repeats_no_run() {
    let mut server = serve();
    let admin = server.token("ann", "admin");
    let mut body = experiment("long");
    body["runs"] = json!(3);
    assert_eq!(start(&server, &admin, &body, false).status, 202);
    is(
        &start(
            &server,
            &admin,
            &{
                let mut body = body.clone();
                body["resume"] = json!(true);
                body
            },
            false,
        ),
        409,
        "experiment_running",
    );
    let wait_for = |server: &TestServer, count: usize| {
        let deadline = Instant::now() + Duration::from_secs(60);
        while runs(server, &admin) < count {
            assert!(Instant::now() < deadline, "no runs");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    wait_for(&server, 2);
    let stop = Request::new("POST", "/v1/experiments/long/stop").token(&admin);
    let stopped = server.send(&stop);
    check_answer("POST", "/v1/experiments/{experiment}/stop", &stopped);
    let shown = ended(&server, &admin, "long");
    assert_eq!(shown["state"], "stopped", "{shown}");
    let had = runs(&server, &admin);
    assert!(had < 72, "{had}");
    body["resume"] = json!(true);
    assert_eq!(start(&server, &admin, &body, false).status, 202);
    wait_for(&server, had + 2);
    server.kill();
    server.restart();
    is(
        &server.get(&admin, "/v1/experiments/long"),
        404,
        "no_such_experiment",
    );
    let done = start(&server, &admin, &body, true);
    assert_eq!(done.json()["state"], "done", "{done:?}");
    assert_eq!(done.json()["findings"]["pairs"]["complete"], 36);
    let listed = server.get(&admin, "/v1/runs?agent=prices&limit=200").json();
    assert_eq!(listed["items"].as_array().unwrap().len(), 72);
}
