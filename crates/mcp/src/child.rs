//! A server that is a program: started without a shell in a process group of its own, with few
//! variables, spoken to in lines, and ended with everything it started.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::Mutex as AsyncMutex;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use windlass_spec::server::{CommandTransport, Given};
use windlass_spec::{Effect, ErrorCategory};
use windlass_tools::ProcessGroup;

use crate::client::{CallError, Inbound, Lookup, ServerError, Wire, lock, shown};
use crate::program;

/// What every program gets of the environment. All else must be named.
const ALWAYS_PASSED: [&str; 3] = ["PATH", "HOME", "LANG"];

/// Where programs are looked for if the environment does not say.
const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// How many lines of the standard error are kept, and how many characters of each.
const KEPT_LINES: usize = 20;
const KEPT_CHARACTERS: usize = 300;

/// How long a program whose output ended is waited for, to say how it ended.
const UNTIL_REAPED: Duration = Duration::from_millis(300);

/// What every message has.
const PROTOCOL: &str = "jsonrpc";

/// How much of either end of a line that is too long is looked at for whose it is.
const ENDS: usize = 512;

/// A running program that is spoken to in lines.
pub(crate) struct Lines {
    child: Child,
    group: ProcessGroup,
    input: Arc<AsyncMutex<Option<ChildStdin>>>,
    /// Cancelled when the program does not take what is written to it any more.
    broke: CancellationToken,
    output: BufReader<ChildStdout>,
    line: Line,
    noise: usize,
    waiting: VecDeque<ServerJsonRpcMessage>,
    last_words: Arc<LastWords>,
    drain: JoinHandle<()>,
    wire: Arc<Wire>,
}

/// A line as far as it was read.
#[derive(Default)]
struct Line {
    bytes: Vec<u8>,
    /// The beginning and the latest end of a line that is too long to keep.
    too_long: Option<(Vec<u8>, Vec<u8>)>,
}

/// The end of what a program wrote to its standard error.
#[derive(Default)]
pub(crate) struct LastWords(Mutex<VecDeque<String>>);

impl LastWords {
    /// The sentence to add to an error.
    pub(crate) fn sentence(&self) -> String {
        let lines = lock(&self.0);
        match lines.is_empty() {
            true => String::new(),
            false => {
                let text: Vec<&str> = lines.iter().map(String::as_str).collect();
                format!("; it last wrote: {}", text.join(" | "))
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

impl Lines {
    /// Starts the program, which is this file.
    pub(crate) fn start(
        settings: &CommandTransport,
        executable: &Path,
        lookup: &Lookup,
        wire: Arc<Wire>,
    ) -> Result<Self, ServerError> {
        let mut command = Command::new(executable);
        command
            // Some programs go by what they are called.
            .arg0(&settings.program)
            .args(&settings.arguments)
            .env_clear()
            .env("PATH", USUAL_PATH)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
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
        let mut child = command.spawn().map_err(|error| {
            let program = &settings.program;
            ServerError::unavailable(format!("cannot start `{program}`: {error}"))
        })?;
        let group = ProcessGroup::of(&child);
        let (Some(input), Some(output), Some(errors)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(ServerError::unavailable("the program has no pipes"));
        };
        let last_words = Arc::new(LastWords::default());
        let drain = tokio::spawn(drain(errors, Arc::clone(&last_words)));
        Ok(Self {
            child,
            group,
            input: Arc::new(AsyncMutex::new(Some(input))),
            broke: CancellationToken::new(),
            output: BufReader::with_capacity(64 * 1024, output),
            line: Line::default(),
            noise: 0,
            waiting: VecDeque::new(),
            last_words,
            drain,
            wire,
        })
    }

    /// What it wrote to its standard error, also after this was given away.
    pub(crate) fn last_words(&self) -> Arc<LastWords> {
        Arc::clone(&self.last_words)
    }

    /// Reads to the end of a line. Cancelled in the middle, the next call goes on.
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

    /// What the line that was read says, if it is for the library.
    fn read(&mut self) -> Option<ServerJsonRpcMessage> {
        let line = std::mem::take(&mut self.line);
        if let Some((beginning, end)) = line.too_long {
            let most = self.wire.limits.message_bytes;
            let error = format!("the answer of the server is larger than {most} bytes");
            return self.broken(&[&beginning, &end], &error);
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
                    &text[..text.len().min(ENDS)],
                    &text[text.len().saturating_sub(ENDS)..],
                ];
                if !text.starts_with(b"{") || !ends.iter().any(|end| speaks_protocol(end)) {
                    self.noise += 1;
                    return None;
                }
                let error = format!("the answer of the server cannot be read: {error}");
                return self.broken(&ends, &error);
            }
        };
        // Programs also log in JSON, with ids of their own.
        if message.get(PROTOCOL).is_none() {
            self.noise += 1;
            return None;
        }
        let message = match self.wire.take_in(message, false) {
            Inbound::Taken => {
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
                    let error = format!("the server does not keep to the protocol: {error}");
                    self.broken(&[id.as_bytes()], &error)
                }
                None => {
                    self.noise += 1;
                    None
                }
            },
        }
    }

    /// Ends the requests that a message that cannot be read was the answer to.
    fn broken(&mut self, pieces: &[&[u8]], why: &str) -> Option<ServerJsonRpcMessage> {
        self.noise += 1;
        let error = CallError::new(ErrorCategory::InvalidOutput, Effect::Unknown, why);
        let data = ErrorData::new(ErrorCode::INTERNAL_ERROR, why.to_owned(), None);
        let mut ended = self
            .wire
            .unreadable(pieces, &error)
            .into_iter()
            .map(|id| ServerJsonRpcMessage::error(data.clone(), Some(RequestId::Number(id))));
        let first = ended.next();
        self.waiting.extend(ended);
        first
    }

    /// Says how the program ended.
    async fn ended(&mut self) {
        let how = match tokio::time::timeout(UNTIL_REAPED, self.child.wait()).await {
            Ok(Ok(status)) => format!("the program ended ({status})"),
            _ => "the program closed its output".to_owned(),
        };
        // What it wrote last may still be on its way.
        if !self.drain.is_finished() {
            let _ = tokio::time::timeout(UNTIL_REAPED, &mut self.drain).await;
        }
        let words = self.last_words.sentence();
        self.wire
            .end(ServerError::unavailable(format!("{how}{words}")));
    }
}

/// The file that is started for a server: found once, where the program itself would look, and then
/// looked at and started by its path.
pub(crate) fn executable(
    settings: &CommandTransport,
    lookup: &Lookup,
) -> Result<PathBuf, ServerError> {
    let path = match settings.environment.get("PATH") {
        Some(given) => value("PATH", given, lookup)?.into(),
        None => std::env::var_os("PATH").unwrap_or_else(|| USUAL_PATH.into()),
    };
    let found = program::find(settings, &path);
    found.map_err(|error| ServerError::unavailable(error.to_string()))
}

/// The value of a variable that the settings name.
fn value(name: &str, given: &Given, lookup: &Lookup) -> Result<String, ServerError> {
    given.value(|name| lookup(name)).map_err(|error| {
        ServerError::new(
            ErrorCategory::Authentication,
            format!("{error} (for its variable `{name}`)"),
        )
    })
}

impl Line {
    fn push(&mut self, bytes: &[u8], most: usize) {
        match &mut self.too_long {
            None if self.bytes.len() + bytes.len() <= most => self.bytes.extend_from_slice(bytes),
            None => {
                let mut kept = std::mem::take(&mut self.bytes);
                kept.extend_from_slice(&bytes[..bytes.len().min(ENDS)]);
                kept.truncate(ENDS);
                self.too_long = Some((kept, Vec::new()));
                self.push_end(bytes);
            }
            Some(_) => self.push_end(bytes),
        }
    }

    fn push_end(&mut self, bytes: &[u8]) {
        if let Some((_, end)) = &mut self.too_long {
            end.extend_from_slice(&bytes[bytes.len().saturating_sub(ENDS)..]);
            let surplus = end.len().saturating_sub(ENDS);
            end.drain(..surplus);
        }
    }
}

impl Transport<RoleClient> for Lines {
    type Error = std::io::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let input = Arc::clone(&self.input);
        let wire = Arc::clone(&self.wire);
        let broke = self.broke.clone();
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let mut input = input.lock().await;
            let Some(input) = input.as_mut() else {
                return Err(std::io::ErrorKind::NotConnected.into());
            };
            if !wire.sends(&message) {
                return Err(std::io::ErrorKind::Interrupted.into());
            }
            let written = match input.write_all(&line).await {
                Ok(()) => input.flush().await,
                error => error,
            };
            if written.is_err() {
                // The program is ending. Whoever reads from it hears its last words and says how.
                broke.cancel();
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
                let why = "the program writes other things than messages to its standard output";
                self.wire.end(ServerError::unavailable(why));
                return None;
            }
            let broke = self.broke.clone();
            let read = match broke.is_cancelled() {
                false => tokio::select! {
                    biased;
                    read = self.read_line() => read,
                    () = broke.cancelled() => continue,
                },
                true => tokio::time::timeout(UNTIL_REAPED, self.read_line())
                    .await
                    .unwrap_or(Ok(false)),
            };
            match read {
                Ok(true) => {
                    if let Some(message) = self.read() {
                        return Some(message);
                    }
                }
                Ok(false) | Err(_) => {
                    self.ended().await;
                    return None;
                }
            }
        }
    }

    /// Closes the program's input, waits, asks it to end, waits, and kills what is left of it.
    async fn close(&mut self) -> Result<(), Self::Error> {
        let limits = self.wire.limits.clone();
        self.wire
            .end(ServerError::unavailable("the connection was closed"));
        let closed = tokio::time::timeout(limits.close_grace, async {
            // A writer that is stuck holds the input; then the program does not read it anyway.
            self.input.lock().await.take();
            self.child.wait().await
        });
        if closed.await.is_err() {
            self.group.terminate().await;
            let _ = tokio::time::timeout(limits.terminate_grace, self.child.wait()).await;
        }
        // Also when it ended by itself: what it started may not have.
        self.group.kill().await;
        let _ = tokio::time::timeout(limits.terminate_grace, self.child.wait()).await;
        Ok(())
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        self.drain.abort();
        // Why it ended is told by whoever noticed; here it is only over.
        self.wire.ended.cancel();
    }
}

/// Whether a piece of a line names the protocol, as every message does: what is printed besides may look
/// like the beginning of one, such as a dictionary of Python.
fn speaks_protocol(piece: &[u8]) -> bool {
    let quoted = format!("\"{PROTOCOL}\"");
    memchr::memmem::find(piece, quoted.as_bytes()).is_some()
}

/// Reads what a program writes to its standard error, so that it never waits for a reader, and keeps
/// the end of it.
async fn drain(mut from: impl AsyncRead + Unpin, into: Arc<LastWords>) {
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
