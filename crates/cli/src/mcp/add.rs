//! `windlass mcp add` and `import`: write servers into a configuration file. `add` connects to the server
//! first, and adds nothing if that fails.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;
use serde_json::json;
use windlass_mcp::{PinState, describe_transport, visible};
use windlass_service::{
    AddedServer, ServerConnection, ServerFile, ServerImport, description_warnings,
};
use windlass_spec::server::{
    CommandTransport, EnvTemplate, HttpTransport, OAuth, ServerName, ServerSettings, Transport,
};

use super::counted;
use crate::CommandOutcome;
use crate::arguments::{Argument, McpAdd, McpImport};
use crate::program::Program;
use crate::run::block_on_until_interrupted;
use crate::source::Source;
use crate::table::{one_line, print_table};
use crate::terminal::{eprint_line, print_json, print_line};

/// The maximum length of a description in a row.
const DESCRIPTION: usize = 60;

pub(super) fn run(program: &Program, command: &McpAdd) -> anyhow::Result<CommandOutcome> {
    let service = program.service(command.output.data.as_deref());
    let identity = program.identity()?;
    let settings = settings(command)?;
    let connecting = |settings: &ServerSettings| {
        if !command.output.json {
            let _ = eprint_line(&format!(
                "connecting to `{}`: {}",
                settings.name,
                describe_transport(settings)
            ));
        }
    };
    let file = file(command.user);
    let adding = service.add_server(&identity, &settings, file, &connecting);
    let added = block_on_until_interrupted(&service, adding)??;
    match &added.connection {
        Some(connection) => show(command, &added, connection),
        None => {
            eprint_line(&format!(
                "added to {}\nnext: windlass mcp login {}",
                added.file.display(),
                added.settings.name
            ))?;
            Ok(CommandOutcome::Done)
        }
    }
}

const fn file(is_users: bool) -> ServerFile {
    match is_users {
        true => ServerFile::User,
        false => ServerFile::Project,
    }
}

fn show(
    command: &McpAdd,
    added: &AddedServer,
    connection: &ServerConnection,
) -> anyhow::Result<CommandOutcome> {
    let name = &added.settings.name;
    let (greeting, pins) = (&connection.greeting, connection.pins.as_slice());
    if command.output.json {
        let tools: Vec<_> = pins
            .iter()
            .map(|pin| json!({"tool": pin.tool, "state": pin.state().as_str(), "findings": pin.findings}))
            .collect();
        let printed = json!({
            "name": name,
            "file": added.file.display().to_string(),
            "era": greeting.era.as_str(),
            "protocol_version": greeting.protocol_version,
            "server_name": visible(&greeting.server_name),
            "server_version": visible(&greeting.server_version),
            "tools": tools,
            "warnings": description_warnings(pins),
        });
        print_json(&format!("{printed}\n"))?;
        return Ok(CommandOutcome::Done);
    }
    let rows: Vec<[String; 3]> = connection
        .tools
        .iter()
        .map(|offered| {
            [
                offered.tool.name().to_string(),
                offered.risk.to_string(),
                one_line(offered.tool.description(), DESCRIPTION),
            ]
        })
        .collect();
    if !rows.is_empty() {
        print_table(["TOOL", "RISK", "DESCRIPTION"], &rows)?;
    }
    eprint_line(&format!(
        "added to {}: {} {}, protocol {}; tools: {}",
        added.file.display(),
        visible(&greeting.server_name),
        visible(&greeting.server_version),
        greeting.protocol_version,
        counted(pins)
    ))?;
    for warning in description_warnings(pins) {
        eprint_line(&format!("warning: {warning}"))?;
    }
    if pins.iter().any(|pin| pin.state() == PinState::Quarantined) {
        eprint_line(&format!(
            "some tools are quarantined; see why: windlass mcp pins {name}"
        ))?;
    }
    Ok(CommandOutcome::Done)
}

/// The settings of the server from the arguments.
fn settings(command: &McpAdd) -> anyhow::Result<ServerSettings> {
    let name = ServerName::new(command.name.clone())?;
    let transport = match (&command.url, command.command.split_first()) {
        (Some(url), _) => Transport::Http(HttpTransport {
            url: url.clone(),
            headers: given(&command.header)?,
            oauth: command.oauth.then(OAuth::default),
        }),
        (None, Some((program, arguments))) => {
            let absolute = |path: &Path| {
                std::path::absolute(path)
                    .with_context(|| format!("`{}` is not a path", path.display()))
            };
            Transport::Command(CommandTransport {
                // A path is relative to the working directory, not to the configuration file.
                program: match program.contains('/') {
                    true => absolute(Path::new(program))?.display().to_string(),
                    false => program.clone(),
                },
                arguments: arguments.to_vec(),
                directory: command.directory.as_deref().map(absolute).transpose()?,
                environment: given(&command.env)?,
                parts: command
                    .part
                    .iter()
                    .map(|part| absolute(part))
                    .collect::<Result<_, _>>()?,
                access: Default::default(),
            })
        }
        (None, None) => anyhow::bail!("neither a command nor a URL is given"),
    };
    let mut settings = ServerSettings::new(name, transport);
    settings.is_trusted = command.trusted;
    Ok(settings)
}

fn given(arguments: &[Argument]) -> anyhow::Result<BTreeMap<String, EnvTemplate>> {
    let given = arguments.iter().map(|Argument { key, value }| {
        let value = EnvTemplate::new(value).with_context(|| format!("the value of `{key}`"))?;
        Ok((key.clone(), value))
    });
    given.collect()
}

pub(super) fn import(program: &Program, command: &McpImport) -> anyhow::Result<CommandOutcome> {
    let (source, problem) = Source::read(&command.file);
    if let Some(problem) = problem {
        anyhow::bail!(problem.message);
    }
    let request = ServerImport {
        text: source.text,
        place: command.file.display().to_string(),
        only: command.only.clone(),
        file: file(command.user),
        is_dry_run: command.dry_run,
    };
    let service = program.service(None);
    let imported = service.import_servers(&program.identity()?, &request)?;
    for (server, note) in &imported.notes {
        eprint_line(&format!("{server}: {note}"))?;
    }
    if imported.names.is_empty() {
        eprint_line("there are no servers to import")?;
        return Ok(CommandOutcome::Failed);
    }
    match &imported.file {
        None => print_line(imported.sections.trim_end())?,
        Some(file) => eprint_line(&format!(
            "{} added to {}; no server was started\n\
             next, to connect to one and pin its tools: windlass mcp inspect NAME",
            imported.names.len(),
            file.display()
        ))?,
    }
    Ok(CommandOutcome::Done)
}
