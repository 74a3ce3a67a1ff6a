//! The part of OpenAI's API: agents as models, and runs behind the messages of a chat.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::client::{Answer, Request};
use super::server::{TestServer, check_answer};
use crate::suite::acting::{call, finish};

const PATH: &str = "/v1/chat/completions";

/// A turn in which the model writes a text, and its usage.
fn with_usage(mut turn: Value, text: &str, input: u64, output: u64) -> Value {
    turn["text"] = json!(text);
    turn["usage"] = json!({"input_tokens": input, "output_tokens": output});
    turn
}

fn message(role: &str, content: &str) -> Value {
    json!({"role": role, "content": content})
}

/// Sends a conversation, whose messages are of user and assistant in turn.
fn say(server: &TestServer, token: &str, messages: &[&str]) -> Answer {
    let answer = server.post(token, PATH, &conversation(messages));
    if answer.status == 200 {
        check_answer("POST", PATH, &answer);
    }
    answer
}

fn conversation(messages: &[&str]) -> Value {
    let roles = ["user", "assistant"].iter().cycle();
    let messages: Vec<Value> = messages
        .iter()
        .zip(roles)
        .map(|(text, role)| message(role, text))
        .collect();
    json!({"model": "clerk", "messages": messages})
}

fn text(answer: &Answer) -> String {
    let completion = answer.json();
    let message = &completion["choices"][0]["message"];
    assert_eq!(message["role"], "assistant", "{answer:?}");
    message["content"].as_str().unwrap().to_owned()
}

fn deleting() -> TestServer {
    TestServer::start(&[
        with_usage(call("listFiles", json!({})), "Looking.", 100, 10),
        with_usage(
            call("deleteFile", json!({"file": "draft.txt"})),
            "",
            200,
            20,
        ),
        with_usage(finish("The draft is gone."), "", 300, 30),
    ])
}

/// Approves what the answer says that the run waits for.
fn approve(server: &TestServer, answer: &Answer) {
    let ben = server.token("ben", "approve");
    let asked = answer.json()["windlass"]["approvals"][0].clone();
    let id = asked["id"].as_str().unwrap();
    let decision = json!({"decision": "approve", "digest": asked["digest"]});
    let decided = server.post(&ben, &format!("/v1/approvals/{id}/decision"), &decision);
    assert_eq!(decided.json()["status"], "approved", "{decided:?}");
}

fn run_count(server: &TestServer, token: &str) -> usize {
    let listed = server.get(token, "/v1/runs").json();
    listed["items"].as_array().unwrap().len()
}

#[test]
fn agents_are_models() {
    let server = TestServer::start(&[finish("Done.")]);
    let token = server.token("ann", "read");
    let listed = server.get(&token, "/v1/models");
    check_answer("GET", "/v1/models", &listed);
    assert_eq!(listed.json()["data"][0]["id"], "clerk");
    let shown = server.get(&token, "/v1/models/clerk");
    check_answer("GET", "/v1/models/{model}", &shown);
    assert_eq!(shown.json()["object"], "model");
    let unknown = server.get(&token, "/v1/models/gpt");
    check_answer("GET", "/v1/models/{model}", &unknown);
    assert_eq!(
        (unknown.status, unknown.problem().as_str()),
        (404, "no_such_agent")
    );
    assert_eq!(unknown.json()["error"]["type"], "invalid_request_error");
}

#[test]
fn an_answer_has_the_text_and_the_usage_of_its_run() {
    let server = TestServer::start(&[
        with_usage(call("listFiles", json!({})), "Looking.", 100, 10),
        with_usage(finish("Two files."), "", 200, 20),
    ]);
    let token = server.token("ann", "run");
    let answer = say(&server, &token, &["What is there?"]);
    assert_eq!(text(&answer), "Two files.");
    let completion = answer.json();
    assert_eq!(completion["choices"][0]["finish_reason"], "stop");
    assert_eq!(
        completion["usage"],
        json!({"prompt_tokens": 300, "completion_tokens": 30, "total_tokens": 330})
    );
    let run = completion["windlass"]["run"].as_str().unwrap();
    let shown = server.get(&token, &format!("/v1/runs/{run}")).json();
    assert_eq!(
        (&shown["principal"], &shown["state"]),
        (&json!("ann"), &json!("ended"))
    );

    let mut body = conversation(&["What is there?"]);
    body["stream"] = json!(true);
    body["stream_options"] = json!({"include_usage": true});
    let chunks = server.post(&token, PATH, &body).chunks();
    let content = |chunk: &Value| {
        let content = chunk["choices"][0]["delta"]["content"].as_str();
        content.unwrap_or_default().to_owned()
    };
    let streamed: String = chunks.iter().map(content).collect();
    assert_eq!(streamed, "Looking.\n\nTwo files.");
    assert_eq!(chunks[0]["choices"][0]["delta"]["role"], "assistant");
    let (last, end) = (&chunks[chunks.len() - 1], &chunks[chunks.len() - 2]);
    assert_eq!(end["choices"][0]["finish_reason"], "stop");
    assert_eq!(
        (&last["choices"], &last["usage"]["total_tokens"]),
        (&json!([]), &json!(330))
    );
    assert!(
        chunks[..chunks.len() - 1]
            .iter()
            .all(|chunk| chunk["usage"].is_null())
    );

    body["stream_options"] = Value::Null;
    let chunks = server.post(&token, PATH, &body).chunks();
    assert!(chunks.iter().all(|chunk| chunk.get("usage").is_none()));
}

#[test]
fn messages_before_the_last_one_are_the_conversation() {
    let server = TestServer::start(&[finish("Done.")]);
    let token = server.token("ann", "run");
    let body = json!({"model": "clerk", "messages": [
        message("developer", "Be brief."),
        {"role": "user", "content": [{"type": "text", "text": "One"}, {"type": "text", "text": "two"}]},
        message("assistant", "Noted."),
        message("user", "And?"),
    ], "temperature": 0.3, "max_tokens": 100, "user": "somebody", "an_unknown_parameter": 1});
    let answer = server.post(&token, PATH, &body);
    assert_eq!(text(&answer), "Done.");
    let run = answer.json()["windlass"]["run"]
        .as_str()
        .unwrap()
        .to_owned();
    let exported = server.office.run_command(&["trace", "export", &run]);
    let started: Value = serde_json::from_str(exported.out.lines().next().unwrap()).unwrap();
    let task = &started["event"]["task"];
    assert_eq!(task["description"], "And?", "{started}");
    assert_eq!(
        task["conversation"],
        json!([
            message("system", "Be brief."),
            message("user", "One\ntwo"),
            message("assistant", "Noted."),
        ])
    );
}

#[test]
fn a_run_that_waits_goes_on_with_the_next_message() {
    let server = deleting();
    let ann = server.token("ann", "run");
    let first = say(&server, &ann, &["Delete it."]);
    let waiting = text(&first);
    let asked = first.json()["windlass"]["approvals"][0].clone();
    let id = asked["id"].as_str().unwrap();
    let link = format!("http://{}/v1/approvals/{id}", server.address);
    for shown in ["deleteFile", "draft.txt", id, &link] {
        assert!(waiting.contains(shown), "{shown}: {waiting}");
    }
    assert_eq!(asked["url"], link);
    assert_eq!(first.json()["usage"]["total_tokens"], 330);
    assert_eq!(server.get(&ann, &format!("/v1/approvals/{id}")).status, 200);

    // The same messages again, and any next one, are about the same run.
    let run = first.json()["windlass"]["run"].clone();
    for messages in [
        vec!["Delete it."],
        vec!["Delete it.", &waiting, "Is it gone?"],
        vec![
            "Delete it.",
            &waiting,
            "Is it gone?",
            "Waiting.",
            "And now?",
        ],
    ] {
        let again = say(&server, &ann, &messages);
        assert_eq!(again.json()["windlass"]["run"], run, "{messages:?}");
        assert_eq!(again.json()["windlass"]["state"], "waiting");
    }
    assert_eq!(run_count(&server, &ann), 1);

    approve(&server, &first);
    let done = say(&server, &ann, &["Delete it.", &waiting, "Go on."]);
    assert_eq!(text(&done), "The draft is gone.");
    assert_eq!(done.json()["windlass"]["run"], run);
    // The usage that was not reported before.
    assert_eq!(done.json()["usage"]["total_tokens"], 330);
    let repeated = say(&server, &ann, &["Delete it.", &waiting, "Go on."]);
    assert_eq!(repeated.json()["windlass"]["run"], run);

    // The answer is returned once: a message before or after it is a new task.
    for messages in [
        vec![
            "Delete it.",
            &waiting,
            "Go on.",
            "The draft is gone.",
            "Thanks.",
        ],
        vec!["Delete it.", &waiting, "Something else."],
        vec!["Delete it."],
    ] {
        let next = say(&server, &ann, &messages);
        assert_ne!(next.json()["windlass"]["run"], run, "{messages:?}");
    }
}

#[test]
fn a_waiting_run_belongs_to_its_principal_and_agent() {
    let server = deleting();
    let ann = server.token("ann", "run");
    let first = say(&server, &ann, &["Delete it."]);
    let waiting = text(&first);
    let other = server.token("bob", "run");
    let of_other = say(&server, &other, &["Delete it.", &waiting, "Go on."]);
    assert_ne!(
        of_other.json()["windlass"]["run"],
        first.json()["windlass"]["run"]
    );
    let (rival, _) = server.token_with(&["--name", "ann", "--scopes", "run", "--tenant", "rival"]);
    let of_rival = say(&server, &rival, &["Delete it.", &waiting, "Go on."]);
    assert_ne!(
        of_rival.json()["windlass"]["run"],
        first.json()["windlass"]["run"]
    );
}

#[test]
fn a_request_that_is_repeated_starts_no_second_run() {
    let server = TestServer::start(&[finish("Done.")]);
    let token = server.token("ann", "run");
    let request = Request::post(PATH, &conversation(&["Do it."])).token(&token);
    let first = server.send(&request).json();
    let again = request.clone().header("x-stainless-retry-count", "1");
    let again = server.send(&again).json();
    assert_eq!(again["windlass"]["run"], first["windlass"]["run"]);
    assert_eq!(again["usage"], first["usage"]);
    let other = request.header("x-stainless-retry-count", "0");
    let other = server.send(&other).json();
    assert_ne!(other["windlass"]["run"], first["windlass"]["run"]);
}

#[test]
fn a_client_that_hangs_up_does_not_lose_its_run() {
    let server = TestServer::start(&[
        call(
            "writeNote",
            json!({"file": "journal.txt", "line": "A line."}),
        ),
        finish("Written."),
    ]);
    let token = server.token("ann", "run");
    for stream in [false, true] {
        let mut body = conversation(&["Write it."]);
        body["stream"] = json!(stream);
        let request = Request::post(PATH, &body).token(&token);
        let mut socket = TcpStream::connect(server.address).unwrap();
        socket.write_all(&request.bytes(server.address)).unwrap();
        if stream {
            socket.read_exact(&mut [0]).unwrap();
        }
        let count = usize::from(stream) + 1;
        while run_count(&server, &token) < count {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        drop(socket);
    }
    let listed = server.get(&token, "/v1/runs").json();
    for run in listed["items"].as_array().unwrap() {
        let ended = server.wait_for(&token, run["run"].as_str().unwrap(), "ended");
        assert_eq!(ended["response"]["answer"], "Written.");
    }
}

#[test]
fn what_an_agent_cannot_do_is_refused_by_name() {
    let server = TestServer::start(&[finish("Done.")]);
    let token = server.token("ann", "run");
    let tool = json!([{"type": "function", "function": {"name": "f"}}]);
    for (parameter, value) in [
        ("n", json!(2)),
        ("tools", tool.clone()),
        ("functions", tool),
        ("response_format", json!({"type": "json_object"})),
        ("logprobs", json!(true)),
        ("stop", json!(["."])),
        ("modalities", json!(["audio"])),
    ] {
        let mut body = conversation(&["Do it."]);
        body[parameter] = value;
        let answer = server.post(&token, PATH, &body);
        check_answer("POST", PATH, &answer);
        assert_eq!(
            (answer.status, answer.problem().as_str()),
            (422, "unsupported_parameter"),
            "{parameter}"
        );
        assert_eq!(answer.json()["error"]["param"], parameter);
        // The official clients would repeat some of these requests.
        assert_eq!(answer.header("x-should-retry"), Some("false"));
    }
    for (messages, code) in [
        (json!([]), "invalid_conversation"),
        (
            json!([message("assistant", "Hello.")]),
            "invalid_conversation",
        ),
        (json!([message("user", " ")]), "invalid_conversation"),
        (json!([message("robot", "Hello.")]), "unsupported_message"),
        (json!([message("tool", "Hello.")]), "unsupported_message"),
        (
            json!([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]),
            "unsupported_message",
        ),
        (json!([{"role": "user", "content": 1}]), "does_not_fit"),
    ] {
        let body = json!({"model": "clerk", "messages": messages});
        let answer = server.post(&token, PATH, &body);
        assert_eq!(
            (answer.status, answer.problem().as_str()),
            (422, code),
            "{body}"
        );
    }
    let unknown = json!({"model": "gpt", "messages": [message("user", "Hello.")]});
    let unknown = server.post(&token, PATH, &unknown);
    assert_eq!(
        (unknown.status, unknown.problem().as_str()),
        (404, "no_such_agent")
    );
    let reader = server.token("ben", "read");
    let refused = server.post(&reader, PATH, &conversation(&["Do it."]));
    assert_eq!(
        (refused.status, refused.problem().as_str()),
        (403, "scope_missing")
    );
    assert_eq!(run_count(&server, &token), 0);
}

#[test]
fn a_run_that_fails_is_an_error_and_not_repeated() {
    // The script has no turn for the model.
    let server = TestServer::start(&[]);
    let token = server.token("ann", "run");
    let answer = say(&server, &token, &["Do it."]);
    assert_eq!(
        (answer.status, answer.problem().as_str()),
        (500, "run_failed")
    );
    assert_eq!(answer.header("x-should-retry"), Some("false"));
    let mut body = conversation(&["Do it."]);
    body["stream"] = json!(true);
    let streamed = server.post(&token, PATH, &body);
    assert!(
        streamed.body.contains("\"code\":\"run_failed\""),
        "{streamed:?}"
    );
    assert!(!streamed.body.contains("[DONE]"));
}
