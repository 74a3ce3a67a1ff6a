//! `windlass envelope check`: shows an answer of a tool in the present shape of the envelope, and what the tool
//! should write differently.

use anyhow::Context as _;
use serde_json::{Value, json};
use windlass_runtime::now;
use windlass_spec::envelope::Action;
use windlass_spec::{Normalised, normalise_for};

use super::CommandOutcome;
use super::arguments::{Envelope, EnvelopeCheck, EnvelopeCommand};
use super::source::Source;
use super::terminal::{eprint_line, print_json, visible_line};

pub(super) fn run(command: &Envelope) -> anyhow::Result<CommandOutcome> {
    match &command.command {
        EnvelopeCommand::Check(command) => check(command),
    }
}

fn check(command: &EnvelopeCheck) -> anyhow::Result<CommandOutcome> {
    let (source, problem) = Source::read(&command.file);
    if let Some(problem) = problem {
        anyhow::bail!(problem.message);
    }
    let answer: Value = serde_json::from_str(&source.text)
        .with_context(|| format!("`{}` is not JSON", source.name))?;
    let action = match &command.tool {
        Some(name) => Action::new(name.as_str()).context("the name of the tool is not valid")?,
        None => Action::UNKNOWN,
    };
    let Normalised { response, notices } = normalise_for(&action, &answer, now());
    if command.json {
        let object = json!({"answer": response, "notices": notices});
        print_json(&format!("{object}\n"))?;
    } else {
        print_json(&format!("{:#}\n", response.for_operator()))?;
        for notice in &notices {
            eprint_line(&visible_line(&notice.to_string()))?;
        }
    }
    Ok(CommandOutcome::from_success(notices.is_empty()))
}
