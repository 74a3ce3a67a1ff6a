//! Reading pages as text, and following their links within one site. It is polite: it does what
//! `robots.txt` asks, makes one request at a time, and waits in between. It is bounded in pages, depth
//! and time, and says what it left out.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use reqwest::Url;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use windlass_spec::ErrorCategory;
use windlass_spec::text::{TextUse, strip};

use super::fetch::{Fetcher, Page, is_private, shown};
use super::html;
use super::robots::{LONGEST_DELAY, Robots};
use crate::builtin::{invalid, refused};
use crate::error::ToolError;

/// How many characters of a page are kept.
const MAX_CHARACTERS: usize = 40_000;

/// How many links are noted; a page with more is an index of everything.
const MAX_LINKS: usize = 500;

/// How many pages are asked for, whether they can be read or not.
const MOST_REQUESTS: usize = 40;

/// How many pages that were left out are told about.
const MAX_SKIPPED: usize = 50;

/// How long to wait between two requests to a public site that does not say.
const PAUSE: Duration = Duration::from_millis(500);

/// No request is begun after this time; it leaves the last one its own limit within that of a call.
const ENOUGH: Duration = Duration::from_secs(90);

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
    pages: Vec<Readable>,
    skipped: Vec<Skipped>,
}

#[derive(Debug, Serialize)]
struct Readable {
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
    /// Pages to read, each with how many links away it is.
    waiting: VecDeque<(Url, usize)>,
    seen: HashSet<String>,
    done: Crawled,
}

impl<'a> Crawl<'a> {
    pub(super) fn new(fetcher: &'a Fetcher, arguments: Arguments) -> Result<Self, ToolError> {
        let within = |name: &str, value: i64, most: usize, least: usize| {
            let number = usize::try_from(value).ok();
            let number = number.filter(|number| (least..=most).contains(number));
            number.ok_or_else(|| {
                invalid(format!("`{name}` is {value}; it must be {least} to {most}"))
            })
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
        // Sent on to another site, whose wishes are not known yet.
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
            if requests == MOST_REQUESTS {
                self.skip(&url, "too many pages could not be read");
                continue;
            }
            if begun.elapsed() + pause > ENOUGH {
                self.skip(&url, "the time is up");
                continue;
            }
            if robots.delay.is_some_and(|delay| delay > LONGEST_DELAY) {
                self.skip(&url, "the site asks for longer pauses than a call can make");
                continue;
            }
            if !robots.allows(&path(&url)) {
                self.skip(&url, "the site asks programs not to read it");
                continue;
            }
            tokio::time::sleep(pause).await;
            requests += 1;
            match self.fetcher.fetch(url.as_str()).await {
                Ok(page) if site(&page.url) != site(&home) => {
                    self.skip(&url, "it leads to another site");
                }
                // Another way to a page that was read.
                Ok(page) if key(&page.url) != key(&url) && !self.seen.insert(key(&page.url)) => {}
                Ok(page) if !robots.allows(&path(&page.url)) => {
                    self.skip(&url, "the site asks programs not to read it");
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

    /// What the site asks of programs. If it has no such file, it asks nothing.
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
            self.note_links(
                &readable.links,
                base.as_ref().unwrap_or(&page.url),
                depth + 1,
                home,
            );
        }
        self.done.pages.push(Readable {
            url: page.url.to_string(),
            title: beginning(&readable.title, 300),
            text: beginning(&readable.text, MAX_CHARACTERS),
        });
        Ok(())
    }

    fn note_links(&mut self, links: &[String], base: &Url, depth: usize, home: &Url) {
        for link in links {
            if self.waiting.len() >= MAX_LINKS {
                return;
            }
            let Ok(mut url) = base.join(link) else {
                continue;
            };
            url.set_fragment(None);
            let is_of_site = site(&url) == site(home);
            if is_of_site && self.fetcher.check(&url).is_ok() && self.seen.insert(key(&url)) {
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

/// How long to wait between two requests to the site of `url`.
fn pause(robots: &Robots, url: &Url) -> Duration {
    match robots.delay {
        Some(delay) => delay.min(LONGEST_DELAY),
        None if is_private(url) => Duration::ZERO,
        None => PAUSE,
    }
}

fn forbidden(url: &Url) -> ToolError {
    refused(format!(
        "the `robots.txt` of the site asks programs not to read `{}`",
        shown(url)
    ))
}

/// Why a page was left out, without what a server says about its own troubles.
fn reason(error: &ToolError) -> String {
    match error.category() {
        ErrorCategory::Unavailable => "the server does not answer".to_owned(),
        ErrorCategory::Internal => "the request could not be made".to_owned(),
        _ => error.message().to_owned(),
    }
}

/// Which site a URL is of. A page by `https` is of the same site as one by `http`.
fn site(url: &Url) -> (Option<&str>, Option<u16>) {
    (url.host_str(), url.port())
}

/// What makes two URLs the same page.
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

/// The beginning of a text without hidden characters, with a note of what is left out.
fn beginning(text: &str, characters: usize) -> String {
    // A carriage return before a line feed is no more than the line feed.
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
