//! One request that reaches only hosts that the operator allows. Host and port are checked at
//! every redirect. Names are resolved here, and the client connects only to the public addresses that were
//! checked. No proxy is used, because it would resolve names itself.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, LOCATION};
use reqwest::{Client, Response, StatusCode, Url, redirect};
use windlass_http::client_builder;
use windlass_spec::ErrorCategory;

use super::address::is_public;
use super::decode::{self, Content};
use super::hosts::{HostPattern, UrlHost, host_of};
use crate::builtin::settings::HttpSettings;
use crate::builtin::{invalid, refused};
use crate::error::ToolError;
use crate::http::{category, causes, send};

/// How many redirects are followed.
const MAX_REDIRECTS: usize = 5;

/// How long a server may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The maximum length of a URL in bytes.
const MAX_URL_BYTES: usize = 8 * 1024;

/// The user agent of requests.
pub(super) const USER_AGENT: &str = concat!("windlass/", env!("CARGO_PKG_VERSION"));

/// A successful response.
#[derive(Debug)]
pub(super) struct Page {
    /// The URL after redirects.
    pub(super) url: Url,
    /// The header `Content-Type`.
    pub(super) content_type: String,
    body: Vec<u8>,
}

impl Page {
    /// The body as text, if it is text.
    pub(super) fn text(&self) -> Result<String, ToolError> {
        decode::text(&self.body, &self.content_type)
            .map_err(|why| ToolError::new(format!("`{}` {why}", shown(&self.url))).without_effect())
    }

    pub(super) fn is_html(&self) -> bool {
        Content::of(&self.content_type) == Content::Html
    }
}

/// Sends requests to allowed hosts.
#[derive(Debug)]
pub(super) struct Fetcher {
    settings: HttpSettings,
    resolver: PublicResolver,
    client: OnceLock<Client>,
}

impl Fetcher {
    pub(super) fn new(settings: HttpSettings) -> Self {
        Self::with_resolver(settings, PublicResolver::system())
    }

    fn with_resolver(settings: HttpSettings, resolver: PublicResolver) -> Self {
        Self {
            settings,
            resolver,
            client: OnceLock::new(),
        }
    }

    /// Fetches `url`, within the limits on time and size.
    pub(super) async fn fetch(&self, url: &str) -> Result<Page, ToolError> {
        let url = parse(url)?;
        let timeout = self.settings.timeout();
        match tokio::time::timeout(timeout, self.follow(url)).await {
            Ok(page) => page,
            Err(_) => {
                let message = format!("the server took longer than {} s", timeout.as_secs());
                Err(ToolError::of(ErrorCategory::Timeout, message))
            }
        }
    }

    /// Checks that this URL may be requested. Names are checked later, when they are resolved.
    pub(super) fn check(&self, url: &Url) -> Result<(), ToolError> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(refused(format!(
                "`{}:` URLs are not supported; use http or https",
                url.scheme()
            )));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refused("a URL must not contain a user name or password"));
        }
        let host = host_of(url).ok_or_else(|| invalid("the URL has no host"))?;
        let hosts = self.settings.hosts();
        let mut covering = hosts
            .iter()
            .filter(|pattern| pattern.covers(url))
            .peekable();
        if covering.peek().is_none() {
            return Err(refused(format!(
                "the host of `{}` is not allowed (`[http] hosts` in windlass.toml)",
                shown(url)
            )));
        }
        // Names are checked when they are resolved.
        let UrlHost::Address(address) = host else {
            return Ok(());
        };
        let is_listed = covering.any(HostPattern::is_address);
        if is_public(address) || (is_listed && self.settings.allows_private()) {
            return Ok(());
        }
        Err(refused(format!(
            "`{}` is a private address, which is allowed only if it is listed in `[http] hosts` and `allow_private` is set",
            shown(url)
        )))
    }

    async fn follow(&self, mut url: Url) -> Result<Page, ToolError> {
        for _ in 0..=MAX_REDIRECTS {
            url.set_fragment(None);
            self.check(&url)?;
            let request = self.client()?.get(url.clone());
            let request = request.header(
                ACCEPT,
                "text/html, application/json;q=0.9, text/*;q=0.8, */*;q=0.5",
            );
            let response = send(request, url.host_str().unwrap_or_default())
                .await
                .map_err(|error| not_sent(&url, error))?;
            match redirection(&response, &url)? {
                Some(next) => url = next,
                None => return self.page(url, response).await,
            }
        }
        let message = format!("more than {MAX_REDIRECTS} redirects");
        Err(ToolError::new(message).without_effect())
    }

    async fn page(&self, url: Url, mut response: Response) -> Result<Page, ToolError> {
        let status = response.status();
        if !status.is_success() {
            return Err(status_error(&url, status));
        }
        let of_header = |name| {
            let value = response.headers().get(name)?;
            Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        if let Some(encoding) = of_header(CONTENT_ENCODING)
            && !encoding.eq_ignore_ascii_case("identity")
        {
            let message = "the server sent compressed data, although the request did not allow it";
            return Err(ToolError::new(message).without_effect());
        }
        let content_type = of_header(CONTENT_TYPE).unwrap_or_default();
        let max_bytes = self.settings.max_bytes();
        let too_large = || {
            let message = format!("`{}` is larger than {max_bytes} bytes", shown(&url));
            ToolError::new(message).without_effect()
        };
        let announced = response.content_length().unwrap_or_default();
        if usize::try_from(announced).map_or(true, |announced| announced > max_bytes) {
            return Err(too_large());
        }
        let mut body = Vec::new();
        while let Some(part) = response
            .chunk()
            .await
            .map_err(|error| not_sent(&url, error))?
        {
            if body.len() + part.len() > max_bytes {
                return Err(too_large());
            }
            body.extend_from_slice(&part);
        }
        Ok(Page {
            url,
            content_type,
            body,
        })
    }

    /// The client, created for the first request: creating one reads the system's certificates.
    fn client(&self) -> Result<&Client, ToolError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let client = client_builder()
            .user_agent(USER_AGENT)
            .connect_timeout(CONNECT_TIMEOUT)
            .referer(false)
            .no_proxy()
            .redirect(redirect::Policy::none())
            .dns_resolver(Arc::new(self.resolver.clone()))
            .build()
            .map_err(|error| {
                let message = format!("cannot create an HTTP client: {}", causes(&error));
                ToolError::foreign(ErrorCategory::Internal, message).without_effect()
            })?;
        Ok(self.client.get_or_init(|| client))
    }
}

/// Whether the host of the URL is a private address.
pub(super) fn is_private(url: &Url) -> bool {
    matches!(host_of(url), Some(UrlHost::Address(address)) if !is_public(address))
}

fn parse(url: &str) -> Result<Url, ToolError> {
    if url.len() > MAX_URL_BYTES {
        return Err(invalid(format!(
            "the URL has {} bytes; the limit is {MAX_URL_BYTES} bytes",
            url.len()
        )));
    }
    Url::parse(url.trim()).map_err(|error| {
        let shown: String = url.chars().take(100).collect();
        invalid(format!(
            "{shown:?} is not a URL ({error}); write a full URL, such as `https://example.org/page`"
        ))
    })
}

/// The target of a redirect response.
fn redirection(response: &Response, url: &Url) -> Result<Option<Url>, ToolError> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let Some(location) = response.headers().get(LOCATION) else {
        return Ok(None);
    };
    let next = location
        .to_str()
        .ok()
        .and_then(|location| url.join(location).ok());
    let next = next.ok_or_else(|| {
        let message = format!("`{}` redirects to an invalid URL", shown(url));
        ToolError::new(message).without_effect()
    })?;
    Ok(Some(next))
}

fn status_error(url: &Url, status: StatusCode) -> ToolError {
    let message = format!("`{}` answers {}", shown(url), status.as_u16());
    // The caller cannot fix these: the only argument is the URL.
    let category = match category(status) {
        ErrorCategory::InvalidArguments | ErrorCategory::Authentication => {
            ErrorCategory::ToolFailure
        }
        category => category,
    };
    ToolError::of(category, message).without_effect()
}

fn not_sent(url: &Url, error: reqwest::Error) -> ToolError {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&error);
    while let Some(inner) = cause {
        if inner.is::<NotPublic>() {
            return refused(format!(
                "`{}` resolves to a private address, which is not allowed",
                shown(url)
            ));
        }
        cause = inner.source();
    }
    let why = causes(&error.without_url());
    let message = format!("`{}` does not answer: {why}", shown(url));
    ToolError::foreign(ErrorCategory::Unavailable, message).without_effect()
}

/// A URL for messages: server and path, without the query, which may contain a key.
pub(super) fn shown(url: &Url) -> String {
    const SHOWN: usize = 200;
    let host = url.host_str().unwrap_or_default();
    let port = url
        .port()
        .map(|port| format!(":{port}"))
        .unwrap_or_default();
    let whole = format!("{}://{host}{port}{}", url.scheme(), url.path());
    whole.chars().take(SHOWN).collect()
}

type LookupFuture = BoxFuture<'static, io::Result<Vec<IpAddr>>>;

/// Resolves names to public addresses only. The client connects only to these addresses,
/// so a name cannot resolve to one address for the check and to another for the request.
#[derive(Clone)]
struct PublicResolver {
    lookup: Arc<dyn Fn(String) -> LookupFuture + Send + Sync>,
    is_public: fn(IpAddr) -> bool,
}

impl PublicResolver {
    fn system() -> Self {
        Self {
            lookup: Arc::new(|name| {
                Box::pin(async move {
                    let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
                    Ok(found.map(|address| address.ip()).collect())
                })
            }),
            is_public,
        }
    }
}

impl fmt::Debug for PublicResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PublicResolver")
    }
}

impl Resolve for PublicResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let Self { lookup, is_public } = self.clone();
        Box::pin(async move {
            let found = lookup(name.as_str().to_owned()).await?;
            let public: Vec<SocketAddr> = found
                .iter()
                .filter(|&&address| is_public(address))
                .map(|&address| SocketAddr::new(address, 0))
                .collect();
            if public.is_empty() && !found.is_empty() {
                return Err(NotPublic.into());
            }
            let addresses: Addrs = Box::new(public.into_iter());
            Ok(addresses)
        })
    }
}

/// A name has addresses, and none of them is public.
#[derive(Debug, thiserror::Error)]
#[error("the name has no public address")]
struct NotPublic;

#[cfg(test)]
mod tests;
