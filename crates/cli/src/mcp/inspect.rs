//! `windlass mcp inspect`: meets a server and shows what it says of itself and its tools, with what that
//! comes to here: the names agents use, the risk, and what hides in it.

use std::sync::Arc;

use serde_json::{Value, json};
use windlass_config::Configuration;
use windlass_core::risk::{KnownTool, ToolRisk};
use windlass_mcp::{Greeting, Ledger, Pin, look_alikes, mentions, renames, tool_name, visible};
use windlass_spec::server::ServerSettings;
use windlass_spec::write_tool;
use windlass_tools::{Tool, ToolLibrary};

use super::counted;
use super::pins::write_changes;
use crate::arguments::McpInspect;
use crate::run::block_on_until_interrupted;
use crate::settings::configured;
use crate::table::{one_line, say_table};
use crate::terminal::{complain, put, say};
use crate::{Outcome, servers};

/// How much of a description is shown in a row.
const DESCRIPTION: usize = 60;

/// How much of what a server says of itself is shown.
const INSTRUCTIONS: usize = 1_000;

pub(super) fn run(command: &McpInspect) -> anyhow::Result<Outcome> {
    let configuration = &configured()?.configuration;
    let settings = servers::find(configuration, &command.name)?;
    let data = command.kept.data.as_deref();
    let ledger = servers::ledger(data)?;
    let options = servers::options(settings, configuration, data)?;
    let meeting = servers::introduce(settings, &ledger, &options);
    let (greeting, pins) = block_on_until_interrupted(meeting)??;
    let offered = servers::set_up(configuration, data)?.offered()?;
    let shown = Shown {
        configuration,
        settings,
        greeting: &greeting,
        pins: &pins,
        library: &offered.library,
        ledger: &ledger,
    };
    match (&command.tool, command.kept.json, command.gram) {
        (Some(tool), is_json, is_gram) => shown.tool(tool, is_json, is_gram),
        (None, true, _) => shown.json(),
        (None, false, true) => shown.gram(),
        (None, false, false) => shown.text(),
    }
}

/// The risk of a tool of a server, before there are arguments.
pub(super) fn risk_of(tool: &Tool, configuration: &Configuration) -> String {
    let Ok(specification) = tool.specification() else {
        return "irreversible".to_owned();
    };
    let (annotations, trust) = tool.annotations().unwrap_or_default();
    let known = KnownTool {
        operator_override: configuration.risk().get(tool.name()).copied(),
        annotations,
        trust,
        is_of_server: true,
        ..KnownTool::specified(&specification)
    };
    ToolRisk::of(&known).base().level.to_string()
}

struct Shown<'s> {
    configuration: &'s Configuration,
    settings: &'s ServerSettings,
    greeting: &'s Greeting,
    pins: &'s [Pin],
    library: &'s ToolLibrary,
    ledger: &'s Ledger,
}

impl Shown<'_> {
    /// The tool that agents use for a pin, if it can be used.
    fn usable(&self, pin: &Pin) -> Option<&Tool> {
        let name = tool_name(&self.settings.name, &pin.tool).ok()?;
        self.library.lookup(name.as_str())
    }

    fn pin_json(&self, pin: &Pin) -> Value {
        let tool = self.usable(pin);
        json!({
            "tool": pin.tool,
            "name": tool.map(Tool::name),
            "state": pin.state().as_str(),
            "risk": tool.map(|tool| risk_of(tool, self.configuration)),
            "signature": tool.and_then(|tool| tool.signature().ok()).map(|it| it.to_string()),
            "findings": pin.findings,
            "definition": pin.offered,
        })
    }

    fn json(&self) -> anyhow::Result<Outcome> {
        let tools: Vec<Value> = self.pins.iter().map(|pin| self.pin_json(pin)).collect();
        let told = json!({
            "name": self.settings.name,
            "era": self.greeting.era.as_str(),
            "protocol_version": self.greeting.protocol_version,
            "server_name": self.greeting.server_name,
            "server_version": self.greeting.server_version,
            "instructions": self.greeting.instructions,
            "tools": tools,
        });
        put(&format!("{told}\n"))?;
        Ok(Outcome::Done)
    }

    fn gram(&self) -> anyhow::Result<Outcome> {
        for tool in self.pins.iter().filter_map(|pin| self.usable(pin)) {
            match tool.specification().map_err(anyhow::Error::msg) {
                Ok(specification) => {
                    say(write_tool(&Arc::new(specification))?.trim_end())?;
                }
                Err(why) => complain(&format!("{}: {why}", tool.name()))?,
            }
        }
        Ok(Outcome::Done)
    }

    fn text(&self) -> anyhow::Result<Outcome> {
        let greeting = self.greeting;
        say(&format!(
            "{}: {} {}, protocol {} ({})",
            self.settings.name,
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
        say(&format!("tools: {}\n", counted(self.pins)))?;
        let rows: Vec<[String; 4]> = self
            .pins
            .iter()
            .map(|pin| {
                let tool = self.usable(pin);
                let said = pin
                    .offered
                    .as_ref()
                    .and_then(|offered| offered.description());
                [
                    tool.map_or_else(
                        || visible(&pin.tool).into_owned(),
                        |tool| tool.name().to_string(),
                    ),
                    pin.state().to_string(),
                    tool.map_or_else(|| "-".to_owned(), |tool| risk_of(tool, self.configuration)),
                    one_line(&visible(said.unwrap_or_default()), DESCRIPTION),
                ]
            })
            .collect();
        if !rows.is_empty() {
            say_table(["TOOL", "STATE", "RISK", "DESCRIPTION"], &rows)?;
        }
        for rename in renames(self.pins) {
            complain(&format!(
                "`{}` may be called `{}` now",
                visible(&rename.from),
                visible(&rename.to)
            ))?;
        }
        for warning in self.warnings()? {
            complain(&warning)?;
        }
        Ok(Outcome::Done)
    }

    /// What about the tools of this server could be taken for those of another.
    fn warnings(&self) -> anyhow::Result<Vec<String>> {
        let mut names = Vec::new();
        let mut definitions = Vec::new();
        for settings in self.configuration.servers() {
            for pin in self.ledger.pins(&settings.name)?.unwrap_or_default() {
                if let Some(usable) = pin.usable() {
                    names.push((settings.name.clone(), pin.tool.clone()));
                    definitions.push((settings.name.clone(), usable.clone()));
                }
            }
        }
        let own = &self.settings.name;
        let alike = look_alikes(&names).into_iter();
        let alike = alike.filter(|alike| alike.first.0 == *own || alike.second.0 == *own);
        let spoken_of = mentions(&definitions).into_iter();
        let spoken_of = spoken_of.filter(|mention| mention.tool.0 == *own || mention.of.0 == *own);
        let told = alike.map(|alike| alike.to_string());
        let told = told.chain(spoken_of.map(|mention| mention.to_string()));
        Ok(told.map(|told| format!("warning: {told}")).collect())
    }

    fn tool(&self, asked: &str, is_json: bool, is_gram: bool) -> anyhow::Result<Outcome> {
        let found = self.pins.iter().find(|pin| {
            pin.tool == asked
                || self
                    .usable(pin)
                    .is_some_and(|tool| tool.name().as_str() == asked)
        });
        let Some(pin) = found else {
            let names: Vec<&str> = self.pins.iter().map(|pin| pin.tool.as_str()).collect();
            let place = format!("the server `{}`", self.settings.name);
            anyhow::bail!(crate::schema::unknown("tool", asked, &names, &place));
        };
        if is_json {
            put(&format!("{}\n", self.pin_json(pin)))?;
            return Ok(Outcome::Done);
        }
        let tool = self.usable(pin);
        if is_gram {
            let tool = tool.ok_or_else(|| {
                anyhow::anyhow!("the tool is {}, so it cannot be used", pin.state())
            })?;
            let specification = tool.specification().map_err(anyhow::Error::msg)?;
            say(write_tool(&Arc::new(specification))?.trim_end())?;
            return Ok(Outcome::Done);
        }
        say(&format!("{} ({})", visible(&pin.tool), pin.state()))?;
        if let Some(tool) = tool {
            say(&format!(
                "agents call it `{}`; risk: {}",
                tool.name(),
                risk_of(tool, self.configuration)
            ))?;
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
