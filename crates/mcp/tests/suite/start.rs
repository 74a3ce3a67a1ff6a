//! The scripted server, set up for a test.

use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Map, Value};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use windlass_mcp::{Answered, CallRequest, Came, Limits, Server, ServerOptions};
use windlass_spec::server::{CommandTransport, ServerName, ServerSettings, Transport};

/// A server and the file in which it says what it does.
pub(super) struct Scripted {
    pub(super) server: Server,
    log: PathBuf,
    _directory: TempDir,
}

impl Scripted {
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

    /// What it said so far.
    pub(super) fn said(&self) -> Vec<String> {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    pub(super) fn count(&self, line: &str) -> usize {
        self.said()
            .iter()
            .filter(|said| said.starts_with(line))
            .count()
    }

    /// Waits until it said a line that begins so.
    pub(super) async fn says(&self, line: &str) {
        self.says_times(line, 1).await;
    }

    pub(super) async fn says_times(&self, line: &str, times: usize) {
        eventually(&format!("`{line}` {times} times"), || {
            self.count(line) >= times
        })
        .await;
    }

    pub(super) fn process(&self) -> u32 {
        let said = self.said();
        let start = said
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
    }
}

pub(super) fn answered(came: Came) -> Answered {
    match came {
        Came::Answered(answered) => answered,
        Came::Asks(question) => panic!("it asks: {question:?}"),
    }
}

/// Waits for something that no event tells of: files and processes of others.
pub(super) async fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let wait = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let within = Duration::from_secs(20);
    assert!(
        tokio::time::timeout(within, wait).await.is_ok(),
        "never: {what}"
    );
}

/// Whether a process is there and not only waiting to be reaped.
pub(super) fn is_running(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = stat
        .rsplit(") ")
        .next()
        .and_then(|rest| rest.chars().next());
    state.is_some_and(|state| state != 'Z' && state != 'X')
}

/// What a listener heard.
pub(super) type Heard<T> = Arc<std::sync::Mutex<Vec<T>>>;

/// A listener that keeps what it hears.
pub(super) fn keeping<T: Send + 'static>() -> (Heard<T>, Arc<dyn Fn(T) + Send + Sync>) {
    let kept = Heard::<T>::default();
    let into = Arc::clone(&kept);
    (
        kept,
        Arc::new(move |heard| into.lock().unwrap().push(heard)),
    )
}

/// An address on this machine, and how often somebody came to it.
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
