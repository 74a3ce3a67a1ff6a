//! Tools that are programs. A program is started from a list of words, never through a shell, so no
//! argument of a model can become a command. It reads the arguments as JSON from its standard input
//! and writes the result to its standard output. It gets few environment variables and a process
//! group of its own, and nothing of that group outlives the call.

mod group;

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, Command};
use windlass_spec::{ErrorCategory, Type};

use crate::error::ToolError;
use crate::output::{redacted, too_large, value};
use crate::tool::CallContext;
pub use group::ProcessGroup;

/// What every program gets of the environment. All else must be named.
const ALWAYS_PASSED: [&str; 3] = ["PATH", "HOME", "LANG"];

/// Where programs are looked for if the environment does not say.
const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// How much of the end of the standard error is kept for the operator.
const KEPT_OF_STDERR: usize = 8 * 1024;

/// How much every pipe takes before anybody reads from it.
const ROOM_IN_A_PIPE: usize = 4096;

/// How long a program that was asked to end may take before it is killed.
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
}

/// Words that make no command.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommandLineError {
    /// There are none, or the first is empty.
    #[error("a command is a list of words, the first of which is a program")]
    NoProgram,
    /// No program can be given a zero byte.
    #[error("the word {0:?} has a zero byte in it")]
    ZeroByte(String),
}

impl CommandLine {
    /// The program and its arguments, each a word of its own.
    ///
    /// # Errors
    /// If there is no program, or a word cannot be given to one.
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
            }),
        }
    }

    /// The directory it runs in, instead of the one Windlass runs in. A program named with a slash
    /// in it is looked for from there.
    #[must_use]
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// The names of the environment variables it gets, besides `PATH`, `HOME` and `LANG`. Those that
    /// are not set are left out.
    #[must_use]
    pub fn environment<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.environment = names.into_iter().map(Into::into).collect();
        self
    }

    /// Runs it once.
    pub(crate) async fn run(
        &self,
        arguments: &Value,
        promised: Option<&Type>,
        context: &CallContext,
    ) -> Result<Value, ToolError> {
        let arguments = arguments.to_string();
        let mut child = self
            .spawn(arguments.as_bytes())
            .map_err(|error| self.not_started(&error))?;
        let group = ProcessGroup::of(&child);
        let (input, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (mut output, mut complaints) = (Vec::new(), Vec::new());
        let ended = {
            let wait = async {
                let status = child.wait().await;
                // What it left behind would keep the pipes open and outlive the call.
                group.kill().await;
                status.map_err(|error| self.lost(&error))
            };
            let write = async {
                write(input, arguments.as_bytes()).await;
                Ok(())
            };
            let read = read(stdout, &mut output, context.max_output_bytes);
            let complain = async {
                read_end(stderr, &mut complaints).await;
                Ok(())
            };
            let mut all = std::pin::pin!(async { tokio::try_join!(wait, write, read, complain) });
            tokio::select! {
                biased;
                ended = &mut all => ended.map(|(status, ..)| status),
                () = context.stop.cancelled() => {
                    group.terminate().await;
                    // Whether it uses this time or not, what is left of it is killed below.
                    let _ = tokio::time::timeout(GRACE, &mut all).await;
                    Err(ToolError::of(ErrorCategory::Cancelled, "the call was stopped"))
                }
            }
        };
        match ended {
            Ok(status) => self.judge(status, &output, &complaints, promised),
            Err(error) => {
                group.kill().await;
                // It is dead; this only takes it off the list of processes.
                let _ = child.wait().await;
                Err(error)
            }
        }
    }

    /// Starts the program. Arguments that it does not find in its input then are written later.
    fn spawn(&self, arguments: &[u8]) -> io::Result<Child> {
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
            .stdin(input(arguments)?)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
    }

    fn variables(&self) -> Vec<(&str, OsString)> {
        let mut variables: Vec<(&str, OsString)> = vec![("PATH", USUAL_PATH.into())];
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

    fn judge(
        &self,
        status: ExitStatus,
        output: &[u8],
        complaints: &[u8],
        promised: Option<&Type>,
    ) -> Result<Value, ToolError> {
        let complaints = String::from_utf8_lossy(complaints);
        let complaints = match complaints.trim() {
            "" => "it wrote nothing to its standard error".to_owned(),
            text => format!("its standard error ends with:\n{text}"),
        };
        if !status.success() {
            let message = format!("`{self}` ended with {status}; {complaints}");
            let message = redacted(message, &self.secrets());
            return Err(ToolError::foreign(ErrorCategory::ToolFailure, message));
        }
        value(output, promised).map_err(|error| {
            let message = format!("`{self}`: {error}; {complaints}");
            ToolError::foreign(error.category(), redacted(message, &self.secrets()))
        })
    }

    fn not_started(&self, error: &io::Error) -> ToolError {
        let advice = match error.kind() {
            io::ErrorKind::NotFound => {
                "; check that the program is installed and that its directory exists"
            }
            io::ErrorKind::PermissionDenied => "; check that the file may be executed",
            _ => "",
        };
        let message = format!("`{self}` could not be started: {error}{advice}");
        ToolError::foreign(ErrorCategory::ToolFailure, message).without_effect()
    }

    fn lost(&self, error: &io::Error) -> ToolError {
        let message = format!("`{self}` was lost sight of: {error}");
        ToolError::foreign(ErrorCategory::Internal, message)
    }
}

/// The program alone: its arguments may be long, and are in the library file.
impl fmt::Display for CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.program)
    }
}

/// The program's input. It holds the arguments from the start if a pipe has room for them: should this
/// process die, the program still reads what it was called with, and not nothing.
fn input(arguments: &[u8]) -> io::Result<Stdio> {
    if arguments.len() > ROOM_IN_A_PIPE {
        return Ok(Stdio::piped());
    }
    let (input, mut output) = io::pipe()?;
    output.write_all(arguments)?;
    Ok(input.into())
}

/// Gives the program the arguments that are not in its input yet. It need not read them: then the pipe
/// breaks, which is no error.
async fn write(input: Option<ChildStdin>, arguments: &[u8]) {
    if let Some(mut input) = input {
        let _ = input.write_all(arguments).await;
        let _ = input.shutdown().await;
    }
}

/// Reads the output to its end, or to where it is too much.
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

/// Reads to the end and keeps the last part. All of it is read, or the program would block.
async fn read_end(source: Option<impl AsyncRead + Unpin>, kept: &mut Vec<u8>) {
    let Some(mut source) = source else {
        return;
    };
    let mut part = [0; 4096];
    while let Ok(length @ 1..) = source.read(&mut part).await {
        kept.extend(part.iter().take(length));
        kept.drain(..kept.len().saturating_sub(KEPT_OF_STDERR));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_program_has_its_arguments_even_if_whoever_called_it_dies() {
        let command = CommandLine::new(["cat"]).unwrap();
        for size in [0, 1, ROOM_IN_A_PIPE] {
            let arguments = vec![b'x'; size];
            // Whoever is dead writes nothing any more.
            let child = command.spawn(&arguments).unwrap();
            assert!(child.stdin.is_none(), "{size}");
            let output = child.wait_with_output().await.unwrap();
            assert_eq!(output.stdout, arguments);
        }
        let large = vec![b'x'; ROOM_IN_A_PIPE + 1];
        assert!(command.spawn(&large).unwrap().stdin.is_some());
    }
}
