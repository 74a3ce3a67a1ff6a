//! Embedding and indexing take linear time for any text.

use std::time::{Duration, Instant};

use windlass_embed::{Bm25Index, StaticEmbedder, split_identifier};

const SIZE: usize = 5 * 1024 * 1024;

/// Linear work on this much text takes a fraction of a second even unoptimised on a busy machine;
/// quadratic work would take hours.
const LIMIT: Duration = Duration::from_secs(60);

fn texts() -> Vec<(&'static str, String)> {
    let of = |unit: &str| unit.repeat(SIZE / unit.len());
    vec![
        ("words", of("delete the unfathomable 12 files, ")),
        ("one word", of("x")),
        ("unknown words", of("qzxjkvwqzxjkvw\u{10348} ")),
        ("words at the limit", of(&("z".repeat(100) + " "))),
        ("punctuation", of("#")),
        ("combining marks", of("\u{301}\u{323}")),
        ("reordered spacing marks", of("\u{1d16d}\u{1d165}")),
        ("Hangul", of("각")),
        ("ideographs", of("語")),
        ("controls", of("\u{0}\u{200b}")),
        ("identifiers", of("getHTTPServer__")),
    ]
}

#[test]
fn five_megabytes_take_linear_time() {
    for (name, text) in texts() {
        let begin = Instant::now();
        let embedder = StaticEmbedder::new();
        let tokens = embedder.token_ids(&text).len();
        embedder.embed(&text);
        split_identifier(&text);
        let index = Bm25Index::build([&text, "delete files"]);
        let scores = index.scores(&text);
        assert_eq!(scores.len(), 2, "{name}");
        assert!(scores.iter().all(|score| score.is_finite()), "{name}");
        assert!(tokens <= SIZE);
        assert!(begin.elapsed() < LIMIT, "{name} took {:?}", begin.elapsed());
    }
}

#[test]
fn five_thousand_texts_are_indexed_and_searched_in_linear_time() {
    let begin = Instant::now();
    // A word in common, so that its list is as long as the index.
    let texts: Vec<String> = (0..5_000)
        .map(|number| format!("common word {number}"))
        .collect();
    let index = Bm25Index::build(&texts);
    for (id, text) in texts.iter().enumerate() {
        assert_eq!(index.search(text, 1)[0].id, id);
    }
    assert!(begin.elapsed() < LIMIT);
}
