//! `windlass check`: is this file valid, and if not, where and why.

use std::io::Write as _;

use windlass_gram::Diagnostic;
use windlass_spec::{AgentFile, Reading};

use super::Outcome;
use super::arguments::Check;
use super::report::{FileReport, Reporter};
use super::source::Source;

pub(super) fn run(command: &Check, reporter: &Reporter) -> anyhow::Result<Outcome> {
    let mut are_valid = true;
    for name in &command.files {
        let (source, problem) = Source::read(name);
        let reading = match problem {
            Some(problem) => Reading {
                file: None,
                diagnostics: vec![problem],
            },
            None if command.syntax_only => {
                let tree = windlass_gram::parse(&source.text);
                Reading {
                    file: None,
                    diagnostics: tree.diagnostics().to_vec(),
                }
            }
            None => windlass_spec::read(&source.text),
        };
        let is_valid = !reading.diagnostics.iter().any(Diagnostic::is_error);
        are_valid &= is_valid;
        let mut out = std::io::stdout().lock();
        if command.json {
            let report = FileReport::new(&source, &reading.diagnostics);
            writeln!(out, "{}", serde_json::to_string(&report)?)?;
            continue;
        }
        reporter.show(&source, &reading.diagnostics)?;
        if is_valid {
            writeln!(out, "{name}: {}", summary(reading.file.as_ref()))?;
        }
    }
    Ok(Outcome::from_success(are_valid))
}

fn summary(file: Option<&AgentFile>) -> String {
    match file {
        None => "valid gram".to_owned(),
        Some(file) => format!(
            "valid, {} and {}",
            counted(file.agents().len(), "agent"),
            counted(file.tools().len(), "tool")
        ),
    }
}

fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}
