//! The parser: from a text to a [`SyntaxTree`], whatever the text.
//!
//! One pass, no backtracking. Brackets are the only construct that nests without bound; they are
//! kept on a stack of their own instead of the call stack. At a syntax error the parser reports one
//! diagnostic, skips to where it can continue, and keeps every byte in the tree. The messages and the
//! error recovery are in [`explain`](super::explain).

mod explain;
mod value;

use crate::diagnostic::{Diagnostic, Span};
use crate::scan::{Scanner, starts_symbol};
use crate::token::{Token, TokenKind};
use crate::tree::{NodeData, NodeKind, SyntaxTree};

/// The largest number of errors, and of warnings, kept for one text.
const MAX_DIAGNOSTICS: usize = 100;

/// Parses a text. Never fails: errors in the text are in the tree's diagnostics.
///
/// ```
/// let tree = windlass_gram::parse("(a)-[:KNOWS]->(b)");
/// assert!(tree.is_valid());
/// assert_eq!(windlass_gram::print(&tree), "(a)-[:KNOWS]->(b)");
///
/// let tree = windlass_gram::parse("(a)->(b)");
/// assert_eq!(tree.diagnostics()[0].hint.as_deref(), Some("did you mean `-->`?"));
/// ```
#[must_use]
pub fn parse(source: &str) -> SyntaxTree<'_> {
    if u32::try_from(source.len()).is_err() {
        return too_large();
    }
    // No lexeme of the grammar contains a NUL, so only the text before it is parsed.
    let end = memchr::memchr(0, source.as_bytes()).unwrap_or(source.len());
    let mut parser = Parser::new(source, end);
    parser.document();
    parser.finish()
}

fn too_large() -> SyntaxTree<'static> {
    let message = "the text is larger than 4 GiB";
    let hint = "split it into several files";
    SyntaxTree {
        source: "",
        tokens: Vec::new(),
        nodes: vec![NodeData {
            kind: NodeKind::Document,
            first_token: 0,
            end_token: 0,
            end_node: 1,
        }],
        diagnostics: vec![
            Diagnostic::error("text-too-large", Span::empty(0), message).with_hint(hint),
        ],
        is_valid: false,
    }
}

/// The construct a subject belongs to, which decides what may follow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SubjectPlace {
    Node,
    Bracket,
    Arrow,
}

/// The next step of the loop over brackets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BracketStep {
    Open,
    Element,
    AfterElement,
}

struct Parser<'s> {
    source: &'s str,
    scanner: Scanner<'s>,
    at: usize,
    tokens: Vec<Token>,
    nodes: Vec<NodeData>,
    /// Index just after the last token that is not trivia.
    significant_end: u32,
    diagnostics: Vec<Diagnostic>,
    /// Counted separately, so that warnings never push out an error.
    errors_kept: usize,
    warnings_kept: usize,
    is_valid: bool,
    /// Where the last error was reported. A second one at the same place is dropped.
    last_error: Option<usize>,
    has_unclosed_string: bool,
}

impl<'s> Parser<'s> {
    fn new(source: &'s str, end: usize) -> Self {
        Self {
            source,
            scanner: Scanner::new(&source.as_bytes()[..end]),
            at: 0,
            tokens: Vec::with_capacity(source.len() / 3 + 1),
            nodes: Vec::with_capacity(source.len() / 8 + 1),
            significant_end: 0,
            diagnostics: Vec::new(),
            errors_kept: 0,
            warnings_kept: 0,
            is_valid: true,
            last_error: None,
            has_unclosed_string: false,
        }
    }

    fn finish(mut self) -> SyntaxTree<'s> {
        if self.at < self.source.len() {
            let place = Span::new(self.at as u32, self.at as u32 + 1);
            let message = "a NUL character ends the readable text";
            self.report(
                Diagnostic::error("nul-character", place, message)
                    .with_hint("this looks like a binary file; remove the character"),
            );
            self.push(TokenKind::Error, self.source.len());
        }
        self.nodes[0].end_token = self.tokens.len() as u32;
        self.nodes[0].end_node = self.nodes.len() as u32;
        self.diagnostics.sort_by_key(|diagnostic| diagnostic.span);
        SyntaxTree {
            source: self.source,
            tokens: self.tokens,
            nodes: self.nodes,
            diagnostics: self.diagnostics,
            is_valid: self.is_valid,
        }
    }

    // ---- tokens and nodes ----------------------------------------------------------------------

    #[inline]
    fn push(&mut self, kind: TokenKind, end: usize) {
        self.tokens.push(Token {
            start: self.at as u32,
            kind,
        });
        self.at = end;
        if !kind.is_trivia() {
            self.significant_end = self.tokens.len() as u32;
        }
    }

    #[inline]
    fn open(&mut self, kind: NodeKind) -> usize {
        self.nodes.push(NodeData {
            kind,
            first_token: self.tokens.len() as u32,
            end_token: 0,
            end_node: 0,
        });
        self.nodes.len() - 1
    }

    #[inline]
    fn close(&mut self, node: usize) {
        let end_node = self.nodes.len() as u32;
        let node = &mut self.nodes[node];
        // A node may close without a token of its own after an error.
        node.end_token = self.significant_end.max(node.first_token);
        node.end_node = end_node;
    }

    #[inline]
    fn byte(&self) -> u8 {
        self.scanner.byte(self.at)
    }

    fn at_end(&self) -> bool {
        self.at >= self.scanner.len()
    }

    /// Takes blanks and comments, then looks at the next byte.
    #[inline]
    fn peek(&mut self) -> u8 {
        loop {
            let blanks = self.scanner.blanks(self.at);
            if blanks > self.at {
                self.push(TokenKind::Whitespace, blanks);
            }
            if self.byte() != b'/' {
                return self.byte();
            }
            match self.scanner.comment(self.at) {
                Some((kind, end)) => self.push(kind, end),
                None => return b'/',
            }
        }
    }

    #[inline]
    fn bump(&mut self, kind: TokenKind, length: usize) {
        self.push(kind, self.at + length);
    }

    // ---- the document --------------------------------------------------------------------------

    fn document(&mut self) {
        self.open(NodeKind::Document);
        if self.scanner.starts_with(0, "\u{feff}".as_bytes()) {
            self.push(TokenKind::Whitespace, '\u{feff}'.len_utf8());
        }
        if self.peek() == b'{' {
            self.record();
        }
        let mut brackets = Vec::new();
        loop {
            match self.peek() {
                b'(' => self.path(),
                b'[' => self.bracket(&mut brackets),
                b'@' => self.annotated(&mut brackets),
                _ if self.at_end() => return,
                _ => self.skip_at_top(),
            }
        }
    }

    fn annotated(&mut self, brackets: &mut Vec<usize>) {
        let annotated = self.open(NodeKind::Annotated);
        if self.scanner.byte(self.at + 1) == b'@' {
            self.identified_annotation();
        }
        loop {
            match self.peek() {
                b'@' => self.property_annotation(),
                b'(' => break self.path(),
                b'[' => break self.bracket(brackets),
                _ => break self.missing_annotated_pattern(),
            }
        }
        self.close(annotated);
    }

    fn identified_annotation(&mut self) {
        let annotation = self.open(NodeKind::IdentifiedAnnotation);
        self.bump(TokenKind::DoubleAt, 2);
        let byte = self.peek();
        let has_identifier = self.identifier(byte);
        let has_labels = self.labels();
        if !has_identifier && !has_labels {
            self.unexpected_in_annotation();
        }
        self.close(annotation);
    }

    fn property_annotation(&mut self) {
        let annotation = self.open(NodeKind::PropertyAnnotation);
        self.bump(TokenKind::At, 1);
        if starts_symbol(self.peek()) {
            self.push(TokenKind::Symbol, self.scanner.symbol(self.at));
            if self.peek() == b'(' {
                self.bump(TokenKind::ParenOpen, 1);
                self.value(value::AllowedValue::Everything);
                self.expect_closing(TokenKind::ParenClose, "the annotation");
            } else {
                self.missing_annotation_value();
            }
        } else {
            self.unexpected_in_annotation();
        }
        self.close(annotation);
    }

    // ---- brackets ------------------------------------------------------------------------------

    /// Parses the bracket that opens here and all brackets in it. `open` is empty on entry and exit;
    /// it is passed in to be allocated once.
    fn bracket(&mut self, open: &mut Vec<usize>) {
        let mut next = BracketStep::Open;
        loop {
            next = match next {
                BracketStep::Open => {
                    let opening = self.at;
                    let bracket = self.open(NodeKind::Bracket);
                    self.bump(TokenKind::BracketOpen, 1);
                    self.subject();
                    open.push(bracket);
                    self.after_bracket_subject(open, opening)
                }
                BracketStep::Element => self.element(),
                BracketStep::AfterElement => {
                    if open.is_empty() {
                        return;
                    }
                    self.after_element(open)
                }
            };
        }
    }

    fn after_bracket_subject(&mut self, open: &mut Vec<usize>, opening: usize) -> BracketStep {
        match self.peek() {
            b'|' => {
                self.bump(TokenKind::Pipe, 1);
                BracketStep::Element
            }
            b']' => self.close_bracket(open),
            _ => {
                self.unexpected_after_subject(SubjectPlace::Bracket, opening);
                match self.byte() {
                    b'|' => self.after_bracket_subject(open, opening),
                    _ => BracketStep::AfterElement,
                }
            }
        }
    }

    fn close_bracket(&mut self, open: &mut Vec<usize>) -> BracketStep {
        self.bump(TokenKind::BracketClose, 1);
        if let Some(bracket) = open.pop() {
            self.close(bracket);
        }
        BracketStep::AfterElement
    }

    fn element(&mut self) -> BracketStep {
        match self.peek() {
            b'[' => return BracketStep::Open,
            b'(' => self.path(),
            byte => {
                let reference = self.open(NodeKind::Reference);
                if self.identifier(byte) {
                    self.close(reference);
                } else {
                    self.nodes.pop();
                    return self.unexpected_element();
                }
            }
        }
        BracketStep::AfterElement
    }

    fn after_element(&mut self, open: &mut Vec<usize>) -> BracketStep {
        match self.peek() {
            b',' => {
                self.bump(TokenKind::Comma, 1);
                BracketStep::Element
            }
            b']' => self.close_bracket(open),
            _ if self.at_end() => {
                self.unclosed_bracket(open);
                BracketStep::AfterElement
            }
            _ => self.unexpected_after_element(),
        }
    }

    // ---- paths ---------------------------------------------------------------------------------

    fn path(&mut self) {
        let path = self.open(NodeKind::Path);
        self.node();
        while matches!(self.peek(), b'-' | b'=' | b'~' | b'<') {
            self.arrow();
            if self.peek() == b'(' {
                self.node();
            } else {
                self.missing_node();
            }
        }
        self.close(path);
    }

    fn node(&mut self) {
        let opening = self.at;
        let node = self.open(NodeKind::Node);
        self.bump(TokenKind::ParenOpen, 1);
        self.subject();
        if self.peek() == b')' {
            self.bump(TokenKind::ParenClose, 1);
        } else {
            self.unexpected_after_subject(SubjectPlace::Node, opening);
        }
        self.close(node);
    }

    fn arrow(&mut self) {
        let arrow = self.open(NodeKind::Arrow);
        let start = self.at;
        let is_left = self.byte() == b'<';
        let family = self.scanner.byte(start + usize::from(is_left));
        if !matches!(family, b'-' | b'=' | b'~') {
            self.lone_angle();
            return self.close(arrow);
        }
        self.bump(TokenKind::ArrowLeft, if is_left { 2 } else { 1 });
        if self.peek() == b'[' {
            let opening = self.at;
            self.bump(TokenKind::BracketOpen, 1);
            self.subject();
            if self.peek() == b']' {
                self.bump(TokenKind::BracketClose, 1);
            } else {
                self.unexpected_after_subject(SubjectPlace::Arrow, opening);
            }
        }
        if self.peek() == family {
            let is_right = self.scanner.byte(self.at + 1) == b'>';
            self.bump(TokenKind::ArrowRight, if is_right { 2 } else { 1 });
        } else {
            self.unexpected_in_arrow(start, family);
        }
        self.close(arrow);
    }

    // ---- subjects ------------------------------------------------------------------------------

    #[inline]
    fn subject(&mut self) {
        let byte = self.peek();
        self.identifier(byte);
        self.labels();
        if self.peek() == b'{' {
            self.record();
        }
    }

    /// Takes an identifier if one starts with `byte`, the next byte.
    #[inline]
    fn identifier(&mut self, byte: u8) -> bool {
        if starts_symbol(byte) {
            self.push(TokenKind::Symbol, self.scanner.symbol(self.at));
            return true;
        }
        match byte {
            b'`' => {
                self.quoted(TokenKind::Backticked);
                true
            }
            b'0'..=b'9' | b'-' => match self.scanner.integer(self.at) {
                Some(end) => {
                    self.push(TokenKind::Integer, end);
                    true
                }
                None => false,
            },
            _ => false,
        }
    }

    fn labels(&mut self) -> bool {
        let mut any = false;
        while self.peek() == b':' {
            any = true;
            self.separator();
            match self.peek() {
                byte if starts_symbol(byte) => {
                    self.push(TokenKind::Symbol, self.scanner.symbol(self.at));
                }
                b'`' => self.quoted(TokenKind::Backticked),
                _ => self.missing_label(),
            }
        }
        any
    }

    fn separator(&mut self) {
        if self.scanner.byte(self.at + 1) == b':' {
            self.bump(TokenKind::DoubleColon, 2);
        } else {
            self.bump(TokenKind::Colon, 1);
        }
    }
}
