//! What the parser says when something does not fit, and how it goes on. Only broken texts come
//! here, so this code is written for the reader of the message, not for speed; but every way
//! through it takes at least one byte or gives up its construct, so that parsing stays linear.

use super::value::{InList, List, Room};
use super::{MAX_DIAGNOSTICS, Next, Parser, Place};
use crate::diagnostic::{Diagnostic, Span};
use crate::scan::{QuotedText, starts_symbol};
use crate::token::TokenKind;

impl Parser<'_> {
    pub(super) fn report(&mut self, diagnostic: Diagnostic) {
        if diagnostic.is_error() {
            self.is_valid = false;
            if self.last_error == Some(self.at) {
                return;
            }
            self.last_error = Some(self.at);
            // What an unclosed string swallowed may well have closed the rest.
            if self.has_unclosed_string && diagnostic.code == "unclosed-bracket" {
                return;
            }
        }
        if self.diagnostics.len() < MAX_DIAGNOSTICS {
            self.diagnostics.push(diagnostic);
        }
    }

    /// Reports that `expected` should stand here.
    fn expected(&mut self, expected: &str, hint: Option<String>) {
        let span = self.lexeme(self.at);
        let message = format!("expected {expected}, found {}", self.found(span));
        let mut diagnostic = Diagnostic::error("expected-token", span, message);
        diagnostic.hint = hint.or_else(|| self.general_hint());
        self.report(diagnostic);
    }

    /// The lexeme at `offset` as a reader would cut it, for showing and for skipping.
    pub(super) fn lexeme(&self, offset: usize) -> Span {
        let rest = &self.source[offset..self.scanner.len()];
        let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '@' | '-');
        let is_arrow = |c: char| matches!(c, '-' | '=' | '~' | '<' | '>');
        let run = |fits: &dyn Fn(char) -> bool| rest.find(|c: char| !fits(c)).unwrap_or(rest.len());
        let length = match rest.chars().next() {
            None => 0,
            Some(c) if c.is_alphanumeric() || c == '_' => run(&is_word),
            Some('-') if rest[1..].starts_with(|c: char| c.is_ascii_digit()) => run(&is_word),
            Some(c) if is_arrow(c) => run(&is_arrow),
            Some(quote @ ('"' | '\'' | '`')) => {
                let end = self.scanner.text_end(offset + 1, quote as u8);
                end + usize::from(self.scanner.byte(end) == quote as u8) - offset
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
        let end = self.lexeme(self.at).end as usize;
        self.push(TokenKind::Error, end);
    }

    /// Skips what stands here and everything that touches it, up to a comma or a bracket.
    fn skip_glued(&mut self) {
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

    /// A hint that depends only on what stands here.
    fn general_hint(&self) -> Option<String> {
        let rest = &self.source[self.at..self.scanner.len()];
        let first = rest.chars().next()?;
        let hint = match first {
            '/' if rest.starts_with("/**") => "close this comment with `*/`",
            '/' => "comments are `// to the end of the line` or `/** between */`",
            '#' => "comments start with `//`",
            ';' => "nothing ends with a semicolon here",
            '“' | '”' | '‘' | '’' => "use straight quotes",
            '\u{feff}' => "remove the byte order mark; it may only be the first character",
            c if !c.is_ascii() && c.is_alphanumeric() => {
                return Some(format!(
                    "a bare name is ASCII; put others in backticks: `{}`",
                    self.lexeme(self.at).text(self.source)
                ));
            }
            _ => return None,
        };
        Some(hint.to_owned())
    }

    // ---- top level -----------------------------------------------------------------------------

    pub(super) fn skip_at_top(&mut self) {
        let expected = "a pattern: `(…)`, `[…]` or an annotation";
        match self.byte() {
            b'{' => {
                let span = Span::new(self.at as u32, self.at as u32 + 1);
                let message = "a record may stand alone only once, at the very start of the text";
                self.report(
                    Diagnostic::error("misplaced-record", span, message)
                        .with_hint("put it into a pattern, as in `({key: 1})`, or move it up"),
                );
                return self.record();
            }
            b',' => self.expected(
                expected,
                Some("patterns at the top level stand side by side, without commas".to_owned()),
            ),
            closing @ (b')' | b']' | b'}') => self.expected(
                expected,
                Some(format!(
                    "nothing is open that `{}` could close",
                    closing as char
                )),
            ),
            b'-' | b'=' | b'~' | b'<' => self.expected(expected, Some(NODES_ONLY.to_owned())),
            byte if starts_symbol(byte) || byte == b'`' => {
                let name = self.lexeme(self.at).text(self.source).to_owned();
                self.expected(
                    expected,
                    Some(format!("to define or name it, write `({name})`")),
                );
            }
            _ => self.expected(expected, None),
        }
        self.skip();
        self.skip_to(b"([@{");
    }

    pub(super) fn missing_annotated_pattern(&mut self) {
        let hint = "an annotation is about the one pattern that follows it";
        self.expected("the pattern that is annotated", Some(hint.to_owned()));
    }

    pub(super) fn unexpected_in_annotation(&mut self) {
        let hint = "write `@key(value)`, `@@name` or `@@name:Label`";
        self.expected("the annotation's name", Some(hint.to_owned()));
        if !matches!(self.byte(), b'(' | b'[' | b'@') && !self.at_end() {
            self.skip();
        }
    }

    pub(super) fn missing_annotation_value(&mut self) {
        let hint = "every annotation has one value: `@key(value)`";
        self.expected("`(` and a value", Some(hint.to_owned()));
    }

    pub(super) fn expect_closing(&mut self, kind: TokenKind, of_what: &str) {
        if self.peek() != b')' {
            self.expected(&format!("`)` to close {of_what}"), None);
            if self.skip_to(b")([@") != b')' {
                return;
            }
        }
        self.bump(kind, 1);
    }

    // ---- subjects, brackets, elements ----------------------------------------------------------

    pub(super) fn unexpected_after_subject(&mut self, place: Place) {
        let (expected, stops): (_, &[u8]) = match place {
            Place::Node => ("`)`", b")([]|@"),
            Place::Bracket => ("`|` or `]`", b"|])([@"),
            Place::Arrow => ("`]`", b"]()|@"),
        };
        let hint = self.subject_hint(place);
        self.expected(expected, hint);
        let byte = self.skip_to(stops);
        match (place, byte) {
            (Place::Node, b')') => self.bump(TokenKind::ParenClose, 1),
            (Place::Arrow, b']') => self.bump(TokenKind::BracketClose, 1),
            _ => {}
        }
    }

    fn subject_hint(&self, place: Place) -> Option<String> {
        let previous = self.tokens.last().map(|token| token.kind);
        let is_adjacent = previous.is_some_and(|kind| !kind.is_trivia());
        match self.byte() {
            0 => match place {
                Place::Node => Some("this `(` is never closed".to_owned()),
                Place::Bracket | Place::Arrow => Some("this `[` is never closed".to_owned()),
            },
            b':' => Some("a subject is a name, then labels, then a record".to_owned()),
            b'"' | b'\'' => {
                Some("a name is a bare word, or text in backticks; quotes make values".to_owned())
            }
            b',' if place == Place::Node => Some(
                "a node has one subject; a signature in text form goes into the property `typeSignature`"
                    .to_owned(),
            ),
            b',' if place == Place::Bracket => {
                Some("elements come after a `|`: `[name | first, second]`".to_owned())
            }
            b'|' if place == Place::Arrow => Some("an arrow has no elements".to_owned()),
            b'(' | b'[' if place == Place::Bracket => {
                Some("put a `|` between the subject and the elements".to_owned())
            }
            _ if previous == Some(TokenKind::Integer) && is_adjacent => Some(
                "a name may be an integer, but no other number; put it in backticks".to_owned(),
            ),
            byte if starts_symbol(byte) => {
                Some("a name is one word; put more in backticks".to_owned())
            }
            _ => None,
        }
    }

    pub(super) fn unexpected_element(&mut self) -> Next {
        let expected = "an element: `[…]`, `(…)` or a name";
        match self.byte() {
            b']' => {
                let after_comma = self.last_meaningful() == Some(TokenKind::Comma);
                let hint = if after_comma {
                    "remove the comma before it"
                } else {
                    "remove the `|`, or put an element after it"
                };
                self.expected(expected, Some(hint.to_owned()));
            }
            b',' => self.expected(expected, None),
            b'@' => return self.annotation_in_bracket(),
            b'"' | b'\'' => {
                let hint = "a name is a bare word, or text in backticks; quotes make values";
                self.expected(expected, Some(hint.to_owned()));
                self.skip();
            }
            b'{' => {
                let hint = "a record belongs to a subject: `({key: 1})`";
                self.expected(expected, Some(hint.to_owned()));
                self.record();
            }
            _ => {
                self.expected(expected, None);
                if !self.at_end() {
                    self.skip();
                }
            }
        }
        Next::AfterElement
    }

    /// Says that annotations belong to the top level, and skips one.
    fn annotation_in_bracket(&mut self) -> Next {
        let hint = "annotations stand only before patterns of the top level";
        self.expected("an element: `[…]`, `(…)` or a name", Some(hint.to_owned()));
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
        Next::Element
    }

    pub(super) fn unexpected_after_element(&mut self) -> Next {
        let expected = "`,` or `]`";
        let byte = self.byte();
        match byte {
            b'(' | b'[' | b'`' => {
                self.expected(expected, Some("put a comma between elements".to_owned()));
                return Next::Element;
            }
            b'@' => return self.annotation_in_bracket(),
            b'-' | b'=' | b'~' | b'<' => {
                self.expected(expected, Some(NODES_ONLY.to_owned()));
                self.skip();
            }
            b':' | b'{' => {
                let hint = "a bare name only refers; to define it write `[name:Label {…}]`";
                self.expected(expected, Some(hint.to_owned()));
                if byte == b'{' {
                    self.record();
                } else {
                    self.skip();
                    self.skip();
                }
            }
            _ if starts_symbol(byte) && !self.is_glued() => {
                self.expected(expected, Some("put a comma between elements".to_owned()));
                return Next::Element;
            }
            _ => {
                self.expected(expected, None);
                self.skip();
            }
        }
        Next::AfterElement
    }

    /// Closes every open bracket at the end of the text.
    pub(super) fn unclosed_bracket(&mut self, open: &mut Vec<usize>) {
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

    // ---- paths ---------------------------------------------------------------------------------

    pub(super) fn missing_node(&mut self) {
        let byte = self.byte();
        let word = self.lexeme(self.at).text(self.source).to_owned();
        let hint = match byte {
            b'[' => Some(NODES_ONLY.to_owned()),
            _ if starts_symbol(byte) => Some(format!("write `({word})`")),
            _ => None,
        };
        self.expected("a node `(…)` after the arrow", hint);
        if starts_symbol(byte) {
            self.skip();
        }
    }

    pub(super) fn lone_angle(&mut self) {
        let span = self.lexeme(self.at);
        let message = format!("{} is not an arrow", self.found(span));
        self.report(
            Diagnostic::error("broken-arrow", span, message)
                .with_hint("an arrow to the left is `<--`, `<==` or `<~~`"),
        );
        self.skip();
    }

    pub(super) fn unexpected_in_arrow(&mut self, start: usize, family: u8) {
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
                        "end it with `{line}` or `{line}>`, so that both halves are of one kind"
                    )),
                );
                self.skip();
            }
            b'(' => {
                let hint = format!("did you mean `{line}{line}` or `{line}{line}>`?");
                self.expected("the second half of the arrow", Some(hint));
            }
            _ => {
                let hint =
                    format!("an arrow is `{line}{line}`, `{line}{line}>` or `{line}[…]{line}>`");
                self.expected("the second half of the arrow", Some(hint));
            }
        }
    }

    pub(super) fn missing_label(&mut self) {
        let hint = match self.byte() {
            b'0'..=b'9' => Some("a label starts with a letter; put others in backticks".to_owned()),
            b'"' | b'\'' => Some("a label is a bare word, or text in backticks".to_owned()),
            _ => None,
        };
        self.expected("a label after the colon", hint);
        if !matches!(
            self.byte(),
            b')' | b']' | b'|' | b'{' | b'(' | b'[' | b':' | b'@' | b','
        ) && !self.at_end()
        {
            self.skip();
        }
    }

    // ---- records and values --------------------------------------------------------------------

    pub(super) fn trailing_comma(&mut self) {
        let comma = self
            .tokens
            .iter()
            .rposition(|token| token.kind == TokenKind::Comma)
            .map_or(self.at as u32, |index| self.tokens[index].start);
        self.report(
            Diagnostic::error(
                "trailing-comma",
                Span::new(comma, comma + 1),
                "a comma must be followed by another item",
            )
            .with_hint("remove the comma"),
        );
    }

    pub(super) fn missing_key(&mut self) {
        let byte = self.byte();
        let hint = match byte {
            b'\'' => Some("put the key in double quotes or backticks".to_owned()),
            b'0'..=b'9' | b'-' => Some("a number is no key; put it in backticks".to_owned()),
            b',' => Some("there is a comma too many".to_owned()),
            _ => None,
        };
        self.expected("a key: a word, or text in backticks or double quotes", hint);
        if matches!(byte, b',' | b'}' | b')' | b']' | b'|' | b'(' | b'[') || self.at_end() {
            return;
        }
        self.skip();
        if self.peek() == b':' {
            self.separator();
            self.value(Room::Everything);
        }
    }

    pub(super) fn missing_colon(&mut self) {
        let hint = match self.byte() {
            b'=' => Some("a key and its value are joined by a colon".to_owned()),
            _ => None,
        };
        self.expected("`:` and a value after the key", hint);
        if self.byte() == b'=' {
            self.skip();
            self.value(Room::Everything);
        }
    }

    pub(super) fn double_colon_in_map(&mut self) {
        let span = Span::new(self.at as u32, self.at as u32 + 2);
        self.report(
            Diagnostic::error(
                "double-colon",
                span,
                "`::` may not stand in a map, only `:`",
            )
            .with_hint("write a single colon"),
        );
    }

    pub(super) fn unexpected_in_list(&mut self, list: List) -> InList {
        let (closing, _) = list.closing();
        let (opening, opener) = match list {
            List::Braces { opening } => (opening, '{'),
            List::Array { opening } => (opening, '['),
        };
        let byte = self.byte();
        if self.at_end() {
            let span = Span::new(opening as u32, opening as u32 + 1);
            let message = format!("this `{opener}` is never closed");
            self.report(
                Diagnostic::error("unclosed-bracket", span, message)
                    .with_hint(format!("close it with `{}`", closing as char)),
            );
            return InList::Stop;
        }
        if self.is_glued() && self.malformed_number() {
            return InList::Again;
        }
        let expected = format!("`,` or `{}`", closing as char);
        let starts_item = match list {
            List::Braces { .. } => starts_symbol(byte) || matches!(byte, b'"' | b'`'),
            List::Array { .. } => {
                starts_symbol(byte) || matches!(byte, b'"' | b'\'' | b'`' | b'0'..=b'9')
            }
        };
        if byte == b'`' && self.last_meaningful() == Some(TokenKind::Boolean) {
            let hint = "`true` and `false` cannot tag a text; choose another tag";
            self.expected(&expected, Some(hint.to_owned()));
            self.skip();
            return InList::Again;
        }
        if starts_item {
            self.expected(&expected, Some("put a comma between items".to_owned()));
            return InList::Item;
        }
        let closes_another = matches!(byte, b')' | b']' | b'}' | b'|');
        let hint = closes_another.then(|| {
            format!(
                "the `{opener}` before it is not closed; close it with `{}`",
                closing as char
            )
        });
        self.expected(&expected, hint);
        if closes_another {
            return InList::Stop;
        }
        self.skip();
        InList::Again
    }

    /// Whether the last token touches what stands here.
    fn is_glued(&self) -> bool {
        self.tokens
            .last()
            .is_some_and(|token| !token.kind.is_trivia())
    }

    fn last_meaningful(&self) -> Option<TokenKind> {
        let index = (self.end_of_meaning as usize).checked_sub(1)?;
        self.tokens.get(index).map(|token| token.kind)
    }

    /// Explains a number with something glued to it, such as `2.5kg`, and skips it.
    fn malformed_number(&mut self) -> bool {
        let Some(last) = self.tokens.last() else {
            return false;
        };
        let is_number = matches!(
            last.kind,
            TokenKind::Integer
                | TokenKind::Decimal
                | TokenKind::Hexadecimal
                | TokenKind::Octal
                | TokenKind::Measurement
        );
        let rest = &self.source[self.at..self.scanner.len()];
        let length = rest
            .find(|c: char| !(c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | '%')))
            .unwrap_or(rest.len());
        if !is_number || length == 0 {
            return false;
        }
        let start = last.start as usize;
        let text = &self.source[start..self.at + length];
        let hint = number_hint(text);
        let span = Span::new(start as u32, (self.at + length) as u32);
        let message = format!("{} is not a number", self.found(span));
        self.report(Diagnostic::error("malformed-number", span, message).with_hint(hint));
        self.push(TokenKind::Error, self.at + length);
        true
    }

    pub(super) fn nested_array(&mut self) {
        self.too_deep("an array holds only scalars, no arrays");
    }

    pub(super) fn nested_map(&mut self, room: Room) {
        self.too_deep(match room {
            Room::Scalar => "an array holds only scalars, no maps",
            Room::NoMap | Room::Everything => "a map holds scalars and arrays, no maps",
        });
    }

    /// Reports a value nested too deeply and skips it to its closing bracket.
    fn too_deep(&mut self, message: &str) {
        let span = Span::new(self.at as u32, self.at as u32 + 1);
        self.report(
            Diagnostic::error("nested-value", span, message)
                .with_hint("deeper data becomes patterns: `[outer | [inner {…}]]`"),
        );
        let mut depth = 0_usize;
        loop {
            match self.peek() {
                b'[' | b'{' => depth += 1,
                b']' | b'}' => depth -= 1,
                b'(' | b')' | b'|' => return,
                _ if self.at_end() => return,
                _ => {}
            }
            self.skip();
            if depth == 0 {
                return;
            }
        }
    }

    pub(super) fn missing_value(&mut self) {
        let rest = &self.source[self.at..self.scanner.len()];
        let hint = match rest.as_bytes() {
            [b'+', ..] => Some("a positive number has no sign"),
            [b'.', b'0'..=b'9', ..] => Some("write a digit before the point: `0.5`"),
            [b'.', b'.', b'0'..=b'9', ..] => {
                Some("a range without a lower bound has three dots: `...5`")
            }
            [b'(', ..] => Some("a pattern is no value; give it a name and refer to it"),
            _ => None,
        };
        self.expected("a value", hint.map(str::to_owned));
        self.skip_glued();
    }

    pub(super) fn missing_range_bound(&mut self) {
        self.expected("a number as the bound of the range", None);
        self.skip_glued();
    }

    pub(super) fn empty_array(&mut self, opening: usize) {
        let span = Span::new(opening as u32, self.at as u32 + 1);
        self.report(
            Diagnostic::error("empty-array", span, "an array has at least one item")
                .with_hint("leave the property out instead"),
        );
    }

    // ---- strings -------------------------------------------------------------------------------

    pub(super) fn doubtful_string(&mut self, found: QuotedText, end: usize) {
        let span = Span::new(self.at as u32, end as u32);
        if found.holds_comment {
            return self.comment_in_string(span);
        }
        self.report(
            Diagnostic::warning(
                "string-runs-on",
                span,
                "the text ends before its closing quote: blanks, line breaks and comments between them are not part of it",
            )
            .with_hint("put the quote right after the text, or use a fenced string for several lines"),
        );
    }

    pub(super) fn comment_in_string(&mut self, span: Span) {
        let message = "a comment at the start of this string is not part of its text";
        self.report(Diagnostic::warning("comment-in-string", span, message).with_hint(SLASHES));
    }

    pub(super) fn unterminated_quote(&mut self, kind: TokenKind, found: QuotedText) {
        let quote = self.byte();
        let plain_end = self.scanner.text_end(self.at + 1, quote);
        if found.holds_comment && self.scanner.byte(plain_end) == quote {
            let span = Span::new(self.at as u32, plain_end as u32 + 1);
            let message = "`//` or `/**` at the start of a quoted text begins a comment, which swallows the closing quote";
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
        self.push(TokenKind::Error, plain_end);
    }

    fn bad_escape(&mut self, kind: TokenKind, backslash: usize) {
        let quote = self.byte();
        let mut end = backslash;
        while self.scanner.byte(end) == b'\\' {
            let escaped = self.source[end + 1..].chars().next();
            let length = 1 + escaped.map_or(0, char::len_utf8);
            if self.diagnostics.len() < MAX_DIAGNOSTICS {
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

const NODES_ONLY: &str = "arrows join nodes: `(a)-->(b)`; refer to a pattern by its name in a node";

const SLASHES: &str = "write the slashes as `\\/\\/`, or let the text start with something else";

fn number_hint(text: &str) -> &'static str {
    let bytes = text.as_bytes();
    let is_date = bytes.len() >= 8
        && bytes[..4].iter().all(u8::is_ascii_digit)
        && bytes.get(4) == Some(&b'-');
    let has_fraction = text.contains('.');
    let letters = text.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '-' | '.'));
    if is_date {
        return "write a date as a tagged text: date`2024-01-15`";
    }
    if letters.starts_with(['e', 'E']) {
        return "numbers have no exponent; write the digits out";
    }
    if has_fraction && !letters.is_empty() {
        return "a measurement is a whole number and a unit: `12kg`";
    }
    if text.contains("..") {
        return "a range is `1..5`, `1...` or `...5`";
    }
    if text.ends_with('.') {
        return "write a digit after the point: `1.0`";
    }
    if text.trim_start_matches('-').starts_with('0') {
        return "a number with a leading zero is octal (`017`) or hexadecimal (`0xFF`), unsigned";
    }
    "put it in quotes if it is a text"
}
