//! `windlass tools describe`: describes one tool in full.

use std::fmt::Write as _;

use serde_json::{Map, Value};
use windlass_service::ToolDetails;
use windlass_spec::{Field, Presence, ToolAttributes, write_tool};

use super::find;
use crate::CommandOutcome;
use crate::arguments::ToolsDescribe;
use crate::program::Program;
use crate::report::Reporter;
use crate::terminal::{Quote, print_json, print_line};

pub(super) fn run(
    program: &Program,
    command: &ToolsDescribe,
    reporter: &Reporter,
) -> anyhow::Result<CommandOutcome> {
    let (service, identity) = (program.service(None), program.identity()?);
    let Some(details) = find(&service, &identity, &command.tool, reporter)? else {
        return Ok(CommandOutcome::Failed);
    };
    if command.gram {
        let specification = details.specification().map_err(anyhow::Error::msg)?;
        print_line(write_tool(&specification)?.trim_end())?;
        return Ok(CommandOutcome::Done);
    }
    match command.json {
        true => print_json(&format!("{}\n", details.to_json()))?,
        false => print_line(text(&details).trim_end())?,
    }
    Ok(CommandOutcome::Done)
}

fn text(details: &ToolDetails) -> String {
    let mut text = String::new();
    let (tool, library) = (&details.tool, details.library.name());
    let _ = writeln!(text, "{} of the library `{library}`", tool.name());
    let _ = writeln!(text, "{}\n", Quote::of(tool.description()).block("  "));
    match details.signature() {
        Ok(signature) => {
            let _ = writeln!(text, "parameters");
            if signature.parameters().is_empty() {
                let _ = writeln!(text, "  none");
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
    let _ = writeln!(text, "declared properties");
    match details
        .declared
        .as_ref()
        .map(|tool| attributes(tool.attributes()))
    {
        None => {
            let _ = writeln!(
                text,
                "  unknown; pass `--agent-file FILE` to show what an agent declares"
            );
        }
        Some(declared) if declared.is_empty() => {
            let _ = writeln!(text, "  none; calls are treated as irreversible");
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
    let _ = writeln!(text, "schema of the parameters\n{:#}", tool.schema());
    if let Some(returns) = tool.returns_schema() {
        let _ = writeln!(text, "schema of the result\n{returns:#}");
    }
    text
}

fn parameter(field: &Field) -> String {
    let presence = match &field.presence {
        Presence::Required => String::new(),
        Presence::Optional => ", optional".to_owned(),
        Presence::Default(value) => format!(", default {value}"),
    };
    let description = match &field.description {
        Some(description) => format!(": {}", Quote::of(description).after_label("    ")),
        None => String::new(),
    };
    format!("{} {}{presence}{description}", field.name, field.ty)
}

/// The declared properties of a tool, by their names in agent files.
fn attributes(attributes: &ToolAttributes) -> Map<String, Value> {
    match serde_json::to_value(attributes) {
        Ok(Value::Object(declared)) => declared,
        // All of them are texts, numbers and booleans, so there is no other case.
        _ => Map::new(),
    }
}
