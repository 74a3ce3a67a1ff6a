//! The features of a text: words, pairs of words and character n-grams, each a hash. Pairs capture the order of
//! words, n-grams capture endings and misspellings.

/// The most bytes of a text that are read.
const MAX_BYTES: usize = 2_000;

/// The most words that are read.
const MAX_WORDS: usize = 200;

/// A word with more characters than this has no n-grams.
const MAX_NGRAM_WORD: usize = 30;

/// The position of the two bits of a hash that hold the kind of the feature. Hash tables do not use these bits.
const KIND_SHIFT: u32 = 32;
const WORD: u64 = 0;
const PAIR: u64 = 1;
const NGRAM: u64 = 2;
/// A pair with one word between.
const SKIP: u64 = 3;

/// The weight of each kind of feature, before rarity.
const WEIGHTS: [f32; 4] = [1.0, 0.6, 0.35, 0.4];

/// A feature: a hash that includes its kind. It is small, because many are kept in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Feature(u64);

impl Feature {
    fn new(kind: u64, hash: u64) -> Self {
        Self(hash & !(3 << KIND_SHIFT) | kind << KIND_SHIFT)
    }

    /// The hash, which identifies the feature.
    pub(super) fn hash(self) -> u64 {
        self.0
    }

    /// The weight of its kind, before rarity.
    pub(super) fn weight(self) -> f32 {
        WEIGHTS[(self.0 >> KIND_SHIFT & 3) as usize]
    }
}

/// The features of `text`; empty if it has no letter or digit.
pub(super) fn features(text: &str) -> Vec<Feature> {
    let words = words(text);
    let hashes: Vec<u64> = words.iter().map(|word| hash(WORD, word.bytes())).collect();
    // A marker before the first word and after the last.
    let edge = u64::MAX;
    let mut found: Vec<Feature> = Vec::with_capacity(words.len() * 16);
    for (position, (word, &own)) in words.iter().zip(&hashes).enumerate() {
        let before = |steps| position.checked_sub(steps).map(|index| hashes[index]);
        let mut push = |kind, hash| found.push(Feature::new(kind, hash));
        push(WORD, own);
        push(PAIR, mix(PAIR, before(1).unwrap_or(edge), own));
        if position + 1 == words.len() {
            push(PAIR, mix(PAIR, own, edge));
        }
        if let Some(first) = before(2) {
            push(SKIP, mix(SKIP, first, own));
        }
        visit_ngrams(word, |hash| push(NGRAM, hash));
    }
    found.sort_unstable();
    found.dedup();
    // The features of all examples are in memory at the same time.
    found.shrink_to_fit();
    found
}

/// Lower-case runs of letters and digits.
pub(super) fn words(text: &str) -> Vec<String> {
    let mut end = text.len().min(MAX_BYTES);
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

/// Calls `visit` with the hashes of the n-grams of three to five characters, with markers at both ends.
fn visit_ngrams(word: &str, mut visit: impl FnMut(u64)) {
    let characters: Vec<char> = std::iter::once('<')
        .chain(word.chars())
        .chain(std::iter::once('>'))
        .collect();
    if characters.len() > MAX_NGRAM_WORD {
        return;
    }
    for length in 3..=5 {
        for ngram in characters.windows(length) {
            let bytes = ngram
                .iter()
                .flat_map(|&character| u32::from(character).to_le_bytes());
            visit(hash(NGRAM, bytes));
        }
    }
}

/// FNV-1a with a final mix, so that the low bits can be used.
fn hash(kind: u64, bytes: impl Iterator<Item = u8>) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325_u64;
    let sum = bytes.fold(start, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    mix(kind, sum, 0)
}

fn mix(kind: u64, one: u64, other: u64) -> u64 {
    let mut sum = one
        .rotate_left(23)
        .wrapping_add(other.wrapping_mul(0x9e37_79b9_7f4a_7c15))
        ^ kind;
    sum = (sum ^ (sum >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    sum = (sum ^ (sum >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    sum ^ (sum >> 31)
}
