//! Splits texts into words as the vocabulary expects: without accents, in lower case, without control characters,
//! and every punctuation mark and CJK ideograph is a word of its own.
//!
//! Characters are decomposed one by one, which takes linear time for every text and gives the same tokens
//! as full NFD: NFD differs only in the order of combining marks. Nonspacing marks are dropped, and
//! the few others (category Mc) occur in no vocabulary entry, so that a word with one of them is
//! unknown in any order. A test checks that the vocabulary has no combining marks.

use std::ops::ControlFlow;

use unicode_general_category::{GeneralCategory, get_general_category};
use unicode_normalization::char::decompose_canonical;

/// A word of more characters than this is not looked up.
pub(crate) const MAX_WORD_CHARACTERS: usize = 100;

/// How a character affects the words around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TokenClass {
    Letter,
    Blank,
    /// A word of its own.
    Alone,
    Dropped,
}

static ASCII: [TokenClass; 128] = ascii_classes();

const fn ascii_classes() -> [TokenClass; 128] {
    let mut classes = [TokenClass::Letter; 128];
    let mut byte = 0;
    while byte < 128 {
        classes[byte] = match byte as u8 {
            b'\t' | b'\n' | b'\r' | b' ' => TokenClass::Blank,
            0..32 | 127 => TokenClass::Dropped,
            other if other.is_ascii_punctuation() => TokenClass::Alone,
            _ => TokenClass::Letter,
        };
        byte += 1;
    }
    classes
}

fn class(character: char) -> TokenClass {
    use GeneralCategory as Category;
    // Also for the parts of a decomposed character: `≠` is `=` and a stroke.
    if character.is_ascii() {
        return ASCII[character as usize];
    }
    match get_general_category(character) {
        Category::NonspacingMark
        | Category::Control
        | Category::Format
        | Category::PrivateUse
        | Category::Surrogate
        | Category::Unassigned => TokenClass::Dropped,
        Category::SpaceSeparator => TokenClass::Blank,
        Category::ConnectorPunctuation
        | Category::DashPunctuation
        | Category::OpenPunctuation
        | Category::ClosePunctuation
        | Category::InitialPunctuation
        | Category::FinalPunctuation
        | Category::OtherPunctuation => TokenClass::Alone,
        _ if character == char::REPLACEMENT_CHARACTER => TokenClass::Dropped,
        _ if is_ideograph(character) => TokenClass::Alone,
        _ => TokenClass::Letter,
    }
}

/// The blocks that the tokeniser of the vocabulary treats as CJK ideographs; kana and Hangul are not among them.
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

/// Calls `visit` with the words of `text` in order until it breaks. Words of more than
/// [`MAX_WORD_CHARACTERS`] are skipped.
pub(crate) fn visit_words(text: &str, mut visit: impl FnMut(&str) -> ControlFlow<()>) {
    let mut word = PartialWord::default();
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

/// The word that is being built.
#[derive(Default)]
struct PartialWord {
    text: String,
    characters: usize,
}

impl PartialWord {
    fn take(
        &mut self,
        character: char,
        class: TokenClass,
        visit: &mut impl FnMut(&str) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match class {
            TokenClass::Letter if character.is_ascii() => self.push(character.to_ascii_lowercase()),
            TokenClass::Letter => character.to_lowercase().for_each(|lower| self.push(lower)),
            TokenClass::Dropped => {}
            TokenClass::Blank => return self.finish(visit),
            TokenClass::Alone => {
                self.finish(visit)?;
                return visit(character.encode_utf8(&mut [0; 4]));
            }
        }
        ControlFlow::Continue(())
    }

    fn push(&mut self, character: char) {
        self.characters += 1;
        // Further characters are only counted, so that the memory stays bounded.
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
