//! Reads tokens into the parts of a signature. An error inside one field is reported and the next
//! field is still read, so that one pass finds all errors.

use std::collections::HashSet;

use windlass_gram::{Diagnostic, Span};

use super::lexer::{Kind, Token, span};
use super::types::ParsedType;
use super::{Report, Reported, code, shortened};
use crate::signature::check::misfit;
use crate::signature::display::is_bare_name;
use crate::signature::{Field, MAX_DEPTH, Presence, Type};

/// A position in the tokens of a text, and the errors found before it.
pub(super) struct Parser<'s> {
    source: &'s str,
    tokens: Vec<Token>,
    position: usize,
    /// Parentheses around types do not nest types but do nest calls, so they are counted separately.
    pub(super) parentheses: usize,
    pub(super) report: Report,
}

impl<'s> Parser<'s> {
    pub(super) fn new(source: &'s str, tokens: Vec<Token>, report: Report) -> Self {
        Self {
            source,
            tokens,
            position: 0,
            parentheses: 0,
            report,
        }
    }

    pub(super) fn kind(&self) -> &Kind {
        self.kind_after(0)
    }

    fn kind_after(&self, count: usize) -> &Kind {
        self.tokens
            .get(self.position + count)
            .map_or(&Kind::End, |token| &token.kind)
    }

    pub(super) fn span(&self) -> Span {
        let end = || span(self.source.len(), self.source.len());
        self.tokens
            .get(self.position)
            .map_or_else(end, |token| token.span)
    }

    pub(super) fn token_text(&self) -> &'s str {
        self.span().text(self.source)
    }

    pub(super) fn previous_text(&self) -> &'s str {
        let previous = self
            .position
            .checked_sub(1)
            .and_then(|index| self.tokens.get(index));
        previous.map_or("", |token| token.span.text(self.source))
    }

    /// From `start` up to the end of the last token read.
    pub(super) fn span_since(&self, start: u32) -> Span {
        let last = self
            .position
            .checked_sub(1)
            .and_then(|last| self.tokens.get(last));
        Span::new(start, last.map_or(start, |token| token.span.end.max(start)))
    }

    pub(super) fn text_since(&self, start: u32) -> &'s str {
        self.span_since(start).text(self.source)
    }

    pub(super) fn following(&self) -> &Kind {
        self.kind_after(1)
    }

    pub(super) fn advance(&mut self) {
        self.position = (self.position + 1).min(self.tokens.len());
    }

    /// Gives up on the rest of the text.
    pub(super) fn abandon(&mut self) {
        self.position = self.tokens.len();
        self.report.closed = true;
    }

    pub(super) fn at_mark(&self, mark: char) -> bool {
        *self.kind() == Kind::Mark(mark)
    }

    pub(super) fn take_mark(&mut self, mark: char) -> bool {
        let found = self.at_mark(mark);
        if found {
            self.advance();
        }
        found
    }

    pub(super) fn at_word(&self, expected: &str) -> bool {
        matches!(self.kind(), Kind::Word(word) if word == expected)
    }

    pub(super) fn at_unknown(&self, text: &str) -> bool {
        *self.kind() == Kind::Unknown && self.token_text() == text
    }

    /// Reads a whole signature.
    pub(super) fn signature(&mut self) -> Result<(Vec<Field>, Type), Reported> {
        if !self.take_mark('(') {
            let hint = "a signature begins with its parameters: `(name: Text) --> IO Text`";
            return Err(self.expected_with("`(`", Some(hint.to_owned())));
        }
        let parameters = self.fields(')', 1);
        if parameters.is_err() {
            while !matches!(self.kind(), Kind::Arrow | Kind::End) {
                self.advance();
            }
            if *self.kind() == Kind::End {
                return Err(Reported);
            }
        }
        self.arrow()?;
        let returns = self.returns()?;
        self.end("the end of the signature")?;
        Ok((parameters?, returns))
    }

    /// Reads a type that is the whole text, and whether it is marked as optional.
    pub(super) fn whole_type(&mut self) -> Result<(Type, bool), Reported> {
        let written = self.ty(1)?;
        self.end("the end of the type")?;
        Ok((written.ty, written.optional))
    }

    fn end(&mut self, what: &str) -> Result<(), Reported> {
        if *self.kind() == Kind::End {
            Ok(())
        } else {
            Err(self.after_type(what))
        }
    }

    fn arrow(&mut self) -> Result<(), Reported> {
        match self.kind() {
            Kind::Arrow => {}
            Kind::WrongArrow => {
                let found = shortened(self.token_text());
                let message = format!("expected `-->` before the return type, found `{found}`");
                let diagnostic = Diagnostic::error(code::ARROW, self.span(), message);
                self.report
                    .push(diagnostic.with_hint("did you mean `-->`?"));
            }
            Kind::End => return Err(self.no_return_type()),
            _ => {
                let hint = "write the return type after an arrow: `() --> IO Text`".to_owned();
                return Err(self.expected_with("`-->` after the parameters", Some(hint)));
            }
        }
        self.advance();
        Ok(())
    }

    fn no_return_type(&mut self) -> Reported {
        let message = "the return type is missing";
        let hint = "add the return type, such as `--> IO Text`; use Object for any JSON object";
        let diagnostic = Diagnostic::error(code::RETURN, self.span(), message);
        self.report.push(diagnostic.with_hint(hint));
        Reported
    }

    fn returns(&mut self) -> Result<Type, Reported> {
        if matches!(self.kind(), Kind::Word(word) if word.eq_ignore_ascii_case("IO")) {
            if !self.at_word("IO") {
                let message = format!("there is no type `{}`", self.token_text());
                let diagnostic = Diagnostic::error(code::UNKNOWN, self.span(), message);
                self.report.push(diagnostic.with_hint("did you mean `IO`?"));
            }
            self.advance();
        }
        if *self.kind() == Kind::End {
            return Err(self.no_return_type());
        }
        let written = self.ty(1)?;
        Ok(if written.optional {
            Type::nullable(written.ty)
        } else {
            written.ty
        })
    }

    /// Reads fields up to and including `closing`. It fails only if there is no next field to
    /// continue with.
    pub(super) fn fields(&mut self, closing: char, level: usize) -> Result<Vec<Field>, Reported> {
        let mut fields = Vec::new();
        let mut names = HashSet::new();
        while !self.take_mark(closing) {
            if let Ok(field) = self.field(closing, level, &mut names) {
                fields.push(field);
                if !self.at_mark(',') && !self.at_mark(closing) {
                    self.after_type(&format!("`,` or `{closing}`"));
                }
            }
            // A field skipped here is reported, so the list never becomes a signature.
            self.skip_field();
            if !self.take_mark(',') && !self.at_mark(closing) {
                return Err(self.expected(&format!("`{closing}`")));
            }
        }
        Ok(fields)
    }

    /// Skips to the comma or bracket that ends the current field, past brackets opened in between.
    pub(super) fn skip_field(&mut self) {
        let mut open = 0_usize;
        loop {
            match self.kind() {
                Kind::Mark('(' | '[' | '{') => open += 1,
                Kind::Mark(')' | ']' | '}') if open > 0 => open -= 1,
                Kind::Mark(')' | ']' | '}') | Kind::Arrow | Kind::End => return,
                Kind::Mark(',') if open == 0 => return,
                Kind::Unknown if self.token_text() == "<" => open += 1,
                Kind::Unknown if self.token_text() == ">" => open = open.saturating_sub(1),
                _ => {}
            }
            self.advance();
        }
    }

    fn field(
        &mut self,
        closing: char,
        level: usize,
        names: &mut HashSet<String>,
    ) -> Result<Field, Reported> {
        let name = self.name(closing, names)?;
        if self.at_mark('?') && *self.following() == Kind::Mark(':') {
            let message = "`?` belongs after the type, not after the name".to_owned();
            let hint = format!("write `{}: Maybe T`", shortened(&name));
            let diagnostic = Diagnostic::error(code::SYNTAX, self.span(), message);
            self.report.push(diagnostic.with_hint(hint));
            self.advance();
        }
        if !self.take_mark(':') {
            let name = shortened(&name);
            let hint = format!("write `{name}: Text`");
            return Err(self.expected_with(&format!("`:` after `{name}`"), Some(hint)));
        }
        let written = self.ty(level)?;
        let presence = match (self.take_mark('='), written.optional) {
            (true, _) => self.default(&written)?,
            (false, true) => Presence::Optional,
            (false, false) => Presence::Required,
        };
        let mut field = Field {
            name,
            ty: written.ty,
            presence,
            description: None,
        };
        if let Kind::Text(description) = self.kind() {
            field.description = Some(description.clone());
            self.advance();
        }
        Ok(field)
    }

    fn name(&mut self, closing: char, names: &mut HashSet<String>) -> Result<String, Reported> {
        let (what, duplicate) = match closing {
            ')' => ("parameter", code::DUPLICATE_PARAMETER),
            _ => ("field", code::DUPLICATE_FIELD),
        };
        let span = self.span();
        let name = match self.kind() {
            Kind::Word(name) | Kind::Text(name) | Kind::Backticked(name) => name.clone(),
            Kind::End => return Err(self.expected(&format!("a {what}'s name or `{closing}`"))),
            _ => return Err(self.expected(&format!("a {what}'s name"))),
        };
        let brief = shortened(&name);
        if matches!(self.kind(), Kind::Word(_)) && !is_bare_name(&name) {
            let message = format!("the name `{brief}` has letters other than A to Z");
            let diagnostic = Diagnostic::error(code::SYNTAX, span, message);
            self.report
                .push(diagnostic.with_hint(format!("quote it: \"{brief}\"")));
        }
        if name.is_empty() {
            let message = format!("a {what}'s name cannot be empty");
            self.report
                .push(Diagnostic::error(code::EMPTY_NAME, span, message));
        } else if !names.insert(name.clone()) {
            let message = format!("the {what} `{brief}` is declared twice");
            let hint = "rename or remove one of the two";
            self.report
                .push(Diagnostic::error(duplicate, span, message).with_hint(hint));
        }
        self.advance();
        Ok(name)
    }

    fn default(&mut self, written: &ParsedType) -> Result<Presence, Reported> {
        let start = self.span().start;
        let value = self.json(MAX_DEPTH)?;
        let span = self.span_since(start);
        if value.is_null() {
            let hint = "for an optional value, write `Maybe` without a default";
            let diagnostic = Diagnostic::error(code::DEFAULT, span, "a default cannot be null");
            self.report.push(diagnostic.with_hint(hint));
        } else if written.known
            && let Some(mismatch) = misfit(&written.ty, &value)
        {
            let message = format!("the default does not fit its type: {mismatch}");
            self.report
                .push(Diagnostic::error(code::DEFAULT, span, message));
        }
        Ok(Presence::Default(value))
    }
}
