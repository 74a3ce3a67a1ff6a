//! A handle to a server. It connects on first use, shares one connection among all callers, and
//! reconnects with a backoff when the connection is lost.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, Weak};
use std::time::Instant;

use tokio::sync::Mutex as AsyncMutex;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;
use windlass_spec::server::{ServerSettings, Transport};
use windlass_spec::{Effect, ErrorCategory};

use crate::Definition;
use crate::child::executable;
use crate::client::{
    Backoff, Call, CallError, CallOutcome, CallRequest, Connection, ElicitationReply, Era, Health,
    Listing, OutputSchemas, ServerError, ServerInfo, ServerOptions, Step, check_before_start, lock,
};

/// A server. Cheap to clone; all clones are the same server. When the last clone is dropped, the server
/// is stopped as by [`Server::close`]: in the background, or at once if the runtime has stopped.
#[derive(Debug, Clone)]
pub struct Server(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    settings: ServerSettings,
    options: ServerOptions,
    listing: Arc<Listing>,
    output_schemas: OutputSchemas,
    /// Held by the task that starts the server. Other tasks wait for its result.
    start: AsyncMutex<()>,
    state: Mutex<State>,
    parked: Mutex<HashMap<String, Parked>>,
    closed: CancellationToken,
}

#[derive(Debug, Default)]
struct State {
    connection: Option<Arc<Connection>>,
    era: Option<Era>,
    is_starting: bool,
    /// The number of failures in a row. `error` is the last one.
    failures: u32,
    error: Option<ServerError>,
    next_try: Option<Instant>,
}

/// A call that waits for the user's reply, and the task that drops it if the call is cancelled or the
/// server ends.
struct Parked {
    call: Call,
    watch: AbortHandle,
}

impl std::fmt::Debug for Parked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Parked")
    }
}

impl Server {
    /// A server that is not started yet.
    #[must_use]
    pub fn new(settings: ServerSettings, options: ServerOptions) -> Self {
        let limits = &options.limits;
        let listing = Listing::new(limits.change_interval, limits.shortest_ttl);
        let state = State {
            era: options.era,
            ..State::default()
        };
        Self(Arc::new(Inner {
            settings,
            options,
            listing: Arc::new(listing),
            output_schemas: OutputSchemas::default(),
            start: AsyncMutex::default(),
            state: Mutex::new(state),
            parked: Mutex::default(),
            closed: CancellationToken::new(),
        }))
    }

    /// Its settings.
    #[must_use]
    pub fn settings(&self) -> &ServerSettings {
        &self.0.settings
    }

    /// Starts the server if it is not running. Returns what it reports about itself.
    ///
    /// # Errors
    /// If it cannot be used. After a failure it is not started again until the backoff is over; until
    /// then the last failure is returned again.
    pub async fn connect(&self) -> Result<ServerInfo, ServerError> {
        Ok(self.0.connection().await?.server_info.clone())
    }

    /// All tools of the server, as it describes them now.
    ///
    /// # Errors
    /// If it cannot be used, or its list violates the protocol or a limit.
    pub async fn definitions(&self) -> Result<Vec<Definition>, ServerError> {
        let connection = self.0.connection().await?;
        let (definitions, ttl) = connection.list(self.0.settings.start_timeout).await?;
        self.0.listing.listed(ttl);
        Ok(definitions)
    }

    /// Calls a tool. If the server requests input from the user, the call waits under the key of the
    /// request until [`Server::reply`], or until it is cancelled or the server ends. If the future is
    /// dropped, the request is withdrawn, or a `cancelled` notification is sent.
    ///
    /// # Errors
    /// If the call failed other than by an error result of the tool.
    pub async fn call(&self, request: CallRequest) -> Result<CallOutcome, CallError> {
        let cancelled = || {
            CallError::own(
                ErrorCategory::Cancelled,
                Effect::None,
                "the call was cancelled",
            )
        };
        let connection = tokio::select! {
            biased;
            () = request.cancel.cancelled() => return Err(cancelled()),
            connection = self.0.connection() => connection?,
        };
        self.begin(connection, request).await
    }

    async fn begin(
        &self,
        connection: Arc<Connection>,
        request: CallRequest,
    ) -> Result<CallOutcome, CallError> {
        let key = request.key.clone();
        let mut call = Call::new(connection, request);
        let step = call.begin(&self.0.output_schemas).await?;
        Ok(self.outcome(key, call, step))
    }

    /// Calls a tool if [`Server::generation`] is still `generation`. Otherwise does nothing and returns
    /// `None`.
    pub(crate) async fn call_at(
        &self,
        generation: u64,
        request: CallRequest,
    ) -> Option<Result<CallOutcome, CallError>> {
        let connection = self.0.alive()?;
        // Read after the connection was taken: a later connection has another generation.
        if self.generation() != generation {
            return None;
        }
        Some(self.begin(connection, request).await)
    }

    /// Resumes the call that waits under the key of the request. Its tool and arguments stay those of the
    /// original request; everything else is taken from this one.
    ///
    /// # Errors
    /// If no call waits under that key, or it failed.
    pub async fn reply(
        &self,
        request: CallRequest,
        reply: ElicitationReply,
    ) -> Result<CallOutcome, CallError> {
        let parked = lock(&self.0.parked).remove(&request.key);
        let Some(Parked { mut call, watch }) = parked else {
            return Err(CallError::own(
                ErrorCategory::Unavailable,
                Effect::Unknown,
                "the call no longer waits for a reply: it was cancelled, or the server ended",
            ));
        };
        watch.abort();
        let key = request.key.clone();
        let step = call.reply(request, reply, &self.0.output_schemas).await?;
        Ok(self.outcome(key, call, step))
    }

    fn outcome(&self, key: String, call: Call, step: Step) -> CallOutcome {
        match step {
            Step::Answered(answer) => CallOutcome::Answered(answer),
            Step::NeedsInput(elicitation) => {
                self.0.park(key, call);
                CallOutcome::NeedsInput(elicitation)
            }
        }
    }

    /// A number that changes when the list of tools may have changed: at every start of the server, on a
    /// `list_changed` notification, and when the TTL of the list is over. Notifications change it at most
    /// once per [`Limits::change_interval`](crate::Limits::change_interval).
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.0.listing.generation()
    }

    /// The state of the server.
    #[must_use]
    pub fn health(&self) -> Health {
        self.0.health()
    }

    /// Stops the server, everything it started, and all calls. It is not started again.
    pub async fn close(&self) {
        self.0.closed.cancel();
        lock(&self.0.parked).clear();
        // A task that is starting the server sees `closed` and releases the lock.
        let _start = self.0.start.lock().await;
        let connection = lock(&self.0.state).connection.take();
        if let Some(connection) = connection {
            connection.close().await;
        }
    }
}

impl Inner {
    /// The connection, started if necessary.
    async fn connection(&self) -> Result<Arc<Connection>, ServerError> {
        if let Some(connection) = self.alive() {
            return Ok(connection);
        }
        let _start = self.start.lock().await;
        if let Some(connection) = self.alive() {
            return Ok(connection);
        }
        self.may_start()?;
        let executable = self.executable().inspect_err(|error| {
            lock(&self.state).fail(error.clone(), self.backoff());
        })?;
        let executable = executable.as_deref();
        let after_start = check_before_start(&self.options, executable).await?;
        let starting = Starting::of(&self.state);
        let era = lock(&self.state).era;
        let start = Connection::start(
            &self.settings,
            &self.options,
            executable,
            after_start,
            era,
            &self.listing,
        );
        let started = tokio::select! {
            biased;
            () = self.closed.cancelled() => return Err(closed()),
            started = start => started,
        };
        drop(starting);
        let mut state = lock(&self.state);
        match started {
            Ok(connection) => {
                let connection = Arc::new(connection);
                state.era = Some(connection.server_info.era);
                state.connection = Some(Arc::clone(&connection));
                self.listing.reconnected();
                Ok(connection)
            }
            Err(error) => {
                state.fail(error.clone(), self.backoff());
                Err(error)
            }
        }
    }

    /// The executable, if the server is a program.
    fn executable(&self) -> Result<Option<PathBuf>, ServerError> {
        match &self.settings.transport {
            Transport::Command(command) => executable(command, &self.options.lookup).map(Some),
            Transport::Http(_) => Ok(None),
        }
    }

    fn alive(&self) -> Option<Arc<Connection>> {
        let state = lock(&self.state);
        let connection = state.connection.as_ref()?;
        connection.is_alive().then(|| Arc::clone(connection))
    }

    /// Whether it may be started now. A server that answered a request, or ran long enough, is restarted
    /// at once when it ends. One that keeps failing is not.
    fn may_start(&self) -> Result<(), ServerError> {
        if self.closed.is_cancelled() {
            return Err(closed());
        }
        if !self.settings.is_enabled {
            return Err(ServerError::unavailable(
                "the server is disabled in the configuration; set `enabled = true` to use it",
            ));
        }
        let mut state = lock(&self.state);
        if let Some(gone) = state.connection.take() {
            let was_stable =
                gone.has_answered() || gone.since.elapsed() >= self.options.limits.stable_after;
            match was_stable {
                true => state.recover(),
                false => state.fail(reason_of_end(&gone), self.backoff()),
            }
        }
        let wait = state
            .next_try
            .and_then(|at| at.checked_duration_since(Instant::now()));
        match (wait, &state.error) {
            (Some(wait), Some(error)) if !wait.is_zero() => Err(ServerError::new(
                error.category,
                format!(
                    "{} (failed {} times; the next attempt is possible in {:.1} seconds)",
                    error.message,
                    state.failures,
                    wait.as_secs_f64()
                ),
            )),
            _ => Ok(()),
        }
    }

    fn backoff(&self) -> Backoff {
        Backoff {
            first: self.options.limits.first_backoff,
            longest: self.options.limits.longest_backoff,
        }
    }

    fn health(&self) -> Health {
        let state = lock(&self.state);
        if state.is_starting {
            return Health::Starting;
        }
        match (&state.connection, &state.error, state.next_try) {
            (Some(connection), _, _) if connection.is_alive() => Health::Ready {
                since: connection.since,
            },
            (Some(gone), _, _) => Health::Failing {
                error: reason_of_end(gone),
                attempts: state.failures + 1,
                next_try: Instant::now(),
            },
            (None, Some(error), Some(next_try)) => Health::Failing {
                error: error.clone(),
                attempts: state.failures,
                next_try,
            },
            (None, _, _) => Health::Idle,
        }
    }

    /// Lets a call wait for the user's reply, until it is cancelled or the server ends.
    fn park(self: &Arc<Self>, key: String, call: Call) {
        let (cancel, ended) = (call.cancel().clone(), call.connection.wire.ended.clone());
        let (inner, parked_as): (Weak<Self>, _) = (Arc::downgrade(self), key.clone());
        let mut parked = lock(&self.parked);
        let watch = tokio::spawn(async move {
            tokio::select! {
                () = cancel.cancelled() => {}
                () = ended.cancelled() => {}
            }
            if let Some(inner) = inner.upgrade() {
                // Dropped outside of the lock, because dropping notifies the server.
                let _call = lock(&inner.parked).remove(&parked_as);
            }
        });
        let watch = watch.abort_handle();
        if let Some(before) = parked.insert(key, Parked { call, watch }) {
            before.watch.abort();
        }
    }
}

impl State {
    fn fail(&mut self, error: ServerError, backoff: Backoff) {
        self.failures = self.failures.saturating_add(1);
        self.next_try = Some(Instant::now() + backoff.after(self.failures));
        self.error = Some(error);
    }

    fn recover(&mut self) {
        self.failures = 0;
        self.next_try = None;
        self.error = None;
    }
}

/// Sets `is_starting` as long as it exists.
struct Starting<'a>(&'a Mutex<State>);

impl<'a> Starting<'a> {
    fn of(state: &'a Mutex<State>) -> Self {
        lock(state).is_starting = true;
        Self(state)
    }
}

impl Drop for Starting<'_> {
    fn drop(&mut self) {
        lock(self.0).is_starting = false;
    }
}

fn reason_of_end(connection: &Connection) -> ServerError {
    let reason = connection.wire.failure();
    reason.unwrap_or_else(|| ServerError::unavailable("the server has ended"))
}

fn closed() -> ServerError {
    ServerError::unavailable("the server was closed")
}
