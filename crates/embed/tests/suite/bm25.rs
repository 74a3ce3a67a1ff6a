//! Search by words.

use proptest::prelude::*;
use windlass_embed::{Bm25Index, Bm25Parameters, Scored};

fn ids(found: &[Scored<usize>]) -> Vec<usize> {
    found.iter().map(|scored| scored.id).collect()
}

#[test]
fn rare_word_outweighs_common_ones() {
    let index = Bm25Index::build([
        "list the files of a folder",
        "list the users of a group",
        "list the invoices of a customer",
    ]);
    assert_eq!(
        ids(&index.search("list the invoices of the folder of the customer", 2)),
        [2, 0]
    );
    assert_eq!(ids(&index.search("USERS!", 5)), [1]);
    assert!(index.search("weather", 5).is_empty());
}

/// Worked out by hand from the formula: two texts of 2 and 4 words, `b` is in the second only, twice.
#[test]
fn score_matches_the_formula() {
    let index = Bm25Index::build(["a c", "a b b d"]);
    let rarity = (1.0f32 + (2.0 - 1.0 + 0.5) / (1.0 + 0.5)).ln();
    let expected = rarity * 2.0 * 2.2 / (2.0 + 1.2 * (1.0 - 0.75 + 0.75 * 4.0 / 3.0));
    let scores = index.scores("b");
    assert_eq!(scores[0], 0.0);
    assert!(
        (scores[1] - expected).abs() < 1e-6,
        "{} is not {expected}",
        scores[1]
    );
}

#[test]
fn parameters_control_repetition_and_length() {
    let texts = [
        "mail",
        "mail mail mail and a great many other words beside it",
    ];
    let with = |k1, b| Bm25Index::build_with(Bm25Parameters { k1, b }, texts).scores("mail");
    let repeats_count = with(2.0, 0.0);
    assert!(repeats_count[1] > repeats_count[0]);
    let only_presence = with(0.0, 0.75);
    assert_eq!(only_presence[0], only_presence[1]);
    let length_counts = with(1.2, 1.0);
    assert!(length_counts[0] > length_counts[1]);
}

#[test]
fn equal_texts_come_in_the_order_of_their_ids() {
    let index = Bm25Index::build(["same text"; 50]);
    assert_eq!(ids(&index.search("text", 7)), [0, 1, 2, 3, 4, 5, 6]);
}

#[test]
fn repeated_query_words_count_once() {
    let index = Bm25Index::build(["read mail", "write mail"]);
    assert_eq!(
        index.scores("read read read mail"),
        index.scores("read mail")
    );
}

#[test]
fn empty_index_finds_nothing() {
    let index = Bm25Index::build(std::iter::empty::<&str>());
    assert!(index.is_empty());
    assert!(index.search("anything", 3).is_empty());
}

proptest! {
    #[test]
    fn scores_are_finite_and_never_negative(
        texts in prop::collection::vec(any::<String>(), 0..8),
        query in any::<String>(),
        k1 in any::<f32>(),
        b in any::<f32>(),
    ) {
        let index = Bm25Index::build_with(Bm25Parameters { k1, b }, &texts);
        for asked in texts.iter().chain([&query]) {
            let scores = index.scores(asked);
            prop_assert_eq!(scores.len(), texts.len());
            prop_assert!(scores.iter().all(|score| score.is_finite() && *score >= 0.0));
        }
    }
}
