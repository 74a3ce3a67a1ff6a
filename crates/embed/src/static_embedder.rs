//! The embedder that ships inside the binary: one vector per token, summed and normalised.
//!
//! `data/embedder.bin` begins with a JSON header of 1,024 bytes, which is read at compile time.
//! Then come the rows (`i8`), the rows' scales and the rows' weights (`f32`, little endian). The
//! vector of a token is weight * scale * row. The data is used in place.

use std::ops::ControlFlow;

use crate::vocabulary::{self, visit_tokens};
use crate::{BoxFuture, EmbedError, Embedder, EmbedderHash, Embedding};

static DATA: &[u8] = include_bytes!("../data/embedder.bin");

const HEADER_BYTES: usize = 1024;
const ROWS: usize = header_number(b"\"rows\":");
const DIMENSION: usize = header_number(b"\"dim\":");
const MATRIX: usize = header_number(b"\"matrix\":");
const SCALES: usize = header_number(b"\"scales\":");
const WEIGHTS: usize = header_number(b"\"weights\":");

/// The most tokens that are embedded, the same limit as in the training of the vectors.
const MAX_TOKENS: usize = 512;

/// The fingerprint of the vectors, the vocabulary and the tokeniser. It is a constant, because hashing nine
/// megabytes at every start would cost more than embedding. A test checks it.
static FINGERPRINT: EmbedderHash =
    EmbedderHash::from_bytes(0x6057_8528_ac9e_e631_1568_d917_bd22_2987_u128.to_be_bytes());

/// The version of the method. Change it when the same data yields other embeddings.
#[cfg_attr(not(test), expect(dead_code, reason = "part of the fingerprint only"))]
const METHOD: &[u8] = b"bert-wordpiece-lowercase sum 512 #1";

const _: () = {
    assert!(ROWS == vocabulary::ENTRIES);
    assert!(MATRIX >= HEADER_BYTES && DIMENSION > 0);
    assert!(MATRIX + ROWS * DIMENSION <= DATA.len());
    assert!(SCALES + ROWS * 4 <= DATA.len());
    assert!(WEIGHTS + ROWS * 4 <= DATA.len());
};

/// The number after `key` in the header. A header without it does not compile.
const fn header_number(key: &[u8]) -> usize {
    let mut at = 0;
    while !matches_at(key, at) {
        at += 1;
        assert!(at < HEADER_BYTES);
    }
    at += key.len();
    while DATA[at] == b' ' {
        at += 1;
    }
    assert!(DATA[at].is_ascii_digit());
    let mut value = 0;
    while DATA[at].is_ascii_digit() {
        value = 10 * value + (DATA[at] - b'0') as usize;
        at += 1;
    }
    value
}

const fn matches_at(key: &[u8], at: usize) -> bool {
    let mut place = 0;
    while place < key.len() {
        if DATA[at + place] != key[place] {
            return false;
        }
        place += 1;
    }
    true
}

/// The embedder that ships inside the binary. It needs no loading and cannot fail.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct StaticEmbedder;

impl StaticEmbedder {
    /// The embedder. This is free: its data is used in place in the binary.
    pub const fn new() -> Self {
        Self
    }

    /// The embedding of `text`; zero if no word of it is known. Only the first 512 tokens count.
    pub fn embed(&self, text: &str) -> Embedding {
        Embedding::from_finite(self.sum(text).into())
    }

    /// The weight of a text: the length of the sum of its vectors, before normalisation. Rare words have a large
    /// weight, words like `the` a small one, and unknown words none.
    pub fn weight(&self, text: &str) -> f32 {
        let squares = self.sum(text).map(|value| value * value);
        squares.iter().sum::<f32>().sqrt()
    }

    fn sum(&self, text: &str) -> [f32; DIMENSION] {
        let mut sum = [0.0f32; DIMENSION];
        let mut left = MAX_TOKENS;
        visit_tokens(text, |row| {
            add_row(&mut sum, row as usize);
            left -= 1;
            if left == 0 {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        sum
    }

    /// The vocabulary rows of all tokens of `text`, in order. A word that is not in the vocabulary,
    /// nor made of pieces that are, has none.
    pub fn token_ids(&self, text: &str) -> Vec<u32> {
        let mut rows = Vec::new();
        visit_tokens(text, |row| {
            rows.push(row);
            ControlFlow::Continue(())
        });
        rows
    }
}

fn add_row(sum: &mut [f32; DIMENSION], row: usize) {
    let factor = float(WEIGHTS, row) * float(SCALES, row);
    let begin = MATRIX + row * DIMENSION;
    for (sum, &byte) in sum.iter_mut().zip(&DATA[begin..begin + DIMENSION]) {
        *sum += factor * f32::from(byte as i8);
    }
}

fn float(table: usize, row: usize) -> f32 {
    let at = table + 4 * row;
    f32::from_le_bytes([DATA[at], DATA[at + 1], DATA[at + 2], DATA[at + 3]])
}

impl Embedder for StaticEmbedder {
    fn embed_all<'a>(
        &'a self,
        texts: &'a [&'a str],
    ) -> BoxFuture<'a, Result<Vec<Embedding>, EmbedError>> {
        Box::pin(async move { Ok(texts.iter().map(|text| self.embed(text)).collect()) })
    }

    fn name(&self) -> &str {
        "static-256"
    }

    fn dimension(&self) -> usize {
        DIMENSION
    }

    fn fingerprint(&self) -> &EmbedderHash {
        &FINGERPRINT
    }
}

#[cfg(test)]
mod tests {
    use super::{DATA, FINGERPRINT, METHOD};
    use crate::EmbedderHash;

    #[test]
    fn fingerprint_matches_the_data() {
        let vocabulary = include_bytes!("../data/vocab.txt");
        assert_eq!(FINGERPRINT, EmbedderHash::of(&[METHOD, DATA, vocabulary]));
    }

    #[test]
    fn constants_match_the_header() {
        let header: serde_json::Value = serde_json::from_slice(&DATA[..1024]).unwrap();
        let expected = [
            &header["rows"],
            &header["dim"],
            &header["offsets"]["matrix"],
            &header["offsets"]["scales"],
            &header["offsets"]["weights"],
        ];
        let read = [
            super::ROWS,
            super::DIMENSION,
            super::MATRIX,
            super::SCALES,
            super::WEIGHTS,
        ];
        assert_eq!(
            expected.map(|number| number.as_u64().unwrap() as usize),
            read
        );
    }

    #[test]
    fn scales_and_weights_cannot_overflow_a_sum() {
        let finite = |table| (0..super::ROWS).all(|row| super::float(table, row).abs() < 1e6);
        assert!(finite(super::SCALES) && finite(super::WEIGHTS));
    }
}
