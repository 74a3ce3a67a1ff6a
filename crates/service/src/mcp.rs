//! The management of MCP servers: list, add, import, inspect and remove them, accept their tools, and log in to
//! them.

mod file;
mod inspect;

use std::path::PathBuf;

use serde_json::json;
use windlass_core::approval::Digest;
use windlass_mcp::{
    Era, Imported, Login, Pin, PinState, Program, forget_logins, import, login, program_of,
    to_toml, tool_name, visible,
};
use windlass_runtime::Configured;
use windlass_spec::ToolName;
use windlass_spec::server::{SEPARATOR, ServerName, ServerSettings, Transport};

pub use file::ServerFile;
pub use inspect::{InspectedServer, ServerConnection, ServerTool, description_warnings};

use crate::error::{ServiceError, with_sources};
use crate::identity::{Identity, Scope};
use crate::names::not_known;
use crate::servers::{environment_lookup, find_server};
use crate::service::Service;
use file::EditableFile;

/// A server of the configuration with its protocol and pins.
#[derive(Debug, Clone)]
pub struct ServerStatus {
    /// How it is reached and what it may do.
    pub settings: ServerSettings,
    /// Which protocol it spoke when it was last connected to.
    pub era: Option<Era>,
    /// The definitions of its tools, accepted and offered; `None` if there was no connection yet.
    pub pins: Option<Vec<Pin>>,
}

impl ServerStatus {
    /// The pins that can be accepted together: those that need acceptance, except those in quarantine, which
    /// are reviewed one by one.
    #[must_use]
    pub fn acceptable_pins(&self) -> Vec<&Pin> {
        let pins = self
            .pins
            .iter()
            .flatten()
            .filter(|pin| needs_acceptance(pin));
        pins.filter(|pin| pin.state() != PinState::Quarantined)
            .collect()
    }

    /// The pin of a tool, by the server's name for it or by the name that agents use.
    ///
    /// # Errors
    /// If the server has no such tool.
    pub fn pin(&self, tool: &str) -> Result<&Pin, ServiceError> {
        let server = &self.settings.name;
        let pins = self.pins.as_deref().unwrap_or_default();
        let found = pins.iter().find(|pin| {
            let full = tool_name(server, &pin.tool);
            pin.tool == tool || full.is_ok_and(|full| full.as_str() == tool)
        });
        found.ok_or_else(|| no_such_pin(server, tool, pins))
    }
}

/// Whether a definition waits until a person accepts it. The tool is not called until then.
#[must_use]
pub fn needs_acceptance(pin: &Pin) -> bool {
    !matches!(pin.state(), PinState::Pinned | PinState::Gone)
}

/// The program that a server runs now, and how it differs from the accepted one.
#[derive(Debug, Clone)]
pub struct ServerProgram {
    settings: ServerSettings,
    program: Option<Program>,
    /// The differences; empty if it is the accepted one.
    pub changes: Vec<String>,
}

/// A server that was added to the configuration.
#[derive(Debug, Clone)]
pub struct AddedServer {
    /// Its settings in the file.
    pub settings: ServerSettings,
    /// The file it was added to.
    pub file: PathBuf,
    /// The result of the first connection; `None` if a login has to come first.
    pub connection: Option<ServerConnection>,
}

/// A server that was removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RemovedServer {
    /// The file it was removed from, if it was in one.
    pub file: Option<PathBuf>,
    /// Whether there were tokens for it, which were deleted.
    pub had_login: bool,
    /// Whether it had pins, which were deleted.
    pub had_pins: bool,
}

/// Servers of another client's configuration, to be added.
#[derive(Debug, Clone, Default)]
pub struct ServerImport {
    /// The text of the file.
    pub text: String,
    /// What the file is called in messages.
    pub place: String,
    /// Only the servers of these names; all if there are none.
    pub only: Vec<String>,
    /// The configuration file they are added to.
    pub file: ServerFile,
    /// Whether nothing is written.
    pub is_dry_run: bool,
}

/// The result of an import.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportedServers {
    /// Notes about the servers, each with the server's name. Hidden characters are made visible.
    pub notes: Vec<(String, String)>,
    /// The servers that are added.
    pub names: Vec<ServerName>,
    /// Their sections of the configuration.
    pub sections: String,
    /// The file they were added to; `None` if nothing was written.
    pub file: Option<PathBuf>,
}

impl Service {
    /// The servers of the configuration with their pins. None is started.
    ///
    /// # Errors
    /// If the identity may not read, or the configuration or the store cannot be used.
    pub fn list_servers(&self, identity: &Identity) -> Result<Vec<ServerStatus>, ServiceError> {
        identity.require(Scope::Read)?;
        let configured = self.current_configuration()?;
        let servers = configured.configuration.servers().iter();
        servers.map(|settings| self.status_of(settings)).collect()
    }

    /// A server of the configuration with its pins. It is not started.
    ///
    /// # Errors
    /// If the identity may not read, or there is no such server.
    pub fn show_server(
        &self,
        identity: &Identity,
        name: &str,
    ) -> Result<ServerStatus, ServiceError> {
        identity.require(Scope::Read)?;
        let configured = self.current_configuration()?;
        self.status_of(find_server(&configured.configuration, name)?)
    }

    /// The name that agents use for a tool of a server, from the server's own name for it.
    ///
    /// # Errors
    /// If the identity may not read, there is no such server, or agents cannot use that name.
    pub fn server_tool_name(
        &self,
        identity: &Identity,
        server: &str,
        tool: &str,
    ) -> Result<ToolName, ServiceError> {
        identity.require(Scope::Read)?;
        let configured = self.current_configuration()?;
        let server = &find_server(&configured.configuration, server)?.name;
        let own = match tool.split_once(SEPARATOR) {
            Some((prefix, own)) if prefix == server.as_str() => own,
            _ => tool,
        };
        tool_name(server, own).map_err(|error| ServiceError::failed(with_sources(&error)))
    }

    /// Adds a server to a configuration file. Connects to it first, unless it needs a login: a server that
    /// cannot be used is not added. `connecting` is called with the settings before that.
    ///
    /// # Errors
    /// If the identity may not change servers, there is one of that name already, the configuration would
    /// not be valid, the server cannot be connected to, or the file cannot be written.
    pub async fn add_server(
        &self,
        identity: &Identity,
        server: &ServerSettings,
        file: ServerFile,
        connecting: &(dyn Fn(&ServerSettings) + Send + Sync),
    ) -> Result<AddedServer, ServiceError> {
        identity.require(Scope::Admin)?;
        let current = self.current_configuration()?;
        let (before, trust) = (current.configuration, current.trust);
        let file = EditableFile::open(file, &self.configuration_files(), self.directory())?;
        let trust = file.existed.then_some(&trust);
        let mut known = before.servers().iter();
        // A table in a file that is not trusted would add to the settings that the user typed.
        if known.any(|known| known.name == server.name) || file.has(server.name.as_str()) {
            let name = &server.name;
            let message = format!("there is a server `{name}` already");
            return Err(ServiceError::conflict("server_exists", message)
                .with_hint(format!("`windlass mcp remove {name}` removes it")));
        }
        let text = file.with(&to_toml(server));
        // The settings that are used are those the file will have.
        let configuration = file.read_as(&text, self.configuration_files())?;
        let settings = find_server(&configuration, server.name.as_str())?;
        let ledger = self.ledger()?;
        // There may have been a server of that name before.
        ledger.forget(&settings.name)?;
        connecting(settings);
        let needs_login =
            matches!(&settings.transport, Transport::Http(http) if http.oauth.is_some());
        if needs_login {
            file.write(&text)?;
            self.keep_trust(identity, trust, &file.path)?;
            self.record_added(identity, &[&settings.name], &file)?;
            return Ok(AddedServer {
                settings: settings.clone(),
                file: file.path,
                connection: None,
            });
        }
        let options = self.server_options(settings, &configuration)?;
        let visited = self.visit_server(settings, &options).await;
        let written = match visited {
            Ok(visited) => file
                .write(&text)
                .and_then(|()| self.keep_trust(identity, trust, &file.path))
                .map(|()| visited),
            Err(error) => {
                Err(error.context("the connection to the server failed, so it is not added"))
            }
        };
        let (greeting, pins) = match written {
            Ok(visited) => visited,
            Err(error) => {
                ledger.forget(&settings.name)?;
                return Err(error);
            }
        };
        self.record_added(identity, &[&settings.name], &file)?;
        let offered = self.set_up_server(settings, &before)?.accepted_tools()?;
        let tools = offered.library.iter();
        let tools = tools.map(|tool| ServerTool::of(tool, &before)).collect();
        Ok(AddedServer {
            settings: settings.clone(),
            file: file.path,
            connection: Some(ServerConnection {
                greeting,
                pins,
                tools,
            }),
        })
    }

    /// Adds the servers of another client's configuration. None is started.
    ///
    /// # Errors
    /// If the identity may not change servers, the text has no servers or not those that are named, or the
    /// file cannot be written.
    pub fn import_servers(
        &self,
        identity: &Identity,
        request: &ServerImport,
    ) -> Result<ImportedServers, ServiceError> {
        identity.require(Scope::Admin)?;
        let place = &request.place;
        let found = import(&request.text).map_err(|error| {
            let message = format!("`{place}` cannot be imported: {error}");
            ServiceError::invalid("not_importable", message)
        })?;
        for name in &request.only {
            if !found.iter().any(|server| server.name == *name) {
                let message = format!("there is no server `{name}` in `{place}`");
                return Err(ServiceError::not_found("no_such_server", message));
            }
        }
        let configuration = self.current_configuration()?.configuration;
        let known = configuration.servers();
        let mut imported = ImportedServers::default();
        let mut sections = Vec::new();
        let is_wanted =
            |server: &&Imported| request.only.is_empty() || request.only.contains(&server.name);
        for server in found.iter().filter(is_wanted) {
            let mut note = |note: &str| {
                let (name, note) = (visible(&server.name), visible(note));
                imported.notes.push((name.into_owned(), note.into_owned()));
            };
            server.notes.iter().for_each(|text| note(text));
            let Some(settings) = &server.settings else {
                continue;
            };
            if known.iter().any(|known| known.name == settings.name) {
                note("skipped: there is a server of that name already");
                continue;
            }
            sections.push(to_toml(settings));
            imported.names.push(settings.name.clone());
        }
        imported.sections = sections.join("\n");
        if imported.names.is_empty() || request.is_dry_run {
            return Ok(imported);
        }
        let files = self.configuration_files();
        let file = EditableFile::open(request.file, &files, self.directory())?;
        let text = file.with(&imported.sections);
        file.read_as(&text, files)?;
        let trust = self.current_configuration()?.trust;
        file.write(&text)?;
        self.keep_trust(identity, file.existed.then_some(&trust), &file.path)?;
        let names: Vec<&ServerName> = imported.names.iter().collect();
        self.record_added(identity, &names, &file)?;
        imported.file = Some(file.path);
        Ok(imported)
    }

    /// Removes a server from its configuration file and deletes its tokens and pins. The pins of a server
    /// that no file names any more are deleted too.
    ///
    /// # Errors
    /// If the identity may not change servers, there is no such server, or the file cannot be changed.
    pub fn remove_server(
        &self,
        identity: &Identity,
        name: &str,
    ) -> Result<RemovedServer, ServiceError> {
        identity.require(Scope::Admin)?;
        let configuration = self.current_configuration()?.configuration;
        let ledger = self.ledger()?;
        let server = ServerName::new(name)
            .map_err(|error| ServiceError::invalid("not_a_server_name", with_sources(&error)))?;
        let mut removed = RemovedServer::default();
        match find_server(&configuration, name) {
            Ok(settings) => {
                let files = self.configuration_files();
                let file = EditableFile::of_server(name, &files, &configuration)?;
                let text = file.without(name)?;
                file.read_as(&text, files)?;
                let trust = self.current_configuration()?.trust;
                file.write(&text)?;
                self.keep_trust(identity, Some(&trust), &file.path)?;
                if let Ok(directory) = self.tokens_directory()
                    && matches!(settings.transport, Transport::Http(_))
                {
                    removed.had_login = forget_logins(settings, &directory)?;
                }
                removed.file = Some(file.path);
            }
            // The pins of a server that no file names any more are deleted too.
            Err(error) if ledger.server(&server)?.is_none() => return Err(error),
            Err(_) => {}
        }
        removed.had_pins = ledger.forget(&server)?;
        let subject = json!({"server": server, "file": removed.file});
        self.record_admin_change(identity, "server_removed", subject)?;
        Ok(removed)
    }

    /// Accepts the definition of a tool that a server offers now. Its digest must be that of the definition
    /// the identity was shown.
    ///
    /// # Errors
    /// If the identity may not change servers, there is no such server, or it offers something else.
    pub fn accept_definition(
        &self,
        identity: &Identity,
        server: &str,
        tool: &str,
        shown: &Digest,
    ) -> Result<(), ServiceError> {
        identity.require(Scope::Admin)?;
        let configuration = self.current_configuration()?.configuration;
        let server = &find_server(&configuration, server)?.name;
        let by = identity.principal().to_string();
        self.ledger()?.accept(server, tool, shown, &by)?;
        let subject = json!({"server": server, "tool": tool, "digest": shown.to_string()});
        self.record_admin_change(identity, "definition_accepted", subject)
    }

    /// The program that a server runs now, and how it differs from the accepted one. It is not started.
    ///
    /// # Errors
    /// If the identity may not read, there is no such server, or its program cannot be determined.
    pub fn server_program(
        &self,
        identity: &Identity,
        name: &str,
    ) -> Result<ServerProgram, ServiceError> {
        identity.require(Scope::Read)?;
        let configuration = self.current_configuration()?.configuration;
        let settings = find_server(&configuration, name)?.clone();
        let program = program_of(&settings, &environment_lookup()).map_err(ServiceError::failed)?;
        let changes = self.ledger()?.program_changes(&settings, program.as_ref());
        Ok(ServerProgram {
            changes: changes.map_err(ServiceError::failed)?,
            settings,
            program,
        })
    }

    /// Accepts the program of a server, as it was shown.
    ///
    /// # Errors
    /// If the identity may not change servers, or the server was never connected to.
    pub fn accept_program(
        &self,
        identity: &Identity,
        shown: &ServerProgram,
    ) -> Result<(), ServiceError> {
        identity.require(Scope::Admin)?;
        let ledger = self.ledger()?;
        ledger.accept_program(&shown.settings, shown.program.as_ref())?;
        let subject = json!({"server": shown.settings.name, "program": shown.program});
        self.record_admin_change(identity, "program_accepted", subject)
    }

    /// Gets tokens for a server from its authorization server. `present` shows the address of the page
    /// where a person consents, in a browser on this machine.
    ///
    /// # Errors
    /// If the identity may not change servers, there is no such server, or no token was granted.
    pub async fn log_in_to_server(
        &self,
        identity: &Identity,
        name: &str,
        present: &(dyn Fn(&str) + Send + Sync),
    ) -> Result<Login, ServiceError> {
        identity.require(Scope::Admin)?;
        let configuration = self.current_configuration()?.configuration;
        let settings = find_server(&configuration, name)?;
        let directory = self.tokens_directory()?;
        Ok(login(settings, &directory, &environment_lookup(), present).await?)
    }

    /// Records that servers were added to a configuration file.
    fn record_added(
        &self,
        identity: &Identity,
        servers: &[&ServerName],
        file: &EditableFile,
    ) -> Result<(), ServiceError> {
        let subject = json!({"servers": servers, "file": file.path});
        self.record_admin_change(identity, "servers_added", subject)
    }

    /// The configuration, read again if its files have changed, as by operations here.
    fn current_configuration(&self) -> Result<Configured, ServiceError> {
        if self.has_changed_configuration() {
            self.reread()?;
        }
        self.configured()
    }

    fn status_of(&self, settings: &ServerSettings) -> Result<ServerStatus, ServiceError> {
        let ledger = self.ledger()?;
        Ok(ServerStatus {
            era: ledger.era(&settings.name)?,
            pins: ledger.pins(&settings.name)?,
            settings: settings.clone(),
        })
    }
}

fn no_such_pin(server: &ServerName, tool: &str, pins: &[Pin]) -> ServiceError {
    let names: Vec<&str> = pins.iter().map(|pin| pin.tool.as_str()).collect();
    let place = format!("the server `{server}`");
    not_known("no_such_tool", "tool", tool, &names, &place)
}
