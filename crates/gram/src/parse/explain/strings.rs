//! Errors in quoted texts, and warnings about texts that are valid but probably not intended.

use crate::diagnostic::{Diagnostic, Span};
use crate::parse::{MAX_DIAGNOSTICS, Parser};
use crate::scan::QuotedText;
use crate::token::TokenKind;

const SLASHES: &str = "write the slashes as `\\/\\/`, or start the text with another character";

impl Parser<'_> {
    pub(in crate::parse) fn doubtful_string(&mut self, found: QuotedText, end: usize) {
        let span = Span::new(self.at as u32, end as u32);
        if found.holds_comment {
            return self.comment_in_string(span);
        }
        self.report(
            Diagnostic::warning(
                "string-runs-on",
                span,
                "the text ends before its closing quote; blanks, line breaks and comments before the quote are not part of it",
            )
            .with_hint("put the quote right after the text, or use a fenced string for several lines"),
        );
    }

    pub(in crate::parse) fn comment_in_string(&mut self, span: Span) {
        let message = "a comment at the start of this string is not part of its text";
        self.report(Diagnostic::warning("comment-in-string", span, message).with_hint(SLASHES));
    }

    pub(in crate::parse) fn unterminated_quote(&mut self, kind: TokenKind, found: QuotedText) {
        let quote = self.byte();
        let plain_end = self.scanner.text_end(self.at + 1, quote);
        if found.holds_comment && self.scanner.byte(plain_end) == quote {
            let span = Span::new(self.at as u32, plain_end as u32 + 1);
            let message = "`//` or `/**` at the start of a quoted text starts a comment, which contains the closing quote";
            self.report(Diagnostic::error("comment-in-string", span, message).with_hint(SLASHES));
            return self.push(kind, plain_end + 1);
        }
        if self.scanner.byte(plain_end) == b'\\' {
            return self.bad_escape(kind, plain_end);
        }
        self.has_unclosed_string = true;
        let span = Span::new(self.at as u32, self.at as u32 + 1);
        let message = "this text has no closing quote on its line";
        self.report(
            Diagnostic::error("unterminated-string", span, message).with_hint(format!(
                "close it with `{}`; for several lines use a fenced string",
                quote as char
            )),
        );
        let end = self.likely_end(plain_end, quote).unwrap_or(plain_end);
        self.push(TokenKind::Error, end);
    }

    /// The probable end of a text that spans several lines: the next quote, if what follows it could
    /// follow a value. This is a guess, used only for recovery after the error.
    fn likely_end(&self, line_end: usize, quote: u8) -> Option<usize> {
        const MAX_SEARCH_BYTES: usize = 4_000;
        let rest = self.source.as_bytes().get(line_end..self.scanner.len())?;
        let rest = &rest[..rest.len().min(MAX_SEARCH_BYTES)];
        let close = rest.iter().position(|&byte| byte == quote)? + 1;
        let next = rest[close..]
            .iter()
            .find(|byte| !byte.is_ascii_whitespace())?;
        matches!(next, b',' | b'}' | b')' | b']').then_some(line_end + close)
    }

    fn bad_escape(&mut self, kind: TokenKind, backslash: usize) {
        let quote = self.byte();
        let mut end = backslash;
        while self.scanner.byte(end) == b'\\' {
            let escaped = self.source[end + 1..].chars().next();
            let length = 1 + escaped.map_or(0, char::len_utf8);
            if self.errors_kept < MAX_DIAGNOSTICS {
                self.errors_kept += 1;
                let span = Span::new(end as u32, (end + length) as u32);
                let message = format!("{} is not an escape", self.found(span));
                self.is_valid = false;
                self.diagnostics.push(
                    Diagnostic::error("bad-escape", span, message).with_hint(format!(
                        "the escapes are `\\{}` and `\\b \\f \\n \\r \\t \\/ \\\\`; write other characters as they are",
                        quote as char
                    )),
                );
            }
            if escaped.is_none_or(|c| c == '\n') {
                end += 1;
                break;
            }
            end = self
                .scanner
                .text_end((end + length).min(self.scanner.len()), quote);
        }
        self.is_valid = false;
        let closed = self.scanner.byte(end) == quote;
        let kind = if closed { kind } else { TokenKind::Error };
        self.push(kind, end + usize::from(closed));
    }
}
