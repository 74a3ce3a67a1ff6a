//! What is kept in memory when there is too much of it.

use std::sync::{Arc, PoisonError};

use windlass_spec::Timestamp;

use crate::store::Store;
use crate::{Memory, MemoryScope, NewDocument, Reach};

fn scope(name: &str) -> MemoryScope {
    MemoryScope::new("acme", "ada", Reach::Agent(name.to_owned()))
}

fn found(memory: &Memory, name: &str) -> usize {
    memory.search(&[scope(name)], "a lot", 10).unwrap().len()
}

/// How many vectors of how many scopes are in memory.
fn kept(memory: &Memory) -> (usize, usize) {
    let kept = memory
        .indexes
        .0
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let sizes = kept.scopes.values().map(|(_, index)| {
        let index = index.read().unwrap_or_else(PoisonError::into_inner);
        index.index.len()
    });
    (sizes.sum(), kept.scopes.len())
}

#[test]
fn what_was_searched_longest_ago_goes_first_and_is_loaded_again_when_it_is_searched() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path().join("windlass.db")).unwrap();
    let memory = Memory::new(Arc::new(store));
    memory.indexes.0.lock().unwrap().most = 5;
    for (name, count) in [("first", 2), ("second", 3), ("third", 1), ("large", 9)] {
        for number in 0..count {
            let what = format!("Lot {number} is kept.");
            let new = NewDocument::new(what, Timestamp::from_microseconds(1));
            memory.remember(&scope(name), new).unwrap();
        }
    }
    assert_eq!((found(&memory, "first"), found(&memory, "second")), (2, 3));
    assert_eq!(kept(&memory), (5, 2), "as much as may be kept");
    assert_eq!(found(&memory, "third"), 1);
    // Room is made before something is loaded, so that one more is seen now.
    assert_eq!(found(&memory, "third"), 1);
    assert_eq!(kept(&memory), (4, 2), "the first went");
    assert_eq!(found(&memory, "first"), 2);
    assert_eq!(found(&memory, "large"), 9);
    assert_eq!(found(&memory, "large"), 9);
    assert_eq!(
        kept(&memory),
        (9, 1),
        "what is searched stays, however large"
    );
}
