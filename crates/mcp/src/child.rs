//! The stdio transport: a program that is started without a shell in its own session with a minimal
//! environment, isolated from keys and journals, and stopped with everything it started. Messages are lines of JSON.

use std::collections::VecDeque;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::sync::Mutex as AsyncMutex;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use windlass_spawn::{Isolation, ProcessGroup};
use windlass_spec::server::{CommandTransport, EnvTemplate};
use windlass_spec::{Effect, ErrorCategory};

use crate::client::{CallError, Inbound, Lookup, ServerError, Wire, lock, shown};
use crate::program;

/// The environment variables that every program gets. Others must be named in the settings.
const ALWAYS_PASSED: [&str; 3] = ["PATH", "HOME", "LANG"];

/// The `PATH` if the environment has none.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The most lines of standard error that are kept, and the most characters of each.
const KEPT_LINES: usize = 20;
const KEPT_CHARACTERS: usize = 300;

/// How long to wait for the exit status of a program whose output ended.
const EXIT_WAIT: Duration = Duration::from_millis(300);

/// The key that every message has.
const PROTOCOL_KEY: &str = "jsonrpc";

/// How many bytes of each end of a line that is too long are searched for request ids.
const END_BYTES: usize = 512;

/// The transport to a running program.
pub(crate) struct StdioTransport {
    child: Child,
    group: Arc<ProcessGroup>,
    input: Arc<AsyncMutex<Option<ChildStdin>>>,
    /// Cancelled when writing to the program fails.
    write_failed: CancellationToken,
    output: BufReader<ChildStdout>,
    line: Line,
    noise: usize,
    waiting: VecDeque<ServerJsonRpcMessage>,
    stderr: Arc<StderrTail>,
    drain: JoinHandle<()>,
    wire: Arc<Wire>,
}

/// The part of a line that was read so far.
#[derive(Default)]
struct Line {
    bytes: Vec<u8>,
    /// The beginning and the end so far of a line that is too long to keep.
    too_long: Option<(Vec<u8>, Vec<u8>)>,
}

/// The last lines that a program wrote to standard error.
#[derive(Default)]
pub(crate) struct StderrTail(Mutex<VecDeque<String>>);

impl StderrTail {
    /// The text to append to an error message.
    pub(crate) fn describe(&self) -> String {
        let lines = lock(&self.0);
        match lines.is_empty() {
            true => String::new(),
            false => {
                let text: Vec<&str> = lines.iter().map(String::as_str).collect();
                format!("; its last output on standard error: {}", text.join(" | "))
            }
        }
    }

    fn keep(&self, line: &[u8]) {
        let line = shown(&String::from_utf8_lossy(line), KEPT_CHARACTERS);
        if line.is_empty() {
            return;
        }
        let mut lines = lock(&self.0);
        if lines.len() == KEPT_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }
}

impl StdioTransport {
    /// Starts the program.
    pub(crate) fn start(
        settings: &CommandTransport,
        executable: &Path,
        lookup: &Lookup,
        isolation: &Isolation,
        wire: Arc<Wire>,
    ) -> Result<Self, ServerError> {
        let mut command = Command::new(executable);
        command
            // Some programs depend on the name they are called by.
            .arg0(&settings.program)
            .args(&settings.arguments)
            .env_clear()
            .env("PATH", DEFAULT_PATH)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        for name in ALWAYS_PASSED {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        for (name, given) in &settings.environment {
            command.env(name, value(name, given, lookup)?);
        }
        if let Some(directory) = &settings.directory {
            command.current_dir(directory);
        }
        let failed = |error: &dyn std::error::Error| {
            let program = &settings.program;
            ServerError::unavailable(format!("cannot start `{program}`: {error}"))
        };
        isolation
            .confine(&mut command, &settings.access)
            .map_err(|error| failed(&error))?;
        let mut command = tokio::process::Command::from(command);
        let mut child = command
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| failed(&error))?;
        let group = Arc::new(ProcessGroup::of(child.id()));
        let (Some(input), Some(output), Some(errors)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(ServerError::unavailable("the program has no pipes"));
        };
        let stderr = Arc::new(StderrTail::default());
        let drain = tokio::spawn(drain(errors, Arc::clone(&stderr)));
        Ok(Self {
            child,
            group,
            input: Arc::new(AsyncMutex::new(Some(input))),
            write_failed: CancellationToken::new(),
            output: BufReader::with_capacity(64 * 1024, output),
            line: Line::default(),
            noise: 0,
            waiting: VecDeque::new(),
            stderr,
            drain,
            wire,
        })
    }

    /// The last lines of its standard error. Usable after the transport is moved.
    pub(crate) fn stderr_tail(&self) -> Arc<StderrTail> {
        Arc::clone(&self.stderr)
    }

    /// Its processes. They are killed when the transport and every clone of this are dropped.
    pub(crate) fn group(&self) -> Arc<ProcessGroup> {
        Arc::clone(&self.group)
    }

    /// Reads to the end of a line. Cancel-safe: the next call continues. Returns `false` at the end of
    /// the output.
    async fn read_line(&mut self) -> std::io::Result<bool> {
        loop {
            let available = self.output.fill_buf().await?;
            if available.is_empty() {
                return Ok(false);
            }
            let newline = memchr::memchr(b'\n', available);
            let taken = newline.map_or(available.len(), |at| at + 1);
            self.line
                .push(&available[..taken], self.wire.limits.message_bytes);
            self.output.consume(taken);
            if newline.is_some() {
                return Ok(true);
            }
        }
    }

    /// Parses the line that was read. Returns the message, if it is for `rmcp`.
    fn parse_line(&mut self) -> Option<ServerJsonRpcMessage> {
        let line = std::mem::take(&mut self.line);
        if let Some((beginning, end)) = line.too_long {
            let most = self.wire.limits.message_bytes;
            let error = format!("the server's answer is larger than {most} bytes");
            return self.fail_requests(&[&beginning, &end], &error);
        }
        let text = line.bytes.trim_ascii();
        if text.is_empty() {
            return None;
        }
        let read = serde_json::from_slice::<Value>(text);
        let message = match read {
            Ok(message) => message,
            Err(error) => {
                let ends = [
                    &text[..text.len().min(END_BYTES)],
                    &text[text.len().saturating_sub(END_BYTES)..],
                ];
                if !text.starts_with(b"{") || !ends.iter().any(|end| names_protocol(end)) {
                    self.noise += 1;
                    return None;
                }
                let error = format!("the server's answer cannot be read: {error}");
                return self.fail_requests(&ends, &error);
            }
        };
        // Programs may also log JSON, with other ids.
        if message.get(PROTOCOL_KEY).is_none() {
            self.noise += 1;
            return None;
        }
        let message = match self.wire.receive(message, false) {
            Inbound::Consumed => {
                self.noise = 0;
                return None;
            }
            Inbound::Pass(message) => message,
        };
        let id = message.get("id").map(|id| format!("\"id\":{id}"));
        match serde_json::from_value(message) {
            Ok(message) => {
                self.noise = 0;
                Some(message)
            }
            Err(error) => match id {
                Some(id) => {
                    let error = format!("the server violates the protocol: {error}");
                    self.fail_requests(&[id.as_bytes()], &error)
                }
                None => {
                    self.noise += 1;
                    None
                }
            },
        }
    }

    /// Fails the requests that an unreadable message may answer.
    fn fail_requests(&mut self, pieces: &[&[u8]], reason: &str) -> Option<ServerJsonRpcMessage> {
        self.noise += 1;
        let error = CallError::new(ErrorCategory::InvalidOutput, Effect::Unknown, reason);
        let data = ErrorData::new(ErrorCode::INTERNAL_ERROR, reason.to_owned(), None);
        let mut ended = self
            .wire
            .fail_unreadable(pieces, &error)
            .into_iter()
            .map(|id| ServerJsonRpcMessage::error(data.clone(), Some(RequestId::Number(id))));
        let first = ended.next();
        self.waiting.extend(ended);
        first
    }

    /// Records how the program ended.
    async fn record_end(&mut self) {
        let how = match tokio::time::timeout(EXIT_WAIT, self.child.wait()).await {
            Ok(Ok(status)) => format!("the program ended ({status})"),
            _ => "the program closed its output".to_owned(),
        };
        // The last lines may not have been read yet.
        if !self.drain.is_finished() {
            let _ = tokio::time::timeout(EXIT_WAIT, &mut self.drain).await;
        }
        let stderr = self.stderr.describe();
        self.wire
            .end(ServerError::unavailable(format!("{how}{stderr}")));
    }
}

/// The executable of a server. It is looked up once, in the `PATH` that the program gets, and then
/// checked and started by its path.
pub(crate) fn executable(
    settings: &CommandTransport,
    lookup: &Lookup,
) -> Result<PathBuf, ServerError> {
    let path = match settings.environment.get("PATH") {
        Some(given) => value("PATH", given, lookup)?.into(),
        None => std::env::var_os("PATH").unwrap_or_else(|| DEFAULT_PATH.into()),
    };
    let found = program::find(settings, &path);
    found.map_err(|error| ServerError::unavailable(error.to_string()))
}

/// The value of a variable that the settings name.
fn value(name: &str, given: &EnvTemplate, lookup: &Lookup) -> Result<String, ServerError> {
    given.value(|name| lookup(name)).map_err(|error| {
        ServerError::new(
            ErrorCategory::Authentication,
            format!("{error} (for the variable `{name}` of the server)"),
        )
    })
}

impl Line {
    fn push(&mut self, bytes: &[u8], most: usize) {
        match &mut self.too_long {
            None if self.bytes.len() + bytes.len() <= most => self.bytes.extend_from_slice(bytes),
            None => {
                let mut kept = std::mem::take(&mut self.bytes);
                kept.extend_from_slice(&bytes[..bytes.len().min(END_BYTES)]);
                kept.truncate(END_BYTES);
                self.too_long = Some((kept, Vec::new()));
                self.push_end(bytes);
            }
            Some(_) => self.push_end(bytes),
        }
    }

    fn push_end(&mut self, bytes: &[u8]) {
        if let Some((_, end)) = &mut self.too_long {
            end.extend_from_slice(&bytes[bytes.len().saturating_sub(END_BYTES)..]);
            let surplus = end.len().saturating_sub(END_BYTES);
            end.drain(..surplus);
        }
    }
}

impl Transport<RoleClient> for StdioTransport {
    type Error = std::io::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let input = Arc::clone(&self.input);
        let wire = Arc::clone(&self.wire);
        let write_failed = self.write_failed.clone();
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let mut input = input.lock().await;
            let Some(input) = input.as_mut() else {
                return Err(std::io::ErrorKind::NotConnected.into());
            };
            if !wire.mark_sent(&message) {
                return Err(std::io::ErrorKind::Interrupted.into());
            }
            let written = match input.write_all(&line).await {
                Ok(()) => input.flush().await,
                error => error,
            };
            if written.is_err() {
                // The program is ending. `receive` reads the rest of its output and records how it ended.
                write_failed.cancel();
            }
            Ok(())
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            if let Some(message) = self.waiting.pop_front() {
                return Some(message);
            }
            if self.noise > self.wire.limits.noise_lines {
                let reason =
                    "the program writes too many lines to standard output that are not messages";
                self.wire.end(ServerError::unavailable(reason));
                return None;
            }
            let write_failed = self.write_failed.clone();
            let read = match write_failed.is_cancelled() {
                false => tokio::select! {
                    biased;
                    read = self.read_line() => read,
                    () = write_failed.cancelled() => continue,
                },
                true => tokio::time::timeout(EXIT_WAIT, self.read_line())
                    .await
                    .unwrap_or(Ok(false)),
            };
            match read {
                Ok(true) => {
                    if let Some(message) = self.parse_line() {
                        return Some(message);
                    }
                }
                Ok(false) | Err(_) => {
                    self.record_end().await;
                    return None;
                }
            }
        }
    }

    /// Closes the program's input, waits, sends SIGTERM, waits, and kills the process group.
    async fn close(&mut self) -> Result<(), Self::Error> {
        let limits = self.wire.limits.clone();
        self.wire
            .end(ServerError::unavailable("the connection was closed"));
        let closed = tokio::time::timeout(limits.close_grace, async {
            // A blocked writer holds the lock; then the program is not reading its input anyway.
            self.input.lock().await.take();
            self.child.wait().await
        });
        if closed.await.is_err() {
            self.group.terminate();
            let _ = tokio::time::timeout(limits.terminate_grace, self.child.wait()).await;
        }
        // Also if the program ended by itself: its child processes may still run.
        self.group.kill();
        let _ = tokio::time::timeout(limits.terminate_grace, self.child.wait()).await;
        Ok(())
    }
}

impl Drop for StdioTransport {
    fn drop(&mut self) {
        self.drain.abort();
        // The reason was recorded before, if there is one.
        self.wire.ended.cancel();
    }
}

/// Whether a piece of a line contains the protocol key, as every message does. Other output, such as a
/// Python dictionary, may begin like a message.
fn names_protocol(piece: &[u8]) -> bool {
    let quoted = format!("\"{PROTOCOL_KEY}\"");
    memchr::memmem::find(piece, quoted.as_bytes()).is_some()
}

/// Reads a program's standard error, so that the program never blocks on it, and keeps the last lines.
async fn drain(mut from: impl AsyncRead + Unpin, into: Arc<StderrTail>) {
    let mut piece = vec![0; 4096];
    let mut line = Vec::new();
    while let Ok(read @ 1..) = from.read(&mut piece).await {
        for &byte in &piece[..read] {
            match byte {
                b'\n' => {
                    into.keep(&line);
                    line.clear();
                }
                byte if line.len() < 4 * KEPT_CHARACTERS => line.push(byte),
                _ => {}
            }
        }
    }
    into.keep(&line);
}
