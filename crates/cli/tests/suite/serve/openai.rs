//! The official clients of OpenAI's API against a server. `cargo xtask test` installs them and sets `WINDLASS_CLIENTS` to
//! their directory.

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use super::server::TestServer;
use crate::suite::acting::{call, finish};

/// A client, as the program that runs its script.
#[derive(Debug, Clone, Copy)]
enum Client {
    Python,
    Node,
}

fn clients() -> PathBuf {
    match std::env::var_os("WINDLASS_CLIENTS") {
        Some(clients) => clients.into(),
        None => panic!(
            "this test needs the clients of OpenAI's API: run it with `cargo xtask test`, or set WINDLASS_CLIENTS \
             to what `cargo xtask clients` prints"
        ),
    }
}

impl Client {
    /// Sends a conversation and returns what the client read from the answer.
    fn ask(self, server: &TestServer, token: &str, request: &Value) -> Value {
        let scripts = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/suite/serve");
        let mut command = match self {
            Self::Python => {
                let mut python = Command::new(clients().join("python/bin/python"));
                python.arg(scripts.join("openai_client.py"));
                python
            }
            Self::Node => {
                let mut node = Command::new("node");
                node.arg(scripts.join("openai_client.cjs"));
                node.env("NODE_PATH", clients().join("node/node_modules"));
                node
            }
        };
        command
            .arg(format!("http://{}/v1", server.address))
            .arg(token)
            .arg(request.to_string());
        let output = command.output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        serde_json::from_str(&text).unwrap_or_else(|error| {
            panic!(
                "{error}: {text} {}",
                String::from_utf8_lossy(&output.stderr)
            )
        })
    }
}

fn deleting() -> TestServer {
    let with_usage = |mut turn: Value, input: u64, output: u64| {
        turn["usage"] = json!({"input_tokens": input, "output_tokens": output});
        turn
    };
    TestServer::start(&[
        with_usage(call("deleteFile", json!({"file": "draft.txt"})), 100, 10),
        with_usage(finish("The draft is gone."), 200, 20),
    ])
}

/// Asks, waits for an approval, decides it and continues.
fn check(client: Client, stream: bool) {
    let server = deleting();
    let (ann, ben) = (server.token("ann", "run"), server.token("ben", "approve"));
    let ask = |messages: &[(&str, &str)]| {
        let messages: Vec<Value> = messages
            .iter()
            .map(|(role, content)| json!({"role": role, "content": content}))
            .collect();
        let request = json!({"model": "clerk", "messages": messages, "stream": stream});
        client.ask(&server, &ann, &request)
    };
    let first = ask(&[("user", "Delete it.")]);
    let waiting = first["text"].as_str().unwrap();
    assert_eq!(first["finish_reason"], "stop", "{first}");
    assert_eq!(first["usage"], json!([100, 10]));
    let asked = server.get(&ben, "/v1/approvals?status=pending").json()["items"][0].clone();
    let id = asked["id"].as_str().unwrap();
    assert!(waiting.contains(id), "{waiting}");

    let decision = json!({"decision": "approve", "digest": asked["digest_now"]});
    let decided = server.post(&ben, &format!("/v1/approvals/{id}/decision"), &decision);
    assert_eq!(decided.status, 200, "{decided:?}");
    let done = ask(&[
        ("user", "Delete it."),
        ("assistant", waiting),
        ("user", "Go on."),
    ]);
    assert_eq!(done["text"], "The draft is gone.", "{done}");
    assert_eq!(done["usage"], json!([200, 20]));
    let listed = server.get(&ann, "/v1/runs").json();
    assert_eq!(listed["items"].as_array().unwrap().len(), 1, "{listed}");

    let models = client.ask(&server, &ann, &json!({"models": true}));
    assert_eq!(models["models"], json!(["clerk"]));
    let refused =
        json!({"model": "gpt", "stream": stream, "messages": [{"role": "user", "content": "Hi."}]});
    let refused = client.ask(&server, &ann, &refused);
    assert_eq!(
        (&refused["error"], &refused["status"], &refused["code"]),
        (
            &json!("NotFoundError"),
            &json!(404),
            &json!("no_such_agent")
        )
    );
    let unknown = client.ask(&server, "windlass_nobody", &json!({"models": true}));
    assert_eq!(unknown["error"], "AuthenticationError", "{unknown}");
}

#[test]
fn the_python_client_gets_answers_and_continues_after_an_approval() {
    check(Client::Python, false);
}

#[test]
fn the_python_client_streams_answers_and_continues_after_an_approval() {
    check(Client::Python, true);
}

#[test]
fn the_node_client_gets_answers_and_continues_after_an_approval() {
    check(Client::Node, false);
}

#[test]
fn the_node_client_streams_answers_and_continues_after_an_approval() {
    check(Client::Node, true);
}
