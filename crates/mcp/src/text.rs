//! Hidden text of servers, which a model reads but a user does not see: the hidden characters of
//! [`windlass_spec::text`], and HTML comments. [`hidden`] finds it, [`visible`] makes it visible, and
//! [`findings`] checks the whole definition of a tool. All take one pass over the text.

mod findings;
mod scan;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;

use serde_json::{Map, Value};

pub(crate) use findings::below;
pub use findings::{Finding, Suspicion, findings};
use scan::{Mark, Scanner};
use windlass_spec::text::{CharacterClass, describe_hidden};

/// The longest piece of hidden text that is reported, in characters.
const MAX_REPORTED: usize = 200;

/// A kind of hidden text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HiddenKind {
    /// Characters of one class.
    Characters(CharacterClass),
    /// An HTML comment.
    Comment,
}

impl HiddenKind {
    /// The name of the kind, for a message.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Characters(class) => class.as_str(),
            Self::Comment => "an HTML comment",
        }
    }
}

impl fmt::Display for HiddenKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A piece of hidden text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hidden {
    /// The kind.
    pub kind: HiddenKind,
    /// The offset in bytes.
    pub place: usize,
    /// The hidden text made visible, truncated if it is long.
    pub what: String,
}

/// All hidden text in a text, in order. Adjacent characters of one kind are one piece.
#[must_use]
pub fn hidden(text: &str) -> Vec<Hidden> {
    pieces(text).collect()
}

fn pieces(text: &str) -> impl Iterator<Item = Hidden> {
    let mut scanner = Scanner::new(text);
    std::iter::from_fn(move || {
        let mark = loop {
            let mark = scanner.next()?;
            if mark.kind != HiddenKind::Comment || mark.opens {
                break mark;
            }
        };
        let what = match mark.kind {
            HiddenKind::Comment if mark.is_nested => "⟨!--⟩".to_owned(),
            // The content of the comment. Hidden characters inside it are reported separately too.
            HiddenKind::Comment => {
                let rest = text.get(mark.end..).unwrap_or_default();
                let bounded = clipped(rest, MAX_REPORTED);
                let inner = bounded.split("-->").next().unwrap_or_default();
                visible(inner).trim().to_owned()
            }
            HiddenKind::Characters(_) => clipped(&shown(text, &mark), MAX_REPORTED).to_owned(),
        };
        Some(Hidden {
            kind: mark.kind,
            place: mark.start,
            what,
        })
    })
}

/// The text with all hidden text made visible: `⟨U+200B⟩`, `⟨ESC⟩[31m`, `⟨comment: ...⟩`.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    counted(text).0
}

/// The text made visible, and the number of hidden pieces.
fn counted(text: &str) -> (Cow<'_, str>, usize) {
    let mut made = String::new();
    let (mut count, mut copied) = (0, 0);
    for mark in Scanner::new(text) {
        made.push_str(text.get(copied..mark.start).unwrap_or_default());
        made.push_str(&shown(text, &mark));
        copied = mark.end;
        // The end of a comment is not a separate piece.
        count += usize::from(mark.kind != HiddenKind::Comment || mark.opens);
    }
    if count == 0 {
        return (Cow::Borrowed(text), 0);
    }
    made.push_str(text.get(copied..).unwrap_or_default());
    (Cow::Owned(made), count)
}

/// JSON with all hidden text in its strings and keys made visible, and the number of hidden pieces.
#[must_use]
pub fn visible_json(value: Value) -> (Value, usize) {
    let mut count = 0;
    let value = shown_json(value, &mut count);
    (value, count)
}

// Recursion is safe: the JSON parser limits the depth to 128 levels.
fn shown_json(value: Value, count: &mut usize) -> Value {
    match value {
        Value::String(text) => Value::String(shown_text(text, count)),
        Value::Array(items) => items
            .into_iter()
            .map(|item| shown_json(item, count))
            .collect(),
        Value::Object(entries) => {
            let mut shown = Map::with_capacity(entries.len());
            for (key, value) in entries {
                let mut key = shown_text(key, count);
                // Keeps two keys that become equal distinct.
                while shown.contains_key(&key) {
                    key.push('\'');
                }
                shown.insert(key, shown_json(value, count));
            }
            Value::Object(shown)
        }
        other => other,
    }
}

fn shown_text(text: String, count: &mut usize) -> String {
    let (shown, found) = counted(&text);
    *count += found;
    match shown {
        Cow::Owned(shown) => shown,
        Cow::Borrowed(_) => text,
    }
}

/// The visible form of a mark.
fn shown(text: &str, mark: &Mark) -> String {
    let piece = text.get(mark.start..mark.end).unwrap_or_default();
    match mark.kind {
        HiddenKind::Comment if mark.is_nested => "⟨!--⟩".to_owned(),
        HiddenKind::Comment if mark.opens => "⟨comment:".to_owned(),
        HiddenKind::Comment => "⟩".to_owned(),
        HiddenKind::Characters(class) => {
            // Decoded characters might form a new comment.
            describe_hidden(class, piece).replace("<!--", "⟨!--")
        }
    }
}

/// The first `most` characters of a text.
pub(crate) fn clipped(text: &str, most: usize) -> &str {
    match text.char_indices().nth(most) {
        Some((end, _)) => text.get(..end).unwrap_or_default(),
        None => text,
    }
}
