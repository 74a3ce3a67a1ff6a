//! The diagnostics of the parser. Each function reports at the current token and returns [`Reported`].

use windlass_gram::Diagnostic;

use super::lexer::Kind;
use super::parser::Parser;
use super::{Reported, advice, code, shortened};

const UNION_HINT: &str =
    "only string literals can be joined: `\"celsius\" | \"fahrenheit\"`; otherwise choose one type";

impl Parser<'_> {
    /// Reports that something else was expected here.
    pub(super) fn expected(&mut self, what: &str) -> Reported {
        self.expected_with(what, None)
    }

    /// Reports that something else was expected here, with a hint.
    pub(super) fn expected_with(&mut self, what: &str, hint: Option<String>) -> Reported {
        let message = format!("expected {what}, found {}", self.found());
        self.report_error(code::SYNTAX, message, hint)
    }

    /// Reports at most one error per token, because enclosing constructs fail at the same token. The
    /// search is short, because few errors are kept.
    fn report_error(
        &mut self,
        code: &'static str,
        message: String,
        hint: Option<String>,
    ) -> Reported {
        let span = self.span();
        let mut reported = self.report.diagnostics.iter();
        if !reported.any(|diagnostic| diagnostic.span == span) {
            let mut diagnostic = Diagnostic::error(code, span, message);
            diagnostic.hint = hint;
            self.report.push(diagnostic);
        }
        Reported
    }

    fn found(&self) -> String {
        match self.kind() {
            Kind::End => "the end of the text".to_owned(),
            Kind::Text(text) => format!("the string \"{}\"", shortened(text)),
            _ => format!("`{}`", shortened(self.token_text())),
        }
    }

    /// Reports a token that cannot follow a type, where `what` should.
    pub(super) fn after_type(&mut self, what: &str) -> Reported {
        let before = shortened(self.previous_text());
        let hint = match self.kind() {
            Kind::Mark('|') => return self.mixed_union(),
            Kind::Word(word) if word == "or" => return self.mixed_union(),
            Kind::Mark('[') if *self.following() == Kind::Mark(']') => {
                Some(format!("a list is written `[{before}]`"))
            }
            Kind::Mark(',') => Some("a list has one type for all its items".to_owned()),
            Kind::Mark('=') => {
                Some("write the default after the type, before the description".into())
            }
            Kind::Word(_) | Kind::Text(_) if *self.following() == Kind::Mark(':') => {
                Some("separate them with `,`".to_owned())
            }
            Kind::Unknown if self.at_unknown("<") => {
                Some("a list is written `[T]`, an optional value `Maybe T`".to_owned())
            }
            Kind::WrongArrow => Some("the arrow before the return type is `-->`".to_owned()),
            _ => None,
        };
        self.expected_with(what, hint)
    }

    /// Reports a choice between types, which types cannot express.
    pub(super) fn mixed_union(&mut self) -> Reported {
        let joined = self.at_mark('|') || self.at_word("or");
        let other = if joined {
            self.following()
        } else {
            self.kind()
        };
        let null = matches!(other, Kind::Word(word) if matches!(word.as_str(), "null" | "None"));
        let hint = if null {
            "write `Maybe T` for a value that may be absent"
        } else {
            UNION_HINT
        };
        let found = self.found();
        let message = format!("a type cannot be a choice between types, found {found}");
        self.report_error(code::UNION, message, Some(hint.to_owned()))
    }

    /// Reports that a type is missing here.
    pub(super) fn no_type(&mut self) -> Reported {
        let hint = match (self.previous_text(), self.kind()) {
            ("[", Kind::Mark(']')) => {
                Some("a list needs the type of its items, `[Text]`; `Array` allows any".to_owned())
            }
            ("(", Kind::Mark(')')) => Some(advice::unknown_type("unit")),
            (previous, _) if self.at_unknown("<") => advice::applied_type(previous, None),
            _ => None,
        };
        self.expected_with("a type", hint)
    }
}
