//! Text that a person would not see and a model would read: invisible characters, characters that turn
//! the direction of reading, text spelled in tag characters or variation selectors, terminal controls,
//! HTML comments. [`hidden`] finds it, [`visible`] shows it, [`findings`] looks through everything a
//! server says of a tool.
//!
//! Some invisible characters are part of honest writing. They pass exactly where writing needs them:
//! - a zero-width joiner between two pictographs, and either joiner once between two letters of a script
//!   that joins (Arabic and its kin, the Indic scripts, Mongolian): a Persian or Malayalam word cannot
//!   be written without;
//! - a variation selector once after what it can select a form of: a pictograph or the digit of a
//!   keycap, a Mongolian letter, an ideograph. Selectors after ideographs can carry a byte each, so
//!   more than [`MAX_IDEOGRAPH_SELECTORS`] in one text are not taken for spelling;
//! - a left-to-right or right-to-left mark beside a letter written from right to left, but never an
//!   embedding, override or isolate, which show a text in another order than it is read in;
//! - the tag characters of the flags of England, Scotland and Wales, which are the only ones in use;
//! - a carriage return before a line feed.
//!
//! Everywhere else they are hidden text, however few. One pass over the text is all it takes.

mod classes;
mod findings;
mod scan;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt::{self, Write as _};

use serde_json::{Map, Value};

pub(crate) use findings::below;
pub use findings::{Finding, Suspicion, findings};
use scan::{Mark, Scanner};

/// How many variation selectors after ideographs one text may have.
pub const MAX_IDEOGRAPH_SELECTORS: usize = 8;

/// How much of what is hidden is told.
const MAX_TOLD: usize = 200;

/// A kind of hidden text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HiddenKind {
    /// A character without width, or one that is blank and counts as a letter.
    ZeroWidth,
    /// A character that turns the direction of reading.
    Direction,
    /// Another character that shapes text and is not seen.
    Format,
    /// Text spelled in tag characters.
    Tags,
    /// Variation selectors that select nothing: data.
    Selectors,
    /// A character without a meaning of its own, or one that no text may hold.
    PrivateUse,
    /// A control character, such as one that begins a command to a terminal.
    Control,
    /// An HTML comment.
    Comment,
}

impl HiddenKind {
    /// What it is, for a sentence.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ZeroWidth => "characters without width",
            Self::Direction => "characters that turn the direction of reading",
            Self::Format => "invisible characters",
            Self::Tags => "text spelled in tag characters",
            Self::Selectors => "variation selectors that select nothing",
            Self::PrivateUse => "characters without a meaning",
            Self::Control => "control characters",
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
            _ => clipped(&shown(text, &mark), MAX_TOLD).to_owned(),
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
        HiddenKind::Tags => match spelled(piece, classes::tag_byte) {
            Some(spelled) => format!("⟨tags: {spelled}⟩"),
            None => listed(piece),
        },
        HiddenKind::Selectors => match spelled(piece, classes::selector_byte) {
            Some(spelled) => format!("⟨selectors: {spelled}⟩"),
            None => listed(piece),
        },
        _ => listed(piece),
    }
}

/// What characters spell that stand for bytes, if it is something to read.
fn spelled(piece: &str, byte: fn(char) -> Option<u8>) -> Option<String> {
    let spelled: Option<String> = piece
        .chars()
        .map(|c| {
            let letter = char::from(byte(c)?);
            (letter == ' ' || letter.is_ascii_graphic()).then_some(letter)
        })
        .collect();
    // Angle brackets in it might make a comment of what was made visible.
    spelled.map(|text| text.replace("<!--", "⟨!--"))
}

/// Characters by their names or numbers; of equal ones in a row, how many.
fn listed(piece: &str) -> String {
    let mut listed = String::new();
    let mut characters = piece.chars().peekable();
    while let Some(c) = characters.next() {
        let mut times = 1;
        while characters.next_if_eq(&c).is_some() {
            times += 1;
        }
        // Writing to a text cannot fail.
        let _ = match (classes::control_name(c), times) {
            (Some(name), 1) => write!(listed, "⟨{name}⟩"),
            (Some(name), _) => write!(listed, "⟨{name} ×{times}⟩"),
            (None, 1) => write!(listed, "⟨U+{:04X}⟩", u32::from(c)),
            (None, _) => write!(listed, "⟨U+{:04X} ×{times}⟩", u32::from(c)),
        };
    }
    listed
}

/// The beginning of a text, at most so many characters.
pub(crate) fn clipped(text: &str, most: usize) -> &str {
    match text.char_indices().nth(most) {
        Some((end, _)) => text.get(..end).unwrap_or_default(),
        None => text,
    }
}
