//! What a person is told of how a run ended, or of what it waits for.

use windlass_core::approval::ApprovalStatus;
use windlass_core::run::{Run, RunEnd};
use windlass_service::{Identity, Onward, Service};
use windlass_spec::{ErrorCategory, RunId};
use windlass_store::RunState;

use super::rendered::on_one_line;
use super::terminal::visible_block;

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
        } => format!("error: {}", visible_block(message)),
        RunEnd::Failed { category, message } => {
            let message = visible_block(message);
            format!("error: {message}\nhint: {}", category.guidance())
        }
    })
}

/// What a run that was left waits for, and how it goes on: the questions that it and the runs that
/// work for it put to people, and the calls that are held.
pub(super) fn what_it_waits_for(
    run: &Run,
    service: &Service,
    identity: &Identity,
) -> anyhow::Result<String> {
    let mut lines = Vec::new();
    let pending = Some(ApprovalStatus::Pending);
    for question in service.list_approvals(identity, pending, Some(run.id().as_str()))? {
        let asked = question.question();
        let what = match asked.authorize() {
            Some(call) => format!("{} ({}): ", call.tool_name, call.security_level),
            None => String::new(),
        };
        lines.push(format!(
            "a person is asked: {what}{}",
            on_one_line(asked.headline().as_str())
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
    format!("go on with: {}", resume_command(run))
}

/// The command that resumes the run a decision was about, unless it has ended or a worker resumes it.
pub(super) fn next_command(onward: &Onward) -> Option<String> {
    let is_needed = onward.state != RunState::Ended && !onward.has_worker;
    is_needed.then(|| resume_command(&onward.run))
}

/// What happens to the run a decision was about.
pub(super) fn onward_message(onward: &Onward) -> String {
    let command = resume_command(&onward.run);
    match onward.state {
        RunState::Ended => format!("the run {} has ended", onward.run),
        _ if onward.has_worker => format!("a worker resumes the run {}", onward.run),
        RunState::Waiting => format!("continue it with: {command}"),
        RunState::Open => format!(
            "the process that drives the run takes it up; if there is none any more: {command}"
        ),
    }
}

pub(super) fn resume_command(run: &RunId) -> String {
    format!("windlass runs resume {run}")
}
