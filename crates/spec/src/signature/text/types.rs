//! Reads types. This part of the grammar nests, so it counts its depth.

use std::collections::HashSet;

use windlass_gram::{Diagnostic, Span};

use super::lexer::Kind;
use super::parser::Parser;
use super::{Reported, advice, code, shortened};
use crate::signature::{MAX_DEPTH, Type};

/// A type as written.
pub(super) struct ParsedType {
    pub(super) ty: Type,
    pub(super) optional: bool,
    /// False for a placeholder of a type that does not exist.
    pub(super) known: bool,
}

impl Parser<'_> {
    /// Reads a type at `level`, optional or not.
    pub(super) fn ty(&mut self, level: usize) -> Result<ParsedType, Reported> {
        if level > MAX_DEPTH || self.parentheses > MAX_DEPTH {
            let message = format!("types are nested deeper than {MAX_DEPTH} levels here");
            self.report
                .push(Diagnostic::error(code::DEPTH, self.span(), message));
            self.abandon();
            return Err(Reported);
        }
        let mut marked = false;
        while self.at_word("Maybe") {
            self.mark_optional(&mut marked);
            self.advance();
        }
        let mut written = self.atom(level)?;
        if written.optional {
            self.mark_optional(&mut marked);
        }
        while self.at_mark('?') {
            self.mark_optional(&mut marked);
            self.advance();
        }
        written.optional = marked;
        Ok(written)
    }

    fn mark_optional(&mut self, marked: &mut bool) {
        if *marked {
            let message = "this is marked as optional twice";
            let hint = "one `Maybe T` or `T?` is enough";
            let diagnostic = Diagnostic::error(code::MAYBE, self.span(), message);
            self.report.push(diagnostic.with_hint(hint));
        }
        *marked = true;
    }

    fn atom(&mut self, level: usize) -> Result<ParsedType, Reported> {
        match self.kind() {
            Kind::Word(word) => {
                let word = word.clone();
                self.named(&word, level)
            }
            Kind::Text(_) => self.options(),
            Kind::Mark('[') => {
                self.advance();
                let item = self.ty(level + 1);
                let item = self.close(']', item)?;
                let ty = if item.optional {
                    Type::nullable(item.ty)
                } else {
                    item.ty
                };
                Ok(ParsedType {
                    ty: Type::list(ty),
                    optional: false,
                    known: item.known,
                })
            }
            Kind::Mark('{') => {
                self.advance();
                let before = self.report.diagnostics.len();
                let ty = Type::Record(self.fields('}', level + 1)?);
                let known = self.report.diagnostics.len() == before;
                Ok(ParsedType {
                    ty,
                    optional: false,
                    known,
                })
            }
            Kind::Mark('(') => {
                self.advance();
                self.parentheses += 1;
                let inner = self.ty(level);
                self.parentheses -= 1;
                self.close(')', inner)
            }
            _ => Err(self.no_type()),
        }
    }

    /// Reads the bracket after a type. If there is something else, the rest up to the bracket is
    /// skipped: it is reported already and would be misread as the next construct.
    fn close(
        &mut self,
        closing: char,
        inner: Result<ParsedType, Reported>,
    ) -> Result<ParsedType, Reported> {
        if inner.is_ok() && self.take_mark(closing) {
            return inner;
        }
        if inner.is_ok() {
            self.after_type(&format!("`{closing}`"));
        }
        self.skip_field();
        while self.take_mark(',') {
            self.skip_field();
        }
        self.take_mark(closing);
        Err(Reported)
    }

    /// Reads a type that begins with a word.
    fn named(&mut self, word: &str, level: usize) -> Result<ParsedType, Reported> {
        let span = self.span();
        self.advance();
        if (advice::means_list(word) || advice::means_optional(word)) && self.at_argument() {
            return self.applied(word, span, level);
        }
        if let Some(ty) = advice::scalar(word) {
            return Ok(ParsedType {
                ty,
                optional: false,
                known: true,
            });
        }
        let message = format!("there is no type `{}`", shortened(word));
        let diagnostic = Diagnostic::error(code::UNKNOWN, span, message);
        self.report
            .push(diagnostic.with_hint(advice::unknown_type(word)));
        Ok(ParsedType {
            ty: Type::Object,
            optional: false,
            known: false,
        })
    }

    fn at_argument(&self) -> bool {
        match self.kind() {
            Kind::Word(word) => word != "or" && *self.following() != Kind::Mark(':'),
            Kind::Mark('[') => *self.following() != Kind::Mark(']'),
            Kind::Mark('{' | '(') => true,
            _ => self.at_unknown("<"),
        }
    }

    /// Reads past the argument of a type in the notation of other languages, to quote it in a hint.
    fn applied(&mut self, word: &str, at: Span, level: usize) -> Result<ParsedType, Reported> {
        let angled = self.at_unknown("<");
        if angled {
            self.advance();
        }
        let start = self.span().start;
        let argument = self.ty(level + 1);
        let quoted = self.text_since(start);
        if angled && self.at_unknown(">") {
            self.advance();
        }
        let message = format!("`{}` does not take another type", shortened(word));
        let mut diagnostic = Diagnostic::error(code::UNKNOWN, at, message);
        diagnostic.hint = advice::applied_type(word, argument.is_ok().then_some(quoted));
        self.report.push(diagnostic);
        argument.map(|written| ParsedType {
            known: false,
            ..written
        })
    }

    /// Reads an enum: string literals joined by `|`.
    fn options(&mut self) -> Result<ParsedType, Reported> {
        let mut options = Vec::new();
        let mut seen = HashSet::new();
        loop {
            let Kind::Text(option) = self.kind() else {
                return Err(self.mixed_union());
            };
            let option = option.clone();
            if seen.insert(option.clone()) {
                options.push(option);
            } else {
                let message = format!("the option \"{}\" is listed twice", shortened(&option));
                let diagnostic = Diagnostic::error(code::DUPLICATE_OPTION, self.span(), message);
                self.report
                    .push(diagnostic.with_hint("remove one of the two"));
            }
            self.advance();
            if !self.take_mark('|') {
                return Ok(ParsedType {
                    ty: Type::Enum(options),
                    optional: false,
                    known: true,
                });
            }
        }
    }
}
