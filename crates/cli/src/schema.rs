//! `windlass schema`: prints the JSON Schema of tools, or of a public model.

use std::path::Path;

use serde_json::{Map, Value};
use windlass_service::unknown_name_message;
use windlass_spec::{ToolSpecification, model_schemas};

use super::CommandOutcome;
use super::arguments::Schema;
use super::report::Reporter;
use super::source::read_agent_file;
use super::terminal::print_json;

pub(super) fn run(command: &Schema, reporter: &Reporter) -> anyhow::Result<CommandOutcome> {
    if let Some(name) = &command.model {
        return model(name);
    }
    let path = command.file.as_deref().unwrap_or(Path::new("-"));
    let Some(file) = read_agent_file(path, reporter)? else {
        return Ok(CommandOutcome::Failed);
    };
    let schema = |tool: &ToolSpecification| match command.returns {
        true => tool.returns_schema(),
        false => tool.schema().clone(),
    };
    let printed = match &command.tool {
        None => {
            let schemas = file
                .tools()
                .iter()
                .map(|tool| (tool.name().to_string(), schema(tool)));
            Value::Object(schemas.collect::<Map<_, _>>())
        }
        Some(name) => match file.tool(name) {
            Some(tool) => schema(tool),
            None => {
                let known: Vec<&str> = file
                    .tools()
                    .iter()
                    .map(|tool| tool.name().as_str())
                    .collect();
                anyhow::bail!(unknown_name_message(
                    "tool",
                    name,
                    &known,
                    &path.to_string_lossy()
                ));
            }
        },
    };
    print_json(&format!("{printed:#}\n"))?;
    Ok(CommandOutcome::Done)
}

/// Prints the schema of a public model.
fn model(name: &str) -> anyhow::Result<CommandOutcome> {
    let schemas = model_schemas();
    let Some((_, schema)) = schemas.iter().find(|(known, _)| *known == name) else {
        let known: Vec<&str> = schemas.iter().map(|(known, _)| *known).collect();
        anyhow::bail!(unknown_name_message("model", name, &known, "Windlass"));
    };
    print_json(&format!("{schema:#}\n"))?;
    Ok(CommandOutcome::Done)
}
