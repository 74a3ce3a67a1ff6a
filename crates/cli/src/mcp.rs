//! `windlass mcp`: servers whose tools agents can use. Adding one, seeing what it offers, accepting what
//! changed, calling a tool of it by hand, and taking it out again.

mod add;
mod inspect;
mod pins;

use serde_json::json;
use windlass_mcp::{Era, LIBRARY, Pin, PinState, reached};

use super::arguments::{
    Mcp, McpCall, McpCommand, McpList, McpLogin, McpRemove, OneTool, ToolsCall,
};
use super::program::Program;
use super::report::Reporter;
use super::run::block_on_until_interrupted;
use super::table::{one_line, say_table};
use super::terminal::{complain, put, say};
use super::{Outcome, tools};

pub(super) fn run(
    program: &Program,
    command: &Mcp,
    reporter: &Reporter,
) -> anyhow::Result<Outcome> {
    match &command.command {
        McpCommand::Add(command) => add::run(program, command),
        McpCommand::Import(command) => add::import(program, command),
        McpCommand::List(command) => list(program, command),
        McpCommand::Inspect(command) => inspect::run(program, command),
        McpCommand::Call(command) => call(program, command, reporter),
        McpCommand::Pins(command) => pins::run(program, command),
        McpCommand::Login(command) => log_in(program, command),
        McpCommand::Remove(command) => remove(program, command),
    }
}

/// How many pins stand how.
fn count(pins: &[Pin]) -> [(PinState, usize); 5] {
    [
        PinState::Pinned,
        PinState::Changed,
        PinState::New,
        PinState::Quarantined,
        PinState::Gone,
    ]
    .map(|state| {
        (
            state,
            pins.iter().filter(|pin| pin.state() == state).count(),
        )
    })
}

/// The same in words.
fn counted(pins: &[Pin]) -> String {
    let counted = count(pins).into_iter().filter(|(_, count)| *count > 0);
    let told: Vec<String> = counted
        .map(|(state, count)| format!("{count} {state}"))
        .collect();
    match told.is_empty() {
        true => "none".to_owned(),
        false => told.join(", "),
    }
}

fn list(program: &Program, command: &McpList) -> anyhow::Result<Outcome> {
    let service = program.service(command.kept.data.as_deref());
    let servers = service.list_servers(&program.identity()?)?;
    if servers.is_empty() {
        if !command.kept.json {
            complain("the configuration names no servers\nhint: windlass mcp add NAME -- COMMAND")?;
        }
        return Ok(Outcome::Done);
    }
    let mut rows = Vec::new();
    for server in &servers {
        let (settings, era) = (&server.settings, server.era);
        let pins = server.pins.as_deref();
        if command.kept.json {
            let counts = pins.map(|pins| {
                let counts =
                    count(pins).map(|(state, count)| (state.as_str().to_owned(), json!(count)));
                serde_json::Map::from_iter(counts)
            });
            let printed = json!({
                "name": settings.name,
                "reached": reached(settings),
                "enabled": settings.is_enabled,
                "trusted": settings.is_trusted,
                "era": era.map(Era::as_str),
                "tools": counts,
            });
            put(&format!("{printed}\n"))?;
            continue;
        }
        let trust = match (settings.is_enabled, settings.is_trusted) {
            (false, _) => "off",
            (true, true) => "trusted",
            (true, false) => "-",
        };
        rows.push([
            settings.name.to_string(),
            trust.to_owned(),
            era.map_or("-", |era| era.as_str()).to_owned(),
            pins.map_or_else(|| "never met".to_owned(), counted),
            one_line(&reached(settings), 80),
        ]);
    }
    if !command.kept.json {
        say_table(["SERVER", "TRUST", "ERA", "TOOLS", "REACHED BY"], &rows)?;
    }
    Ok(Outcome::Done)
}

/// A call of a server's tool is a call like any other.
fn call(program: &Program, command: &McpCall, reporter: &Reporter) -> anyhow::Result<Outcome> {
    let service = program.service(command.kept.data.as_deref());
    let identity = program.identity()?;
    let name = service.server_tool_name(&identity, &command.name, &command.tool)?;
    tools::call(
        program,
        &ToolsCall {
            tool: OneTool {
                name: name.to_string(),
                library: LIBRARY.to_owned(),
                agent_file: None,
            },
            arguments: command.arguments.clone(),
            args: command.args.clone(),
            yes: command.yes,
            json: command.kept.json,
            data: command.kept.data.clone(),
        },
        reporter,
    )
}

fn log_in(program: &Program, command: &McpLogin) -> anyhow::Result<Outcome> {
    let (service, identity) = (
        program.service(command.data.as_deref()),
        program.identity()?,
    );
    let present = |url: &str| {
        let _ = complain("open this page in a browser on this machine, and say yes there:");
        let _ = say(url);
    };
    let login = service.log_in_to_server(&identity, &command.name, &present);
    let login = block_on_until_interrupted(&service, login)??;
    let scopes = match login.scopes.is_empty() {
        true => String::new(),
        false => format!(" for {}", login.scopes.join(", ")),
    };
    say(&format!("leave was given by {}{scopes}", login.issuer))?;
    Ok(Outcome::Done)
}

fn remove(program: &Program, command: &McpRemove) -> anyhow::Result<Outcome> {
    let service = program.service(command.data.as_deref());
    let removed = service.remove_server(&program.identity()?, &command.name)?;
    if let Some(file) = &removed.file {
        complain(&format!("taken out of {}", file.display()))?;
    }
    if removed.had_login {
        complain("its leave was forgotten")?;
    }
    if removed.had_pins {
        complain("its pins were forgotten")?;
    }
    Ok(Outcome::Done)
}
