//! Whether an answer is right, where something can tell: the answer that a task expects, or a command of
//! the operator's.

use std::io;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use windlass_core::run::Run;

/// How long a command may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A command that says whether the answer of a run is right. It reads one JSON object with the run, the
/// task and the response, and ends with 0 if it is, with 1 if it is not, and with anything else if that
/// cannot be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checker {
    /// The program and its arguments; there is at least the program.
    pub command: Vec<String>,
}

/// Whether the answer of a run is right, if something can tell, and why the operator's command could not.
pub(super) async fn checked(
    checker: Option<&Checker>,
    run: &Run,
) -> (Option<bool>, Option<String>) {
    let expected = run.task().metadata.get("expected").and_then(Value::as_str);
    if let Some(expected) = expected
        && !answer_matches(expected, run.response().answer.as_str())
    {
        return (Some(false), None);
    }
    let told = match checker {
        Some(checker) => checker.ask(run).await,
        None => Ok(None),
    };
    let (told, warning) = match told {
        Ok(told) => (told, None),
        Err(error) => (
            None,
            Some(format!("the checker could not be asked: {error}")),
        ),
    };
    (told.or(expected.map(|_| true)), warning)
}

/// Whether an answer holds what is expected: its words, one after the other, whatever their case.
#[must_use]
pub fn answer_matches(expected: &str, answer: &str) -> bool {
    let words = |text: &str| -> Vec<String> {
        let words = text.split(|c: char| !c.is_alphanumeric());
        words
            .filter(|word| !word.is_empty())
            .map(str::to_lowercase)
            .collect()
    };
    let (expected, answer) = (words(expected), words(answer));
    expected.is_empty() || answer.windows(expected.len()).any(|part| part == expected)
}

impl Checker {
    async fn ask(&self, run: &Run) -> io::Result<Option<bool>> {
        let Some((program, arguments)) = self.command.split_first() else {
            return Ok(None);
        };
        let told = json!({
            "run": run.id(),
            "task": run.task().description,
            "metadata": run.task().metadata,
            "end": run.end(),
            "response": run.response(),
        });
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let stdin = child.stdin.take();
        let asked = async {
            if let Some(mut stdin) = stdin {
                // One that does not read to the end may still have an opinion.
                let _ = stdin.write_all(told.to_string().as_bytes()).await;
            }
            child.wait().await
        };
        let status = tokio::time::timeout(PATIENCE, asked).await??;
        Ok(match status.code() {
            Some(0) => Some(true),
            Some(1) => Some(false),
            _ => None,
        })
    }
}
