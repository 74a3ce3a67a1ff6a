//! A compact index finds the same rows as an exact scan.

use std::collections::BTreeMap;

use proptest::prelude::*;
use windlass_embed::{CompactIndex, CompactVector, DimensionMismatch, Embedding, Scored};

use super::vector_index::brute_force;

type ExactVectors = BTreeMap<u64, Embedding>;

fn index_of(dimension: usize, kept: &ExactVectors) -> CompactIndex {
    let mut index = CompactIndex::new(dimension);
    for (id, embedding) in kept {
        index.insert(*id, &CompactVector::of(embedding)).unwrap();
    }
    index
}

fn compared<'k>(
    kept: &'k ExactVectors,
    query: &'k Embedding,
) -> impl FnMut(&[u64]) -> Result<Vec<Scored<u64>>, DimensionMismatch> + 'k {
    move |ids| {
        let known = ids.iter().filter_map(|id| Some((*id, kept.get(id)?)));
        let scored = known.map(|(id, embedding)| Scored {
            id,
            score: embedding.cosine(query),
        });
        Ok(scored.collect())
    }
}

fn embedding(dimension: usize) -> impl Strategy<Value = Embedding> {
    let component = prop_oneof![4 => -1.0f32..1.0, 1 => Just(0.0)];
    prop::collection::vec(component, dimension).prop_map(|values| Embedding::new(values).unwrap())
}

#[derive(Debug, Clone)]
enum Step {
    Insert(u64, Embedding),
    Remove(u64),
    Search(Embedding, usize, f32),
}

fn step(dimension: usize) -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0u64..60, embedding(dimension)).prop_map(|(id, vector)| Step::Insert(id, vector)),
        1 => (0u64..60).prop_map(Step::Remove),
        2 => (embedding(dimension), 0usize..20, -1.0f32..0.9)
            .prop_map(|(vector, count, floor)| Step::Search(vector, count, floor)),
    ]
}

proptest! {
    #[test]
    fn after_any_changes_a_search_finds_the_same_as_an_exact_scan(
        steps in (1usize..70).prop_flat_map(|dimension| {
            (Just(dimension), prop::collection::vec(step(dimension), 1..120))
        })
    ) {
        let (dimension, steps) = steps;
        let mut kept = ExactVectors::new();
        let mut index = CompactIndex::new(dimension);
        for step in steps {
            match step {
                Step::Insert(id, vector) => {
                    index.insert(id, &CompactVector::of(&vector)).unwrap();
                    kept.insert(id, vector);
                }
                Step::Remove(id) => {
                    let was_there = kept.remove(&id).is_some_and(|vector| !vector.is_zero());
                    prop_assert_eq!(index.remove(id), was_there);
                }
                Step::Search(query, count, floor) => {
                    let found = index.search(&query, count, floor, compared(&kept, &query));
                    let found = found.unwrap();
                    prop_assert!(found.is_exact);
                    prop_assert_eq!(found.hits, brute_force(&kept, &query, count, floor));
                }
            }
        }
    }

    #[test]
    fn compact_vector_survives_storage(vector in embedding(50)) {
        let compact = CompactVector::of(&vector);
        prop_assert_eq!(CompactVector::from_bytes(&compact.to_bytes()).unwrap(), compact);
    }
}

/// Vectors that are equal when rounded to one byte per component.
fn nearly_equal_vectors(count: u64) -> ExactVectors {
    let vector = |number: u64| {
        let values = (0..256).map(|place| {
            let noise = ((number * 7919 + place * 104_729) % 1009) as f32 / 1009.0;
            1.0 + noise * 1e-3
        });
        Embedding::new(values.collect()).unwrap()
    };
    (0..count).map(|id| (id, vector(id))).collect()
}

#[test]
fn rows_that_rounding_cannot_order_are_all_compared() {
    let kept = nearly_equal_vectors(3_000);
    let index = index_of(256, &kept);
    let query = &kept[&17].clone();
    let found = index
        .search(query, 10, -1.0, compared(&kept, query))
        .unwrap();
    assert!(
        found.is_exact && found.compared > 2_000,
        "{}",
        found.compared
    );
    assert_eq!(found.hits, brute_force(&kept, query, 10, -1.0));
}

#[test]
fn search_beyond_the_limit_reports_that_it_is_not_exact() {
    let kept = nearly_equal_vectors(6_000);
    let index = index_of(256, &kept);
    let query = &kept[&17].clone();
    let found = index
        .search(query, 10, -1.0, compared(&kept, query))
        .unwrap();
    assert!(!found.is_exact && found.compared < 5_000);
    assert_eq!(found.hits.len(), 10);
}

#[test]
fn row_that_the_caller_no_longer_has_is_not_found() {
    let mut kept = nearly_equal_vectors(100);
    let index = index_of(256, &kept);
    let query = kept.remove(&17).unwrap();
    let found = index
        .search(&query, 100, -1.0, compared(&kept, &query))
        .unwrap();
    assert_eq!(found.hits.len(), 99);
    assert!(found.hits.iter().all(|hit| hit.id != 17));
}

#[test]
fn damaged_bytes_are_rejected() {
    let bytes = CompactVector::of(&Embedding::new(vec![1.0, 2.0]).unwrap()).to_bytes();
    assert!(CompactVector::from_bytes(&bytes[..6]).is_err());
    let mut damaged = bytes;
    damaged[..4].copy_from_slice(&f32::NAN.to_le_bytes());
    assert!(CompactVector::from_bytes(&damaged).is_err());
}
