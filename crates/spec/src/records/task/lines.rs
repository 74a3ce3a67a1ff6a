//! Tasks from a text with one in each line (JSON Lines). Every line that is wrong is reported, so
//! that a batch is corrected once; the others can be used all the same.

use std::collections::HashMap;
use std::fmt;

use super::{RawTask, TaskError, TaskInput};

/// A line that is no task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskLineError {
    /// Which line; the first is 1.
    pub line: usize,
    /// What is wrong with it.
    pub problem: TaskLineProblem,
}

/// What is wrong with a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskLineProblem {
    /// It is no JSON, or has other keys or values than a task.
    Json {
        /// Where in the line, in bytes from 1.
        column: usize,
        /// What was wrong there.
        reason: String,
    },
    /// A value breaks a rule of tasks.
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
    /// What is wrong, with the place in the file as editors know it.
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
                "the task_id `{task_id}` is that of line {first_line}; every task has its own"
            ),
        }
    }
}

impl std::error::Error for TaskLineError {}

/// What stands in a text of tasks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TaskLines {
    /// The tasks that can be used, in order, each with its line. Of those with the same id it is the
    /// first.
    pub tasks: Vec<(usize, TaskInput)>,
    /// Every line that is no task, and every task whose id an earlier line has.
    pub errors: Vec<TaskLineError>,
}

/// Reads one task from each line that is not blank.
#[must_use]
pub fn read_tasks(text: &str) -> TaskLines {
    let mut tasks = Vec::new();
    let mut errors = Vec::new();
    let mut first_lines = HashMap::new();
    // Editors on Windows put a mark of three bytes first that is no part of the text.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = text.lines().enumerate();
    for (index, content) in lines.filter(|(_, content)| !content.trim().is_empty()) {
        let line = index + 1;
        let mut refuse = |problem| errors.push(TaskLineError { line, problem });
        // An array of the values in order would be read as well, and nobody means one.
        if !content.trim_start().starts_with('{') {
            let column = content.len() - content.trim_start().len() + 1;
            let reason = "a task is a JSON object, which starts with {".to_owned();
            refuse(TaskLineProblem::Json { column, reason });
            continue;
        }
        let raw: RawTask = match serde_json::from_str(content) {
            Ok(raw) => raw,
            Err(error) => {
                refuse(json_problem(&error));
                continue;
            }
        };
        // Only a task that can be used has its id to itself.
        let first_line = first_lines.get(&raw.task_id).copied();
        if let Some(first_line) = first_line {
            refuse(TaskLineProblem::Duplicate {
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
            Err(error) => refuse(TaskLineProblem::Task(error)),
        }
    }
    TaskLines { tasks, errors }
}

fn json_problem(error: &serde_json::Error) -> TaskLineProblem {
    let message = error.to_string();
    // The message ends with a place whose line is always the first, which would mislead.
    let place = format!(" at line {} column {}", error.line(), error.column());
    TaskLineProblem::Json {
        column: error.column().max(1),
        reason: message.strip_suffix(&place).unwrap_or(&message).to_owned(),
    }
}
