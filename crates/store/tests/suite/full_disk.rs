//! A database that cannot grow any more.

use windlass_core::run::{Event, Run};
use windlass_store::{Durability, Error, Options, Store};

use super::support::{answered, asked, id, new_run, passed, started};

#[test]
fn what_does_not_fit_is_refused_and_what_was_stored_stays() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("windlass.db");
    let options = Options {
        max_bytes: Some(400 * 1024),
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
    let error = journal.append(&passed(1), Durability::Relaxed).unwrap_err();
    assert!(
        matches!(error, Error::Broken { .. }),
        "no event without the ones before it: {error}"
    );
    assert_eq!(store.events(&id("r1")).unwrap().len() as u64, stored);
    drop(journal);

    // Another run that fits is not harmed, and with room again the first one goes on.
    let other = store
        .start(new_run(), &started("r2", "x"), Durability::Synced)
        .unwrap();
    drop(other);
    drop(store);
    let store = Store::open(&path).unwrap();
    let journal = store.take_over(&id("r1")).unwrap();
    assert_eq!(
        journal.append(&passed(2), Durability::Synced).unwrap(),
        stored + 1
    );
}
