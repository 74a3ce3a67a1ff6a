//! One connection with one server: how it comes about in either era, and what is asked of the server
//! outside of calls.

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
use windlass_spec::ErrorCategory;
use windlass_spec::server::{ServerSettings, Transport};

use super::api::{Era, Greeting, ServerError, ServerOptions};
use super::handler::Handler;
use super::list::Listing;
use super::shown;
use super::wire::{Flight, Wire};
use crate::Definition;
use crate::child::Lines;

/// How many characters are taken of what a server calls itself, and of what it would like a model to
/// know.
const OF_NAME: usize = 200;
const OF_INSTRUCTIONS: usize = 64 * 1024;

/// A server that is there, or was.
pub(crate) struct Connection {
    service: AsyncMutex<Option<RunningService<RoleClient, Handler>>>,
    pub(crate) peer: Peer<RoleClient>,
    pub(crate) wire: Arc<Wire>,
    pub(crate) greeting: Greeting,
    pub(crate) since: Instant,
    pub(crate) handler: Handler,
    has_answered: AtomicBool,
}

/// Why a server could not be reached.
struct Refusal {
    error: ServerError,
    /// Whether it may be that it speaks the other protocol.
    may_be_other_era: bool,
}

impl Connection {
    /// Starts a server and finds out what it speaks, beginning with what it spoke the last time. A
    /// server that was asked in the wrong protocol may not hear the right one any more, so it is
    /// started again for it.
    pub(crate) async fn start(
        settings: &ServerSettings,
        options: &ServerOptions,
        executable: Option<&Path>,
        remembered: Option<Era>,
        listing: &Arc<Listing>,
    ) -> Result<Self, ServerError> {
        let first = remembered.unwrap_or(Era::Modern);
        let refusal = match Self::start_in(first, settings, options, executable, listing).await {
            Ok(connection) => return Ok(connection),
            Err(refusal) => refusal,
        };
        if !refusal.may_be_other_era {
            return Err(refusal.error);
        }
        // It has run since it was asked about, and may be another by now.
        ask_before_start(options, executable).await?;
        match Self::start_in(first.other(), settings, options, executable, listing).await {
            Ok(connection) => Ok(connection),
            Err(second) if second.error.message == refusal.error.message => Err(second.error),
            Err(second) => Err(ServerError::new(
                second.error.category,
                format!(
                    "{} (and asked in the {first} protocol: {})",
                    second.error.message, refusal.error.message
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
    ) -> Result<Self, Refusal> {
        let wire = Arc::new(Wire::new(Arc::clone(listing), options.limits.clone()));
        let handler = Handler::new(settings, options, Arc::clone(&wire));
        let fails = |error| Refusal {
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
        let (served, last_words) = match &settings.transport {
            Transport::Command(command) => {
                let executable = executable.unwrap_or(Path::new(&command.program));
                let lines = Lines::start(command, executable, &options.lookup, Arc::clone(&wire))
                    .map_err(fails)?;
                let last_words = Some(lines.last_words());
                let served = handler.clone().serve_with_lifecycle(lines, mode);
                (tokio::time::timeout(within, served).await, last_words)
            }
            Transport::Http(http) => {
                let transport =
                    super::http::transport(http, options, Arc::clone(&wire)).map_err(fails)?;
                let served = handler.clone().serve_with_lifecycle(transport, mode);
                (tokio::time::timeout(within, served).await, None)
            }
        };
        let words = || {
            last_words
                .as_ref()
                .map(|words| words.sentence())
                .unwrap_or_default()
        };
        let service = match served {
            Ok(Ok(service)) => service,
            Ok(Err(error)) => return Err(refusal(&error, &wire, &words())),
            Err(_) => {
                let message = format!(
                    "the server did not answer within {} seconds{}",
                    within.as_secs_f64(),
                    words()
                );
                return Err(Refusal {
                    error: ServerError::new(ErrorCategory::Timeout, message),
                    may_be_other_era: true,
                });
            }
        };
        let peer = service.peer().clone();
        let greeting = greeting(era, &peer).map_err(fails)?;
        let connection = Self {
            service: AsyncMutex::new(Some(service)),
            peer,
            wire,
            greeting,
            since: Instant::now(),
            handler,
            has_answered: AtomicBool::new(false),
        };
        connection.listen();
        Ok(connection)
    }

    /// Whether the server is still there.
    pub(crate) fn is_alive(&self) -> bool {
        !self.wire.ended.is_cancelled() && !self.peer.is_transport_closed()
    }

    /// Whether it ever did anything that was asked of it.
    pub(crate) fn has_answered(&self) -> bool {
        self.has_answered.load(Ordering::Relaxed)
    }

    pub(crate) fn note_answer(&self) {
        self.has_answered.store(true, Ordering::Relaxed);
    }

    /// Ends the connection and, if it is a program, the server with everything it started.
    pub(crate) async fn close(&self) {
        self.wire
            .end(ServerError::unavailable("the connection was closed"));
        let service = self.service.lock().await.take();
        if let Some(mut service) = service {
            let _ = service.close().await;
        }
    }

    /// Hears of changes of the list of tools, where the protocol has it that one must ask for that.
    fn listen(&self) {
        let info = self.peer.peer_info();
        let tools = info.and_then(|info| info.capabilities.tools.clone());
        let tells = tools.and_then(|tools| tools.list_changed) == Some(true);
        if self.greeting.era != Era::Modern || !tells {
            return;
        }
        let (peer, wire) = (self.peer.clone(), Arc::clone(&self.wire));
        tokio::spawn(async move {
            let ended = wire.ended.clone();
            let listening = async {
                for attempt in 1u32.. {
                    let filter = SubscriptionFilter::builder().tools_list_changed().build();
                    // What it tells passes through the wire; all there is to do is to keep asking.
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

    /// All tools of the server, and how long that list holds.
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
                return Err(breaks("its list of tools is none"));
            };
            for tool in tools {
                let Value::Object(tool) = tool else {
                    return Err(breaks("something in its list of tools is no tool"));
                };
                let definition = Definition::new(tool);
                bytes += serde_json::to_vec(&definition).map_or(0, |json| json.len());
                all.push(definition);
                if all.len() > limits.tools || bytes > limits.list_bytes {
                    return Err(breaks(&format!(
                        "it has more than {} tools or describes them in more than {} bytes",
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
                Some(_) => return Err(breaks("its list of tools goes round in a circle")),
            }
            if seen.len() > limits.tools {
                return Err(breaks("its list of tools has no end"));
            }
        }
    }

    /// A page of the list; `None` if the server has no tools at all.
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
        let (flight, _questions) = Flight::new(false, None);
        let mut request = ListToolsRequest {
            params: cursor
                .map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor))),
            ..ListToolsRequest::default()
        };
        request.extensions.insert(Arc::clone(&flight));
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
                let mut page = flight.take_answer().unwrap_or_default();
                if let ServerResult::ListToolsResult(read) = read {
                    keep_usable(&mut page, &read);
                }
                Ok(Some(page))
            }
            Err(error) => {
                if let Some(failure) = flight.take_failure() {
                    return Err(ServerError::new(failure.category, failure.message));
                }
                match error {
                    ServiceError::McpError(error) if error.code == ErrorCode::METHOD_NOT_FOUND => {
                        Ok(None)
                    }
                    ServiceError::McpError(error) => Err(ServerError::new(
                        ErrorCategory::ToolFailure,
                        format!(
                            "the server does not list its tools: {}",
                            shown(&error.message, self.wire.limits.text_characters)
                        ),
                    )),
                    ServiceError::Timeout { .. } => Err(ServerError::new(
                        ErrorCategory::Timeout,
                        "the server does not list its tools in time",
                    )),
                    error => Err(self.wire.why().unwrap_or_else(|| {
                        ServerError::unavailable(format!(
                            "the server does not list its tools: {error}"
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
            .field("greeting", &self.greeting)
            .finish_non_exhaustive()
    }
}

/// Asks whoever wants to be asked before a start. It may have files to read.
pub(crate) async fn ask_before_start(
    options: &ServerOptions,
    executable: Option<&Path>,
) -> Result<(), ServerError> {
    let Some(ask) = options.before_start.clone() else {
        return Ok(());
    };
    let executable = executable.map(Path::to_owned);
    let asked = tokio::task::spawn_blocking(move || ask(executable.as_deref())).await;
    let refused = |why| ServerError::new(ErrorCategory::PermissionDenied, why);
    asked
        .unwrap_or_else(|error| Err(error.to_string()))
        .map_err(refused)
}

/// Leaves out the tools that the library for HTTP leaves out: those that ask for headers no request
/// can have.
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

fn breaks(what: &str) -> ServerError {
    ServerError::new(
        ErrorCategory::InvalidOutput,
        format!("the server breaks the rules: {what}"),
    )
}

/// What the server says of itself, if it speaks a version that is known here.
fn greeting(era: Era, peer: &Peer<RoleClient>) -> Result<Greeting, ServerError> {
    let Some(info) = peer.peer_info() else {
        return Err(breaks("it does not say who it is"));
    };
    let version = &info.protocol_version;
    if !ProtocolVersion::KNOWN_VERSIONS.contains(version) {
        let version = shown(version.as_str(), 40);
        return Err(breaks(&format!(
            "it wants to speak version `{version}`, which is unknown here"
        )));
    }
    let (server_name, server_version) = match &info.server_info {
        Some(server) => (
            shown(&server.name, OF_NAME),
            shown(&server.version, OF_NAME),
        ),
        None => Default::default(),
    };
    let instructions =
        info.instructions
            .as_ref()
            .map(|text| match text.char_indices().nth(OF_INSTRUCTIONS) {
                Some((end, _)) => text[..end].to_owned(),
                None => text.clone(),
            });
    Ok(Greeting {
        era,
        protocol_version: version.as_str().to_owned(),
        server_name,
        server_version,
        instructions,
    })
}

/// Why a handshake came to nothing.
fn refusal(error: &ClientInitializeError, wire: &Wire, words: &str) -> Refusal {
    if let Some(known) = wire.why() {
        // A program that ended, or an address that refuses: the first may have been for the question.
        let may_be_other_era = known.category == ErrorCategory::Unavailable
            && matches!(error, ClientInitializeError::ConnectionClosed(_));
        return Refusal {
            error: known,
            may_be_other_era,
        };
    }
    let may_be_other_era = !matches!(error, ClientInitializeError::Cancelled);
    let message = shown(&error.to_string(), 500);
    Refusal {
        error: ServerError::unavailable(format!(
            "the server cannot be spoken to: {message}{words}"
        )),
        may_be_other_era,
    }
}
