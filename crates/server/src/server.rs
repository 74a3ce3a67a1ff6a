//! The server: a socket, the connections to it, a worker, and their end.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use windlass_service::types::Stop;
use windlass_service::{Identity, Service, ServiceError, WorkerOptions, WorkerTenants};

use crate::app::App;
use crate::connection::ImpatientStream;
use crate::openapi::describe;
use crate::options::{ServerOptions, ServerOptionsError};
use crate::route::router;
use crate::routes::routes;
use crate::tls::{TlsEncryption, TlsError};

/// How long a client may take to send the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a client may stop to read an answer.
const WRITE_TIMEOUT: Duration = Duration::from_secs(20);

/// How many connections are open at the same time. Others wait.
const MAX_CONNECTIONS: usize = 8_192;

/// How long the server waits for requests under way when it stops.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a server cannot start or continue.
#[derive(Debug)]
pub enum ServerError {
    /// It cannot have these options.
    Options(ServerOptionsError),
    /// Its certificate cannot be used.
    Tls(TlsError),
    /// It cannot listen there.
    Listen(SocketAddr, std::io::Error),
    /// An operation of the service failed.
    Service(ServiceError),
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Options(error) => error.fmt(f),
            Self::Tls(error) => error.fmt(f),
            Self::Listen(address, error) => write!(
                f,
                "the server cannot listen on `{address}`: {error}\nhint: choose another address with `--listen`"
            ),
            Self::Service(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ServerError {}

impl From<ServiceError> for ServerError {
    fn from(error: ServiceError) -> Self {
        Self::Service(error)
    }
}

/// A server that listens and does not answer yet.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    app: Arc<App>,
    router: Router,
    options: ServerOptions,
    encryption: Option<Arc<TlsEncryption>>,
}

/// The address of the other end of a connection: the client, or a proxy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) IpAddr);

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl Server {
    /// Checks the options and the service, and opens the socket.
    ///
    /// # Errors
    /// If the options are refused, configuration or store cannot be used, or the address is taken.
    pub async fn bind(service: Service, options: ServerOptions) -> Result<Self, ServerError> {
        options.check().map_err(ServerError::Options)?;
        let encryption = options.tls.clone().map(TlsEncryption::open);
        let encryption = encryption.transpose().map_err(ServerError::Tls)?;
        let checked = service.clone();
        let checked = tokio::task::spawn_blocking(move || checked.check()).await;
        checked.map_err(|error| ServiceError::failed(error.to_string()))??;
        let at = |error| ServerError::Listen(options.listen, error);
        let listener = TcpListener::bind(options.listen).await.map_err(at)?;
        let address = listener.local_addr().map_err(at)?;
        let routes = routes();
        let app = App::new(service, &options, address, describe(&routes).to_string());
        app.hub.start()?;
        Ok(Self {
            router: router(&app, &routes),
            listener,
            address,
            app,
            options,
            encryption: encryption.map(Arc::new),
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether it encrypts connections itself.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.encryption.is_some()
    }

    /// Answers requests and drives runs until it is stopped: after `after_step`, it takes no new requests and lets runs
    /// end their step; after `at_once`, it aborts them. Either way no run is cancelled: the next worker resumes them.
    ///
    /// # Errors
    /// If the worker cannot work.
    pub async fn run(self, identity: &Identity, stop: Stop) -> Result<(), ServerError> {
        let Self {
            listener,
            app,
            router,
            options,
            encryption,
            ..
        } = self;
        app.logins.announce(Instant::now())?;
        if let Some(encryption) = &encryption {
            tokio::spawn(Arc::clone(encryption).follow(app.closing.clone()));
        }
        let mut worker = tokio::spawn(work(app.clone(), identity.clone(), options));
        let graceful = GracefulShutdown::new();
        let connections = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let mut worked = None;
        loop {
            let accepted = async {
                let slot = Arc::clone(&connections).acquire_owned().await;
                (slot, listener.accept().await)
            };
            let (slot, accepted) = tokio::select! {
                accepted = accepted => accepted,
                () = stop.after_step.cancelled() => break,
                () = stop.at_once.cancelled() => break,
                ended = &mut worker, if worked.is_none() => {
                    worked = Some(ended);
                    break;
                }
            };
            let (stream, peer) = match accepted {
                Ok((stream, peer)) => (stream, Peer(peer.ip())),
                Err(error) => {
                    // Too many open files, for instance: it passes when connections end.
                    let (kind, code) = (error.kind(), error.raw_os_error());
                    tracing::warn!(?kind, code, "a connection could not be accepted");
                    tracing::trace!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            };
            let _ = stream.set_nodelay(true);
            let stream = ImpatientStream::new(stream, WRITE_TIMEOUT);
            let (router, watcher) = (router.clone(), graceful.watcher());
            let (encryption, closing) = (encryption.clone(), app.closing.clone());
            tokio::spawn(async move {
                match encryption {
                    None => serve(stream, router, peer, watcher).await,
                    Some(encryption) => {
                        if let Some(stream) = encryption.accept(stream, &closing).await {
                            serve(stream, router, peer, watcher).await;
                        }
                    }
                }
                drop(slot);
            });
        }
        drop(listener);
        app.closing.cancel();
        app.stop.after_step.cancel();
        if stop.at_once.is_cancelled() {
            app.stop.at_once.cancel();
        }
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, graceful.shutdown()).await;
        let end_runs = async {
            let mut runs = app.runs.lock().await;
            tokio::select! {
                () = stop.at_once.cancelled() => {
                    app.stop.at_once.cancel();
                    runs.shutdown().await;
                }
                () = async { while runs.join_next().await.is_some() {} } => {}
            }
        };
        end_runs.await;
        let worked = match worked {
            Some(worked) => worked,
            None => {
                tokio::select! {
                    worked = &mut worker => worked,
                    () = stop.at_once.cancelled() => {
                        app.stop.at_once.cancel();
                        worker.await
                    }
                }
            }
        };
        worked.map_err(|error| ServiceError::failed(error.to_string()))??;
        Ok(())
    }
}

/// Answers the requests of a connection.
async fn serve<S>(stream: S, router: Router, peer: Peer, watcher: Watcher)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let router = TowerToHyperService::new(router);
    let answer = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(peer);
        router.call(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .serve_connection(TokioIo::new(stream), answer);
    // A client that hangs up is no error of the server.
    let _ = watcher.watch(connection).await;
}

/// Resumes the runs of all tenants that can continue.
async fn work(
    app: Arc<App>,
    identity: Identity,
    options: ServerOptions,
) -> Result<(), ServiceError> {
    if !options.has_worker {
        app.stop.after_step.cancelled().await;
        return Ok(());
    }
    let worker = WorkerOptions {
        jobs: options.jobs,
        stop: app.stop.clone(),
        until_idle: false,
        tenants: WorkerTenants::All,
        watch: Some(app.watch()),
    };
    app.service.work(&identity, worker).await
}
