//! Collects the definitions of a text: patterns labelled `Agent` or `Tool`, at any depth.

use std::collections::HashMap;

use windlass_gram::{Bracket, Diagnostic, Document, Element, Item, Name, Path, Span, Subject};

use super::Reader;
use crate::nearest::nearest;
use crate::reserved::check_name;

const LABELS: [&str; 2] = ["Agent", "Tool"];

/// The kind of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Agent,
    Tool,
}

/// A pattern that defines an agent or a tool.
#[derive(Debug, Clone)]
pub(super) struct Definition<'t> {
    pub(super) kind: Kind,
    pub(super) name: Name<'t>,
    pub(super) subject: Subject<'t>,
    /// The pattern, if it is a bracket and so may have elements.
    pub(super) bracket: Option<Bracket<'t>>,
}

impl<'t> Definition<'t> {
    pub(super) fn elements(&self) -> impl Iterator<Item = Element<'t>> + use<'t> {
        self.bracket.into_iter().flat_map(Bracket::elements)
    }
}

/// All definitions of a text, each name once.
#[derive(Debug, Default)]
pub(super) struct Definitions<'t> {
    pub(super) all: Vec<Definition<'t>>,
    by_name: HashMap<String, usize>,
}

impl<'t> Definitions<'t> {
    pub(super) fn find(&self, name: &str) -> Option<(usize, &Definition<'t>)> {
        let index = *self.by_name.get(name)?;
        Some((index, self.all.get(index)?))
    }

    /// Whether this occurrence of the name is the one in the definition.
    pub(super) fn defines(&self, name: &Name<'_>) -> bool {
        self.find(&name.text)
            .is_some_and(|(_, definition)| definition.name.span == name.span)
    }

    pub(super) fn of_kind(&self, kind: Kind) -> impl Iterator<Item = (usize, &Definition<'t>)> {
        self.all
            .iter()
            .enumerate()
            .filter(move |(_, definition)| definition.kind == kind)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.all.iter().map(|definition| &*definition.name.text)
    }
}

/// The role of a subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// It defines an agent or a tool.
    Defines(Kind),
    /// It only refers to a definition elsewhere.
    Refers,
    /// It is neither an agent nor a tool.
    Other,
}

/// The role of a subject, independent of its context.
pub(super) fn role(subject: Subject<'_>, bracket: Option<Bracket<'_>>) -> Role {
    if subject.has_label("Agent") {
        return Role::Defines(Kind::Agent);
    }
    if subject.has_label("Tool") {
        return Role::Defines(Kind::Tool);
    }
    let has_content = subject.labels().next().is_some()
        || subject.record().is_some()
        || bracket.is_some_and(|bracket| bracket.elements().next().is_some());
    match subject.identifier() {
        Some(_) if !has_content => Role::Refers,
        _ => Role::Other,
    }
}

impl<'t> Reader<'t> {
    pub(super) fn definitions(&mut self, document: Document<'t>) -> Definitions<'t> {
        let mut found = Definitions::default();
        // The items still to be visited, the next one last.
        let mut pending: Vec<Item<'t>> = document
            .items()
            .filter_map(|item| match item {
                Item::Annotated(annotated) => annotated.pattern(),
                item => Some(item),
            })
            .collect();
        for item in &pending {
            self.check_top_level(item);
        }
        pending.reverse();
        while let Some(item) = pending.pop() {
            match item {
                Item::Bracket(bracket) => {
                    let subject = bracket.subject();
                    let kind = self.define(&mut found, subject, Some(bracket), bracket.span());
                    // A tool's element is its signature; other patterns may contain definitions.
                    if kind != Some(Kind::Tool) {
                        let mut elements: Vec<_> =
                            bracket.elements().filter_map(element_item).collect();
                        elements.reverse();
                        pending.append(&mut elements);
                    }
                }
                Item::Path(path) => self.define_in_path(&mut found, path),
                Item::Annotated(_) => {}
            }
        }
        found
    }

    /// Warns about a top-level pattern that is only a reference and so has no effect.
    fn check_top_level(&mut self, item: &Item<'t>) {
        let (span, is_reference) = match item {
            Item::Bracket(bracket) => {
                let refers = role(bracket.subject(), Some(*bracket)) == Role::Refers;
                (bracket.span(), refers)
            }
            Item::Path(path) => {
                let mut roles = path.nodes().map(|node| role(node.subject(), None));
                (path.span(), roles.all(|role| role == Role::Refers))
            }
            Item::Annotated(_) => return,
        };
        if is_reference {
            self.report(
                Diagnostic::warning(
                    "ignored-pattern",
                    span,
                    "this reference is outside of an agent and has no effect",
                )
                .with_hint("move it into the elements of the agent it belongs to"),
            );
        }
    }

    fn define_in_path(&mut self, found: &mut Definitions<'t>, path: Path<'t>) {
        for node in path.nodes() {
            self.define(found, node.subject(), None, node.span());
        }
    }

    /// Adds a pattern to the definitions if it is one, and returns its kind.
    fn define(
        &mut self,
        found: &mut Definitions<'t>,
        subject: Subject<'t>,
        bracket: Option<Bracket<'t>>,
        span: Span,
    ) -> Option<Kind> {
        let kind = match role(subject, bracket) {
            Role::Defines(kind) => kind,
            Role::Refers => return None,
            Role::Other => {
                self.report_unknown_pattern(subject, span);
                return None;
            }
        };
        if subject.has_label("Agent") && subject.has_label("Tool") {
            self.error(
                "two-kinds",
                subject.labels().next().map_or(span, |label| label.span),
                "a pattern is an Agent or a Tool, not both",
            );
        }
        let what = match kind {
            Kind::Agent => "agent",
            Kind::Tool => "tool",
        };
        let Some(name) = subject.identifier() else {
            let place = subject.labels().next().map_or(span, |label| label.span);
            self.error_with_hint(
                "missing-name",
                place,
                format!("this {what} has no name"),
                format!(
                    "name it before the label: `[name:{}]`",
                    LABELS[kind as usize]
                ),
            );
            return Some(kind);
        };
        if let Err(error) = check_name(&name.text) {
            let hint = match kind {
                Kind::Agent => "rename the agent, here and where other agents name it",
                Kind::Tool => "rename the tool, here and in the library that implements it",
            };
            self.error_with_hint("reserved-name", name.span, error.to_string(), hint);
        }
        if let Some((_, first)) = found.find(&name.text) {
            let line = self.line(first);
            self.error_with_hint(
                "duplicate-identity",
                name.span,
                format!("`{}` is defined twice", name.text),
                format!(
                    "it is first defined on line {line}; to use that one here, write only its name"
                ),
            );
            return Some(kind);
        }
        found
            .by_name
            .insert(name.text.clone().into_owned(), found.all.len());
        found.all.push(Definition {
            kind,
            name,
            subject,
            bracket,
        });
        Some(kind)
    }

    /// Reports a pattern that is neither an agent nor a tool; an error if its label looks like a typo.
    fn report_unknown_pattern(&mut self, subject: Subject<'t>, span: Span) {
        // The words of other notations for the same.
        let other_word = subject
            .labels()
            .find(|label| label.text.eq_ignore_ascii_case("ToolSpecification"));
        if let Some(label) = other_word {
            return self.error_with_hint(
                "unknown-label",
                label.span,
                format!("`{}` is neither an Agent nor a Tool", label.text),
                "a tool specification has the label `Tool`: `[name:Tool {description: \"…\"} | (query::Text)==>(::Text)]`",
            );
        }
        let typo = subject
            .labels()
            .find_map(|label| nearest(&label.text, LABELS).map(|meant| (label, meant)));
        if let Some((label, meant)) = typo {
            return self.error_with_hint(
                "unknown-label",
                label.span,
                format!("`{}` is neither an Agent nor a Tool", label.text),
                format!("did you mean `{meant}`?"),
            );
        }
        // An empty node, such as one of a signature, gets no warning.
        if !subject.is_empty() {
            self.report(
                Diagnostic::warning(
                    "ignored-pattern",
                    span,
                    "this pattern is neither an agent nor a tool and has no effect",
                )
                .with_hint("label it `Agent` or `Tool`, or remove it"),
            );
        }
    }
}

fn element_item(element: Element<'_>) -> Option<Item<'_>> {
    match element {
        Element::Bracket(bracket) => Some(Item::Bracket(bracket)),
        Element::Path(path) => Some(Item::Path(path)),
        Element::Reference(_) => None,
    }
}
