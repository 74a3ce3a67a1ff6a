//! Text safety: the one module that decides which characters are invisible, bidirectional, control or
//! confusable, and how they are shown. All text for a terminal, a page, a log, an approval or
//! a model passes through it, so no other module lists characters.
//!
//! [`class_of`] is the table. Some characters of its classes are part of ordinary writing, so what is
//! *hidden* in a text depends on its [`TextUse`] and on the neighbours of the character:
//!
//! | character | [`Name`](TextUse::Name) | [`Exact`](TextUse::Exact) | [`Display`](TextUse::Display) | [`Model`](TextUse::Model) |
//! |---|---|---|---|---|
//! | line feed | hidden | passes | passes | passes |
//! | tab | hidden | hidden | passes | passes |
//! | carriage return before a line feed | hidden | hidden | hidden | passes |
//! | emoji selector after a pictograph or in a keycap | passes | hidden | passes | passes |
//! | joiner between pictographs, or between letters of a script that joins | hidden | hidden | passes | passes |
//! | Mongolian selector after its letter, blank jamo or braille next to another | hidden | hidden | passes | passes |
//! | left-to-right or right-to-left mark next to a right-to-left letter | hidden | hidden | hidden | passes |
//! | selector after an ideograph, at most [`MAX_IDEOGRAPH_SELECTORS`] a text | hidden | hidden | hidden | passes |
//! | tags of the flags of England, Scotland and Wales | hidden | hidden | hidden | passes |
//! | embedding, override, isolate; all other tags; line and paragraph separator; other controls | hidden | hidden | hidden | hidden |
//! | private use, noncharacter | hidden | hidden | hidden | hidden |
//! | unassigned | passes | hidden | hidden, but for the blocks of pictographs | passes |
//! | space other than U+0020, sign that encloses digits | passes | hidden | passes | passes |
//!
//! The reasons: an emoji family or a Persian word in an answer must stay readable and is harmless
//! there, so `Display` lets its joiners pass. On a terminal, no character passes that reorders the text,
//! carries more than a bit per visible character, or moves the cursor. An approver must see
//! every character exactly, so `Exact` lets almost nothing pass. Different names must not look the same,
//! so `Name` lets no joiners pass.

mod classes;
mod confusable;
mod scan;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt::Write as _;

pub use classes::{CharacterClass, class_of};
pub use confusable::{latin_words, look_alike, skeleton};
pub use scan::{HiddenSpan, HiddenSpans};

/// The largest number of variation selectors after ideographs in one text for a model. Each can carry a
/// byte, so more of them are treated as hidden data.
pub const MAX_IDEOGRAPH_SELECTORS: usize = 8;

/// The use of a text, which decides which characters are allowed in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TextUse {
    /// An identifier, or a word within a line: a name of a tool, agent, person or file. On one line.
    Name,
    /// Text that an approver decides about, character by character.
    Exact,
    /// Text for people: on a terminal, on a page, in a log.
    Display,
    /// Text that a model reads.
    Model,
}

impl TextUse {
    /// Whether a character passes independent of its neighbours.
    fn always_passes(self, c: char) -> bool {
        match c {
            '\n' => self != Self::Name,
            '\t' => matches!(self, Self::Display | Self::Model),
            _ => false,
        }
    }
}

/// Whether a character is hidden unless its neighbours make it part of ordinary writing. Only for
/// single characters; for a text, [`is_clean`] is more precise.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    class_of(c).is_some_and(|class| {
        !matches!(
            class,
            CharacterClass::Unassigned | CharacterClass::Space | CharacterClass::NumberSign
        )
    })
}

/// All hidden characters of a text, in order; neighbours of one class are one span.
#[must_use]
pub fn hidden_spans(text: &str, text_use: TextUse) -> HiddenSpans<'_> {
    HiddenSpans::new(text, text_use)
}

/// Whether a text has no hidden characters.
#[must_use]
pub fn is_clean(text: &str, text_use: TextUse) -> bool {
    hidden_spans(text, text_use).next().is_none()
}

/// A text with every hidden span replaced by the text that `replace` appends.
pub fn replace_hidden(
    text: &str,
    text_use: TextUse,
    mut replace: impl FnMut(CharacterClass, &str, &mut String),
) -> Cow<'_, str> {
    let mut made = String::new();
    let mut copied = 0;
    for span in hidden_spans(text, text_use) {
        made.push_str(text.get(copied..span.start).unwrap_or_default());
        let hidden = text.get(span.start..span.end).unwrap_or_default();
        replace(span.class, hidden, &mut made);
        copied = span.end;
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    made.push_str(text.get(copied..).unwrap_or_default());
    Cow::Owned(made)
}

/// A text with every hidden character as an escape: `\u{202e}`.
#[must_use]
pub fn escape(text: &str, text_use: TextUse) -> Cow<'_, str> {
    replace_hidden(text, text_use, |_, hidden, made| {
        made.extend(hidden.chars().flat_map(char::escape_unicode));
    })
}

/// A text on one line: as [`escape`], with line feeds and tabs as escapes too.
#[must_use]
pub fn escape_line(text: &str, text_use: TextUse) -> Cow<'_, str> {
    let escaped = escape(text, text_use);
    match escaped.contains(['\n', '\t']) {
        true => Cow::Owned(escaped.replace('\n', "\\u{a}").replace('\t', "\\u{9}")),
        false => escaped,
    }
}

/// JSON with every hidden character as a JSON escape, so that it is still the same value. Outside of
/// its strings, JSON holds no such character.
#[must_use]
pub fn escape_json(json: &str, text_use: TextUse) -> Cow<'_, str> {
    replace_hidden(json, text_use, |_, hidden, made| {
        hidden.chars().for_each(|c| push_json_escape(made, c));
    })
}

/// Appends a character as JSON escapes of its UTF-16 units.
pub fn push_json_escape(text: &mut String, c: char) {
    for unit in c.encode_utf16(&mut [0; 2]) {
        // Writing to a string cannot fail.
        let _ = write!(text, "\\u{unit:04x}");
    }
}

/// A text without its hidden characters.
#[must_use]
pub fn strip(text: &str, text_use: TextUse) -> Cow<'_, str> {
    replace_hidden(text, text_use, |_, _, _| {})
}

/// Describes a hidden span for people or models: `⟨U+200B⟩`, `⟨ESC⟩`, `⟨BS ×2⟩`, and the text that tags or
/// selectors encode as `⟨tags: ...⟩`. The result has no hidden characters.
#[must_use]
pub fn describe_hidden(class: CharacterClass, hidden: &str) -> String {
    let (name, byte): (_, fn(char) -> Option<u8>) = match class {
        CharacterClass::Tag => ("tags", classes::tag_byte),
        CharacterClass::VariationSelector => ("selectors", classes::selector_byte),
        _ => return list(hidden),
    };
    match decode(hidden, byte) {
        Some(decoded) => format!("⟨{name}: {decoded}⟩"),
        None => list(hidden),
    }
}

/// The text that characters encode byte by byte, if it is printable.
fn decode(hidden: &str, byte: fn(char) -> Option<u8>) -> Option<String> {
    hidden
        .chars()
        .map(|c| {
            let letter = char::from(byte(c)?);
            (letter == ' ' || letter.is_ascii_graphic()).then_some(letter)
        })
        .collect()
}

/// Characters by their names or code points, with a count for repeated ones.
fn list(hidden: &str) -> String {
    let mut list = String::new();
    let mut characters = hidden.chars().peekable();
    while let Some(c) = characters.next() {
        let mut times = 1;
        while characters.next_if_eq(&c).is_some() {
            times += 1;
        }
        // Writing to a string cannot fail.
        let _ = match (classes::control_name(c), times) {
            (Some(name), 1) => write!(list, "⟨{name}⟩"),
            (Some(name), _) => write!(list, "⟨{name} ×{times}⟩"),
            (None, 1) => write!(list, "⟨U+{:04X}⟩", u32::from(c)),
            (None, _) => write!(list, "⟨U+{:04X} ×{times}⟩", u32::from(c)),
        };
    }
    list
}
