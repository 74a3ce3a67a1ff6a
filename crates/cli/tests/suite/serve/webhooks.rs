//! Webhooks: real receivers, which answer as they like, and servers that are killed.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::server::{TestServer, check_answer};
use crate::suite::acting::{call, finish};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// How long a test waits for events.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a receiver got.
#[derive(Debug, Clone)]
struct Received {
    headers: Vec<(String, String)>,
    body: String,
}

impl Received {
    fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(found, _)| found == name);
        &found.unwrap_or_else(|| panic!("{name}: {self:?}")).1
    }

    fn id(&self) -> &str {
        self.header("webhook-id")
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    fn event(&self) -> String {
        self.json()["type"].as_str().unwrap().to_owned()
    }

    /// What the library of Standard Webhooks says about the signature.
    fn is_verified(&self, secret: &str) -> bool {
        let clients = std::env::var_os("WINDLASS_CLIENTS").unwrap_or_else(|| {
            panic!(
                "this test needs the library of Standard Webhooks: run it with `cargo xtask test`, or set \
                 WINDLASS_CLIENTS to what `cargo xtask clients` prints"
            )
        });
        let script = "import json, sys, standardwebhooks\n\
                      secret, headers, body = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]\n\
                      standardwebhooks.Webhook(secret).verify(body, headers)\n";
        let headers: serde_json::Map<String, Value> = self
            .headers
            .iter()
            .map(|(name, value)| (name.clone(), json!(value)))
            .collect();
        let output = Command::new(PathBuf::from(clients).join("python/bin/python"))
            .args([
                "-c",
                script,
                secret,
                &json!(headers).to_string(),
                &self.body,
            ])
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() || error.contains("WebhookVerificationError"),
            "{error}"
        );
        output.status.success()
    }
}

/// How a receiver answers.
#[derive(Debug, Clone)]
enum Reaction {
    Answer(&'static str),
    /// It reads and never answers.
    Hang,
}

/// A receiver at a port of its own.
struct Receiver {
    address: SocketAddr,
    received: Arc<Mutex<Vec<Received>>>,
}

const OK: Reaction = Reaction::Answer("204 No Content\r\n");

impl Receiver {
    /// `react` gets the number of the request, from 0.
    fn start(react: impl Fn(usize) -> Reaction + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let received: Arc<Mutex<Vec<Received>>> = Arc::default();
        let (all, react) = (Arc::clone(&received), Arc::new(react));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (all, react) = (Arc::clone(&all), Arc::clone(&react));
                std::thread::spawn(move || receive(stream.unwrap(), &all, &*react));
            }
        });
        Self { address, received }
    }

    fn url(&self) -> String {
        format!("http://{}/hook?key=of-the-receiver", self.address)
    }

    fn all(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    /// Waits until this many requests came.
    fn wait(&self, count: usize) -> Vec<Received> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let all = self.all();
            if all.len() >= count {
                return all;
            }
            assert!(Instant::now() < deadline, "{count}: {all:#?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn events(&self) -> Vec<String> {
        self.all().iter().map(Received::event).collect()
    }
}

fn receive(
    mut stream: TcpStream,
    all: &Mutex<Vec<Received>>,
    react: &(dyn Fn(usize) -> Reaction + Send + Sync),
) {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    let request = loop {
        let Ok(count @ 1..) = stream.read(&mut buffer) else {
            return;
        };
        bytes.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let headers: Vec<(String, String)> = head
            .lines()
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
            .collect();
        let length = headers.iter().find(|(name, _)| name == "content-length");
        if body.len() >= length.unwrap().1.parse().unwrap() {
            break Received {
                headers,
                body: body.to_owned(),
            };
        }
    };
    let number = {
        let mut all = all.lock().unwrap();
        all.push(request);
        all.len() - 1
    };
    match react(number) {
        Reaction::Answer(answer) => {
            let answer = format!("HTTP/1.1 {answer}Content-Length: 0\r\nConnection: close\r\n\r\n");
            let _ = stream.write_all(answer.as_bytes());
        }
        Reaction::Hang => std::thread::sleep(PATIENCE),
    }
}

/// A server whose agent deletes a file, with these webhooks.
fn deleting(webhooks: &str) -> TestServer {
    TestServer::start_with(
        &[
            call("deleteFile", json!({"file": "draft.txt"})),
            finish("Gone."),
        ],
        webhooks,
        &[("HOOK_SECRET", SECRET)],
    )
}

fn webhook(name: &str, receiver: &Receiver, keys: &str) -> String {
    let url = receiver.url();
    format!(
        "[webhooks.{name}]\nurl = \"{url}\"\nsecret = \"env:HOOK_SECRET\"\nretry_seconds = 1\n{keys}\n"
    )
}

fn start(server: &TestServer, token: &str) -> String {
    let task = json!({"task_id": "t", "description": "Keep order."});
    let started = server.post(token, "/v1/runs", &json!({"agent": "clerk", "task": task}));
    assert_eq!(started.status, 202, "{started:?}");
    started.json()["run"].as_str().unwrap().to_owned()
}

/// Starts a run, waits for its question, and approves it.
fn run_with_approval(server: &TestServer) -> (String, String) {
    let (ann, ben) = (server.token("ann", "run"), server.token("ben", "approve"));
    let run = start(server, &ann);
    server.wait_for(&ann, &run, "waiting");
    let asked = server.get(&ben, "/v1/approvals?status=pending").json()["items"][0].clone();
    let id = asked["id"].as_str().unwrap().to_owned();
    let decision = json!({"decision": "approve", "digest": asked["digest_now"]});
    let decided = server.post(&ben, &format!("/v1/approvals/{id}/decision"), &decision);
    assert_eq!(decided.status, 200, "{decided:?}");
    server.wait_for(&ann, &run, "ended");
    (run, id)
}

/// Waits until the server has no event that is to be sent.
fn wait_until_settled(server: &TestServer, token: &str) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let listed = server.get(token, "/v1/webhooks").json();
        let webhooks = listed["items"].as_array().unwrap();
        if webhooks.iter().all(|webhook| webhook["pending"] == 0) {
            return;
        }
        assert!(Instant::now() < deadline, "{listed}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn events_are_signed_and_name_what_happened_without_arguments() {
    let receiver = Receiver::start(|_| OK);
    let server = deleting(&webhook(
        "all",
        &receiver,
        "server = \"https://windlass.example.org/\"",
    ));
    let (run, approval) = run_with_approval(&server);
    let all = receiver.wait(4);
    let mut events = receiver.events();
    events.sort();
    assert_eq!(
        events,
        [
            "approval.asked",
            "approval.decided",
            "gap.recorded",
            "run.ended"
        ]
    );
    for received in &all {
        assert!(received.id().starts_with("msg_"));
        assert!(received.is_verified(SECRET), "{received:?}");
        assert!(!received.is_verified("whsec_c2VjcmV0IG9mIGFub3RoZXIgcmVjZWl2ZXI="));
        assert!(!received.body.contains("draft.txt"), "{received:?}");
        let data = received.json()["data"].clone();
        assert_eq!(
            (&data["run"], &data["agent"]),
            (&json!(run), &json!("clerk"))
        );
        let link = format!("https://windlass.example.org/v1/runs/{run}");
        assert_eq!(data["links"]["run"], link);
    }
    let data = |event: &str| {
        let found = all.iter().find(|received| received.event() == event);
        found.unwrap().json()["data"].clone()
    };
    let asked = data("approval.asked");
    assert_eq!(
        (&asked["approval"], &asked["status"]),
        (&json!(approval), &json!("pending"))
    );
    assert_eq!(asked["tool"], "deleteFile");
    let decided = data("approval.decided");
    assert_eq!(
        (
            &decided["status"],
            &decided["decided_by"],
            &decided["decision"]
        ),
        (&json!("approved"), &json!("ben"), &json!("approve"))
    );
    assert_eq!(data("run.ended")["end"], "completed");
    assert_eq!(data("gap.recorded")["moment"], "before_run");
    assert!(data("gap.recorded")["missing_tools"][0].is_string());

    let token = server.token("eve", "read");
    wait_until_settled(&server, &token);
    let listed = server.get(&token, "/v1/webhooks");
    check_answer("GET", "/v1/webhooks", &listed);
    assert_eq!(listed.json()["items"][0]["delivered"], 4);
    let deliveries = server.get(&token, "/v1/webhooks/deliveries?state=delivered&limit=2");
    check_answer("GET", "/v1/webhooks/deliveries", &deliveries);
    let deliveries = deliveries.json();
    let next = deliveries["next"].as_str().unwrap();
    let rest = server
        .get(&token, &format!("/v1/webhooks/deliveries?after={next}"))
        .json();
    assert_eq!(rest["items"].as_array().unwrap().len(), 2);
    let id = deliveries["items"][0]["id"].as_str().unwrap();
    let path = format!("/v1/webhooks/deliveries/{id}");
    let shown = server.get(&token, &path);
    check_answer("GET", "/v1/webhooks/deliveries/{delivery}", &shown);
    let sent = all.iter().find(|received| received.id() == id).unwrap();
    assert_eq!(shown.json()["message"], sent.json());
    let (rival, _) =
        server.token_with(&["--name", "eve", "--scopes", "admin", "--tenant", "rival"]);
    assert_eq!(server.get(&rival, &path).problem(), "no_such_delivery");
    let again = server.post(&rival, &format!("{path}/retry"), &json!({}));
    assert_eq!(again.problem(), "no_such_delivery");
    let admin = server.token("root", "operate");
    let again = server.post(&admin, &format!("{path}/retry"), &json!({}));
    assert_eq!(
        (again.status, again.problem().as_str()),
        (409, "already_delivered")
    );
}

#[test]
fn a_webhook_gets_its_events_with_arguments_if_it_is_configured_so() {
    let receiver = Receiver::start(|_| OK);
    let keys = "events = [\"approval.asked\"]\narguments = true";
    let server = deleting(&webhook("some", &receiver, keys));
    run_with_approval(&server);
    let token = server.token("eve", "read");
    wait_until_settled(&server, &token);
    let all = receiver.wait(1);
    assert_eq!(receiver.events(), ["approval.asked"]);
    assert_eq!(
        all[0].json()["data"]["arguments"],
        json!({"file": "draft.txt"})
    );
}

#[test]
fn an_event_is_sent_again_with_its_id_until_it_is_received() {
    let receiver = Receiver::start(|number| match number {
        0 => Reaction::Answer("500 Internal Server Error\r\n"),
        1 => Reaction::Answer("302 Found\r\nLocation: http://127.0.0.1:1/elsewhere\r\n"),
        _ => OK,
    });
    let server = deleting(&webhook("one", &receiver, "events = [\"approval.asked\"]"));
    let token = server.token("ann", "run");
    start(&server, &token);
    let all = receiver.wait(3);
    wait_until_settled(&server, &token);
    assert!(all.iter().all(|received| received.id() == all[0].id()));
    assert!(all.iter().all(|received| received.body == all[0].body));
    assert_eq!(receiver.all().len(), 3);
}

#[test]
fn an_event_that_is_not_received_is_given_up_visibly_and_sent_again_on_request() {
    let is_up = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let up = Arc::clone(&is_up);
    let receiver = Receiver::start(
        move |_| match up.load(std::sync::atomic::Ordering::SeqCst) {
            true => OK,
            false => Reaction::Answer("503 Service Unavailable\r\n"),
        },
    );
    let keys = "attempts = 2\nevents = [\"approval.asked\"]";
    let server = deleting(&webhook("down", &receiver, keys));
    let token = server.token("ann", "run,operate");
    start(&server, &token);
    receiver.wait(2);
    wait_until_settled(&server, &token);
    let listed = server.office.run_command(&["webhooks", "list"]);
    assert!(
        listed.out.contains("the receiver answered 503"),
        "{listed:?}"
    );
    // The URL may have a secret in it.
    let errors = server
        .get(&token, "/v1/webhooks/deliveries?state=dead")
        .json();
    assert!(
        !errors["items"][0]["error"]
            .to_string()
            .contains("of-the-receiver")
    );
    let doctor = server.office.run_command(&["doctor", "--offline"]);
    assert!(
        format!("{}{}", doctor.out, doctor.err).contains("1 events were given up for `down`"),
        "{doctor:?}"
    );
    let id = errors["items"][0]["id"].as_str().unwrap().to_owned();
    let shown = server.office.run_command(&["webhooks", "show", &id]);
    assert!(shown.out.contains("approval.asked"), "{shown:?}");

    is_up.store(true, std::sync::atomic::Ordering::SeqCst);
    let retried = server.office.run_command(&["webhooks", "retry", "--all"]);
    assert!(retried.out.contains(&id), "{retried:?}");
    let all = receiver.wait(3);
    wait_until_settled(&server, &token);
    assert_eq!(all[2].id(), id);
    let path = format!("/v1/webhooks/deliveries/{id}");
    assert_eq!(server.get(&token, &path).json()["state"], "delivered");
    let none = server.office.run_command(&["webhooks", "retry", "--all"]);
    assert!(none.err.contains("no event was given up"), "{none:?}");
}

#[test]
fn a_receiver_that_hangs_slows_no_run_and_no_other_webhook() {
    let hanging = Receiver::start(|_| Reaction::Hang);
    let quick = Receiver::start(|_| OK);
    let server = deleting(
        &(webhook("hangs", &hanging, "timeout_seconds = 60") + &webhook("quick", &quick, "")),
    );
    let begun = Instant::now();
    run_with_approval(&server);
    quick.wait(4);
    assert!(
        begun.elapsed() < Duration::from_secs(30),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(hanging.wait(4).len(), 4);
}

#[test]
fn a_killed_server_forgets_no_event() {
    let receiver = Receiver::start(|number| match number {
        // The server is killed while it waits for this answer.
        0 => Reaction::Hang,
        _ => OK,
    });
    let keys = "timeout_seconds = 1\nevents = [\"approval.asked\"]";
    let mut server = deleting(&webhook("one", &receiver, keys));
    let token = server.token("ann", "run");
    start(&server, &token);
    let first = receiver.wait(1);
    server.kill();
    server.restart();
    let all = receiver.wait(2);
    assert_eq!(all[1].id(), first[0].id());
    assert_eq!(all[1].body, first[0].body);
    wait_until_settled(&server, &token);
}

#[test]
fn events_that_happen_without_a_worker_are_sent_by_the_next_one() {
    let receiver = Receiver::start(|_| OK);
    let mut server = deleting(&webhook(
        "one",
        &receiver,
        "events = [\"approval.asked\", \"run.ended\"]",
    ));
    // The webhook is known when its first event was sent.
    let token = server.token("ann", "run");
    start(&server, &token);
    receiver.wait(1);
    server.kill();
    let run = server
        .office
        .run_command(&["run", "agent.gram", "Keep order."]);
    assert_eq!(run.code, 4, "{run:?}");
    assert_eq!(receiver.all().len(), 1);
    let mut worker = server.office.command(&["worker", "--until-idle"]);
    let worked = worker.env("HOOK_SECRET", SECRET).output().unwrap();
    assert!(worked.status.success(), "{worked:?}");
    assert_eq!(receiver.events(), ["approval.asked", "approval.asked"]);
}

#[test]
fn two_servers_of_a_store_send_each_event_once() {
    let receiver = Receiver::start(|_| OK);
    let server = deleting(&webhook("one", &receiver, "events = [\"approval.asked\"]"));
    let _other = server.with_rate("1000");
    let token = server.token("ann", "run");
    for _ in 0..10 {
        start(&server, &token);
    }
    receiver.wait(10);
    wait_until_settled(&server, &token);
    std::thread::sleep(Duration::from_secs(1));
    let mut ids: Vec<String> = receiver
        .all()
        .iter()
        .map(|one| one.id().to_owned())
        .collect();
    assert_eq!(ids.len(), 10);
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 10);
}

#[test]
fn an_approval_is_announced_before_it_expires_and_when_it_has() {
    let receiver = Receiver::start(|_| OK);
    let webhooks = webhook(
        "one",
        &receiver,
        "events = [\"approval.expiring\", \"approval.closed\"]",
    );
    let server = deleting(&format!("[approvals]\nexpiry_seconds = 4\n{webhooks}"));
    let token = server.token("ann", "run");
    start(&server, &token);
    let all = receiver.wait(2);
    assert_eq!(receiver.events(), ["approval.expiring", "approval.closed"]);
    assert_eq!(all[0].json()["data"]["status"], "pending");
    assert_eq!(all[1].json()["data"]["status"], "expired");
}

#[test]
fn a_command_reads_the_event_and_fails_like_a_receiver() {
    let script = "import os, sys\n\
                  event = sys.stdin.read()\n\
                  assert 'HOOK_SECRET' not in os.environ and os.environ['NAMED'] == 'given'\n\
                  if not os.path.exists('tried'):\n    \
                      open('tried', 'w').close()\n    \
                      sys.exit(3)\n\
                  with open('events.jsonl', 'a') as file:\n    \
                      file.write(os.environ['WINDLASS_EVENT_ID'] + ' ' + event + '\\n')\n";
    let webhooks = "[webhooks.local]\ncommand = [\"python3\", \"hook.py\"]\nenvironment = [\"NAMED\"]\n\
                    retry_seconds = 1\nevents = [\"approval.asked\"]\n";
    let server = TestServer::start_with(
        &[
            call("deleteFile", json!({"file": "draft.txt"})),
            finish("Gone."),
        ],
        webhooks,
        &[("HOOK_SECRET", SECRET), ("NAMED", "given")],
    );
    std::fs::write(server.office.project.path("hook.py"), script).unwrap();
    let token = server.token("ann", "run");
    start(&server, &token);
    let file = server.office.project.path("events.jsonl");
    let deadline = Instant::now() + PATIENCE;
    let written = loop {
        match std::fs::read_to_string(&file) {
            Ok(written) if written.ends_with('\n') => break written,
            _ => assert!(
                Instant::now() < deadline,
                "{}",
                server.get(&token, "/v1/webhooks/deliveries").body
            ),
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    wait_until_settled(&server, &token);
    let (id, event) = written.trim().split_once(' ').unwrap();
    let event: Value = serde_json::from_str(event).unwrap();
    assert_eq!(event["type"], "approval.asked");
    let delivery = server
        .get(&token, &format!("/v1/webhooks/deliveries/{id}"))
        .json();
    assert_eq!(
        (&delivery["state"], &delivery["attempts"]),
        (&json!("delivered"), &json!(2))
    );
}

#[test]
fn a_project_that_is_not_trusted_sends_nothing() {
    let receiver = Receiver::start(|_| OK);
    let server = deleting(&webhook("one", &receiver, ""));
    let mut shown = server.office.command(&["doctor", "--offline"]);
    shown.env_remove("WINDLASS_TRUST_PROJECT");
    let shown = crate::suite::seeded::CommandOutput::of(&mut shown);
    let text = format!("{}{}", shown.out, shown.err);
    assert!(
        text.contains("without effect") && text.contains("`webhooks.one`"),
        "{shown:?}"
    );
    let mut listed = server.office.command(&["webhooks", "list"]);
    listed.env_remove("WINDLASS_TRUST_PROJECT");
    let listed = crate::suite::seeded::CommandOutput::of(&mut listed);
    assert!(listed.err.contains("there are no webhooks"), "{listed:?}");
}

#[test]
fn a_secret_is_made_and_refused_if_it_is_none() {
    let receiver = Receiver::start(|_| OK);
    let server = deleting(&webhook("one", &receiver, ""));
    let secret = server.office.run_command(&["webhooks", "secret"]);
    assert!(
        secret.out.starts_with("whsec_") && secret.out.len() > 40,
        "{secret:?}"
    );
    for (value, expected) in [("short", "no usable secret"), ("", "no usable secret")] {
        let mut doctor = server.office.command(&["doctor", "--offline"]);
        doctor.env("HOOK_SECRET", value);
        let doctor = crate::suite::seeded::CommandOutput::of(&mut doctor);
        let text = format!("{}{}", doctor.out, doctor.err);
        assert!(text.contains(expected), "{value}: {doctor:?}");
    }
    let missing = server.office.run_command(&["doctor", "--offline"]);
    let text = format!("{}{}", missing.out, missing.err);
    assert!(text.contains("the secret is missing"), "{missing:?}");
}
