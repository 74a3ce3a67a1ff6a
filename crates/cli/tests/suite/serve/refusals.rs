//! Requests that the server refuses. What every route refuses is in `routes.rs`.

use std::io::Write as _;
use std::net::TcpStream;

use serde_json::json;

use super::client::{Answer, Request};
use super::server::TestServer;
use crate::suite::acting::finish;

#[test]
fn bodies_that_are_no_json_or_do_not_fit_are_refused() {
    let server = TestServer::start(&[finish("Done.")]);
    let token = server.token("ann", "admin");
    let send = |request: Request| server.send(&request.token(&token));
    for (text, status, code) in [
        ("{".to_owned(), 400, "not_json"),
        (String::new(), 400, "not_json"),
        ("{}".to_owned(), 422, "does_not_fit"),
        ("[1]".to_owned(), 422, "does_not_fit"),
    ] {
        let answer = send(Request::new("POST", "/v1/runs").with_body(text.clone()));
        let found = (answer.status, answer.problem());
        assert_eq!(found, (status, code.to_owned()), "{text}");
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
fn other_addresses_need_encryption_and_the_port_must_be_free() {
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
    assert!(
        error.contains("--behind-proxy") && error.contains("--tls-cert"),
        "{error}"
    );
    let (code, error) = run(&["serve", "--listen", "0.0.0.0:0", "--behind-proxy"]);
    assert_eq!(code, Some(2));
    assert!(error.contains("--host"), "{error}");
    let (code, error) = run(&["serve", "--listen", &server.address.to_string()]);
    assert_eq!(code, Some(1));
    assert!(error.contains("cannot listen on"), "{error}");
}
