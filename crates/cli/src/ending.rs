//! Messages about how a run ended, what it waits for, and how to resume it.

use windlass_core::approval::ApprovalStatus;
use windlass_core::run::{Run, RunEnd};
use windlass_service::types::RunState;
use windlass_service::{Identity, OutermostRun, Service};
use windlass_spec::{ErrorCategory, RunId};

use super::rendered::escape_exact_line;
use super::terminal::visible_block;

/// The exit code for a run that ended, waits for an approval or answer, or was stopped.
pub(super) fn exit_code(run: &Run) -> u8 {
    run.end_or_waiting()
        .unwrap_or(RunEnd::Cancelled)
        .exit_code()
}

/// Returns why a run did not complete; `None` if it did, or has not ended.
pub(super) fn early_end_message(end: &RunEnd) -> Option<String> {
    Some(match end {
        RunEnd::Completed | RunEnd::WaitingForPerson => return None,
        RunEnd::Cancelled => "the run was cancelled".to_owned(),
        RunEnd::IterationLimit => {
            "the agent reached its limit of turns; raise it with `--max-iterations`".to_owned()
        }
        RunEnd::Budget { budget } => format!("the run used up its {}", budget.as_str()),
        // The guidance of this category is about tools. For a model, the message says what to do.
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

/// Describes what a suspended run waits for and how to resume it: the pending questions of the run and its
/// sub-runs, and the held calls.
pub(super) fn describe_pending(
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
            "needs approval: {what}{}",
            escape_exact_line(asked.headline().as_str())
        ));
        lines.push(format!("  windlass approvals show {}", question.call()));
    }
    for (call, until) in run.held_calls() {
        let id = call.id();
        lines.push(format!("`{}` is held until {until}", call.tool_name()));
        lines.push(format!("  windlass holds undo {id}"));
    }
    lines.push(resume_hint(run.id()));
    Ok(lines.join("\n"))
}

/// How to resume a run that has not ended.
pub(super) fn resume_hint(run: &RunId) -> String {
    format!("resume with: {}", resume_command(run))
}

/// The command that resumes the run a decision was about, unless it has ended or a worker resumes it.
pub(super) fn next_command(onward: &OutermostRun) -> Option<String> {
    let is_needed = onward.state != RunState::Ended && !onward.has_worker;
    is_needed.then(|| resume_command(&onward.run))
}

/// What happens to the run a decision was about.
pub(super) fn next_step_message(onward: &OutermostRun) -> String {
    let command = resume_command(&onward.run);
    match onward.state {
        RunState::Ended => format!("the run {} has ended", onward.run),
        _ if onward.has_worker => format!(
            "a worker resumes the run {run}, if it can bind it; check with: windlass runs show {run}",
            run = onward.run
        ),
        RunState::Waiting => format!("resume with: {command}"),
        RunState::Open => format!(
            "the process that drives the run resumes it; if that process is gone, run: {command}"
        ),
    }
}

pub(super) fn resume_command(run: &RunId) -> String {
    format!("windlass runs resume {run}")
}
