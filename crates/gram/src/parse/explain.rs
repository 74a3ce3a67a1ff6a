//! Error messages and error recovery of the parser. Only invalid texts reach this code, so it favours
//! good messages over speed. Every path through it consumes at least one byte or gives up its
//! construct, so that parsing stays linear.

mod patterns;
mod strings;
mod values;

use super::{MAX_DIAGNOSTICS, Parser};
use crate::diagnostic::{Diagnostic, Span};
use crate::token::TokenKind;

/// The longest part of a lexeme that is shown, in bytes.
const MAX_SHOWN: usize = 80;

impl Parser<'_> {
    pub(super) fn report(&mut self, diagnostic: Diagnostic) {
        let kept = match diagnostic.is_error() {
            true => &mut self.errors_kept,
            false => &mut self.warnings_kept,
        };
        let has_room = *kept < MAX_DIAGNOSTICS;
        if diagnostic.is_error() {
            self.is_valid = false;
            if self.last_error == Some(self.at) {
                return;
            }
            self.last_error = Some(self.at);
            // The closing bracket may be inside the unclosed string.
            if self.has_unclosed_string && diagnostic.code == "unclosed-bracket" {
                return;
            }
        }
        if has_room {
            *kept += 1;
            self.diagnostics.push(diagnostic);
        }
    }

    /// Reports that `expected` is missing here.
    fn report_expected(&mut self, expected: &str, hint: Option<String>) {
        let span = match self.at_end() {
            false => self.lexeme(self.at),
            // There is nothing to show at the end, so the last token is shown.
            true => self.last_significant_span(),
        };
        let found = match self.at_end() {
            true => "the end of the text".to_owned(),
            false => self.found(span),
        };
        let message = format!("expected {expected}, found {found}");
        let mut diagnostic = Diagnostic::error("expected-token", span, message);
        diagnostic.hint = hint.or_else(|| self.general_hint());
        self.report(diagnostic);
    }

    /// The lexeme at `offset`, for display. A long one is cut, because it may be displayed many times
    /// without being skipped.
    pub(super) fn lexeme(&self, offset: usize) -> Span {
        let mut end = self.scanner.len().min(offset + MAX_SHOWN);
        while !self.source.is_char_boundary(end) {
            end += 1;
        }
        self.lexeme_within(offset, end)
    }

    /// The lexeme at `offset`, as far as it reaches before `end`.
    fn lexeme_within(&self, offset: usize, end: usize) -> Span {
        let rest = &self.source[offset..end];
        let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '@' | '-');
        let is_arrow = |c: char| matches!(c, '-' | '=' | '~' | '<' | '>');
        let run = |fits: &dyn Fn(char) -> bool| rest.find(|c: char| !fits(c)).unwrap_or(rest.len());
        let length = match rest.chars().next() {
            None => 0,
            Some(c) if c.is_alphanumeric() || c == '_' => run(&is_word),
            Some('-') if rest[1..].starts_with(|c: char| c.is_ascii_digit()) => run(&is_word),
            Some(c) if is_arrow(c) => run(&is_arrow),
            Some(quote @ ('"' | '\'' | '`')) => {
                let close = rest
                    .char_indices()
                    .skip(1)
                    .find(|&(_, c)| c == quote || c == '\n');
                match close {
                    Some((close, c)) if c == quote => close + 1,
                    Some((line_end, _)) => line_end,
                    None => rest.len(),
                }
            }
            Some('.') => run(&|c| c == '.'),
            Some('@') => run(&|c| c == '@'),
            Some(':') => run(&|c| c == ':'),
            Some(c) => c.len_utf8(),
        };
        Span::new(offset as u32, (offset + length) as u32)
    }

    fn found(&self, span: Span) -> String {
        let text = span.text(self.source);
        if text.is_empty() {
            return "the end of the text".to_owned();
        }
        let shown: String = text.chars().take(40).collect();
        let more = if shown.len() < text.len() { "…" } else { "" };
        let shown: String = shown
            .chars()
            .flat_map(|c| {
                if c.is_control() {
                    c.escape_debug().collect()
                } else {
                    vec![c]
                }
            })
            .collect();
        format!("`{shown}{more}`")
    }

    /// Takes one lexeme into the tree as an error.
    fn skip(&mut self) {
        let end = self.lexeme_within(self.at, self.scanner.len()).end;
        self.push(TokenKind::Error, end as usize);
    }

    /// Skips the lexeme here and those right after it without a blank, up to a comma or a bracket.
    fn skip_adjacent(&mut self) {
        while !matches!(
            self.byte(),
            b',' | b'}' | b']' | b')' | b'|' | b'(' | b'{' | b'['
        ) && !matches!(self.byte(), b'\t'..=b'\r' | b' ')
            && !self.at_end()
        {
            self.skip();
        }
    }

    /// Skips lexemes up to one of `stops` or the end of the text, and returns the byte there.
    fn skip_to(&mut self, stops: &[u8]) -> u8 {
        loop {
            let byte = self.peek();
            if self.at_end() || stops.contains(&byte) {
                return byte;
            }
            self.skip();
        }
    }

    /// A hint that depends only on the text here.
    fn general_hint(&self) -> Option<String> {
        let rest = &self.source[self.at..self.scanner.len()];
        let first = rest.chars().next()?;
        let hint = match first {
            '/' if rest.starts_with("/**") => "close this comment with `*/`",
            '/' => "comments are `// to the end of the line` or `/** between */`",
            '#' => "comments start with `//`",
            ';' => "remove the semicolon",
            '“' | '”' | '‘' | '’' => "use straight quotes",
            '–' | '—' | '−' | '→' | '⇒' => {
                "arrows are made of `-`, `=`, `~`, `<` and `>`: `-->`, `==>`"
            }
            '?' | '<'
                if self
                    .tokens
                    .last()
                    .is_some_and(|token| token.kind == TokenKind::Symbol) =>
            {
                "a type that is not a bare word goes in backticks: (name::`Text?`)"
            }
            '\u{feff}' => "remove the byte order mark; it may only be the first character",
            c if !c.is_ascii() && c.is_alphanumeric() => {
                return Some(format!(
                    "a bare name has only ASCII characters; put other names in backticks: `{}`",
                    self.lexeme(self.at).text(self.source)
                ));
            }
            _ => return None,
        };
        Some(hint.to_owned())
    }

    /// Whether no blank or comment is between the last token and the text here.
    fn is_adjacent(&self) -> bool {
        self.tokens
            .last()
            .is_some_and(|token| !token.kind.is_trivia())
    }

    fn last_significant_span(&self) -> Span {
        let Some(index) = (self.significant_end as usize).checked_sub(1) else {
            return Span::empty(self.at as u32);
        };
        let end = self
            .tokens
            .get(index + 1)
            .map_or(self.at as u32, |next| next.start);
        Span::new(self.tokens.get(index).map_or(end, |token| token.start), end)
    }

    fn last_significant_kind(&self) -> Option<TokenKind> {
        let index = (self.significant_end as usize).checked_sub(1)?;
        self.tokens.get(index).map(|token| token.kind)
    }
}
