//! `windlass check`: checks files and reports every error with its location.

use std::path::{Path, PathBuf};

use serde_json::json;
use windlass_spec::{AgentFile, Reading};
use windlass_tools::ToolLibrary;

use super::arguments::Check;
use super::plural::counted;
use super::program::Program;
use super::report::{FileReport, Reporter};
use super::source::Source;
use super::terminal::{eprint_line, print_json, print_line};
use super::{CommandOutcome, config};

pub(super) fn run(
    program: &Program,
    command: &Check,
    reporter: &Reporter,
) -> anyhow::Result<CommandOutcome> {
    refuse_second_stdin(&command.files)?;
    let mut are_valid = true;
    for name in &command.files {
        let (source, problem) = Source::read(name);
        let kind = FileKind::of(&source.text);
        if problem.is_none() && !command.syntax_only && kind != FileKind::Agents {
            anyhow::ensure!(
                kind == FileKind::Library || name.as_os_str() != "-",
                "a configuration cannot be checked from standard input, because its paths are relative to \
                 its file\nhint: name the file"
            );
            let outcome = match kind {
                FileKind::Library => check_library(name, &source, command.json)?,
                _ => config::check(
                    &program.with_configuration(name),
                    &[],
                    command.json,
                    reporter,
                )?,
            };
            are_valid &= outcome == CommandOutcome::Done;
            continue;
        }
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

/// What a file contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileKind {
    /// Agents and tools, as gram text or JSON.
    Agents,
    /// A library of tools, in TOML.
    Library,
    /// A configuration, in TOML.
    Configuration,
}

impl FileKind {
    /// Recognises a file by its first line with content, and a library by its tools.
    fn of(text: &str) -> Self {
        let is_key = |key: &str| {
            let is_part =
                |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '"' | ' ');
            !key.trim().is_empty() && key.chars().all(is_part)
        };
        let mut lines = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.starts_with('#'));
        let first = lines
            .clone()
            .find(|line| !line.is_empty())
            .unwrap_or_default();
        let without_comment = first.split(" #").next().unwrap_or_default().trim_end();
        let table = without_comment
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'));
        let is_toml = match table {
            Some(table) => is_key(table.trim_matches(['[', ']'])),
            None => first.split_once('=').is_some_and(|(key, _)| is_key(key)),
        };
        let has_tools = lines.any(|line| {
            let after = line.trim_start_matches('[').strip_prefix("tools");
            after.is_some_and(|after| after.trim_start().starts_with(['.', ']', '=']))
        });
        match (is_toml, has_tools) {
            (false, _) => Self::Agents,
            (true, true) => Self::Library,
            (true, false) => Self::Configuration,
        }
    }
}

/// Checks a library file.
fn check_library(path: &Path, source: &Source, as_json: bool) -> anyhow::Result<CommandOutcome> {
    let directory = path.parent().unwrap_or(Path::new(""));
    let (library, errors) = match ToolLibrary::from_toml(&source.text, directory) {
        Ok(library) => (Some(library), Vec::new()),
        Err(errors) => (
            None,
            errors.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ),
    };
    if as_json {
        let object = json!({"file": source.name, "valid": library.is_some(), "errors": errors});
        print_json(&format!("{object}\n"))?;
        return Ok(CommandOutcome::from_success(library.is_some()));
    }
    for error in &errors {
        eprint_line(&format!("{}:{error}", source.name))?;
    }
    if let Some(library) = &library {
        let tools = counted(library.iter().count(), "tool", "tools");
        print_line(&format!("{}: valid, a library of {tools}", source.name))?;
    }
    Ok(CommandOutcome::from_success(library.is_some()))
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
