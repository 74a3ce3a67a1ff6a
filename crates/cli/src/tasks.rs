//! The tasks of a file, for `run --tasks` and `ab`. What cannot be used is named by file and line before the
//! first task is begun, and left out; the rest is done, and the exit code says that it was not all.

use std::path::Path;

use anyhow::Context as _;
use windlass_service::DeclaredAgent;
use windlass_spec::{TaskInput, read_tasks};

use super::Outcome;
use super::terminal::complain;

/// The tasks that can be used.
pub(super) struct Tasks {
    pub(super) tasks: Vec<TaskInput>,
    /// Whether there are others, which were named.
    pub(super) has_mistakes: bool,
}

impl Tasks {
    /// Reads a file and says what of it cannot be used.
    pub(super) fn read(file: &Path, chosen: &DeclaredAgent) -> anyhow::Result<Self> {
        let place = file.display();
        let text = std::fs::read_to_string(file)
            .with_context(|| format!("the tasks in `{place}` cannot be read"))?;
        let read = read_tasks(&text);
        let mut mistakes: Vec<(usize, String)> = read
            .errors
            .iter()
            .map(|error| (error.line, error.in_file(place.to_string())))
            .collect();
        let known = chosen.tool_names();
        let mut tasks = Vec::new();
        for (line, task) in read.tasks {
            match task.check_tools(known.iter().copied()) {
                Ok(()) => tasks.push(task),
                Err(missing) => mistakes.extend(missing.into_iter().map(|tool| {
                    let id = &task.task_id;
                    (line, format!("{place}:{line}: task `{id}`: {tool}"))
                })),
            }
        }
        mistakes.sort_by_key(|(line, _)| *line);
        for (_, mistake) in &mistakes {
            complain(mistake)?;
        }
        let has_mistakes = !mistakes.is_empty();
        anyhow::ensure!(
            !tasks.is_empty() || !has_mistakes,
            "none of the tasks in `{place}` can be used"
        );
        anyhow::ensure!(!tasks.is_empty(), "there are no tasks in `{place}`");
        if has_mistakes {
            let (count, all) = (tasks.len(), tasks.len() + unusable(&mistakes));
            complain(&format!(
                "{count} of {all} tasks in `{place}` can be used, and only they are"
            ))?;
        }
        Ok(Self {
            tasks,
            has_mistakes,
        })
    }

    /// What is told in the end: not all is well if something could not be used.
    pub(super) fn ended(&self, outcome: Outcome) -> Outcome {
        match (self.has_mistakes, outcome) {
            (true, Outcome::Done | Outcome::Code(0)) => Outcome::Failed,
            (_, outcome) => outcome,
        }
    }
}

/// How many lines have mistakes, each once.
fn unusable(mistakes: &[(usize, String)]) -> usize {
    let mut lines: Vec<usize> = mistakes.iter().map(|(line, _)| *line).collect();
    lines.dedup();
    lines.len()
}
