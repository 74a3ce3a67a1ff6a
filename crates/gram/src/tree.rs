//! The syntax tree: a flat list of nodes in the order they open, over tokens that tile the source.
//!
//! Nothing in it is nested in memory, so input of any depth is built, walked and dropped without
//! recursion. Typed access is in [`view`](crate::view).

use crate::diagnostic::{Diagnostic, Span};
use crate::token::{Token, TokenKind};

/// The kind of a node of the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum NodeKind {
    /// The whole text.
    Document,
    /// Annotations and the one pattern they annotate.
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
    /// `-[subject]->` and the other arrows.
    Arrow,
    /// A bare name among the elements of a bracket.
    Reference,
    /// `{key: value}` as part of a subject or as the header of a text.
    Record,
    /// `key: value` of a record.
    Property,
    /// `{key: value}` as a value.
    Map,
    /// `key: value` of a map.
    Entry,
    /// `[value, value]`
    Array,
    /// A value of one token.
    Scalar,
    /// `1..5`, `1...`, `...5`
    Range,
    /// A tag and a backticked text.
    Tagged,
}

/// A node: its kind, its tokens, and the nodes below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NodeData {
    pub(crate) kind: NodeKind,
    /// Index of its first token.
    pub(crate) first_token: u32,
    /// Index just after its last token.
    pub(crate) end_token: u32,
    /// Index just after the last node below it.
    pub(crate) end_node: u32,
}

/// A parsed text: every byte of it in tokens, every construct in nodes, every error and warning in
/// diagnostics.
#[derive(Debug, Clone)]
pub struct SyntaxTree<'s> {
    pub(crate) source: &'s str,
    pub(crate) tokens: Vec<Token>,
    pub(crate) nodes: Vec<NodeData>,
    pub(crate) diagnostics: Vec<Diagnostic>,
    pub(crate) is_valid: bool,
}

impl<'s> SyntaxTree<'s> {
    /// The text this tree was made from.
    #[must_use]
    pub fn source(&self) -> &'s str {
        self.source
    }

    /// Whether the text is valid gram. Warnings do not count.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.is_valid
    }

    /// All errors and warnings, in the order of the text.
    #[must_use]
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// All tokens in order, blanks and comments included.
    #[must_use]
    pub fn tokens(&self) -> &[Token] {
        &self.tokens
    }

    /// The span of the token at `index`.
    #[must_use]
    pub fn token_span(&self, index: usize) -> Span {
        let end = self.source.len() as u32;
        let start = self.tokens.get(index).map_or(end, |token| token.start);
        let next = self.tokens.get(index + 1).map_or(end, |token| token.start);
        Span::new(start, next)
    }

    /// The text of the token at `index`.
    #[must_use]
    pub fn token_text(&self, index: usize) -> &'s str {
        self.token_span(index).text(self.source)
    }

    pub(crate) fn token_kind(&self, index: usize) -> Option<TokenKind> {
        self.tokens.get(index).map(|token| token.kind)
    }

    /// The span of a node, from its first to its last token.
    pub(crate) fn node_span(&self, index: usize) -> Span {
        let node = self.nodes[index];
        let start = self.token_span(node.first_token as usize).start;
        if node.end_token <= node.first_token {
            return Span::empty(start);
        }
        Span::new(start, self.token_span(node.end_token as usize - 1).end)
    }

    /// Indices of the direct children of the node at `index`.
    pub(crate) fn children(&self, index: usize) -> Children<'_> {
        Children {
            nodes: &self.nodes,
            next: index + 1,
            end: self.nodes[index].end_node as usize,
        }
    }

    /// Indices of the direct tokens of a node: those not in a child. Trivia is left out.
    pub(crate) fn direct_tokens(&self, index: usize) -> impl Iterator<Item = usize> + '_ {
        let node = self.nodes[index];
        let mut children = self.children(index).peekable();
        let mut at = node.first_token as usize;
        std::iter::from_fn(move || {
            loop {
                if at >= node.end_token as usize {
                    return None;
                }
                if let Some(child) =
                    children.next_if(|&child| self.nodes[child].first_token as usize <= at)
                {
                    at = at.max(self.nodes[child].end_token as usize);
                    continue;
                }
                let token = at;
                at += 1;
                if !self.tokens[token].kind.is_trivia() {
                    return Some(token);
                }
            }
        })
    }
}

/// Walks the direct children of a node.
#[derive(Debug, Clone)]
pub(crate) struct Children<'t> {
    nodes: &'t [NodeData],
    next: usize,
    end: usize,
}

impl Iterator for Children<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        if self.next >= self.end {
            return None;
        }
        let child = self.next;
        self.next = self.nodes[child].end_node as usize;
        Some(child)
    }
}

/// Writes a tree back as text, token by token: for every text, `print(&parse(text)) == text`.
#[must_use]
pub fn print(tree: &SyntaxTree<'_>) -> String {
    (0..tree.tokens.len())
        .map(|index| tree.token_text(index))
        .collect()
}
