//! The HTTP transport. Requests are made here, not in `rmcp`, so that answers are bounded and kept
//! complete, tokens come from the [`Authorizer`], and redirects to other hosts are not followed.

mod reading;
mod request_info;
pub(super) mod response;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{BoxStream, StreamExt};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use reqwest::{StatusCode, Url, redirect};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpClientTransportConfig, StreamableHttpError,
    StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};
use tokio::sync::watch;
use tokio::time::timeout;
use tracing::{Instrument as _, debug_span};
use windlass_http::client_builder;
use windlass_spec::server::HttpTransport;
use windlass_spec::{Effect, ErrorCategory};

use super::api::{Authorizer, CallError, Refusal, Secret, ServerError, ServerOptions};
use super::wire::Wire;
use request_info::RequestInfo;
use response::{bounded, challenge_of, describe_error};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const EVENTS: &str = "text/event-stream";
const JSON: &str = "application/json";

/// The most redirects that are followed.
const REDIRECTS: usize = 5;

/// How often a request is sent again with another token: a missing or expired token may be followed by
/// one that lacks a scope.
const REFUSALS: usize = 3;

/// The timeout for connecting.
const UNTIL_CONNECTED: Duration = Duration::from_secs(20);

/// How long a call waits for the event stream of its session to open. A server that does not open it in
/// time is called without it.
const UNTIL_LISTENING: Duration = Duration::from_secs(2);

type Failure = StreamableHttpError<reqwest::Error>;
type Headers = HashMap<HeaderName, HeaderValue>;
type Events = BoxStream<'static, Result<Sse, SseError>>;

/// The HTTP client of a connection.
#[derive(Clone)]
pub(super) struct Client {
    http: reqwest::Client,
    wire: Arc<Wire>,
    authorizer: Option<Arc<dyn Authorizer>>,
    /// The session whose event stream is open or was refused. The server sends its own requests on it.
    listening: watch::Sender<Option<Arc<str>>>,
}

/// The transport to an HTTP server.
pub(super) fn transport(
    settings: &HttpTransport,
    options: &ServerOptions,
    wire: Arc<Wire>,
) -> Result<StreamableHttpClientTransport<Client>, ServerError> {
    let invalid = |message: String| ServerError::new(ErrorCategory::InvalidArguments, message);
    let url = Url::parse(&settings.url)
        .ok()
        .filter(|url| matches!(url.scheme(), "https" | "http") && url.has_host())
        .ok_or_else(|| invalid(format!("`{}` is not an http or https URL", settings.url)))?;
    let mut headers = Headers::new();
    for (name, given) in &settings.headers {
        let value = given
            .value(|name| (options.lookup)(name))
            .map_err(|error| {
                let message = format!("{error} (for the header `{name}`)");
                ServerError::new(ErrorCategory::Authentication, message)
            })?;
        let header = HeaderName::try_from(name.as_str())
            .map_err(|_| invalid(format!("`{name}` is not a valid header name")))?;
        // The value may be a secret, so the error does not contain it.
        let mut value = HeaderValue::try_from(value)
            .map_err(|_| invalid(format!("the value of the header `{name}` cannot be sent")))?;
        value.set_sensitive(true);
        headers.insert(header, value);
    }
    let http = client_builder()
        .redirect(redirect::Policy::custom(follow))
        .connect_timeout(UNTIL_CONNECTED)
        .build()
        .map_err(|error| {
            ServerError::unavailable(format!("cannot create an HTTP client: {error}"))
        })?;
    let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str());
    config.custom_headers = headers;
    config.max_sse_event_size = options.limits.message_bytes;
    let client = Client {
        http,
        wire,
        authorizer: options.authorizer.clone(),
        listening: watch::Sender::new(None),
    };
    Ok(StreamableHttpClientTransport::with_client(client, config))
}

/// Follows a redirect only to the same origin, and only with a status that keeps method and body.
fn follow(attempt: redirect::Attempt<'_>) -> redirect::Action {
    let keeps_body = matches!(
        attempt.status(),
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
    );
    let first = attempt.previous().first();
    let is_same_origin = first.is_some_and(|first| first.origin() == attempt.url().origin());
    match keeps_body && is_same_origin && attempt.previous().len() <= REDIRECTS {
        true => attempt.follow(),
        false => attempt.stop(),
    }
}

impl Client {
    /// Waits until the event stream of the session is open: otherwise requests of the server during a call
    /// may be lost. `rmcp` opens the stream concurrently with other requests.
    async fn until_listening(&self, session: &str) {
        let mut listening = self.listening.subscribe();
        let is_open = listening.wait_for(|open| open.as_deref() == Some(session));
        if timeout(UNTIL_LISTENING, is_open).await.is_err() {
            self.listening.send_replace(Some(session.into()));
        }
    }

    async fn token(
        &self,
        refused: Option<&RefusedRequest>,
        info: &RequestInfo,
    ) -> Result<Option<Secret>, Failure> {
        let Some(authorizer) = &self.authorizer else {
            return Ok(None);
        };
        let refusal = refused.map(|refused| Refusal {
            challenge: &refused.challenge,
            token: refused.token.as_ref(),
        });
        let token = authorizer.token(refusal).await;
        token.map_err(|reason| self.fail(info, ErrorCategory::Authentication, Effect::None, reason))
    }

    /// Records the failure for the pending request or the connection, and returns the error for `rmcp`.
    fn fail(
        &self,
        info: &RequestInfo,
        category: ErrorCategory,
        effect: Effect,
        message: impl Into<String>,
    ) -> Failure {
        let message = message.into();
        if let Some(pending) = &info.pending {
            pending.fail(CallError::new(category, effect, message.clone()));
        } else if info.is_handshake {
            self.wire
                .record_failure(ServerError::new(category, message.clone()));
        }
        StreamableHttpError::UnexpectedServerResponse(message.into())
    }

    async fn post(
        &self,
        uri: &str,
        message: &ClientJsonRpcMessage,
        session: Option<&str>,
        headers: &Headers,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let info = RequestInfo::of(message);
        if let (true, Some(session)) = (info.is_call, session) {
            self.until_listening(session).await;
        }
        if !self.wire.mark_sent(message) {
            return Err(StreamableHttpError::Io(
                std::io::ErrorKind::Interrupted.into(),
            ));
        }
        let body = serde_json::to_vec(message)?;
        let mut refused: Option<RefusedRequest> = None;
        let mut refusals = 0;
        let response = loop {
            let mut request = self
                .http
                .post(uri)
                .header(ACCEPT, format!("{JSON}, {EVENTS}"))
                .header(CONTENT_TYPE, JSON)
                .body(body.clone());
            for (name, value) in headers {
                request = request.header(name, value);
            }
            if let Some(session) = session {
                request = request.header(SESSION, session);
            }
            let token = self.token(refused.as_ref(), &info).await?;
            if let Some(token) = &token {
                request = request.bearer_auth(token.reveal());
            }
            let span = debug_span!(
                "http_request",
                http.request.method = "POST",
                http.response.status_code = tracing::field::Empty,
            );
            let response = match request.send().instrument(span.clone()).await {
                Ok(response) => {
                    span.record("http.response.status_code", response.status().as_u16());
                    response
                }
                Err(error) => return Err(self.no_response(&info, error)),
            };
            match challenge_of(&response) {
                Some(challenge) if self.authorizer.is_some() && refusals < REFUSALS => {
                    refused = Some(RefusedRequest { challenge, token });
                    refusals += 1;
                }
                _ => break response,
            }
        };
        let status = response.status();
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if !status.is_success() {
            return self.refused(&info, response, session.is_some()).await;
        }
        let kind = response
            .headers()
            .get(CONTENT_TYPE)
            .map(HeaderValue::as_bytes);
        let is = |name: &str| kind.is_some_and(|kind| kind.starts_with(name.as_bytes()));
        let is_events = is(EVENTS);
        let is_json = is(JSON);
        let session = response
            .headers()
            .get(SESSION)
            .and_then(|value| value.to_str().ok());
        let session = session.map(str::to_owned);
        match (is_events, is_json) {
            (true, _) => {
                let events = SseStream::from_bytes_stream(bounded(
                    response.bytes_stream(),
                    self.wire.limits.message_bytes,
                ));
                Ok(StreamableHttpPostResponse::Sse(
                    self.filter_events(events.boxed(), Some(info)),
                    session,
                ))
            }
            (_, true) => self.json_body(&info, response, session).await,
            // A response to a notification may be empty.
            _ if info.id.is_none() => Ok(StreamableHttpPostResponse::Accepted),
            _ => {
                let message = "the server's answer is neither JSON nor an event stream";
                Err(self.fail(
                    &info,
                    ErrorCategory::InvalidOutput,
                    Effect::Unknown,
                    message,
                ))
            }
        }
    }

    /// The error for a request without a response.
    fn no_response(&self, info: &RequestInfo, error: reqwest::Error) -> Failure {
        let effect = match error.is_connect() {
            true => Effect::None,
            false => Effect::Unknown,
        };
        if let (Some(pending), Effect::None) = (&info.pending, effect) {
            pending.mark_not_sent();
        }
        let message = format!("the server does not respond: {}", describe_error(&error));
        self.fail(info, ErrorCategory::Unavailable, effect, message)
    }

    /// Opens the event stream of a session.
    async fn events(
        &self,
        uri: &Arc<str>,
        session: Option<&Arc<str>>,
        last_event: Option<String>,
        headers: Headers,
    ) -> Result<Events, Failure> {
        let mut refused: Option<RefusedRequest> = None;
        loop {
            let token = self.token(refused.as_ref(), &RequestInfo::none()).await?;
            let most = self.wire.limits.message_bytes;
            let events = self.http.get_stream_with_max_sse_event_size(
                Arc::clone(uri),
                session.cloned(),
                last_event.clone(),
                token.as_ref().map(|token| token.reveal().to_owned()),
                headers.clone(),
                most,
            );
            match (events.await, &refused) {
                (Ok(events), _) => return Ok(self.filter_events(events, None)),
                (Err(error), None) if self.authorizer.is_some() => match error.auth_challenge() {
                    Some(challenge) => {
                        let challenge = challenge.to_owned();
                        refused = Some(RefusedRequest { challenge, token });
                    }
                    None => return Err(error),
                },
                (Err(error), _) => return Err(error),
            }
        }
    }
}

impl StreamableHttpClient for Client {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        self.post(&uri, &message, session_id.as_deref(), &custom_headers)
            .await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        _auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<(), Failure> {
        let token = self.token(None, &RequestInfo::none()).await?;
        let token = token.map(|token| token.reveal().to_owned());
        self.http
            .delete_session(uri, session_id, token, custom_headers)
            .await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<Events, Failure> {
        let events = self
            .events(&uri, session_id.as_ref(), last_event_id, custom_headers)
            .await;
        // Calls do not wait for a refused stream either.
        self.listening.send_replace(session_id);
        events
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: Headers,
        _max_sse_event_size: usize,
    ) -> Result<Events, Failure> {
        self.get_stream(uri, session_id, last_event_id, auth_header, custom_headers)
            .await
    }
}

/// The refusal of a request, until there is a token that satisfies its challenge.
struct RefusedRequest {
    challenge: String,
    token: Option<Secret>,
}
