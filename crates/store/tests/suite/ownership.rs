//! Tests of ownership: each run has one owner at a time.

use std::sync::atomic::{AtomicU32, Ordering};

use rusqlite::Connection;
use windlass_core::run::RunEnd;
use windlass_store::{Durability, Error, Store};

use super::support::{id, open, start, time_passed};

#[test]
fn a_run_with_an_owner_is_not_taken_over() {
    let (_directory, store) = open();
    let (journal, _) = start(&store, "r:1");
    let other = Store::open(store.path()).unwrap();
    let error = other.take_over(&id("r:1")).unwrap_err();
    assert!(matches!(error, Error::OwnedElsewhere(_)), "{error}");
    journal
        .append(&time_passed(1), Durability::Relaxed)
        .unwrap();
    drop(journal);
    let journal = other.take_over(&id("r:1")).unwrap();
    assert_eq!(journal.lease().epoch(), 2);
    assert_eq!(
        journal.append(&time_passed(2), Durability::Synced).unwrap(),
        3
    );
}

#[test]
fn an_owner_that_lost_its_run_cannot_append() {
    let (_directory, store) = open();
    let (journal, _) = start(&store, "r1");
    journal.append(&time_passed(1), Durability::Synced).unwrap();
    // As if the lock had failed: another owner increments the epoch.
    let other = Connection::open(store.path()).unwrap();
    other
        .execute("UPDATE runs SET epoch = epoch + 1", [])
        .unwrap();

    let error = journal
        .append(&time_passed(2), Durability::Synced)
        .unwrap_err();
    assert!(matches!(error, Error::TakenOver(_)), "{error}");
    let error = journal
        .append(&time_passed(3), Durability::Relaxed)
        .unwrap_err();
    assert!(matches!(error, Error::Broken { .. }), "{error}");
    assert_eq!(store.events(&id("r1")).unwrap().len(), 2);
}

#[test]
fn a_failed_relaxed_append_is_reported_by_the_next_call() {
    let (_directory, store) = open();
    let (journal, _) = start(&store, "r1");
    let other = Connection::open(store.path()).unwrap();
    other
        .execute("UPDATE runs SET epoch = epoch + 1", [])
        .unwrap();
    journal
        .append(&time_passed(1), Durability::Relaxed)
        .unwrap();
    let error = journal.sync().unwrap_err();
    let Error::Broken { cause, .. } = &error else {
        panic!("{error}")
    };
    assert!(matches!(**cause, Error::TakenOver(_)), "{error}");
    assert_eq!(store.events(&id("r1")).unwrap().len(), 1);
}

#[test]
fn a_failing_run_does_not_affect_other_runs() {
    let (_directory, store) = open();
    let (lost, _) = start(&store, "lost");
    let (sound, _) = start(&store, "sound");
    let other = Connection::open(store.path()).unwrap();
    other
        .execute("UPDATE runs SET epoch = epoch + 1 WHERE run = 'lost'", [])
        .unwrap();
    for second in 1..=200 {
        let _ = lost.append(&time_passed(second), Durability::Relaxed);
        sound
            .append(&time_passed(second), Durability::Relaxed)
            .unwrap();
    }
    sound.sync().unwrap();
    assert_eq!(store.events(&id("sound")).unwrap().len(), 201);
    assert_eq!(store.events(&id("lost")).unwrap().len(), 1);
}

#[test]
fn taking_over_an_unknown_run_fails() {
    let (directory, store) = open();
    let error = store.take_over(&id("r1")).unwrap_err();
    assert!(matches!(error, Error::NoSuchRun(_)), "{error}");
    assert!(!directory.path().join("locks/run-r1.lock").exists());
}

#[test]
fn a_run_without_an_owner_has_no_lock_file() {
    let (directory, store) = open();
    let lock = directory.path().join("locks/run-r1.lock");
    let (journal, _) = start(&store, "r1");
    assert!(lock.exists());
    journal.end(&RunEnd::WaitingForPerson).unwrap();
    drop(journal);
    assert!(!lock.exists());
    let journal = store.take_over(&id("r1")).unwrap();
    assert!(lock.exists());
    journal.end(&RunEnd::Completed).unwrap();
    drop(journal);
    assert!(!lock.exists());
}

#[test]
fn concurrent_take_overs_never_own_a_run_at_once() {
    let (_directory, store) = open();
    drop(start(&store, "r1"));
    let owners = AtomicU32::new(0);
    let taken = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let store = Store::open(store.path()).unwrap();
                while taken.load(Ordering::SeqCst) < 60 {
                    match store.take_over(&id("r1")) {
                        Ok(journal) => {
                            assert_eq!(owners.fetch_add(1, Ordering::SeqCst), 0);
                            std::thread::yield_now();
                            owners.fetch_sub(1, Ordering::SeqCst);
                            taken.fetch_add(1, Ordering::SeqCst);
                            drop(journal);
                        }
                        Err(Error::OwnedElsewhere(_)) => std::thread::yield_now(),
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
    });
}

#[test]
fn run_whose_journal_failed_is_left_like_one_whose_process_died() {
    let (_directory, store) = open();
    let (journal, _) = start(&store, "failed");
    journal.sync().unwrap();
    let elsewhere = Connection::open(store.path()).unwrap();
    elsewhere
        .execute_batch("ALTER TABLE events RENAME TO events_away")
        .unwrap();
    journal
        .append(&time_passed(1), Durability::Synced)
        .unwrap_err();
    drop(journal);
    elsewhere
        .execute_batch("ALTER TABLE events_away RENAME TO events")
        .unwrap();
    assert!(!store.was_released(&id("failed")));

    let (journal, _) = start(&store, "panicked");
    let panicked = std::thread::spawn(move || {
        let _journal = journal;
        panic!("as a driver might");
    });
    panicked.join().unwrap_err();
    assert!(!store.was_released(&id("panicked")));

    drop(start(&store, "stopped"));
    assert!(store.was_released(&id("stopped")));
}

#[test]
fn refusal_holds_until_the_run_is_taken_over() {
    let (_directory, store) = open();
    drop(start(&store, "r1"));
    assert_eq!(store.refusal(&id("r1")).unwrap(), None);
    store.refuse(&id("r1"), 1, "a file changed").unwrap();
    store.refuse(&id("r1"), 1, "another file changed").unwrap();
    let reason = store.refusal(&id("r1")).unwrap();
    assert_eq!(reason.as_deref(), Some("another file changed"));
    drop(store.take_over(&id("r1")).unwrap());
    assert_eq!(store.refusal(&id("r1")).unwrap(), None);
    store.refuse(&id("r1"), 1, "too late").unwrap();
    assert_eq!(store.refusal(&id("r1")).unwrap(), None);
}
