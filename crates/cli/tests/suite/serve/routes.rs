//! What every route refuses. The routes are those of the OpenAPI document, so that a new one is tested, too.

use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::client::{Answer, Request};
use super::server::{TestServer, check_answer, openapi};
use crate::suite::acting::{call, finish};

/// An operation of the API.
pub(super) struct Operation {
    method: &'static str,
    path: String,
    /// The scope that it needs; `None` if it needs no token.
    scope: Option<String>,
    /// The schema of its body.
    body: Option<Value>,
    /// Whether it answers with events.
    is_stream: bool,
}

/// All operations of the API.
pub(super) fn operations() -> Vec<Operation> {
    let mut found = Vec::new();
    for (path, methods) in openapi()["paths"].as_object().unwrap() {
        for (method, described) in methods.as_object().unwrap() {
            let method = match method.as_str() {
                "get" => "GET",
                "post" => "POST",
                "put" => "PUT",
                "patch" => "PATCH",
                "delete" => "DELETE",
                other => panic!("{other}"),
            };
            let scope = described["security"].is_null().then(|| {
                let text = described["description"].as_str().unwrap();
                let (_, scope) = text.split_once("scope `").unwrap();
                scope.split('`').next().unwrap().to_owned()
            });
            let body = &described["requestBody"]["content"]["application/json"]["schema"];
            found.push(Operation {
                method,
                path: path.clone(),
                scope,
                body: (!body.is_null()).then(|| body.clone()),
                is_stream: described["responses"]["200"]["content"]["text/event-stream"]
                    .is_object(),
            });
        }
    }
    assert!(found.len() > 40, "only {} operations", found.len());
    found
}

impl Operation {
    pub(super) fn is_stream(&self) -> bool {
        self.is_stream
    }

    /// A request whose body fits, and whose path names nothing.
    pub(super) fn request(&self) -> Request {
        self.request_for(&HashMap::new())
    }

    /// The same request with another body, if it has one.
    pub(super) fn request_with(&self, body: impl Into<Vec<u8>>) -> Request {
        let request = Request::new(self.method, &self.path_for(&HashMap::new()));
        match self.body {
            Some(_) => request.with_body(body),
            None => request,
        }
    }

    /// A request whose path has these values for its parameters.
    fn request_for(&self, values: &HashMap<&str, String>) -> Request {
        let request = Request::new(self.method, &self.path_for(values));
        match &self.body {
            Some(schema) => request.with_body(minimal(schema).to_string()),
            None => request,
        }
    }

    fn path_for(&self, values: &HashMap<&str, String>) -> String {
        let value = |part: &str| match part.strip_prefix('{') {
            Some(name) => {
                let value = values.get(name.trim_end_matches('}'));
                value.map_or("nothing", String::as_str).to_owned()
            }
            None => part.to_owned(),
        };
        let parts: Vec<String> = self.path.split('/').map(value).collect();
        parts.join("/")
    }

    fn parameters(&self) -> Vec<&str> {
        let parts = self.path.split('/');
        let names = parts.filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
        names.collect()
    }

    /// Checks that an answer is as described, and that nothing failed.
    pub(super) fn check(&self, answer: &Answer) {
        assert!(
            answer.status < 500,
            "{} {}: {answer:?}",
            self.method,
            self.path
        );
        check_answer(self.method, &self.path, answer);
    }

    /// Checks that an answer is this problem.
    fn check_problem(&self, answer: &Answer, status: u16, code: &str) {
        let found = (answer.status, answer.problem());
        assert_eq!(
            found,
            (status, code.to_owned()),
            "{} {}",
            self.method,
            self.path
        );
        self.check(answer);
    }
}

/// A value that fits a schema and has only what it must have.
fn minimal(schema: &Value) -> Value {
    if let Some(reference) = schema["$ref"].as_str() {
        return minimal(openapi().pointer(&reference[1..]).unwrap());
    }
    if let Some(constant) = schema.get("const") {
        return constant.clone();
    }
    let first = |key: &str| schema[key].as_array().map(|all| all[0].clone());
    if let Some(word) = first("enum").or_else(|| first("examples")) {
        return word;
    }
    let mut value = match first("oneOf")
        .or_else(|| first("anyOf"))
        .or_else(|| first("allOf"))
    {
        Some(one) => minimal(&one),
        None => Value::Null,
    };
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds[0].clone(),
        kind => kind.clone(),
    };
    match kind.as_str() {
        Some("object") => {
            if !value.is_object() {
                value = json!({});
            }
            for name in schema["required"].as_array().into_iter().flatten() {
                let name = name.as_str().unwrap();
                value[name] = minimal(&schema["properties"][name]);
            }
            value
        }
        Some("array") => {
            let count = schema["minItems"].as_u64().unwrap_or(0);
            (0..count).map(|_| minimal(&schema["items"])).collect()
        }
        Some("string") if schema["format"] == "date-time" => json!("2026-01-01T00:00:00Z"),
        Some("string") => json!("nothing"),
        Some("integer") => schema.get("minimum").cloned().unwrap_or(json!(1)),
        Some("number") => schema.get("minimum").cloned().unwrap_or(json!(0.5)),
        Some("boolean") => json!(false),
        _ => value,
    }
}

fn deleting() -> TestServer {
    TestServer::start(&[
        call("listFiles", json!({})),
        call("deleteFile", json!({"file": "draft.txt"})),
        finish("The heron flies."),
    ])
}

#[test]
fn every_route_refuses_callers_without_a_valid_token_and_pages_of_others() {
    let server = TestServer::start(&[finish("Done.")]);
    let (revoked, id) = server.token_with(&["--name", "old", "--scopes", "admin"]);
    let revoke = server.office.command(&["token", "revoke", &id]).output();
    assert!(revoke.unwrap().status.success());
    let short = ["--name", "short", "--scopes", "admin", "--expires", "1s"];
    let (expired, _) = server.token_with(&short);
    let valid = server.token("ann", "admin");
    std::thread::sleep(Duration::from_millis(1_100));
    let mut count = 0;
    for operation in operations() {
        let request = operation.request();
        let check = |request: Request, status, code| {
            operation.check_problem(&server.send(&request), status, code);
        };
        if operation.scope.is_some() {
            count += 1;
            check(request.clone(), 401, "token_needed");
            check(
                request.clone().header("Cookie", "windlass=1"),
                401,
                "token_needed",
            );
            let answer = server.send(&request.clone().token("windlass_0123456789abcdef"));
            operation.check_problem(&answer, 401, "token_unknown");
            assert!(
                answer
                    .header("www-authenticate")
                    .unwrap()
                    .contains("invalid_token")
            );
            check(request.clone().token("e30.e30.e30"), 401, "token_unknown");
            check(request.clone().token(&expired), 401, "token_expired");
            check(request.clone().token(&revoked), 401, "token_revoked");
            let twice = request.clone().token(&valid).token(&valid);
            check(twice, 401, "token_needed");
        }
        let authorized = request.token(&valid);
        let other_host = authorized.clone().header("Host", "evil.example");
        check(other_host, 403, "host_not_accepted");
        for origin in ["http://evil.example", "null", "https://127.0.0.1"] {
            let other_page = authorized.clone().header("Origin", origin);
            check(other_page, 403, "origin_not_accepted");
        }
    }
    assert!(count > 40, "only {count} routes need a token");
    assert_eq!(server.get(&valid, "/v1/version").status, 200);
}

#[test]
fn every_route_refuses_a_token_without_its_scope() {
    let server = TestServer::start(&[finish("Done.")]);
    let all = ["read", "run", "approve", "operate", "audit"];
    let tokens: HashMap<&str, String> = all
        .iter()
        .chain(&["admin"])
        .map(|scope| {
            let others = all.iter().filter(|other| *other != scope);
            let others: Vec<&str> = others.copied().collect();
            (
                *scope,
                server.token(&format!("without-{scope}"), &others.join(",")),
            )
        })
        .collect();
    let mut refused = 0;
    for operation in operations() {
        // Every other scope includes reading.
        let Some(scope) = operation.scope.as_deref().filter(|scope| *scope != "read") else {
            continue;
        };
        let answer = server.send(&operation.request().token(&tokens[scope]));
        operation.check_problem(&answer, 403, "scope_missing");
        refused += 1;
    }
    assert!(refused > 10, "only {refused}");
}

/// Makes objects of each kind with a word that appears nowhere else, and returns their ids by the names of parameters.
fn objects(server: &TestServer, token: &str) -> HashMap<&'static str, String> {
    let send = |path: &str, body: Value| {
        let request = Request::post(path, &body).token(token);
        let answer = server.send(&request.header("Prefer", "wait=30"));
        assert!(answer.status < 300, "{answer:?}");
        answer.json()
    };
    let text = |value: &Value| {
        let text = value.as_str();
        text.unwrap_or_else(|| panic!("{value}")).to_owned()
    };
    let task = json!({"task_id": "heron", "description": "Watch the heron."});
    let run = send("/v1/runs", json!({"agent": "clerk", "task": task}));
    let approvals = server.get(token, "/v1/approvals?status=pending").json();
    let remembered = send("/v1/memory", json!({"text": "The heron is grey."}));
    send(
        "/v1/conversations",
        json!({"agent": "clerk", "message": "Where is the heron?"}),
    );
    let conversations = server.get(token, "/v1/conversations").json();
    let plan = json!({"tasks": [{"id": "heron", "tool": "listFiles"}]});
    send("/v1/plans", json!({"agent": "clerk", "plan": plan}));
    let plans = server.get(token, "/v1/plans").json();
    HashMap::from([
        ("run", text(&run["run"])),
        ("approval", text(&approvals["items"][0]["id"])),
        ("call", text(&run["calls"][0]["call"])),
        ("document", text(&remembered["id"])),
        ("conversation", text(&conversations["items"][0]["id"])),
        ("plan", text(&plans["items"][0]["plan"])),
    ])
}

#[test]
fn nothing_of_a_tenant_is_visible_to_another_one_on_any_route() {
    let server = deleting();
    let own = server.token("ann", "admin");
    let rival = ["--name", "eve", "--scopes", "admin", "--tenant", "rival"];
    let (rival, _) = server.token_with(&rival);
    let objects = objects(&server, &own);
    let mut hidden = 0;
    for operation in operations() {
        if operation.scope.is_none() || operation.path == "/v1/events" {
            continue;
        }
        let names = operation.parameters();
        let is_of_tenant = names.iter().any(|name| objects.contains_key(name));
        // Tasks of plans and the like are named within their object.
        let answer = server.send(&operation.request_for(&objects).token(&rival));
        operation.check(&answer);
        assert!(
            !answer.body.contains("heron"),
            "{}: {answer:?}",
            operation.path
        );
        if is_of_tenant {
            let is_hidden = match operation.method {
                "GET" => answer.status == 404,
                // A body may have to fit the object.
                _ => [404, 409, 422].contains(&answer.status),
            };
            assert!(
                is_hidden,
                "{} {}: {answer:?}",
                operation.method, operation.path
            );
            hidden += 1;
        }
    }
    assert!(
        hidden > 8,
        "only {hidden} routes name an object of a tenant"
    );
    // All of it is there for its owner.
    for (name, path) in [
        ("run", "/v1/runs/"),
        ("conversation", "/v1/conversations/"),
        ("document", "/v1/memory/"),
        ("plan", "/v1/plans/"),
    ] {
        let answer = server.get(&own, &format!("{path}{}", objects[name]));
        assert!(
            answer.status == 200 && answer.body.contains("heron"),
            "{answer:?}"
        );
    }
    let approval = server.get(&own, &format!("/v1/approvals/{}", objects["approval"]));
    assert_eq!(approval.json()["status"], "pending", "{approval:?}");
}

#[test]
fn every_route_refuses_a_body_of_100_megabytes_without_reading_it() {
    let server = TestServer::start(&[finish("Done.")]);
    let token = server.token("ann", "admin");
    let before = server.peak_memory();
    let mut streamed = 0;
    for operation in operations().iter().filter(|one| one.body.is_some()) {
        // Only the head says how long the body is; none of it is needed to refuse it.
        let announced = Request::new(operation.method, &operation.path_for(&HashMap::new()))
            .header("Content-Type", "application/json")
            .token(&token);
        let length = announced.clone().header("Content-Length", "104857600");
        operation.check_problem(&server.send(&length), 413, "too_large");
        // Without a length, in pieces.
        let head = announced.header("Transfer-Encoding", "chunked");
        let mut stream = TcpStream::connect(server.address).unwrap();
        stream.write_all(&head.bytes(server.address)).unwrap();
        let piece = vec![b' '; 1 << 20];
        let chunk = [format!("{:x}\r\n", piece.len()).as_bytes(), &piece, b"\r\n"].concat();
        let sent = (0..100)
            .take_while(|_| stream.write_all(&chunk).is_ok())
            .count();
        assert!(sent < 100, "{}: all of the body was read", operation.path);
        streamed += 1;
    }
    assert!(streamed > 10, "only {streamed} routes have a body");
    let grown = server.peak_memory() - before;
    assert!(grown < 64 << 10, "{grown} KiB");
    assert_eq!(server.get(&token, "/v1/version").status, 200);
}

#[test]
fn every_route_refuses_json_that_is_nested_10_000_deep() {
    let server = TestServer::start(&[finish("Done.")]);
    let token = server.token("ann", "admin");
    let deep = [
        format!("{}{}", "[".repeat(10_000), "]".repeat(10_000)),
        format!("{}1{}", "{\"a\":".repeat(10_000), "}".repeat(10_000)),
    ];
    for operation in operations() {
        let Some(schema) = &operation.body else {
            continue;
        };
        let schema = match schema["$ref"].as_str() {
            Some(reference) => openapi().pointer(&reference[1..]).unwrap(),
            None => schema,
        };
        let mut bodies = deep.to_vec();
        for name in schema["properties"]
            .as_object()
            .into_iter()
            .flat_map(|all| all.keys())
        {
            bodies.extend(deep.iter().map(|deep| format!("{{\"{name}\": {deep}}}")));
        }
        for body in bodies {
            let answer = server.send(&operation.request_with(body).token(&token));
            operation.check(&answer);
            // Nesting inside of what is of another type is refused as that, or as too deep.
            let code = answer.problem();
            let codes = ["too_deep", "does_not_fit", "not_json"];
            assert!(codes.contains(&code.as_str()), "{answer:?}");
        }
    }
}

#[test]
fn a_client_that_hangs_up_in_the_middle_of_a_body_starts_nothing_on_any_route() {
    let server = TestServer::start(&[finish("Done.")]);
    let token = server.token("ann", "admin");
    for operation in operations() {
        let request = operation.request().token(&token);
        let bytes = request.bytes(server.address);
        let body = request.body.as_ref().map_or(0, Vec::len);
        let end = match body {
            0 => bytes.len() - 2,
            body => bytes.len() - body.div_ceil(2),
        };
        let mut stream = TcpStream::connect(server.address).unwrap();
        stream.write_all(&bytes[..end]).unwrap();
        if operation.path.len() % 2 == 0 {
            // It does not send the rest, but would read an answer.
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer);
            if let Some(answer) = Answer::parse(&answer) {
                assert!([400, 404].contains(&answer.status), "{answer:?}");
            }
        }
    }
    let begun = Instant::now();
    assert_eq!(server.get(&token, "/v1/version").status, 200);
    assert!(begun.elapsed() < Duration::from_secs(5));
    for list in ["/v1/runs", "/v1/memory", "/v1/conversations", "/v1/plans"] {
        let listed = server.get(&token, list).json();
        assert_eq!(listed["items"], json!([]), "{list}");
    }
}
