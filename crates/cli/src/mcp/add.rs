//! `windlass mcp add` and `import`: servers are written into a configuration file. Before one that was
//! typed is written, it is met: what cannot be used is not added.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;
use serde_json::json;
use windlass_mcp::{
    Greeting, Imported, Pin, PinState, import as read_import, reached, to_toml, visible,
};
use windlass_spec::server::{
    CommandTransport, Given, HttpTransport, OAuth, ServerName, ServerSettings, Transport,
};

use super::counted;
use super::edit::File;
use super::inspect::risk_of;
use crate::arguments::{Argument, McpAdd, McpImport};
use crate::run::block_on_until_interrupted;
use crate::settings::configured;
use crate::source::Source;
use crate::table::{one_line, say_table};
use crate::terminal::{complain, put, say};
use crate::{Outcome, servers};

/// How much of a description is shown in a row.
const DESCRIPTION: usize = 60;

pub(super) fn run(command: &McpAdd) -> anyhow::Result<Outcome> {
    let data = command.kept.data.as_deref();
    let typed = typed(command)?;
    let file = File::open(command.user)?;
    let known = configured()?.configuration.servers();
    anyhow::ensure!(
        !known.iter().any(|server| server.name == typed.name),
        "there is a server `{name}` already\nhint: `windlass mcp remove {name}` takes it out",
        name = typed.name
    );
    let text = file.with(&to_toml(&typed));
    // What is used is what the file will say.
    let configuration = file.read_as(&text)?;
    let settings = servers::find(&configuration, typed.name.as_str())?;
    let ledger = servers::ledger(data)?;
    // Somebody may have had a server of that name before.
    ledger.forget(&settings.name)?;
    if !command.kept.json {
        complain(&format!(
            "meeting `{}`: {}",
            settings.name,
            reached(settings)
        ))?;
    }
    let is_guarded = matches!(&settings.transport, Transport::Http(http) if http.oauth.is_some());
    if is_guarded {
        file.write(&text)?;
        complain(&format!(
            "added to {}\nnext: windlass mcp login {}",
            file.path.display(),
            settings.name
        ))?;
        return Ok(Outcome::Done);
    }
    let options = servers::options(settings, &configuration, data)?;
    let met = block_on_until_interrupted(servers::introduce(settings, &ledger, &options))?;
    let (greeting, pins) = match met {
        Ok(met) => met,
        Err(error) => {
            ledger.forget(&settings.name)?;
            anyhow::bail!("the server cannot be met, and is not added: {error}");
        }
    };
    if let Err(error) = file.write(&text) {
        ledger.forget(&settings.name)?;
        return Err(error);
    }
    told(command, settings, &file, &greeting, &pins)
}

fn told(
    command: &McpAdd,
    settings: &ServerSettings,
    file: &File,
    greeting: &Greeting,
    pins: &[Pin],
) -> anyhow::Result<Outcome> {
    let name = &settings.name;
    let configuration = &configured()?.configuration;
    let offered =
        servers::set_up_one(settings, configuration, command.kept.data.as_deref())?.offered()?;
    if command.kept.json {
        let tools: Vec<_> = pins
            .iter()
            .map(|pin| json!({"tool": pin.tool, "state": pin.state().as_str(), "findings": pin.findings}))
            .collect();
        let told = json!({
            "name": name,
            "file": file.path.display().to_string(),
            "era": greeting.era.as_str(),
            "protocol_version": greeting.protocol_version,
            "server_name": visible(&greeting.server_name),
            "server_version": visible(&greeting.server_version),
            "tools": tools,
        });
        put(&format!("{told}\n"))?;
        return Ok(Outcome::Done);
    }
    let rows: Vec<[String; 3]> = offered
        .library
        .iter()
        .map(|tool| {
            [
                tool.name().to_string(),
                risk_of(tool, configuration),
                one_line(tool.description(), DESCRIPTION),
            ]
        })
        .collect();
    if !rows.is_empty() {
        say_table(["TOOL", "RISK", "DESCRIPTION"], &rows)?;
    }
    complain(&format!(
        "added to {}: {} {}, protocol {}; tools: {}",
        file.path.display(),
        visible(&greeting.server_name),
        visible(&greeting.server_version),
        greeting.protocol_version,
        counted(pins)
    ))?;
    if pins.iter().any(|pin| pin.state() == PinState::Quarantined) {
        complain(&format!(
            "windlass mcp pins {name} shows why some are in quarantine"
        ))?;
    }
    Ok(Outcome::Done)
}

/// The server that was typed.
fn typed(command: &McpAdd) -> anyhow::Result<ServerSettings> {
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
                    .with_context(|| format!("`{}` is no path", path.display()))
            };
            Transport::Command(CommandTransport {
                // A path is meant from here, not from where the file is.
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
            })
        }
        (None, None) => anyhow::bail!("there is neither a command nor an address"),
    };
    let mut settings = ServerSettings::new(name, transport);
    settings.is_trusted = command.trusted;
    Ok(settings)
}

fn given(typed: &[Argument]) -> anyhow::Result<BTreeMap<String, Given>> {
    let given = typed.iter().map(|Argument { key, value }| {
        let value = Given::new(value).with_context(|| format!("the value of `{key}`"))?;
        Ok((key.clone(), value))
    });
    given.collect()
}

pub(super) fn import(command: &McpImport) -> anyhow::Result<Outcome> {
    let (source, problem) = Source::read(&command.file);
    if let Some(problem) = problem {
        anyhow::bail!(problem.message);
    }
    let imported = read_import(&source.text)
        .with_context(|| format!("`{}` cannot be taken over", command.file.display()))?;
    for name in &command.only {
        anyhow::ensure!(
            imported.iter().any(|server| server.name == *name),
            "there is no server `{name}` in `{}`",
            command.file.display()
        );
    }
    let is_wanted =
        |server: &&Imported| command.only.is_empty() || command.only.contains(&server.name);
    let known = configured()?.configuration.servers();
    let file = File::open(command.user)?;
    let mut sections = Vec::new();
    for server in imported.iter().filter(is_wanted) {
        for note in &server.notes {
            complain(&format!("{}: {}", visible(&server.name), visible(note)))?;
        }
        let Some(settings) = &server.settings else {
            continue;
        };
        if known.iter().any(|known| known.name == settings.name) {
            complain(&format!(
                "{}: left out, there is one already",
                settings.name
            ))?;
            continue;
        }
        sections.push(to_toml(settings));
    }
    if sections.is_empty() {
        complain("there is nothing to take over")?;
        return Ok(Outcome::Failed);
    }
    let added = sections.join("\n");
    if command.dry_run {
        say(added.trim_end())?;
        return Ok(Outcome::Done);
    }
    let text = file.with(&added);
    file.read_as(&text)?;
    file.write(&text)?;
    complain(&format!(
        "{} added to {}; nothing was started\n\
         next: windlass mcp inspect NAME meets one, pins its tools and shows them",
        sections.len(),
        file.path.display()
    ))?;
    Ok(Outcome::Done)
}
