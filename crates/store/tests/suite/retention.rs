//! What a purge removes and what it leaves.

use std::time::Duration;

use windlass_core::run::{Event, RunEnd};
use windlass_store::{DEFAULT_RETENTION, Durability, Error, KeptBecause, Store};

use super::support::{
    at, contains, drive, file_bytes, id, new_run, open, start, started, success, unknown,
};

const DAY: i64 = 24 * 60 * 60;

fn ended(store: &Store, run: &str, end: &RunEnd) {
    let (journal, mut state) = start(store, run);
    drive(&journal, &mut state, 8, &success());
    journal.end(end).unwrap();
}

#[test]
fn a_purge_removes_what_was_said_and_keeps_that_it_happened() {
    let (_directory, store) = open();
    let secret_of_the_task = "Where did grandmother hide the cutlery?";
    let event = started("r1", secret_of_the_task);
    let journal = store.start(new_run(), &event, Durability::Synced).unwrap();
    let mut run = windlass_core::run::Run::fold([&event]).unwrap();
    drive(&journal, &mut run, 8, &success());
    journal.end(&RunEnd::Completed).unwrap();
    assert!(contains(&file_bytes(&store), secret_of_the_task));

    let early = store.purge(DEFAULT_RETENTION, at(7 * DAY)).unwrap();
    assert!(early.removed.is_empty() && early.kept.is_empty());
    let now = at(7 * DAY + 60);
    let purged = store.purge(DEFAULT_RETENTION, now).unwrap();
    assert_eq!(purged.removed.len(), 1);
    assert_eq!(
        purged.removed[0].events, 5,
        "the start, two answers, two ends"
    );

    let summary = store.summary(&id("r1")).unwrap();
    let tombstone = summary.purged.unwrap();
    assert_eq!((tombstone.at, tombstone.events), (now, 5));
    assert_eq!(tombstone.bytes, purged.removed[0].bytes);
    assert_eq!((summary.end, summary.task), (Some(RunEnd::Completed), None));
    assert!(!contains(&file_bytes(&store), secret_of_the_task));
    assert!(matches!(store.fold(&id("r1")), Err(Error::Purged(_))));
    let left = store.events(&id("r1")).unwrap();
    assert_eq!(left.len(), 4);
    assert!(
        left.iter().all(|(_, event)| {
            matches!(event, Event::Decided { .. } | Event::CallStarted { .. })
        })
    );
    assert!(
        store
            .purge(DEFAULT_RETENTION, now)
            .unwrap()
            .removed
            .is_empty(),
        "once is enough"
    );
}

#[test]
fn a_run_that_is_not_over_is_never_purged() {
    let (_directory, store) = open();
    drop(start(&store, "open"));
    ended(&store, "waiting", &RunEnd::WaitingForPerson);
    ended(&store, "over", &RunEnd::Cancelled);
    let purged = store.purge(Duration::ZERO, at(1000 * DAY)).unwrap();
    let removed: Vec<_> = purged.removed.iter().map(|run| run.run.as_str()).collect();
    assert_eq!(removed, ["over"]);
    assert!(store.fold(&id("open")).is_ok() && store.fold(&id("waiting")).is_ok());
}

#[test]
fn a_run_with_a_call_nobody_knows_the_end_of_is_never_purged() {
    let (_directory, store) = open();
    let (journal, mut run) = start(&store, "unknown");
    drive(&journal, &mut run, 4, &unknown());
    journal.end(&RunEnd::Cancelled).unwrap();
    let (journal, mut run) = start(&store, "interrupted");
    drive(&journal, &mut run, 3, &success());
    journal.end(&RunEnd::Cancelled).unwrap();

    let purged = store.purge(Duration::ZERO, at(1000 * DAY)).unwrap();
    assert!(purged.removed.is_empty());
    assert_eq!(purged.kept.len(), 2);
    assert!(
        purged
            .kept
            .iter()
            .all(|kept| kept.because == KeptBecause::UnknownCall)
    );
    assert_eq!(store.events(&id("unknown")).unwrap().len(), 5);
}

#[test]
fn a_journal_that_cannot_be_read_is_kept() {
    let (_directory, store) = open();
    ended(&store, "r1", &RunEnd::Completed);
    let elsewhere = rusqlite::Connection::open(store.path()).unwrap();
    elsewhere
        .execute("UPDATE events SET payload = '{}' WHERE seq = 3", [])
        .unwrap();
    let purged = store.purge(Duration::ZERO, at(1000 * DAY)).unwrap();
    assert!(matches!(purged.kept[0].because, KeptBecause::Unreadable(_)));
    assert!(matches!(
        store.events(&id("r1")),
        Err(Error::Unreadable { .. })
    ));
}
