//! `windlass mcp pins`: what was accepted of servers' tools, what is offered now, and accepting it. Only
//! what was shown can be accepted: if the server offers something else by then, nothing is.

use std::io::{IsTerminal as _, stdin};

use inquire::Confirm;
use serde_json::{Value, json};
use windlass_mcp::{Ledger, Pin, PinState, diff, digest, program_of, visible};
use windlass_spec::server::ServerSettings;

use crate::arguments::McpPins;
use crate::settings::configured;
use crate::table::say_table;
use crate::terminal::{complain, put, say};
use crate::{Outcome, data, servers};

pub(super) fn run(command: &McpPins) -> anyhow::Result<Outcome> {
    let configuration = &configured()?.configuration;
    let data = command.kept.data.as_deref();
    let ledger = servers::ledger(data)?;
    let meant: Vec<&ServerSettings> = match &command.name {
        Some(name) => vec![servers::find(configuration, name)?],
        None => configuration.servers().iter().collect(),
    };
    let mut is_open = false;
    for settings in meant {
        let Some(pins) = ledger.pins(&settings.name)? else {
            let name = &settings.name;
            if command.kept.json {
                continue;
            }
            complain(&format!(
                "{name}: never met; `windlass mcp inspect {name}` does that"
            ))?;
            continue;
        };
        if command.accept_program {
            accept_program(settings, &ledger, command)?;
        }
        let wanted = wanted(command, settings, &pins)?;
        let by = data::open(data)?.who().principal.to_string();
        for pin in &wanted {
            accept(settings, &ledger, pin, &by, command)?;
        }
        let pins = ledger.pins(&settings.name)?.unwrap_or_default();
        is_open |= pins.iter().any(is_waiting);
        show(settings, &pins, command)?;
    }
    Ok(Outcome::from_success(!is_open))
}

/// Whether somebody has to look at it.
fn is_waiting(pin: &Pin) -> bool {
    !matches!(pin.state(), PinState::Pinned | PinState::Gone)
}

/// The pins that are to be accepted.
fn wanted<'p>(
    command: &McpPins,
    settings: &ServerSettings,
    pins: &'p [Pin],
) -> anyhow::Result<Vec<&'p Pin>> {
    if command.accept_all {
        // What hides something is looked at one by one.
        let all = pins.iter().filter(|pin| is_waiting(pin));
        return Ok(all
            .filter(|pin| pin.state() != PinState::Quarantined)
            .collect());
    }
    let mut wanted = Vec::new();
    for name in &command.accept {
        let found = pins.iter().find(|pin| {
            let full = windlass_mcp::tool_name(&settings.name, &pin.tool);
            pin.tool == *name || full.is_ok_and(|full| full.as_str() == name)
        });
        let Some(pin) = found else {
            let names: Vec<&str> = pins.iter().map(|pin| pin.tool.as_str()).collect();
            let place = format!("the server `{}`", settings.name);
            anyhow::bail!(crate::schema::unknown("tool", name, &names, &place));
        };
        match is_waiting(pin) {
            true => wanted.push(pin),
            false => complain(&format!(
                "{}: there is nothing to accept",
                visible(&pin.tool)
            ))?,
        }
    }
    Ok(wanted)
}

fn accept(
    settings: &ServerSettings,
    ledger: &Ledger,
    pin: &Pin,
    by: &str,
    command: &McpPins,
) -> anyhow::Result<()> {
    let Some(offered) = &pin.offered else {
        return Ok(());
    };
    if !command.kept.json {
        write_pin(settings, pin)?;
    }
    if !confirmed(command, "Accept it?")? {
        return Ok(());
    }
    ledger.accept(&settings.name, &pin.tool, &digest(offered), by)?;
    if !command.kept.json {
        complain("accepted")?;
    }
    Ok(())
}

fn accept_program(
    settings: &ServerSettings,
    ledger: &Ledger,
    command: &McpPins,
) -> anyhow::Result<()> {
    let program = program_of(settings, &servers::lookup()).map_err(anyhow::Error::msg)?;
    let changes = ledger
        .program_changes(settings, program.as_ref())
        .map_err(anyhow::Error::msg)?;
    if changes.is_empty() {
        complain("what it runs is what was accepted")?;
        return Ok(());
    }
    for change in &changes {
        say(&visible(change))?;
    }
    if confirmed(command, "Accept what it runs now?")? {
        ledger.accept_program(settings, program.as_ref())?;
        complain("accepted")?;
    }
    Ok(())
}

fn confirmed(command: &McpPins, question: &str) -> anyhow::Result<bool> {
    if command.yes {
        return Ok(true);
    }
    anyhow::ensure!(
        stdin().is_terminal(),
        "whoever accepts a change is asked at a terminal, and this is none\nhint: `--yes` accepts it without asking"
    );
    Ok(Confirm::new(question)
        .with_default(false)
        .prompt_skippable()?
        == Some(true))
}

/// What is the matter with a tool.
fn write_pin(settings: &ServerSettings, pin: &Pin) -> anyhow::Result<()> {
    say(&format!(
        "{}__{} is {}",
        settings.name,
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

fn show(settings: &ServerSettings, pins: &[Pin], command: &McpPins) -> anyhow::Result<()> {
    if command.kept.json {
        let tools: Vec<Value> = pins.iter().map(as_json).collect();
        put(&format!(
            "{}\n",
            json!({"server": settings.name, "pins": tools})
        ))?;
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
                format!("{}__{}", settings.name, visible(&pin.tool)),
                pin.state().to_string(),
                by.to_owned(),
                digest.chars().take(19).collect(),
            ]
        })
        .collect();
    say_table(["TOOL", "STATE", "ACCEPTED BY", "DEFINITION"], &rows)?;
    for pin in pins.iter().filter(|pin| is_waiting(pin)) {
        say("")?;
        write_pin(settings, pin)?;
    }
    if pins.iter().any(is_waiting) {
        complain(&format!(
            "\nit is not called until somebody accepts it: windlass mcp pins {} --accept TOOL",
            settings.name
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
