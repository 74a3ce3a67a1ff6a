//! `windlass mcp inspect`: connects to a server and shows its description and its tools: their names for
//! agents, their risk, and hidden text in them.

use std::sync::Arc;

use serde_json::{Value, json};
use windlass_mcp::{Pin, visible};
use windlass_service::{InspectedServer, ServerTool};
use windlass_spec::write_tool;

use super::counted;
use super::pins::write_changes;
use crate::CommandOutcome;
use crate::arguments::McpInspect;
use crate::program::Program;
use crate::run::block_on_until_interrupted;
use crate::table::{one_line, print_table};
use crate::terminal::{Quote, eprint_line, print_json, print_line, visible_line};

/// The maximum length of a description in a row.
const DESCRIPTION: usize = 60;

/// The maximum length of the shown instructions of a server.
const INSTRUCTIONS: usize = 1_000;

pub(super) fn run(program: &Program, command: &McpInspect) -> anyhow::Result<CommandOutcome> {
    let service = program.service(command.output.data.as_deref());
    let identity = program.identity()?;
    let inspecting = service.inspect_server(&identity, &command.name);
    let inspection = InspectionOutput(block_on_until_interrupted(&service, inspecting)??);
    match (&command.tool, command.output.json, command.gram) {
        (Some(tool), is_json, is_gram) => inspection.print_tool(tool, is_json, is_gram),
        (None, true, _) => inspection.print_json(),
        (None, false, true) => inspection.print_gram(),
        (None, false, false) => inspection.print_text(),
    }
}

struct InspectionOutput(InspectedServer);

impl InspectionOutput {
    fn pins(&self) -> &[Pin] {
        &self.0.connection.pins
    }

    fn pin_json(&self, pin: &Pin) -> Value {
        let tool = self.0.usable(pin);
        json!({
            "tool": pin.tool,
            "name": tool.map(|tool| tool.tool.name()),
            "state": pin.state().as_str(),
            "risk": tool.map(|tool| tool.risk.to_string()),
            "signature": tool.and_then(|tool| tool.tool.signature().ok()).map(|it| it.to_string()),
            "findings": pin.findings,
            "definition": pin.offered,
        })
    }

    fn print_json(&self) -> anyhow::Result<CommandOutcome> {
        let tools: Vec<Value> = self.pins().iter().map(|pin| self.pin_json(pin)).collect();
        let greeting = &self.0.connection.greeting;
        let printed = json!({
            "name": self.0.settings.name,
            "era": greeting.era.as_str(),
            "protocol_version": greeting.protocol_version,
            "server_name": greeting.server_name,
            "server_version": greeting.server_version,
            "instructions": greeting.instructions,
            "tools": tools,
            "warnings": self.0.warnings,
        });
        print_json(&format!("{printed}\n"))?;
        Ok(CommandOutcome::Done)
    }

    fn print_gram(&self) -> anyhow::Result<CommandOutcome> {
        for ServerTool { tool, .. } in self.pins().iter().filter_map(|pin| self.0.usable(pin)) {
            match tool.specification().map_err(anyhow::Error::msg) {
                Ok(specification) => {
                    print_line(write_tool(&Arc::new(specification))?.trim_end())?;
                }
                Err(why) => eprint_line(&visible_line(&format!("{}: {why}", tool.name())))?,
            }
        }
        Ok(CommandOutcome::Done)
    }

    fn print_text(&self) -> anyhow::Result<CommandOutcome> {
        let greeting = &self.0.connection.greeting;
        print_line(&format!(
            "{}: {} {}, protocol {} ({})",
            self.0.settings.name,
            visible_line(&greeting.server_name),
            visible_line(&greeting.server_version),
            visible_line(&greeting.protocol_version),
            greeting.era.as_str()
        ))?;
        if let Some(instructions) = &greeting.instructions {
            let instructions = one_line(&visible(instructions), INSTRUCTIONS);
            print_line("instructions of the server, which models do not get:")?;
            print_line(&Quote::of(&instructions).block("  "))?;
        }
        print_line(&format!("tools: {}\n", counted(self.pins())))?;
        let rows: Vec<[String; 4]> = self
            .pins()
            .iter()
            .map(|pin| {
                let usable = self.0.usable(pin);
                let description = pin
                    .offered
                    .as_ref()
                    .and_then(|offered| offered.description());
                [
                    usable.map_or_else(
                        || format!("{}__{}", self.0.settings.name, visible_line(&pin.tool)),
                        |usable| usable.tool.name().to_string(),
                    ),
                    pin.state().to_string(),
                    usable.map_or_else(|| "-".to_owned(), |usable| usable.risk.to_string()),
                    one_line(&visible(description.unwrap_or_default()), DESCRIPTION),
                ]
            })
            .collect();
        if !rows.is_empty() {
            print_table(["TOOL", "STATE", "RISK", "DESCRIPTION"], &rows)?;
        }
        for rename in &self.0.renames {
            eprint_line(&format!(
                "`{}` may have been renamed to `{}`",
                visible_line(&rename.from),
                visible_line(&rename.to)
            ))?;
        }
        for warning in &self.0.warnings {
            eprint_line(&format!("warning: {}", visible_line(warning)))?;
        }
        Ok(CommandOutcome::Done)
    }

    fn print_tool(
        &self,
        asked: &str,
        is_json: bool,
        is_gram: bool,
    ) -> anyhow::Result<CommandOutcome> {
        let pin = self.0.pin(asked)?;
        if is_json {
            print_json(&format!("{}\n", self.pin_json(pin)))?;
            return Ok(CommandOutcome::Done);
        }
        let usable = self.0.usable(pin);
        if is_gram {
            let usable = usable.ok_or_else(|| {
                anyhow::anyhow!("the tool is {}, so it cannot be used", pin.state())
            })?;
            let specification = usable.tool.specification().map_err(anyhow::Error::msg)?;
            print_line(write_tool(&Arc::new(specification))?.trim_end())?;
            return Ok(CommandOutcome::Done);
        }
        print_line(&format!("{} ({})", visible_line(&pin.tool), pin.state()))?;
        if let Some(ServerTool { tool, risk }) = usable {
            print_line(&format!("agents call it `{}`; risk: {risk}", tool.name()))?;
            if let Ok(signature) = tool.signature() {
                print_line(&signature.to_string())?;
            }
        }
        for finding in &pin.findings {
            let finding = Quote::of(finding).after_label("  ");
            print_line(&format!("suspicious: {finding}"))?;
        }
        write_changes(pin)?;
        if let Some(offered) = &pin.offered {
            let definition = serde_json::to_string_pretty(offered)?;
            print_line("\ndefinition by the server:")?;
            print_line(&Quote::of(&visible(&definition)).block("  "))?;
        }
        Ok(CommandOutcome::Done)
    }
}
