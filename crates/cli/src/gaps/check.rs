//! `windlass gaps check`: whether the tools of an agent do what a task asks, without a run.

use serde_json::json;
use windlass_learn::gap::ToolGapDetector;

use super::{Outcome, as_json, lines};
use crate::arguments::GapsCheck;
use crate::report::Reporter;
use crate::schema::read_file;
use crate::settings::configured;
use crate::terminal::{put, say};

pub(super) fn run(command: &GapsCheck, reporter: &Reporter) -> anyhow::Result<Outcome> {
    let Some(file) = read_file(&command.agent, reporter)? else {
        return Ok(Outcome::Failed);
    };
    let detector = ToolGapDetector::of_specifications(file.tools().iter().map(|tool| &**tool));
    let probability = detector.assess(&command.task).probability;
    let report = detector.detect_missing_tools(&command.task);
    // A run bothers nobody with what may well be there; whoever asks is told what is more likely than not.
    let gaps = configured()?.configuration.gaps();
    let run_threshold = gaps.threshold.get();
    let is_told = gaps.check && report.is_some() && probability >= run_threshold;
    if command.json {
        let told = json!({
            "gap": report.is_some(),
            "probability": (probability * 1e4).round() / 1e4,
            "threshold": detector.threshold(),
            "run_threshold": run_threshold,
            "told_before_run": is_told,
            "report": as_json(report.as_ref()),
        });
        put(&format!("{told}\n"))?;
    } else if let Some(report) = &report {
        for line in lines(report) {
            say(&line)?;
        }
        let would = if is_told { "would" } else { "would not" };
        say(&format!(
            "probability {probability:.2}; a run {would} tell of it beforehand (`gaps.threshold` is {run_threshold})"
        ))?;
    } else {
        say(&format!(
            "the tools seem to do (probability of a gap {probability:.2})"
        ))?;
    }
    Ok(Outcome::from_success(report.is_none()))
}
