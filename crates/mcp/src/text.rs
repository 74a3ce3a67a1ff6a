//! Text of servers that a person would not see and a model would read: what [`windlass_spec::text`] finds
//! hidden in text for models, and HTML comments. [`hidden`] finds it, [`visible`] shows it, [`findings`]
//! looks through everything a server says of a tool. One pass over the text is all it takes.

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

/// How much of what is hidden is told.
const MAX_TOLD: usize = 200;

/// A kind of hidden text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HiddenKind {
    /// Characters of one class.
    Characters(CharacterClass),
    /// An HTML comment.
    Comment,
}

impl HiddenKind {
    /// What it is, for a sentence.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Characters(class) => class.as_str(),
            Self::Comment => "a comment that is not shown",
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
    /// Of what kind.
    pub kind: HiddenKind,
    /// Where it begins, in bytes.
    pub place: usize,
    /// What it is, made visible; the beginning of it if it is long.
    pub what: String,
}

/// All hidden text in a text, in its order; neighbours of one kind are one piece.
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
            // All of it, since it is all hidden; what is hidden once more inside comes as well.
            HiddenKind::Comment => {
                let rest = text.get(mark.end..).unwrap_or_default();
                let bounded = clipped(rest, MAX_TOLD);
                let inner = bounded.split("-->").next().unwrap_or_default();
                visible(inner).trim().to_owned()
            }
            HiddenKind::Characters(_) => clipped(&shown(text, &mark), MAX_TOLD).to_owned(),
        };
        Some(Hidden {
            kind: mark.kind,
            place: mark.start,
            what,
        })
    })
}

/// The text with everything hidden in it made visible: `⟨U+200B⟩`, `⟨ESC⟩[31m`, `⟨comment: ...⟩`.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    counted(text).0
}

/// The text made visible, and how much was hidden.
fn counted(text: &str) -> (Cow<'_, str>, usize) {
    let mut made = String::new();
    let (mut count, mut copied) = (0, 0);
    for mark in Scanner::new(text) {
        made.push_str(text.get(copied..mark.start).unwrap_or_default());
        made.push_str(&shown(text, &mark));
        copied = mark.end;
        // The end of a comment is no second piece.
        count += usize::from(mark.kind != HiddenKind::Comment || mark.opens);
    }
    if count == 0 {
        return (Cow::Borrowed(text), 0);
    }
    made.push_str(text.get(copied..).unwrap_or_default());
    (Cow::Owned(made), count)
}

/// JSON with everything hidden in its texts and keys made visible, and how much was hidden.
#[must_use]
pub fn visible_json(value: Value) -> (Value, usize) {
    let mut count = 0;
    let value = shown_json(value, &mut count);
    (value, count)
}

// Values are read from text, which nests at most 128 levels.
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
                // Two keys that only now look the same stay two.
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

/// How a mark is shown.
fn shown(text: &str, mark: &Mark) -> String {
    let piece = text.get(mark.start..mark.end).unwrap_or_default();
    match mark.kind {
        HiddenKind::Comment if mark.is_nested => "⟨!--⟩".to_owned(),
        HiddenKind::Comment if mark.opens => "⟨comment:".to_owned(),
        HiddenKind::Comment => "⟩".to_owned(),
        HiddenKind::Characters(class) => {
            // Angle brackets in what is spelled might make a comment of what was made visible.
            describe_hidden(class, piece).replace("<!--", "⟨!--")
        }
    }
}

/// The beginning of a text, at most so many characters.
pub(crate) fn clipped(text: &str, most: usize) -> &str {
    match text.char_indices().nth(most) {
        Some((end, _)) => text.get(..end).unwrap_or_default(),
        None => text,
    }
}
