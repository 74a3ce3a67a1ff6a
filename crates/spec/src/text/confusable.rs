//! Letters that look like others: the skeleton of a name by Unicode's table of confusables (UTS 39), and
//! whether a name is written to be taken for another.

use unicode_security::{RestrictionLevel, RestrictionLevelDetection as _};

/// A text with every letter replaced by the one it looks like. Texts that look alike have the same
/// skeleton; it is for comparing, not for showing.
#[must_use]
pub fn skeleton(text: &str) -> String {
    unicode_security::skeleton(text).collect()
}

/// What a name looks like that is written in letters of several scripts, or in letters of another
/// script that all look like Latin ones. A name in one script of its own is no look-alike, and
/// neither are Latin letters beside Chinese, Japanese or Korean ones.
#[must_use]
pub fn look_alike(name: &str) -> Option<String> {
    if name.is_ascii() {
        return None;
    }
    // Letters that are Latin already stay as they are: in a skeleton `m` would become `rn`.
    let mut like = String::new();
    for c in name.chars() {
        match c.is_ascii() {
            true => like.push(c),
            false => like.extend(unicode_security::skeleton(c.encode_utf8(&mut [0; 4]))),
        }
    }
    let letters: String = name.chars().filter(|c| c.is_alphabetic()).collect();
    let is_mixed = !letters.check_restriction_level(RestrictionLevel::HighlyRestrictive);
    // The skeleton of an honest accented letter keeps its accent.
    (like.is_ascii() || is_mixed).then_some(like)
}
