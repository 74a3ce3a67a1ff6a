//! Searching the web by a `SearxNG` server that the operator runs or trusts. What comes back is foreign:
//! it is cut to size and freed of control characters, and only links to web pages are kept.

use std::sync::OnceLock;
use std::time::Duration;

use reqwest::{Client, StatusCode, Url, redirect};
use serde::{Deserialize, Serialize};
use windlass_spec::ErrorCategory;
use windlass_spec::text::{TextUse, strip};

use super::fetch::{USER_AGENT, shown};
use crate::builtin::invalid;
use crate::builtin::settings::SearchSettings;
use crate::error::ToolError;
use crate::http::{category, causes, client, send};

/// How much a server may send for one search.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// How long a search may take: the server asks others.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The longest query, in characters.
const LONGEST_QUERY: usize = 1000;

#[derive(Deserialize)]
pub(super) struct Arguments {
    query: String,
    #[serde(default = "five")]
    max_results: i64,
}

fn five() -> i64 {
    5
}

#[derive(Debug, Serialize)]
pub(super) struct Hit {
    title: String,
    url: String,
    snippet: String,
}

/// What the server sends, as far as it is used.
#[derive(Deserialize)]
struct Answer {
    results: Vec<Found>,
}

#[derive(Deserialize)]
struct Found {
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    url: Option<String>,
    #[serde(default)]
    content: Option<String>,
}

/// A server that searches.
#[derive(Debug)]
pub(super) struct Search {
    settings: SearchSettings,
    client: OnceLock<Client>,
}

impl Search {
    pub(super) fn new(settings: SearchSettings) -> Self {
        Self {
            settings,
            client: OnceLock::new(),
        }
    }

    pub(super) async fn run(&self, asked: &Arguments) -> Result<Vec<Hit>, ToolError> {
        let query = asked.query.trim();
        if query.is_empty() {
            return Err(invalid("the query is empty; say what to search for"));
        }
        if query.chars().count() > LONGEST_QUERY {
            return Err(invalid(format!(
                "the query has more than {LONGEST_QUERY} characters; say it shorter"
            )));
        }
        let wanted = usize::try_from(asked.max_results)
            .ok()
            .filter(|&wanted| wanted > 0);
        let wanted = wanted.ok_or_else(|| {
            invalid(format!(
                "`max_results` is {}; it must be 1 or more",
                asked.max_results
            ))
        })?;
        let body = self.ask(query).await?;
        let answer: Answer = serde_json::from_slice(&body).map_err(|error| {
            let server = shown(self.settings.url());
            let message = format!(
                "`{server}` does not answer as SearxNG does ({error}); is `json` among `search.formats` in its settings.yml?"
            );
            ToolError::foreign(ErrorCategory::InvalidOutput, message).without_effect()
        })?;
        let most = wanted.min(self.settings.max_results());
        Ok(answer
            .results
            .into_iter()
            .filter_map(hit)
            .take(most)
            .collect())
    }

    async fn ask(&self, query: &str) -> Result<Vec<u8>, ToolError> {
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
            return Err(refusal(&server, status));
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
        let builder = Client::builder()
            .user_agent(USER_AGENT)
            .timeout(TIMEOUT)
            .referer(false)
            // The operator vouches for this server, not for where it may send the question.
            .redirect(redirect::Policy::none());
        let client = client(builder, is_local)?;
        Ok(self.client.get_or_init(|| client))
    }
}

/// The error that an answer other than success stands for.
fn refusal(server: &str, status: StatusCode) -> ToolError {
    let code = status.as_u16();
    let (category, help) = match code {
        403 => (
            ErrorCategory::PermissionDenied,
            "; add `json` to `search.formats` in its settings.yml, or let this machine ask",
        ),
        300..=399 => (
            ErrorCategory::ToolFailure,
            "; it sends the request elsewhere, so write the address of its search page into `[search] endpoint`",
        ),
        404 => (
            ErrorCategory::Unavailable,
            "; the address of the search page usually ends in `/search`",
        ),
        _ => (category(status), ""),
    };
    ToolError::foreign(category, format!("`{server}` answers {code}{help}")).without_effect()
}

/// A result worth telling.
fn hit(found: Found) -> Option<Hit> {
    const TITLE: usize = 300;
    const SNIPPET: usize = 1000;
    let url = Url::parse(found.url?.trim()).ok()?;
    if !matches!(url.scheme(), "http" | "https") {
        return None;
    }
    let title = found.title.map(|title| plain(&title, TITLE));
    let title = title.filter(|title| !title.is_empty());
    Some(Hit {
        title: title.unwrap_or_else(|| shown(&url)),
        url: url.to_string(),
        snippet: plain(&found.content.unwrap_or_default(), SNIPPET),
    })
}

/// Text on one line, without hidden characters, at most so many characters of it.
fn plain(text: &str, characters: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    strip(&line, TextUse::Model)
        .chars()
        .take(characters)
        .collect()
}
