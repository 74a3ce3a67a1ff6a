//! Prints diagnostics: with the source line for people, as JSON for programs.

use std::fmt::{self, Write as _};

use anstream::{AutoStream, ColorChoice};
use miette::{
    GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteError, MietteSpanContents,
    SourceCode, SourceSpan, SpanContents,
};
use serde::Serialize;
use windlass_gram::{Diagnostic, LineIndex, Severity};
use windlass_spec::text::{TextUse, replace_hidden};

use super::arguments::Color;
use super::log::is_json;
use super::source::Source;
use super::terminal::{eprint_styled, visible};

/// Lines up to this many bytes are shown whole.
const LONG_LINE: usize = 160;

/// How many bytes of a longer line are shown on each side of the diagnostic.
const WINDOW: usize = 60;

/// The maximum number of diagnostics drawn per file. JSON contains all of them.
const MAX_DRAWN: usize = 20;

/// Whether standard error gets colours.
pub(crate) fn is_colored(color: Color) -> bool {
    match color {
        _ if is_json() => false,
        Color::Always => true,
        Color::Never => false,
        Color::Auto => AutoStream::choice(&std::io::stderr()) != ColorChoice::Never,
    }
}

/// Draws diagnostics on standard error.
pub(crate) struct Reporter {
    handler: GraphicalReportHandler,
}

impl Reporter {
    pub(crate) fn new(color: Color) -> Self {
        let theme = match is_colored(color) {
            true => GraphicalTheme::unicode(),
            false => GraphicalTheme::unicode_nocolor(),
        };
        let handler = GraphicalReportHandler::new_themed(theme)
            .with_width(100)
            .with_context_lines(1)
            .without_cause_chain();
        Self { handler }
    }

    /// Draws each diagnostic on standard error.
    pub(crate) fn show(&self, source: &Source, diagnostics: &[Diagnostic]) -> anyhow::Result<()> {
        let lines = LineIndex::new(&source.text);
        let mut drawn = String::new();
        // Errors first if not all are drawn, so that warnings do not displace them.
        let (errors, warnings): (Vec<_>, Vec<_>) = diagnostics
            .iter()
            .partition(|diagnostic| diagnostic.is_error());
        let shown: Vec<&Diagnostic> = match diagnostics.len() > MAX_DRAWN {
            true => errors.into_iter().chain(warnings).take(MAX_DRAWN).collect(),
            false => diagnostics.iter().collect(),
        };
        for diagnostic in shown {
            let drawing = Drawing::new(source, &lines, diagnostic);
            self.handler.render_report(&mut drawn, &drawing)?;
            drawn.push('\n');
        }
        if let Some(more) = diagnostics
            .len()
            .checked_sub(MAX_DRAWN)
            .filter(|&more| more > 0)
        {
            writeln!(
                drawn,
                "… and {more} more in {}; list them with `--json`",
                source.name
            )?;
        }
        eprint_styled(&drawn)?;
        Ok(())
    }
}

/// The diagnostics of a file as JSON.
#[derive(Debug, Serialize)]
pub(crate) struct FileReport<'a> {
    file: &'a str,
    valid: bool,
    diagnostics: Vec<HealthFinding<'a>>,
}

#[derive(Debug, Serialize)]
struct HealthFinding<'a> {
    severity: &'static str,
    code: &'static str,
    message: &'a str,
    line: usize,
    column: usize,
    end_line: usize,
    end_column: usize,
    hint: Option<&'a str>,
}

impl<'a> FileReport<'a> {
    pub(crate) fn new(source: &'a Source, diagnostics: &'a [Diagnostic], valid: bool) -> Self {
        let lines = LineIndex::new(&source.text);
        let findings = diagnostics.iter().map(|diagnostic| {
            let start = lines.position(diagnostic.span.start);
            let end = lines.position(diagnostic.span.end);
            HealthFinding {
                severity: diagnostic.severity.as_str(),
                code: diagnostic.code,
                message: &diagnostic.message,
                line: start.line,
                column: start.column,
                end_line: end.line,
                end_column: end.column,
                hint: diagnostic.hint.as_deref(),
            }
        });
        Self {
            file: &source.name,
            valid,
            diagnostics: findings.collect(),
        }
    }
}

/// One diagnostic with its source, for `miette`.
#[derive(Debug)]
struct Drawing<'a> {
    source: &'a Source,
    lines: &'a LineIndex<'a>,
    diagnostic: &'a Diagnostic,
    /// The part of the source that is drawn.
    shown: std::ops::Range<usize>,
    /// That part, with every character that could control a terminal replaced by as many `?` as it has
    /// bytes, so that offsets stay the same.
    safe: Vec<u8>,
}

impl fmt::Display for Drawing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = &self.diagnostic.message;
        // Without a source line, the message must name the file.
        let is_placeless = self.source.text.is_empty() && !message.contains(&self.source.name);
        if is_placeless {
            write!(f, "{}: ", visible(&self.source.name))?;
        }
        f.write_str(&visible(message))
    }
}

impl std::error::Error for Drawing<'_> {}

impl miette::Diagnostic for Drawing<'_> {
    fn code<'s>(&'s self) -> Option<Box<dyn fmt::Display + 's>> {
        Some(Box::new(self.diagnostic.code))
    }

    fn severity(&self) -> Option<miette::Severity> {
        Some(match self.diagnostic.severity {
            Severity::Error => miette::Severity::Error,
            Severity::Warning => miette::Severity::Warning,
        })
    }

    fn help<'s>(&'s self) -> Option<Box<dyn fmt::Display + 's>> {
        let hint = self.diagnostic.hint.as_ref()?;
        Some(Box::new(visible(hint)))
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        (!self.source.text.is_empty()).then_some(self)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let start = self.diagnostic.span.start as usize;
        let end = (self.diagnostic.span.end as usize)
            .min(self.shown.end)
            .max(start);
        let span = SourceSpan::new(start.into(), end - start);
        Some(Box::new(std::iter::once(LabeledSpan::new_with_span(
            None, span,
        ))))
    }
}

impl<'a> Drawing<'a> {
    fn new(source: &'a Source, lines: &'a LineIndex<'a>, diagnostic: &'a Diagnostic) -> Self {
        let shown = Self::shown(&source.text, diagnostic);
        let safe = replace_hidden(
            &source.text[shown.clone()],
            TextUse::Display,
            |_, hidden, safe| {
                safe.extend(std::iter::repeat_n('?', hidden.len()));
            },
        );
        let safe = safe.into_owned().into_bytes();
        Self {
            source,
            lines,
            diagnostic,
            shown,
            safe,
        }
    }

    /// Returns the line on which the diagnostic starts, or the part of a very long line around it.
    fn shown(text: &str, diagnostic: &Diagnostic) -> std::ops::Range<usize> {
        let at = (diagnostic.span.start as usize).min(text.len());
        let at = (0..=at)
            .rev()
            .find(|&at| text.is_char_boundary(at))
            .unwrap_or(0);
        let line_start = text[..at].rfind('\n').map_or(0, |found| found + 1);
        let line_end = text[at..].find('\n').map_or(text.len(), |found| at + found);
        if line_end - line_start <= LONG_LINE {
            return line_start..line_end;
        }
        let mut start = line_start.max(at.saturating_sub(WINDOW));
        let mut end = line_end.min(at + WINDOW.max(diagnostic.span.len().min(2 * WINDOW)));
        while !text.is_char_boundary(start) {
            start -= 1;
        }
        while !text.is_char_boundary(end) {
            end += 1;
        }
        start..end
    }
}

impl SourceCode for Drawing<'_> {
    fn read_span<'s>(
        &'s self,
        span: &SourceSpan,
        before: usize,
        _after: usize,
    ) -> Result<Box<dyn SpanContents<'s> + 's>, MietteError> {
        // Without context lines, the library only needs the position of the label.
        let asked = if before == 0 {
            span.offset()
        } else {
            self.shown.start
        };
        let position = self.lines.position(asked as u32);
        let column = position.column - 1;
        Ok(Box::new(MietteSpanContents::new_named(
            visible(&self.source.name),
            &self.safe,
            SourceSpan::new(self.shown.start.into(), self.shown.len()),
            position.line - 1,
            column,
            1,
        )))
    }
}
