//! `windlass check`: checks files and reports every error with its location.

use std::path::PathBuf;

use windlass_spec::{AgentFile, Reading};

use super::CommandOutcome;
use super::arguments::Check;
use super::plural::counted;
use super::report::{FileReport, Reporter};
use super::source::Source;
use super::terminal::{print_json, print_line};

pub(super) fn run(command: &Check, reporter: &Reporter) -> anyhow::Result<CommandOutcome> {
    refuse_second_stdin(&command.files)?;
    let mut are_valid = true;
    for name in &command.files {
        let (source, problem) = Source::read(name);
        let (is_valid, reading) = match problem {
            Some(problem) => (
                false,
                Reading {
                    file: None,
                    diagnostics: vec![problem],
                },
            ),
            None if command.syntax_only => {
                let tree = windlass_gram::parse(&source.text);
                let diagnostics = tree.diagnostics().to_vec();
                (
                    tree.is_valid(),
                    Reading {
                        file: None,
                        diagnostics,
                    },
                )
            }
            None => {
                let reading = windlass_spec::read(&source.text);
                (reading.file.is_some(), reading)
            }
        };
        are_valid &= is_valid;
        if command.json {
            let report = FileReport::new(&source, &reading.diagnostics, is_valid);
            print_json(&format!("{}\n", serde_json::to_string(&report)?))?;
            continue;
        }
        reporter.show(&source, &reading.diagnostics)?;
        if is_valid {
            print_line(&format!(
                "{}: {}",
                source.name,
                summary(reading.file.as_ref())
            ))?;
        }
    }
    Ok(CommandOutcome::from_success(are_valid))
}

/// Refuses a second `-`, because standard input can be read once.
pub(super) fn refuse_second_stdin(files: &[PathBuf]) -> anyhow::Result<()> {
    let count = files.iter().filter(|file| file.as_os_str() == "-").count();
    anyhow::ensure!(
        count <= 1,
        "`-` is given {count} times, but standard input can be read only once"
    );
    Ok(())
}

fn summary(file: Option<&AgentFile>) -> String {
    match file {
        None => "valid gram".to_owned(),
        Some(file) => format!(
            "valid, {} and {}",
            counted(file.agents().len(), "agent", "agents"),
            counted(file.tools().len(), "tool", "tools")
        ),
    }
}
