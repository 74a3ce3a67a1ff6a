//! Extracts the readable text and the links of a page. It is not a browser: it reads
//! the tags once, even if they are broken, omits hidden content, and separates headings, lists
//! and lines. Its time is linear in the size of the page.

use super::entity::decoded;

/// The readable content of a page.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Readable {
    /// Its title, on one line; empty if it has none.
    pub(super) title: String,
    /// Its text: headings marked with `#`, items of lists with `-`.
    pub(super) text: String,
    /// The targets of its links, as written, without `nofollow` links.
    pub(super) links: Vec<String>,
    /// The base URL of its links, if it is not the page itself.
    pub(super) base: Option<String>,
}

/// Elements whose content is not readable text.
const SKIPPED: [&str; 13] = [
    "script", "style", "noscript", "template", "svg", "math", "iframe", "object", "canvas",
    "audio", "video", "select", "textarea",
];

/// Block elements, which start a new line.
const BLOCKS: [&str; 33] = [
    "address",
    "article",
    "aside",
    "blockquote",
    "body",
    "caption",
    "center",
    "dd",
    "details",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "header",
    "hr",
    "main",
    "nav",
    "ol",
    "option",
    "p",
    "pre",
    "section",
    "summary",
    "table",
    "tbody",
    "thead",
    "tr",
    "ul",
    "li",
];

/// Reads a page.
pub(super) fn read(html: &str) -> Readable {
    let mut reader = Reader::default();
    reader.read(html);
    reader.finish()
}

#[derive(Default)]
struct Reader {
    page: Readable,
    /// The number of open `pre` elements, in which line breaks are kept.
    preformatted: usize,
    is_nofollow: bool,
}

impl Reader {
    fn read(&mut self, html: &str) {
        let mut rest = html;
        while let Some(at) = rest.find('<') {
            self.text(&rest[..at]);
            rest = &rest[at..];
            if let Some(comment) = rest.strip_prefix("<!--") {
                rest = comment.split_once("-->").map_or("", |(_, after)| after);
            } else if rest.starts_with("<!") || rest.starts_with("<?") {
                rest = rest.split_once('>').map_or("", |(_, after)| after);
            } else if let Some((tag, after)) = Tag::parse(rest) {
                rest = self.tag(&tag, after);
            } else {
                self.text("<");
                rest = &rest[1..];
            }
        }
        self.text(rest);
    }

    /// Processes a tag and returns the text to read after it.
    fn tag<'a>(&mut self, tag: &Tag, after: &'a str) -> &'a str {
        let name = tag.name.as_str();
        match name {
            "title" if !tag.closes => {
                let (title, after) = until_closed(after, name);
                if self.page.title.is_empty() {
                    self.page.title = one_line(&decoded(title));
                }
                return after;
            }
            "meta" => self.meta(tag),
            "base" => self.base(tag),
            _ => {}
        }
        if SKIPPED.contains(&name) && !tag.closes && !tag.closes_itself {
            return until_closed(after, name).1;
        }
        match name {
            "br" => self.page.text.push('\n'),
            "td" | "th" if !tag.closes && !at_line_start(&self.page.text) => {
                self.page.text.push_str(" | ");
            }
            "a" if !tag.closes => {
                let is_followed = !tag.has_word("rel", "nofollow");
                let links = tag.attribute("href").filter(|_| is_followed);
                self.page.links.extend(links.map(str::to_owned));
            }
            _ if heading(name).is_some() || BLOCKS.contains(&name) => {
                self.end_line();
                match heading(name) {
                    Some(level) if !tag.closes => {
                        self.page.text.push_str(&"#".repeat(level));
                        self.page.text.push(' ');
                    }
                    _ if name == "li" && !tag.closes => self.page.text.push_str("- "),
                    _ => {}
                }
                if matches!(name, "p" | "table" | "ul" | "ol" | "pre" | "blockquote")
                    || heading(name).is_some() && tag.closes
                {
                    // `finish` merges repeated empty lines.
                    self.page.text.push('\n');
                }
                if name == "pre" {
                    self.preformatted = match tag.closes {
                        true => self.preformatted.saturating_sub(1),
                        false => self.preformatted + 1,
                    };
                }
            }
            _ => {}
        }
        after
    }

    fn meta(&mut self, tag: &Tag) {
        let is_about_robots = tag
            .attribute("name")
            .is_some_and(|name| name.eq_ignore_ascii_case("robots"));
        let content = tag.attribute("content").unwrap_or_default();
        let content = content.to_ascii_lowercase();
        let mut words = content.split([',', ' ']);
        if is_about_robots && words.any(|word| matches!(word, "nofollow" | "none")) {
            self.is_nofollow = true;
        }
    }

    fn base(&mut self, tag: &Tag) {
        if self.page.base.is_none() {
            self.page.base = tag.attribute("href").map(str::to_owned);
        }
    }

    fn text(&mut self, text: &str) {
        let text = decoded(text);
        let out = &mut self.page.text;
        if self.preformatted > 0 {
            out.push_str(&text);
            return;
        }
        for (number, word) in text.split(is_blank).enumerate() {
            let needs_blank = number > 0 && !out.is_empty() && !out.ends_with(is_blank);
            if needs_blank {
                out.push(' ');
            }
            out.push_str(word);
        }
    }

    fn end_line(&mut self) {
        if !self.page.text.is_empty() && !self.page.text.ends_with('\n') {
            self.page.text.push('\n');
        }
    }

    fn finish(mut self) -> Readable {
        if self.is_nofollow {
            self.page.links.clear();
        }
        let mut text = String::with_capacity(self.page.text.len());
        let mut was_empty = true;
        for line in self.page.text.lines().map(str::trim_end) {
            // List and cell markers without content.
            let is_empty = line.trim().is_empty() || matches!(line.trim(), "-" | "|");
            let is_bare_heading = !line.is_empty() && line.chars().all(|c| c == '#');
            if (is_empty && was_empty) || is_bare_heading {
                continue;
            }
            text.push_str(if is_empty { "" } else { line });
            text.push('\n');
            was_empty = is_empty;
        }
        self.page.text = text.trim_end().to_owned();
        self.page
    }
}

fn is_blank(character: char) -> bool {
    character.is_whitespace()
}

fn at_line_start(text: &str) -> bool {
    text.is_empty() || text.ends_with('\n')
}

fn heading(name: &str) -> Option<usize> {
    match name.as_bytes() {
        [b'h', level @ b'1'..=b'6'] => Some(usize::from(level - b'0')),
        _ => None,
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The text before the closing tag with this name, and the text after it.
fn until_closed<'a>(html: &'a str, name: &str) -> (&'a str, &'a str) {
    let mut from = 0;
    while let Some(at) = html[from..].find("</") {
        let start = from + at;
        let after = &html[start + 2..];
        let is_it = after
            .get(..name.len())
            .is_some_and(|begin| begin.eq_ignore_ascii_case(name))
            && !after[name.len()..].starts_with(|c: char| c.is_ascii_alphanumeric());
        if is_it {
            let rest = after.split_once('>').map_or("", |(_, rest)| rest);
            return (&html[..start], rest);
        }
        from = start + 2;
    }
    (html, "")
}

/// A tag: `<name attribute="value">` or `</name>`.
struct Tag {
    name: String,
    attributes: Vec<(String, String)>,
    closes: bool,
    closes_itself: bool,
}

impl Tag {
    /// The tag at the beginning of `html`, and the text after it. An unclosed tag takes the rest.
    fn parse(html: &str) -> Option<(Self, &str)> {
        let inner = html.strip_prefix('<')?;
        let (closes, inner) = match inner.strip_prefix('/') {
            Some(inner) => (true, inner),
            None => (false, inner),
        };
        if !inner.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return None;
        }
        let end = inner.find(|c: char| c.is_whitespace() || matches!(c, '>' | '/'));
        let (name, mut rest) = inner.split_at(end.unwrap_or(inner.len()));
        let mut tag = Self {
            name: name.to_ascii_lowercase(),
            attributes: Vec::new(),
            closes,
            closes_itself: false,
        };
        loop {
            rest = rest.trim_start();
            if let Some(after) = rest.strip_prefix('>') {
                return Some((tag, after));
            }
            if let Some(after) = rest.strip_prefix('/') {
                tag.closes_itself = after.starts_with('>');
                rest = after;
                continue;
            }
            if rest.is_empty() {
                return Some((tag, ""));
            }
            rest = tag.take_attribute(rest);
        }
    }

    /// Parses the attribute at the beginning of `rest`. It consumes at least one character.
    fn take_attribute<'a>(&mut self, rest: &'a str) -> &'a str {
        let is_end = |c: char| c.is_whitespace() || matches!(c, '>' | '/' | '=');
        let first = rest.chars().next().map_or(0, char::len_utf8);
        let end = rest[first..].find(is_end).map(|end| end + first);
        let (name, rest) = rest.split_at(end.unwrap_or(rest.len()));
        let Some(value) = rest.trim_start().strip_prefix('=') else {
            self.attributes
                .push((name.to_ascii_lowercase(), String::new()));
            return rest;
        };
        let value = value.trim_start();
        let quote = value
            .chars()
            .next()
            .filter(|quote| matches!(quote, '"' | '\''));
        let (value, rest) = match quote {
            Some(quote) => value[1..].split_once(quote).unwrap_or((&value[1..], "")),
            None => {
                let end = value.find(|c: char| c.is_whitespace() || c == '>');
                value.split_at(end.unwrap_or(value.len()))
            }
        };
        let value = decoded(value).into_owned();
        self.attributes.push((name.to_ascii_lowercase(), value));
        rest
    }

    fn attribute(&self, name: &str) -> Option<&str> {
        let mut attributes = self.attributes.iter();
        let (_, value) = attributes.find(|(known, _)| known == name)?;
        Some(value)
    }

    fn has_word(&self, name: &str, word: &str) -> bool {
        self.attribute(name).is_some_and(|value| {
            let mut words = value.split_whitespace();
            words.any(|known| known.eq_ignore_ascii_case(word))
        })
    }
}

#[cfg(test)]
mod tests;
