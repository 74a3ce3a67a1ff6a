//! A server process with its project and its tokens.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::client::{Answer, Request};
use crate::suite::acting::OfficeProject;
use crate::suite::seeded::CommandOutput;

/// A server process, killed at the end of the test.
pub(super) struct TestServer {
    pub(super) office: OfficeProject,
    pub(super) address: SocketAddr,
    child: Child,
    /// Variables of the server's process.
    variables: Vec<(&'static str, &'static str)>,
    log: Log,
}

/// The lines that a server has written to standard error.
type Log = Arc<Mutex<Vec<String>>>;

impl TestServer {
    /// Serves a project whose model answers with these turns.
    pub(super) fn start(turns: &[Value]) -> Self {
        Self::start_with(turns, "", &[])
    }

    /// Serves such a project, and logs what a filter lets through.
    pub(super) fn logging(turns: &[Value], filter: &'static str) -> Self {
        Self::start_with(turns, "", &[("WINDLASS_LOG", filter)])
    }

    /// The same with more configuration, and with variables for the server's process.
    pub(super) fn start_with(
        turns: &[Value],
        more: &str,
        variables: &[(&'static str, &'static str)],
    ) -> Self {
        Self::start_project(turns, more, variables, |_| Vec::new())
    }

    /// The same with the arguments that `extra` makes for the project.
    pub(super) fn start_project(
        turns: &[Value],
        more: &str,
        variables: &[(&'static str, &'static str)],
        extra: impl FnOnce(&OfficeProject) -> Vec<String>,
    ) -> Self {
        let office = OfficeProject::new(turns);
        let configuration = format!(
            "libraries = [\"tools.toml\"]\nmodel = \"scripted:answers.jsonl\"\n\
             [gate]\nundo_window_seconds = 1\n{more}"
        );
        std::fs::write(office.project.path("windlass.toml"), configuration).unwrap();
        let declared = office.project.read("agent.gram");
        let declared = declared.replace("undo_window_seconds: 5", "undo_window_seconds: 1");
        std::fs::write(office.project.path("agent.gram"), declared).unwrap();
        let extra = extra(&office);
        let extra: Vec<&str> = extra.iter().map(String::as_str).collect();
        let (child, address, log) = spawn(&office, variables, &extra);
        Self {
            office,
            address,
            child,
            variables: variables.to_vec(),
            log,
        }
    }

    /// The first line of the log with this text.
    pub(super) fn logged(&self, text: &str) -> String {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let lines = self.log.lock().unwrap();
            if let Some(line) = lines.iter().find(|line| line.contains(text)) {
                return line.clone();
            }
            assert!(Instant::now() < deadline, "{text}: {lines:?}");
            drop(lines);
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    /// The log so far.
    pub(super) fn log(&self) -> String {
        self.log.lock().unwrap().join("\n")
    }

    /// Starts the server again at another address, after it ended.
    pub(super) fn restart(&mut self) {
        (self.child, self.address, self.log) = spawn(&self.office, &self.variables, &[]);
    }

    /// Another server of the same project, with this rate.
    pub(super) fn with_rate(&self, rate: &str) -> OtherServer {
        let (child, address, _) = spawn(&self.office, &self.variables, &["--rate", rate]);
        OtherServer { child, address }
    }

    /// The most memory that the process has had, in KiB.
    pub(super) fn peak_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        line.unwrap()
            .split_whitespace()
            .next()
            .unwrap()
            .parse()
            .unwrap()
    }

    /// Kills the process, as a crash does.
    pub(super) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks the process to stop, and returns its exit code.
    pub(super) fn stop(&mut self) -> Option<i32> {
        self.signal("-INT");
        self.child.wait().unwrap().code()
    }

    pub(super) fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        let sent = std::process::Command::new("kill")
            .args([signal, &id])
            .status();
        assert!(sent.unwrap().success());
    }

    /// Creates a token and returns it with its id.
    pub(super) fn token_with(&self, arguments: &[&str]) -> (String, String) {
        let create = ["token", "create", "--json"];
        let mut command = self.office.command(&[&create[..], arguments].concat());
        let created = CommandOutput::of(&mut command).json();
        let text = |field: &str| created[field].as_str().unwrap().to_owned();
        (text("token"), text("id"))
    }

    /// A token of `name` with these scopes.
    pub(super) fn token(&self, name: &str, scopes: &str) -> String {
        self.token_with(&["--name", name, "--scopes", scopes]).0
    }

    pub(super) fn send(&self, request: &Request) -> Answer {
        request.send(self.address)
    }

    pub(super) fn get(&self, token: &str, path: &str) -> Answer {
        self.send(&Request::get(path).token(token))
    }

    pub(super) fn post(&self, token: &str, path: &str, body: &Value) -> Answer {
        self.send(&Request::post(path, body).token(token))
    }

    /// Waits until the run is in this state, and returns it.
    pub(super) fn wait_for(&self, token: &str, run: &str, state: &str) -> Value {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let shown = self.get(token, &format!("/v1/runs/{run}")).json();
            if shown["state"] == state {
                return shown;
            }
            assert!(Instant::now() < deadline, "{state}: {shown}");
            std::thread::sleep(Duration::from_millis(30));
        }
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A second server process of a project.
pub(super) struct OtherServer {
    pub(super) address: SocketAddr,
    child: Child,
}

impl Drop for OtherServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a server at a free port, and returns its address.
fn spawn(
    office: &OfficeProject,
    variables: &[(&'static str, &'static str)],
    extra: &[&str],
) -> (Child, SocketAddr, Log) {
    let serve = ["serve", "--listen", "127.0.0.1:0"];
    let rate = match extra.contains(&"--rate") {
        true => &[][..],
        false => &["--rate", "100000"],
    };
    let mut command = office.command(&[&serve[..], rate, extra].concat());
    let mut child = command
        .envs(variables.iter().copied())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut before = Vec::new();
    let address = loop {
        let line = lines
            .next()
            .unwrap_or_else(|| panic!("not served: {before:?}"));
        let line = line.unwrap();
        if let Some((_, rest)) = line.split_once("serving on http") {
            let (_, rest) = rest.split_once("://").unwrap();
            break rest.split(';').next().unwrap().parse().unwrap();
        }
        before.push(line);
    };
    let log = Log::default();
    let kept = Arc::clone(&log);
    // Somebody has to read the rest.
    std::thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            kept.lock().unwrap().push(line);
        }
    });
    (child, address, log)
}

/// The OpenAPI document of the program.
pub(super) fn openapi() -> &'static Value {
    static DOCUMENT: OnceLock<Value> = OnceLock::new();
    DOCUMENT.get_or_init(|| {
        let printed =
            CommandOutput::of(&mut crate::suite::program::TestProject::new().command(&["openapi"]));
        printed.json()
    })
}

/// Checks an answer against the OpenAPI document.
pub(super) fn check_answer(method: &str, path: &str, answer: &Answer) {
    let document = openapi();
    let operation = &document["paths"][path][method.to_lowercase()];
    assert!(operation.is_object(), "{method} {path} is not described");
    let status = answer.status.to_string();
    let response = match &operation["responses"][status.as_str()] {
        Value::Null if answer.status >= 400 => {
            let reference = operation["responses"]["default"]["$ref"].as_str().unwrap();
            document
                .pointer(reference.strip_prefix('#').unwrap())
                .unwrap()
        }
        described => described,
    };
    assert!(
        response.is_object(),
        "{method} {path}: {status} is not described: {answer:?}"
    );
    let kind = answer.header("content-type").unwrap_or_default();
    let kind = kind.split(';').next().unwrap();
    let Some(content) = response["content"].as_object() else {
        assert_eq!(answer.body, "", "{method} {path}");
        return;
    };
    let content = content
        .get(kind)
        .unwrap_or_else(|| panic!("{method} {path}: {answer:?}"));
    if !kind.contains("json") {
        return;
    }
    let mut schema = content["schema"].clone();
    schema["components"] = document["components"].clone();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let body = answer.json();
    let errors: Vec<String> = validator
        .iter_errors(&body)
        .map(|error| format!("{} at {}", error, error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{method} {path}: {errors:#?}\n{body:#}");
}
