//! Draws a plan as a tree: each task under its first dependency, with its status and duration.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use unicode_width::UnicodeWidthStr as _;
use windlass_core::run::{PlanState, PlanTaskStatus, TaskState};
use windlass_spec::Timestamp;
use windlass_spec::plan::{PlanTask, PlanTaskId, Work};

use crate::rendered::escape_exact;
use crate::table::one_line;

/// The maximum length of a shown description or error.
const SHOWN: usize = 70;

/// A line of the tree.
struct Line<'p> {
    /// The branches before the name.
    branches: String,
    task: &'p PlanTask,
    state: &'p TaskState,
}

pub(super) fn draw_plan(plan: &PlanState, now: Timestamp) -> String {
    let mut lines = Vec::new();
    let mut open = BTreeSet::new();
    for (task, _) in plan.tasks().filter(|(task, _)| task.depends_on.is_empty()) {
        branch(plan, task, "", "", &mut open, &mut lines);
    }
    let width = |line: &Line<'_>| line.branches.width() + line.task.id.as_str().len();
    let widest = lines.iter().map(width).max().unwrap_or(0);
    let done = plan
        .tasks()
        .filter(|(_, state)| state.status == PlanTaskStatus::Success)
        .count();
    let count = plan.tasks().count();
    let mut text = format!(
        "plan {}: {}, {done} of {count} tasks done\n",
        plan.id(),
        status_text(plan.status())
    );
    if let Some(goal) = plan.plan().goal() {
        let _ = writeln!(text, "goal: {}", one_line(goal, 200));
    }
    for line in &lines {
        let name = format!("{}{}", line.branches, line.task.id);
        let padding = " ".repeat(widest - width(line));
        let duration = duration(line.state, now);
        let _ = write!(
            text,
            "  {name}{padding}  {:<11}  {duration:>8}  {}",
            status_text(line.state.status),
            one_line(line.task.description.as_str(), SHOWN)
        );
        let others: Vec<&str> = line
            .task
            .depends_on
            .iter()
            .skip(1)
            .map(PlanTaskId::as_str)
            .collect();
        if !others.is_empty() {
            let _ = write!(text, " (also after {})", others.join(", "));
        }
        if line.state.attempts > 1 {
            let _ = write!(text, " ({} attempts)", line.state.attempts);
        }
        if line.task.work == Work::Manual && !line.state.status.is_settled() {
            text.push_str(" (manual)");
        }
        text.push('\n');
        let why = match (&line.state.failure, &line.state.because) {
            (Some(failure), _) if line.state.status != PlanTaskStatus::Success => {
                Some(escape_exact(&failure.operator_message))
            }
            (_, Some(because)) => Some(because.clone()),
            _ => None,
        };
        if let Some(why) = why {
            let _ = writeln!(
                text,
                "  {}  {}",
                " ".repeat(widest),
                one_line(&why, 2 * SHOWN)
            );
        }
    }
    text
}

/// Adds a task and, below it, the tasks whose first dependency it is.
fn branch<'p>(
    plan: &'p PlanState,
    task: &'p PlanTask,
    branches: &str,
    below: &str,
    seen: &mut BTreeSet<&'p str>,
    lines: &mut Vec<Line<'p>>,
) {
    // A plan has no cycles, but a damaged journal must not cause endless recursion.
    if !seen.insert(task.id.as_str()) {
        return;
    }
    let Some((task, state)) = plan.task(task.id.as_str()) else {
        return;
    };
    lines.push(Line {
        branches: branches.to_owned(),
        task,
        state,
    });
    let dependents: Vec<&PlanTask> = plan
        .tasks()
        .map(|(other, _)| other)
        .filter(|other| other.depends_on.first() == Some(&task.id))
        .collect();
    for (index, other) in dependents.iter().enumerate() {
        let (here, further) = match index + 1 == dependents.len() {
            true => ("└─ ", "   "),
            false => ("├─ ", "│  "),
        };
        branch(
            plan,
            other,
            &format!("{below}{here}"),
            &format!("{below}{further}"),
            seen,
            lines,
        );
    }
}

fn status_text(status: PlanTaskStatus) -> &'static str {
    match status {
        PlanTaskStatus::InProgress => "in progress",
        status => status.as_str(),
    }
}

/// The duration of a task, up to now if it is in progress.
fn duration(state: &TaskState, now: Timestamp) -> String {
    let Some(started) = state.started_at else {
        return String::new();
    };
    let microseconds = state.ended_at.unwrap_or(now).microseconds_since(started);
    match microseconds {
        0..1_000_000 => format!("{} ms", microseconds / 1_000),
        1_000_000..60_000_000 => format!("{:.1} s", microseconds as f64 / 1e6),
        _ => format!("{} min", microseconds / 60_000_000),
    }
}
