//! The scripted server and helpers for tests.

use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use windlass_mcp::{
    CallError, CallOutcome, CallRequest, ElicitationReply, Limits, Server, ServerOptions,
    ToolAnswer,
};
use windlass_spec::server::{CommandTransport, ServerName, ServerSettings, Transport};

/// A scripted server and its log file.
pub(super) struct ScriptedServer {
    pub(super) server: Server,
    log: PathBuf,
    _directory: TempDir,
}

impl ScriptedServer {
    pub(super) fn new(words: &[&str]) -> Self {
        Self::with(words, options(), |_| {})
    }

    pub(super) fn with(
        words: &[&str],
        options: ServerOptions,
        adjust: impl FnOnce(&mut ServerSettings),
    ) -> Self {
        let directory = TempDir::new().unwrap();
        let log = directory.path().join("log");
        let mut settings = settings(env!("CARGO_BIN_EXE_windlass-mcp-fixture"), words);
        if let Transport::Command(command) = &mut settings.transport {
            command.arguments.push("--log".to_owned());
            command.arguments.push(log.display().to_string());
        }
        adjust(&mut settings);
        Self {
            server: Server::new(settings, options),
            log,
            _directory: directory,
        }
    }

    /// Calls a tool, which must not fail.
    pub(super) async fn call(&self, tool: &str, arguments: Value) -> CallOutcome {
        self.server.call(request(tool, arguments)).await.unwrap()
    }

    /// Calls a tool, which must fail.
    pub(super) async fn call_error(&self, tool: &str, arguments: Value) -> CallError {
        let outcome = self.server.call(request(tool, arguments)).await;
        outcome.unwrap_err()
    }

    /// Replies to the elicitation of a call.
    pub(super) async fn reply(
        &self,
        tool: &str,
        arguments: Value,
        reply: ElicitationReply,
    ) -> CallOutcome {
        let call = request(tool, arguments);
        self.server.reply(call, reply).await.unwrap()
    }

    /// Asserts that it answers calls.
    pub(super) async fn assert_echoes(&self) {
        let outcome = self.call("echo", json!({ "a": 1 })).await;
        assert_eq!(expect_answer(outcome).value, json!({ "a": 1 }));
    }

    /// The lines of its log so far.
    pub(super) fn log_lines(&self) -> Vec<String> {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    pub(super) fn count(&self, line: &str) -> usize {
        self.log_lines()
            .iter()
            .filter(|logged| logged.starts_with(line))
            .count()
    }

    /// Waits until its log has a line with this beginning.
    pub(super) async fn wait_for_line(&self, line: &str) {
        self.wait_for_lines(line, 1).await;
    }

    pub(super) async fn wait_for_lines(&self, line: &str, times: usize) {
        eventually(&format!("`{line}` {times} times"), || {
            self.count(line) >= times
        })
        .await;
    }

    pub(super) fn process(&self) -> u32 {
        let lines = self.log_lines();
        let start = lines
            .iter()
            .rev()
            .find_map(|line| line.strip_prefix("start "));
        start.unwrap().parse().unwrap()
    }
}

pub(super) fn options() -> ServerOptions {
    ServerOptions {
        limits: Limits {
            close_grace: Duration::from_millis(500),
            terminate_grace: Duration::from_millis(300),
            first_backoff: Duration::from_millis(200),
            ..Limits::default()
        },
        ..ServerOptions::default()
    }
}

pub(super) fn settings(program: &str, words: &[&str]) -> ServerSettings {
    let command = CommandTransport {
        program: program.to_owned(),
        arguments: words.iter().map(|&word| word.to_owned()).collect(),
        directory: None,
        environment: Default::default(),
        parts: Vec::new(),
        access: Default::default(),
    };
    let name = ServerName::new("fixture").unwrap();
    ServerSettings::new(name, Transport::Command(command))
}

pub(super) fn request(tool: &str, arguments: Value) -> CallRequest {
    let arguments = match arguments {
        Value::Object(arguments) => arguments,
        _ => Map::new(),
    };
    CallRequest {
        key: format!("run:1:{tool}"),
        tool: tool.to_owned(),
        arguments,
        cancel: CancellationToken::new(),
        progress: None,
        output_schema: None,
        max_output_bytes: 1 << 20,
        approval: None,
    }
}

pub(super) fn expect_answer(outcome: CallOutcome) -> ToolAnswer {
    match outcome {
        CallOutcome::Answered(answer) => answer,
        CallOutcome::NeedsInput(elicitation) => panic!("the call needs input: {elicitation:?}"),
    }
}

/// Polls a condition that has no event, such as files and other processes.
pub(super) async fn eventually(what: &str, condition: impl Fn() -> bool) {
    let wait = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let within = Duration::from_secs(20);
    assert!(
        tokio::time::timeout(within, wait).await.is_ok(),
        "timed out: {what}"
    );
}

/// Whether a process is running, not a zombie.
pub(super) fn is_running(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = stat
        .rsplit(") ")
        .next()
        .and_then(|rest| rest.chars().next());
    state.is_some_and(|state| state != 'Z' && state != 'X')
}

/// The values that a callback received.
pub(super) type Recorded<T> = Arc<std::sync::Mutex<Vec<T>>>;

/// A callback that records its values.
pub(super) fn recorder<T: Send + 'static>() -> (Recorded<T>, Arc<dyn Fn(T) + Send + Sync>) {
    let recorded = Recorded::<T>::default();
    let into = Arc::clone(&recorded);
    (
        recorded,
        Arc::new(move |value| into.lock().unwrap().push(value)),
    )
}

/// A URL on this machine, and the number of connections to it.
pub(super) fn listener() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/hostile", listener.local_addr().unwrap());
    let visits = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&visits);
    std::thread::spawn(move || {
        while listener.accept().is_ok() {
            counted.fetch_add(1, Ordering::SeqCst);
        }
    });
    (address, visits)
}
