//! Errors in patterns: at the top level, in subjects and brackets, in paths.

use crate::diagnostic::{Diagnostic, Span};
use crate::parse::{BracketStep, Parser, SubjectPlace};
use crate::scan::starts_symbol;
use crate::token::TokenKind;

const NODES_ONLY: &str =
    "an arrow joins two nodes: `(a)-->(b)`; to join a pattern, put its name in a node";

impl Parser<'_> {
    pub(in crate::parse) fn skip_at_top(&mut self) {
        let expected = "a pattern: `(…)`, `[…]` or an annotation";
        match self.byte() {
            b'{' => {
                let span = Span::new(self.at as u32, self.at as u32 + 1);
                let message = "a record of its own is allowed only once, at the start of the text";
                self.report(
                    Diagnostic::error("misplaced-record", span, message).with_hint(
                        "put it into a pattern, as in `({key: 1})`, or move it to the start",
                    ),
                );
                return self.record();
            }
            b',' => self.report_expected(
                expected,
                Some("remove the comma; patterns at the top level have no separator".to_owned()),
            ),
            closing @ (b')' | b']' | b'}') => self.report_expected(
                expected,
                Some(format!(
                    "remove it; there is no open bracket for `{}` to close",
                    closing as char
                )),
            ),
            b'-' | b'=' | b'~' | b'<' => {
                self.report_expected(expected, Some(NODES_ONLY.to_owned()));
            }
            byte if starts_symbol(byte) || byte == b'`' => {
                let name = self.lexeme(self.at).text(self.source).to_owned();
                self.report_expected(
                    expected,
                    Some(format!("to define it or refer to it, write `({name})`")),
                );
            }
            _ => self.report_expected(expected, None),
        }
        self.skip();
        self.skip_to(b"([@{");
    }

    pub(in crate::parse) fn missing_annotated_pattern(&mut self) {
        let hint = "write the pattern after its annotations";
        self.report_expected("the annotated pattern", Some(hint.to_owned()));
    }

    pub(in crate::parse) fn unexpected_in_annotation(&mut self) {
        let hint = "write `@key(value)`, `@@name` or `@@name:Label`";
        self.report_expected("the annotation's name", Some(hint.to_owned()));
        if !matches!(self.byte(), b'(' | b'[' | b'@') && !self.at_end() {
            self.skip();
        }
    }

    pub(in crate::parse) fn missing_annotation_value(&mut self) {
        let hint = "every annotation has one value: `@key(value)`";
        self.report_expected("`(` and a value", Some(hint.to_owned()));
    }

    pub(in crate::parse) fn expect_closing(&mut self, kind: TokenKind, of_what: &str) {
        if self.peek() != b')' {
            self.report_expected(&format!("`)` to close {of_what}"), None);
            if self.skip_to(b")([@") != b')' {
                return;
            }
        }
        self.bump(kind, 1);
    }

    pub(in crate::parse) fn unexpected_after_subject(
        &mut self,
        place: SubjectPlace,
        opening: usize,
    ) {
        if self.at_end() {
            return self.unclosed_subject(place, opening);
        }
        let (expected, stops): (_, &[u8]) = match place {
            SubjectPlace::Node => ("`)`", b")([]|@"),
            SubjectPlace::Bracket => ("`|` or `]`", b"|])([@"),
            SubjectPlace::Arrow => ("`]`", b"]()|@"),
        };
        let hint = self.subject_hint(place);
        self.report_expected(expected, hint);
        let byte = self.skip_to(stops);
        match (place, byte) {
            (SubjectPlace::Node, b')') => self.bump(TokenKind::ParenClose, 1),
            (SubjectPlace::Arrow, b']') => self.bump(TokenKind::BracketClose, 1),
            _ => {}
        }
    }

    fn unclosed_subject(&mut self, place: SubjectPlace, opening: usize) {
        let (open, close) = match place {
            SubjectPlace::Node => ('(', ')'),
            SubjectPlace::Bracket | SubjectPlace::Arrow => ('[', ']'),
        };
        let span = Span::new(opening as u32, opening as u32 + 1);
        let message = format!("this `{open}` is never closed");
        self.report(
            Diagnostic::error("unclosed-bracket", span, message)
                .with_hint(format!("close it with `{close}`")),
        );
    }

    fn subject_hint(&self, place: SubjectPlace) -> Option<String> {
        let previous = self.tokens.last().map(|token| token.kind);
        let is_adjacent = previous.is_some_and(|kind| !kind.is_trivia());
        match self.byte() {
            b':' => Some("a subject is a name, then labels, then a record".to_owned()),
            b'"' | b'\'' => {
                Some("a name is a bare word, or text in backticks; quotes are for values".to_owned())
            }
            b',' if place == SubjectPlace::Node => Some(
                "a node has one subject; a signature in text form goes into the property `typeSignature`"
                    .to_owned(),
            ),
            b',' if place == SubjectPlace::Bracket => {
                Some("elements come after a `|`: `[name | first, second]`".to_owned())
            }
            b'|' if place == SubjectPlace::Arrow => Some("an arrow has no elements".to_owned()),
            b'(' | b'[' if place == SubjectPlace::Bracket => {
                Some("put a `|` between the subject and the elements".to_owned())
            }
            _ if previous == Some(TokenKind::Integer) && is_adjacent => Some(
                "the only numbers that can be names are integers; put other names in backticks".to_owned(),
            ),
            byte if starts_symbol(byte) => {
                Some("a name is one word; put a name of several words in backticks".to_owned())
            }
            _ => None,
        }
    }

    pub(in crate::parse) fn unexpected_element(&mut self) -> BracketStep {
        let expected = "an element: `[…]`, `(…)` or a name";
        match self.byte() {
            b']' => {
                let after_comma = self.last_significant_kind() == Some(TokenKind::Comma);
                let hint = if after_comma {
                    "remove the comma before it"
                } else {
                    "remove the `|`, or put an element after it"
                };
                self.report_expected(expected, Some(hint.to_owned()));
            }
            b',' => self.report_expected(expected, None),
            b'@' => return self.annotation_in_bracket(),
            b'"' | b'\'' => {
                let hint = "a name is a bare word, or text in backticks; quotes are for values";
                self.report_expected(expected, Some(hint.to_owned()));
                self.skip();
            }
            b'{' => {
                let hint = "a record belongs to a subject: `({key: 1})`";
                self.report_expected(expected, Some(hint.to_owned()));
                self.record();
            }
            _ => {
                self.report_expected(expected, None);
                if !self.at_end() {
                    self.skip();
                }
            }
        }
        BracketStep::AfterElement
    }

    /// Reports that annotations belong to the top level, and skips one.
    fn annotation_in_bracket(&mut self) -> BracketStep {
        let hint = "annotations are allowed only before top-level patterns";
        self.report_expected("an element: `[…]`, `(…)` or a name", Some(hint.to_owned()));
        let is_property = self.scanner.byte(self.at + 1) != b'@';
        self.skip();
        if starts_symbol(self.peek()) {
            self.skip();
        }
        if is_property && self.peek() == b'(' {
            self.skip();
            if self.skip_to(b")([]") == b')' {
                self.skip();
            }
        }
        BracketStep::Element
    }

    pub(in crate::parse) fn unexpected_after_element(&mut self) -> BracketStep {
        let expected = "`,` or `]`";
        let byte = self.byte();
        match byte {
            b'(' | b'[' | b'`' => {
                self.report_expected(expected, Some("put a comma between elements".to_owned()));
                return BracketStep::Element;
            }
            b'@' => return self.annotation_in_bracket(),
            b'-' | b'=' | b'~' | b'<' => {
                self.report_expected(expected, Some(NODES_ONLY.to_owned()));
                self.skip();
            }
            b':' | b'{' => {
                let hint =
                    "a bare name is a reference; to define a pattern, write `[name:Label {…}]`";
                self.report_expected(expected, Some(hint.to_owned()));
                if byte == b'{' {
                    self.record();
                } else {
                    self.skip();
                    self.skip();
                }
            }
            _ if starts_symbol(byte) && !self.is_adjacent() => {
                self.report_expected(expected, Some("put a comma between elements".to_owned()));
                return BracketStep::Element;
            }
            _ => {
                self.report_expected(expected, None);
                self.skip();
            }
        }
        BracketStep::AfterElement
    }

    /// Closes every open bracket at the end of the text.
    pub(in crate::parse) fn unclosed_bracket(&mut self, open: &mut Vec<usize>) {
        if let Some(&innermost) = open.last() {
            let token = self.nodes[innermost].first_token as usize;
            let start = self.tokens[token].start;
            let message = match open.len() {
                1 => "this `[` is never closed".to_owned(),
                count => format!("this `[` is never closed ({count} brackets are open at the end)"),
            };
            self.report(
                Diagnostic::error("unclosed-bracket", Span::new(start, start + 1), message)
                    .with_hint("close it with `]`"),
            );
        }
        while let Some(bracket) = open.pop() {
            self.close(bracket);
        }
    }

    pub(in crate::parse) fn missing_node(&mut self) {
        let byte = self.byte();
        let word = self.lexeme(self.at).text(self.source).to_owned();
        let hint = match byte {
            b'[' => Some(NODES_ONLY.to_owned()),
            _ if byte.is_ascii_uppercase() => Some(
                "as a path, a signature is `(name::Text)==>(::Text)`; its text form goes into the property `typeSignature`"
                    .to_owned(),
            ),
            _ if starts_symbol(byte) => Some(format!("write `({word})`")),
            _ => None,
        };
        self.report_expected("a node `(…)` after the arrow", hint);
        while starts_symbol(self.peek()) {
            self.skip();
        }
    }

    pub(in crate::parse) fn lone_angle(&mut self) {
        let span = self.lexeme(self.at);
        let message = format!("{} is not an arrow", self.found(span));
        self.report(
            Diagnostic::error("broken-arrow", span, message)
                .with_hint("an arrow to the left is `<--`, `<==` or `<~~`"),
        );
        self.skip();
    }

    pub(in crate::parse) fn unexpected_in_arrow(&mut self, start: usize, family: u8) {
        let line = family as char;
        let span = self.lexeme(self.at);
        match self.byte() {
            b'>' => {
                let whole = Span::new(start as u32, self.at as u32 + 1);
                let written = whole.text(self.source).to_owned();
                let right = match written.as_bytes() {
                    [b'<', ..] => format!("<{line}{line}>"),
                    _ => format!("{line}{line}>"),
                };
                self.report(
                    Diagnostic::error(
                        "broken-arrow",
                        whole,
                        format!("`{written}` is only a part of an arrow"),
                    )
                    .with_hint(format!("did you mean `{right}`?")),
                );
                self.bump(TokenKind::Error, 1);
            }
            b'-' | b'=' | b'~' => {
                let message = format!(
                    "an arrow that starts with `{line}` cannot end with {}",
                    self.found(span)
                );
                self.report(
                    Diagnostic::error("broken-arrow", span, message).with_hint(format!(
                        "end it with `{line}` or `{line}>`, so that both halves match"
                    )),
                );
                self.skip();
            }
            b'(' => {
                let hint = format!("did you mean `{line}{line}` or `{line}{line}>`?");
                self.report_expected("the second half of the arrow", Some(hint));
            }
            _ => {
                let hint =
                    format!("an arrow is `{line}{line}`, `{line}{line}>` or `{line}[…]{line}>`");
                self.report_expected("the second half of the arrow", Some(hint));
            }
        }
    }

    pub(in crate::parse) fn missing_label(&mut self) {
        let hint = match self.byte() {
            b'0'..=b'9' => {
                Some("a label starts with a letter; put other labels in backticks".to_owned())
            }
            b'"' | b'\'' => Some("a label is a bare word, or text in backticks".to_owned()),
            b'[' | b'{' => Some(
                "a type that is not a bare word goes in backticks: (name::`[Text]`)".to_owned(),
            ),
            _ => None,
        };
        self.report_expected("a label after the colon", hint);
        if self.byte() == b'[' {
            self.skip_to(b"])(|@");
            if self.byte() == b']' {
                self.skip();
            }
            return;
        }
        if !matches!(
            self.byte(),
            b')' | b']' | b'|' | b'{' | b'(' | b'[' | b':' | b'@' | b','
        ) && !self.at_end()
        {
            self.skip();
        }
    }
}
