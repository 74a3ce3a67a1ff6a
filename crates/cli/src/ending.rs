//! What a person is told of how a run ended, or of what it waits for.

use windlass_core::run::{Run, RunEnd};
use windlass_runtime::now;
use windlass_spec::{ErrorCategory, RunId};
use windlass_store::{ApprovalFilter, Store};

use super::outermost::is_part_of;
use super::rendered::seen;

/// The exit code for a run that ended, waits for a person, or was stopped before its end.
pub(super) fn exit_code(run: &Run) -> u8 {
    run.standing().unwrap_or(RunEnd::Cancelled).exit_code()
}

/// Why a run did not complete; `None` if it did, or has not ended.
pub(super) fn why_early(end: &RunEnd) -> Option<String> {
    Some(match end {
        RunEnd::Completed | RunEnd::WaitingForPerson => return None,
        RunEnd::Cancelled => "the run was cancelled".to_owned(),
        RunEnd::IterationLimit => {
            "the agent ran out of turns; `--max-iterations` gives it more".to_owned()
        }
        RunEnd::Budget { budget } => format!("the run used up its {}", budget.as_str()),
        // Its guidance is about tools; of a model, the message says what to do.
        RunEnd::Failed {
            category: ErrorCategory::InvalidOutput,
            message,
        } => format!("error: {message}"),
        RunEnd::Failed { category, message } => {
            format!("error: {message}\nhint: {}", category.guidance())
        }
    })
}

/// What a run that was left waits for, and how it goes on: the questions that it and the runs that
/// work for it put to people, and the calls that are held.
pub(super) fn what_it_waits_for(run: &Run, store: &Store) -> anyhow::Result<String> {
    let mut lines = Vec::new();
    for question in store.approvals(&ApprovalFilter::pending(), now())? {
        if !is_part_of(question.run(), run.id()) {
            continue;
        }
        let asked = question.question();
        let what = match asked.authorize() {
            Some(call) => format!("{} ({}): ", call.tool_name, call.security_level),
            None => String::new(),
        };
        lines.push(format!(
            "a person is asked: {what}{}",
            seen(asked.headline().as_str())
        ));
        lines.push(format!("  windlass approvals show {}", question.call()));
    }
    for (call, until) in run.held_calls() {
        let id = call.id();
        lines.push(format!("`{}` is held until {until}", call.tool_name()));
        lines.push(format!("  windlass holds undo {id}"));
    }
    lines.push(onward(run.id()));
    Ok(lines.join("\n"))
}

/// How a run that has no end goes on.
pub(super) fn onward(run: &RunId) -> String {
    format!("go on with: windlass runs resume {run}")
}
