//! Reads a file of tasks, for `run --tasks` and `ab`. Invalid tasks are reported by file and line before the
//! first task starts, and skipped. The exit code then reports a failure.

use std::path::Path;

use anyhow::Context as _;
use windlass_service::DeclaredAgent;
use windlass_spec::{TaskInput, read_tasks};

use super::Outcome;
use super::terminal::eprint_line;

/// The valid tasks of a file.
pub(super) struct Tasks {
    pub(super) tasks: Vec<TaskInput>,
    /// Whether the file has invalid tasks, which are reported.
    pub(super) has_errors: bool,
}

impl Tasks {
    /// Reads a file and reports its invalid tasks.
    pub(super) fn read(file: &Path, chosen: &DeclaredAgent) -> anyhow::Result<Self> {
        let place = file.display();
        let text = std::fs::read_to_string(file)
            .with_context(|| format!("cannot read the tasks in `{place}`"))?;
        let read = read_tasks(&text);
        let mut errors: Vec<(usize, String)> = read
            .errors
            .iter()
            .map(|error| (error.line, error.in_file(place.to_string())))
            .collect();
        let known = chosen.tool_names();
        let mut tasks = Vec::new();
        for (line, task) in read.tasks {
            match task.check_tools(known.iter().copied()) {
                Ok(()) => tasks.push(task),
                Err(missing) => errors.extend(missing.into_iter().map(|tool| {
                    let id = &task.task_id;
                    (line, format!("{place}:{line}: task `{id}`: {tool}"))
                })),
            }
        }
        errors.sort_by_key(|(line, _)| *line);
        for (_, error) in &errors {
            eprint_line(error)?;
        }
        let has_errors = !errors.is_empty();
        anyhow::ensure!(
            !tasks.is_empty() || !has_errors,
            "no task in `{place}` is valid"
        );
        anyhow::ensure!(!tasks.is_empty(), "there are no tasks in `{place}`");
        if has_errors {
            let (count, all) = (tasks.len(), tasks.len() + invalid_lines(&errors));
            eprint_line(&format!(
                "{count} of {all} tasks in `{place}` are valid; only they run"
            ))?;
        }
        Ok(Self { tasks, has_errors })
    }

    /// Turns success into failure if the file has invalid tasks.
    pub(super) fn ended(&self, outcome: Outcome) -> Outcome {
        match (self.has_errors, outcome) {
            (true, Outcome::Done | Outcome::Code(0)) => Outcome::Failed,
            (_, outcome) => outcome,
        }
    }
}

/// Counts the lines with errors.
fn invalid_lines(errors: &[(usize, String)]) -> usize {
    let mut lines: Vec<usize> = errors.iter().map(|(line, _)| *line).collect();
    lines.dedup();
    lines.len()
}
