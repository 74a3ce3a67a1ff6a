//! Tools that are HTTP requests. The server is fixed in the tool and cannot be changed by
//! an argument or a redirect. Credentials are read from the environment for each request and are
//! never shown.

mod header;
mod template;

use std::sync::OnceLock;
use std::time::Duration;

use reqwest::{Client, ClientBuilder, RequestBuilder, Response, StatusCode, Url, redirect};
use serde_json::{Map, Value};
use tracing::{Instrument as _, debug_span};
use windlass_http::client_builder;
use windlass_spec::{ErrorCategory, Signature, Type};

use crate::error::ToolError;
use crate::output::{redacted, too_large, value};
use crate::tool::CallContext;
use header::Header;
use template::{UrlTemplate, add_to_query};

/// How long a server may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How many redirects are followed, all of them to the same server.
const MAX_REDIRECTS: usize = 5;

/// How many bytes of an error response are kept for the operator.
const MAX_ERROR_BYTES: usize = 2 * 1024;

/// The header with the key of the call, by which a server recognizes a repeated request.
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// The header with the proof of an approval that the server asked for, a signed statement.
const APPROVAL: &str = "windlass-approval";

windlass_spec::word_set! {
    /// A method a tool can use.
    HttpMethod, "HTTP method" {
        /// GET; arguments go into the query.
        Get = "GET",
        /// POST; arguments go into the body.
        Post = "POST",
        /// PUT; arguments go into the body.
        Put = "PUT",
        /// PATCH; arguments go into the body.
        Patch = "PATCH",
        /// DELETE; arguments go into the query.
        Delete = "DELETE",
    }
}

impl HttpMethod {
    /// Whether requests may change something.
    fn has_effect(self) -> bool {
        self != Self::Get
    }

    fn has_body(self) -> bool {
        matches!(self, Self::Post | Self::Put | Self::Patch)
    }
}

impl From<HttpMethod> for reqwest::Method {
    fn from(method: HttpMethod) -> Self {
        match method {
            HttpMethod::Get => Self::GET,
            HttpMethod::Post => Self::POST,
            HttpMethod::Put => Self::PUT,
            HttpMethod::Patch => Self::PATCH,
            HttpMethod::Delete => Self::DELETE,
        }
    }
}

/// Why an endpoint is not valid for a tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HttpProblem {
    /// The template is not a URL.
    #[error("the URL `{url}` cannot be used: {why}")]
    NotAUrl {
        /// The template.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// An argument would choose the server.
    #[error("the host `{host}` must be fixed: an argument must not choose the server")]
    HostNotLiteral {
        /// The host as written.
        host: String,
    },
    /// The server is not one of those allowed.
    #[error("the host `{host}` is not in `allowed_hosts` ({})", allowed.join(", "))]
    HostNotAllowed {
        /// The host of the URL.
        host: String,
        /// The allowed hosts.
        allowed: Vec<String>,
    },
    /// A header that cannot be sent.
    #[error("the header `{name}` cannot be used: {why}")]
    Header {
        /// Its name.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// A placeholder in the URL that is not a parameter of the tool.
    #[error("the URL has a placeholder `{name}`, which is not a parameter of the signature")]
    NoSuchParameter {
        /// The name between the braces.
        name: String,
    },
    /// A placeholder in the path for an optional or structured parameter.
    #[error("`{name}` is part of the URL's path, so it must be required and a single value")]
    NotForAPath {
        /// The name between the braces.
        name: String,
    },
}

/// The endpoint to which a tool sends its requests.
#[derive(Debug, Clone)]
pub struct HttpEndpoint {
    method: HttpMethod,
    url: UrlTemplate,
    headers: Vec<Header>,
    client: OnceLock<Client>,
}

impl HttpEndpoint {
    /// An endpoint at `url`, in which `{name}` is a placeholder for an argument. Arguments without a
    /// placeholder go into the query or the body.
    ///
    /// # Errors
    /// If the template is not a URL, or its host is not one of `allowed_hosts`. Those are names, or
    /// names with a port.
    pub fn new<H: Into<String>>(
        method: HttpMethod,
        url: &str,
        allowed_hosts: impl IntoIterator<Item = H>,
    ) -> Result<Self, HttpProblem> {
        let url = UrlTemplate::parse(url)?;
        let allowed: Vec<String> = allowed_hosts.into_iter().map(Into::into).collect();
        let host = url.example().host_str().unwrap_or_default().to_owned();
        let port = url.example().port_or_known_default().unwrap_or_default();
        let with_port = format!("{host}:{port}");
        let is_host = |allowed: &String| {
            allowed.eq_ignore_ascii_case(&host) || allowed.eq_ignore_ascii_case(&with_port)
        };
        if !allowed.iter().any(is_host) {
            return Err(HttpProblem::HostNotAllowed { host, allowed });
        }
        Ok(Self {
            method,
            url,
            headers: Vec::new(),
            client: OnceLock::new(),
        })
    }

    /// Adds a header. A value `env:NAME`, which may have other words before it, is read
    /// from the environment variable `NAME` for each request.
    ///
    /// # Errors
    /// If it is not a valid header, or one whose value must not be in a file.
    pub fn header(mut self, name: &str, value: &str) -> Result<Self, HttpProblem> {
        self.headers.push(Header::parse(name, value)?);
        Ok(self)
    }

    /// Checks a header as [`header`](Self::header) does.
    pub(crate) fn check_header(name: &str, value: &str) -> Result<(), HttpProblem> {
        Header::parse(name, value).map(|_| ())
    }

    /// All problems of the URL for a tool with this signature.
    #[must_use]
    pub fn misfits(&self, signature: &Signature) -> Vec<HttpProblem> {
        let (in_path, in_query) = self.url.arguments();
        let mut problems: Vec<HttpProblem> = in_path
            .iter()
            .chain(&in_query)
            .filter(|name| signature.parameter(name).is_none())
            .map(|&name| HttpProblem::NoSuchParameter {
                name: name.to_owned(),
            })
            .collect();
        let is_for_a_path = |ty: &Type| {
            matches!(
                ty,
                Type::Text | Type::Integer | Type::Number | Type::Boolean | Type::Enum(_)
            )
        };
        let unfit = in_path.iter().filter(|name| {
            signature.parameter(name).is_some_and(|field| {
                field.presence == windlass_spec::Presence::Optional || !is_for_a_path(&field.ty)
            })
        });
        problems.extend(unfit.map(|&name| HttpProblem::NotForAPath {
            name: name.to_owned(),
        }));
        problems
    }

    /// The URL of its requests, with placeholders for arguments.
    #[must_use]
    pub fn url(&self) -> String {
        self.url.to_string()
    }

    /// The names of the environment variables that its headers take values from.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.headers.iter().filter_map(Header::variable)
    }

    /// The method of its requests.
    pub(crate) const fn method(&self) -> HttpMethod {
        self.method
    }

    /// Sends one request.
    pub(crate) async fn request(
        &self,
        arguments: Value,
        declared: Option<&Type>,
        context: &CallContext,
    ) -> Result<Value, ToolError> {
        let mut arguments = match arguments {
            Value::Object(arguments) => arguments,
            _ => Map::new(),
        };
        let mut url = self.url.expand(&mut arguments)?;
        if !self.method.has_body() {
            add_to_query(&mut url, &arguments);
        }
        let sent_to = url.clone();
        let mut request = self.client()?.request(self.method.into(), url);
        if self.method.has_effect() && !context.key.is_empty() && !self.has_header(IDEMPOTENCY_KEY)
        {
            request = request.header(IDEMPOTENCY_KEY, &context.key);
        }
        let approval = context.approval.as_ref();
        if let Some(statement) = approval.and_then(|approval| approval.signed.as_deref()) {
            request = request.header(APPROVAL, statement);
        }
        let mut secrets = Vec::new();
        for header in &self.headers {
            let (name, value) = header.resolve(&mut secrets)?;
            request = request.header(name, value);
        }
        if self.method.has_body() {
            request = request.json(&Value::Object(arguments));
        }
        let redact_error = |error: ToolError| {
            let message = redacted(error.message().to_owned(), &secrets);
            error.with_message(message)
        };
        let response = send(request, self.host())
            .await
            .map_err(|error| redact_error(self.no_response(error, &sent_to)))?;
        let status = response.status();
        if !status.is_success() {
            return Err(redact_error(self.response_error(status, response).await));
        }
        let body = self
            .body(response, context.max_output_bytes)
            .await
            .map_err(redact_error)?;
        value(&body, declared).map_err(|error| {
            let message = format!("`{}`: {error}", self.host());
            redact_error(error.with_message(message))
        })
    }

    fn host(&self) -> &str {
        self.url.example().host_str().unwrap_or_default()
    }

    /// The client, created for the first request: creating one reads the system's certificates.
    fn client(&self) -> Result<&Client, ToolError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let home = self.url.example().clone();
        let is_local =
            matches!(self.host(), "localhost" | "[::1]") || self.host().starts_with("127.");
        let stay = redirect::Policy::custom(move |attempt| {
            let is_same_server = attempt.url().origin() == home.origin();
            if is_same_server && attempt.previous().len() <= MAX_REDIRECTS {
                attempt.follow()
            } else {
                attempt.stop()
            }
        });
        let builder = client_builder()
            .user_agent(concat!("windlass/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_TIMEOUT)
            .referer(false)
            .redirect(stay);
        let client = client(builder, is_local)?;
        Ok(self.client.get_or_init(|| client))
    }

    fn has_header(&self, name: &str) -> bool {
        let mut headers = self.headers.iter();
        headers.any(|header| header.name().eq_ignore_ascii_case(name))
    }

    /// The error for a request without a response. Only if no connection was made, the request has certainly
    /// not been sent. A redirect is another request, after one that was sent.
    fn no_response(&self, error: reqwest::Error, sent_to: &Url) -> ToolError {
        let is_first = error.url().is_none_or(|url| url == sent_to);
        let was_never_sent = error.is_builder() || error.is_connect() && is_first;
        let message = format!(
            "`{}` does not answer: {}",
            self.host(),
            causes(&error.without_url())
        );
        let error = ToolError::foreign(ErrorCategory::Unavailable, message);
        match was_never_sent {
            true => error.without_effect(),
            false => error.interrupted(),
        }
    }

    /// The error for a response without success.
    async fn response_error(&self, status: StatusCode, response: Response) -> ToolError {
        let retry_after = retry_after(&response);
        let redirected = response
            .headers()
            .get(reqwest::header::LOCATION)
            .and_then(|location| Some(location.to_str().ok()?.to_owned()))
            .filter(|_| status.is_redirection())
            .and_then(|location| response.url().join(&location).ok());
        let description = match redirected {
            Some(elsewhere) => format!(
                "redirects to `{}`, which is not followed: another server, or too many redirects",
                without_credentials(elsewhere)
            ),
            None => {
                let body = beginning(response).await;
                format!(
                    "answers {status}; its response begins with: {}",
                    body.trim()
                )
            }
        };
        let message = format!("`{}` {description}", self.host());
        let mut error = ToolError::foreign(category(status), message);
        if let Some(seconds) = retry_after {
            error = error.retry_after(seconds);
        }
        match status.as_u16() {
            // The server refused the request without an effect.
            401 | 403 | 404 | 405 | 410 | 429 => error.without_effect(),
            // A gateway has lost the server that works on the request.
            502 | 504 => error.interrupted(),
            _ => error,
        }
    }

    async fn body(&self, mut response: Response, max_bytes: usize) -> Result<Vec<u8>, ToolError> {
        let mut body = Vec::new();
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) if body.len() + chunk.len() > max_bytes => {
                    return Err(too_large(max_bytes));
                }
                Ok(Some(chunk)) => body.extend(chunk),
                Ok(None) => return Ok(body),
                Err(error) => {
                    let why = causes(&error.without_url());
                    let message =
                        format!("the response of `{}` was interrupted: {why}", self.host());
                    let error = ToolError::foreign(ErrorCategory::Unavailable, message);
                    return Err(error.interrupted());
                }
            }
        }
    }
}

/// Sends a request, in a span that records only the host and the status.
pub(crate) async fn send(request: RequestBuilder, host: &str) -> reqwest::Result<Response> {
    let span = debug_span!(
        "http_request",
        server.address = host,
        http.response.status_code = tracing::field::Empty,
    );
    let response = request.send().instrument(span.clone()).await?;
    span.record("http.response.status_code", response.status().as_u16());
    Ok(response)
}

pub(crate) fn category(status: StatusCode) -> ErrorCategory {
    match status.as_u16() {
        400 | 422 => ErrorCategory::InvalidArguments,
        401 | 407 => ErrorCategory::Authentication,
        403 => ErrorCategory::PermissionDenied,
        404 | 410 => ErrorCategory::NotFound,
        429 => ErrorCategory::RateLimited,
        408 | 500..=599 => ErrorCategory::Unavailable,
        _ => ErrorCategory::ToolFailure,
    }
}

/// How many seconds the server asks to wait before the next request: a number, or a date.
fn retry_after(response: &Response) -> Option<u64> {
    let text = response
        .headers()
        .get(reqwest::header::RETRY_AFTER)?
        .to_str()
        .ok()?
        .trim();
    if let Ok(seconds) = text.parse() {
        return Some(seconds);
    }
    let date = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
    let left = date.duration_since(jiff::Timestamp::now()).as_secs();
    u64::try_from(left).ok()
}

async fn beginning(mut response: Response) -> String {
    let mut body = Vec::new();
    while body.len() < MAX_ERROR_BYTES {
        match response.chunk().await {
            Ok(Some(chunk)) => body.extend(chunk),
            Ok(None) | Err(_) => break,
        }
    }
    body.truncate(MAX_ERROR_BYTES);
    String::from_utf8_lossy(&body).into_owned()
}

/// An untrusted URL without the parts that may contain credentials.
fn without_credentials(mut url: Url) -> String {
    url.set_query(None);
    url.set_fragment(None);
    // Neither can fail for a URL that has a host; one that has none has neither.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.to_string()
}

/// A client for a server, which may be on this machine.
pub(crate) fn client(builder: ClientBuilder, is_local: bool) -> Result<Client, ToolError> {
    // Requests to this machine must not go through a proxy.
    let builder = match is_local {
        true => builder.no_proxy(),
        false => builder,
    };
    builder.build().map_err(|error| {
        let message = format!("cannot create an HTTP client: {}", causes(&error));
        ToolError::foreign(ErrorCategory::Internal, message).without_effect()
    })
}

/// The message of an error, followed by those of its causes.
pub(crate) fn causes(error: &dyn std::error::Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        message = format!("{message}: {error}");
        cause = error.source();
    }
    message
}
