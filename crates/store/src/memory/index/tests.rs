//! Tests of which indexes stay in memory when the limit is exceeded.

use std::sync::{Arc, PoisonError};

use windlass_spec::Timestamp;

use crate::store::Store;
use crate::{Memory, MemoryScope, NewDocument, ScopeReach};

fn scope(name: &str) -> MemoryScope {
    MemoryScope::new("acme", "ada", ScopeReach::Agent(name.to_owned()))
}

fn found(memory: &Memory, name: &str) -> usize {
    memory.search(&[scope(name)], "a lot", 10).unwrap().len()
}

/// How many vectors of how many scopes are in memory.
fn cached(memory: &Memory) -> (usize, usize) {
    let cache = memory
        .indexes
        .0
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let sizes = cache.scopes.values().map(|(_, index)| {
        let index = index.read().unwrap_or_else(PoisonError::into_inner);
        index.index.len()
    });
    (sizes.sum(), cache.scopes.len())
}

#[test]
fn least_recently_searched_index_is_evicted_and_loaded_again_on_search() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path().join("windlass.db")).unwrap();
    let memory = Memory::new(Arc::new(store));
    memory.indexes.0.lock().unwrap().max_vectors = 5;
    for (name, count) in [("first", 2), ("second", 3), ("third", 1), ("large", 9)] {
        for number in 0..count {
            let what = format!("Lot {number} is kept.");
            let new = NewDocument::new(what, Timestamp::from_microseconds(1));
            memory.remember(&scope(name), new).unwrap();
        }
    }
    assert_eq!((found(&memory, "first"), found(&memory, "second")), (2, 3));
    assert_eq!(cached(&memory), (5, 2), "the limit is not exceeded");
    assert_eq!(found(&memory, "third"), 1);
    // Eviction runs before an index is loaded, so the limit is enforced at the next search.
    assert_eq!(found(&memory, "third"), 1);
    assert_eq!(cached(&memory), (4, 2), "the first index is evicted");
    assert_eq!(found(&memory, "first"), 2);
    assert_eq!(found(&memory, "large"), 9);
    assert_eq!(found(&memory, "large"), 9);
    assert_eq!(
        cached(&memory),
        (9, 1),
        "the searched index stays, however large"
    );
}
