//! The part of the parser that reads records and values. Nothing here nests more than a fixed
//! number of levels: a record may hold maps and arrays, a map may hold arrays, an array scalars.

use super::Parser;
use crate::diagnostic::{Diagnostic, Span};
use crate::scan::{FenceError, starts_symbol};
use crate::token::TokenKind;
use crate::tree::NodeKind;

/// The kinds of value allowed at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::parse) enum AllowedValue {
    /// A property of a record or the value of an annotation: anything.
    Everything,
    /// An entry of a map: no map.
    NoMap,
    /// An item of an array: scalars only.
    Scalar,
}

/// A list of items between brackets, and where it opened.
#[derive(Debug, Clone, Copy)]
pub(in crate::parse) enum List {
    Braces { opening: usize },
    Array { opening: usize },
}

impl List {
    pub(in crate::parse) fn closing(self) -> (u8, TokenKind) {
        match self {
            Self::Braces { .. } => (b'}', TokenKind::BraceClose),
            Self::Array { .. } => (b']', TokenKind::BracketClose),
        }
    }
}

/// How to recover from something unexpected in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::parse) enum ListRecovery {
    /// An item starts here.
    Item,
    /// Look again for a comma or the closing bracket.
    Retry,
    /// Give the list up.
    Stop,
}

impl Parser<'_> {
    /// The record that opens here.
    pub(super) fn record(&mut self) {
        self.braces(
            NodeKind::Record,
            NodeKind::Property,
            AllowedValue::Everything,
        );
    }

    fn braces(&mut self, container: NodeKind, entry: NodeKind, allowed: AllowedValue) {
        let opening = self.at;
        let record = self.open(container);
        self.bump(TokenKind::BraceOpen, 1);
        if self.peek() == b'}' {
            self.bump(TokenKind::BraceClose, 1);
            return self.close(record);
        }
        loop {
            self.entry(entry, allowed);
            if !self.take_separator(List::Braces { opening }) {
                break;
            }
        }
        self.close(record);
    }

    /// Takes the comma or the closing bracket after an item. Returns true if another item follows.
    fn take_separator(&mut self, list: List) -> bool {
        let (closing, kind) = list.closing();
        loop {
            let byte = self.peek();
            if byte == b',' {
                self.bump(TokenKind::Comma, 1);
                if self.peek() != closing {
                    return true;
                }
                self.trailing_comma();
            }
            if self.byte() == closing {
                self.bump(kind, 1);
                return false;
            }
            match self.unexpected_in_list(list) {
                ListRecovery::Item => return true,
                ListRecovery::Retry => {}
                ListRecovery::Stop => return false,
            }
        }
    }

    fn entry(&mut self, kind: NodeKind, allowed: AllowedValue) {
        let entry = self.open(kind);
        let byte = self.peek();
        if starts_symbol(byte) {
            self.push(TokenKind::Symbol, self.scanner.symbol(self.at));
        } else if byte == b'`' {
            self.quoted(TokenKind::Backticked);
        } else if byte == b'"' {
            self.quoted(TokenKind::DoubleQuoted);
        } else {
            self.missing_key();
            return self.close(entry);
        }
        if self.peek() == b':' {
            if kind == NodeKind::Entry && self.scanner.byte(self.at + 1) == b':' {
                self.double_colon_in_map();
            }
            self.separator();
            self.value(allowed);
        } else {
            self.missing_colon();
        }
        self.close(entry);
    }

    /// The value that starts here.
    pub(super) fn value(&mut self, allowed: AllowedValue) {
        let byte = self.peek();
        match byte {
            b'[' if allowed == AllowedValue::Scalar => self.nested_array(),
            b'[' => self.array(),
            b'{' if allowed == AllowedValue::Everything => {
                self.braces(NodeKind::Map, NodeKind::Entry, AllowedValue::NoMap);
            }
            b'{' => self.nested_map(allowed),
            _ => self.scalar(byte),
        }
    }

    fn scalar(&mut self, byte: u8) {
        let node = self.open(NodeKind::Scalar);
        match byte {
            b'"' => self.quoted(TokenKind::DoubleQuoted),
            b'\'' => self.quoted(TokenKind::SingleQuoted),
            b'`' if self.scanner.starts_with(self.at, b"```") => self.fenced(),
            b'`' => self.quoted(TokenKind::Backticked),
            b'.' if self.scanner.starts_with(self.at, b"...") => {
                self.bump(TokenKind::DotDotDot, 3);
                self.nodes[node].kind = NodeKind::Range;
                self.range_bound();
            }
            b'0'..=b'9' | b'-' => match self.scanner.number(self.at) {
                Some((kind, end)) => {
                    self.push(kind, end);
                    self.range_after_number(node);
                }
                None => self.missing_value(),
            },
            _ if starts_symbol(byte) => self.symbol_value(node),
            _ => self.missing_value(),
        }
        self.close(node);
    }

    fn symbol_value(&mut self, node: usize) {
        let end = self.scanner.symbol(self.at);
        if matches!(&self.source[self.at..end], "true" | "false") {
            return self.push(TokenKind::Boolean, end);
        }
        self.push(TokenKind::Symbol, end);
        if self.peek() == b'`' && !self.scanner.starts_with(self.at, b"```") {
            self.quoted(TokenKind::Backticked);
            self.nodes[node].kind = NodeKind::Tagged;
        }
    }

    fn range_after_number(&mut self, node: usize) {
        if self.byte() != b'.' && self.peek() != b'.' {
            return;
        }
        if self.scanner.starts_with(self.at, b"...") {
            self.bump(TokenKind::DotDotDot, 3);
        } else if self.scanner.starts_with(self.at, b"..") {
            self.bump(TokenKind::DotDot, 2);
            self.range_bound();
        } else {
            return;
        }
        self.nodes[node].kind = NodeKind::Range;
    }

    fn range_bound(&mut self) {
        self.peek();
        match self.scanner.number(self.at) {
            Some((kind, end)) => self.push(kind, end),
            None => self.missing_range_bound(),
        }
    }

    fn array(&mut self) {
        let opening = self.at;
        let array = self.open(NodeKind::Array);
        self.bump(TokenKind::BracketOpen, 1);
        if self.peek() == b']' {
            self.empty_array(opening);
            self.bump(TokenKind::BracketClose, 1);
            return self.close(array);
        }
        loop {
            self.value(AllowedValue::Scalar);
            if !self.take_separator(List::Array { opening }) {
                break;
            }
        }
        self.close(array);
    }

    /// The quoted string or name that opens here.
    #[inline]
    pub(super) fn quoted(&mut self, kind: TokenKind) {
        let found = self.scanner.quoted(self.at);
        match found.end {
            Some(end) => {
                if found.holds_comment || found.text.1 + 1 != end {
                    self.doubtful_string(found, end);
                }
                self.push(kind, end);
            }
            None => self.unterminated_quote(kind, found),
        }
    }

    fn fenced(&mut self) {
        match self.scanner.fenced(self.at) {
            Ok(found) => {
                if found.holds_comment {
                    let place = Span::new(self.at as u32, found.end as u32);
                    self.comment_in_string(place);
                }
                self.push(TokenKind::Fenced, found.end);
            }
            Err(FenceError::OpeningLine(offset)) => {
                self.has_unclosed_string = true;
                let place = self.lexeme(offset);
                let message =
                    "the text of a fenced string starts on the line after its opening fence";
                self.report(
                    Diagnostic::error("fence-opening", place, message)
                        .with_hint("put only a tag after the three opening backticks"),
                );
                let end = self.scanner.line_end(offset);
                self.push(TokenKind::Error, end);
            }
            Err(FenceError::Unterminated) => {
                self.has_unclosed_string = true;
                let place = Span::new(self.at as u32, self.at as u32 + 3);
                let message = "this fenced string has no closing fence";
                self.report(
                    Diagnostic::error("unterminated-string", place, message)
                        .with_hint("close it with three backticks"),
                );
                self.push(TokenKind::Error, self.scanner.len());
            }
        }
    }
}
