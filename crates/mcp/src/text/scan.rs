//! Marks the hidden text in a text, in order: hidden characters, and the delimiters of HTML comments. The
//! delimiters are plain ASCII, so the two never overlap.

use std::iter::Peekable;

use windlass_spec::text::{HiddenSpans, TextUse, hidden_spans};

use super::HiddenKind;

const OPENS: &str = "<!--";
const CLOSES: &str = "-->";

/// A span of hidden characters, or a delimiter of a comment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) kind: HiddenKind,
    pub(super) start: usize,
    pub(super) end: usize,
    /// Whether it is an opening delimiter.
    pub(super) opens: bool,
    /// Whether it is an opening delimiter within a comment, where it has no meaning.
    pub(super) is_nested: bool,
}

pub(super) struct Scanner<'t> {
    characters: Peekable<HiddenSpans<'t>>,
    comments: Peekable<Comments<'t>>,
}

impl<'t> Scanner<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self {
            characters: hidden_spans(text, TextUse::Model).peekable(),
            comments: Comments::new(text).peekable(),
        }
    }
}

impl Iterator for Scanner<'_> {
    type Item = Mark;

    fn next(&mut self) -> Option<Mark> {
        let comment = self.comments.peek().map(|mark| mark.start);
        let is_first = |start: usize| comment.is_none_or(|comment| start < comment);
        match self.characters.next_if(|span| is_first(span.start)) {
            Some(span) => Some(Mark {
                kind: HiddenKind::Characters(span.class),
                start: span.start,
                end: span.end,
                opens: false,
                is_nested: false,
            }),
            None => self.comments.next(),
        }
    }
}

/// The delimiters of comments.
struct Comments<'t> {
    text: &'t str,
    at: usize,
    is_inside: bool,
}

impl<'t> Comments<'t> {
    fn new(text: &'t str) -> Self {
        Self {
            text,
            at: 0,
            is_inside: false,
        }
    }

    fn mark(&mut self, start: usize, length: usize, opens: bool, is_nested: bool) -> Mark {
        self.at = start + length;
        Mark {
            kind: HiddenKind::Comment,
            start,
            end: self.at,
            opens,
            is_nested,
        }
    }
}

impl Iterator for Comments<'_> {
    type Item = Mark;

    fn next(&mut self) -> Option<Mark> {
        let bytes = self.text.as_bytes();
        let from = self.at;
        for start in memchr::memchr2_iter(b'<', b'-', bytes.get(from..).unwrap_or_default()) {
            let start = from + start;
            let rest = bytes.get(start..).unwrap_or_default();
            if rest.starts_with(OPENS.as_bytes()) {
                let is_nested = std::mem::replace(&mut self.is_inside, true);
                return Some(self.mark(start, OPENS.len(), true, is_nested));
            }
            if self.is_inside && rest.starts_with(CLOSES.as_bytes()) {
                self.is_inside = false;
                return Some(self.mark(start, CLOSES.len(), false, false));
            }
        }
        // An unclosed comment extends to the end of the text.
        self.at = self.text.len();
        let is_open = std::mem::take(&mut self.is_inside);
        is_open.then(|| self.mark(self.text.len(), 0, false, false))
    }
}
