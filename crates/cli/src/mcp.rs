//! `windlass mcp`: manages MCP servers. Adds, inspects and removes servers, accepts changed definitions, and
//! calls a tool directly.

mod add;
mod inspect;
mod pins;

use serde_json::json;
use windlass_mcp::{Era, LIBRARY, Pin, PinState, describe_transport};
use windlass_service::{Identity, Service, TrustState, needs_acceptance};

use super::arguments::{
    Mcp, McpCall, McpCommand, McpList, McpLogin, McpRemove, OneTool, ToolsCall,
};
use super::plural::counted as counted_noun;
use super::program::Program;
use super::report::Reporter;
use super::run::block_on_until_interrupted;
use super::table::{one_line, print_table};
use super::terminal::{eprint_line, print_json, print_line};
use super::{CommandOutcome, tools};
use pins::{program_changes, report_program};

pub(super) fn run(
    program: &Program,
    command: &Mcp,
    reporter: &Reporter,
) -> anyhow::Result<CommandOutcome> {
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

/// Counts pins by state.
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

/// Describes the counts of pins by state.
fn counted(pins: &[Pin]) -> String {
    let counted = count(pins).into_iter().filter(|(_, count)| *count > 0);
    let parts: Vec<String> = counted
        .map(|(state, count)| format!("{count} {state}"))
        .collect();
    match parts.is_empty() {
        true => "none".to_owned(),
        false => parts.join(", "),
    }
}

/// Whether the servers of the project are not used because its files, such as the program of a server, changed since
/// the user trusted it. Says so.
fn report_changed_project(
    program: &Program,
    service: &Service,
    identity: &Identity,
) -> anyhow::Result<bool> {
    if program.names_configuration() {
        return Ok(false);
    }
    let review = service.review_trust(identity, &std::env::current_dir()?);
    let is_changed = review.is_ok_and(|review| {
        let has_servers = !review.grants.programs.is_empty() || !review.grants.hosts.is_empty();
        review.state == TrustState::Changed && has_servers
    });
    if is_changed {
        eprint_line(
            "files of this project changed since you trusted it, so its servers are not used\n\
             hint: review the changes with `windlass trust`",
        )?;
    }
    Ok(is_changed)
}

fn list(program: &Program, command: &McpList) -> anyhow::Result<CommandOutcome> {
    let service = program.service(command.output.data.as_deref());
    let identity = program.identity()?;
    let is_project_changed = report_changed_project(program, &service, &identity)?;
    let servers = service.list_servers(&identity)?;
    if servers.is_empty() {
        if is_project_changed {
            return Ok(CommandOutcome::Failed);
        }
        if !command.output.json {
            eprint_line(
                "the configuration has no servers\nhint: add one with `windlass mcp add NAME -- COMMAND`",
            )?;
        }
        return Ok(CommandOutcome::Done);
    }
    let mut rows = Vec::new();
    let mut is_open = is_project_changed;
    for server in &servers {
        let changes = match server.pins.is_some() && server.settings.is_enabled {
            true => program_changes(&service, &identity, &server.settings.name),
            false => Vec::new(),
        };
        let waiting = server.pins.iter().flatten();
        let waiting = waiting.filter(|pin| needs_acceptance(pin)).count();
        is_open |= waiting > 0 || !changes.is_empty();
        report_program(&server.settings.name, &changes)?;
        if waiting > 0 {
            let name = &server.settings.name;
            let waiting = counted_noun(waiting, "tool waits", "tools wait");
            eprint_line(&format!(
                "{name}: {waiting} for acceptance; see `windlass mcp pins {name}`"
            ))?;
        }
        let (settings, era) = (&server.settings, server.era);
        let pins = server.pins.as_deref();
        if command.output.json {
            let counts = pins.map(|pins| {
                let counts =
                    count(pins).map(|(state, count)| (state.as_str().to_owned(), json!(count)));
                serde_json::Map::from_iter(counts)
            });
            let printed = json!({
                "name": settings.name,
                "reached": describe_transport(settings),
                "enabled": settings.is_enabled,
                "trusted": settings.is_trusted,
                "era": era.map(Era::as_str),
                "tools": counts,
                "program_changes": changes,
            });
            print_json(&format!("{printed}\n"))?;
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
            pins.map_or_else(|| "never connected".to_owned(), counted),
            one_line(&describe_transport(settings), 80),
        ]);
    }
    if !command.output.json {
        print_table(["SERVER", "TRUST", "ERA", "TOOLS", "CONNECTION"], &rows)?;
    }
    Ok(CommandOutcome::from_success(!is_open))
}

/// Calls a tool of a server like any other tool.
fn call(
    program: &Program,
    command: &McpCall,
    reporter: &Reporter,
) -> anyhow::Result<CommandOutcome> {
    let service = program.service(command.output.data.as_deref());
    let identity = program.identity()?;
    let name = service.server_tool_name(&identity, &command.name, &command.tool)?;
    tools::call(
        program,
        &ToolsCall {
            tool: OneTool {
                name: name.to_string(),
                library: Some(LIBRARY.to_owned()),
                agent_file: None,
            },
            arguments: command.arguments.clone(),
            args: command.args.clone(),
            yes: command.yes,
            json: command.output.json,
            data: command.output.data.clone(),
        },
        reporter,
    )
}

fn log_in(program: &Program, command: &McpLogin) -> anyhow::Result<CommandOutcome> {
    let (service, identity) = (
        program.service(command.data.as_deref()),
        program.identity()?,
    );
    let present = |url: &str| {
        let _ = eprint_line("open this URL in a browser on this machine, and authorize access:");
        let _ = print_line(url);
    };
    let login = service.log_in_to_server(&identity, &command.name, &present);
    let login = block_on_until_interrupted(&service, login)??;
    let scopes = match login.scopes.is_empty() {
        true => String::new(),
        false => format!(" for {}", login.scopes.join(", ")),
    };
    print_line(&format!("authorized by {}{scopes}", login.issuer))?;
    Ok(CommandOutcome::Done)
}

fn remove(program: &Program, command: &McpRemove) -> anyhow::Result<CommandOutcome> {
    let service = program.service(command.data.as_deref());
    let removed = service.remove_server(&program.identity()?, &command.name)?;
    if let Some(file) = &removed.file {
        eprint_line(&format!("removed from {}", file.display()))?;
    }
    if removed.had_login {
        eprint_line("deleted its tokens")?;
    }
    if removed.had_pins {
        eprint_line("deleted its pins")?;
    }
    Ok(CommandOutcome::Done)
}
