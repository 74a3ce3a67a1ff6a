//! Reads pages as text, and follows their links within one site. It obeys
//! `robots.txt`, makes one request at a time, and waits in between. Pages, depth
//! and time are limited, and skipped pages are reported.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use reqwest::Url;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use windlass_spec::ErrorCategory;
use windlass_spec::text::{TextUse, strip};

use super::fetch::{Fetcher, Page, is_private, shown};
use super::html;
use super::robots::{MAX_DELAY, Robots};
use crate::builtin::{invalid, refused};
use crate::error::ToolError;

/// How many characters of a page are kept.
const MAX_CHARACTERS: usize = 40_000;

/// The maximum number of queued links.
const MAX_LINKS: usize = 500;

/// The maximum number of requests, whether the pages can be read or not.
const MAX_REQUESTS: usize = 40;

/// How many skipped pages are reported.
const MAX_SKIPPED: usize = 50;

/// The delay between two requests to a public site that sets none.
const DEFAULT_DELAY: Duration = Duration::from_millis(500);

/// No request starts after this time, so that the last one can end within the time limit of the call.
const TIME_LIMIT: Duration = Duration::from_secs(90);

#[derive(Deserialize)]
pub(super) struct Arguments {
    url: String,
    #[serde(default = "one")]
    max_pages: i64,
    #[serde(default = "one")]
    depth: i64,
}

fn one() -> i64 {
    1
}

#[derive(Debug, Default, Serialize)]
pub(super) struct Crawled {
    pages: Vec<CrawledPage>,
    skipped: Vec<Skipped>,
}

#[derive(Debug, Serialize)]
struct CrawledPage {
    url: String,
    title: String,
    text: String,
}

#[derive(Debug, Serialize)]
struct Skipped {
    url: String,
    reason: String,
}

/// One crawl.
pub(super) struct Crawl<'a> {
    fetcher: &'a Fetcher,
    start: String,
    max_pages: usize,
    depth: usize,
    /// Pages to read, each with its distance in links from the first page.
    waiting: VecDeque<(Url, usize)>,
    seen: HashSet<String>,
    done: Crawled,
}

impl<'a> Crawl<'a> {
    pub(super) fn new(fetcher: &'a Fetcher, arguments: Arguments) -> Result<Self, ToolError> {
        let within = |name: &str, value: i64, max: usize, min: usize| {
            let number = usize::try_from(value).ok();
            let number = number.filter(|number| (min..=max).contains(number));
            number.ok_or_else(|| invalid(format!("`{name}` is {value}; it must be {min} to {max}")))
        };
        Ok(Self {
            fetcher,
            max_pages: within("max_pages", arguments.max_pages, 20, 1)?,
            depth: within("depth", arguments.depth, 3, 0)?,
            start: arguments.url,
            waiting: VecDeque::new(),
            seen: HashSet::new(),
            done: Crawled::default(),
        })
    }

    pub(super) async fn run(mut self) -> Result<Crawled, ToolError> {
        let begun = Instant::now();
        let start = Url::parse(self.start.trim())
            .map_err(|error| invalid(format!("the URL cannot be read: {error}")))?;
        self.fetcher.check(&start)?;
        let robots = self.robots(&start).await?;
        if !robots.allows(&path(&start)) {
            return Err(forbidden(&start));
        }
        let first = self.fetcher.fetch(start.as_str()).await?;
        let home = first.url.clone();
        // After a redirect to another site, its rules must be read too.
        let robots = if site(&home) == site(&start) {
            robots
        } else {
            self.robots(&home).await?
        };
        if !robots.allows(&path(&home)) {
            return Err(forbidden(&home));
        }
        let pause = pause(&robots, &home);
        let mut requests = 1;
        self.seen.insert(key(&start));
        self.seen.insert(key(&home));
        self.take(&first, 0, &home)?;
        while let Some((url, depth)) = self.waiting.pop_front() {
            if self.done.pages.len() == self.max_pages {
                break;
            }
            if requests == MAX_REQUESTS {
                self.skip(&url, "too many pages could not be read");
                continue;
            }
            if begun.elapsed() + pause > TIME_LIMIT {
                self.skip(&url, "the time limit is reached");
                continue;
            }
            if robots.delay.is_some_and(|delay| delay > MAX_DELAY) {
                self.skip(&url, "the site's crawl delay is too long for a call");
                continue;
            }
            if !robots.allows(&path(&url)) {
                self.skip(&url, "the site's `robots.txt` disallows it");
                continue;
            }
            tokio::time::sleep(pause).await;
            requests += 1;
            match self.fetcher.fetch(url.as_str()).await {
                Ok(page) if site(&page.url) != site(&home) => {
                    self.skip(&url, "it redirects to another site");
                }
                // A redirect to a page that was already read.
                Ok(page) if key(&page.url) != key(&url) && !self.seen.insert(key(&page.url)) => {}
                Ok(page) if !robots.allows(&path(&page.url)) => {
                    self.skip(&url, "the site's `robots.txt` disallows it");
                }
                Ok(page) => {
                    if let Err(error) = self.take(&page, depth, &home) {
                        self.skip(&url, error.message());
                    }
                }
                Err(error) => self.skip(&url, &reason(&error)),
            }
        }
        Ok(self.done)
    }

    /// The `robots.txt` rules of the site. A site without the file has no rules.
    async fn robots(&self, url: &Url) -> Result<Robots, ToolError> {
        let mut file = url.clone();
        file.set_path("/robots.txt");
        file.set_query(None);
        match self.fetcher.fetch(file.as_str()).await {
            Ok(page) => Ok(page
                .text()
                .map(|text| Robots::parse(&text))
                .unwrap_or_default()),
            Err(error) => match error.category() {
                ErrorCategory::Unavailable
                | ErrorCategory::Timeout
                | ErrorCategory::RateLimited => Err(error),
                _ => Ok(Robots::default()),
            },
        }
    }

    fn take(&mut self, page: &Page, depth: usize, home: &Url) -> Result<(), ToolError> {
        let text = page.text()?;
        let readable = if page.is_html() {
            html::read(&text)
        } else {
            html::Readable {
                text,
                ..html::Readable::default()
            }
        };
        if depth < self.depth {
            let base = readable.base.as_deref();
            let base = base.and_then(|base| page.url.join(base).ok());
            self.queue_links(
                &readable.links,
                base.as_ref().unwrap_or(&page.url),
                depth + 1,
                home,
            );
        }
        self.done.pages.push(CrawledPage {
            url: page.url.to_string(),
            title: beginning(&readable.title, 300),
            text: beginning(&readable.text, MAX_CHARACTERS),
        });
        Ok(())
    }

    fn queue_links(&mut self, links: &[String], base: &Url, depth: usize, home: &Url) {
        for link in links {
            if self.waiting.len() >= MAX_LINKS {
                return;
            }
            let Ok(mut url) = base.join(link) else {
                continue;
            };
            url.set_fragment(None);
            let is_same_site = site(&url) == site(home);
            if is_same_site && self.fetcher.check(&url).is_ok() && self.seen.insert(key(&url)) {
                self.waiting.push_back((url, depth));
            }
        }
    }

    fn skip(&mut self, url: &Url, reason: &str) {
        if self.done.skipped.len() < MAX_SKIPPED {
            self.done.skipped.push(Skipped {
                url: url.to_string(),
                reason: reason.to_owned(),
            });
        }
    }
}

/// The delay between two requests to the site of `url`.
fn pause(robots: &Robots, url: &Url) -> Duration {
    match robots.delay {
        Some(delay) => delay.min(MAX_DELAY),
        None if is_private(url) => Duration::ZERO,
        None => DEFAULT_DELAY,
    }
}

fn forbidden(url: &Url) -> ToolError {
    refused(format!(
        "the site's `robots.txt` disallows `{}`",
        shown(url)
    ))
}

/// Why a page was skipped, without error texts of the server.
fn reason(error: &ToolError) -> String {
    match error.category() {
        ErrorCategory::Unavailable => "the server does not answer".to_owned(),
        ErrorCategory::Internal => "the request could not be made".to_owned(),
        _ => error.message().to_owned(),
    }
}

/// The site of a URL. `https` and `http` pages are of the same site.
fn site(url: &Url) -> (Option<&str>, Option<u16>) {
    (url.host_str(), url.port())
}

/// The key of a page: URLs with the same key are the same page.
fn key(url: &Url) -> String {
    let mut url = url.clone();
    url.set_fragment(None);
    url.to_string()
}

fn path(url: &Url) -> String {
    match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    }
}

/// The beginning of a text without hidden characters, with a note of how much is omitted.
fn beginning(text: &str, characters: usize) -> String {
    // CRLF counts as one line break.
    let text = text.replace("\r\n", "\n");
    let text = strip(&text, TextUse::Model);
    match text.char_indices().nth(characters) {
        None => text.into_owned(),
        Some((end, _)) => {
            let left = text[end..].chars().count();
            format!("{}… [{left} more characters]", &text[..end])
        }
    }
}
