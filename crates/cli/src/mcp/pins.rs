//! `windlass mcp pins`: shows the accepted and the present definitions of tools, and accepts changes. Only the
//! definition that was shown is accepted: if the server offers another one by then, nothing is accepted.

use std::io::{IsTerminal as _, stdin};

use serde_json::{Value, json};
use windlass_mcp::{Pin, diff, digest, visible};
use windlass_service::{Identity, ServerStatus, Service, needs_acceptance};
use windlass_spec::server::ServerName;

use super::report_changed_project;
use crate::CommandOutcome;
use crate::arguments::McpPins;
use crate::program::Program;
use crate::prompt::{PromptError, read_text};
use crate::table::print_table;
use crate::terminal::{Quote, eprint_line, print_json, print_line, visible_line};

pub(super) fn run(program: &Program, command: &McpPins) -> anyhow::Result<CommandOutcome> {
    let service = program.service(command.output.data.as_deref());
    let identity = program.identity()?;
    let pins = PinsCommand {
        is_project_changed: report_changed_project(program, &service, &identity)?,
        service,
        identity,
        command,
    };
    pins.run()
}

/// The command, with the service and the identity of the user.
struct PinsCommand<'c> {
    service: Service,
    identity: Identity,
    command: &'c McpPins,
    is_project_changed: bool,
}

impl PinsCommand<'_> {
    fn run(&self) -> anyhow::Result<CommandOutcome> {
        let (service, identity, command) = (&self.service, &self.identity, self.command);
        let servers = match &command.name {
            Some(name) => vec![service.show_server(identity, name)?],
            None => service.list_servers(identity)?,
        };
        if servers.is_empty() && !command.output.json && !self.is_project_changed {
            print_line("no tools are pinned")?;
        }
        let mut is_open = self.is_project_changed;
        for server in servers {
            let name = &server.settings.name;
            if server.pins.is_none() {
                if !command.output.json {
                    eprint_line(&format!(
                        "{name}: never connected; run `windlass mcp inspect {name}`"
                    ))?;
                }
                continue;
            }
            if command.accept_program {
                self.accept_program(name)?;
            }
            for pin in self.pins_to_accept(&server)? {
                self.accept(name, pin)?;
            }
            let server = service.show_server(identity, name.as_str())?;
            let pins = server.pins.unwrap_or_default();
            is_open |= pins.iter().any(needs_acceptance);
            show(name, &pins, command)?;
            let changes = program_changes(service, identity, name);
            is_open |= !changes.is_empty();
            report_program(name, &changes)?;
        }
        Ok(CommandOutcome::from_success(!is_open))
    }

    /// The pins to accept.
    fn pins_to_accept<'p>(&self, server: &'p ServerStatus) -> anyhow::Result<Vec<&'p Pin>> {
        if self.command.accept_all {
            return Ok(server.acceptable_pins());
        }
        let mut wanted = Vec::new();
        for name in &self.command.accept {
            let pin = server.pin(name)?;
            match needs_acceptance(pin) {
                true => wanted.push(pin),
                false => eprint_line(&format!(
                    "{}: there is nothing to accept",
                    visible_line(&pin.tool)
                ))?,
            }
        }
        Ok(wanted)
    }

    fn accept(&self, server: &ServerName, pin: &Pin) -> anyhow::Result<()> {
        let Some(offered) = &pin.offered else {
            return Ok(());
        };
        if !self.command.output.json {
            write_pin(server, pin)?;
        }
        if !confirm(self.command, "Accept this definition?")? {
            return Ok(());
        }
        let (server, shown) = (server.as_str(), digest(offered));
        self.service
            .accept_definition(&self.identity, server, &pin.tool, &shown)?;
        if !self.command.output.json {
            eprint_line("accepted")?;
        }
        Ok(())
    }

    fn accept_program(&self, server: &ServerName) -> anyhow::Result<()> {
        let program = self
            .service
            .server_program(&self.identity, server.as_str())?;
        if program.changes.is_empty() {
            eprint_line("the program has not changed")?;
            return Ok(());
        }
        for change in &program.changes {
            print_line(&visible_line(change))?;
        }
        if confirm(self.command, "Accept the changed program?")? {
            self.service.accept_program(&self.identity, &program)?;
            eprint_line("accepted")?;
        }
        Ok(())
    }
}

/// The changes of a server's program that are not accepted, or why they are not known.
pub(super) fn program_changes(
    service: &Service,
    identity: &Identity,
    name: &ServerName,
) -> Vec<String> {
    match service.server_program(identity, name.as_str()) {
        Ok(program) => program.changes,
        Err(error) => vec![error.message().to_owned()],
    }
}

/// Reports the changes of a server's program that are not accepted.
pub(super) fn report_program(name: &ServerName, changes: &[String]) -> anyhow::Result<()> {
    for change in changes {
        eprint_line(&format!(
            "{name}: {}; review the change, then run `windlass mcp pins {name} --accept-program`",
            visible_line(change)
        ))?;
    }
    Ok(())
}

fn confirm(command: &McpPins, question: &str) -> anyhow::Result<bool> {
    if command.yes {
        return Ok(true);
    }
    anyhow::ensure!(
        stdin().is_terminal(),
        "accepting a change needs a confirmation at a terminal, and there is none\nhint: pass `--yes` to accept without confirmation"
    );
    match read_text(&format!("{question} (y/N)"), "") {
        Ok(typed) => Ok(["y", "yes"].contains(&typed.trim().to_lowercase().as_str())),
        Err(PromptError::Cancelled | PromptError::Over) => Ok(false),
        Err(PromptError::Terminal(error)) => Err(error.into()),
    }
}

/// Prints the state of a pin, its findings and its changes.
fn write_pin(server: &ServerName, pin: &Pin) -> anyhow::Result<()> {
    print_line(&format!(
        "{server}__{} is {}",
        visible_line(&pin.tool),
        pin.state()
    ))?;
    for finding in &pin.findings {
        let finding = Quote::of(finding).after_label("    ");
        print_line(&format!("  suspicious: {finding}"))?;
    }
    write_changes(pin)
}

/// Prints the changes since the accepted definition, by JSON pointer.
pub(super) fn write_changes(pin: &Pin) -> anyhow::Result<()> {
    if pin.accepted.is_none() {
        return Ok(());
    }
    for change in diff(pin) {
        let place = match change.pointer.is_empty() {
            true => "/",
            false => &change.pointer,
        };
        print_line(&format!("  at {}", visible_line(place)))?;
        for (sign, text) in [('-', &change.before), ('+', &change.after)] {
            if let Some(text) = text {
                let text = Quote::of(text).after_label("      ");
                print_line(&format!("    {sign} {text}"))?;
            }
        }
    }
    Ok(())
}

fn show(server: &ServerName, pins: &[Pin], command: &McpPins) -> anyhow::Result<()> {
    if command.output.json {
        let tools: Vec<Value> = pins.iter().map(as_json).collect();
        print_json(&format!("{}\n", json!({"server": server, "pins": tools})))?;
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
    if rows.is_empty() {
        print_line(&format!("{server}: no tools are pinned"))?;
        return Ok(());
    }
    print_table(["TOOL", "STATE", "ACCEPTED BY", "DEFINITION"], &rows)?;
    for pin in pins.iter().filter(|pin| needs_acceptance(pin)) {
        print_line("")?;
        write_pin(server, pin)?;
    }
    if pins.iter().any(needs_acceptance) {
        eprint_line(&format!(
            "\nthese tools cannot be called until you accept them: windlass mcp pins {server} --accept TOOL"
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
