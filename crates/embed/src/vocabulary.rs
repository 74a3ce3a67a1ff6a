//! The vocabulary, searched in place in the binary.
//!
//! `data/vocab.txt` has one entry per line; line n is row n of the vectors; `##` marks an entry that
//! continues a word. `data/vocab.index` is a hash table over it, written by this module's tests, so that
//! nothing has to be read or built when a program starts.
//!
//! All numbers of the index are u32, little endian:
//!
//! | what | how many |
//! |---|---|
//! | slots (a power of two), entries, bytes of the longest entry | 1 each |
//! | slots: 0 if empty, else the upper 15 bits of the hash and the row + 1 in the lower 17 | slots |
//! | where each line begins, and one more for the end | entries + 1 |
//!
//! The hash is FNV-1a. It processes a text byte by byte, so that one pass over a word gives the hashes of
//! all its prefixes, which the search for the longest entry needs.

use std::ops::ControlFlow;

use crate::words::visit_words;

static TEXT: &[u8] = include_bytes!("../data/vocab.txt");
static INDEX: &[u8] = include_bytes!("../data/vocab.index");

const HEADER: usize = 3;
const SLOTS: usize = number(0) as usize;
/// How many entries there are.
pub(crate) const ENTRIES: usize = number(1) as usize;
const LONGEST: usize = number(2) as usize;
const ROW_BITS: u32 = 17;

const FNV_OFFSET: u32 = 0x811c_9dc5;
const FNV_PRIME: u32 = 0x0100_0193;

/// The hash state of a piece that continues a word: `##` is in the vocabulary, not in the word.
const CONTINUED: u32 = fnv(fnv(FNV_OFFSET, b'#'), b'#');

const _: () = {
    assert!(SLOTS.is_power_of_two() && ENTRIES < SLOTS);
    assert!(ENTRIES + 1 < 1 << ROW_BITS);
    assert!(INDEX.len() == 4 * (HEADER + SLOTS + ENTRIES + 1));
    assert!(number(HEADER + SLOTS + ENTRIES) as usize == TEXT.len());
};

const fn number(place: usize) -> u32 {
    let at = 4 * place;
    u32::from_le_bytes([INDEX[at], INDEX[at + 1], INDEX[at + 2], INDEX[at + 3]])
}

const fn fnv(hash: u32, byte: u8) -> u32 {
    (hash ^ byte as u32).wrapping_mul(FNV_PRIME)
}

/// FNV mixes upwards only, so its low bits do not depend on the high ones. This folds the high bits down.
const fn slot_of(hash: u32) -> usize {
    (hash ^ (hash >> 15)) as usize & (SLOTS - 1)
}

fn entry(row: u32) -> &'static [u8] {
    let line = HEADER + SLOTS + row as usize;
    // Without the line end.
    &TEXT[number(line) as usize..number(line + 1) as usize - 1]
}

/// The row of the entry `prefix` + `piece`, whose hash is `hash`.
fn find(prefix: &[u8], piece: &[u8], hash: u32) -> Option<u32> {
    let mut slot = slot_of(hash);
    loop {
        let found = number(HEADER + slot);
        if found == 0 {
            return None;
        }
        if found >> ROW_BITS == hash >> ROW_BITS {
            let row = (found & ((1 << ROW_BITS) - 1)) - 1;
            if entry(row).strip_prefix(prefix) == Some(piece) {
                return Some(row);
            }
        }
        slot = (slot + 1) & (SLOTS - 1);
    }
}

/// Calls `visit` with the rows of the tokens of `text`, in order, until it breaks. A word that is not
/// entirely made of entries has no tokens.
pub(crate) fn visit_tokens(text: &str, mut visit: impl FnMut(u32) -> ControlFlow<()>) {
    let mut rows = Vec::new();
    visit_words(text, |word| {
        if pieces(word.as_bytes(), &mut rows) {
            rows.iter().try_for_each(|&row| visit(row))
        } else {
            ControlFlow::Continue(())
        }
    });
}

/// Puts the rows of the longest entries that make up `word` into `rows`. Returns whether the whole word could
/// be covered. An entry can only end where a character ends, because both are UTF-8.
fn pieces(word: &[u8], rows: &mut Vec<u32>) -> bool {
    rows.clear();
    let mut rest = word;
    let (mut prefix, mut seed): (&[u8], _) = (b"", FNV_OFFSET);
    while !rest.is_empty() {
        let window = &rest[..rest.len().min(LONGEST)];
        let mut hashes = [0; LONGEST];
        let mut hash = seed;
        for (&byte, slot) in window.iter().zip(&mut hashes) {
            hash = fnv(hash, byte);
            *slot = hash;
        }
        let longest = (1..=window.len()).rev().find_map(|length| {
            let row = find(prefix, &rest[..length], hashes[length - 1])?;
            Some((row, length))
        });
        let Some((row, length)) = longest else {
            return false;
        };
        rows.push(row);
        rest = &rest[length..];
        (prefix, seed) = (b"##", CONTINUED);
    }
    true
}

#[cfg(test)]
mod tests;
