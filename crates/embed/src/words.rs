//! Texts as words, the way the vocabulary was made: accents off, lower case, controls dropped, every
//! punctuation mark and every CJK ideograph a word of its own.
//!
//! Characters are decomposed one by one, which is linear whatever the text, and gives the same tokens
//! as NFD proper: NFD differs only in the order of combining marks. Nonspacing marks are dropped, and
//! the few others (category Mc) occur in no vocabulary entry, so that a word with one of them is
//! unknown in whatever order they stand. A test keeps the vocabulary free of combining marks.

use std::ops::ControlFlow;

use unicode_general_category::{GeneralCategory, get_general_category};
use unicode_normalization::char::{canonical_combining_class, decompose_canonical};

/// A word of more characters than this is not looked up.
pub(crate) const MAX_WORD_CHARACTERS: usize = 100;

/// What a character does to the words around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Letter,
    Blank,
    /// A word of its own.
    Alone,
    Dropped,
}

static ASCII: [Class; 128] = ascii_classes();

const fn ascii_classes() -> [Class; 128] {
    let mut classes = [Class::Letter; 128];
    let mut byte = 0;
    while byte < 128 {
        classes[byte] = match byte as u8 {
            b'\t' | b'\n' | b'\r' | b' ' => Class::Blank,
            0..32 | 127 => Class::Dropped,
            other if other.is_ascii_punctuation() => Class::Alone,
            _ => Class::Letter,
        };
        byte += 1;
    }
    classes
}

fn class(character: char) -> Class {
    use GeneralCategory as Category;
    // Also for the parts of others: `≠` is `=` and a stroke.
    if character.is_ascii() {
        return ASCII[character as usize];
    }
    match get_general_category(character) {
        Category::NonspacingMark
        | Category::Control
        | Category::Format
        | Category::PrivateUse
        | Category::Surrogate
        | Category::Unassigned => Class::Dropped,
        Category::SpaceSeparator => Class::Blank,
        Category::ConnectorPunctuation
        | Category::DashPunctuation
        | Category::OpenPunctuation
        | Category::ClosePunctuation
        | Category::InitialPunctuation
        | Category::FinalPunctuation
        | Category::OtherPunctuation => Class::Alone,
        _ if character == char::REPLACEMENT_CHARACTER => Class::Dropped,
        _ if is_ideograph(character) => Class::Alone,
        _ => Class::Letter,
    }
}

/// The blocks the vocabulary's makers call CJK ideographs; kana and Hangul are not among them.
fn is_ideograph(character: char) -> bool {
    matches!(u32::from(character),
        0x3400..=0x4DBF
        | 0x4E00..=0x9FFF
        | 0xF900..=0xFAFF
        | 0x20000..=0x2A6DF
        | 0x2A700..=0x2B73F
        | 0x2B740..=0x2B81F
        | 0x2B920..=0x2CEAF
        | 0x2F800..=0x2FA1F)
}

/// Shows `visit` the words of `text` in order until it breaks. Words of more than
/// [`MAX_WORD_CHARACTERS`] are left out.
pub(crate) fn visit_words(text: &str, mut visit: impl FnMut(&str) -> ControlFlow<()>) {
    let mut word = Word::default();
    let mut rest = text;
    while let Some(&first) = rest.as_bytes().first() {
        let flow = if first.is_ascii() {
            rest = &rest[1..];
            let character = char::from(first);
            word.take(character, class(character), &mut visit)
        } else {
            let mut characters = rest.chars();
            let character = characters.next().unwrap_or_default();
            rest = characters.as_str();
            let mut flow = ControlFlow::Continue(());
            decompose_canonical(character, |part| {
                if flow.is_continue() {
                    flow = word.take(part, class(part), &mut visit);
                }
            });
            flow
        };
        if flow.is_break() {
            return;
        }
    }
    let _ = word.finish(&mut visit);
}

/// Whether canonical ordering could move this character.
#[cfg_attr(not(test), expect(dead_code, reason = "the vocabulary's test asks"))]
pub(crate) fn is_combining(character: char) -> bool {
    canonical_combining_class(character) != 0
}

/// The word that is being put together.
#[derive(Default)]
struct Word {
    text: String,
    characters: usize,
}

impl Word {
    fn take(
        &mut self,
        character: char,
        class: Class,
        visit: &mut impl FnMut(&str) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match class {
            Class::Letter if character.is_ascii() => self.push(character.to_ascii_lowercase()),
            Class::Letter => character.to_lowercase().for_each(|lower| self.push(lower)),
            Class::Dropped => {}
            Class::Blank => return self.finish(visit),
            Class::Alone => {
                self.finish(visit)?;
                return visit(character.encode_utf8(&mut [0; 4]));
            }
        }
        ControlFlow::Continue(())
    }

    fn push(&mut self, character: char) {
        self.characters += 1;
        // What is too long is only counted, so that no text makes this grow.
        if self.characters <= MAX_WORD_CHARACTERS {
            self.text.push(character);
        }
    }

    fn finish(&mut self, visit: &mut impl FnMut(&str) -> ControlFlow<()>) -> ControlFlow<()> {
        let flow = if (1..=MAX_WORD_CHARACTERS).contains(&self.characters) {
            visit(&self.text)
        } else {
            ControlFlow::Continue(())
        };
        self.text.clear();
        self.characters = 0;
        flow
    }
}
