//! One connection to one server: how it is established in either era, and the requests to the server
//! other than calls.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rmcp::RoleClient;
use rmcp::model::{
    ClientRequest, ErrorCode, ListToolsRequest, ListToolsResult, PaginatedRequestParams,
    ProtocolVersion, ServerResult, SubscriptionFilter,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt, Peer, PeerRequestOptions,
    RunningService, ServiceError,
};
use serde_json::Value;
use tokio::sync::Mutex as AsyncMutex;
use tracing::instrument;
use windlass_spawn::ProcessGroup;
use windlass_spec::ErrorCategory;
use windlass_spec::server::{ServerSettings, Transport};

use super::api::{AfterStart, Era, ServerError, ServerInfo, ServerOptions};
use super::handler::Handler;
use super::list::Listing;
use super::shown;
use super::wire::{PendingRequest, Wire};
use crate::Definition;
use crate::child::StdioTransport;

/// The longest name and version of a server, and its longest instructions, in characters.
const MAX_NAME: usize = 200;
const MAX_INSTRUCTIONS: usize = 64 * 1024;

/// A connection to a server, alive or ended.
pub(crate) struct Connection {
    service: AsyncMutex<Option<RunningService<RoleClient, Handler>>>,
    pub(crate) peer: Peer<RoleClient>,
    pub(crate) wire: Arc<Wire>,
    pub(crate) server_info: ServerInfo,
    pub(crate) since: Instant,
    pub(crate) handler: Handler,
    has_answered: AtomicBool,
}

/// Why a connection could not be established.
struct StartFailure {
    error: ServerError,
    /// Whether the server may speak the other era.
    may_be_other_era: bool,
}

/// A server that was initialized and not checked yet.
struct StartedServer {
    connection: Connection,
    /// Its processes, if it is a program.
    group: Option<Arc<ProcessGroup>>,
}

impl Connection {
    /// Starts a server and determines its era, beginning with the era it spoke the last time. A server
    /// that received a request of the wrong era may not answer one of the right era, so it is started
    /// again. `after_start` is the second part of the check that the caller made.
    pub(crate) async fn start(
        settings: &ServerSettings,
        options: &ServerOptions,
        executable: Option<&Path>,
        after_start: Option<AfterStart>,
        remembered: Option<Era>,
        listing: &Arc<Listing>,
    ) -> Result<Self, ServerError> {
        let first = remembered.unwrap_or(Era::Modern);
        let started = Self::start_in(first, settings, options, executable, listing).await;
        let failure = match check_after_start(started, after_start).await {
            Ok(connection) => return Ok(connection),
            Err(failure) => failure,
        };
        if !failure.may_be_other_era {
            return Err(failure.error);
        }
        // The program has run since the last check and may have replaced itself.
        let after_start = check_before_start(options, executable).await?;
        let started = Self::start_in(first.other(), settings, options, executable, listing).await;
        match check_after_start(started, after_start).await {
            Ok(connection) => Ok(connection),
            Err(second) if second.error.message == failure.error.message => Err(second.error),
            Err(second) => Err(ServerError::new(
                second.error.category,
                format!(
                    "{} (with the {first} protocol: {})",
                    second.error.message, failure.error.message
                ),
            )),
        }
    }

    async fn start_in(
        era: Era,
        settings: &ServerSettings,
        options: &ServerOptions,
        executable: Option<&Path>,
        listing: &Arc<Listing>,
    ) -> Result<StartedServer, StartFailure> {
        let wire = Arc::new(Wire::new(Arc::clone(listing), options.limits.clone()));
        let handler = Handler::new(settings, options, Arc::clone(&wire));
        let failed = |error| StartFailure {
            error,
            may_be_other_era: false,
        };
        let mode = match era {
            Era::Legacy => ClientLifecycleMode::Initialize,
            Era::Modern => ClientLifecycleMode::Discover {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            },
        };
        let within = settings.start_timeout;
        let (served, stderr, group) = match &settings.transport {
            Transport::Command(command) => {
                let executable = executable.unwrap_or(Path::new(&command.program));
                let transport = StdioTransport::start(
                    command,
                    executable,
                    &options.lookup,
                    &options.isolation,
                    Arc::clone(&wire),
                )
                .map_err(failed)?;
                let stderr = Some(transport.stderr_tail());
                let group = Some(transport.group());
                let served = handler.clone().serve_with_lifecycle(transport, mode);
                (tokio::time::timeout(within, served).await, stderr, group)
            }
            Transport::Http(http) => {
                let transport =
                    super::http::transport(http, options, Arc::clone(&wire)).map_err(failed)?;
                let served = handler.clone().serve_with_lifecycle(transport, mode);
                (tokio::time::timeout(within, served).await, None, None)
            }
        };
        let stderr = || {
            stderr
                .as_ref()
                .map(|stderr| stderr.describe())
                .unwrap_or_default()
        };
        let service = match served {
            Ok(Ok(service)) => service,
            Ok(Err(error)) => return Err(start_failure(&error, &wire, &stderr())),
            Err(_) => {
                let message = format!(
                    "the server did not answer within {} seconds{}",
                    within.as_secs_f64(),
                    stderr()
                );
                return Err(StartFailure {
                    error: ServerError::new(ErrorCategory::Timeout, message),
                    may_be_other_era: true,
                });
            }
        };
        let peer = service.peer().clone();
        let server_info = server_info(era, &peer).map_err(failed)?;
        let connection = Self {
            service: AsyncMutex::new(Some(service)),
            peer,
            wire,
            server_info,
            since: Instant::now(),
            handler,
            has_answered: AtomicBool::new(false),
        };
        Ok(StartedServer { connection, group })
    }

    /// Whether the connection is open.
    pub(crate) fn is_alive(&self) -> bool {
        !self.wire.ended.is_cancelled() && !self.peer.is_transport_closed()
    }

    /// Whether the server ever answered a request.
    pub(crate) fn has_answered(&self) -> bool {
        self.has_answered.load(Ordering::Relaxed)
    }

    pub(crate) fn note_answer(&self) {
        self.has_answered.store(true, Ordering::Relaxed);
    }

    /// Closes the connection. If the server is a program, stops it and everything it started.
    pub(crate) async fn close(&self) {
        self.wire
            .end(ServerError::unavailable("the connection was closed"));
        let service = self.service.lock().await.take();
        if let Some(mut service) = service {
            let _ = service.close().await;
        }
    }

    /// Subscribes to changes of the list of tools. Only the modern era requires a subscription.
    fn listen(&self) {
        let info = self.peer.peer_info();
        let tools = info.and_then(|info| info.capabilities.tools.clone());
        let notifies = tools.and_then(|tools| tools.list_changed) == Some(true);
        if self.server_info.era != Era::Modern || !notifies {
            return;
        }
        let (peer, wire) = (self.peer.clone(), Arc::clone(&self.wire));
        tokio::spawn(async move {
            let ended = wire.ended.clone();
            let listening = async {
                for attempt in 1u32.. {
                    let filter = SubscriptionFilter::builder().tools_list_changed().build();
                    // `Wire` handles the notifications; this loop only keeps the subscription open.
                    if let Ok(mut subscription) = peer.listen(filter).await {
                        while let Ok(Some(_)) = subscription.next().await {}
                    }
                    tokio::time::sleep(Duration::from_secs(attempt.min(60).into())).await;
                    wire.changed();
                }
            };
            tokio::select! {
                () = ended.cancelled() => {}
                () = listening => {}
            }
        });
    }

    /// All tools of the server, and the TTL of the list.
    pub(crate) async fn list(
        &self,
        within: Duration,
    ) -> Result<(Vec<Definition>, Option<Duration>), ServerError> {
        let limits = &self.wire.limits;
        let mut all = Vec::new();
        let mut ttl: Option<Duration> = None;
        let mut seen = HashSet::new();
        let mut bytes = 0usize;
        let mut cursor: Option<String> = None;
        loop {
            let Some(mut page) = self.page(cursor.take(), within).await? else {
                return Ok((all, ttl));
            };
            let Some(Value::Array(tools)) = page.get_mut("tools").map(Value::take) else {
                return Err(violation("its list of tools is not an array"));
            };
            for tool in tools {
                let Value::Object(tool) = tool else {
                    return Err(violation("an entry in its list of tools is not an object"));
                };
                let definition = Definition::new(tool);
                bytes += serde_json::to_vec(&definition).map_or(0, |json| json.len());
                all.push(definition);
                if all.len() > limits.tools || bytes > limits.list_bytes {
                    return Err(violation(&format!(
                        "it has more than {} tools, or their definitions have more than {} bytes",
                        limits.tools, limits.list_bytes
                    )));
                }
            }
            if let Some(page_ttl) = page.get("ttlMs").and_then(Value::as_u64) {
                let page_ttl = Duration::from_millis(page_ttl);
                ttl = Some(ttl.map_or(page_ttl, |ttl| ttl.min(page_ttl)));
            }
            match page.get("nextCursor") {
                None | Some(Value::Null) => return Ok((all, ttl)),
                Some(Value::String(next)) if seen.insert(next.clone()) => {
                    cursor = Some(next.clone());
                }
                Some(_) => return Err(violation("the pages of its list of tools repeat")),
            }
            if seen.len() > limits.tools {
                return Err(violation("its list of tools has too many pages"));
            }
        }
    }

    /// A page of the list. `None` if the server has no tools.
    #[instrument(
        name = "mcp_request",
        level = "debug",
        skip_all,
        fields(mcp.method.name = "tools/list")
    )]
    async fn page(
        &self,
        cursor: Option<String>,
        within: Duration,
    ) -> Result<Option<Value>, ServerError> {
        let (pending, _elicitations) = PendingRequest::new(false, None);
        let mut request = ListToolsRequest {
            params: cursor
                .map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor))),
            ..ListToolsRequest::default()
        };
        request.extensions.insert(Arc::clone(&pending));
        let request = ClientRequest::ListToolsRequest(request);
        let answer = async {
            let options = PeerRequestOptions::with_timeout(within);
            let handle = self.peer.send_request_with_option(request, options).await?;
            handle.await_response().await
        };
        let answer = tokio::select! {
            biased;
            answer = answer => answer,
            () = self.wire.ended.cancelled() => Err(ServiceError::TransportClosed),
        };
        match answer {
            Ok(read) => {
                self.note_answer();
                let mut page = pending.take_answer().unwrap_or_default();
                if let ServerResult::ListToolsResult(read) = read {
                    keep_usable(&mut page, &read);
                }
                Ok(Some(page))
            }
            Err(error) => {
                if let Some(failure) = pending.take_failure() {
                    return Err(ServerError::new(failure.category, failure.message));
                }
                match error {
                    ServiceError::McpError(error) if error.code == ErrorCode::METHOD_NOT_FOUND => {
                        Ok(None)
                    }
                    ServiceError::McpError(error) => Err(ServerError::new(
                        ErrorCategory::ToolFailure,
                        format!(
                            "the server failed to list its tools: {}",
                            shown(&error.message, self.wire.limits.text_characters)
                        ),
                    )),
                    ServiceError::Timeout { .. } => Err(ServerError::new(
                        ErrorCategory::Timeout,
                        "the server did not list its tools in time",
                    )),
                    error => Err(self.wire.failure().unwrap_or_else(|| {
                        ServerError::unavailable(format!(
                            "the server failed to list its tools: {error}"
                        ))
                    })),
                }
            }
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.wire
            .end(ServerError::unavailable("the connection was dropped"));
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("server_info", &self.server_info)
            .finish_non_exhaustive()
    }
}

/// Runs the check before a start. It may read files, so it runs on a blocking thread.
pub(crate) async fn check_before_start(
    options: &ServerOptions,
    executable: Option<&Path>,
) -> Result<Option<AfterStart>, ServerError> {
    let Some(check) = options.before_start.clone() else {
        return Ok(None);
    };
    let executable = executable.map(Path::to_owned);
    run_check(move || check(executable.as_deref()).map(Some)).await
}

/// Runs the check after a start, also after one that failed: the next start must not hide what happened
/// during this one. Kills the server and everything it started if the check fails.
async fn check_after_start(
    started: Result<StartedServer, StartFailure>,
    check: Option<AfterStart>,
) -> Result<Connection, StartFailure> {
    let checked = match check {
        Some(check) => run_check(check).await,
        None => Ok(()),
    };
    match (started, checked) {
        (Ok(StartedServer { connection, .. }), Ok(())) => {
            connection.listen();
            Ok(connection)
        }
        (Err(failure), Ok(())) => Err(failure),
        (started, Err(error)) => {
            if let Ok(StartedServer { connection, group }) = started {
                if let Some(group) = group {
                    group.kill();
                }
                connection.close().await;
            }
            Err(StartFailure {
                error,
                may_be_other_era: false,
            })
        }
    }
}

async fn run_check<T: Send + 'static>(
    check: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, ServerError> {
    let checked = tokio::task::spawn_blocking(check).await;
    let refused = |reason| ServerError::new(ErrorCategory::PermissionDenied, reason);
    checked
        .unwrap_or_else(|error| Err(error.to_string()))
        .map_err(refused)
}

/// Drops the tools that `rmcp` drops over HTTP: those that require headers no request can have.
fn keep_usable(page: &mut Value, read: &ListToolsResult) {
    let names: HashSet<&str> = read.tools.iter().map(|tool| tool.name.as_ref()).collect();
    let is_usable = |tool: &Value| {
        let name = tool.get("name").and_then(Value::as_str);
        name.is_none_or(|name| names.contains(name))
    };
    if let Some(Value::Array(tools)) = page.get_mut("tools") {
        tools.retain(is_usable);
    }
}

fn violation(what: &str) -> ServerError {
    ServerError::new(
        ErrorCategory::InvalidOutput,
        format!("the server violates the protocol or a limit: {what}"),
    )
}

/// What the server reports about itself, if its protocol version is supported.
fn server_info(era: Era, peer: &Peer<RoleClient>) -> Result<ServerInfo, ServerError> {
    let Some(info) = peer.peer_info() else {
        return Err(violation("it does not identify itself"));
    };
    let version = &info.protocol_version;
    if !ProtocolVersion::KNOWN_VERSIONS.contains(version) {
        let version = shown(version.as_str(), 40);
        return Err(violation(&format!(
            "its protocol version `{version}` is not supported"
        )));
    }
    let (server_name, server_version) = match &info.server_info {
        Some(server) => (
            shown(&server.name, MAX_NAME),
            shown(&server.version, MAX_NAME),
        ),
        None => Default::default(),
    };
    let instructions =
        info.instructions
            .as_ref()
            .map(|text| match text.char_indices().nth(MAX_INSTRUCTIONS) {
                Some((end, _)) => text[..end].to_owned(),
                None => text.clone(),
            });
    Ok(ServerInfo {
        era,
        protocol_version: version.as_str().to_owned(),
        server_name,
        server_version,
        instructions,
    })
}

/// Why the handshake failed.
fn start_failure(error: &ClientInitializeError, wire: &Wire, stderr: &str) -> StartFailure {
    if let Some(known) = wire.failure() {
        // A program may end because it does not know a request of the other era.
        let may_be_other_era = known.category == ErrorCategory::Unavailable
            && matches!(error, ClientInitializeError::ConnectionClosed(_));
        return StartFailure {
            error: known,
            may_be_other_era,
        };
    }
    let may_be_other_era = !matches!(error, ClientInitializeError::Cancelled);
    let message = shown(&error.to_string(), 500);
    StartFailure {
        error: ServerError::unavailable(format!(
            "the server could not be initialized: {message}{stderr}"
        )),
        may_be_other_era,
    }
}
