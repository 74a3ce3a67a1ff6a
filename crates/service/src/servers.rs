//! The MCP servers of the configuration: one shared handle each, so that no server is started twice and none
//! is left running.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use windlass_config::Configuration;
use windlass_mcp::{
    Authorizer, BoxFuture, GovernedServer, Lookup, OAuthTokens, Pin, Refusal, Secret, ServerInfo,
    ServerOptions, Servers,
};
use windlass_spawn::Isolation;
use windlass_spec::server::{SEPARATOR, ServerName, ServerSettings, Transport};
use windlass_tools::ToolLibrary;

use crate::error::ServiceError;
use crate::libraries::{Wanted, unknown_name_message};
use crate::options::Notice;
use crate::sampling::ConfiguredModel;
use crate::service::{Service, lock};

/// The servers a service knows.
#[derive(Default)]
pub(crate) struct ServerPool {
    known: Mutex<Option<Servers>>,
    /// Servers of a single connection.
    visited: Mutex<Vec<Servers>>,
    /// Whether the process is ending, and its servers with it.
    is_ending: AtomicBool,
}

impl ServerPool {
    /// Ends all servers. While the process is ending this never returns: its caller would end the process
    /// before its servers.
    pub(crate) async fn close(&self) {
        if self.is_ending.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        // They stay in the pool meanwhile, so that other callers can wait for their end.
        futures::future::join_all(self.all().iter().map(Servers::close)).await;
        lock(&self.known).take();
        lock(&self.visited).clear();
    }

    /// Ends all servers because the process ends. Calls that wait for one of them keep waiting and record
    /// nothing.
    pub(crate) async fn abandon(&self) {
        if self.is_ending.swap(true, Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        futures::future::join_all(self.all().iter().map(Servers::abandon)).await;
    }

    fn all(&self) -> Vec<Servers> {
        let known = lock(&self.known).clone();
        known
            .into_iter()
            .chain(lock(&self.visited).clone())
            .collect()
    }
}

impl Service {
    /// The options of a server.
    ///
    /// # Errors
    /// If its tokens cannot be used.
    pub(crate) fn server_options(
        &self,
        settings: &ServerSettings,
        configuration: &Configuration,
    ) -> Result<ServerOptions, ServiceError> {
        let mut options = ServerOptions {
            isolation: self.isolation(configuration),
            ..ServerOptions::default()
        };
        if settings.may_sample {
            let model = ConfiguredModel::of(configuration, settings, self.stored().ok());
            options.sampler = Some(Arc::new(model));
        }
        if let Transport::Http(http) = &settings.transport
            && http.oauth.is_some()
        {
            let tokens =
                OAuthTokens::new(settings, &self.tokens_directory()?, &environment_lookup())?;
            options.authorizer = Some(Arc::new(tokens));
        }
        Ok(options)
    }

    /// The options of a server, also if its tokens cannot be used. The reason is then reported when the
    /// server is used, and other servers are not affected.
    fn server_options_or_reason(
        &self,
        settings: &ServerSettings,
        configuration: &Configuration,
    ) -> ServerOptions {
        let options = self.server_options(settings, configuration);
        options.unwrap_or_else(|error| ServerOptions {
            authorizer: Some(Arc::new(NoToken(error.to_string()))),
            isolation: self.isolation(configuration),
            ..ServerOptions::default()
        })
    }

    /// How the programs of an installation are isolated.
    pub(crate) fn isolation(&self, configuration: &Configuration) -> Isolation {
        let data = self.data_directory().ok();
        windlass_runtime::isolation(configuration.isolation(), data.as_deref())
    }

    /// The directory of the tokens of authorization servers.
    pub(crate) fn tokens_directory(&self) -> Result<std::path::PathBuf, ServiceError> {
        Ok(self.data_directory()?.join("tokens"))
    }

    /// The servers of a configuration. None is started.
    pub(crate) fn set_up_servers(
        &self,
        configuration: &Configuration,
    ) -> Result<Servers, ServiceError> {
        let settings = configuration.servers();
        if settings.is_empty() {
            return Ok(Servers::default());
        }
        let ledger = self.ledger()?;
        let mut known = lock(&self.servers().known);
        let before = known.clone().unwrap_or_default();
        let servers = before.set_up(settings.to_vec(), &ledger, |settings| {
            self.server_options_or_reason(settings, configuration)
        })?;
        *known = Some(servers.clone());
        Ok(servers)
    }

    /// A single server, outside the pool.
    pub(crate) fn set_up_server(
        &self,
        settings: &ServerSettings,
        configuration: &Configuration,
    ) -> Result<Servers, ServiceError> {
        let ledger = self.ledger()?;
        let options =
            |settings: &ServerSettings| self.server_options_or_reason(settings, configuration);
        Ok(Servers::new([settings.clone()], &ledger, options)?)
    }

    /// The accepted tools of the servers of a configuration. Problems of `wanted` servers are reported. No
    /// server is started: the configuration may be untrusted, and a person must have reviewed its programs.
    pub(crate) fn server_library(
        &self,
        configuration: &Configuration,
        wanted: Wanted<'_>,
    ) -> Result<ToolLibrary, ServiceError> {
        if configuration.servers().is_empty() {
            return Ok(ToolLibrary::new(windlass_mcp::LIBRARY));
        }
        let offered = self.set_up_servers(configuration)?.accepted_tools()?;
        if let Some(wanted) = wanted {
            for notice in offered
                .notices
                .iter()
                .filter(|notice| wanted(&notice.server))
            {
                let tool = notice.tool.as_ref();
                let tool = tool.map(|tool| format!(", its tool `{tool}`"));
                let about = tool.unwrap_or_default();
                self.notify(&Notice::Warning(format!(
                    "the MCP server `{}`{about}: {}",
                    notice.server, notice.message
                )));
            }
        }
        Ok(offered.library)
    }

    /// Connects to a server, lists its tools, and ends it again.
    pub(crate) async fn visit_server(
        &self,
        settings: &ServerSettings,
        options: &ServerOptions,
    ) -> Result<(ServerInfo, Vec<Pin>), ServiceError> {
        let server = GovernedServer::new(settings.clone(), self.ledger()?, options.clone())?;
        let server = Arc::new(server);
        // It is in the pool before it is started, so that it is not left running.
        lock(&self.servers().visited).push(Servers::from_iter([Arc::clone(&server)]));
        let connected = server.connect().await;
        server.close().await;
        Ok(connected?)
    }
}

/// The reason why there are no tokens for a server.
struct NoToken(String);

impl Authorizer for NoToken {
    fn token<'a>(
        &'a self,
        _refusal: Option<Refusal<'a>>,
    ) -> BoxFuture<'a, Result<Option<Secret>, String>> {
        Box::pin(async { Err(self.0.clone()) })
    }
}

/// Looks up variables in the environment of this process.
#[must_use]
pub fn environment_lookup() -> Lookup {
    Arc::new(|name: &str| std::env::var(name).ok())
}

/// The server of a tool, by the tool's name.
#[must_use]
pub fn server_of(tool: &str) -> Option<ServerName> {
    let (server, _) = tool.split_once(SEPARATOR)?;
    ServerName::new(server).ok()
}

/// The server of that name in the configuration.
pub(crate) fn find_server<'c>(
    configuration: &'c Configuration,
    name: &str,
) -> Result<&'c ServerSettings, ServiceError> {
    let servers = configuration.servers();
    let found = servers.iter().find(|server| server.name.as_str() == name);
    found.ok_or_else(|| {
        let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
        let message = unknown_name_message("server", name, &names, "the configuration");
        ServiceError::failed(format!("{message}\nhint: add one with `windlass mcp add`"))
    })
}

#[cfg(test)]
mod tests {
    use windlass_spec::server::{EnvTemplate, HttpTransport, OAuth};

    use super::*;

    #[test]
    fn a_server_without_a_token_reports_the_reason_when_it_is_used() {
        let secret = EnvTemplate::new("env:WINDLASS_UNSET_VARIABLE").unwrap();
        let settings = ServerSettings::new(
            ServerName::new("wiki").unwrap(),
            Transport::Http(HttpTransport {
                url: "https://wiki.example.com/mcp".to_owned(),
                headers: Default::default(),
                oauth: Some(OAuth {
                    client_id: Some("windlass".to_owned()),
                    client_secret: Some(secret),
                    scopes: Vec::new(),
                }),
            }),
        );
        let data = tempfile::tempdir().unwrap();
        let overrides = crate::Overrides {
            data: Some(data.path().to_owned()),
            ..crate::Overrides::default()
        };
        let service = Service::open(None, overrides);
        let options = service.server_options_or_reason(&settings, &Configuration::default());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let result = runtime.block_on(options.authorizer.unwrap().token(None));
        let why = result.err().unwrap();
        assert!(why.contains("WINDLASS_UNSET_VARIABLE"), "{why}");
    }
}
