//! `windlass gaps check`: whether the tools of an agent do what a task asks, without a run.

use serde_json::json;
use windlass_learn::gap::ToolGapDetector;

use super::{Outcome, as_json, told};
use crate::cli::arguments::GapsCheck;
use crate::cli::report::Reporter;
use crate::cli::schema::read_file;
use crate::cli::terminal::{put, say};

pub(super) fn run(command: &GapsCheck, reporter: &Reporter) -> anyhow::Result<Outcome> {
    let Some(file) = read_file(&command.agent, reporter)? else {
        return Ok(Outcome::Failed);
    };
    let detector = ToolGapDetector::of_specifications(file.tools().iter().map(|tool| &**tool));
    let probability = detector.assess(&command.task).probability;
    let report = detector.detect_missing_tools(&command.task);
    if command.json {
        let told = json!({
            "gap": report.is_some(),
            "probability": (probability * 1e4).round() / 1e4,
            "threshold": detector.threshold(),
            "report": as_json(report.as_ref()),
        });
        put(&format!("{told}\n"))?;
    } else if let Some(report) = &report {
        let told = told(report);
        let lines = told.lines().filter(|line| line.starts_with("gap:"));
        for line in lines {
            say(line)?;
        }
        say(&format!("probability {probability:.2}"))?;
    } else {
        say(&format!(
            "the tools seem to do (probability of a gap {probability:.2})"
        ))?;
    }
    Ok(Outcome::from_success(report.is_none()))
}
