//! `windlass mcp`: servers whose tools agents can use. Adding one, seeing what it offers, accepting what
//! changed, calling a tool of it by hand, and taking it out again.

mod add;
mod edit;
mod inspect;
mod pins;

use serde_json::json;
use windlass_mcp::{Era, Pin, PinState, forget_logins, login, reached};
use windlass_spec::server::{SEPARATOR, Transport};

use super::arguments::{
    Mcp, McpCall, McpCommand, McpList, McpLogin, McpRemove, OneTool, ToolsCall,
};
use super::report::Reporter;
use super::run::block_on_until_interrupted;
use super::settings::configured;
use super::table::{one_line, say_table};
use super::terminal::{complain, put, say};
use super::{Outcome, servers, tools};
use edit::File;

pub(super) fn run(command: &Mcp, reporter: &Reporter) -> anyhow::Result<Outcome> {
    match &command.command {
        McpCommand::Add(command) => add::run(command),
        McpCommand::Import(command) => add::import(command),
        McpCommand::List(command) => list(command),
        McpCommand::Inspect(command) => inspect::run(command),
        McpCommand::Call(command) => call(command, reporter),
        McpCommand::Pins(command) => pins::run(command),
        McpCommand::Login(command) => log_in(command),
        McpCommand::Remove(command) => remove(command),
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

fn list(command: &McpList) -> anyhow::Result<Outcome> {
    let configuration = &configured()?.configuration;
    let known = configuration.servers();
    if known.is_empty() {
        if command.kept.json {
            return Ok(Outcome::Done);
        }
        complain("the configuration names no servers\nhint: windlass mcp add NAME -- COMMAND")?;
        return Ok(Outcome::Done);
    }
    let ledger = servers::ledger(command.kept.data.as_deref())?;
    let mut rows = Vec::new();
    for settings in known {
        let pins = ledger.pins(&settings.name)?;
        let era = ledger.era(&settings.name)?;
        if command.kept.json {
            let counts = pins.as_deref().map(|pins| {
                let counts =
                    count(pins).map(|(state, count)| (state.as_str().to_owned(), json!(count)));
                serde_json::Map::from_iter(counts)
            });
            let told = json!({
                "name": settings.name,
                "reached": reached(settings),
                "enabled": settings.is_enabled,
                "trusted": settings.is_trusted,
                "era": era.map(Era::as_str),
                "tools": counts,
            });
            put(&format!("{told}\n"))?;
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
            pins.map_or_else(|| "never met".to_owned(), |pins| counted(&pins)),
            one_line(&reached(settings), 80),
        ]);
    }
    if !command.kept.json {
        say_table(["SERVER", "TRUST", "ERA", "TOOLS", "REACHED BY"], &rows)?;
    }
    Ok(Outcome::Done)
}

/// A call of a server's tool is a call like any other.
fn call(command: &McpCall, reporter: &Reporter) -> anyhow::Result<Outcome> {
    let configuration = &configured()?.configuration;
    let settings = servers::find(configuration, &command.name)?;
    let tool = match command.tool.split_once(SEPARATOR) {
        Some((server, own)) if server == settings.name.as_str() => own,
        _ => &command.tool,
    };
    let name = windlass_mcp::tool_name(&settings.name, tool)?;
    tools::call(
        &ToolsCall {
            tool: OneTool {
                name: name.to_string(),
                library: windlass_mcp::LIBRARY.to_owned(),
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

fn log_in(command: &McpLogin) -> anyhow::Result<Outcome> {
    let configuration = &configured()?.configuration;
    let settings = servers::find(configuration, &command.name)?;
    let directory = servers::tokens_directory(command.data.as_deref())?;
    let present = |url: &str| {
        let _ = complain("open this page in a browser on this machine, and say yes there:");
        let _ = say(url);
    };
    let login =
        block_on_until_interrupted(login(settings, &directory, &servers::lookup(), &present))??;
    let scopes = match login.scopes.is_empty() {
        true => String::new(),
        false => format!(" for {}", login.scopes.join(", ")),
    };
    say(&format!("leave was given by {}{scopes}", login.issuer))?;
    Ok(Outcome::Done)
}

fn remove(command: &McpRemove) -> anyhow::Result<Outcome> {
    let configuration = &configured()?.configuration;
    let data = command.data.as_deref();
    let ledger = servers::ledger(data)?;
    let name = windlass_spec::server::ServerName::new(command.name.clone())?;
    match servers::find(configuration, &command.name) {
        Ok(settings) => {
            let file = File::of_server(configuration, &command.name)?;
            let text = file.without(&command.name)?;
            file.read_as(&text)?;
            file.write(&text)?;
            complain(&format!("taken out of {}", file.path.display()))?;
            if let Ok(directory) = servers::tokens_directory(data)
                && matches!(settings.transport, Transport::Http(_))
                && forget_logins(settings, &directory)?
            {
                complain("its leave was forgotten")?;
            }
        }
        // What is known of a server that stands nowhere any more is forgotten all the same.
        Err(error) if ledger.server(&name)?.is_none() => return Err(error),
        Err(_) => {}
    }
    if ledger.forget(&name)? {
        complain("its pins were forgotten")?;
    }
    Ok(Outcome::Done)
}
