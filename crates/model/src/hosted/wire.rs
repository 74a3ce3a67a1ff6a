//! HTTP: sends requests and reads what comes back, within limits. All models of a process share their
//! connections.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{
    CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION,
};
use reqwest::{Client, Response, Url};
use tokio::time::timeout;
use tracing::{Instrument as _, debug_span};
use windlass_core::model::ModelErrorKind;
use windlass_http::client_builder;

use super::HostedSettings;
use super::endpoint::{Endpoint, is_local};
use super::failure::{Failure, retry_after};
use super::limits::ExceededLimit;
use super::protocol::EventError;
use crate::client::ModelError;
use crate::scrub::Secret;

/// How long the end of a stream is waited for after the end of the answer. A connection can be used again
/// only if its stream has ended.
const LONGEST_END: Duration = Duration::from_millis(20);

/// A connection to one provider.
pub(super) struct Wire {
    client: Client,
    endpoint: Arc<Endpoint>,
    url: Url,
    headers: HeaderMap,
}

impl Wire {
    pub(super) fn new(endpoint: Arc<Endpoint>) -> Result<Self, ModelError> {
        let format = endpoint.protocol.format();
        let unusable = |what: &str| {
            let message = format!(
                "{what} of {} cannot be sent. Check it for characters that do not belong there.",
                endpoint.provider
            );
            ModelError::new(ModelErrorKind::Unreachable, message)
        };
        let url = endpoint
            .url(&format.path(&endpoint.model))
            .ok_or_else(|| unusable("The model name"))?;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let key = endpoint.key.as_ref().map(Secret::expose);
        for (name, value) in format.headers(key) {
            let mut value = HeaderValue::from_str(&value).map_err(|_| unusable("The key"))?;
            value.set_sensitive(true);
            headers.insert(HeaderName::from_static(name), value);
        }
        Ok(Self {
            client: shared_client(&endpoint.base_url)?,
            endpoint,
            url,
            headers,
        })
    }

    /// Sends a request. The response may be an error.
    pub(super) async fn send(&self, body: Bytes) -> Result<Response, Failure> {
        let request = self
            .client
            .post(self.url.clone())
            .headers(self.headers.clone())
            .body(body);
        let response = request
            .send()
            .instrument(debug_span!(
                "http_request",
                http.request.method = "POST",
                server.address = self.endpoint.base_url.host_str(),
                gen_ai.request.model = self.endpoint.model.as_str(),
            ))
            .await
            .map_err(|error| self.transport(&error))?;
        let encoding = response.headers().get(CONTENT_ENCODING);
        if encoding.is_some_and(|encoding| encoding != "identity") {
            return Err(ExceededLimit::Compressed.into());
        }
        Ok(response)
    }

    /// The failure for a response with an error status.
    pub(super) async fn refusal(
        &self,
        mut response: Response,
        settings: &HostedSettings,
    ) -> Failure {
        let status = response.status();
        let limit = settings.limits.error_bytes;
        let mut body = Vec::new();
        let mut is_cut = false;
        let read = async {
            while let Ok(Some(piece)) = response.chunk().await {
                let room = limit - body.len();
                body.extend_from_slice(&piece[..piece.len().min(room)]);
                if piece.len() > room {
                    is_cut = true;
                    return;
                }
            }
        };
        // What has arrived until then is better than nothing.
        let _ = timeout(settings.idle_limit, read).await;
        let headers = response.headers();
        let header = |name: &str| headers.get(name)?.to_str().ok().map(str::to_owned);
        let body = String::from_utf8_lossy(&body);
        let mut failure =
            Failure::from_status(&self.endpoint, status.as_u16(), &body, retry_after(header));
        if let Some(target) = headers.get(LOCATION).filter(|_| status.is_redirection()) {
            let target = target.to_str().ok().and_then(|to| self.url.join(to).ok());
            let place = target.map(|url| url.origin().ascii_serialization());
            let advice = format!(
                " It redirects to `{}`; set the base URL to the final address.",
                place.as_deref().unwrap_or("another place")
            );
            failure.error.message.push_str(&advice);
        }
        if is_cut {
            let exceeded = ExceededLimit::ErrorBytes(limit);
            failure.error.message.push_str(&format!(" {exceeded}"));
            failure.error.exceeded = Some(exceeded);
        }
        failure
    }

    /// The failure for an event that cannot be read.
    pub(super) fn event_failure(&self, error: EventError, data: &[u8]) -> Failure {
        match error {
            EventError::Exceeded(limit) => limit.into(),
            EventError::NotJson => self.unexpected(),
            EventError::Refused => {
                Failure::from_event(&self.endpoint, &String::from_utf8_lossy(data))
            }
            EventError::Blocked(reason) => {
                let message = format!(
                    "{} did not accept the request ({reason}). Change what is asked.",
                    self.endpoint.provider
                );
                Failure::permanent(ModelErrorKind::Malformed, message)
            }
        }
    }

    /// The failure for a stream that ended before the answer did.
    pub(super) fn connection_lost(&self) -> Failure {
        let message = format!(
            "The connection to {} was lost before the answer was complete. Try again; if it happens \
             again, check whether the server at {} still runs.",
            self.endpoint.provider,
            self.endpoint.shown_url()
        );
        Failure::permanent(ModelErrorKind::Malformed, message)
    }

    /// The failure for a response that is not a stream of events.
    pub(super) fn unexpected(&self) -> Failure {
        let message = format!(
            "{} at {} sent an unexpected response. Check that the address is that of a model server.",
            self.endpoint.provider,
            self.endpoint.shown_url()
        );
        Failure::permanent(ModelErrorKind::Malformed, message)
    }

    /// Converts an error of the HTTP library. Its text is never used, because it may contain the address.
    pub(super) fn transport(&self, error: &reqwest::Error) -> Failure {
        let (provider, url) = (&self.endpoint.provider, self.endpoint.shown_url());
        if let Some(error) = http_error(error).filter(|error| error.is_parse()) {
            // Clients have no other way to tell.
            return match error.to_string().contains("head is too large") {
                true => ExceededLimit::Headers.into(),
                false => self.unexpected(),
            };
        }
        if error.is_timeout() {
            return Failure::permanent(
                ModelErrorKind::Timeout,
                format!("{provider} did not answer in time."),
            );
        }
        if error.is_body() || error.is_decode() {
            return self.connection_lost();
        }
        let message = format!(
            "{provider} could not be reached at {url}: {}. Check that the server is running.",
            root_cause(error)
        );
        if error.is_builder() {
            return Failure::permanent(ModelErrorKind::Unreachable, message);
        }
        Failure::transient(ModelErrorKind::Unreachable, message)
    }
}

/// Waits for the end of a stream after the end of its answer, so that the connection can be used again.
pub(super) async fn end_stream(mut response: Response) {
    let end = async { while let Ok(Some(_)) = response.chunk().await {} };
    let _ = timeout(LONGEST_END, end).await;
    // Lets the connection go back to the others before the next request looks for one.
    tokio::task::yield_now().await;
}

/// The client for an address. Addresses of the same kind share one, with its connections.
pub(crate) fn shared_client(url: &Url) -> Result<Client, ModelError> {
    static PLAIN: OnceLock<Client> = OnceLock::new();
    static LOCAL: OnceLock<Client> = OnceLock::new();
    static REMOTE: OnceLock<Client> = OnceLock::new();
    let builder = client_builder()
        // A redirect could send the request, and on the same host the key, to an unexpected place.
        .redirect(reqwest::redirect::Policy::none())
        // The real size of a compressed body is not known before it is read.
        .no_gzip()
        .no_brotli()
        .no_deflate()
        .no_zstd();
    let (shared, builder) = match (is_local(url), url.scheme()) {
        // Without the certificates of the system, which take milliseconds and megabytes to read.
        (true, "http") => (&PLAIN, builder.no_proxy().tls_certs_only([])),
        (true, _) => (&LOCAL, builder.no_proxy()),
        (false, _) => (&REMOTE, builder),
    };
    if let Some(client) = shared.get() {
        return Ok(client.clone());
    }
    let client = builder.build().map_err(|error| {
        let message = format!(
            "The HTTP client could not be created: {}.",
            root_cause(&error)
        );
        ModelError::new(ModelErrorKind::Unreachable, message)
    })?;
    Ok(shared.get_or_init(|| client).clone())
}

/// The error of the HTTP protocol among the causes.
fn http_error(error: &reqwest::Error) -> Option<&hyper::Error> {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        cause = error.source();
    }
    None
}

/// The innermost cause, which is the most specific and does not contain the address.
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
