//! Messages about how a run ended, what it waits for, and how to resume it.

use windlass_core::approval::ApprovalStatus;
use windlass_core::run::{Budget, Run, RunEnd};
use windlass_service::types::RunState;
use windlass_service::{ApprovalQuery, Identity, OutermostRun, ResumedBy, Service};
use windlass_spec::ErrorCategory;

use super::paste;
use super::rendered::escape_exact_line;
use super::stop::start_command;
use super::terminal::{Quote, cut_to_terminal};

/// The exit code for a run that ended, waits for an approval or answer, or was stopped.
pub(super) fn exit_code(run: &Run) -> u8 {
    if run.stopped().is_some() && run.end_or_waiting().is_none() {
        return RunEnd::WaitingForPerson.exit_code();
    }
    run.end_or_waiting()
        .unwrap_or(RunEnd::Cancelled)
        .exit_code()
}

/// Returns why a run did not complete; `None` if it did, or has not ended.
pub(super) fn early_end_message(end: &RunEnd) -> Option<String> {
    Some(match end {
        RunEnd::Completed | RunEnd::WaitingForPerson | RunEnd::WaitingForCaller { .. } => {
            return None;
        }
        RunEnd::Cancelled => "the run was cancelled".to_owned(),
        RunEnd::IterationLimit => {
            "the agent reached its limit of turns; raise it with `--max-iterations`".to_owned()
        }
        RunEnd::Budget {
            message: Some(message),
            ..
        } => format!("the run was stopped: {message}"),
        RunEnd::Budget { budget, .. } => {
            let raise = match budget {
                Budget::Tokens => "--max-tokens",
                Budget::Money => "--max-dollars",
                Budget::Time => "--timeout",
            };
            format!(
                "the run used up its {}; raise it with `{raise}`",
                budget.as_str()
            )
        }
        // The guidance of this category is about tools. For a model, the message says what to do.
        RunEnd::Failed {
            category: ErrorCategory::InvalidOutput,
            message,
        } => format!("error: {}", Quote::of(message).after_label("  ")),
        RunEnd::Failed { category, message } => {
            let message = Quote::of(message).after_label("  ");
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
    let command = |text: String| paste::command(&text, service.given_data_directory().as_deref());
    let pending = ApprovalQuery {
        status: Some(ApprovalStatus::Pending),
        run: Some(run.id().to_string()),
        ..ApprovalQuery::default()
    };
    for question in service.list_approvals(identity, &pending)? {
        let asked = question.question();
        let headline = escape_exact_line(asked.headline().as_str());
        let call = asked
            .authorize()
            .map(|call| format!("{} ({})", call.tool_name, call.security_level));
        let line = match (call, question.asker()) {
            (Some(call), None) => format!("needs approval: {call}: {headline}"),
            (Some(call), Some(asker)) => {
                let headline = Quote::of(&headline).on_line();
                format!("needs approval: {call}, asked by {asker}{headline}")
            }
            (None, None) => format!("needs an answer: {headline}"),
            (None, Some(asker)) => {
                format!("{asker} asks{}", Quote::of(&headline).on_line())
            }
        };
        lines.push(cut_to_terminal(line));
        lines.push(format!(
            "  {}",
            command(format!("approvals show {}", question.call()))
        ));
    }
    for (call, until) in run.held_calls() {
        lines.push(format!("`{}` is held until {until}", call.tool_name()));
        lines.push(format!(
            "  {}",
            command(format!("holds undo {}", call.id()))
        ));
    }
    let onward = service.outermost_run_state(identity, run.id())?;
    if let Some(order) = run.stopped() {
        lines.push(cut_to_terminal(escape_exact_line(&order.to_string())));
        lines.push(match onward.resumed_by {
            ResumedBy::Worker => "a worker resumes the run after:".to_owned(),
            _ => format!("resume with `{}` after:", resume_command(&onward)),
        });
        lines.push(format!("  {}", command(start_command(order))));
        return Ok(lines.join("\n"));
    }
    lines.push(match (run.end_or_waiting(), &onward.resumed_by) {
        (Some(_), ResumedBy::Worker) => "a worker resumes the run when it can continue".to_owned(),
        // A worker does not resume a run that a person stopped.
        _ => format!("resume with: {}", resume_command(&onward)),
    });
    Ok(lines.join("\n"))
}

/// The command that resumes the run a decision was about, unless it has ended or a worker resumes it.
pub(super) fn next_command(onward: &OutermostRun) -> Option<String> {
    let is_needed = onward.state != RunState::Ended && onward.resumed_by != ResumedBy::Worker;
    is_needed.then(|| resume_command(onward))
}

/// What happens to the run a decision was about.
pub(super) fn next_step_message(onward: &OutermostRun) -> String {
    let run = &onward.run;
    let command = resume_command(onward);
    match (onward.state, &onward.resumed_by) {
        (RunState::Ended, _) => format!("the run {run} has ended"),
        (_, ResumedBy::Worker) => {
            let follow = paste::command(&format!("runs show {run}"), onward.data.as_deref());
            format!("a worker resumes the run {run}; follow it with: {follow}")
        }
        (_, ResumedBy::Program(reason)) => {
            format!("no worker resumes the run: {reason}\nresume with: {command}")
        }
        (RunState::Waiting, ResumedBy::Command) => format!("resume with: {command}"),
        (RunState::Open, ResumedBy::Command) => format!(
            "the process that drives the run resumes it; if that process is gone, run: {command}"
        ),
    }
}

pub(super) fn resume_command(onward: &OutermostRun) -> String {
    let command = format!("runs resume {}", onward.run);
    paste::command(&command, onward.data.as_deref())
}
