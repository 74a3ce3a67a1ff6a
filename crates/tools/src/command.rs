//! Tools that are programs. A program is started from a list of words, never through a shell, so no
//! argument of a model can become a command. It reads the arguments as JSON from its standard input
//! and writes the result to its standard output. It gets few environment variables, its own session, and no
//! access to keys and journals ([`Isolation`]). No process of its group outlives the call.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin};
use windlass_spawn::{ConfinementError, Isolation, ProcessGroup};
use windlass_spec::{ErrorCategory, ProgramAccess, Type};

use crate::error::ToolError;
use crate::output::{redacted, too_large, value};
use crate::program_files::CommandFiles;
use crate::tool::CallContext;

/// The environment variables that every program gets. All others must be listed.
const ALWAYS_PASSED: [&str; 3] = ["PATH", "HOME", "LANG"];

/// The variable with the proof of an approval that the program asked for, a signed statement.
const APPROVAL_VARIABLE: &str = "WINDLASS_APPROVAL";

/// The argument with the same statement, for programs that read only their standard input.
const APPROVAL_ARGUMENT: &str = "windlass_approval";

/// The `PATH` if the environment has none.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// How many bytes at the end of the standard error are kept for the operator.
const MAX_STDERR_BYTES: usize = 8 * 1024;

/// How many bytes every pipe buffers before a process reads from it.
const PIPE_BUFFER: usize = 4096;

/// The time between TERM and KILL.
const GRACE: Duration = Duration::from_secs(2);

/// A program with its arguments: what a command tool runs.
///
/// ```
/// use windlass_tools::{CommandLine, Tool};
///
/// let tool = CommandLine::new(["wc", "-c"]).map(|command| {
///     Tool::builder("size")
///         .description("Says how long the arguments are")
///         .signature("(text: Text) --> IO Int")
///         .command(command.environment(["LC_ALL"]))
///         .build()
/// });
/// # assert!(tool.unwrap().is_ok());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine {
    program: String,
    arguments: Vec<String>,
    directory: Option<PathBuf>,
    environment: Vec<String>,
    access: ProgramAccess,
}

/// Why a program did not start.
#[derive(Debug, thiserror::Error)]
enum StartError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Confinement(#[from] ConfinementError),
}

/// An invalid list of command words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommandLineError {
    /// There are none, or the first is empty.
    #[error("a command is a list of words, the first of which is a program")]
    NoProgram,
    /// Arguments of programs cannot contain a zero byte.
    #[error("the word {0:?} has a zero byte in it")]
    ZeroByte(String),
}

impl CommandLine {
    /// The program and its arguments, one word each.
    ///
    /// # Errors
    /// If there is no program, or a word has a zero byte.
    pub fn new<W: Into<String>>(
        words: impl IntoIterator<Item = W>,
    ) -> Result<Self, CommandLineError> {
        let mut words = words.into_iter().map(Into::into);
        let program = words
            .next()
            .filter(|program| !program.trim().is_empty())
            .ok_or(CommandLineError::NoProgram)?;
        let arguments: Vec<String> = words.collect();
        match std::iter::once(&program)
            .chain(&arguments)
            .find(|word| word.contains('\0'))
        {
            Some(word) => Err(CommandLineError::ZeroByte(word.clone())),
            None => Ok(Self {
                program,
                arguments,
                directory: None,
                environment: Vec::new(),
                access: ProgramAccess::default(),
            }),
        }
    }

    /// Sets the working directory. A program name that contains a slash is relative to it.
    #[must_use]
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// Sets the names of the environment variables it gets, besides `PATH`, `HOME` and `LANG`. Those that
    /// are not set are omitted.
    #[must_use]
    pub fn environment<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.environment = names.into_iter().map(Into::into).collect();
        self
    }

    /// Sets what it needs of the machine. Files are relative to the working directory.
    #[must_use]
    pub fn access(mut self, access: ProgramAccess) -> Self {
        self.access = access;
        self
    }

    /// The program and its arguments.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let program = std::iter::once(&self.program);
        program.chain(&self.arguments).cloned().collect()
    }

    /// The names of the environment variables it gets, besides `PATH`, `HOME` and `LANG`.
    #[must_use]
    pub fn variables_named(&self) -> &[String] {
        &self.environment
    }

    /// The files that it names.
    #[must_use]
    pub fn files(&self) -> CommandFiles {
        let directory = self.directory.as_deref().unwrap_or(Path::new(""));
        CommandFiles::of(&self.words(), directory, &self.access.writable_files)
    }

    /// Runs it once.
    pub(crate) async fn run(
        &self,
        arguments: &Value,
        declared: Option<&Type>,
        context: &CallContext,
    ) -> Result<Value, ToolError> {
        let approval = context.approval.as_ref();
        let approval = approval.and_then(|approval| approval.signed.as_deref());
        let arguments = with_approval(arguments, approval);
        let mut child = self
            .spawn(arguments.as_bytes(), approval, &context.isolation)
            .map_err(|error| self.not_started(&error))?;
        let group = ProcessGroup::of(child.id());
        let (input, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (mut output, mut stderr_text) = (Vec::new(), Vec::new());
        let ended = {
            let wait = async {
                let status = child.wait().await;
                // Processes that it left behind would keep the pipes open and outlive the call.
                group.kill();
                status.map_err(|error| self.wait_failed(&error))
            };
            let write = async {
                write(input, arguments.as_bytes()).await;
                Ok(())
            };
            let read = read(stdout, &mut output, context.max_output_bytes);
            let read_stderr = async {
                read_end(stderr, &mut stderr_text).await;
                Ok(())
            };
            let mut all =
                std::pin::pin!(async { tokio::try_join!(wait, write, read, read_stderr) });
            tokio::select! {
                biased;
                ended = &mut all => ended.map(|(status, ..)| status).map_err(Some),
                () = context.stop.cancelled() => {
                    group.terminate();
                    // Processes that are left after this time are killed below.
                    let _ = tokio::time::timeout(GRACE, &mut all).await;
                    Err(None)
                }
            }
        };
        match ended {
            Ok(status) => self.result_of(status, &output, &stderr_text, declared),
            Err(error) => {
                group.kill();
                // It is dead; this only reaps the process.
                let _ = child.wait().await;
                Err(error.unwrap_or_else(|| self.stopped(&output, &stderr_text)))
            }
        }
    }

    /// Starts the program. Arguments that do not fit into its input pipe are written later.
    fn spawn(
        &self,
        arguments: &[u8],
        approval: Option<&str>,
        isolation: &Isolation,
    ) -> Result<Child, StartError> {
        let mut command = match &self.directory {
            Some(directory) => {
                let directory = std::path::absolute(directory)?;
                let mut command = if self.program.contains('/') {
                    Command::new(directory.join(&self.program))
                } else {
                    Command::new(&self.program)
                };
                command.current_dir(directory);
                command
            }
            None => Command::new(&self.program),
        };
        command
            .args(&self.arguments)
            .env_clear()
            .envs(self.variables())
            .envs(approval.map(|statement| (APPROVAL_VARIABLE, statement)))
            .stdin(input(arguments)?)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        isolation.confine(&mut command, &self.access)?;
        let mut command = tokio::process::Command::from(command);
        Ok(command.kill_on_drop(true).spawn()?)
    }

    fn variables(&self) -> Vec<(&str, OsString)> {
        let mut variables: Vec<(&str, OsString)> = vec![("PATH", DEFAULT_PATH.into())];
        let named = self.environment.iter().map(String::as_str);
        let set = ALWAYS_PASSED.into_iter().chain(named);
        variables.extend(set.filter_map(|name| Some((name, std::env::var_os(name)?))));
        variables
    }

    /// The values that were passed by name, which may be secrets.
    fn secrets(&self) -> Vec<String> {
        let values = self.environment.iter().map(std::env::var);
        values.filter_map(Result::ok).collect()
    }

    fn result_of(
        &self,
        status: ExitStatus,
        output: &[u8],
        stderr_text: &[u8],
        declared: Option<&Type>,
    ) -> Result<Value, ToolError> {
        let stderr_text = String::from_utf8_lossy(stderr_text);
        let stderr_text = match stderr_text.trim() {
            "" => "it wrote nothing to its standard error".to_owned(),
            text => format!("its standard error ends with:\n{text}"),
        };
        if !status.success() {
            let message = format!("`{self}` ended with {status}; {stderr_text}");
            let message = redacted(message, &self.secrets());
            let error = ToolError::foreign(ErrorCategory::ToolFailure, message);
            // A program that a signal ended has not reported how far it got.
            return Err(match status.code() {
                Some(_) => error,
                None => error.interrupted(),
            });
        }
        value(output, declared).map_err(|error| {
            let message = format!("`{self}`: {error}; {stderr_text}");
            ToolError::foreign(error.category(), redacted(message, &self.secrets()))
        })
    }

    /// The error of a program that was stopped. Its message is what it wrote last.
    fn stopped(&self, output: &[u8], stderr_text: &[u8]) -> ToolError {
        let written = match stderr_text.trim_ascii() {
            [] => output.trim_ascii(),
            written => written,
        };
        let end = written.len().saturating_sub(MAX_STDERR_BYTES);
        let written = String::from_utf8_lossy(written.get(end..).unwrap_or_default());
        let message = redacted(written.into_owned(), &self.secrets());
        ToolError::foreign(ErrorCategory::Cancelled, message)
    }

    fn not_started(&self, error: &StartError) -> ToolError {
        let advice = match error {
            StartError::Io(error) if error.kind() == io::ErrorKind::NotFound => {
                "; check that the program is installed and that its directory exists"
            }
            StartError::Io(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                "; check that the file is executable, and that it is not outside the files it declares"
            }
            _ => "",
        };
        let message = format!("`{self}` could not be started: {error}{advice}");
        ToolError::foreign(ErrorCategory::ToolFailure, message).without_effect()
    }

    fn wait_failed(&self, error: &io::Error) -> ToolError {
        let message = format!("waiting for `{self}` failed: {error}");
        ToolError::foreign(ErrorCategory::Internal, message)
    }
}

/// Writes the program only: its arguments may be long, and are in the library file.
impl fmt::Display for CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.program)
    }
}

/// The arguments as JSON, with the proof of an approval if there is one.
fn with_approval(arguments: &Value, approval: Option<&str>) -> String {
    match (arguments, approval) {
        (Value::Object(arguments), Some(statement)) => {
            let mut arguments = arguments.clone();
            arguments.insert(APPROVAL_ARGUMENT.to_owned(), statement.into());
            Value::Object(arguments).to_string()
        }
        _ => arguments.to_string(),
    }
}

/// The program's input. It contains the arguments from the start if they fit into a pipe buffer. So the program
/// reads its arguments even if this process dies.
fn input(arguments: &[u8]) -> io::Result<Stdio> {
    if arguments.len() > PIPE_BUFFER {
        return Ok(Stdio::piped());
    }
    let (input, mut output) = io::pipe()?;
    output.write_all(arguments)?;
    Ok(input.into())
}

/// Writes the arguments that are not in the program's input yet. If the program does not read them, the pipe
/// breaks, which is not an error.
async fn write(input: Option<ChildStdin>, arguments: &[u8]) {
    if let Some(mut input) = input {
        let _ = input.write_all(arguments).await;
        let _ = input.shutdown().await;
    }
}

/// Reads the output to its end, or until it exceeds the limit.
async fn read(
    source: Option<impl AsyncRead + Unpin>,
    output: &mut Vec<u8>,
    max_bytes: usize,
) -> Result<(), ToolError> {
    let Some(source) = source else {
        return Ok(());
    };
    let one_more = u64::try_from(max_bytes)
        .unwrap_or(u64::MAX)
        .saturating_add(1);
    source
        .take(one_more)
        .read_to_end(output)
        .await
        .map_err(|error| {
            let message = format!("the output could not be read: {error}");
            ToolError::foreign(ErrorCategory::ToolFailure, message)
        })?;
    if output.len() > max_bytes {
        return Err(too_large(max_bytes));
    }
    Ok(())
}

/// Reads to the end and keeps the last part. It reads everything, because the program would block otherwise.
async fn read_end(source: Option<impl AsyncRead + Unpin>, kept: &mut Vec<u8>) {
    let Some(mut source) = source else {
        return;
    };
    let mut part = [0; 4096];
    while let Ok(length @ 1..) = source.read(&mut part).await {
        kept.extend(part.iter().take(length));
        kept.drain(..kept.len().saturating_sub(MAX_STDERR_BYTES));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_program_reads_its_arguments_even_if_its_caller_dies() {
        let command = CommandLine::new(["cat"]).unwrap();
        let isolation = Isolation::default();
        for size in [0, 1, PIPE_BUFFER] {
            let arguments = vec![b'x'; size];
            // Nothing is written after the start, as if the caller had died.
            let child = command.spawn(&arguments, None, &isolation).unwrap();
            assert!(child.stdin.is_none(), "{size}");
            let output = child.wait_with_output().await.unwrap();
            assert_eq!(output.stdout, arguments);
        }
        let large = vec![b'x'; PIPE_BUFFER + 1];
        let child = command.spawn(&large, None, &isolation).unwrap();
        assert!(child.stdin.is_some());
    }
}
