//! When two strategies without tools say the same. Nothing that knows meanings can be asked: to an embedding "always
//! confirm it" and "never confirm it" are near, "within 14 days" and "within 30 days" nearer, and the order of words
//! is nothing to it. So words are compared: the same ones in the same order, apart from those that say
//! nothing.

/// Words without which a sentence says what it said with them.
const EMPTY: [&str; 5] = ["a", "an", "the", "please", "kindly"];

/// What is around words and does not belong to them. Signs before numbers do.
const AROUND: &str = ".,;:!?…\"'`()[]{}“”„‘’«»*_";

/// What a sentence says, word by word: equal for two that say the same. Negations are spelled out, plurals are not
/// told from singulars.
pub(super) fn said(content: &str) -> Vec<String> {
    let mut said = Vec::new();
    for word in content.split_whitespace() {
        let word = word.trim_matches(|c| AROUND.contains(c)).to_lowercase();
        let word = word.replace('’', "'");
        let (word, is_negated) = negated(&word);
        if !word.is_empty() && !EMPTY.contains(&word) {
            said.push(singular(word).to_owned());
        }
        if is_negated {
            said.push("not".to_owned());
        }
    }
    said
}

/// A word without the negation that is part of it.
fn negated(word: &str) -> (&str, bool) {
    match word {
        "can't" | "cannot" => ("can", true),
        "won't" => ("will", true),
        "shan't" => ("shall", true),
        _ => match word.strip_suffix("n't") {
            Some(rest) => (rest, true),
            None => (word, false),
        },
    }
}

/// A word without the ending of a plural. Short words and those on -ss, -us and -is have none.
fn singular(word: &str) -> &str {
    let is_plural = word.len() > 3
        && word.is_ascii()
        && word.ends_with('s')
        && !["ss", "us", "is"]
            .iter()
            .any(|ending| word.ends_with(ending));
    match word.strip_suffix("sses") {
        Some(_) => &word[..word.len() - 2],
        None if is_plural => &word[..word.len() - 1],
        None => word,
    }
}
