//! `windlass intent`: shows what a text asks for, as a run would understand it.

use std::sync::Arc;

use serde_json::json;
use windlass_spec::RawUserIntent;
use windlass_tools::builtin_specifications;

use super::CommandOutcome;
use super::arguments::Intent;
use super::program::Program;
use super::report::Reporter;
use super::source::read_agent_file;
use super::terminal::{print_json, print_line};

pub(super) fn run(
    program: &Program,
    command: &Intent,
    reporter: &Reporter,
) -> anyhow::Result<CommandOutcome> {
    let tools = match &command.agent {
        None => builtin_specifications(),
        Some(path) => match read_agent_file(path, reporter)? {
            Some(file) => file.tools().iter().map(Arc::clone).collect(),
            None => return Ok(CommandOutcome::Failed),
        },
    };
    let service = program.service(None);
    let identity = program.identity()?;
    let read = service.read_intent(&identity, &command.text, &tools)?;
    let is_used = read.understood.is_some();
    if command.json {
        let needs = read.understood.as_ref().map(|understood| &understood.needs);
        let intent = read.understood.as_ref();
        let intent = intent.map(|understood| RawUserIntent::from(understood.intent.clone()));
        let printed = json!({
            "intent": intent,
            "needs": needs,
            "closest": read.closest,
            "confidence": read.confidence,
            "threshold": read.threshold,
        });
        print_json(&format!("{printed}\n"))?;
        return Ok(CommandOutcome::from_success(is_used));
    }
    let percent = read.confidence.get() * 100.0;
    let closest = read.closest.as_deref().unwrap_or("none");
    let Some(understood) = read.understood else {
        print_line(&format!(
            "no intent (closest: {closest}, confidence {percent:.0} %; a run uses an intent from {:.0} %)",
            read.threshold.get() * 100.0
        ))?;
        return Ok(CommandOutcome::Failed);
    };
    let intent = &understood.intent;
    print_line(&format!(
        "intent: {} (confidence {percent:.0} %)",
        intent.intent_type()
    ))?;
    let lists = [
        ("suggested tools", texts(intent.suggested_tools())),
        ("context requirements", texts(intent.context_requirements())),
        ("not stated", texts(&understood.needs)),
        ("fallback options", texts(intent.fallback_options())),
    ];
    for (what, texts) in lists {
        if !texts.is_empty() {
            print_line(&format!("{what}: {}", texts.join("; ")))?;
        }
    }
    for (name, value) in intent.parameters() {
        print_line(&format!("parameter {name}: {value}"))?;
    }
    Ok(CommandOutcome::Done)
}

fn texts<T: ToString>(items: &[T]) -> Vec<String> {
    items.iter().map(ToString::to_string).collect()
}
