//! Tests of a truncated or damaged write-ahead log, as after a crash of the machine: everything before the
//! damage is kept, and no partial transaction is visible.

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use tempfile::TempDir;
use windlass_core::approval::ApprovalStatus;
use windlass_store::{ApprovalFilter, Durability, Error, RunFilter, Store};

use super::questions::{approval, ask_question, call, event, identity, now};
use super::support::{id, open, start, success};

const QUESTIONS: u32 = 12;

/// The database and its log on disk while a store is open. For each question the run asks, a person
/// decides, and the run takes the decision.
fn files_on_disk() -> (Vec<u8>, Vec<u8>) {
    let (_directory, store) = open();
    let (journal, _) = start(&store, "r1");
    for index in 0..QUESTIONS {
        ask_question(&journal, &approval(call("r1", index)));
        let approve = windlass_core::approval::PersonDecision::Approve;
        store
            .decide(&call("r1", index), None, &identity("bea"), approve, now())
            .unwrap();
        let command = journal.inbox().unwrap().remove(0);
        journal
            .append_taking(&event(&journal, 2), command.id)
            .unwrap();
    }
    let database = std::fs::read(store.path()).unwrap();
    let log = std::fs::read(log_of(store.path())).unwrap();
    (database, log)
}

fn log_of(path: &Path) -> PathBuf {
    path.with_extension("db-wal")
}

fn write_files(database: &[u8], log: &[u8]) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("windlass.db");
    std::fs::write(&path, database).unwrap();
    std::fs::write(log_of(&path), log).unwrap();
    (directory, path)
}

/// Checks that the content is a prefix of what was written, and returns how many questions were asked, decided
/// and taken.
fn progress(path: &Path) -> (usize, usize, usize) {
    let store = Store::open(path).unwrap();
    if store.runs(&RunFilter::default()).unwrap().is_empty() {
        return (0, 0, 0);
    }
    let events = store.events(&id("r1")).unwrap();
    let numbers: Vec<u64> = events.iter().map(|(seq, _)| *seq).collect();
    let whole: Vec<u64> = (1..=numbers.len() as u64).collect();
    assert_eq!(numbers, whole, "no gap");
    let approvals = store.approvals(&ApprovalFilter::default(), now()).unwrap();
    let is_approved = |status| status == ApprovalStatus::Approved;
    let decided = approvals
        .iter()
        .filter(|approval| is_approved(approval.status()))
        .count();
    let taken = decided - store.inbox(&id("r1")).unwrap().len();
    // The first event starts the run; after it, one for each question and one for each command taken.
    assert_eq!(events.len(), 1 + approvals.len() + taken);
    let asked = approvals.len();
    assert!(asked - decided <= 1 && decided - taken <= 1, "one by one");
    let connection = Connection::open(path).unwrap();
    let verdict: String = connection
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(verdict, "ok");

    // The journal can be continued.
    let journal = store.take_over(&id("r1")).unwrap();
    let next = journal
        .append(&super::support::time_passed(9), Durability::Synced)
        .unwrap();
    assert_eq!(next, numbers.len() as u64 + 1);
    (asked, decided, taken)
}

#[test]
fn a_truncated_log_loses_only_its_end() {
    let (database, log) = files_on_disk();
    let whole = QUESTIONS as usize;
    let (_directory, path) = write_files(&database, &log);
    assert_eq!(progress(&path), (whole, whole, whole));

    let mut last = (0, 0, 0);
    for cut in (0..log.len()).step_by(4_999) {
        let (_directory, path) = write_files(&database, &log[..cut]);
        let found = progress(&path);
        assert!(found >= last, "{found:?} after {last:?}, cut at {cut}");
        last = found;
    }
    assert!(last > (1, 1, 1), "{last:?}");
}

#[test]
fn a_damaged_log_loses_only_what_follows_the_damage() {
    let (database, log) = files_on_disk();
    let mut last = (0, 0, 0);
    for place in (0..log.len()).step_by(9_973) {
        let mut damaged = log.clone();
        for byte in damaged.iter_mut().skip(place).take(600) {
            *byte = byte.wrapping_mul(31).wrapping_add(7);
        }
        let (_directory, path) = write_files(&database, &damaged);
        let found = progress(&path);
        assert!(found >= last, "{found:?} after {last:?}, at {place}");
        last = found;
    }
    assert!(last > (1, 1, 1), "{last:?}");
    let (_directory, path) = write_files(&database, &[0xa5; 100_000]);
    progress(&path);
}

#[test]
fn a_damaged_database_is_reported_and_not_written() {
    let (_directory, store) = open();
    let (journal, mut run) = start(&store, "r1");
    super::support::drive(&journal, &mut run, 400, &success());
    let path = store.path().to_owned();
    drop((journal, store));
    let whole = std::fs::read(&path).unwrap();
    let mut found = 0;
    for place in [4096, whole.len() / 3, whole.len() / 2] {
        let mut damaged = whole.clone();
        damaged[place..].iter_mut().for_each(|byte| *byte ^= 0x5a);
        std::fs::write(&path, &damaged).unwrap();
        let attempt = || -> Result<(), Error> {
            let store = Store::open(&path)?;
            let journal = store.take_over(&id("r1"))?;
            journal.append(&super::support::time_passed(900), Durability::Synced)?;
            store.events(&id("r1"))?;
            Ok(())
        };
        let error = attempt().expect_err("it is damaged");
        let is_reported = matches!(error, Error::Damaged(_) | Error::Unreadable { .. });
        assert!(is_reported, "at {place}: {error}");
        found += usize::from(error.to_string().contains("restore a backup"));
    }
    assert!(found > 0, "the message has a hint");
}
