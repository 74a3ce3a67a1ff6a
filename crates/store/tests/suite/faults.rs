//! Tests of external failures: a full disk, missing write permission, a lock of another process, a removed file.
//! Writes fail with the cause, leave nothing behind, and succeed when the cause is fixed.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rusqlite::Connection;
use windlass_store::{Durability, Error, Options, RunFilter, Store};

use super::prepared_runs::{OTHER_WRITES, OWNER_WRITES, PreparedRuns, large_event, prepare};
use super::support::{content, id, new_run, open, started};

/// Checks that writes fail with the expected error.
fn all_fail<'a>(
    (store, prepared): (&Store, &PreparedRuns),
    writes: impl IntoIterator<Item = &'a str>,
    size: usize,
    is_expected: impl Fn(&Error) -> bool,
) {
    for what in writes {
        let error = prepared.attempt(store, what, size).expect_err(what);
        assert!(is_expected(&error), "{what}: {error}");
        assert!(!error.to_string().is_empty());
    }
    // After a failed write, an owner's journal refuses further writes.
    for what in OWNER_WRITES {
        let error = prepared.attempt(store, what, size).expect_err(what);
        assert!(matches!(error, Error::Broken { .. }), "{what}: {error}");
    }
}

/// Checks that all writes succeed when the cause is fixed.
fn all_succeed(store: &Store, size: usize) {
    let prepared = PreparedRuns::take_over(store);
    for what in OWNER_WRITES.into_iter().chain(OTHER_WRITES) {
        let result = prepared.attempt(store, what, size);
        assert!(result.is_ok(), "{what}: {result:?}");
    }
    for run in store.runs(&RunFilter::default()).unwrap() {
        let events = store.events(&run.run).unwrap();
        let numbers: Vec<u64> = events.iter().map(|(seq, _)| *seq).collect();
        let whole: Vec<u64> = (1..=numbers.len() as u64).collect();
        assert_eq!(numbers, whole, "{}", run.run);
    }
}

/// Appends until nothing fits any more.
fn fill(store: &Store) {
    let first = started("filler", "Fill it.");
    let mut filler = store.start(new_run(), &first, Durability::Synced).unwrap();
    for size in [20_000, 1_000] {
        let error = loop {
            match filler.append(&large_event(size), Durability::Synced) {
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        assert!(matches!(error, Error::DiskFull), "{error}");
        drop(filler);
        match store.take_over(&id("filler")) {
            Ok(journal) => filler = journal,
            Err(_) => return,
        }
    }
}

#[test]
fn a_database_at_its_size_limit_refuses_writes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("windlass.db");
    let options = Options {
        max_bytes: Some(600 * 1024),
        ..Options::default()
    };
    let store = Store::open_with(&path, options).unwrap();
    prepare(&store);
    let prepared = PreparedRuns::take_over(&store);
    fill(&store);
    let before = content(&path);
    // An undo or a cancel may fit into an existing page.
    let writes = OWNER_WRITES.into_iter().chain(["decide"]);
    let is_full = |error: &Error| matches!(error, Error::DiskFull);
    all_fail((&store, &prepared), writes, 100_000, is_full);
    assert_eq!(content(&path), before, "nothing is half-written");
    drop((prepared, store));
    all_succeed(&Store::open(&path).unwrap(), 100_000);
}

const FULL: &str = "WINDLASS_STORE_TEST_FULL";
const READ_ONLY: &str = "WINDLASS_STORE_TEST_READ_ONLY";
const LOCK: &str = "WINDLASS_STORE_TEST_LOCK";

/// Runs a test of this binary, selected by `role` and `variable`, in a mount namespace after `mount`. On systems
/// without permission for mount namespaces, the test is skipped.
fn in_own_mounts(mount: &str, role: &str, variable: &str, path: &Path) {
    let unshare = || {
        let mut unshare = Command::new("unshare");
        unshare.args(["--map-root-user", "--mount", "sh", "-e", "-c"]);
        unshare.stdout(Stdio::null());
        unshare
    };
    let directory = path.parent().unwrap();
    let may = unshare().arg(mount).arg("sh").arg(directory).status();
    if !may.is_ok_and(|status| status.success()) {
        println!("skipped: this system does not allow `{mount}`");
        return;
    }
    let output = unshare()
        .arg(format!("{mount}; shift; exec \"$@\""))
        .arg("sh")
        .arg(directory)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", &format!("suite::faults::{role}")])
        .env(variable, path)
        .stdout(Stdio::piped())
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && stdout.contains("1 passed"),
        "{stdout}"
    );
}

#[test]
fn a_full_disk_refuses_all_writes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("windlass.db");
    in_own_mounts(
        r#"mount -t tmpfs -o size=2m,mode=0700 tmpfs "$1""#,
        "on_a_small_disk",
        FULL,
        &path,
    );
}

/// Not a test by itself: fills the disk that `a_full_disk_refuses_all_writes` mounts.
#[test]
fn on_a_small_disk() {
    let Some(path) = std::env::var_os(FULL) else {
        return;
    };
    let path = Path::new(&path);
    let ballast = path.with_file_name("ballast");
    std::fs::write(&ballast, vec![1; 800 * 1024]).unwrap();
    let store = Store::open(path).unwrap();
    prepare(&store);
    let prepared = PreparedRuns::take_over(&store);
    fill(&store);
    let before = content(path);
    let is_full = |error: &Error| matches!(error, Error::DiskFull);
    let writes = || OWNER_WRITES.into_iter().chain(OTHER_WRITES);
    all_fail((&store, &prepared), writes(), 20_000, is_full);
    assert_eq!(content(path), before, "nothing is half-written");
    drop(prepared);
    // The same store continues when there is room.
    std::fs::remove_file(&ballast).unwrap();
    all_succeed(&store, 20_000);
}

#[test]
fn a_read_only_directory_is_refused_and_unchanged() {
    let (directory, store) = open();
    prepare(&store);
    let path = store.path().to_owned();
    drop(store);
    let before = content(&path);
    in_own_mounts(
        r#"mount --bind "$1" "$1"; mount -o remount,ro,bind "$1""#,
        "on_a_read_only_disk",
        READ_ONLY,
        &path,
    );
    assert_eq!(content(&path), before);
    drop(directory);
}

/// Not a test by itself: opens a database on a read-only disk.
#[test]
fn on_a_read_only_disk() {
    let Some(path) = std::env::var_os(READ_ONLY) else {
        return;
    };
    let error = Store::open(path).unwrap_err().to_string();
    assert!(
        error.starts_with("cannot open `") && error.contains("Read-only file system"),
        "{error}"
    );
}

/// Not a test by itself: keeps a transaction open until it is killed.
#[test]
fn locker() {
    let Some(path) = std::env::var_os(LOCK) else {
        return;
    };
    let connection = Connection::open(path).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    println!("locked");
    loop {
        std::thread::park();
    }
}

#[test]
fn a_lock_of_another_process_refuses_all_writes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("windlass.db");
    let options = Options {
        lock_timeout: Some(Duration::from_millis(50)),
        ..Options::default()
    };
    let store = Store::open_with(&path, options).unwrap();
    prepare(&store);
    let prepared = PreparedRuns::take_over(&store);
    let before = content(&path);
    let mut locker = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "suite::faults::locker", "--nocapture"])
        .env(LOCK, &path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(locker.stdout.take().unwrap()).lines();
    let is_locked = lines.any(|line| line.unwrap().ends_with("locked"));
    assert!(is_locked);

    let writes = OWNER_WRITES.into_iter().chain(OTHER_WRITES);
    let is_busy = |error: &Error| matches!(error, Error::Busy);
    all_fail((&store, &prepared), writes, 10, is_busy);
    assert_eq!(content(&path), before, "nothing is half-written");
    let error = store.take_over(&id("decide")).unwrap_err();
    assert!(matches!(error, Error::Busy), "{error}");
    drop(prepared);
    locker.kill().unwrap();
    locker.wait().unwrap();
    all_succeed(&store, 10);
}

#[test]
fn a_removed_database_refuses_all_writes() {
    let (directory, store) = open();
    prepare(&store);
    let prepared = PreparedRuns::take_over(&store);
    let before = content(store.path());
    let away = directory.path().join("away.db");
    std::fs::rename(store.path(), &away).unwrap();
    let is_gone = |error: &Error| matches!(error, Error::Gone(_));
    let writes = || OWNER_WRITES.into_iter().chain(OTHER_WRITES);
    all_fail((&store, &prepared), writes(), 10, is_gone);
    assert!(!store.path().exists(), "no new file is created");

    // Another file at the same path is not used.
    std::fs::write(store.path(), "").unwrap();
    let error = prepared.attempt(&store, "decide", 10).unwrap_err();
    assert!(is_gone(&error), "{error}");
    assert_eq!(std::fs::read(store.path()).unwrap(), b"");

    drop(prepared);
    std::fs::rename(&away, store.path()).unwrap();
    assert_eq!(content(store.path()), before);
    all_succeed(&store, 10);
}

#[test]
fn a_removed_directory_refuses_all_writes() {
    let (directory, store) = open();
    prepare(&store);
    let prepared = PreparedRuns::take_over(&store);
    directory.close().unwrap();
    let is_gone = |error: &Error| matches!(error, Error::Gone(_));
    let writes = OWNER_WRITES.into_iter().chain(OTHER_WRITES);
    all_fail((&store, &prepared), writes, 10, is_gone);
    let error = store.take_over(&id("decide")).unwrap_err();
    assert!(error.to_string().starts_with("cannot open `"), "{error}");
}
