//! `windlass envelope check`: shows an answer of a tool in the present shape of the envelope, and what the tool
//! should write differently.

use anyhow::Context as _;
use serde_json::{Value, json};
use windlass_runtime::now;
use windlass_spec::envelope::{Action, read_frames};
use windlass_spec::{Normalised, StreamFrame, normalise_for};

use super::CommandOutcome;
use super::arguments::{Envelope, EnvelopeCheck, EnvelopeCommand};
use super::source::Source;
use super::terminal::{eprint_line, print_json, visible_line};

pub(super) fn run(command: &Envelope) -> anyhow::Result<CommandOutcome> {
    match &command.command {
        EnvelopeCommand::Check(command) => check(command),
    }
}

/// Prints the result in a stream of frames, and its progress.
fn check_frames(source: &Source) -> anyhow::Result<CommandOutcome> {
    let (mut content, mut progress) = (String::new(), Vec::new());
    let mut is_done = false;
    for frame in read_frames(&source.text) {
        match frame.with_context(|| format!("`{}` is not a stream of frames", source.name))? {
            StreamFrame::Content { content: part } => content += &part,
            StreamFrame::Progress(step) => progress.push(step),
            StreamFrame::Done => is_done = true,
        }
    }
    let object = json!({"content": content, "progress": progress});
    print_json(&format!("{object:#}\n"))?;
    if !is_done {
        eprint_line("the stream has no `done` frame at its end, so that it is read as text")?;
    }
    Ok(CommandOutcome::from_success(is_done))
}

fn check(command: &EnvelopeCheck) -> anyhow::Result<CommandOutcome> {
    let (source, problem) = Source::read(&command.file);
    if let Some(problem) = problem {
        anyhow::bail!(problem.message);
    }
    if source.text.trim_start().starts_with("data:") {
        return check_frames(&source);
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
