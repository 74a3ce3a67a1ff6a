//! Finds the hidden characters of a text in one pass. Whether a character is hidden depends only on the
//! use of the text and on its neighbours, so each character is examined once.

use super::classes::{self, CharacterClass, class_of};
use super::{MAX_IDEOGRAPH_SELECTORS, TextUse};

/// A sequence of hidden characters of one class, as byte offsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HiddenSpan {
    /// The class of all its characters.
    pub class: CharacterClass,
    /// Where it starts.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
}

/// The hidden spans of a text, in order; created by [`hidden_spans`](super::hidden_spans).
#[derive(Debug, Clone)]
pub struct HiddenSpans<'t> {
    text: &'t str,
    text_use: TextUse,
    at: usize,
    /// The previous character, unless it is hidden.
    before: Option<char>,
    ideograph_selectors: usize,
}

impl<'t> HiddenSpans<'t> {
    pub(super) fn new(text: &'t str, text_use: TextUse) -> Self {
        Self {
            text,
            text_use,
            at: 0,
            before: None,
            ideograph_selectors: 0,
        }
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The length in bytes of the hidden span here: consecutive characters of one class.
    fn run_length(&self, class: CharacterClass) -> usize {
        let mut length = 0;
        for c in self.rest().chars() {
            // A character that is ordinary after a visible one is hidden after a hidden one, except
            // for a line break, which ends the span.
            let ends_line =
                c == '\r' && self.text_use == TextUse::Model && self.follows(length + 1, '\n');
            let ends_span = class_of(c) != Some(class) || self.text_use.always_passes(c);
            if ends_span || ends_line && length > 0 {
                break;
            }
            length += c.len_utf8();
        }
        length
    }

    fn follows(&self, offset: usize, c: char) -> bool {
        let rest = self.text.get(self.at + offset..);
        rest.is_some_and(|rest| rest.starts_with(c))
    }

    /// The number of bytes from here that are ordinary writing although the character has a class; 0 if
    /// the character is hidden.
    fn ordinary_length(&mut self, c: char, class: CharacterClass) -> usize {
        let width = c.len_utf8();
        if self.text_use.always_passes(c) {
            return width;
        }
        match (self.text_use, class) {
            (TextUse::Exact, _) => return 0,
            (_, CharacterClass::Space | CharacterClass::NumberSign) => return width,
            (TextUse::Display, CharacterClass::Unassigned) if !classes::is_pictograph(c) => {
                return 0;
            }
            (_, CharacterClass::Unassigned) => return width,
            _ => {}
        }
        let rest = self.rest();
        let after = rest.get(width..).and_then(|rest| rest.chars().next());
        let before = self.before;
        let is = |class: fn(char) -> bool, c: Option<char>| c.is_some_and(class);
        let is_for_model = self.text_use == TextUse::Model;
        let has_joiners = matches!(self.text_use, TextUse::Display | TextUse::Model);
        let is_ordinary = match c {
            // In every use except `Exact`: the presentation form of a pictograph.
            '\u{FE0E}' | '\u{FE0F}' if is(classes::is_pictograph, before) => true,
            '\u{FE0F}' if is(classes::is_keycap, before) => after == Some(classes::KEYCAP),
            // In prose for people or models: joiners in words and pictographs.
            '\u{200D}' if has_joiners && is(classes::is_pictograph, after) => {
                is(classes::is_pictograph, before) || before == Some('\u{FE0F}')
            }
            '\u{200C}' | '\u{200D}' if has_joiners => {
                is(classes::joins, before) && is(classes::joins, after)
            }
            '\u{180B}'..='\u{180F}' if has_joiners => is(classes::is_mongolian, before),
            '\u{115F}' | '\u{1160}' if has_joiners => {
                is(classes::is_jamo, before) || is(classes::is_jamo, after)
            }
            '\u{2800}' if has_joiners => {
                is(classes::is_braille, before) || is(classes::is_braille, after)
            }
            // Only for models, not for terminals: characters that reorder text, carry bytes, or move the cursor.
            '\r' if is_for_model => after == Some('\n'),
            '\u{200E}' | '\u{200F}' | '\u{061C}' if is_for_model => {
                is(classes::is_right_to_left, before) || is(classes::is_right_to_left, after)
            }
            '\u{FE00}'..='\u{FE0F}' | '\u{E0100}'..='\u{E01EF}'
                if is_for_model && is(classes::is_ideograph, before) =>
            {
                self.ideograph_selectors += 1;
                self.ideograph_selectors <= MAX_IDEOGRAPH_SELECTORS
            }
            '\u{E0067}' if is_for_model && before == Some(classes::FLAG) => {
                let flag = classes::FLAGS.iter().find(|flag| rest.starts_with(*flag));
                return flag.map_or(0, |flag| flag.len());
            }
            _ => false,
        };
        if is_ordinary { width } else { 0 }
    }
}

impl Iterator for HiddenSpans<'_> {
    type Item = HiddenSpan;

    fn next(&mut self) -> Option<HiddenSpan> {
        loop {
            // Fast path: printable ASCII.
            let plain = self
                .rest()
                .bytes()
                .position(|byte| !matches!(byte, b' '..=b'~'));
            match plain {
                Some(0) => {}
                Some(length) => {
                    let passed = self.rest().get(..length).unwrap_or_default();
                    self.before = passed.chars().next_back();
                    self.at += length;
                }
                None => {
                    self.at = self.text.len();
                    return None;
                }
            }
            let c = self.rest().chars().next()?;
            let written = match class_of(c) {
                None => c.len_utf8(),
                Some(class) => match self.ordinary_length(c, class) {
                    0 => {
                        let start = self.at;
                        self.at += self.run_length(class).max(c.len_utf8());
                        self.before = None;
                        return Some(HiddenSpan {
                            class,
                            start,
                            end: self.at,
                        });
                    }
                    length => length,
                },
            };
            self.before = Some(c);
            self.at += written;
        }
    }
}
