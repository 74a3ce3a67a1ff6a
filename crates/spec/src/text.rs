//! Text safety: the one place that decides which characters are invisible, bidirectional, control or
//! confusable, and how they are shown. Everything that reaches a terminal, a page, a log, an approval or
//! a model goes through it, so no other module lists characters.
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
//! | Mongolian selector after its letter, blank jamo or braille beside another | hidden | hidden | passes | passes |
//! | left-to-right or right-to-left mark beside a letter from right to left | hidden | hidden | hidden | passes |
//! | selector after an ideograph, at most [`MAX_IDEOGRAPH_SELECTORS`] a text | hidden | hidden | hidden | passes |
//! | tags of the flags of England, Scotland and Wales | hidden | hidden | hidden | passes |
//! | embedding, override, isolate; all other tags; line and paragraph separator; other controls | hidden | hidden | hidden | hidden |
//! | private use, noncharacter | hidden | hidden | hidden | hidden |
//! | unassigned | passes | hidden | hidden, but for the blocks of pictographs | passes |
//! | space other than U+0020, sign that encloses digits | passes | hidden | passes | passes |
//!
//! The reasons: an emoji family or a Persian word in an answer must stay readable and can do no harm
//! there, so `Display` lets its joiners pass. Nothing that changes the order of what is shown, carries
//! more than a bit per visible character, or moves a cursor passes on a terminal. Whoever approves a call must see
//! every character as it is, so `Exact` lets nothing pass. Two names must not look the same and differ,
//! so `Name` takes no joiners.

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

/// How many variation selectors after ideographs one text for a model may have: each can carry a byte,
/// so more are not taken for spelling.
pub const MAX_IDEOGRAPH_SELECTORS: usize = 8;

/// What a text is for, which decides what may stand in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TextUse {
    /// An identifier, or a word within a line: a name of a tool, agent, person or file. On one line.
    Name,
    /// What a person decides about, character by character.
    Exact,
    /// Text for people: on a terminal, on a page, in a log.
    Display,
    /// Text that a model reads.
    Model,
}

impl TextUse {
    /// Whether a character passes whatever stands beside it.
    fn passes_always(self, c: char) -> bool {
        match c {
            '\n' => self != Self::Name,
            '\t' => matches!(self, Self::Display | Self::Model),
            _ => false,
        }
    }
}

/// Whether a character is hidden unless its neighbours make it part of ordinary writing. For looking
/// at single characters; where there is a text, [`is_clean`] knows more.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    class_of(c).is_some_and(|class| {
        !matches!(
            class,
            CharacterClass::Unassigned | CharacterClass::Space | CharacterClass::NumberSign
        )
    })
}

/// Everything hidden in a text, in order; neighbours of one class are one span.
#[must_use]
pub fn hidden_spans(text: &str, text_use: TextUse) -> HiddenSpans<'_> {
    HiddenSpans::new(text, text_use)
}

/// Whether nothing is hidden in a text.
#[must_use]
pub fn is_clean(text: &str, text_use: TextUse) -> bool {
    hidden_spans(text, text_use).next().is_none()
}

/// A text with every hidden span replaced by what `replace` appends for it.
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

/// JSON with every hidden character as an escape of JSON, so that it is still the same value. Outside of
/// its strings, JSON holds no such character.
#[must_use]
pub fn escape_json(json: &str, text_use: TextUse) -> Cow<'_, str> {
    replace_hidden(json, text_use, |_, hidden, made| {
        hidden.chars().for_each(|c| push_json_escape(made, c));
    })
}

/// Appends a character as JSON escapes it: in units of UTF-16.
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

/// Describes a hidden span for a reader who must know what it holds, people or models: `⟨U+200B⟩`, `⟨ESC⟩`,
/// `⟨BS ×2⟩`, and what tags or selectors spell as `⟨tags: ...⟩`. The result holds nothing hidden.
#[must_use]
pub fn describe_hidden(class: CharacterClass, hidden: &str) -> String {
    let (name, byte): (_, fn(char) -> Option<u8>) = match class {
        CharacterClass::Tag => ("tags", classes::tag_byte),
        CharacterClass::VariationSelector => ("selectors", classes::selector_byte),
        _ => return list(hidden),
    };
    match spell(hidden, byte) {
        Some(spelled) => format!("⟨{name}: {spelled}⟩"),
        None => list(hidden),
    }
}

/// What characters spell that stand for bytes, if it is something to read.
fn spell(hidden: &str, byte: fn(char) -> Option<u8>) -> Option<String> {
    hidden
        .chars()
        .map(|c| {
            let letter = char::from(byte(c)?);
            (letter == ' ' || letter.is_ascii_graphic()).then_some(letter)
        })
        .collect()
}

/// Characters by their names or numbers; of equal ones in a row, how many.
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
