//! `windlass schema`: prints the JSON Schema of tools.

use serde_json::{Map, Value};
use windlass_service::unknown_name_message;
use windlass_spec::ToolSpecification;

use super::CommandOutcome;
use super::arguments::Schema;
use super::report::Reporter;
use super::source::read_agent_file;
use super::terminal::print_json;

pub(super) fn run(command: &Schema, reporter: &Reporter) -> anyhow::Result<CommandOutcome> {
    let Some(file) = read_agent_file(&command.file, reporter)? else {
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
                    &command.file.to_string_lossy()
                ));
            }
        },
    };
    print_json(&format!("{printed:#}\n"))?;
    Ok(CommandOutcome::Done)
}
