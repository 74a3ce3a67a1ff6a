//! Requests that every route refuses.

use std::io::Write as _;
use std::net::TcpStream;

use serde_json::json;

use super::client::{Answer, Request};
use super::server::{TestServer, check_answer, operations};
use crate::suite::acting::finish;

/// A request to a route. Parts of its path name nothing.
pub(super) fn request(method: &'static str, path: &str) -> Request {
    let parts = path.split('/').map(|part| match part.starts_with('{') {
        true => "nothing",
        false => part,
    });
    let path = parts.collect::<Vec<_>>().join("/");
    let request = Request::new(method, &path);
    match method {
        "GET" | "DELETE" => request,
        _ => request.with_body("{}"),
    }
}

#[test]
fn every_route_refuses_callers_without_a_valid_token() {
    let server = TestServer::start(&[finish("Done.")]);
    let (revoked, id) = server.token_with(&["--name", "old", "--scopes", "admin"]);
    let revoke = ["token", "revoke", &id];
    let revoked_now = server.office.command(&revoke).output().unwrap();
    assert!(revoked_now.status.success());
    let valid = server.token("ann", "read");
    let mut count = 0;
    for (method, path, needs_token) in operations() {
        let request = request(method, &path);
        let check = |answer: &Answer, status: u16, code: &str| {
            assert_eq!(
                (answer.status, answer.problem().as_str()),
                (status, code),
                "{path}"
            );
            check_answer(method, &path, answer);
        };
        if needs_token {
            count += 1;
            let answer = server.send(&request);
            check(&answer, 401, "token_needed");
            assert!(
                answer
                    .header("www-authenticate")
                    .unwrap()
                    .starts_with("Bearer")
            );
            let unknown = request.clone().token("windlass_0123456789abcdef");
            check(&server.send(&unknown), 401, "token_unknown");
            let revoked = request.clone().token(&revoked);
            check(&server.send(&revoked), 401, "token_revoked");
            let twice = request.clone().token(&valid).token(&valid);
            check(&server.send(&twice), 401, "token_needed");
        }
        let authorized = request.token(&valid);
        let other_host = authorized.clone().header("Host", "evil.example");
        check(&server.send(&other_host), 403, "host_not_accepted");
        let other_page = authorized.header("Origin", "http://evil.example");
        check(&server.send(&other_page), 403, "origin_not_accepted");
    }
    assert!(count > 10, "only {count} routes");
    let lasting = server.get(&valid, "/v1/version");
    assert_eq!(lasting.status, 200);
}

#[test]
fn an_expired_token_is_refused() {
    let server = TestServer::start(&[finish("Done.")]);
    let create = ["--name", "short", "--scopes", "read", "--expires", "1m"];
    let (token, _) = server.token_with(&create);
    assert_eq!(server.get(&token, "/v1/version").status, 200);
    let expired = ["--name", "past", "--scopes", "read", "--expires", "0m"];
    let refused = server
        .office
        .command(&[&["token", "create"], &expired[..]].concat());
    let refused = { refused }.output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn every_route_that_needs_more_than_reading_refuses_a_reader() {
    let server = TestServer::start(&[finish("Done.")]);
    let reader = server.token("ann", "read");
    let mut refused = 0;
    for (method, path, _) in operations() {
        if method == "GET" {
            continue;
        }
        let answer = server.send(&request(method, &path).token(&reader));
        check_answer(method, &path, &answer);
        // The body is checked first, where it is needed.
        let is_refused = [403, 404, 422].contains(&answer.status);
        assert!(is_refused, "{method} {path}: {answer:?}");
        refused += usize::from(answer.status == 403);
    }
    assert!(refused > 0);
    let body = json!({"agent": "clerk", "task": {"task_id": "t", "description": "Do it."}});
    let answer = server.post(&reader, "/v1/runs", &body);
    assert_eq!(
        (answer.status, answer.problem().as_str()),
        (403, "scope_missing")
    );
}

#[test]
fn bodies_that_are_too_large_too_deep_or_no_json_are_refused() {
    let server = TestServer::start(&[finish("Done.")]);
    let token = server.token("ann", "admin");
    let send = |request: Request| server.send(&request.token(&token));
    let large = Request::post("/v1/runs", &json!({"agent": "x".repeat(5 << 20)}));
    let answer = send(large);
    assert_eq!(
        (answer.status, answer.problem().as_str()),
        (413, "too_large")
    );
    // Only the head says how long the body is; none of it is needed to refuse it.
    let announced = Request::new("POST", "/v1/runs")
        .header("Content-Type", "application/json")
        .header("Content-Length", "104857600");
    let answer = send(announced);
    assert_eq!(
        (answer.status, answer.problem().as_str()),
        (413, "too_large")
    );
    // Without a length, 100 MB in pieces.
    let answer = {
        let head = Request::new("POST", "/v1/runs")
            .header("Content-Type", "application/json")
            .header("Transfer-Encoding", "chunked")
            .token(&token);
        let mut stream = TcpStream::connect(server.address).unwrap();
        stream.write_all(&head.bytes(server.address)).unwrap();
        let piece = vec![b' '; 1 << 20];
        let mut sent = 0;
        while sent < 100 {
            let chunk = [format!("{:x}\r\n", piece.len()).as_bytes(), &piece, b"\r\n"].concat();
            if stream.write_all(&chunk).is_err() {
                break;
            }
            sent += 1;
        }
        sent
    };
    assert!(answer < 100, "all of the body was read");
    for (text, status, code) in [
        ("[".repeat(10_000), 400, "too_deep"),
        (
            format!("{}1{}", "{\"a\":".repeat(10_000), "}".repeat(10_000)),
            400,
            "too_deep",
        ),
        ("{".to_owned(), 400, "not_json"),
        (String::new(), 400, "not_json"),
        ("{}".to_owned(), 422, "does_not_fit"),
        ("[1]".to_owned(), 422, "does_not_fit"),
    ] {
        let answer = send(Request::new("POST", "/v1/runs").with_body(text.clone()));
        let found = (answer.status, answer.problem());
        let shown: String = text.chars().take(20).collect();
        // Nesting inside of what is not known is refused as unknown, or as too deep.
        let is_expected =
            found == (status, code.to_owned()) || (code == "too_deep" && found.1 == "does_not_fit");
        assert!(is_expected, "{shown}: {found:?}");
    }
    let no_json = Request::new("POST", "/v1/runs").token(&token);
    let no_json = Request {
        body: Some(b"{}".to_vec()),
        ..no_json
    };
    let answer = server.send(&no_json);
    assert_eq!(
        (answer.status, answer.problem().as_str()),
        (415, "not_json")
    );
    assert_eq!(send(Request::get("/v1/nothing")).problem(), "no_such_path");
    assert_eq!(
        send(Request::new("DELETE", "/v1/version")).problem(),
        "wrong_method"
    );
    assert_eq!(
        send(Request::get("/v1/runs?unknown=1")).problem(),
        "invalid_query"
    );
    assert_eq!(send(Request::get("/v1/runs/%ff")).problem(), "invalid_path");
    assert_eq!(send(Request::get("/livez")).status, 200);
}

#[test]
fn a_client_that_hangs_up_leaves_the_server_answering() {
    let server = TestServer::start(&[finish("Done.")]);
    let token = server.token("ann", "run");
    let body = json!({"agent": "clerk", "task": {"task_id": "t", "description": "Do it."}});
    for number in 0..20 {
        let key = format!("hang-up-{number}");
        let start = Request::post("/v1/runs", &body)
            .token(&token)
            .header("Idempotency-Key", &key);
        let bytes = start.bytes(server.address);
        let mut stream = TcpStream::connect(server.address).unwrap();
        // Half of a request, or a request whose answer nobody reads.
        let end = if number % 2 == 0 {
            bytes.len() / 2
        } else {
            bytes.len()
        };
        stream.write_all(&bytes[..end]).unwrap();
        drop(stream);
    }
    for number in (1..20).step_by(2) {
        let key = format!("hang-up-{number}");
        let again = Request::post("/v1/runs", &body)
            .token(&token)
            .header("Idempotency-Key", &key);
        let answer = server.send(&again);
        assert_eq!(answer.status, 202, "{answer:?}");
        let run = answer.json()["run"].as_str().unwrap().to_owned();
        let ended = server.wait_for(&token, &run, "ended");
        assert_eq!(ended["end"]["end"], "completed");
    }
    let listed = server.get(&token, "/v1/runs?limit=200").json();
    assert!(listed["items"].as_array().unwrap().len() <= 10, "{listed}");
}

#[test]
fn too_many_requests_are_refused_for_that_token_only() {
    let office = TestServer::start(&[finish("Done.")]);
    let token = office.token("ann", "read");
    // The server of this test has a low rate.
    let slow = office.with_rate("2");
    let other = office.token("ben", "read");
    let get = |token: &str| Request::get("/v1/version").token(token).send(slow.address);
    let answers: Vec<Answer> = (0..10).map(|_| get(&token)).collect();
    let refused = answers.iter().find(|answer| answer.status == 429).unwrap();
    assert_eq!(refused.problem(), "too_many_requests");
    assert!(refused.header("retry-after").is_some());
    assert_eq!(get(&other).status, 200);
}

#[test]
fn other_addresses_need_a_proxy_and_the_port_must_be_free() {
    let server = TestServer::start(&[finish("Done.")]);
    let run = |arguments: &[&str]| {
        let output = server.office.command(arguments).output().unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let (code, error) = run(&["serve", "--listen", "0.0.0.0:0"]);
    assert_eq!(code, Some(2));
    assert!(error.contains("--behind-proxy"), "{error}");
    let (code, error) = run(&["serve", "--listen", "0.0.0.0:0", "--behind-proxy"]);
    assert_eq!(code, Some(2));
    assert!(error.contains("--host"), "{error}");
    let (code, error) = run(&["serve", "--listen", &server.address.to_string()]);
    assert_eq!(code, Some(1));
    assert!(error.contains("cannot listen on"), "{error}");
}
