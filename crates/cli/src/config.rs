//! `windlass config`: shows the configuration with the origin of each value, and checks it.

use std::path::PathBuf;

use serde_json::{Value, json};
use windlass_config::{ConfigMistake, schema};
use windlass_spec::Agent;

use super::CommandOutcome;
use super::arguments::{Config, ConfigCommand};
use super::program::Program;
use super::report::Reporter;
use super::source::read_agent_file;
use super::table::{one_line, print_table};
use super::terminal::{eprint_line, print_json, print_line, visible_line};

/// The maximum length of a shown value.
const VALUE: usize = 80;

pub(super) fn run(
    program: &Program,
    command: &Config,
    reporter: &Reporter,
) -> anyhow::Result<CommandOutcome> {
    match &command.command {
        ConfigCommand::Show { key, json } => show(program, key.as_deref(), *json),
        ConfigCommand::Check { agent_files, json } => check(program, agent_files, *json, reporter),
        ConfigCommand::Schema => {
            print_line(&serde_json::to_string_pretty(&schema())?)?;
            Ok(CommandOutcome::Done)
        }
        ConfigCommand::Files { json } => files(program, *json),
    }
}

fn show(program: &Program, key: Option<&str>, as_json: bool) -> anyhow::Result<CommandOutcome> {
    let service = program.service(None);
    let shown = service.configuration_values(&program.identity()?, key)?;
    if as_json {
        for one in &shown.values {
            print_json(&format!("{}\n", serde_json::to_string(one)?))?;
        }
        return Ok(CommandOutcome::Done);
    }
    let rows: Vec<[String; 3]> = shown
        .values
        .into_iter()
        .map(|one| [one.key, one_line(&one.value.to_string(), VALUE), one.origin])
        .collect();
    print_table(["KEY", "VALUE", "FROM"], &rows)?;
    for warning in &shown.warnings {
        eprint_line(&warning.to_string())?;
    }
    Ok(CommandOutcome::Done)
}

pub(super) fn check(
    program: &Program,
    agent_files: &[PathBuf],
    as_json: bool,
    reporter: &Reporter,
) -> anyhow::Result<CommandOutcome> {
    let mut agents: Vec<Agent> = Vec::new();
    for file in agent_files {
        let Some(declared) = read_agent_file(file, reporter)? else {
            return Ok(CommandOutcome::Failed);
        };
        agents.extend_from_slice(declared.agents());
    }
    let service = program.service(None);
    let checked = service.check_configuration(&program.identity()?, &agents)?;
    let place = checked.file.as_ref().map(|path| path.display().to_string());
    let (mistakes, settings) = (&checked.mistakes, &checked.settings_error);
    let is_valid = checked.is_valid();
    if as_json {
        let (errors, warnings): (Vec<&ConfigMistake>, Vec<&ConfigMistake>) =
            mistakes.iter().partition(|mistake| mistake.is_error());
        let object = json!({
            "file": place, "valid": is_valid, "errors": errors, "warnings": warnings,
            "settings": settings,
        });
        print_json(&format!("{object}\n"))?;
        return Ok(CommandOutcome::from_success(is_valid));
    }
    for mistake in mistakes {
        eprint_line(&mistake.to_string())?;
    }
    if let Some(error) = settings {
        eprint_line(error)?;
    }
    let place = place.map(|place| visible_line(&place));
    let place = place.unwrap_or_else(|| "the configuration (no windlass.toml found)".to_owned());
    match checked.error_count() {
        0 => print_line(&format!("{place}: valid"))?,
        1 => eprint_line(&format!("{place}: 1 error"))?,
        count => eprint_line(&format!("{place}: {count} errors"))?,
    }
    Ok(CommandOutcome::from_success(is_valid))
}

fn files(program: &Program, as_json: bool) -> anyhow::Result<CommandOutcome> {
    let service = program.service(None);
    let files = service.list_configuration_files(&program.identity()?)?;
    if as_json {
        for file in &files {
            let line: Value = json!({
                "layer": file.layer.to_string(), "file": file.path.display().to_string(),
                "exists": file.exists,
            });
            print_json(&format!("{line}\n"))?;
        }
        return Ok(CommandOutcome::Done);
    }
    let rows: Vec<[String; 3]> = files
        .iter()
        .map(|file| {
            let exists = if file.exists { "yes" } else { "no" };
            let path = file.path.display().to_string();
            [file.layer.to_string(), exists.to_owned(), path]
        })
        .collect();
    print_table(["LAYER", "EXISTS", "FILE"], &rows)?;
    Ok(CommandOutcome::Done)
}
