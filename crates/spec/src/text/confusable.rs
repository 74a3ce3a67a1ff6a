//! Confusable letters: the skeleton of a name by Unicode's table of confusables (UTS 39), and the
//! detection of names that imitate another.

use unicode_security::{RestrictionLevel, RestrictionLevelDetection as _};

/// A text with every letter replaced by the one it looks like. Texts that look alike have the same
/// skeleton. It is for comparison, not for display.
#[must_use]
pub fn skeleton(text: &str) -> String {
    unicode_security::skeleton(text).collect()
}

/// The text that a name imitates, if the name mixes letters of several scripts, or has letters of
/// another script that all look like Latin ones. `None` for a name in one script, and for Latin letters
/// next to Chinese, Japanese or Korean ones.
#[must_use]
pub fn look_alike(name: &str) -> Option<String> {
    if name.is_ascii() {
        return None;
    }
    let like = letters_as_latin(name);
    let letters: String = name.chars().filter(|c| c.is_alphabetic()).collect();
    let is_mixed = !letters.check_restriction_level(RestrictionLevel::HighlyRestrictive);
    // The skeleton of an accented Latin letter keeps its accent, so it is not ASCII.
    (like.is_ascii() || is_mixed).then_some(like)
}

/// A text with every letter that looks like a Latin one as that. Letters that are Latin already stay as they
/// are: in a skeleton `m` would become `rn`.
fn letters_as_latin(text: &str) -> String {
    let mut like = String::new();
    for c in text.chars() {
        match c.is_ascii() {
            true => like.push(c),
            false => like.extend(unicode_security::skeleton(c.encode_utf8(&mut [0; 4]))),
        }
    }
    like
}

/// A text in small letters in which every letter that looks like a Latin one, or is commonly used for one, is
/// that: for finding a word however it is disguised.
#[must_use]
pub fn latin_words(text: &str) -> String {
    let small = letters_as_latin(&text.to_lowercase()).to_lowercase();
    let latin = |c: char| match c {
        '@' => 'a',
        'ε' => 'e',
        'κ' => 'k',
        'ν' => 'v',
        'ω' => 'w',
        'χ' => 'x',
        'τ' => 't',
        'к' => 'k',
        'т' => 't',
        c => c,
    };
    small.chars().map(latin).collect()
}
