//! `windlass config`: what holds, where it comes from, and what is wrong with it.

use std::path::PathBuf;

use serde_json::{Value, json};
use windlass_config::{Mistake, Shown, schema};
use windlass_runtime::{ConfigurationError, Configured, Read};
use windlass_spec::Agent;
use windlass_tools::ToolLibrary;

use super::Outcome;
use super::arguments::{Config, ConfigCommand};
use super::libraries::{self, Sought};
use super::report::Reporter;
use super::schema::read_file;
use super::settings;
use super::table::{one_line, say_table};
use super::terminal::{complain, put, say};

/// How much of a value is shown.
const VALUE: usize = 80;

pub(super) fn run(command: &Config, reporter: &Reporter) -> anyhow::Result<Outcome> {
    match &command.command {
        ConfigCommand::Show { key, json } => show(key.as_deref(), *json),
        ConfigCommand::Check { agent_files, json } => check(agent_files, *json, reporter),
        ConfigCommand::Schema => {
            say(&serde_json::to_string_pretty(&schema())?)?;
            Ok(Outcome::Done)
        }
        ConfigCommand::Files { json } => files(*json),
    }
}

fn show(key: Option<&str>, as_json: bool) -> anyhow::Result<Outcome> {
    let configured = settings::configured()?;
    let is_asked = |shown: &Shown| {
        key.is_none_or(|key| {
            let below = shown.key.strip_prefix(key);
            below.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
    };
    let mut shown = configured.configuration.shown();
    shown.retain(is_asked);
    if let (Some(key), true) = (key, shown.is_empty()) {
        anyhow::bail!(
            "nothing is set under `{key}`\nhint: `windlass config show` lists everything that holds"
        );
    }
    if as_json {
        for one in &shown {
            put(&format!("{}\n", serde_json::to_string(one)?))?;
        }
        return Ok(Outcome::Done);
    }
    let rows: Vec<[String; 3]> = shown
        .into_iter()
        .map(|one| [one.key, one_line(&one.value.to_string(), VALUE), one.origin])
        .collect();
    say_table(["KEY", "VALUE", "FROM"], &rows)?;
    for warning in &configured.warnings {
        complain(&warning.to_string())?;
    }
    Ok(Outcome::Done)
}

fn check(agent_files: &[PathBuf], as_json: bool, reporter: &Reporter) -> anyhow::Result<Outcome> {
    let mut agents: Vec<Agent> = Vec::new();
    for file in agent_files {
        let Some(declared) = read_file(file, reporter)? else {
            return Ok(Outcome::Failed);
        };
        agents.extend_from_slice(declared.agents());
    }
    let files = settings::files(None);
    let place = files.project().map(|path| path.display().to_string());
    let (read, mistakes) = match files.read(&Read::default()) {
        Ok((configured, _)) => {
            let mistakes = mistakes(&configured, &agents);
            (Some(configured), mistakes)
        }
        Err(ConfigurationError::Mistakes(mistakes)) => (None, mistakes),
        Err(error) => return Err(error.into()),
    };
    // What the built-in tools may touch is looked at as they do.
    let settings = read
        .as_ref()
        .and_then(|configured| libraries::builtin_settings(&configured.configuration).err());
    let is_valid = settings.is_none() && !mistakes.iter().any(Mistake::is_error);
    if as_json {
        let (errors, warnings): (Vec<&Mistake>, Vec<&Mistake>) =
            mistakes.iter().partition(|mistake| mistake.is_error());
        let told = json!({
            "file": place, "valid": is_valid, "errors": errors, "warnings": warnings,
            "settings": settings.map(|error| error.to_string()),
        });
        put(&format!("{told}\n"))?;
        return Ok(Outcome::from_success(is_valid));
    }
    for mistake in &mistakes {
        complain(&mistake.to_string())?;
    }
    if let Some(error) = &settings {
        complain(&error.to_string())?;
    }
    let place = place.unwrap_or_else(|| "the configuration (there is no windlass.toml)".to_owned());
    let errors = mistakes.iter().filter(|mistake| mistake.is_error()).count();
    let errors = errors + usize::from(settings.is_some());
    match errors {
        0 => say(&format!("{place}: valid"))?,
        1 => complain(&format!("{place}: 1 mistake"))?,
        count => complain(&format!("{place}: {count} mistakes"))?,
    }
    Ok(Outcome::from_success(is_valid))
}

/// What is odd about a configuration by itself, and what does not fit the tools of agents.
fn mistakes(configured: &Configured, agents: &[Agent]) -> Vec<Mistake> {
    let mut mistakes = configured.warnings.clone();
    let names = agents.iter().map(Agent::name);
    if !agents.is_empty() {
        mistakes.extend(configured.configuration.check_agents(names));
    }
    if agents.is_empty() {
        return mistakes;
    }
    let library = libraries::all(&[], &configured.configuration, Sought::default());
    let library = library.unwrap_or_else(|_| ToolLibrary::new("none"));
    let exists = |key: &str| key.split('.').any(|part| library.lookup(part).is_some());
    let mut found = configured.check(agents);
    // What no agent declares may still be a tool that there is.
    found.retain(|mistake| mistake.is_error() || !exists(&mistake.key));
    mistakes.extend(found);
    mistakes
}

fn files(as_json: bool) -> anyhow::Result<Outcome> {
    let files = settings::files(None);
    let told: Vec<(String, String, bool)> = files
        .files
        .iter()
        .map(|(layer, path)| (layer.to_string(), path.display().to_string(), path.exists()))
        .collect();
    if as_json {
        for (layer, file, exists) in &told {
            let line: Value = json!({"layer": layer, "file": file, "exists": exists});
            put(&format!("{line}\n"))?;
        }
        return Ok(Outcome::Done);
    }
    let rows: Vec<[String; 3]> = told
        .into_iter()
        .map(|(layer, file, exists)| {
            let there = if exists { "yes" } else { "no" };
            [layer, there.to_owned(), file]
        })
        .collect();
    say_table(["LAYER", "THERE", "FILE"], &rows)?;
    Ok(Outcome::Done)
}
