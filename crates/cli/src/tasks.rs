//! Reads a file of tasks, for `run --tasks` and `ab`. Invalid tasks are reported by file and line before the
//! first task starts, and skipped. The exit code then reports a failure.

use std::path::Path;

use anyhow::Context as _;
use windlass_service::{CheckedTasks, DeclaredAgent};
use windlass_spec::TaskInput;

use super::CommandOutcome;
use super::batch::INTERRUPTED;
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
        let CheckedTasks { tasks, errors } = chosen.read_tasks(&text, &place.to_string());
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

    /// Turns success, and a batch whose other tasks wait, into failure if the file has invalid tasks.
    pub(super) fn ended(&self, outcome: CommandOutcome) -> CommandOutcome {
        match (self.has_errors, outcome) {
            // An interrupted batch is resumed, which reports the tasks again.
            (true, CommandOutcome::Code(INTERRUPTED)) => outcome,
            (true, _) => CommandOutcome::Failed,
            (false, outcome) => outcome,
        }
    }
}

/// Counts the lines with errors.
fn invalid_lines(errors: &[(usize, String)]) -> usize {
    let mut lines: Vec<usize> = errors.iter().map(|(line, _)| *line).collect();
    lines.dedup();
    lines.len()
}
