//! The web tools: one request, a search, a page as text, a browser. `hosts` and `address` decide which
//! hosts may be called. All requests on behalf of a model go through
//! `fetch`, which checks them at every step.

mod address;
mod crawl;
mod decode;
mod entity;
mod fetch;
mod hosts;
mod html;
mod robots;
mod search;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::declared;
use super::not_configured;
use super::settings::{AutomationSettings, BuiltinSettings, WebSearchSettings};
use crate::builder::{ToolBuildError, ToolBuilder};
use crate::error::ToolError;
use crate::http::{HttpEndpoint, HttpMethod};
use crate::tool::Tool;
use crawl::Crawl;
use fetch::Fetcher;
use search::Search;

pub use hosts::HostPattern;

/// The title and the text of an HTML document.
#[must_use]
pub fn html_to_text(html: &str) -> (String, String) {
    let readable = html::read(html);
    (readable.title, readable.text)
}

/// The settings and clients of the web tools.
pub(super) struct Web {
    fetcher: Option<Arc<Fetcher>>,
    search: Option<WebSearchSettings>,
    automation: Option<AutomationSettings>,
}

impl Web {
    pub(super) fn new(settings: &BuiltinSettings) -> Self {
        let is_configured = !settings.http.hosts().is_empty();
        Self {
            fetcher: is_configured.then(|| Arc::new(Fetcher::new(settings.http.clone()))),
            search: settings.search.clone(),
            automation: settings.automation.clone(),
        }
    }

    pub(super) fn http_get(&self) -> Result<Tool, ToolBuildError> {
        let fetcher = self.fetcher.clone();
        declared::HTTP_GET
            .builder()
            .typed(move |arguments: UrlArguments| {
                let fetcher = fetcher.clone();
                async move {
                    let fetcher = fetcher.ok_or_else(|| not_configured(&declared::HTTP_GET))?;
                    let page = fetcher.fetch(&arguments.url).await?;
                    Ok(HttpGetAnswer {
                        text: page.text()?,
                        url: page.url.to_string(),
                        content_type: page.content_type,
                    })
                }
            })
            .build()
    }

    pub(super) fn web_search(&self) -> Result<Tool, ToolBuildError> {
        let search = self.search.clone();
        let search = search.map(|settings| Arc::new(Search::new(settings)));
        declared::WEB_SEARCH
            .builder()
            .typed(move |arguments: search::Arguments| {
                let search = search.clone();
                async move {
                    let search = search.ok_or_else(|| not_configured(&declared::WEB_SEARCH))?;
                    search.run(&arguments).await
                }
            })
            .build()
    }

    pub(super) fn web_crawl(&self) -> Result<Tool, ToolBuildError> {
        let fetcher = self.fetcher.clone();
        declared::WEB_CRAWL
            .builder()
            .typed(move |arguments: crawl::Arguments| {
                let fetcher = fetcher.clone();
                async move {
                    let fetcher = fetcher.ok_or_else(|| not_configured(&declared::WEB_CRAWL))?;
                    Crawl::new(&fetcher, arguments)?.run().await
                }
            })
            .build()
    }

    pub(super) fn web_automation(&self) -> Result<Tool, ToolBuildError> {
        let builder = declared::WEB_AUTOMATION.builder();
        let endpoint = self.automation.as_ref().and_then(|settings| {
            let host = settings.url().host_str()?;
            HttpEndpoint::new(HttpMethod::Post, settings.endpoint(), [host]).ok()
        });
        match endpoint {
            Some(endpoint) => builder.http(endpoint).build(),
            None => unconfigured(builder).build(),
        }
    }
}

fn unconfigured(builder: ToolBuilder) -> ToolBuilder {
    builder.handler(|_| async {
        let error: ToolError = not_configured(&declared::WEB_AUTOMATION);
        Err(error)
    })
}

#[derive(Deserialize)]
struct UrlArguments {
    url: String,
}

#[derive(Serialize)]
struct HttpGetAnswer {
    url: String,
    content_type: String,
    text: String,
}
