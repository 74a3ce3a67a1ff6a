//! Finds the known words most similar to an unknown one, for "did you mean" hints. It only ranks
//! words; the caller writes the hint.

/// Words longer than this are not compared: the distance costs the product of both lengths, and
/// names that long are not typed by hand.
const MAX_WORD_BYTES: usize = 200;

/// The shortest fragment, in characters, that counts as similar; shorter ones occur in unrelated
/// words by chance.
const MIN_FRAGMENT: usize = 3;

/// The candidate most similar to `word`, if any is similar. Of equally near ones the first wins.
#[must_use]
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    nearest_all(word, candidates, 1).into_iter().next()
}

/// Up to `limit` candidates similar to `word`, the nearest first; equally near ones keep their order.
#[must_use]
pub fn nearest_all<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
    limit: usize,
) -> Vec<&'a str> {
    if word.len() > MAX_WORD_BYTES {
        return Vec::new();
    }
    let folded = fold(word);
    let mut ranked: Vec<(Rank, &str)> = candidates
        .into_iter()
        .filter_map(|candidate| Some((rank(word, &folded, candidate)?, candidate)))
        .collect();
    ranked.sort_by_key(|&(rank, _)| rank);
    ranked
        .into_iter()
        .take(limit)
        .map(|(_, candidate)| candidate)
        .collect()
}

/// How similar two words are; smaller is nearer. The second part breaks ties within a kind.
type Rank = (Similarity, usize);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Similarity {
    /// They differ only in case and separators.
    Spelling,
    /// They are few edits apart.
    Edits,
    /// One begins with the other.
    Prefix,
    /// One contains the other.
    Fragment,
}

fn rank(word: &str, folded: &str, candidate: &str) -> Option<Rank> {
    if candidate.len() > MAX_WORD_BYTES || folded.is_empty() {
        return None;
    }
    let other = fold(candidate);
    if other == folded {
        // Among spellings of one word, such as `Text` and `TEXT`, the literally nearest wins.
        return Some((
            Similarity::Spelling,
            strsim::damerau_levenshtein(word, candidate),
        ));
    }
    let (length, other_length) = (folded.chars().count(), other.chars().count());
    let allowed = (length.max(other_length) / 3).max(1);
    // A one-letter word is one edit away from every other one-letter word, so it is not similar.
    if length.abs_diff(other_length) <= allowed && length.max(other_length) > 1 {
        let edits = strsim::damerau_levenshtein(folded, &other);
        if edits <= allowed && edits < length.max(other_length).saturating_sub(1).max(1) {
            return Some((Similarity::Edits, edits));
        }
    }
    if length.min(other_length) < MIN_FRAGMENT {
        return None;
    }
    let surplus = length.abs_diff(other_length);
    if other.starts_with(folded) || folded.starts_with(other.as_str()) {
        Some((Similarity::Prefix, surplus))
    } else if other.contains(folded) || folded.contains(other.as_str()) {
        Some((Similarity::Fragment, surplus))
    } else {
        None
    }
}

/// The word in lower case and without separators.
fn fold(word: &str) -> String {
    word.chars()
        .filter(|character| !matches!(character, '_' | '-'))
        .flat_map(char::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{nearest, nearest_all};

    const TOOLS: [&str; 4] = ["search_docs", "read_file", "write_file", "run"];

    #[test]
    fn case_and_separators_are_ignored() {
        assert_eq!(nearest("ReadFile", TOOLS), Some("read_file"));
        assert_eq!(nearest("read-file", TOOLS), Some("read_file"));
    }

    #[test]
    fn a_typo_finds_the_word() {
        assert_eq!(nearest("raed_file", TOOLS), Some("read_file"));
        assert_eq!(nearest("rum", TOOLS), Some("run"));
    }

    #[test]
    fn a_prefix_or_fragment_finds_the_whole_word() {
        assert_eq!(nearest("search", TOOLS), Some("search_docs"));
        assert_eq!(nearest("docs", TOOLS), Some("search_docs"));
    }

    #[test]
    fn an_unrelated_word_finds_nothing() {
        assert_eq!(nearest("quantum", TOOLS), None);
        assert_eq!(nearest("", TOOLS), None);
        assert_eq!(nearest("_", TOOLS), None);
        assert_eq!(nearest("x", ["y", "z"]), None);
    }

    #[test]
    fn results_are_sorted_by_distance_and_limited() {
        assert_eq!(nearest_all("file", TOOLS, 9), ["read_file", "write_file"]);
        assert_eq!(nearest_all("file", TOOLS, 1), ["read_file"]);
        assert_eq!(nearest("abcd", ["abxd", "ABCD"]), Some("ABCD"));
    }

    #[test]
    fn overlong_words_are_skipped() {
        let long = "a".repeat(201);
        assert_eq!(nearest(&long, [long.as_str()]), None);
        assert_eq!(nearest("aaaa", [long.as_str()]), None);
    }
}
