//! A server as everybody else uses it: a handle that starts nothing until it is used, shares one
//! connection among all who use it, and starts it again when it is gone, but not in a loop.

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
    Backoff, Call, CallError, CallRequest, Came, Checks, Connection, Era, Greeting, Health,
    Listing, Reply, ServerError, ServerOptions, Step, ask_before_start, lock,
};

/// A server. Cheap to clone; all clones are the same server. When the last one is dropped, the server
/// is ended as [`Server::close`] does, in the background, or at once if nothing runs in the background
/// any more.
#[derive(Debug, Clone)]
pub struct Server(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    settings: ServerSettings,
    options: ServerOptions,
    listing: Arc<Listing>,
    checks: Checks,
    /// Held by whoever starts the server; the others wait for what comes of it.
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
    /// How often in a row it failed, and the last time why.
    failures: u32,
    error: Option<ServerError>,
    next_try: Option<Instant>,
}

/// A call that waits for a person, and what watches that it does not wait in vain.
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
            checks: Checks::default(),
            start: AsyncMutex::default(),
            state: Mutex::new(state),
            parked: Mutex::default(),
            closed: CancellationToken::new(),
        }))
    }

    /// How the operator set it up.
    #[must_use]
    pub fn settings(&self) -> &ServerSettings {
        &self.0.settings
    }

    /// Starts the server if it is not there, and says what it says of itself.
    ///
    /// # Errors
    /// If it cannot be used. After a failure it is left alone for a while; until then the last failure
    /// is told again.
    pub async fn connect(&self) -> Result<Greeting, ServerError> {
        Ok(self.0.connection().await?.greeting.clone())
    }

    /// All tools of the server, as it describes them now.
    ///
    /// # Errors
    /// If it cannot be used, or its list breaks the rules.
    pub async fn definitions(&self) -> Result<Vec<Definition>, ServerError> {
        let connection = self.0.connection().await?;
        let (definitions, ttl) = connection.list(self.0.settings.start_timeout).await?;
        self.0.listing.listed(ttl);
        Ok(definitions)
    }

    /// Calls a tool. If a person is asked something, the call waits under the key of the request until
    /// [`Server::reply`], or until it is cancelled or the server ends. Dropped in the middle, the call
    /// is taken back, or the server is told that nobody waits any more.
    ///
    /// # Errors
    /// If it failed otherwise than by the tool saying so.
    pub async fn call(&self, request: CallRequest) -> Result<Came, CallError> {
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
    ) -> Result<Came, CallError> {
        let key = request.key.clone();
        let mut call = Call::new(connection, request);
        let step = call.begin(&self.0.checks).await?;
        Ok(self.came(key, call, step))
    }

    /// Calls a tool if the server is still as it was when [`Server::generation`] said this; nothing
    /// happens otherwise.
    pub(crate) async fn call_at(
        &self,
        generation: u64,
        request: CallRequest,
    ) -> Option<Result<Came, CallError>> {
        let connection = self.0.alive()?;
        // The number is read after the connection was taken: a later one has another.
        if self.generation() != generation {
            return None;
        }
        Some(self.begin(connection, request).await)
    }

    /// Goes on with the call that waits under the key of the request. Its tool and arguments are those
    /// it began with; everything else is as the request says now.
    ///
    /// # Errors
    /// If no call waits there any more, or it failed.
    pub async fn reply(&self, request: CallRequest, reply: Reply) -> Result<Came, CallError> {
        let parked = lock(&self.0.parked).remove(&request.key);
        let Some(Parked { mut call, watch }) = parked else {
            return Err(CallError::own(
                ErrorCategory::Unavailable,
                Effect::Unknown,
                "the call does not wait for a reply any more: it was cancelled, or the server ended",
            ));
        };
        watch.abort();
        let key = request.key.clone();
        let step = call.reply(request, reply, &self.0.checks).await?;
        Ok(self.came(key, call, step))
    }

    fn came(&self, key: String, call: Call, step: Step) -> Came {
        match step {
            Step::Answered(answered) => Came::Answered(answered),
            Step::Asks(question) => {
                self.0.park(key, call);
                Came::Asks(question)
            }
        }
    }

    /// A number that changes when the list of tools may have changed: at every start of the server,
    /// when it says so, and when the time is over for which it said the list holds. A storm of notices
    /// changes it at most once per [`Limits::change_interval`](crate::Limits::change_interval).
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.0.listing.generation()
    }

    /// How the server is.
    #[must_use]
    pub fn health(&self) -> Health {
        self.0.health()
    }

    /// Ends the server and everything it started, and all calls. It is not started again.
    pub async fn close(&self) {
        self.0.closed.cancel();
        lock(&self.0.parked).clear();
        // Whoever starts it right now hears of the end and lets go.
        let _start = self.0.start.lock().await;
        let connection = lock(&self.0.state).connection.take();
        if let Some(connection) = connection {
            connection.close().await;
        }
    }
}

impl Inner {
    /// The connection, started if need be.
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
        ask_before_start(&self.options, executable).await?;
        let starting = Starting::of(&self.state);
        let era = lock(&self.state).era;
        let start = Connection::start(
            &self.settings,
            &self.options,
            executable,
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
                state.era = Some(connection.greeting.era);
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

    /// The file that is started, if the server is a program.
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

    /// Whether it may be started now. A server that did what it was asked, or was there for long, is
    /// started again at once when it is gone; one that ends again and again is not.
    fn may_start(&self) -> Result<(), ServerError> {
        if self.closed.is_cancelled() {
            return Err(closed());
        }
        if !self.settings.is_enabled {
            return Err(ServerError::unavailable(
                "the server is switched off in the configuration",
            ));
        }
        let mut state = lock(&self.state);
        if let Some(gone) = state.connection.take() {
            let was_good =
                gone.has_answered() || gone.since.elapsed() >= self.options.limits.stable_after;
            match was_good {
                true => state.recover(),
                false => state.fail(why_gone(&gone), self.backoff()),
            }
        }
        let wait = state
            .next_try
            .and_then(|at| at.checked_duration_since(Instant::now()));
        match (wait, &state.error) {
            (Some(wait), Some(error)) if !wait.is_zero() => Err(ServerError::new(
                error.category,
                format!(
                    "{} (failed {} times; tried again in {:.1} seconds at the earliest)",
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
                error: why_gone(gone),
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

    /// Lets a call wait for a person, until it is cancelled or the server ends.
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
                // Dropped outside of the lock: the server is told.
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

/// Says that the server is being started, as long as somebody does.
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

fn why_gone(connection: &Connection) -> ServerError {
    let why = connection.wire.why();
    why.unwrap_or_else(|| ServerError::unavailable("the server is gone"))
}

fn closed() -> ServerError {
    ServerError::unavailable("the server was closed")
}
