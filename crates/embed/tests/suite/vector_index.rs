//! A search finds the same rows as an exact scan.

use std::collections::BTreeMap;

use proptest::prelude::*;
use windlass_embed::{DimensionMismatch, Embedding, Scored, StaticEmbedder, VectorIndex};

/// Compares every entry.
pub(super) fn brute_force<K: Ord + Clone>(
    entries: &BTreeMap<K, Embedding>,
    query: &Embedding,
    count: usize,
    floor: f32,
) -> Vec<Scored<K>> {
    let mut all: Vec<Scored<K>> = entries
        .iter()
        .filter(|(_, embedding)| !embedding.is_zero() && !query.is_zero())
        .map(|(id, embedding)| Scored {
            id: id.clone(),
            score: embedding.cosine(query),
        })
        .filter(|scored| scored.score >= floor)
        .collect();
    // Stable, and the map is in the order of ids.
    all.sort_by(|left, right| right.score.total_cmp(&left.score));
    all.truncate(count);
    all
}

fn index_of<K: Ord + Clone>(dimension: usize, entries: &BTreeMap<K, Embedding>) -> VectorIndex<K> {
    let mut index = VectorIndex::new(dimension);
    for (id, embedding) in entries {
        index.insert(id.clone(), embedding).unwrap();
    }
    index
}

/// Short texts of vocabulary words. Their embeddings are as close together as those of real texts.
fn texts(count: usize) -> impl Iterator<Item = String> {
    let words: Vec<&str> = include_str!("../../data/vocab.txt")
        .lines()
        .filter(|word| word.len() > 2 && word.bytes().all(|byte| byte.is_ascii_lowercase()))
        .collect();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    (0..count).map(move |_| {
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as usize
        };
        let length = 2 + next() % 6;
        (0..length)
            .map(|_| words[next() % 900 + next() % 900])
            .collect::<Vec<_>>()
            .join(" ")
    })
}

#[test]
fn recall_against_brute_force_is_one() {
    let embedder = StaticEmbedder::new();
    let entries: BTreeMap<usize, Embedding> = texts(20_000)
        .map(|text| embedder.embed(&text))
        .enumerate()
        .collect();
    let index = index_of(256, &entries);
    for query in texts(20_100).skip(20_000).map(|text| embedder.embed(&text)) {
        let expected = brute_force(&entries, &query, 10, -1.0);
        assert_eq!(index.search(&query, 10, -1.0).unwrap(), expected);
    }
}

/// Vectors so close together that they are equal when rounded to one byte per component. The first pass alone
/// cannot order them.
#[test]
fn recall_is_one_even_if_rounding_hides_the_order() {
    let vector = |number: usize| {
        let values = (0..256).map(|place| {
            let noise = ((number * 7919 + place * 104_729) % 1009) as f32 / 1009.0;
            1.0 + noise * 1e-3
        });
        Embedding::new(values.collect()).unwrap()
    };
    let entries: BTreeMap<usize, Embedding> = (0..2_000).map(|id| (id, vector(id))).collect();
    let index = index_of(256, &entries);
    for rescore in [0, 10, 40] {
        let index = index.clone().with_rescore(rescore);
        let query = vector(123_456);
        let expected = brute_force(&entries, &query, 10, -1.0);
        assert_eq!(index.search(&query, 10, -1.0).unwrap(), expected);
    }
}

#[test]
fn equal_vectors_come_in_the_order_of_their_ids() {
    let same = StaticEmbedder::new().embed("the same text");
    let mut index = VectorIndex::new(256);
    for id in (0..200).rev().map(|number| format!("{number:03}")) {
        index.insert(id, &same).unwrap();
    }
    index.remove(&"002".to_owned());
    let found = index.search(&same, 4, 0.0).unwrap();
    let ids: Vec<&str> = found.iter().map(|scored| &*scored.id).collect();
    assert_eq!(ids, ["000", "001", "003", "004"]);
}

#[test]
fn floor_leaves_out_what_is_less_similar() {
    let embedder = StaticEmbedder::new();
    let mut index = VectorIndex::new(256);
    index
        .insert("mail", &embedder.embed("send an email to a colleague"))
        .unwrap();
    index
        .insert("weather", &embedder.embed("weather forecast for a city"))
        .unwrap();
    let query = embedder.embed("send email");
    let similarity = index.similarity(&"mail", &query).unwrap();
    let found = |floor| index.search(&query, 5, floor).unwrap().len();
    assert_eq!(
        (found(-1.0), found(similarity), found(similarity + 1e-4)),
        (2, 1, 0)
    );
}

#[test]
fn zero_embedding_finds_nothing_and_is_not_found() {
    let embedder = StaticEmbedder::new();
    let zero = Embedding::zero(256);
    let mut index = VectorIndex::new(256);
    index.insert(1, &zero).unwrap();
    index.insert(2, &embedder.embed("hello")).unwrap();
    assert_eq!(index.len(), 2);
    assert!(index.search(&zero, 5, -1.0).unwrap().is_empty());
    assert_eq!(
        index
            .search(&embedder.embed("hello"), 5, -1.0)
            .unwrap()
            .len(),
        1
    );
    assert_eq!(index.similarity(&1, &embedder.embed("hello")), Some(0.0));
    assert!(index.remove(&1) && !index.remove(&1));
}

#[test]
fn embedding_of_another_dimension_is_refused() {
    let mut index = VectorIndex::new(3);
    let wrong = Embedding::zero(2);
    let error = DimensionMismatch {
        expected: 3,
        found: 2,
    };
    assert_eq!(index.insert(1, &wrong), Err(error));
    assert_eq!(index.search(&wrong, 1, 0.0), Err(error));
    assert!(index.is_empty());
}

#[derive(Debug, Clone)]
enum Change {
    Insert(u8, Vec<i8>),
    Remove(u8),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        3 => (0u8..20, prop::collection::vec(-3i8..4, 5)).prop_map(|(id, values)| Change::Insert(id, values)),
        1 => (0u8..20).prop_map(Change::Remove),
    ]
}

fn embedding(values: &[i8]) -> Embedding {
    Embedding::new(values.iter().map(|&value| f32::from(value)).collect()).unwrap()
}

proptest! {
    #[test]
    fn after_any_changes_a_search_equals_brute_force(
        changes in prop::collection::vec(change(), 0..60),
        query in prop::collection::vec(-3i8..4, 5),
        count in 0usize..8,
        floor in -1.0f32..1.0,
        rescore in 0usize..12,
    ) {
        let mut entries = BTreeMap::new();
        let mut index = VectorIndex::new(5).with_rescore(rescore);
        for change in changes {
            match change {
                Change::Insert(id, values) => {
                    index.insert(id, &embedding(&values)).unwrap();
                    entries.insert(id, embedding(&values));
                }
                Change::Remove(id) => {
                    prop_assert_eq!(index.remove(&id), entries.remove(&id).is_some());
                }
            }
        }
        prop_assert_eq!(index.len(), entries.len());
        let query = embedding(&query);
        let expected = brute_force(&entries, &query, count, floor);
        prop_assert_eq!(index.search(&query, count, floor).unwrap(), expected);
    }
}
