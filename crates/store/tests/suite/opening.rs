//! Tests of creating, opening and refusing databases.

use std::os::unix::fs::PermissionsExt;

use rusqlite::Connection;
use windlass_store::{Error, Store};

use super::support::{id, open, start};

#[test]
fn the_files_and_directories_are_readable_by_their_owner_only() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path().join("deep/er/windlass.db")).unwrap();
    let _journal = start(&store, "r1");
    let mode = |path: &str| {
        std::fs::metadata(directory.path().join(path))
            .unwrap()
            .permissions()
            .mode()
            & 0o777
    };
    for made in ["deep", "deep/er", "deep/er/locks"] {
        assert_eq!(mode(made), 0o700, "{made}");
    }
    for made in [
        "windlass.db",
        "windlass.db-wal",
        "windlass.db-shm",
        "locks/run-r1.lock",
    ] {
        assert_eq!(mode(&format!("deep/er/{made}")), 0o600, "{made}");
    }
}

#[test]
fn a_reopened_database_keeps_its_content() {
    let (_directory, store) = open();
    let path = store.path().to_owned();
    drop(start(&store, "r1"));
    drop(store);
    assert_eq!(
        Store::open(path).unwrap().events(&id("r1")).unwrap().len(),
        1
    );
}

#[test]
fn a_database_of_a_newer_version_is_refused_and_unchanged() {
    let (_directory, store) = open();
    let path = store.path().to_owned();
    drop(store);
    Connection::open(&path)
        .unwrap()
        .pragma_update(None, "user_version", 99)
        .unwrap();
    let error = Store::open(&path).unwrap_err();
    assert!(
        matches!(
            error,
            Error::NewerDatabase {
                found: 99,
                known: 26,
                ..
            }
        ),
        "{error}"
    );
    assert!(error.to_string().contains("upgrade Windlass"), "{error}");
    let connection = Connection::open(&path).unwrap();
    let version: i64 = connection
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .unwrap();
    assert_eq!(version, 99);
}

#[test]
fn a_database_of_another_program_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("theirs.db");
    Connection::open(&path)
        .unwrap()
        .execute_batch("CREATE TABLE theirs (a)")
        .unwrap();
    let error = Store::open(&path).unwrap_err();
    assert!(matches!(error, Error::ForeignDatabase(_)), "{error}");
}

#[test]
fn a_file_that_is_not_a_database_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notes.txt");
    std::fs::write(&path, "These are my notes. ".repeat(100)).unwrap();
    let error = Store::open(&path).unwrap_err();
    assert!(matches!(error, Error::Damaged(_)), "{error}");
    assert!(
        std::fs::read_to_string(&path)
            .unwrap()
            .starts_with("These are my notes.")
    );
}

#[test]
fn concurrent_creation_of_a_database_succeeds() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("windlass.db");
    std::thread::scope(|scope| {
        for number in 0..8 {
            let path = &path;
            scope.spawn(move || {
                let store = Store::open(path).unwrap();
                drop(start(&store, &format!("r{number}")));
            });
        }
    });
    let runs = Store::open(&path)
        .unwrap()
        .runs(&windlass_store::RunFilter::default())
        .unwrap();
    assert_eq!(runs.len(), 8);
}
