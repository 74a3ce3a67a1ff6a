//! Diagnostics about a text and their places: spans, severities, diagnostics, and the index that
//! turns byte offsets into lines and columns. Every crate that reads declared text uses these types.

use std::fmt;

/// A half-open range of byte offsets into one source text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset just after the last byte.
    pub end: u32,
}

impl Span {
    /// The span from `start` up to, not including, `end`.
    #[must_use]
    pub const fn new(start: u32, end: u32) -> Self {
        Self { start, end }
    }

    /// The empty span at `offset`.
    #[must_use]
    pub const fn empty(offset: u32) -> Self {
        Self::new(offset, offset)
    }

    /// How many bytes it covers.
    #[must_use]
    pub const fn len(self) -> usize {
        (self.end - self.start) as usize
    }

    /// Whether it covers nothing.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// This span moved by `offset`, for a text that starts at `offset` of another text.
    #[must_use]
    pub const fn shifted(self, offset: u32) -> Self {
        Self::new(self.start + offset, self.end + offset)
    }

    /// The covered part of `source`; empty if the span is not within it.
    #[must_use]
    pub fn text(self, source: &str) -> &str {
        source
            .get(self.start as usize..self.end as usize)
            .unwrap_or_default()
    }
}

/// The severity of a diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// The text is not valid.
    Error,
    /// The text is valid, but probably not what the author intended.
    Warning,
}

impl Severity {
    /// The word shown to people and written to JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One finding about a text: what is wrong, where, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Whether it makes the text invalid.
    pub severity: Severity,
    /// A stable, searchable name for this kind of finding, such as `expected-token`.
    pub code: &'static str,
    /// What is wrong, in one sentence without a full stop.
    pub message: String,
    /// Where in the text it is.
    pub span: Span,
    /// How to fix it.
    pub hint: Option<String>,
}

impl Diagnostic {
    /// An error at `span`.
    #[must_use]
    pub fn error(code: &'static str, span: Span, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            code,
            message: message.into(),
            span,
            hint: None,
        }
    }

    /// A warning at `span`.
    #[must_use]
    pub fn warning(code: &'static str, span: Span, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::error(code, span, message)
        }
    }

    /// The same diagnostic with a hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Whether this is an error, not merely a warning.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// A line and column, both counted from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Line, counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
}

/// Turns offsets of one source text into positions.
#[derive(Debug, Clone)]
pub struct LineIndex<'s> {
    source: &'s str,
    line_starts: Vec<u32>,
}

impl<'s> LineIndex<'s> {
    /// Reads the line starts of `source` once.
    #[must_use]
    pub fn new(source: &'s str) -> Self {
        let breaks = memchr::memchr_iter(b'\n', source.as_bytes());
        let line_starts = std::iter::once(0)
            .chain(breaks.map(|offset| offset as u32 + 1))
            .collect();
        Self {
            source,
            line_starts,
        }
    }

    /// The position of `offset`; offsets past the end give the end.
    #[must_use]
    pub fn position(&self, offset: u32) -> Position {
        let mut offset = (offset as usize).min(self.source.len());
        while !self.source.is_char_boundary(offset) {
            offset -= 1;
        }
        let line = self
            .line_starts
            .partition_point(|&start| start as usize <= offset)
            .saturating_sub(1);
        let start = self
            .line_starts
            .get(line)
            .map_or(0, |&start| start as usize);
        // A byte order mark is invisible, so it does not count as a column.
        let text = self.source[start..offset].trim_start_matches('\u{feff}');
        Position {
            line: line + 1,
            column: text.chars().count() + 1,
        }
    }
}
