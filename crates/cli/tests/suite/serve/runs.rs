//! Runs over HTTP.

use serde_json::{Value, json};

use super::client::Request;
use super::server::{TestServer, check_answer};
use crate::suite::acting::{call, finish};

fn task(id: &str) -> Value {
    json!({"agent": "clerk", "task": {"task_id": id, "description": "Keep order."}})
}

#[test]
fn a_run_is_started_awaited_shown_and_listed() {
    let server = TestServer::start(&[call("listFiles", json!({})), finish("In order.")]);
    let token = server.token("ann", "run");
    let start = Request::post("/v1/runs", &task("one")).token(&token);
    let ended = server.send(&start.clone().header("Prefer", "wait=30"));
    check_answer("POST", "/v1/runs", &ended);
    assert_eq!(ended.status, 200, "{ended:?}");
    assert_eq!(ended.header("preference-applied"), Some("wait=30"));
    let run = ended.json();
    assert_eq!(run["end"], json!({"end": "completed"}));
    assert_eq!(run["principal"], "ann");
    assert_eq!(run["response"]["answer"], "In order.");
    assert_eq!(run["output"]["task_id"], "one");
    assert_eq!(run["calls"][0]["tool"], "listFiles");
    let id = run["run"].as_str().unwrap();
    assert_eq!(
        ended.header("location"),
        Some(format!("/v1/runs/{id}").as_str())
    );

    let begun = server.send(&start);
    check_answer("POST", "/v1/runs", &begun);
    assert_eq!(begun.status, 202);
    let second = begun.json()["run"].as_str().unwrap().to_owned();
    let shown = server.wait_for(&token, &second, "ended");
    assert_eq!(shown["response"]["answer"], "In order.");

    let first = server.get(&token, "/v1/runs?limit=1&state=ended&agent=clerk");
    check_answer("GET", "/v1/runs", &first);
    let first = first.json();
    assert_eq!(first["items"][0]["run"], second);
    let next = first["next"].as_str().unwrap();
    let next = server
        .get(&token, &format!("/v1/runs?limit=1&after={next}"))
        .json();
    assert_eq!(
        (&next["items"][0]["run"], &next["next"]),
        (&json!(id), &Value::Null)
    );
}

#[test]
fn a_repeated_request_starts_no_second_run() {
    let server = TestServer::start(&[finish("Done.")]);
    let token = server.token("ann", "run");
    let start = |body: &Value, key: &str, token: &str| {
        let request = Request::post("/v1/runs", body).token(token);
        server.send(&request.header("Idempotency-Key", key))
    };
    let first = start(&task("one"), "k1", &token);
    assert_eq!(first.status, 202, "{first:?}");
    let requests: Vec<_> = (0..8).map(|_| start(&task("one"), "k1", &token)).collect();
    for again in requests {
        assert_eq!(again.json()["run"], first.json()["run"]);
    }
    let other = start(&task("two"), "k1", &token);
    assert_eq!(
        (other.status, other.problem().as_str()),
        (422, "key_reused")
    );
    // Keys belong to their principal.
    let ben = server.token("ben", "run");
    let of_ben = start(&task("two"), "k1", &ben);
    assert_ne!(of_ben.json()["run"], first.json()["run"]);
    let wrong = start(&task("one"), &"k".repeat(300), &token);
    assert_eq!(wrong.problem(), "invalid_key");
    let listed = server.get(&token, "/v1/runs").json();
    assert_eq!(listed["items"].as_array().unwrap().len(), 2);
}

#[test]
fn requests_at_the_same_time_with_the_same_key_start_one_run() {
    let server = TestServer::start(&[call("listFiles", json!({})), finish("Done.")]);
    let token = server.token("ann", "run");
    let request = Request::post("/v1/runs", &task("one"))
        .token(&token)
        .header("Idempotency-Key", "together");
    let answers: Vec<_> = std::thread::scope(|scope| {
        let sending: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| server.send(&request)))
            .collect();
        sending.into_iter().map(|one| one.join().unwrap()).collect()
    });
    for answer in &answers {
        assert_eq!(answer.status, 202, "{answer:?}");
        assert_eq!(answer.json()["run"], answers[0].json()["run"]);
    }
    let run = answers[0].json()["run"].as_str().unwrap().to_owned();
    server.wait_for(&token, &run, "ended");
    let listed = server.get(&token, "/v1/runs").json();
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
}

#[test]
fn tenants_see_nothing_of_each_other() {
    let server = TestServer::start(&[
        call("deleteFile", json!({"file": "draft.txt"})),
        finish("Done."),
    ]);
    let (ann, _) = server.token_with(&["--name", "ann", "--scopes", "admin", "--tenant", "acme"]);
    let (eve, _) = server.token_with(&["--name", "eve", "--scopes", "admin", "--tenant", "rival"]);
    let started = server.post(&ann, "/v1/runs", &task("one")).json();
    let run = started["run"].as_str().unwrap().to_owned();
    server.wait_for(&ann, &run, "waiting");
    let listed = server.get(&eve, "/v1/runs").json();
    assert_eq!(listed["items"], json!([]));
    for (method, path) in [
        ("GET", format!("/v1/runs/{run}")),
        ("POST", format!("/v1/runs/{run}/cancel")),
        ("POST", format!("/v1/runs/{run}/resume")),
        ("GET", format!("/v1/runs?after={run}")),
    ] {
        let answer = server.send(&Request::new(method, &path).token(&eve));
        assert_eq!(
            (answer.status, answer.problem().as_str()),
            (404, "no_such_run"),
            "{path}"
        );
    }
    // The worker of the server resumes runs of all tenants.
    let cancelled =
        server.send(&Request::new("POST", &format!("/v1/runs/{run}/cancel")).token(&ann));
    check_answer("POST", "/v1/runs/{run}/cancel", &cancelled);
    assert_eq!(cancelled.json()["has_ended"], true);
    let again = server.send(&Request::new("POST", &format!("/v1/runs/{run}/cancel")).token(&ann));
    assert_eq!((again.status, again.problem().as_str()), (409, "ended"));
}

#[test]
fn agents_are_listed_and_shown_with_schemas() {
    let server = TestServer::start(&[finish("Done.")]);
    let token = server.token("ann", "read");
    let listed = server.get(&token, "/v1/agents");
    check_answer("GET", "/v1/agents", &listed);
    assert_eq!(listed.json()["items"][0]["name"], "clerk");
    let shown = server.get(&token, "/v1/agents/clerk");
    check_answer("GET", "/v1/agents/{agent}", &shown);
    let tool = &shown.json()["specifications"][2];
    assert_eq!(tool["name"], "deleteFile");
    assert_eq!(tool["arguments"]["required"], json!(["file"]));
    let unknown = server.get(&token, "/v1/agents/klerk");
    assert_eq!(
        (unknown.status, unknown.problem().as_str()),
        (404, "no_such_agent")
    );
    let health = server.get(&token, "/v1/health");
    check_answer("GET", "/v1/health", &health);
    for public in ["/livez", "/readyz", "/openapi.json"] {
        let answer = server.send(&Request::get(public));
        assert_eq!(answer.status, 200, "{public}");
        check_answer("GET", public, &answer);
    }
    let served = server.send(&Request::get("/openapi.json")).json();
    assert_eq!(&served, super::server::openapi());
}
