//! `windlass mcp inspect`: meets a server and shows what it says of itself and its tools, with what that
//! comes to here: the names agents use, the risk, and what hides in it.

use std::sync::Arc;

use serde_json::{Value, json};
use windlass_mcp::{Pin, visible};
use windlass_service::{InspectedServer, ServerTool};
use windlass_spec::write_tool;

use super::counted;
use super::pins::write_changes;
use crate::Outcome;
use crate::arguments::McpInspect;
use crate::program::Program;
use crate::run::block_on_until_interrupted;
use crate::table::{one_line, say_table};
use crate::terminal::{complain, put, say, visible_line};

/// How much of a description is shown in a row.
const DESCRIPTION: usize = 60;

/// How much of what a server says of itself is shown.
const INSTRUCTIONS: usize = 1_000;

pub(super) fn run(program: &Program, command: &McpInspect) -> anyhow::Result<Outcome> {
    let service = program.service(command.kept.data.as_deref());
    let identity = program.identity()?;
    let inspecting = service.inspect_server(&identity, &command.name);
    let shown = Shown(block_on_until_interrupted(&service, inspecting)??);
    match (&command.tool, command.kept.json, command.gram) {
        (Some(tool), is_json, is_gram) => shown.tool(tool, is_json, is_gram),
        (None, true, _) => shown.json(),
        (None, false, true) => shown.gram(),
        (None, false, false) => shown.text(),
    }
}

struct Shown(InspectedServer);

impl Shown {
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

    fn json(&self) -> anyhow::Result<Outcome> {
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
        });
        put(&format!("{printed}\n"))?;
        Ok(Outcome::Done)
    }

    fn gram(&self) -> anyhow::Result<Outcome> {
        for ServerTool { tool, .. } in self.pins().iter().filter_map(|pin| self.0.usable(pin)) {
            match tool.specification().map_err(anyhow::Error::msg) {
                Ok(specification) => {
                    say(write_tool(&Arc::new(specification))?.trim_end())?;
                }
                Err(why) => complain(&visible_line(&format!("{}: {why}", tool.name())))?,
            }
        }
        Ok(Outcome::Done)
    }

    fn text(&self) -> anyhow::Result<Outcome> {
        let greeting = &self.0.connection.greeting;
        say(&format!(
            "{}: {} {}, protocol {} ({})",
            self.0.settings.name,
            visible(&greeting.server_name),
            visible(&greeting.server_version),
            visible(&greeting.protocol_version),
            greeting.era.as_str()
        ))?;
        if let Some(instructions) = &greeting.instructions {
            // Models are not shown this.
            let told = visible(instructions);
            say(&format!("it says: {}", one_line(&told, INSTRUCTIONS)))?;
        }
        say(&format!("tools: {}\n", counted(self.pins())))?;
        let rows: Vec<[String; 4]> = self
            .pins()
            .iter()
            .map(|pin| {
                let usable = self.0.usable(pin);
                let said = pin
                    .offered
                    .as_ref()
                    .and_then(|offered| offered.description());
                [
                    usable.map_or_else(
                        || visible(&pin.tool).into_owned(),
                        |usable| usable.tool.name().to_string(),
                    ),
                    pin.state().to_string(),
                    usable.map_or_else(|| "-".to_owned(), |usable| usable.risk.to_string()),
                    one_line(&visible(said.unwrap_or_default()), DESCRIPTION),
                ]
            })
            .collect();
        if !rows.is_empty() {
            say_table(["TOOL", "STATE", "RISK", "DESCRIPTION"], &rows)?;
        }
        for rename in &self.0.renames {
            complain(&format!(
                "`{}` may be called `{}` now",
                visible(&rename.from),
                visible(&rename.to)
            ))?;
        }
        for warning in &self.0.warnings {
            complain(&format!("warning: {}", visible_line(warning)))?;
        }
        Ok(Outcome::Done)
    }

    fn tool(&self, asked: &str, is_json: bool, is_gram: bool) -> anyhow::Result<Outcome> {
        let pin = self.0.pin(asked)?;
        if is_json {
            put(&format!("{}\n", self.pin_json(pin)))?;
            return Ok(Outcome::Done);
        }
        let usable = self.0.usable(pin);
        if is_gram {
            let usable = usable.ok_or_else(|| {
                anyhow::anyhow!("the tool is {}, so it cannot be used", pin.state())
            })?;
            let specification = usable.tool.specification().map_err(anyhow::Error::msg)?;
            say(write_tool(&Arc::new(specification))?.trim_end())?;
            return Ok(Outcome::Done);
        }
        say(&format!("{} ({})", visible(&pin.tool), pin.state()))?;
        if let Some(ServerTool { tool, risk }) = usable {
            say(&format!("agents call it `{}`; risk: {risk}", tool.name()))?;
            if let Ok(signature) = tool.signature() {
                say(&signature.to_string())?;
            }
        }
        for finding in &pin.findings {
            say(&format!("suspicious: {}", visible(finding)))?;
        }
        write_changes(pin)?;
        if let Some(offered) = &pin.offered {
            let definition = serde_json::to_string_pretty(offered)?;
            say(&format!("\n{}", visible(&definition)))?;
        }
        Ok(Outcome::Done)
    }
}
