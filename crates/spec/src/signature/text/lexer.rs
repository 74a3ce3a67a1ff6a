//! Splits the text form of a signature into tokens in one pass. Errors inside a token, such as an
//! unknown escape, are reported here; all other errors are reported by the parser.

use serde_json::Number;
use windlass_gram::{Diagnostic, Span};

use super::{Report, code};

/// A token of the text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) span: Span,
}

/// The kind of a token.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    /// One of `( ) [ ] { } , : = | ?`.
    Mark(char),
    /// `-->`.
    Arrow,
    /// Probably a misspelt `-->`.
    WrongArrow,
    /// A name, a type's name or a keyword.
    Word(String),
    /// A string literal, unescaped.
    Text(String),
    /// A name in backticks.
    Backticked(String),
    /// A number literal.
    Number(Number),
    /// A character that starts no token, or a literal that is reported already.
    Unknown,
    /// The end of the text.
    End,
}

/// Tokens of `source`; the last one is [`Kind::End`].
pub(super) fn tokens(source: &str, report: &mut Report) -> Vec<Token> {
    let mut lexer = Lexer {
        source,
        offset: 0,
        report,
    };
    let mut tokens = Vec::new();
    loop {
        lexer.take_while(char::is_whitespace);
        let start = lexer.offset;
        let kind = lexer.token();
        let ended = kind == Kind::End;
        tokens.push(Token {
            kind,
            span: span(start, lexer.offset),
        });
        if ended {
            return tokens;
        }
    }
}

/// A span of offsets, clamped to the largest offset of a span.
pub(super) fn span(start: usize, end: usize) -> Span {
    let offset = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
    Span::new(offset(start), offset(end))
}

struct Lexer<'s, 'r> {
    source: &'s str,
    offset: usize,
    report: &'r mut Report,
}

impl<'s> Lexer<'s, '_> {
    fn rest(&self) -> &'s str {
        self.source.get(self.offset..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn take(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.offset += character.len_utf8();
        Some(character)
    }

    fn take_while(&mut self, belongs: impl Fn(char) -> bool) {
        let rest = self.rest();
        self.offset += rest
            .find(|character| !belongs(character))
            .unwrap_or(rest.len());
    }

    fn token(&mut self) -> Kind {
        if let Some(arrow) = self.arrow() {
            return arrow;
        }
        let start = self.offset;
        let Some(first) = self.take() else {
            return Kind::End;
        };
        match first {
            '(' | ')' | '[' | ']' | '{' | '}' | ',' | ':' | '=' | '|' | '?' => Kind::Mark(first),
            '"' | '\'' => self.string(start, first),
            '`' => self.backticked(start),
            '0'..='9' => self.number(start),
            '-' if self.peek().is_some_and(|next| next.is_ascii_digit()) => self.number(start),
            '_' => self.word(start),
            letter if letter.is_alphabetic() => self.word(start),
            _ => Kind::Unknown,
        }
    }

    /// Anything that looks like an arrow: up to four dashes or equals signs and a `>`, or an arrow
    /// character. The limit avoids scanning a long row of dashes repeatedly.
    fn arrow(&mut self) -> Option<Kind> {
        let rest = self.rest();
        let mut length = 0;
        for (index, character) in rest.chars().take(5).enumerate() {
            length += character.len_utf8();
            match character {
                '-' | '=' | '–' | '—' => {}
                '>' if index > 0 => {
                    self.offset += length;
                    let exact = rest.get(..length) == Some("-->");
                    return Some(if exact { Kind::Arrow } else { Kind::WrongArrow });
                }
                '→' | '⟶' | '⇒' if index == 0 => {
                    self.offset += length;
                    return Some(Kind::WrongArrow);
                }
                _ => return None,
            }
        }
        None
    }

    fn word(&mut self, start: usize) -> Kind {
        loop {
            self.take_while(|next| next.is_alphanumeric() || matches!(next, '_' | '.'));
            let rest = self.rest();
            // A dash belongs to the word unless an arrow begins there.
            if !rest.starts_with('-') || rest.starts_with("->") || rest.starts_with("-->") {
                break;
            }
            self.offset += 1;
        }
        Kind::Word(
            self.source
                .get(start..self.offset)
                .unwrap_or_default()
                .to_owned(),
        )
    }

    fn number(&mut self, start: usize) -> Kind {
        let digit = |character: char| character.is_ascii_digit();
        self.take_while(digit);
        let mut integral = true;
        let follows = |rest: &str, skip: usize| {
            rest.get(skip..)
                .is_some_and(|rest| rest.starts_with(|next: char| next.is_ascii_digit()))
        };
        if self.rest().starts_with('.') && follows(self.rest(), 1) {
            integral = false;
            self.offset += 1;
            self.take_while(digit);
        }
        if self.rest().starts_with(['e', 'E']) {
            let signed = self
                .rest()
                .get(1..)
                .is_some_and(|rest| rest.starts_with(['+', '-']));
            let skip = 1 + usize::from(signed);
            if follows(self.rest(), skip) {
                integral = false;
                self.offset += skip;
                self.take_while(digit);
            }
        }
        let literal = self.source.get(start..self.offset).unwrap_or_default();
        let digits = literal.trim_start_matches('-');
        let padded =
            digits.starts_with('0') && digits.get(1..).is_some_and(|d| d.starts_with(digit));
        let number = if padded {
            None
        } else if integral {
            let small = literal.parse::<i64>().map(Number::from);
            let large = || literal.parse::<u64>().map(Number::from);
            small.or_else(|_| large()).ok().or_else(|| float(literal))
        } else {
            float(literal)
        };
        number.map_or_else(
            || {
                let message = format!("`{}` is not a JSON number", super::shortened(literal));
                let span = span(start, self.offset);
                self.report
                    .push(Diagnostic::error(code::SYNTAX, span, message));
                Kind::Unknown
            },
            Kind::Number,
        )
    }

    fn backticked(&mut self, start: usize) -> Kind {
        let begin = self.offset;
        self.take_while(|next| !matches!(next, '`' | '\n'));
        let name = self
            .source
            .get(begin..self.offset)
            .unwrap_or_default()
            .to_owned();
        if self.peek() == Some('`') {
            self.offset += 1;
        } else {
            self.unterminated(start, "name", '`');
        }
        Kind::Backticked(name)
    }

    fn string(&mut self, start: usize, quote: char) -> Kind {
        let mut text = String::new();
        loop {
            let from = self.offset;
            self.take_while(|next| next != quote && !matches!(next, '\\' | '\n'));
            text.push_str(self.source.get(from..self.offset).unwrap_or_default());
            match self.peek() {
                Some('\\') => self.escape(&mut text),
                Some(next) if next == quote => {
                    self.offset += 1;
                    return Kind::Text(text);
                }
                // A string ends with its line, so that a missing quote does not affect the rest.
                _ => {
                    self.unterminated(start, "string", quote);
                    return Kind::Text(text);
                }
            }
        }
    }

    fn unterminated(&mut self, start: usize, what: &str, quote: char) {
        let message = format!("this {what} is not closed before the end of the line");
        let mut hint = format!("close it with `{quote}`");
        if quote == '`' {
            hint = "close it with a backtick".to_owned();
        } else if self.peek() == Some('\n') {
            hint.push_str("; write a line break inside a string as `\\n`");
        }
        let span = span(start, self.offset);
        self.report
            .push(Diagnostic::error(code::SYNTAX, span, message).with_hint(hint));
    }

    fn escape(&mut self, text: &mut String) {
        let start = self.offset;
        self.offset += 1;
        let plain = match self.peek() {
            Some(same @ ('"' | '\'' | '\\' | '/')) => Some(same),
            Some('b') => Some('\u{8}'),
            Some('f') => Some('\u{c}'),
            Some('n') => Some('\n'),
            Some('r') => Some('\r'),
            Some('t') => Some('\t'),
            Some('u') => {
                self.offset += 1;
                match self.code_point() {
                    Some(character) => text.push(character),
                    None => self.bad_escape(start),
                }
                return;
            }
            _ => None,
        };
        match plain {
            Some(character) => {
                self.offset += 1;
                text.push(character);
            }
            None => self.bad_escape(start),
        }
    }

    fn bad_escape(&mut self, start: usize) {
        let end = self
            .peek()
            .map_or(self.offset, |next| self.offset + next.len_utf8());
        let message = "this is not a JSON string escape".to_owned();
        let hint = r#"the escapes are \" \\ \/ \b \f \n \r \t and \u with four hexadecimal digits"#;
        let diagnostic = Diagnostic::error(code::ESCAPE, span(start, end), message);
        self.report.push(diagnostic.with_hint(hint));
    }

    /// The character of `XXXX` or, for a surrogate pair, of `XXXX\uXXXX`.
    fn code_point(&mut self) -> Option<char> {
        let first = self.hexadecimal()?;
        if !(0xD800..0xDC00).contains(&first) {
            return char::from_u32(first);
        }
        if !self.rest().starts_with("\\u") {
            return None;
        }
        let before = self.offset;
        self.offset += 2;
        let second = self
            .hexadecimal()
            .filter(|second| (0xDC00..0xE000).contains(second));
        let Some(second) = second else {
            self.offset = before;
            return None;
        };
        char::from_u32(0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00))
    }

    fn hexadecimal(&mut self) -> Option<u32> {
        let digits = self.rest().get(..4)?;
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        self.offset += 4;
        u32::from_str_radix(digits, 16).ok()
    }
}

/// A floating-point literal; none if it is too large for one.
fn float(literal: &str) -> Option<Number> {
    literal.parse::<f64>().ok().and_then(Number::from_f64)
}
