//! Errors in records, maps, arrays and numbers.

use crate::diagnostic::{Diagnostic, Span};
use crate::parse::Parser;
use crate::parse::value::{AllowedValue, List, ListRecovery};
use crate::scan::starts_symbol;
use crate::token::TokenKind;

impl Parser<'_> {
    pub(in crate::parse) fn trailing_comma(&mut self) {
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

    pub(in crate::parse) fn missing_key(&mut self) {
        let byte = self.byte();
        let hint = match byte {
            b'\'' => Some("put the key in double quotes or backticks".to_owned()),
            b'0'..=b'9' | b'-' => Some("a number is not a key; put it in backticks".to_owned()),
            b',' => Some("remove the extra comma".to_owned()),
            _ => None,
        };
        self.report_expected("a key: a word, or text in backticks or double quotes", hint);
        if matches!(byte, b',' | b'}' | b')' | b']' | b'|' | b'(' | b'[') || self.at_end() {
            return;
        }
        self.skip();
        if self.peek() == b':' {
            self.separator();
            self.value(AllowedValue::Everything);
        }
    }

    pub(in crate::parse) fn missing_colon(&mut self) {
        let hint = match self.byte() {
            b'=' => Some("a key and its value are joined by a colon".to_owned()),
            _ => None,
        };
        self.report_expected("`:` and a value after the key", hint);
        if self.byte() == b'=' {
            self.skip();
            self.value(AllowedValue::Everything);
        }
    }

    pub(in crate::parse) fn double_colon_in_map(&mut self) {
        let span = Span::new(self.at as u32, self.at as u32 + 2);
        self.report(
            Diagnostic::error("double-colon", span, "`::` is not allowed in a map")
                .with_hint("write a single colon"),
        );
    }

    pub(in crate::parse) fn unexpected_in_list(&mut self, list: List) -> ListRecovery {
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
            return ListRecovery::Stop;
        }
        if self.is_adjacent() && self.malformed_number() {
            return ListRecovery::Retry;
        }
        let expected = format!("`,` or `{}`", closing as char);
        let starts_item = match list {
            List::Braces { .. } => starts_symbol(byte) || matches!(byte, b'"' | b'`'),
            List::Array { .. } => {
                starts_symbol(byte) || matches!(byte, b'"' | b'\'' | b'`' | b'0'..=b'9')
            }
        };
        if byte == b'`' && self.last_significant_kind() == Some(TokenKind::Boolean) {
            let hint = "`true` and `false` cannot tag a text; choose another tag";
            self.report_expected(&expected, Some(hint.to_owned()));
            self.skip();
            return ListRecovery::Retry;
        }
        if starts_item {
            self.report_expected(&expected, Some("put a comma between items".to_owned()));
            return ListRecovery::Item;
        }
        let closes_another = matches!(byte, b')' | b']' | b'}' | b'|');
        let hint = closes_another.then(|| {
            format!(
                "the `{opener}` before it is not closed; close it with `{}`",
                closing as char
            )
        });
        self.report_expected(&expected, hint);
        if closes_another {
            return ListRecovery::Stop;
        }
        self.skip();
        ListRecovery::Retry
    }

    /// Reports a number with other characters right after it, such as `2.5kg`, and skips it.
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
        if !is_number {
            return false;
        }
        let rest = &self.source[self.at..self.scanner.len()];
        let length = rest
            .find(|c: char| !(c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | '%')))
            .unwrap_or(rest.len());
        if length == 0 {
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

    pub(in crate::parse) fn nested_array(&mut self) {
        self.report_too_deep("an array holds only scalars, no arrays");
    }

    pub(in crate::parse) fn nested_map(&mut self, allowed: AllowedValue) {
        self.report_too_deep(match allowed {
            AllowedValue::Scalar => "an array holds only scalars, no maps",
            AllowedValue::NoMap | AllowedValue::Everything => {
                "a map holds scalars and arrays, no maps"
            }
        });
    }

    /// Reports a value nested too deeply and skips it to its closing bracket.
    fn report_too_deep(&mut self, message: &str) {
        let span = Span::new(self.at as u32, self.at as u32 + 1);
        self.report(
            Diagnostic::error("nested-value", span, message)
                .with_hint("write nested data as patterns: `[outer | [inner {…}]]`"),
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

    pub(in crate::parse) fn missing_value(&mut self) {
        let rest = &self.source[self.at..self.scanner.len()];
        let hint = match rest.as_bytes() {
            [b'+', ..] => Some("a positive number has no sign"),
            [b'.', b'0'..=b'9', ..] => Some("write a digit before the point: `0.5`"),
            [b'.', b'.', b'0'..=b'9', ..] => {
                Some("a range without a lower bound has three dots: `...5`")
            }
            [b'(', ..] => Some("a pattern is not a value; give it a name and refer to the name"),
            _ => None,
        };
        self.report_expected("a value", hint.map(str::to_owned));
        self.skip_adjacent();
    }

    pub(in crate::parse) fn missing_range_bound(&mut self) {
        self.report_expected("a number as the bound of the range", None);
        self.skip_adjacent();
    }

    pub(in crate::parse) fn empty_array(&mut self, opening: usize) {
        let span = Span::new(opening as u32, self.at as u32 + 1);
        self.report(
            Diagnostic::error("empty-array", span, "an array has at least one item")
                .with_hint("leave the property out instead"),
        );
    }
}

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
    "if it is a text, put it in quotes"
}
