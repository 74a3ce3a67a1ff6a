//! Commands that the operator configures, such as the checker of answers. They get JSON on their standard input, and
//! are isolated like all programs.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use windlass_spawn::{Isolation, ProcessGroup};
use windlass_spec::ProgramAccess;
use windlass_tools::{CommandFiles, FileSnapshot};

/// The environment variables that every command gets. All others must be listed.
const ALWAYS_PASSED: [&str; 3] = ["PATH", "HOME", "LANG"];

/// A command that the operator configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperatorCommand {
    /// The program and its arguments; never empty.
    pub command: Vec<String>,
    /// Where it runs; the current directory if it is empty. A program with a slash in its name is found from there.
    pub directory: PathBuf,
    /// The names of the environment variables it gets, besides `PATH`, `HOME` and `LANG`.
    pub environment: Vec<String>,
    /// The files that it executes, as they were when the configuration was read ([`OperatorCommand::programs_of`]). It
    /// does not run if one changed since. `None` if they are not compared.
    pub programs: Option<FileSnapshot>,
}

impl OperatorCommand {
    /// The files that a command executes, as they are now.
    #[must_use]
    pub fn programs_of(command: &[String], directory: &Path) -> FileSnapshot {
        FileSnapshot::take(&CommandFiles::of(command, directory, &[]).programs)
    }

    /// A file that is not as it was, or that became part of the program.
    fn changed_program(&self) -> Option<PathBuf> {
        let programs = self.programs.as_ref()?;
        let changed = programs.changes().into_keys().next();
        changed.or_else(|| {
            let now = CommandFiles::of(&self.command, &self.directory, &[]).programs;
            now.into_iter().find(|path| !programs.has(path))
        })
    }

    /// Runs the command with this input, and with these variables in addition. What it prints is dropped, and what it
    /// started ends with it.
    ///
    /// # Errors
    /// If one of its programs changed, it cannot be isolated or started, or it does not end in time.
    pub async fn run(
        &self,
        input: &[u8],
        variables: &[(&str, &str)],
        timeout: Duration,
        isolation: &Isolation,
    ) -> io::Result<ExitStatus> {
        let Some((program, arguments)) = self.command.split_first() else {
            return Err(io::Error::other("the command is empty"));
        };
        if let Some(path) = self.changed_program() {
            let message = format!(
                "its program `{}` changed since the configuration was read",
                path.display()
            );
            return Err(io::Error::other(message));
        }
        let mut command = match self.directory == Path::new("") {
            true => Command::new(program),
            false => {
                let directory = std::path::absolute(&self.directory)?;
                let mut command = match program.contains('/') {
                    true => Command::new(directory.join(program)),
                    false => Command::new(program),
                };
                command.current_dir(directory);
                command
            }
        };
        let named = self.environment.iter().map(String::as_str);
        let passed = ALWAYS_PASSED.into_iter().chain(named);
        command
            .args(arguments)
            .env_clear()
            .envs(passed.filter_map(|name| Some((name, std::env::var_os(name)?))))
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        isolation
            .confine(&mut command, &ProgramAccess::default())
            .map_err(io::Error::other)?;
        let mut command = tokio::process::Command::from(command);
        let mut child = command.kill_on_drop(true).spawn()?;
        // What it started ends with it.
        let _group = ProcessGroup::of(child.id());
        let stdin = child.stdin.take();
        let exited = async {
            if let Some(mut stdin) = stdin {
                // A command that does not read all of its input may still return a verdict.
                let _ = stdin.write_all(input).await;
            }
            child.wait().await
        };
        tokio::time::timeout(timeout, exited).await?
    }
}
