//! Reads tasks from JSON Lines. Every invalid line is reported, so that a batch is corrected in one
//! step; the other lines can still be used.

use std::collections::HashMap;
use std::fmt;

use super::{RawTask, TaskError, TaskInput};

/// A line that is not a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskLineError {
    /// The number of the line; the first is 1.
    pub line: usize,
    /// Its problem.
    pub problem: TaskLineProblem,
}

/// The problem of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskLineProblem {
    /// It is not JSON, or its keys or values are not those of a task.
    Json {
        /// The place in the line, in bytes from 1.
        column: usize,
        /// The reason.
        reason: String,
    },
    /// A value violates a rule of tasks.
    Task(TaskError),
    /// An earlier line has the same id.
    Duplicate {
        /// The id.
        task_id: String,
        /// The line that had it first.
        first_line: usize,
    },
}

impl TaskLineError {
    /// The message with the place in the file, in the form `file:line:column`.
    #[must_use]
    pub fn in_file(&self, file: impl fmt::Display) -> String {
        let Self { line, problem } = self;
        match problem {
            TaskLineProblem::Json { column, reason } => format!("{file}:{line}:{column}: {reason}"),
            TaskLineProblem::Task(_) | TaskLineProblem::Duplicate { .. } => {
                format!("{file}:{line}: {problem}")
            }
        }
    }
}

impl fmt::Display for TaskLineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, problem } = self;
        match problem {
            TaskLineProblem::Json { column, reason } => {
                write!(f, "line {line}, column {column}: {reason}")
            }
            TaskLineProblem::Task(_) | TaskLineProblem::Duplicate { .. } => {
                write!(f, "line {line}: {problem}")
            }
        }
    }
}

impl fmt::Display for TaskLineProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json { reason, .. } => f.write_str(reason),
            Self::Task(error) => write!(f, "{error}"),
            Self::Duplicate {
                task_id,
                first_line,
            } => write!(
                f,
                "the task_id `{task_id}` is already used on line {first_line}; give every task its own"
            ),
        }
    }
}

impl std::error::Error for TaskLineError {}

/// The lines of a text of tasks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TaskLines {
    /// The valid tasks, in order, each with its line. Of tasks with the same id only the first is
    /// included.
    pub tasks: Vec<(usize, TaskInput)>,
    /// Every line that is not a task, and every task with the id of an earlier line.
    pub errors: Vec<TaskLineError>,
}

/// Reads one task from each line that is not blank.
#[must_use]
pub fn read_tasks(text: &str) -> TaskLines {
    let mut tasks = Vec::new();
    let mut errors = Vec::new();
    let mut first_lines = HashMap::new();
    // Some editors write a byte order mark first.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = text.lines().enumerate();
    for (index, content) in lines.filter(|(_, content)| !content.trim().is_empty()) {
        let line = index + 1;
        let mut report = |problem| errors.push(TaskLineError { line, problem });
        // Serde would also accept an array of the values in order, which is not intended.
        if !content.trim_start().starts_with('{') {
            let column = content.len() - content.trim_start().len() + 1;
            let reason = "a task must be a JSON object, which starts with {".to_owned();
            report(TaskLineProblem::Json { column, reason });
            continue;
        }
        let raw: RawTask = match serde_json::from_str(content) {
            Ok(raw) => raw,
            Err(error) => {
                report(json_problem(&error));
                continue;
            }
        };
        // Only a valid task reserves its id.
        let first_line = first_lines.get(&raw.task_id).copied();
        if let Some(first_line) = first_line {
            report(TaskLineProblem::Duplicate {
                task_id: raw.task_id.clone(),
                first_line,
            });
        }
        let task_id = raw.task_id.clone();
        match TaskInput::try_from(raw) {
            Ok(task) if first_line.is_none() => {
                first_lines.insert(task_id, line);
                tasks.push((line, task));
            }
            Ok(_) => {}
            Err(error) => report(TaskLineProblem::Task(error)),
        }
    }
    TaskLines { tasks, errors }
}

fn json_problem(error: &serde_json::Error) -> TaskLineProblem {
    let message = error.to_string();
    // Serde's message ends with a place whose line is always 1, which would be misleading.
    let place = format!(" at line {} column {}", error.line(), error.column());
    TaskLineProblem::Json {
        column: error.column().max(1),
        reason: message.strip_suffix(&place).unwrap_or(&message).to_owned(),
    }
}
