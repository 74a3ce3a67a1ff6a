//! What all requests share.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::http::{HeaderMap, Method};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use windlass_service::types::{Event, ModelEvent, Progress, RunId, Stop, Watch};
use windlass_service::{AuthenticatedCaller, Service, ServiceError};

use crate::authentication::Credential;
use crate::chat::{Chats, LiveText};
use crate::events::Hub;
use crate::hosts::{Hosts, Transport};
use crate::options::ServerOptions;
use crate::problem::Problem;
use crate::rate::Rates;
use crate::session::Logins;

/// What all requests share.
pub(crate) struct App {
    pub(crate) service: Service,
    pub(crate) hosts: Hosts,
    pub(crate) rates: Rates,
    pub(crate) logins: Arc<Logins>,
    /// Stops the runs that requests started.
    pub(crate) stop: Stop,
    /// Ends streams and waiting requests when the server stops.
    pub(crate) closing: CancellationToken,
    /// One permit for each run that requests may have under way.
    pub(crate) run_permits: Arc<Semaphore>,
    /// The runs that requests started.
    pub(crate) runs: tokio::sync::Mutex<JoinSet<()>>,
    pub(crate) hub: Hub,
    /// The chat clients that wait for text.
    pub(crate) chats: Chats,
    pub(crate) openapi: String,
}

impl App {
    /// `address` is where the server listens.
    pub(crate) fn new(
        service: Service,
        options: &ServerOptions,
        address: SocketAddr,
        openapi: String,
    ) -> Arc<Self> {
        let closing = CancellationToken::new();
        let transport = match (options.is_behind_proxy, &options.tls) {
            (true, _) => Transport::Proxied,
            (false, Some(_)) => Transport::Encrypted,
            (false, None) => Transport::Plain,
        };
        Arc::new(Self {
            hosts: Hosts::new(&options.hosts, transport),
            logins: Arc::new(Logins::new(options, address, transport)),
            rates: Rates::new(options.requests_per_second),
            stop: Stop::default(),
            run_permits: Arc::new(Semaphore::new(options.concurrent_runs)),
            runs: tokio::sync::Mutex::default(),
            hub: Hub::new(service.clone(), closing.clone()),
            chats: Chats::default(),
            closing,
            service,
            openapi,
        })
    }

    /// Refuses new runs when the server stops.
    pub(crate) fn check_open(&self) -> Result<(), Problem> {
        match self.closing.is_cancelled() {
            true => Err(Problem::closing()),
            false => Ok(()),
        }
    }

    /// Passes text of models on to those who listen.
    pub(crate) fn watch(self: &Arc<Self>) -> Watch {
        let app = Arc::clone(self);
        Arc::new(move |run: &RunId, progress: Progress<'_>| match progress {
            Progress::Model(ModelEvent::Text { text }) => {
                app.hub.send_text(run, text);
                app.chats.send(run, || LiveText::More(text.clone()));
            }
            Progress::Event(Event::ModelAnswered { .. }) => {
                app.chats.send(run, || LiveText::TurnEnded);
            }
            _ => {}
        })
    }

    /// The caller of a request, which is counted against its rate. `operation` is recorded for auditors.
    pub(crate) async fn caller(
        &self,
        method: &Method,
        headers: &HeaderMap,
        operation: String,
    ) -> Result<(AuthenticatedCaller, Credential), Problem> {
        let credential = Credential::of(method, headers, &self.logins.cookie)?;
        let caller = credential.authenticate(&self.service).await?;
        if caller.is_recorded() {
            let (service, caller) = (self.service.clone(), caller.clone());
            blocking(move || service.record_audit_read(&caller, &operation)).await?;
        }
        match self.rates.take(&caller.token, Instant::now()) {
            Ok(()) => Ok((caller, credential)),
            Err(wait) => Err(Problem::new(
                429,
                "too_many_requests",
                "Too many requests with this token",
            )
            .with_hint("wait as long as `Retry-After` says")
            .retry_after(wait.as_secs() + 1)),
        }
    }
}

/// Runs an operation of the service that blocks.
pub(crate) async fn blocking<T: Send + 'static>(
    operation: impl FnOnce() -> Result<T, ServiceError> + Send + 'static,
) -> Result<T, Problem> {
    match tokio::task::spawn_blocking(operation).await {
        Ok(done) => Ok(done?),
        Err(error) => Err(Problem::internal(&error)),
    }
}
