//! A text as features: words, pairs of words and pieces of words, each a hash. Words say most, pairs
//! say order, pieces bridge endings and misspellings.

/// What of a text is read. What a person asks for is said well before this.
const LONGEST: usize = 2_000;

/// Words after this many are not looked at.
const MAX_WORDS: usize = 200;

/// A word of more characters than this has no pieces.
const LONGEST_PIECED: usize = 30;

const WORD: u64 = 1;
const PAIR: u64 = 2;
const PIECE: u64 = 3;
const SKIP: u64 = 4;

/// A feature and what it is worth before it is known how rare it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Feature {
    /// Which feature.
    pub(super) hash: u64,
    /// What kind it is of: its hash and worth come from there.
    pub(super) worth: f32,
}

/// The features of `text`; none if it holds no letter or digit.
pub(super) fn features(text: &str) -> Vec<Feature> {
    let words = words(text);
    let mut found: Vec<Feature> = Vec::with_capacity(words.len() * 16);
    let hashes: Vec<u64> = words.iter().map(|word| hash(WORD, word.bytes())).collect();
    for (position, (word, &own)) in words.iter().zip(&hashes).enumerate() {
        let mut push = |hash, worth| found.push(Feature { hash, worth });
        push(own, WORTH_WORD);
        let before = position.checked_sub(1).map_or(PAIR, |index| hashes[index]);
        push(mixed(PAIR, before, own), WORTH_PAIR);
        if position + 1 == words.len() {
            push(mixed(PAIR, own, PAIR), WORTH_PAIR);
        }
        if let Some(index) = position.checked_sub(2) {
            push(mixed(SKIP, hashes[index], own), WORTH_SKIP);
        }
        pieces(word, |hash| push(hash, WORTH_PIECE));
    }
    found.sort_unstable_by_key(|feature| feature.hash);
    found.dedup_by_key(|feature| feature.hash);
    found
}

const WORTH_WORD: f32 = 1.0;
const WORTH_PAIR: f32 = 0.6;
const WORTH_SKIP: f32 = 0.4;
const WORTH_PIECE: f32 = 0.35;

/// Lower-case runs of letters and digits.
pub(super) fn words(text: &str) -> Vec<String> {
    let mut end = text.len().min(LONGEST);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end]
        .split(|character: char| !character.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .take(MAX_WORDS)
        .map(str::to_lowercase)
        .collect()
}

/// Shows `visit` the hashes of the pieces of three to five characters, marks at both ends included.
fn pieces(word: &str, mut visit: impl FnMut(u64)) {
    let characters: Vec<char> = std::iter::once('<')
        .chain(word.chars())
        .chain(std::iter::once('>'))
        .collect();
    if characters.len() > LONGEST_PIECED {
        return;
    }
    for length in 3..=5 {
        for piece in characters.windows(length) {
            let bytes = piece
                .iter()
                .flat_map(|&character| u32::from(character).to_le_bytes());
            visit(hash(PIECE, bytes));
        }
    }
}

/// FNV-1a, then mixed, so that the low bits can be used.
fn hash(kind: u64, bytes: impl Iterator<Item = u8>) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325 ^ kind.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let sum = bytes.fold(start, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    mixed(kind, sum, 0)
}

fn mixed(kind: u64, one: u64, other: u64) -> u64 {
    let mut sum = one
        .rotate_left(23)
        .wrapping_add(other.wrapping_mul(0x9e37_79b9_7f4a_7c15))
        ^ kind;
    sum = (sum ^ (sum >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    sum = (sum ^ (sum >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    sum ^ (sum >> 31)
}
