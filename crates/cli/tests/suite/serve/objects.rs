//! Approvals, tools, conversations and the other objects over HTTP.

use serde_json::{Value, json};

use super::client::{Answer, Request};
use super::routes::operations;
use super::server::{TestServer, check_answer};
use crate::suite::acting::{call, finish};

fn task() -> Value {
    json!({"agent": "clerk", "task": {"task_id": "t", "description": "Keep order."}})
}

fn deleting() -> TestServer {
    TestServer::start(&[
        call("listFiles", json!({})),
        call("deleteFile", json!({"file": "draft.txt"})),
        finish("Gone."),
    ])
}

/// Starts a run and returns it with the question that it waits for.
fn waiting(server: &TestServer, token: &str) -> (String, Value) {
    let started = server.send(
        &Request::post("/v1/runs", &task())
            .token(token)
            .header("Prefer", "wait=30"),
    );
    let started = started.json();
    assert_eq!(
        started["end"],
        json!({"end": "waiting_for_person"}),
        "{started}"
    );
    let run = started["run"].as_str().unwrap().to_owned();
    let listed = server.get(token, &format!("/v1/approvals?status=pending&run={run}"));
    check_answer("GET", "/v1/approvals", &listed);
    (run, listed.json()["items"][0].clone())
}

fn is(answer: &Answer, status: u16, code: &str) {
    assert_eq!(
        (answer.status, answer.problem().as_str()),
        (status, code),
        "{answer:?}"
    );
}

#[test]
fn an_approval_is_decided_once_with_the_digest_and_the_run_goes_on() {
    let server = deleting();
    let ann = server.token("ann", "run");
    let ben = server.token("ben", "approve");
    let (run, asked) = waiting(&server, &ann);
    let id = asked["id"].as_str().unwrap();
    let path = format!("/v1/approvals/{id}/decision");
    let decide = |token: &str, decision: Value| server.post(token, &path, &decision);
    is(
        &decide(&ann, json!({"decision": "approve"})),
        403,
        "scope_missing",
    );
    is(
        &decide(&ben, json!({"decision": "approve"})),
        409,
        "digest_needed",
    );
    let other = format!("sha256:{}", "0".repeat(64));
    let digest = asked["digest_now"].as_str().unwrap();
    let other = match digest.split_once(':') {
        Some(_) => other,
        None => "0".repeat(64),
    };
    is(
        &decide(&ben, json!({"decision": "approve", "digest": other})),
        409,
        "digest_differs",
    );
    is(
        &decide(&ben, json!({"decision": "approve", "value": 1})),
        422,
        "does_not_fit",
    );
    is(
        &decide(&ben, json!({"decision": "respond"})),
        422,
        "does_not_fit",
    );
    is(
        &decide(&ben, json!({"decision": "maybe"})),
        422,
        "does_not_fit",
    );
    let unknown = server.post(
        &ben,
        "/v1/approvals/r:9:9/decision",
        &json!({"decision": "reject"}),
    );
    is(&unknown, 404, "no_such_approval");
    let approved = decide(&ben, json!({"decision": "approve", "digest": digest}));
    check_answer("POST", "/v1/approvals/{approval}/decision", &approved);
    assert_eq!(approved.json()["status"], "approved", "{approved:?}");
    let begun = std::time::Instant::now();
    let ended = server.wait_for(&ann, &run, "ended");
    assert_eq!(ended["response"]["answer"], "Gone.");
    assert!(begun.elapsed() < std::time::Duration::from_secs(20));
    assert!(!server.office.project.path("files/draft.txt").exists());
    is(
        &decide(&ben, json!({"decision": "reject"})),
        409,
        "already_decided",
    );
    let shown = server.get(&ann, &format!("/v1/approvals/{id}"));
    check_answer("GET", "/v1/approvals/{approval}", &shown);
    let (eve, _) = server.token_with(&["--name", "eve", "--scopes", "admin", "--tenant", "rival"]);
    is(
        &server.get(&eve, &format!("/v1/approvals/{id}")),
        404,
        "no_such_approval",
    );
    is(
        &server.post(&eve, &path, &json!({"decision": "reject"})),
        404,
        "no_such_approval",
    );
}

#[test]
fn a_held_call_is_undone() {
    let server = TestServer::start(&[
        call(
            "writeNote",
            json!({"file": "journal.txt", "line": "A line."}),
        ),
        finish("Not written."),
    ]);
    let configuration = server
        .office
        .project
        .read("windlass.toml")
        .replace("= 1\n", "= 30\n");
    std::fs::write(server.office.project.path("windlass.toml"), configuration).unwrap();
    let declared = server
        .office
        .project
        .read("agent.gram")
        .replace("undo_window_seconds: 1", "undo_window_seconds: 30");
    std::fs::write(server.office.project.path("agent.gram"), declared).unwrap();
    let token = server.token("ann", "run,approve");
    let started = server.post(&token, "/v1/runs", &task()).json();
    let run = started["run"].as_str().unwrap();
    let held = loop {
        let listed = server.get(&token, "/v1/holds");
        check_answer("GET", "/v1/holds", &listed);
        match listed.json()["items"][0].clone() {
            Value::Null => std::thread::sleep(std::time::Duration::from_millis(20)),
            held => break held,
        }
    };
    let id = held["id"].as_str().unwrap();
    let undone = server.send(&Request::new("POST", &format!("/v1/holds/{id}/undo")).token(&token));
    check_answer("POST", "/v1/holds/{hold}/undo", &undone);
    assert_eq!(undone.json()["status"], "undone");
    let again =
        server.send(&Request::new("POST", &format!("/v1/holds/{id}/release")).token(&token));
    is(&again, 409, "too_late");
    server.wait_for(&token, run, "ended");
    let (eve, _) = server.token_with(&["--name", "eve", "--scopes", "admin", "--tenant", "rival"]);
    is(
        &server.get(&eve, &format!("/v1/holds/{id}")),
        404,
        "no_such_hold",
    );
}

#[test]
fn a_tool_is_called_through_the_gate() {
    let server = deleting();
    let token = server.token("ann", "run");
    let listed = server.get(&token, "/v1/tools?agent=clerk&library=tools.toml");
    check_answer("GET", "/v1/tools", &listed);
    assert_eq!(listed.json()["items"].as_array().unwrap().len(), 3);
    let found = server.get(&token, "/v1/tools?search=time&limit=2");
    check_answer("GET", "/v1/tools", &found);
    assert!(found.json()["next"].is_string());
    let described = server.get(
        &token,
        "/v1/tools/deleteFile?library=tools.toml&agent=clerk",
    );
    check_answer("GET", "/v1/tools/{tool}", &described);
    assert_eq!(described.json()["attributes"]["risk"], "irreversible");
    let call = |arguments: Value| {
        let body = json!({"library": "tools.toml", "agent": "clerk", "arguments": arguments});
        let request = Request::post("/v1/tools/deleteFile/calls", &body).token(&token);
        server.send(&request.header("Prefer", "wait=30"))
    };
    let asked = call(json!({"file": "draft.txt"}));
    check_answer("POST", "/v1/tools/{tool}/calls", &asked);
    assert_eq!(
        asked.json()["end"],
        json!({"end": "waiting_for_person"}),
        "{asked:?}"
    );
    let clock = Request::post("/v1/tools/get_current_time/calls", &json!({}))
        .token(&token)
        .header("Prefer", "wait=30");
    let clock = server.send(&clock);
    assert_eq!(clock.json()["calls"][0]["state"], "success", "{clock:?}");
    let counted = server.get(&token, "/v1/statistics/tools");
    check_answer("GET", "/v1/statistics/tools", &counted);
    assert_eq!(counted.json()["items"][0]["success_count"], 1);
    let executions = server.get(&token, "/v1/executions");
    check_answer("GET", "/v1/executions", &executions);
    let id = clock.json()["calls"][0]["call"]
        .as_str()
        .unwrap()
        .to_owned();
    let shown = server.get(&token, &format!("/v1/executions/{id}"));
    check_answer("GET", "/v1/executions/{call}", &shown);
    // A library that is not configured is a file of the server.
    let elsewhere = server.get(&token, "/v1/tools?library=/etc/passwd");
    is(&elsewhere, 403, "scope_missing");
    let (eve, _) = server.token_with(&["--name", "eve", "--scopes", "read", "--tenant", "rival"]);
    is(
        &server.get(&eve, &format!("/v1/executions/{id}")),
        404,
        "no_such_execution",
    );
}

#[test]
fn a_conversation_is_begun_continued_and_deleted() {
    let server = TestServer::start(&[finish("Hello.")]);
    let token = server.token("ann", "run");
    let say = |path: &str, body: Value| {
        let request = Request::post(path, &body).token(&token);
        server.send(&request.header("Prefer", "wait=30"))
    };
    let begun = say(
        "/v1/conversations",
        json!({"agent": "clerk", "message": "Hi."}),
    );
    check_answer("POST", "/v1/conversations", &begun);
    assert_eq!(begun.status, 200, "{begun:?}");
    let listed = server.get(&token, "/v1/conversations");
    check_answer("GET", "/v1/conversations", &listed);
    let id = listed.json()["items"][0]["id"].as_str().unwrap().to_owned();
    let path = format!("/v1/conversations/{id}");
    let more = say(&format!("{path}/messages"), json!({"message": "And now?"}));
    assert_eq!(more.status, 200, "{more:?}");
    let shown = server.get(&token, &path);
    check_answer("GET", "/v1/conversations/{conversation}", &shown);
    let shown = shown.json();
    assert_eq!(shown["messages"].as_array().unwrap().len(), 4, "{shown}");
    assert_eq!(
        shown["messages"][3],
        json!({"role": "assistant", "content": "Hello."})
    );
    let ben = server.token("ben", "admin");
    is(&server.get(&ben, &path), 404, "no_such_conversation");
    let deleted = server.send(&Request::new("DELETE", &path).token(&token));
    check_answer("DELETE", "/v1/conversations/{conversation}", &deleted);
    is(&server.get(&token, &path), 404, "no_such_conversation");
}

#[test]
fn a_conversation_has_the_answer_of_a_run_that_waited_for_an_approval() {
    let server = deleting();
    let token = server.token("ann", "run");
    let body = json!({"agent": "clerk", "message": "Keep order."});
    let said = Request::post("/v1/conversations", &body).token(&token);
    let said = server.send(&said.header("Prefer", "wait=30")).json();
    let run = said["run"].as_str().unwrap();
    let listed = server.get(&token, "/v1/conversations").json();
    let path = format!(
        "/v1/conversations/{}",
        listed["items"][0]["id"].as_str().unwrap()
    );
    let waiting = server.get(&token, &path).json();
    assert!(
        waiting["messages"]
            .to_string()
            .contains("waiting for an approval"),
        "{waiting}"
    );
    let ben = server.token("ben", "approve");
    let asked = server.get(&ben, &format!("/v1/approvals?status=pending&run={run}"));
    let asked = asked.json()["items"][0].clone();
    let decision = json!({"decision": "approve", "digest": asked["digest_now"]});
    let id = asked["id"].as_str().unwrap();
    let decided = server.post(&ben, &format!("/v1/approvals/{id}/decision"), &decision);
    assert_eq!(decided.status, 200, "{decided:?}");
    server.wait_for(&token, run, "ended");
    let shown = server.get(&token, &path).json();
    let messages = shown["messages"].to_string();
    assert!(!messages.contains("waiting for an approval"), "{shown}");
    assert!(!messages.contains("has not ended"), "{shown}");
    let last = shown["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(last["content"], "Gone.", "{shown}");
}

#[test]
fn a_request_is_logged_with_its_route_and_its_errors_without_their_messages() {
    let server = TestServer::logging(&[finish("Hello.")], "debug");
    let token = server.token("ann", "run");
    is(
        &server.get(&token, "/v1/runs/nobody-has-it"),
        404,
        "no_such_run",
    );
    let line = server.logged("http_request");
    for part in [
        "http.request.method=\"GET\"",
        "http.route=\"/v1/runs/{run}\"",
        "http.response.status_code=404",
        "error.type=\"no_such_run\"",
        "windlass_server",
    ] {
        assert!(line.contains(part), "{part}: {line}");
    }
    let missing = "[forgetful:Agent {instruction: \"x\", model: \"m\"} | [lost:Tool {description: \"Is not there\"} | ()==>(::Text)]]";
    std::fs::write(server.office.project.path("forgetful.gram"), missing).unwrap();
    let task = json!({"agent": "forgetful", "task": {"task_id": "t", "description": "x"}});
    let refused = server.post(&token, "/v1/runs", &task);
    is(&refused, 409, "cannot_be_started");
    let line = server.logged("cannot be carried out");
    assert!(line.contains("error.type"), "{line}");
    let log = server.log();
    assert!(
        !log.contains("nobody-has-it") && !log.contains("cannot be bound"),
        "{log}"
    );
}

#[test]
fn policies_plans_memory_and_the_rest_answer_as_described() {
    let server = deleting();
    let token = server.token("ann", "run,operate");
    let call = json!({"agent": "clerk", "tool": "deleteFile", "arguments": {"file": "draft.txt"}});
    let explained = server.post(&token, "/v1/policies/explain", &call);
    check_answer("POST", "/v1/policies/explain", &explained);
    assert_eq!(explained.status, 200, "{explained:?}");
    let active = server.get(&token, "/v1/policies").json();
    let text = active["text"].as_str().unwrap();
    let replayed = server.post(&token, "/v1/policies/replay", &json!({"policies": text}));
    check_answer("POST", "/v1/policies/replay", &replayed);
    assert_eq!(replayed.json()["differences"], json!([]));
    let wrong = server.post(
        &token,
        "/v1/policies/replay",
        &json!({"policies": "permit ("}),
    );
    is(&wrong, 422, "invalid_policies");

    let plan = json!({"agent": "clerk", "plan": {"tasks": [{"id": "look", "tool": "listFiles"}]}});
    let request = Request::post("/v1/plans", &plan)
        .token(&token)
        .header("Prefer", "wait=30");
    let planned = server.send(&request);
    check_answer("POST", "/v1/plans", &planned);
    assert_eq!(
        planned.json()["end"],
        json!({"end": "completed"}),
        "{planned:?}"
    );
    let listed = server.get(&token, "/v1/plans");
    check_answer("GET", "/v1/plans", &listed);
    let id = listed.json()["items"][0]["plan"]
        .as_str()
        .unwrap()
        .to_owned();
    let shown = server.get(&token, &format!("/v1/plans/{id}"));
    check_answer("GET", "/v1/plans/{plan}", &shown);
    assert_eq!(shown.json()["status"], "success");
    let impossible = json!({"agent": "clerk", "plan": {"tasks": [{"id": "a", "tool": "fly"}]}});
    is(
        &server.post(&token, "/v1/plans", &impossible),
        422,
        "invalid_plan",
    );

    let remembered = server.post(
        &token,
        "/v1/memory",
        &json!({"text": "The cat is called Mill."}),
    );
    check_answer("POST", "/v1/memory", &remembered);
    assert_eq!(remembered.status, 201, "{remembered:?}");
    let found = server.post(
        &token,
        "/v1/memory/search",
        &json!({"query": "name of the cat"}),
    );
    check_answer("POST", "/v1/memory/search", &found);
    assert_eq!(found.json()["items"].as_array().unwrap().len(), 1);
    let id = remembered.json()["id"].as_str().unwrap().to_owned();
    let document = format!("/v1/memory/{id}");
    let shown = server.get(&token, &document);
    check_answer("GET", "/v1/memory/{document}", &shown);
    let ben = server.token("ben", "admin");
    is(&server.get(&ben, &document), 404, "no_such_document");
    let forgotten = server.send(&Request::new("DELETE", &document).token(&token));
    check_answer("DELETE", "/v1/memory/{document}", &forgotten);

    let configuration = server.get(&token, "/v1/configuration?key=model");
    check_answer("GET", "/v1/configuration", &configuration);
    assert_eq!(
        configuration.json()["items"][0]["value"],
        "scripted:answers.jsonl"
    );
}

#[test]
fn no_route_fails_and_every_answer_is_as_described() {
    let server = deleting();
    let token = server.token("ann", "admin");
    for operation in operations().iter().filter(|one| !one.is_stream()) {
        for request in [operation.request(), operation.request_with("{}")] {
            operation.check(&server.send(&request.token(&token)));
        }
    }
}

#[test]
fn what_an_auditor_reads_is_recorded() {
    let server = deleting();
    let token = server.token("ida", "audit");
    assert_eq!(server.get(&token, "/v1/runs").status, 200);
    is(
        &server.post(&token, "/v1/runs", &task()),
        403,
        "scope_missing",
    );
    let export = server
        .office
        .command(&["audit", "export", "--from", "1h"])
        .output();
    let exported = String::from_utf8(export.unwrap().stdout).unwrap();
    assert!(
        exported.contains("audit_read") && exported.contains("list_runs /v1/runs"),
        "{exported}"
    );
    assert!(exported.contains("token_created"));
}
