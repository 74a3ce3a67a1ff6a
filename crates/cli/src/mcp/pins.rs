//! `windlass mcp pins`: what was accepted of servers' tools, what is offered now, and accepting it. Only
//! what was shown can be accepted: if the server offers something else by then, nothing is.

use std::io::{IsTerminal as _, stdin};

use serde_json::{Value, json};
use windlass_mcp::{Pin, diff, digest, visible};
use windlass_service::{Identity, ServerStatus, Service, needs_acceptance};
use windlass_spec::server::ServerName;

use crate::Outcome;
use crate::arguments::McpPins;
use crate::program::Program;
use crate::prompt::{PromptError, read_text};
use crate::table::say_table;
use crate::terminal::{complain, put, say};

pub(super) fn run(program: &Program, command: &McpPins) -> anyhow::Result<Outcome> {
    let pins = Pins {
        service: program.service(command.kept.data.as_deref()),
        identity: program.identity()?,
        command,
    };
    pins.run()
}

/// A command about pins, and who typed it.
struct Pins<'c> {
    service: Service,
    identity: Identity,
    command: &'c McpPins,
}

impl Pins<'_> {
    fn run(&self) -> anyhow::Result<Outcome> {
        let (service, identity, command) = (&self.service, &self.identity, self.command);
        let servers = match &command.name {
            Some(name) => vec![service.show_server(identity, name)?],
            None => service.list_servers(identity)?,
        };
        let mut is_open = false;
        for server in servers {
            let name = &server.settings.name;
            if server.pins.is_none() {
                if !command.kept.json {
                    complain(&format!(
                        "{name}: never met; `windlass mcp inspect {name}` does that"
                    ))?;
                }
                continue;
            }
            if command.accept_program {
                self.accept_program(name)?;
            }
            for pin in self.wanted(&server)? {
                self.accept(name, pin)?;
            }
            let server = service.show_server(identity, name.as_str())?;
            let pins = server.pins.unwrap_or_default();
            is_open |= pins.iter().any(needs_acceptance);
            show(name, &pins, command)?;
        }
        Ok(Outcome::from_success(!is_open))
    }

    /// The pins that are to be accepted.
    fn wanted<'p>(&self, server: &'p ServerStatus) -> anyhow::Result<Vec<&'p Pin>> {
        if self.command.accept_all {
            return Ok(server.acceptable_pins());
        }
        let mut wanted = Vec::new();
        for name in &self.command.accept {
            let pin = server.pin(name)?;
            match needs_acceptance(pin) {
                true => wanted.push(pin),
                false => complain(&format!(
                    "{}: there is nothing to accept",
                    visible(&pin.tool)
                ))?,
            }
        }
        Ok(wanted)
    }

    fn accept(&self, server: &ServerName, pin: &Pin) -> anyhow::Result<()> {
        let Some(offered) = &pin.offered else {
            return Ok(());
        };
        if !self.command.kept.json {
            write_pin(server, pin)?;
        }
        if !confirmed(self.command, "Accept it?")? {
            return Ok(());
        }
        let (server, shown) = (server.as_str(), digest(offered));
        self.service
            .accept_definition(&self.identity, server, &pin.tool, &shown)?;
        if !self.command.kept.json {
            complain("accepted")?;
        }
        Ok(())
    }

    fn accept_program(&self, server: &ServerName) -> anyhow::Result<()> {
        let program = self
            .service
            .server_program(&self.identity, server.as_str())?;
        if program.changes.is_empty() {
            complain("what it runs is what was accepted")?;
            return Ok(());
        }
        for change in &program.changes {
            say(&visible(change))?;
        }
        if confirmed(self.command, "Accept what it runs now?")? {
            self.service.accept_program(&self.identity, &program)?;
            complain("accepted")?;
        }
        Ok(())
    }
}

fn confirmed(command: &McpPins, question: &str) -> anyhow::Result<bool> {
    if command.yes {
        return Ok(true);
    }
    anyhow::ensure!(
        stdin().is_terminal(),
        "whoever accepts a change is asked at a terminal, and this is none\nhint: `--yes` accepts it without asking"
    );
    match read_text(&format!("{question} (y/N)"), "") {
        Ok(typed) => Ok(["y", "yes"].contains(&typed.trim().to_lowercase().as_str())),
        Err(PromptError::Left) => Ok(false),
        Err(PromptError::Terminal(error)) => Err(error.into()),
    }
}

/// What is the matter with a tool.
fn write_pin(server: &ServerName, pin: &Pin) -> anyhow::Result<()> {
    say(&format!(
        "{server}__{} is {}",
        visible(&pin.tool),
        pin.state()
    ))?;
    for finding in &pin.findings {
        say(&format!("  suspicious: {}", visible(finding)))?;
    }
    write_changes(pin)
}

/// What changed since it was accepted, place by place.
pub(super) fn write_changes(pin: &Pin) -> anyhow::Result<()> {
    if pin.accepted.is_none() {
        return Ok(());
    }
    for change in diff(pin) {
        let place = match change.pointer.is_empty() {
            true => "/",
            false => &change.pointer,
        };
        say(&format!("  at {place}"))?;
        if let Some(before) = &change.before {
            say(&format!("    - {before}"))?;
        }
        if let Some(after) = &change.after {
            say(&format!("    + {after}"))?;
        }
    }
    Ok(())
}

fn show(server: &ServerName, pins: &[Pin], command: &McpPins) -> anyhow::Result<()> {
    if command.kept.json {
        let tools: Vec<Value> = pins.iter().map(as_json).collect();
        put(&format!("{}\n", json!({"server": server, "pins": tools})))?;
        return Ok(());
    }
    let rows: Vec<[String; 4]> = pins
        .iter()
        .map(|pin| {
            let digest = pin.offered.as_ref().or(pin.accepted.as_ref()).map(digest);
            let digest = digest.map(|digest| digest.to_string()).unwrap_or_default();
            let by = match (&pin.accepted, &pin.accepted_by) {
                (None, _) => "-",
                (Some(_), None) => "first use",
                (Some(_), Some(by)) => by,
            };
            [
                format!("{server}__{}", visible(&pin.tool)),
                pin.state().to_string(),
                by.to_owned(),
                digest.chars().take(19).collect(),
            ]
        })
        .collect();
    say_table(["TOOL", "STATE", "ACCEPTED BY", "DEFINITION"], &rows)?;
    for pin in pins.iter().filter(|pin| needs_acceptance(pin)) {
        say("")?;
        write_pin(server, pin)?;
    }
    if pins.iter().any(needs_acceptance) {
        complain(&format!(
            "\nit is not called until somebody accepts it: windlass mcp pins {server} --accept TOOL"
        ))?;
    }
    Ok(())
}

fn as_json(pin: &Pin) -> Value {
    let changes: Vec<Value> = diff(pin)
        .into_iter()
        .map(|change| json!({"pointer": change.pointer, "before": change.before, "after": change.after}))
        .collect();
    json!({
        "tool": pin.tool,
        "state": pin.state().as_str(),
        "accepted_by": pin.accepted_by,
        "accepted_at": pin.accepted_at,
        "accepted_digest": pin.accepted.as_ref().map(digest),
        "offered_digest": pin.offered.as_ref().map(digest),
        "findings": pin.findings,
        "changes": changes,
    })
}
