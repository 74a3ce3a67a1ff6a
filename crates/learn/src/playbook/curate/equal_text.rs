//! Decides whether two strategies without tools have equal texts. Embeddings cannot decide it: they place "always
//! confirm it" near "never confirm it" and "within 14 days" near "within 30 days", and ignore the order of words.
//! So words are compared: the same words in the same order, without filler words.

/// Words that do not change the meaning of a sentence.
const FILLERS: [&str; 5] = ["a", "an", "the", "please", "kindly"];

/// The punctuation that is trimmed from words. Signs before numbers are kept.
const PUNCTUATION: &str = ".,;:!?…\"'`()[]{}“”„‘’«»*_";

/// The words of a text in a normal form. Negations are expanded, and plurals become singulars.
pub(super) fn normalized_words(content: &str) -> Vec<String> {
    let mut words = Vec::new();
    for word in content.split_whitespace() {
        let word = word
            .trim_matches(|c| PUNCTUATION.contains(c))
            .to_lowercase();
        let word = word.replace('’', "'");
        let (word, is_negated) = split_negation(&word);
        if !word.is_empty() && !FILLERS.contains(&word) {
            words.push(singular(word).to_owned());
        }
        if is_negated {
            words.push("not".to_owned());
        }
    }
    words
}

/// Splits the negation from a word; the flag is true if there was one.
fn split_negation(word: &str) -> (&str, bool) {
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

/// A word without a plural ending. Short words and words that end in -ss, -us or -is have none.
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
