//! `windlass tools describe`: all that is known of one tool.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use windlass_service::ToolDetails;
use windlass_spec::{Field, Presence, ToolAttributes, write_tool};

use super::find;
use crate::Outcome;
use crate::arguments::ToolsDescribe;
use crate::program::Program;
use crate::report::Reporter;
use crate::terminal::{put, say};

pub(super) fn run(
    program: &Program,
    command: &ToolsDescribe,
    reporter: &Reporter,
) -> anyhow::Result<Outcome> {
    let (service, identity) = (program.service(None), program.identity()?);
    let Some(known) = find(&service, &identity, &command.tool, reporter)? else {
        return Ok(Outcome::Failed);
    };
    if command.gram {
        let specification = known.specification().map_err(anyhow::Error::msg)?;
        say(write_tool(&specification)?.trim_end())?;
        return Ok(Outcome::Done);
    }
    match command.json {
        true => put(&format!("{}\n", as_json(&known)))?,
        false => say(text(&known).trim_end())?,
    }
    Ok(Outcome::Done)
}

fn as_json(known: &ToolDetails) -> Value {
    let signature = known.signature();
    json!({
        "name": known.tool.name(),
        "library": known.library.name(),
        "description": known.tool.description(),
        "signature": signature.as_ref().ok().map(ToString::to_string),
        "inexpressible": signature.as_ref().err(),
        "schema": known.tool.schema(),
        "returns": known.tool.returns_schema(),
        "attributes": known.declared.as_ref().map(|declared| attributes(declared.attributes())),
    })
}

fn text(known: &ToolDetails) -> String {
    let mut text = String::new();
    let (tool, library) = (&known.tool, known.library.name());
    let _ = writeln!(text, "{} of the library `{library}`", tool.name());
    let _ = writeln!(text, "{}\n", tool.description());
    match known.signature() {
        Ok(signature) => {
            let _ = writeln!(text, "takes");
            if signature.parameters().is_empty() {
                let _ = writeln!(text, "  nothing");
            }
            for field in signature.parameters() {
                let _ = writeln!(text, "  {}", parameter(field));
            }
            let _ = writeln!(text, "returns\n  {}", signature.returns());
        }
        Err(why) => {
            let _ = writeln!(text, "{why}");
        }
    }
    let _ = writeln!(text, "declared of its use");
    match known
        .declared
        .as_ref()
        .map(|tool| attributes(tool.attributes()))
    {
        None => {
            let _ = writeln!(
                text,
                "  nothing known; `--agent-file FILE` says what an agent declares"
            );
        }
        Some(declared) if declared.is_empty() => {
            let _ = writeln!(text, "  nothing; a call is taken for irreversible");
        }
        Some(declared) => {
            for (name, value) in declared {
                let value = value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned);
                let _ = writeln!(text, "  {name}: {value}");
            }
        }
    }
    let _ = writeln!(text, "schema of what it takes\n{:#}", tool.schema());
    if let Some(returns) = tool.returns_schema() {
        let _ = writeln!(text, "schema of what it returns\n{returns:#}");
    }
    text
}

fn parameter(field: &Field) -> String {
    let presence = match &field.presence {
        Presence::Required => String::new(),
        Presence::Optional => ", may be left out".to_owned(),
        Presence::Default(value) => format!(", {value} if left out"),
    };
    let description = match &field.description {
        Some(description) => format!(": {description}"),
        None => String::new(),
    };
    format!("{} {}{presence}{description}", field.name, field.ty)
}

/// What is declared of a tool's use, by the names agent files have for it.
fn attributes(attributes: &ToolAttributes) -> Map<String, Value> {
    let ToolAttributes {
        risk,
        category,
        timeout_seconds,
        idempotent,
        open_world,
        sensitive,
        undo_window_seconds,
        deferred,
        dry_run_argument,
        deprecated,
    } = attributes;
    let all = [
        ("risk", json!(risk)),
        ("category", json!(category)),
        ("timeout_seconds", json!(timeout_seconds)),
        ("idempotent", json!(idempotent)),
        ("open_world", json!(open_world)),
        ("sensitive", json!(sensitive)),
        ("undo_window_seconds", json!(undo_window_seconds)),
        ("deferred", json!(deferred)),
        ("dry_run_argument", json!(dry_run_argument)),
        ("deprecated", json!(deprecated)),
    ];
    let declared = all.into_iter().filter(|(_, value)| !value.is_null());
    declared
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}
