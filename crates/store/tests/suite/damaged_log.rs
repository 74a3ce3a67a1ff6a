//! Tests that lost transactions are noticed: the write-ahead log was damaged, cut or deleted, or the database is an older
//! copy.

use std::path::{Path, PathBuf};

use tempfile::TempDir;
use windlass_core::run::RunEnd;
use windlass_store::{Durability, Store};

use super::evidence::signed;
use super::support::{at, id, start, time_passed};

const FILES: [&str; 3] = ["windlass.db", "windlass.db-wal", "windlass.db-position"];

/// The files of a store that is in use, as they are after a process was killed.
struct Killed {
    files: Vec<Vec<u8>>,
}

impl Killed {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = signed(&directory.path().join(FILES[0]));
        let (journal, _) = start(&store, "r1");
        for second in 1..20 {
            journal
                .append(&time_passed(second), Durability::Synced)
                .unwrap();
        }
        Self::of(directory.path())
    }

    fn of(directory: &Path) -> Self {
        let read = |name: &&str| std::fs::read(directory.join(name)).unwrap();
        Self {
            files: FILES.iter().map(read).collect(),
        }
    }

    /// Writes the files, with another log.
    fn with_log(&self, log: Option<&[u8]>) -> (TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        for (name, content) in FILES.iter().zip(&self.files) {
            match (*name, log) {
                ("windlass.db-wal", None) => {}
                ("windlass.db-wal", Some(log)) => {
                    std::fs::write(directory.path().join(name), log).unwrap();
                }
                _ => std::fs::write(directory.path().join(name), content).unwrap(),
            }
        }
        let path = directory.path().join(FILES[0]);
        (directory, path)
    }
}

fn damage(path: &Path) -> Option<String> {
    let store = signed(path);
    match store.events(&id("r1")) {
        Ok(_) => store.damage(&id("r1")).unwrap(),
        Err(_) => Some("the run is gone".to_owned()),
    }
}

#[test]
fn a_killed_process_leaves_no_damage() {
    let killed = Killed::new();
    let (_directory, path) = killed.with_log(Some(&killed.files[1]));
    assert_eq!(damage(&path), None);
    // Nor does a process that ended, or one that wrote nothing.
    assert_eq!(damage(&path), None);
    drop(Store::open(&path).unwrap());
    assert_eq!(damage(&path), None);
}

#[test]
fn a_deleted_or_cut_log_is_noticed_wherever_it_is_cut() {
    let killed = Killed::new();
    let log = &killed.files[1];
    let (_directory, path) = killed.with_log(None);
    assert!(damage(&path).is_some());
    for cut in (0..log.len()).step_by(4_999) {
        let (_directory, path) = killed.with_log(Some(&log[..cut]));
        assert!(damage(&path).is_some(), "cut at {cut} of {}", log.len());
        // It stays known, also after a process that ended in order.
        assert!(damage(&path).is_some());
    }
}

#[test]
fn one_flipped_byte_in_the_log_is_noticed() {
    let killed = Killed::new();
    let log = &killed.files[1];
    // Header, salts, checksum; header of a frame, its page, its end.
    let frame = 32 + 24 + 4096;
    let places = [
        0,
        8,
        16,
        24,
        32,
        36,
        40,
        48,
        60,
        2_000,
        frame - 1,
        frame,
        frame + 9,
    ];
    let places = places.into_iter().chain((0..log.len()).step_by(9_973));
    for place in places {
        let mut damaged = log.clone();
        damaged[place] ^= 0x10;
        let (_directory, path) = killed.with_log(Some(&damaged));
        assert!(damage(&path).is_some(), "at {place} of {}", log.len());
    }
}

#[test]
fn an_older_copy_of_the_database_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(FILES[0]);
    let store = signed(&path);
    let (journal, _) = start(&store, "r1");
    journal.end(&RunEnd::WaitingForPerson).unwrap();
    drop((journal, store));
    let older = std::fs::read(&path).unwrap();
    let store = signed(&path);
    let journal = store.take_over(&id("r1")).unwrap();
    journal.append(&time_passed(1), Durability::Synced).unwrap();
    drop((journal, store));
    std::fs::write(&path, older).unwrap();
    let found = damage(&path).unwrap();
    assert!(found.contains("transactions are missing"), "{found}");
}

#[test]
fn a_missing_or_forged_record_of_the_position_counts_as_damage() {
    let killed = Killed::new();
    for record in [
        None,
        Some(vec![0; 56]),
        Some(killed.files[2][..40].to_vec()),
    ] {
        let (directory, path) = killed.with_log(Some(&killed.files[1]));
        let file = directory.path().join(FILES[2]);
        match record {
            None => std::fs::remove_file(file).unwrap(),
            Some(content) => std::fs::write(file, content).unwrap(),
        }
        assert!(damage(&path).is_some());
    }
}

#[test]
fn runs_that_had_ended_or_begin_later_are_not_marked() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(FILES[0]);
    let store = signed(&path);
    let (journal, _) = start(&store, "ended");
    journal.end(&RunEnd::Cancelled).unwrap();
    let (journal, _) = start(&store, "r1");
    journal.sync().unwrap();
    drop((journal, store));
    std::fs::remove_file(directory.path().join(FILES[2])).unwrap();
    let store = signed(&path);
    let (_journal, _) = start(&store, "later");
    for (run, is_marked) in [("ended", false), ("r1", true), ("later", false)] {
        assert_eq!(
            store.damage(&id(run)).unwrap().is_some(),
            is_marked,
            "{run}"
        );
    }
}

#[test]
fn a_purge_leaves_a_log_that_is_not_mistaken_for_a_deleted_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(FILES[0]);
    let store = signed(&path);
    let (journal, _) = start(&store, "old");
    journal.end(&RunEnd::Cancelled).unwrap();
    let (_journal, _) = start(&store, "r1");
    let age = std::time::Duration::from_secs(1);
    assert_eq!(store.purge(age, at(1_000)).unwrap().removed.len(), 1);
    let killed = Killed::of(directory.path());
    let (_directory, path) = killed.with_log(Some(&killed.files[1]));
    assert_eq!(damage(&path), None);
}
