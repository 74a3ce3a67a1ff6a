//! The formatter: one canonical layout for every valid text.
//!
//! Layout depends only on the tokens, the comments, and the blank lines of the author. A
//! group (bracket, record, map, array, path) is on one line if it fits and contains neither comment
//! nor line break; otherwise it is broken at its separators. There are two passes over the tokens, no
//! recursion: the first measures, the second writes.

mod measure;
mod quote;

pub use quote::{quote, quote_name};

use crate::token::TokenKind;
use crate::tree::{NodeKind, SyntaxTree};
use measure::Measure;

const WIDTH: usize = 98;
const INDENTATION: usize = 2;
/// Deeper levels are not indented further. Otherwise the size of the output is quadratic in the depth.
const MAX_LEVEL: usize = 40;

/// Writes a valid tree in the canonical layout; `None` if the tree has errors.
///
/// ```
/// let tree = windlass_gram::parse("( a :Person{name:'Ann'} )-[ :KNOWS ]->(b)");
/// assert_eq!(
///     windlass_gram::format(&tree).as_deref(),
///     Some("(a:Person {name: 'Ann'})-[:KNOWS]->(b)\n")
/// );
/// ```
#[must_use]
pub fn format(tree: &SyntaxTree<'_>) -> Option<String> {
    if !tree.is_valid() {
        return None;
    }
    let mut writer = Writer {
        tree,
        measure: Measure::new(tree),
        out: String::with_capacity(tree.source().len() + tree.source().len() / 8),
        column: 0,
        line_level: 0,
        frames: Vec::new(),
        next_node: 0,
        previous: None,
    };
    writer.write();
    Some(writer.out)
}

/// An open node.
#[derive(Debug, Clone, Copy)]
struct Frame {
    node: usize,
    kind: NodeKind,
    is_broken: bool,
    /// The level of the line it opened on.
    level: usize,
}

/// The last token written that was not trivia, and the node it belongs to.
#[derive(Debug, Clone, Copy)]
struct Previous {
    kind: TokenKind,
    owner: Frame,
}

struct Writer<'t> {
    tree: &'t SyntaxTree<'t>,
    measure: Measure,
    out: String,
    column: usize,
    line_level: usize,
    frames: Vec<Frame>,
    next_node: usize,
    previous: Option<Previous>,
}

impl Writer<'_> {
    fn write(&mut self) {
        let mut trivia = 0;
        for token in 0..self.tree.tokens.len() {
            if self.tree.tokens[token].kind.is_trivia() {
                continue;
            }
            let opened_from = self.frames.len();
            self.open_nodes(token);
            let line_break = self.line_break(token, opened_from);
            self.separate(trivia..token, token, line_break);
            self.decide_groups(opened_from, token);
            self.put(self.tree.token_text(token));
            if let Some(&owner) = self.frames.last() {
                self.previous = Some(Previous {
                    kind: self.tree.tokens[token].kind,
                    owner,
                });
            }
            self.close_nodes(token);
            trivia = token + 1;
        }
        self.comments(trivia..self.tree.tokens.len(), 0);
        if !self.out.is_empty() && !self.out.ends_with('\n') {
            self.out.push('\n');
        }
    }

    fn open_nodes(&mut self, token: usize) {
        while let Some(node) = self.tree.nodes.get(self.next_node) {
            if node.first_token as usize > token {
                return;
            }
            self.frames.push(Frame {
                node: self.next_node,
                kind: node.kind,
                is_broken: false,
                level: self.line_level,
            });
            self.next_node += 1;
        }
    }

    fn close_nodes(&mut self, token: usize) {
        while let Some(frame) = self.frames.last()
            && self.tree.nodes[frame.node].end_token as usize <= token + 1
        {
            self.frames.pop();
        }
    }

    /// Decides, now that the column is known, which of the groups that open at `token` break.
    fn decide_groups(&mut self, opened_from: usize, token: usize) {
        for index in opened_from..self.frames.len() {
            let frame = self.frames[index];
            let end = self.tree.nodes[frame.node].end_token as usize;
            let fits = !self.measure.must_break(token, end)
                && self.column + self.measure.width(token, end) <= WIDTH;
            self.frames[index].is_broken = !fits;
            self.frames[index].level = self.line_level;
        }
    }

    /// The level of the line break that the layout needs before `token`, if any.
    fn line_break(&self, token: usize, opened_from: usize) -> Option<usize> {
        let previous = self.previous?;
        let kind = self.tree.tokens[token].kind;
        let starts_item = opened_from == 1 && self.frames.len() > 1;
        if starts_item {
            return Some(0);
        }
        let owner = self.frames.last()?;
        let inner = previous.owner.level + 1;
        let breaks_after = match previous.kind {
            TokenKind::Comma | TokenKind::BraceOpen => previous.owner.is_broken,
            TokenKind::BracketOpen => {
                previous.owner.is_broken && previous.owner.kind == NodeKind::Array
            }
            TokenKind::Pipe => previous.owner.is_broken,
            _ => false,
        };
        if breaks_after {
            return Some(inner);
        }
        let closes_group = match kind {
            TokenKind::BraceClose => true,
            TokenKind::BracketClose => match owner.kind {
                NodeKind::Array => true,
                NodeKind::Bracket => self.measure.has_elements(owner.node),
                _ => false,
            },
            _ => false,
        };
        if closes_group && owner.is_broken {
            return Some(owner.level);
        }
        if kind == TokenKind::ArrowLeft {
            let path = self.frames.iter().rev().nth(1)?;
            return path.is_broken.then_some(path.level + 1);
        }
        None
    }

    /// Writes what is between the previous token and `token`: comments, a line break, a space.
    fn separate(
        &mut self,
        trivia: std::ops::Range<usize>,
        token: usize,
        line_break: Option<usize>,
    ) {
        let is_closing = matches!(
            self.tree.tokens[token].kind,
            TokenKind::BraceClose | TokenKind::BracketClose | TokenKind::ParenClose
        );
        let continuation = self.previous.map_or(0, |previous| previous.owner.level + 1);
        let comment_level = match line_break {
            Some(level) if is_closing => level + 1,
            Some(level) => level,
            None => continuation,
        };
        let breaks_for_docs = line_break.is_some();
        let blank_line = self.comments_before(trivia, comment_level, breaks_for_docs);
        let has_comment = self.out.ends_with('\n');
        match line_break {
            Some(level) => self.new_line(level, blank_line && !is_closing),
            None if has_comment => {
                let is_first = self.previous.is_none();
                self.new_line(continuation, blank_line && is_first);
            }
            None => {
                if self.measure.has_space(token) {
                    self.put(" ");
                }
            }
        }
    }

    fn comments(&mut self, trivia: std::ops::Range<usize>, level: usize) {
        self.comments_before(trivia, level, true);
    }

    /// Writes the comments in `trivia`, each ended by a line break. Returns true if a blank line
    /// follows the last of them.
    fn comments_before(
        &mut self,
        trivia: std::ops::Range<usize>,
        level: usize,
        breaks_for_docs: bool,
    ) -> bool {
        let mut line_breaks = 0;
        for index in trivia {
            let text = self.tree.token_text(index);
            let kind = self.tree.tokens[index].kind;
            if kind == TokenKind::Whitespace {
                line_breaks += text.bytes().filter(|&byte| byte == b'\n').count();
                continue;
            }
            let is_on_own_line = line_breaks > 0
                || self.out.ends_with('\n')
                || (kind == TokenKind::DocComment && breaks_for_docs);
            if self.out.is_empty() {
                // Nothing precedes the first comment of the text.
            } else if is_on_own_line {
                self.new_line(level, line_breaks > 1);
            } else {
                self.put(" ");
            }
            self.put(text.trim_end());
            self.out.push('\n');
            line_breaks = 0;
        }
        line_breaks > 1
    }

    /// Starts a line at `level`, after a blank line if `blank_line` is set and the previous token allows it.
    fn new_line(&mut self, level: usize, blank_line: bool) {
        if !self.out.is_empty() && !self.out.ends_with('\n') {
            self.out.push('\n');
        }
        let after_opening = self.previous.is_some_and(|previous| {
            matches!(
                previous.kind,
                TokenKind::BraceOpen | TokenKind::BracketOpen | TokenKind::Pipe
            )
        }) && !self.ends_with_comment();
        if blank_line && !after_opening && !self.out.is_empty() {
            self.out.push('\n');
        }
        let spaces = level.min(MAX_LEVEL) * INDENTATION;
        self.out.extend(std::iter::repeat_n(' ', spaces));
        self.column = spaces;
        self.line_level = level;
    }

    /// Whether the last finished line is a comment.
    fn ends_with_comment(&self) -> bool {
        let finished = self.out.strip_suffix('\n').unwrap_or(&self.out);
        let line = finished
            .rsplit('\n')
            .next()
            .unwrap_or_default()
            .trim_start();
        line.starts_with("//") || line.ends_with("*/")
    }

    fn put(&mut self, text: &str) {
        self.out.push_str(text);
        self.column = match text.rfind('\n') {
            Some(line_break) => text[line_break + 1..].chars().count(),
            None => self.column + text.chars().count(),
        };
    }
}
