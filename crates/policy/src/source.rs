//! The text of a policy file: positions for people, and the examples in its comments. Cedar's own parser
//! parses the rules.

use crate::error::PolicyPosition;

/// The line and column of a byte, both counted from 1, columns in characters.
pub(crate) fn place(text: &str, offset: usize) -> PolicyPosition {
    let offset = (0..=offset.min(text.len()))
        .rev()
        .find(|&at| text.is_char_boundary(at))
        .unwrap_or(0);
    let before = text.get(..offset).unwrap_or_default();
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    PolicyPosition {
        offset,
        line: before.matches('\n').count() + 1,
        column: before
            .get(line_start..)
            .map_or(0, |line| line.chars().count())
            + 1,
    }
}

/// A comment for Windlass: `// @word rest`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExampleComment {
    /// The offset of its `@`.
    pub(crate) offset: usize,
    /// The word after `@`.
    pub(crate) word: String,
    /// The text after it, on this line and on the following comment lines up to the next `@word`.
    pub(crate) rest: String,
}

/// The example comments of a policy file, in order.
pub(crate) fn example_comments(text: &str) -> Vec<ExampleComment> {
    let mut found: Vec<ExampleComment> = Vec::new();
    // Whether the previous line was part of an example comment, so that this one may continue it.
    let mut open = false;
    for comment in comments(text) {
        let content = comment.text.trim_start();
        let offset = comment.offset + (comment.text.len() - content.len());
        if let Some((word, rest)) = example_word(content) {
            found.push(ExampleComment {
                offset,
                word: word.to_owned(),
                rest: rest.trim().to_owned(),
            });
            open = true;
        } else if open && comment.follows {
            if let Some(last) = found.last_mut() {
                last.rest.push('\n');
                last.rest.push_str(content.trim_end());
            }
        } else {
            open = false;
        }
    }
    found
}

/// The word after `@` and the text after it. A commented-out annotation does not count, unless its word
/// is `match` or `not_match`.
fn example_word(content: &str) -> Option<(&str, &str)> {
    let content = content.strip_prefix('@')?;
    let end = content
        .find(|c: char| !c.is_alphanumeric() && c != '_' && c != '-')
        .unwrap_or(content.len());
    let (word, rest) = content.split_at(end);
    let is_annotation = rest.trim_start().starts_with('(');
    (!word.is_empty() && (!is_annotation || matches!(word, "match" | "not_match")))
        .then_some((word, rest))
}

struct Comment<'a> {
    /// The offset of the text after the slashes.
    offset: usize,
    text: &'a str,
    /// Whether it is alone on the line after the previous comment.
    follows: bool,
}

fn comments(text: &str) -> Vec<Comment<'_>> {
    let mut found: Vec<Comment<'_>> = Vec::new();
    let mut end_of_last = None;
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                at += 1;
                while at < bytes.len() && bytes[at] != b'"' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                at += 1;
            }
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                let start = at + 2;
                let end = text.get(start..).and_then(|rest| rest.find('\n'));
                let end = end.map_or(text.len(), |length| start + length);
                let follows = end_of_last.is_some_and(|last: usize| {
                    let between = text.get(last..at).unwrap_or_default();
                    between.trim().is_empty() && between.matches('\n').count() == 1
                });
                found.push(Comment {
                    offset: start,
                    text: text.get(start..end).unwrap_or_default(),
                    follows,
                });
                end_of_last = Some(end);
                at = end;
            }
            _ => at += 1,
        }
    }
    found
}

#[cfg(test)]
mod tests;
