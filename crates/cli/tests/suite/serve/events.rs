//! Live events over real sockets.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use super::client::Request;
use super::server::{TestServer, openapi};
use crate::suite::acting::{call, finish};

/// An event of a stream.
#[derive(Debug, Clone, PartialEq)]
struct StreamEvent {
    id: String,
    name: String,
    data: Value,
}

/// A listener.
struct Listener {
    lines: std::io::Lines<BufReader<TcpStream>>,
    status: u16,
}

impl Listener {
    fn connect(server: &TestServer, token: &str, path: &str, last: Option<&str>) -> Self {
        let mut request = Request::get(path).token(token);
        if let Some(last) = last {
            request = request.header("Last-Event-ID", last);
        }
        let mut stream = TcpStream::connect(server.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        stream.write_all(&request.bytes(server.address)).unwrap();
        let mut lines = BufReader::new(stream).lines();
        let status = lines.next().unwrap().unwrap();
        let status = status.split(' ').nth(1).unwrap().parse().unwrap();
        while lines
            .next()
            .is_some_and(|line| line.is_ok_and(|line| !line.is_empty()))
        {}
        Self { lines, status }
    }

    /// The events up to the end of the stream.
    fn rest(self) -> Vec<StreamEvent> {
        self.collect()
    }
}

impl Iterator for Listener {
    type Item = StreamEvent;

    fn next(&mut self) -> Option<StreamEvent> {
        let (mut id, mut name, mut data) = (String::new(), String::new(), None);
        loop {
            // The sizes of chunks are lines of their own, which are no fields.
            let line = self.lines.next()?.ok()?;
            if let Some(text) = line.strip_prefix("id: ") {
                id = text.to_owned();
            } else if let Some(text) = line.strip_prefix("event: ") {
                name = text.to_owned();
            } else if let Some(text) = line.strip_prefix("data: ") {
                data = Some(serde_json::from_str(text).unwrap());
            } else if line.is_empty()
                && let Some(data) = data.take()
            {
                return Some(StreamEvent { id, name, data });
            }
        }
    }
}

fn task() -> Value {
    json!({"agent": "clerk", "task": {"task_id": "t", "description": "Keep order."}})
}

fn start(server: &TestServer, token: &str) -> String {
    let started = server.post(token, "/v1/runs", &task()).json();
    started["run"].as_str().unwrap().to_owned()
}

/// Checks each event against the schema of its stream.
fn check(path: &str, events: &[StreamEvent]) {
    let response = &openapi()["paths"][path]["get"]["responses"]["200"];
    let mut schema = response["content"]["text/event-stream"]["schema"].clone();
    schema["components"] = openapi()["components"].clone();
    let schema = jsonschema::draft202012::new(&schema).unwrap();
    for event in events {
        let errors: Vec<String> = schema
            .iter_errors(&event.data)
            .map(|e| e.to_string())
            .collect();
        assert!(errors.is_empty(), "{event:?}: {errors:?}");
    }
}

fn names(events: &[StreamEvent]) -> Vec<&str> {
    events.iter().map(|event| event.name.as_str()).collect()
}

#[test]
fn a_run_is_followed_to_its_end_and_again_from_every_event() {
    let server = TestServer::start(&[
        call(
            "writeNote",
            json!({"file": "journal.txt", "line": "A line."}),
        ),
        finish("Written."),
    ]);
    let token = server.token("ann", "run");
    let run = start(&server, &token);
    let path = format!("/v1/runs/{run}/events");
    let all = Listener::connect(&server, &token, &path, None).rest();
    check("/v1/runs/{run}/events", &all);
    let stored: Vec<StreamEvent> = all
        .iter()
        .filter(|event| event.name != "delta")
        .cloned()
        .collect();
    let found = names(&stored);
    for name in ["run", "step", "progress", "call", "hold", "content", "done"] {
        assert!(found.contains(&name), "{name}: {found:?}");
    }
    assert_eq!(stored[stored.len() - 2].data["content"], "Written.");
    assert_eq!(found.last(), Some(&"done"));

    for (number, event) in stored.iter().enumerate() {
        let again = Listener::connect(&server, &token, &path, Some(&event.id));
        match number + 1 == stored.len() {
            true => assert_eq!(again.status, 204),
            false => assert_eq!(again.rest(), stored[number + 1..], "after {}", event.id),
        }
    }
    let wrong = server.send(
        &Request::get(&path)
            .token(&token)
            .header("Last-Event-ID", "x"),
    );
    assert_eq!(
        (wrong.status, wrong.problem().as_str()),
        (400, "invalid_event_id")
    );
}

#[test]
fn a_listener_continues_after_the_server_was_killed() {
    let mut server = TestServer::start(&[
        call("listFiles", json!({})),
        call(
            "writeNote",
            json!({"file": "journal.txt", "line": "A line."}),
        ),
        finish("Written."),
    ]);
    let token = server.token("ann", "run");
    let run = start(&server, &token);
    let path = format!("/v1/runs/{run}/events");
    let mut seen = Vec::new();
    let listener = Listener::connect(&server, &token, &path, None);
    for event in listener {
        let is_held = event.name == "hold";
        seen.push(event);
        if is_held {
            break;
        }
    }
    server.kill();
    server.restart();
    let last = seen.last().unwrap().id.clone();
    seen.extend(Listener::connect(&server, &token, &path, Some(&last)));
    let once = Listener::connect(&server, &token, &path, None).rest();
    let stored = |events: Vec<StreamEvent>| -> Vec<StreamEvent> {
        events
            .into_iter()
            .filter(|event| event.name != "delta")
            .collect()
    };
    assert_eq!(stored(seen), stored(once));
}

#[test]
fn all_runs_of_the_tenant_are_followed_and_no_others() {
    let server = TestServer::start(&[
        call("deleteFile", json!({"file": "draft.txt"})),
        finish("Gone."),
    ]);
    let (ann, _) = server.token_with(&[
        "--name",
        "ann",
        "--scopes",
        "run,approve",
        "--tenant",
        "acme",
    ]);
    let (eve, _) = server.token_with(&[
        "--name",
        "eve",
        "--scopes",
        "run,approve",
        "--tenant",
        "rival",
    ]);
    let mut listener = Listener::connect(&server, &ann, "/v1/events", None);
    let other = start(&server, &eve);
    let run = start(&server, &ann);
    let mut events: Vec<StreamEvent> = Vec::new();
    let mut until = |name: &str| loop {
        let event = listener.next().unwrap();
        assert_eq!(event.data["run"], run, "{event:?}");
        events.push(event.clone());
        if event.name == name {
            return event;
        }
    };
    let asked = until("approval").data["frame"].clone();
    let id = asked["call"].as_str().unwrap();
    let shown = server.get(&ann, &format!("/v1/approvals/{id}")).json();
    let decision = json!({"decision": "reject", "message": "Keep it."});
    let path = format!("/v1/approvals/{id}/decision");
    let decided = server.post(&ann, &path, &decision);
    assert_eq!(decided.status, 200, "{decided:?} {shown}");
    assert_eq!(until("done").data["frame"], json!({"type": "done"}));
    check("/v1/events", &events);
    // From an id on, the same events come again.
    let first = events[0].id.clone();
    let again = Listener::connect(&server, &ann, "/v1/events", Some(&first));
    let again: Vec<StreamEvent> = again.take(events.len() - 1).collect();
    assert_eq!(again, events[1..]);
    let hidden = server.get(&eve, &format!("/v1/runs/{run}/events"));
    assert_eq!(
        (hidden.status, hidden.problem().as_str()),
        (404, "no_such_run")
    );
    assert_ne!(other, run);
}

#[test]
fn many_listeners_hear_the_same_and_one_that_does_not_read_disturbs_nobody() {
    let server = TestServer::start(&[
        call(
            "writeNote",
            json!({"file": "journal.txt", "line": "A line."}),
        ),
        finish("Written."),
    ]);
    let token = server.token("ann", "run");
    let run = start(&server, &token);
    let path = format!("/v1/runs/{run}/events");
    // It never reads.
    let _idle = Listener::connect(&server, &token, &path, None);
    let heard: Vec<Vec<StreamEvent>> = std::thread::scope(|scope| {
        let listening: Vec<_> = (0..50)
            .map(|_| scope.spawn(|| Listener::connect(&server, &token, &path, None).rest()))
            .collect();
        listening
            .into_iter()
            .map(|one| one.join().unwrap())
            .collect()
    });
    let stored = |events: &[StreamEvent]| -> Vec<StreamEvent> {
        events
            .iter()
            .filter(|event| event.name != "delta")
            .cloned()
            .collect()
    };
    for events in &heard {
        assert_eq!(stored(events), stored(&heard[0]));
        assert_eq!(events.last().unwrap().name, "done");
    }
}
