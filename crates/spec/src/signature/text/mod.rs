//! The text form of types and signatures, such as
//! `(name: Text, age: Maybe Int = 3 "in years") --> IO [Text]`. All errors are reported
//! at once. `display` writes it.
//!
//! ```text
//! signature = "(" [ fields ] ")" "-->" [ "IO" ] type ;
//! fields    = field { "," field } [ "," ] ;
//! field     = name ":" type [ "=" json ] [ string ] ;
//! type      = "Maybe" atom | atom [ "?" ] ;
//! atom      = scalar | "[" type "]" | "{" [ fields ] "}" | string { "|" string } | "(" type ")" ;
//! ```

mod advice;
mod errors;
mod lexer;
mod literal;
mod parser;
mod types;

use windlass_gram::Diagnostic;

use super::{Signature, Type, shortened};
use parser::Parser;

/// The stable codes of the diagnostics.
mod code {
    pub(super) const ARROW: &str = "signature-arrow";
    pub(super) const DEFAULT: &str = "default-type";
    pub(super) const DEPTH: &str = "type-depth";
    pub(super) const DUPLICATE_FIELD: &str = "duplicate-field";
    pub(super) const DUPLICATE_KEY: &str = "duplicate-key";
    pub(super) const DUPLICATE_OPTION: &str = "duplicate-option";
    pub(super) const DUPLICATE_PARAMETER: &str = "duplicate-parameter";
    pub(super) const EMPTY_NAME: &str = "empty-name";
    pub(super) const ESCAPE: &str = "string-escape";
    pub(super) const MAYBE: &str = "double-maybe";
    pub(super) const RETURN: &str = "missing-return-type";
    pub(super) const SYNTAX: &str = "signature-syntax";
    pub(super) const UNION: &str = "type-union";
    pub(super) const UNKNOWN: &str = "unknown-type";
}

/// The largest number of reported errors of one text.
const MAX_DIAGNOSTICS: usize = 100;

impl Signature {
    /// Reads the text form of a signature.
    ///
    /// # Errors
    /// All errors, in the order of the text, with spans in bytes of `text`.
    pub fn parse(text: &str) -> Result<Self, Vec<Diagnostic>> {
        let mut report = Report::default();
        let tokens = lexer::tokens(text, &mut report);
        let mut parser = Parser::new(text, tokens, report);
        let parts = parser.signature();
        let (parameters, returns) = parser.report.finish(parts)?;
        // The parser accepts only valid parts; this check guarantees it.
        Self::new(parameters, returns).map_err(|error| {
            let whole = lexer::span(0, text.len());
            vec![Diagnostic::error(code::SYNTAX, whole, error.to_string())]
        })
    }
}

impl Type {
    /// Reads the text form of a type, and whether it is marked as optional by `Maybe` or `?`. The
    /// meaning of the mark depends on the place of the type, so the caller decides.
    ///
    /// # Errors
    /// All errors, in the order of the text, with spans in bytes of `text`.
    pub fn parse(text: &str) -> Result<(Self, bool), Vec<Diagnostic>> {
        let mut report = Report::default();
        let tokens = lexer::tokens(text, &mut report);
        let mut parser = Parser::new(text, tokens, report);
        let parsed = parser.whole_type();
        parser.report.finish(parsed)
    }
}

/// An error that is reported already; the construct has no result.
#[derive(Debug, Clone, Copy)]
struct Reported;

/// The errors reported so far.
#[derive(Debug, Default)]
struct Report {
    diagnostics: Vec<Diagnostic>,
    /// Set after nesting too deep: the parser lost its place, so it reports nothing more.
    closed: bool,
}

impl Report {
    fn push(&mut self, diagnostic: Diagnostic) {
        if !self.closed && self.diagnostics.len() < MAX_DIAGNOSTICS {
            self.diagnostics.push(diagnostic);
        }
    }

    fn finish<T>(mut self, outcome: Result<T, Reported>) -> Result<T, Vec<Diagnostic>> {
        match outcome {
            Ok(value) if self.diagnostics.is_empty() => Ok(value),
            _ => {
                // Errors of the lexer precede those of the parser; readers need text order.
                self.diagnostics.sort_by_key(|diagnostic| diagnostic.span);
                Err(self.diagnostics)
            }
        }
    }
}
