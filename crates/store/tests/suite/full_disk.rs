//! Tests of a database that has reached its size limit.

use windlass_core::run::{Event, Run};
use windlass_store::{Durability, Error, Options, Store};

use super::support::{answered, asked, id, new_run, started, time_passed};

#[test]
fn a_full_database_refuses_new_events_and_keeps_stored_ones() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("windlass.db");
    let options = Options {
        max_bytes: Some(520 * 1024),
        ..Options::default()
    };
    let store = Store::open_with(&path, options).unwrap();
    let first = started("r1", "Find it.");
    let journal = store.start(new_run(), &first, Durability::Synced).unwrap();
    let run = Run::fold([&first]).unwrap();
    let large = |size: usize| -> Event {
        let arguments = serde_json::json!({ "query": "x".repeat(size) });
        answered(&run, vec![asked("search", arguments)], 1)
    };
    let mut stored = 1;
    let error = loop {
        match journal.append(&large(20_000), Durability::Synced) {
            Ok(seq) => stored = seq,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::DiskFull), "{error}");
    assert!(stored > 3, "{stored}");
    let error = journal
        .append(&time_passed(1), Durability::Relaxed)
        .unwrap_err();
    assert!(
        matches!(error, Error::Broken { .. }),
        "later events are refused: {error}"
    );
    assert_eq!(store.events(&id("r1")).unwrap().len() as u64, stored);
    drop(journal);

    // A small event of another run still fits. With room again, the first run continues.
    let other = store
        .start(new_run(), &started("r2", "x"), Durability::Synced)
        .unwrap();
    drop(other);
    drop(store);
    let store = Store::open(&path).unwrap();
    let journal = store.take_over(&id("r1")).unwrap();
    assert_eq!(
        journal.append(&time_passed(2), Durability::Synced).unwrap(),
        stored + 1
    );
}
