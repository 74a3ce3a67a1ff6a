//! `windlass gaps check`: checks whether the tools of an agent cover a task, without a run.

use serde_json::json;
use windlass_service::{Identity, Service};

use super::{CommandOutcome, as_json, disabled_line, lines};
use crate::arguments::GapsCheck;
use crate::report::Reporter;
use crate::source::read_agent_file;
use crate::terminal::{print_json, print_line};

pub(super) fn run(
    service: &Service,
    identity: &Identity,
    command: &GapsCheck,
    reporter: &Reporter,
) -> anyhow::Result<CommandOutcome> {
    let Some(file) = read_agent_file(&command.agent, reporter)? else {
        return Ok(CommandOutcome::Failed);
    };
    let checked = service.check_gaps(identity, &file, &command.task)?;
    let (probability, run_threshold) = (checked.probability, checked.run_threshold);
    let outcome =
        CommandOutcome::from_success(checked.report.is_none() && checked.disabled.is_empty());
    if command.json {
        let printed = json!({
            "gap": checked.report.is_some(),
            "probability": (probability * 1e4).round() / 1e4,
            "threshold": checked.threshold,
            "run_threshold": run_threshold,
            "told_before_run": checked.is_reported_before_run,
            "report": as_json(checked.report.as_ref()),
            "disabled": checked.disabled,
        });
        print_json(&format!("{printed}\n"))?;
        return Ok(outcome);
    }
    for disabled in &checked.disabled {
        print_line(&disabled_line(disabled))?;
    }
    if let Some(report) = &checked.report {
        for line in lines(report) {
            print_line(&line)?;
        }
        let would = match checked.is_reported_before_run {
            true => "would",
            false => "would not",
        };
        print_line(&format!(
            "probability {probability:.2}; a run {would} report it at the start (`gaps.threshold` is {run_threshold})"
        ))?;
    } else if checked.disabled.is_empty() {
        print_line(&format!(
            "the tools seem to cover the task (probability of a gap {probability:.2})"
        ))?;
    }
    Ok(outcome)
}
