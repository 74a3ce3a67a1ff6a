//! The MCP servers of the configuration as this process uses them: one handle each, whoever asks for
//! it, so that no server is started twice and none is left behind.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Context as _;
use windlass_config::Configuration;
use windlass_mcp::{
    Authorizer, BoxFuture, Governed, Greeting, Ledger, Lookup, MeetError, Pin, Refusal, Secret,
    ServerOptions, Servers, Tokens,
};
use windlass_spec::server::{SEPARATOR, ServerName, ServerSettings, Transport};
use windlass_tools::ToolLibrary;

use super::data;
use super::sampling::ConfiguredModel;
use super::terminal::complain;

/// The servers this process knows.
static KNOWN: Mutex<Option<Servers>> = Mutex::new(None);

/// Those that are only met.
static MET: Mutex<Vec<Servers>> = Mutex::new(Vec::new());

/// Whether the program is ending, and its servers with it.
static IS_ENDING: AtomicBool = AtomicBool::new(false);

/// What is known of servers in a data directory.
pub(super) fn ledger(data: Option<&Path>) -> anyhow::Result<Ledger> {
    let stored = data::open(data)?;
    let tenant = stored.who().tenant.to_string();
    Ok(Ledger::new(Arc::clone(stored.store()), tenant))
}

/// How a server is treated by this program.
pub(super) fn options(
    settings: &ServerSettings,
    configuration: &Configuration,
    data: Option<&Path>,
) -> anyhow::Result<ServerOptions> {
    let mut options = ServerOptions::default();
    if settings.may_sample {
        options.sampler = Some(Arc::new(ConfiguredModel::of(configuration)));
    }
    if let Transport::Http(http) = &settings.transport
        && http.oauth.is_some()
    {
        let tokens = Tokens::new(settings, &tokens_directory(data)?, &lookup())?;
        options.authorizer = Some(Arc::new(tokens));
    }
    Ok(options)
}

/// The same, also if something is the matter with how leave is got for it, which it then says itself
/// when it is used: the other servers can do without it.
fn options_or_why_not(
    settings: &ServerSettings,
    configuration: &Configuration,
    data: Option<&Path>,
) -> ServerOptions {
    options(settings, configuration, data).unwrap_or_else(|error| ServerOptions {
        authorizer: Some(Arc::new(NoLeave(format!("{error:#}")))),
        ..ServerOptions::default()
    })
}

/// Why there are no tokens for a server.
struct NoLeave(String);

impl Authorizer for NoLeave {
    fn token<'a>(
        &'a self,
        _refusal: Option<Refusal<'a>>,
    ) -> BoxFuture<'a, Result<Option<Secret>, String>> {
        Box::pin(async { Err(self.0.clone()) })
    }
}

/// The variables of this process, which settings name.
pub(super) fn lookup() -> Lookup {
    Arc::new(|name: &str| std::env::var(name).ok())
}

/// Where leave from whoever guards servers is kept.
pub(super) fn tokens_directory(data: Option<&Path>) -> anyhow::Result<std::path::PathBuf> {
    Ok(data::directory(data)?.join("tokens"))
}

/// The servers of a configuration. None is started by this.
pub(super) fn set_up(
    configuration: &Configuration,
    data: Option<&Path>,
) -> anyhow::Result<Servers> {
    let settings = configuration.servers();
    let mut known = lock(&KNOWN);
    if settings.is_empty() {
        return Ok(Servers::default());
    }
    let ledger = ledger(data)?;
    let before = known.clone().unwrap_or_default();
    let servers = before.set_up(settings.to_vec(), &ledger, |settings| {
        options_or_why_not(settings, configuration, data)
    })?;
    *known = Some(servers.clone());
    Ok(servers)
}

/// One server alone, as it is set up.
pub(super) fn set_up_one(
    settings: &ServerSettings,
    configuration: &Configuration,
    data: Option<&Path>,
) -> anyhow::Result<Servers> {
    let ledger = ledger(data)?;
    let options = |settings: &ServerSettings| options_or_why_not(settings, configuration, data);
    Ok(Servers::new([settings.clone()], &ledger, options)?)
}

/// The tools of the servers of a configuration that were met. What stands in the way of those of `wanted`
/// servers is told. No server is started: a configuration may be somebody else's, and a person has to have
/// seen what it would start.
pub(super) fn library(
    configuration: &Configuration,
    data: Option<&Path>,
    wanted: Option<&dyn Fn(&ServerName) -> bool>,
) -> anyhow::Result<ToolLibrary> {
    if configuration.servers().is_empty() {
        return Ok(ToolLibrary::new(windlass_mcp::LIBRARY));
    }
    let offered = set_up(configuration, data)?.offered()?;
    if let Some(wanted) = wanted {
        for notice in offered
            .notices
            .iter()
            .filter(|notice| wanted(&notice.server))
        {
            let tool = notice
                .tool
                .as_ref()
                .map(|tool| format!(", its tool `{tool}`"));
            let about = tool.unwrap_or_default();
            complain(&format!(
                "the MCP server `{}`{about}: {}",
                notice.server, notice.what
            ))?;
        }
    }
    Ok(offered.library)
}

/// Meets a server and ends it again.
pub(super) async fn introduce(
    settings: &ServerSettings,
    ledger: &Ledger,
    options: &ServerOptions,
) -> Result<(Greeting, Vec<Pin>), MeetError> {
    let server = Governed::new(settings.clone(), ledger.clone(), options.clone())?;
    let server = Arc::new(server);
    // It is known before it is started, so that it is not left behind.
    lock(&MET).push(Servers::from_iter([Arc::clone(&server)]));
    let met = server.meet().await;
    server.close().await;
    met
}

/// Ends all servers that this process started. While the program is ending this never ends: whoever
/// goes on would end the program before its servers.
pub(super) async fn close() {
    if IS_ENDING.load(Ordering::SeqCst) {
        std::future::pending::<()>().await;
    }
    // They stay known meanwhile: somebody may have to wait for their end.
    futures::future::join_all(all().iter().map(Servers::close)).await;
    lock(&KNOWN).take();
    lock(&MET).clear();
}

/// Ends all servers because the program ends. What waits for one of them waits on and notes nothing.
pub(super) async fn abandon() {
    if IS_ENDING.swap(true, Ordering::SeqCst) {
        std::future::pending::<()>().await;
    }
    futures::future::join_all(all().iter().map(Servers::abandon)).await;
}

fn all() -> Vec<Servers> {
    let known = lock(&KNOWN).clone();
    known.into_iter().chain(lock(&MET).clone()).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The server that a tool comes from, by its name.
pub(super) fn server_of(tool: &str) -> Option<ServerName> {
    let (server, _) = tool.split_once(SEPARATOR)?;
    ServerName::new(server).ok()
}

/// The server of that name in the configuration.
pub(super) fn find<'c>(
    configuration: &'c Configuration,
    name: &str,
) -> anyhow::Result<&'c ServerSettings> {
    let servers = configuration.servers();
    let found = servers.iter().find(|server| server.name.as_str() == name);
    found
        .with_context(|| {
            let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
            let told = super::schema::unknown("server", name, &names, "the configuration");
            format!("{told}\nhint: `windlass mcp add` adds one")
        })
        .map_err(|error| anyhow::anyhow!("{error}"))
}

#[cfg(test)]
mod tests {
    use windlass_spec::server::{Given, HttpTransport, OAuth};

    use super::*;

    #[test]
    fn a_server_that_no_leave_can_be_got_for_says_why_when_it_is_used() {
        let secret = Given::new("env:WINDLASS_NOBODY_SETS_THIS").unwrap();
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
        let configuration = Configuration::default();
        let options = options_or_why_not(&settings, &configuration, Some(data.path()));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let told = runtime.block_on(options.authorizer.unwrap().token(None));
        let why = told.err().unwrap();
        assert!(why.contains("WINDLASS_NOBODY_SETS_THIS"), "{why}");
    }
}
