//! Typed access to a syntax tree: documents, patterns, subjects, records. Views are two machine words
//! each and borrow the tree. They are total, so they also work on a tree with errors.

use std::borrow::Cow;

use crate::diagnostic::Span;
use crate::scan::Scanner;
use crate::token::TokenKind;
use crate::tree::{NodeKind, SyntaxTree};
use crate::value::Value;

macro_rules! views {
    ($($(#[$doc:meta])* $name:ident,)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy)]
        pub struct $name<'t> {
            pub(crate) tree: &'t SyntaxTree<'t>,
            pub(crate) index: usize,
        }

        impl $name<'_> {
            /// Its place in the text.
            #[must_use]
            pub fn span(self) -> Span {
                self.tree.node_span(self.index)
            }
        }
    )*};
}

views! {
    /// The whole text.
    Document,
    /// A pattern with annotations before it.
    Annotated,
    /// `@@name:Label`
    IdentifiedAnnotation,
    /// `@key(value)`
    PropertyAnnotation,
    /// `[subject | elements]`
    Bracket,
    /// One node, or several joined by arrows.
    Path,
    /// `(subject)`
    Node,
    /// An arrow between two nodes.
    Arrow,
    /// A record: keys and values in the order they are written.
    Record,
    /// A key and its value.
    Property,
    /// What identifies and describes a pattern: a name, labels, a record. Each may be absent.
    Subject,
}

/// A pattern of the top level.
#[derive(Debug, Clone, Copy)]
pub enum Item<'t> {
    /// With annotations.
    Annotated(Annotated<'t>),
    /// A bracket.
    Bracket(Bracket<'t>),
    /// A node or path.
    Path(Path<'t>),
}

/// An element of a bracket.
#[derive(Debug, Clone)]
pub enum Element<'t> {
    /// A bracket.
    Bracket(Bracket<'t>),
    /// A node or path.
    Path(Path<'t>),
    /// The name of something defined elsewhere.
    Reference(Name<'t>),
}

/// A name with its place: an identifier, a label or a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name<'t> {
    /// The name without backticks or quotes, escapes resolved.
    pub text: Cow<'t, str>,
    /// Its place in the text.
    pub span: Span,
}

/// The line style of an arrow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ArrowLine {
    /// `--`
    Single,
    /// `==`
    Double,
    /// `~~`
    Squiggle,
}

/// One of the twelve arrows: a line with or without a point at either end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ArrowKind {
    /// The line.
    pub line: ArrowLine,
    /// Whether it points to the left node.
    pub to_left: bool,
    /// Whether it points to the right node.
    pub to_right: bool,
}

impl<'s> SyntaxTree<'s> {
    /// The tree as a document.
    #[must_use]
    pub fn document(&self) -> Document<'_> {
        Document {
            tree: self,
            index: 0,
        }
    }

    pub(crate) fn name(&self, token: usize) -> Name<'_> {
        let span = self.token_span(token);
        let raw = span.text(self.source);
        let text = match self.token_kind(token) {
            Some(TokenKind::Backticked | TokenKind::DoubleQuoted | TokenKind::SingleQuoted) => {
                quoted_text(raw)
            }
            _ => Cow::Borrowed(raw),
        };
        Name { text, span }
    }

    fn child(&self, index: usize, kind: NodeKind) -> Option<usize> {
        self.children(index)
            .find(|&child| self.nodes[child].kind == kind)
    }
}

/// The text of a quoted lexeme, escapes resolved.
pub(crate) fn quoted_text(raw: &str) -> Cow<'_, str> {
    let (start, end) = Scanner::new(raw.as_bytes()).quoted(0).text;
    unescape(raw.get(start..end).unwrap_or_default())
}

fn unescape(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            plain.push(c);
            continue;
        }
        plain.push(match chars.next() {
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some(other) => other,
            None => '\\',
        });
    }
    Cow::Owned(plain)
}

impl<'t> Document<'t> {
    /// The record at the very start of the text.
    #[must_use]
    pub fn header(self) -> Option<Record<'t>> {
        let first = self.tree.children(0).next()?;
        (self.tree.nodes[first].kind == NodeKind::Record).then_some(Record {
            tree: self.tree,
            index: first,
        })
    }

    /// The patterns of the top level, in order.
    pub fn items(self) -> impl Iterator<Item = Item<'t>> {
        let tree = self.tree;
        tree.children(0)
            .filter_map(move |index| match tree.nodes[index].kind {
                NodeKind::Annotated => Some(Item::Annotated(Annotated { tree, index })),
                NodeKind::Bracket => Some(Item::Bracket(Bracket { tree, index })),
                NodeKind::Path => Some(Item::Path(Path { tree, index })),
                _ => None,
            })
    }
}

impl<'t> Annotated<'t> {
    /// The annotation that names the pattern.
    #[must_use]
    pub fn identified(self) -> Option<IdentifiedAnnotation<'t>> {
        let index = self
            .tree
            .child(self.index, NodeKind::IdentifiedAnnotation)?;
        Some(IdentifiedAnnotation {
            tree: self.tree,
            index,
        })
    }

    /// The annotations with a key and a value.
    pub fn properties(self) -> impl Iterator<Item = PropertyAnnotation<'t>> {
        let tree = self.tree;
        tree.children(self.index)
            .filter(move |&child| tree.nodes[child].kind == NodeKind::PropertyAnnotation)
            .map(move |index| PropertyAnnotation { tree, index })
    }

    /// The annotated pattern.
    #[must_use]
    pub fn pattern(self) -> Option<Item<'t>> {
        let tree = self.tree;
        let index = tree.children(self.index).last()?;
        match tree.nodes[index].kind {
            NodeKind::Bracket => Some(Item::Bracket(Bracket { tree, index })),
            NodeKind::Path => Some(Item::Path(Path { tree, index })),
            _ => None,
        }
    }
}

impl<'t> IdentifiedAnnotation<'t> {
    /// Its name and labels.
    #[must_use]
    pub fn subject(self) -> Subject<'t> {
        Subject {
            tree: self.tree,
            index: self.index,
        }
    }
}

impl<'t> PropertyAnnotation<'t> {
    /// Its key.
    #[must_use]
    pub fn key(self) -> Option<Name<'t>> {
        let token = self.tree.direct_tokens(self.index).nth(1)?;
        (self.tree.token_kind(token)? == TokenKind::Symbol).then(|| self.tree.name(token))
    }

    /// Its value.
    #[must_use]
    pub fn value(self) -> Option<Value<'t>> {
        let index = self.tree.children(self.index).next()?;
        Value::read(self.tree, index)
    }
}

impl<'t> Bracket<'t> {
    /// The subject before the `|`.
    #[must_use]
    pub fn subject(self) -> Subject<'t> {
        Subject {
            tree: self.tree,
            index: self.index,
        }
    }

    /// The elements after the `|`, in order.
    pub fn elements(self) -> impl Iterator<Item = Element<'t>> {
        let tree = self.tree;
        tree.children(self.index)
            .filter_map(move |index| match tree.nodes[index].kind {
                NodeKind::Bracket => Some(Element::Bracket(Bracket { tree, index })),
                NodeKind::Path => Some(Element::Path(Path { tree, index })),
                NodeKind::Reference => Some(Element::Reference(
                    tree.name(tree.nodes[index].first_token as usize),
                )),
                _ => None,
            })
    }
}

impl Element<'_> {
    /// Its place in the text.
    #[must_use]
    pub fn span(&self) -> Span {
        match self {
            Self::Bracket(bracket) => bracket.span(),
            Self::Path(path) => path.span(),
            Self::Reference(name) => name.span,
        }
    }
}

impl<'t> Path<'t> {
    /// Its nodes, in order; there is at least one.
    pub fn nodes(self) -> impl Iterator<Item = Node<'t>> {
        let tree = self.tree;
        tree.children(self.index)
            .filter(move |&child| tree.nodes[child].kind == NodeKind::Node)
            .map(move |index| Node { tree, index })
    }

    /// Its arrows, in order: one fewer than nodes.
    pub fn arrows(self) -> impl Iterator<Item = Arrow<'t>> {
        let tree = self.tree;
        tree.children(self.index)
            .filter(move |&child| tree.nodes[child].kind == NodeKind::Arrow)
            .map(move |index| Arrow { tree, index })
    }
}

impl<'t> Node<'t> {
    /// The subject in the parentheses.
    #[must_use]
    pub fn subject(self) -> Subject<'t> {
        Subject {
            tree: self.tree,
            index: self.index,
        }
    }
}

impl<'t> Arrow<'t> {
    /// The subject in its brackets; empty without brackets.
    #[must_use]
    pub fn subject(self) -> Subject<'t> {
        Subject {
            tree: self.tree,
            index: self.index,
        }
    }

    /// Which of the twelve arrows it is.
    #[must_use]
    pub fn kind(self) -> ArrowKind {
        let half = |kind| {
            self.tree
                .direct_tokens(self.index)
                .find(|&token| self.tree.token_kind(token) == Some(kind))
                .map_or("", |token| self.tree.token_text(token))
        };
        let left = half(TokenKind::ArrowLeft);
        ArrowKind {
            line: match left.trim_start_matches('<') {
                "=" => ArrowLine::Double,
                "~" => ArrowLine::Squiggle,
                _ => ArrowLine::Single,
            },
            to_left: left.starts_with('<'),
            to_right: half(TokenKind::ArrowRight).ends_with('>'),
        }
    }
}

impl<'t> Subject<'t> {
    /// The name.
    #[must_use]
    pub fn identifier(self) -> Option<Name<'t>> {
        self.own_tokens()
            .find(|&token| {
                !matches!(
                    self.tree.token_kind(token),
                    Some(
                        TokenKind::BracketOpen
                            | TokenKind::ParenOpen
                            | TokenKind::DoubleAt
                            | TokenKind::ArrowLeft
                    )
                )
            })
            .filter(|&token| {
                self.tree
                    .token_kind(token)
                    .is_some_and(TokenKind::is_identifier)
            })
            .map(|token| self.tree.name(token))
    }

    /// The labels, in order.
    pub fn labels(self) -> impl Iterator<Item = Name<'t>> {
        let mut after_colon = false;
        self.own_tokens().filter_map(move |token| {
            let kind = self.tree.token_kind(token)?;
            let is_label = after_colon && kind.is_identifier();
            after_colon = matches!(kind, TokenKind::Colon | TokenKind::DoubleColon);
            is_label.then(|| self.tree.name(token))
        })
    }

    /// Whether one of its labels is `label`.
    #[must_use]
    pub fn has_label(self, label: &str) -> bool {
        self.labels().any(|name| name.text == label)
    }

    /// The record.
    #[must_use]
    pub fn record(self) -> Option<Record<'t>> {
        let index = self.tree.child(self.index, NodeKind::Record)?;
        Some(Record {
            tree: self.tree,
            index,
        })
    }

    /// Whether it has no name, no labels and no record.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.identifier().is_none() && self.labels().next().is_none() && self.record().is_none()
    }

    /// The tokens before the record or the elements.
    fn own_tokens(self) -> impl Iterator<Item = usize> + 't {
        let tree = self.tree;
        tree.direct_tokens(self.index)
            .take_while(move |&token| tree.token_kind(token) != Some(TokenKind::Pipe))
    }
}

impl<'t> Record<'t> {
    /// Its properties, in order.
    pub fn properties(self) -> impl Iterator<Item = Property<'t>> {
        let tree = self.tree;
        tree.children(self.index)
            .map(move |index| Property { tree, index })
    }

    /// The first property with this key.
    #[must_use]
    pub fn get(self, key: &str) -> Option<Property<'t>> {
        self.properties()
            .find(|property| property.key().is_some_and(|name| name.text == key))
    }
}

impl<'t> Property<'t> {
    /// The key.
    #[must_use]
    pub fn key(self) -> Option<Name<'t>> {
        let token = self.tree.direct_tokens(self.index).next()?;
        Some(self.tree.name(token))
    }

    /// The value.
    #[must_use]
    pub fn value(self) -> Option<Value<'t>> {
        let index = self.tree.children(self.index).next()?;
        Value::read(self.tree, index)
    }
}
