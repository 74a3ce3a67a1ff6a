//! The first pass of the formatter: the width of groups on one line, the groups that cannot be on one
//! line, and the places of spaces. Widths and breaks are differences of prefix sums.

use crate::token::TokenKind;
use crate::tree::{NodeKind, SyntaxTree};

pub(super) struct Measure {
    /// For each token, the width of all text before it on one line without a limit.
    width_before: Vec<u32>,
    /// For each token, how many tokens before it need a line of their own.
    breaks_before: Vec<u32>,
    /// Whether a space precedes the token on one line.
    spaces: Vec<bool>,
    /// Brackets that have elements, by node.
    has_elements: Vec<bool>,
}

impl Measure {
    pub(super) fn new(tree: &SyntaxTree<'_>) -> Self {
        let count = tree.tokens.len();
        let mut measure = Self {
            width_before: Vec::with_capacity(count + 1),
            breaks_before: Vec::with_capacity(count + 1),
            spaces: vec![false; count],
            has_elements: vec![false; tree.nodes.len()],
        };
        let (mut width, mut breaks) = (0_u32, 0_u32);
        let mut owners: Vec<usize> = Vec::new();
        let mut next_node = 0;
        let mut previous: Option<(TokenKind, NodeKind)> = None;
        for (index, token) in tree.tokens.iter().enumerate() {
            measure.width_before.push(width);
            measure.breaks_before.push(breaks);
            if token.kind == TokenKind::Whitespace {
                continue;
            }
            let text = tree.token_text(index);
            if token.kind.is_trivia() {
                breaks += 1;
                continue;
            }
            while tree
                .nodes
                .get(next_node)
                .is_some_and(|node| node.first_token as usize <= index)
            {
                owners.push(next_node);
                next_node += 1;
            }
            let owner = owners.last().copied().unwrap_or(0);
            let owner_kind = tree.nodes[owner].kind;
            if token.kind == TokenKind::Pipe {
                measure.has_elements[owner] = true;
            }
            let has_space = previous.is_some_and(|(previous, previous_owner)| {
                needs_space(previous, previous_owner, token.kind, owner_kind)
            });
            measure.spaces[index] = has_space;
            width += text.chars().count() as u32 + u32::from(has_space);
            breaks += u32::from(text.contains('\n'));
            previous = Some((token.kind, owner_kind));
            while let Some(&top) = owners.last()
                && tree.nodes[top].end_token as usize <= index + 1
            {
                owners.pop();
            }
        }
        measure.width_before.push(width);
        measure.breaks_before.push(breaks);
        measure
    }

    /// The width of the tokens from `start` up to `end` on one line.
    pub(super) fn width(&self, start: usize, end: usize) -> usize {
        (self.width_before[end] - self.width_before[start]) as usize
    }

    /// Whether one of the tokens from `start` up to `end` is a comment or spans lines.
    pub(super) fn must_break(&self, start: usize, end: usize) -> bool {
        self.breaks_before[end] > self.breaks_before[start]
    }

    pub(super) fn has_space(&self, token: usize) -> bool {
        self.spaces[token]
    }

    pub(super) fn has_elements(&self, node: usize) -> bool {
        self.has_elements[node]
    }
}

/// Whether a space separates two neighbouring tokens on one line.
fn needs_space(
    previous: TokenKind,
    previous_owner: NodeKind,
    token: TokenKind,
    owner: NodeKind,
) -> bool {
    use TokenKind::{
        At, BraceClose, BraceOpen, BracketClose, BracketOpen, Colon, Comma, DotDot, DotDotDot,
        DoubleAt, DoubleColon, ParenClose, ParenOpen, Pipe,
    };
    match previous {
        Comma | Pipe => return true,
        ParenOpen | BracketOpen | BraceOpen | At | DoubleAt | DotDot | DotDotDot => return false,
        Colon | DoubleColon => {
            return matches!(previous_owner, NodeKind::Property | NodeKind::Entry);
        }
        _ => {}
    }
    match token {
        ParenClose | BracketClose | BraceClose | Comma | Colon | DoubleColon | DotDot
        | DotDotDot => false,
        Pipe | BraceOpen => true,
        // A pattern or another annotation after an annotation.
        At | ParenOpen | BracketOpen if previous_owner == NodeKind::PropertyAnnotation => {
            !(owner == NodeKind::PropertyAnnotation && token == ParenOpen)
        }
        At | ParenOpen | BracketOpen => previous_owner == NodeKind::IdentifiedAnnotation,
        _ => false,
    }
}
