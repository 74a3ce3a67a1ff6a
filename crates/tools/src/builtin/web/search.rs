//! Web search with a `SearxNG` server that the operator runs or trusts. The results are untrusted:
//! they are shortened, control characters are removed, and only links to web pages are kept.

use std::sync::OnceLock;
use std::time::Duration;

use reqwest::{Client, StatusCode, Url, redirect};
use serde::{Deserialize, Serialize};
use windlass_http::client_builder;
use windlass_spec::ErrorCategory;
use windlass_spec::text::{TextUse, strip};

use super::fetch::{USER_AGENT, shown};
use crate::builtin::invalid;
use crate::builtin::settings::WebSearchSettings;
use crate::error::ToolError;
use crate::http::{category, causes, client, send};

/// How much a server may send for one search.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// The time limit of a search. The server queries other servers.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The maximum length of a query in characters.
const MAX_QUERY_CHARACTERS: usize = 1000;

#[derive(Deserialize)]
pub(super) struct Arguments {
    query: String,
    #[serde(default = "default_max_results")]
    max_results: i64,
}

fn default_max_results() -> i64 {
    5
}

#[derive(Debug, Serialize)]
pub(super) struct SearchHit {
    title: String,
    url: String,
    snippet: String,
}

/// The used part of the server's response.
#[derive(Deserialize)]
struct SearchResponse {
    results: Vec<SearchResult>,
}

#[derive(Deserialize)]
struct SearchResult {
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    url: Option<String>,
    #[serde(default)]
    content: Option<String>,
}

/// A client of a search server.
#[derive(Debug)]
pub(super) struct Search {
    settings: WebSearchSettings,
    client: OnceLock<Client>,
}

impl Search {
    pub(super) fn new(settings: WebSearchSettings) -> Self {
        Self {
            settings,
            client: OnceLock::new(),
        }
    }

    pub(super) async fn run(&self, arguments: &Arguments) -> Result<Vec<SearchHit>, ToolError> {
        let query = arguments.query.trim();
        if query.is_empty() {
            return Err(invalid("the query is empty; write what to search for"));
        }
        if query.chars().count() > MAX_QUERY_CHARACTERS {
            return Err(invalid(format!(
                "the query has more than {MAX_QUERY_CHARACTERS} characters; shorten it"
            )));
        }
        let wanted = usize::try_from(arguments.max_results)
            .ok()
            .filter(|&wanted| wanted > 0);
        let wanted = wanted.ok_or_else(|| {
            invalid(format!(
                "`max_results` is {}; it must be 1 or more",
                arguments.max_results
            ))
        })?;
        let body = self.request(query).await?;
        let response: SearchResponse = serde_json::from_slice(&body).map_err(|error| {
            let server = shown(self.settings.url());
            let message = format!(
                "`{server}` does not answer like SearxNG ({error}); add `json` to `search.formats` in its settings.yml"
            );
            ToolError::foreign(ErrorCategory::InvalidOutput, message).without_effect()
        })?;
        let count = wanted.min(self.settings.max_results());
        Ok(response
            .results
            .into_iter()
            .filter_map(hit)
            .take(count)
            .collect())
    }

    async fn request(&self, query: &str) -> Result<Vec<u8>, ToolError> {
        let server = shown(self.settings.url());
        let unreachable = |error: reqwest::Error| {
            let category = if error.is_timeout() {
                ErrorCategory::Timeout
            } else {
                ErrorCategory::Unavailable
            };
            let message = format!(
                "`{server}` does not answer: {}",
                causes(&error.without_url())
            );
            ToolError::foreign(category, message).without_effect()
        };
        let request = self.client()?.get(self.url(query));
        let mut response = send(request, &server).await.map_err(unreachable)?;
        let status = response.status();
        if !status.is_success() {
            return Err(status_error(&server, status));
        }
        let mut body = Vec::new();
        while let Some(part) = response.chunk().await.map_err(unreachable)? {
            if body.len() + part.len() > MAX_BYTES {
                let message = format!("`{server}` sent more than {MAX_BYTES} bytes");
                return Err(
                    ToolError::foreign(ErrorCategory::InvalidOutput, message).without_effect()
                );
            }
            body.extend_from_slice(&part);
        }
        Ok(body)
    }

    fn url(&self, query: &str) -> Url {
        let mut url = self.settings.url().clone();
        let kept: Vec<(String, String)> = url
            .query_pairs()
            .filter(|(name, _)| !matches!(name.as_ref(), "q" | "format"))
            .map(|(name, value)| (name.into_owned(), value.into_owned()))
            .collect();
        url.query_pairs_mut()
            .clear()
            .extend_pairs(kept)
            .append_pair("q", query)
            .append_pair("format", "json");
        url
    }

    fn client(&self) -> Result<&Client, ToolError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let host = self.settings.url().host_str().unwrap_or_default();
        let is_local = matches!(host, "localhost" | "[::1]") || host.starts_with("127.");
        let builder = client_builder()
            .user_agent(USER_AGENT)
            .timeout(TIMEOUT)
            .referer(false)
            // The operator trusts this server, not the targets of its redirects.
            .redirect(redirect::Policy::none());
        let client = client(builder, is_local)?;
        Ok(self.client.get_or_init(|| client))
    }
}

/// The error for a response without success.
fn status_error(server: &str, status: StatusCode) -> ToolError {
    let code = status.as_u16();
    let (category, help) = match code {
        403 => (
            ErrorCategory::PermissionDenied,
            "; add `json` to `search.formats` in its settings.yml, or allow requests from this machine",
        ),
        300..=399 => (
            ErrorCategory::ToolFailure,
            "; it redirects the request, so write the address of its search page into `[search] endpoint`",
        ),
        404 => (
            ErrorCategory::Unavailable,
            "; the address of the search page usually ends in `/search`",
        ),
        _ => (category(status), ""),
    };
    ToolError::foreign(category, format!("`{server}` answers {code}{help}")).without_effect()
}

/// A usable result, shortened.
fn hit(found: SearchResult) -> Option<SearchHit> {
    const TITLE: usize = 300;
    const SNIPPET: usize = 1000;
    let url = Url::parse(found.url?.trim()).ok()?;
    if !matches!(url.scheme(), "http" | "https") {
        return None;
    }
    let title = found.title.map(|title| plain(&title, TITLE));
    let title = title.filter(|title| !title.is_empty());
    Some(SearchHit {
        title: title.unwrap_or_else(|| shown(&url)),
        url: url.to_string(),
        snippet: plain(&found.content.unwrap_or_default(), SNIPPET),
    })
}

/// Text on one line, without hidden characters, shortened to this many characters.
fn plain(text: &str, characters: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    strip(&line, TextUse::Model)
        .chars()
        .take(characters)
        .collect()
}
