//! Builds the index and compares it with the committed one.

use std::path::Path;

use unicode_normalization::char::canonical_combining_class;

use super::{FNV_OFFSET, ROW_BITS, TEXT, fnv};

/// Set this variable to rewrite the index after the vocabulary changed.
const WRITE: &str = "WINDLASS_WRITE_VOCABULARY_INDEX";

fn build_index(text: &[u8]) -> Vec<u8> {
    let mut starts = vec![0u32];
    let newlines = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    starts.extend(newlines.map(|(place, _)| place as u32 + 1));
    let entries: Vec<&[u8]> = starts
        .windows(2)
        .map(|bounds| &text[bounds[0] as usize..bounds[1] as usize - 1])
        .collect();
    let slots = (entries.len() * 3 / 2).next_power_of_two();
    let mut table = vec![0u32; slots];
    for (row, entry) in entries.iter().enumerate() {
        let hash = entry.iter().fold(FNV_OFFSET, |hash, &byte| fnv(hash, byte));
        let mut slot = (hash ^ (hash >> 15)) as usize & (slots - 1);
        while table[slot] != 0 {
            slot = (slot + 1) & (slots - 1);
        }
        table[slot] = (hash >> ROW_BITS) << ROW_BITS | (row as u32 + 1);
    }
    let longest = entries.iter().map(|entry| entry.len()).max().unwrap();
    [slots as u32, entries.len() as u32, longest as u32]
        .into_iter()
        .chain(table)
        .chain(starts)
        .flat_map(u32::to_le_bytes)
        .collect()
}

#[test]
fn committed_index_matches_the_vocabulary() {
    let built = build_index(TEXT);
    if std::env::var_os(WRITE).is_some() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/vocab.index");
        std::fs::write(path, &built).unwrap();
    }
    // Not `assert_eq!`, which would print half a megabyte.
    assert!(
        built == super::INDEX,
        "data/vocab.index does not match data/vocab.txt; run this test with {WRITE}=1, then again"
    );
}

#[test]
fn every_entry_is_found_in_its_row() {
    for (row, line) in std::str::from_utf8(TEXT).unwrap().lines().enumerate() {
        let hash = line.bytes().fold(FNV_OFFSET, fnv);
        assert_eq!(
            super::find(b"", line.as_bytes(), hash),
            Some(row as u32),
            "{line}"
        );
    }
}

#[test]
fn word_in_the_vocabulary_is_one_token() {
    let mut rows = Vec::new();
    for (row, line) in std::str::from_utf8(TEXT).unwrap().lines().enumerate() {
        if !line.starts_with("##") {
            assert!(super::pieces(line.as_bytes(), &mut rows));
            assert_eq!(rows, [row as u32], "{line}");
        }
    }
}

/// `words.rs` relies on this to decompose characters one by one.
#[test]
fn no_entry_has_a_combining_mark() {
    let is_combining = |character| canonical_combining_class(character) != 0;
    let text = std::str::from_utf8(TEXT).unwrap();
    assert_eq!(
        text.chars().find(|&character| is_combining(character)),
        None
    );
    assert!(
        is_combining('\u{302e}'),
        "a spacing mark that can be reordered"
    );
}
