//! A text as features: words, pairs of words and pieces of words, each a hash. Words say most, pairs
//! say order, pieces bridge endings and misspellings.

/// What of a text is read. What a person asks for is said well before this.
const LONGEST: usize = 2_000;

/// Words after this many are not looked at.
const MAX_WORDS: usize = 200;

/// A word of more characters than this has no pieces.
const LONGEST_PIECED: usize = 30;

/// What kind of feature it is, in a place of its hash that no table uses to find it.
const KIND: u32 = 32;
const WORD: u64 = 0;
const PAIR: u64 = 1;
const PIECE: u64 = 2;
/// A pair with a word between.
const SKIP: u64 = 3;

/// What a feature of each kind is worth before it is known how rare it is.
const WORTH: [f32; 4] = [1.0, 0.6, 0.35, 0.4];

/// A feature, which is a hash that holds its kind. Many are kept at once, so it is small.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Feature(u64);

impl Feature {
    fn new(kind: u64, hash: u64) -> Self {
        Self(hash & !(3 << KIND) | kind << KIND)
    }

    /// Which feature.
    pub(super) fn hash(self) -> u64 {
        self.0
    }

    /// What it is worth before it is known how rare it is.
    pub(super) fn worth(self) -> f32 {
        WORTH[(self.0 >> KIND & 3) as usize]
    }
}

/// The features of `text`; none if it holds no letter or digit.
pub(super) fn features(text: &str) -> Vec<Feature> {
    let words = words(text);
    let hashes: Vec<u64> = words.iter().map(|word| hash(WORD, word.bytes())).collect();
    // Stands before the first word and after the last.
    let edge = u64::MAX;
    let mut found: Vec<Feature> = Vec::with_capacity(words.len() * 16);
    for (position, (word, &own)) in words.iter().zip(&hashes).enumerate() {
        let before = |steps| position.checked_sub(steps).map(|index| hashes[index]);
        let mut push = |kind, hash| found.push(Feature::new(kind, hash));
        push(WORD, own);
        push(PAIR, mixed(PAIR, before(1).unwrap_or(edge), own));
        if position + 1 == words.len() {
            push(PAIR, mixed(PAIR, own, edge));
        }
        if let Some(first) = before(2) {
            push(SKIP, mixed(SKIP, first, own));
        }
        pieces(word, |hash| push(PIECE, hash));
    }
    found.sort_unstable();
    found.dedup();
    // Those of many examples are kept beside each other.
    found.shrink_to_fit();
    found
}

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
    let start = 0xcbf2_9ce4_8422_2325_u64;
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
