//! What fails outside: no room, no right to write, somebody else's lock, a file that is gone. Whatever
//! was to be written then is refused with the cause, nothing of it is there, and when the cause is
//! gone it can be written.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rusqlite::Connection;
use windlass_store::{Durability, Error, Options, RunFilter, Store};

use super::scene::{OTHERS, OWNERS, Scene, large_event, prepare};
use super::support::{content, id, new_run, open, started};

/// Tries things while something is wrong.
fn all_fail<'a>(
    (store, scene): (&Store, &Scene),
    things: impl IntoIterator<Item = &'a str>,
    size: usize,
    is_expected: impl Fn(&Error) -> bool,
) {
    for what in things {
        let error = scene.attempt(store, what, size).expect_err(what);
        assert!(is_expected(&error), "{what}: {error}");
        assert!(!error.to_string().is_empty());
    }
    // What an owner could not write, it does not write later without what came before it.
    for what in OWNERS {
        let error = scene.attempt(store, what, size).expect_err(what);
        assert!(matches!(error, Error::Broken { .. }), "{what}: {error}");
    }
}

/// Tries everything when all is well again.
fn all_succeed(store: &Store, size: usize) {
    let scene = Scene::enter(store);
    for what in OWNERS.into_iter().chain(OTHERS) {
        let result = scene.attempt(store, what, size);
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
fn a_database_that_may_not_grow_refuses_what_does_not_fit() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("windlass.db");
    let options = Options {
        max_bytes: Some(600 * 1024),
        ..Options::default()
    };
    let store = Store::open_with(&path, options).unwrap();
    prepare(&store);
    let scene = Scene::enter(&store);
    fill(&store);
    let before = content(&path);
    // An undo or a stop may find room in a page that is there.
    let things = OWNERS.into_iter().chain(["decide"]);
    let is_full = |error: &Error| matches!(error, Error::DiskFull);
    all_fail((&store, &scene), things, 100_000, is_full);
    assert_eq!(content(&path), before, "nothing is half-written");
    drop((scene, store));
    all_succeed(&Store::open(&path).unwrap(), 100_000);
}

const FULL: &str = "WINDLASS_STORE_TEST_FULL";
const READ_ONLY: &str = "WINDLASS_STORE_TEST_READ_ONLY";
const LOCK: &str = "WINDLASS_STORE_TEST_LOCK";

/// Runs a test of this binary, told by a variable what to play, where `mount` was called as said. Not
/// every system lets us: where everybody has the same view of the file system, it is left out.
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
        println!("this system does not let us `{mount}`, so this is not tested here");
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
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && told.contains("1 passed"),
        "{told}"
    );
}

#[test]
fn a_full_disk_refuses_everything() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("windlass.db");
    in_own_mounts(
        r#"mount -t tmpfs -o size=2m tmpfs "$1""#,
        "on_a_small_disk",
        FULL,
        &path,
    );
}

/// Not a test by itself: fills a disk that was made for it.
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
    let scene = Scene::enter(&store);
    fill(&store);
    let before = content(path);
    let is_full = |error: &Error| matches!(error, Error::DiskFull);
    let things = || OWNERS.into_iter().chain(OTHERS);
    all_fail((&store, &scene), things(), 20_000, is_full);
    assert_eq!(content(path), before, "nothing is half-written");
    drop(scene);
    // The same store goes on when there is room.
    std::fs::remove_file(&ballast).unwrap();
    all_succeed(&store, 20_000);
}

#[test]
fn a_read_only_directory_is_refused_and_left_as_it_is() {
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

/// Not a test by itself: opens what cannot be written.
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
fn a_lock_of_another_process_refuses_everything() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("windlass.db");
    let options = Options {
        lock_timeout: Some(Duration::from_millis(50)),
        ..Options::default()
    };
    let store = Store::open_with(&path, options).unwrap();
    prepare(&store);
    let scene = Scene::enter(&store);
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

    let things = OWNERS.into_iter().chain(OTHERS);
    let is_busy = |error: &Error| matches!(error, Error::Busy);
    all_fail((&store, &scene), things, 10, is_busy);
    assert_eq!(content(&path), before, "nothing is half-written");
    let error = store.take_over(&id("decide")).unwrap_err();
    assert!(matches!(error, Error::Busy), "{error}");
    drop(scene);
    locker.kill().unwrap();
    locker.wait().unwrap();
    all_succeed(&store, 10);
}

#[test]
fn a_database_that_is_gone_takes_nothing_more() {
    let (directory, store) = open();
    prepare(&store);
    let scene = Scene::enter(&store);
    let before = content(store.path());
    let away = directory.path().join("away.db");
    std::fs::rename(store.path(), &away).unwrap();
    let is_gone = |error: &Error| matches!(error, Error::Gone(_));
    let things = || OWNERS.into_iter().chain(OTHERS);
    all_fail((&store, &scene), things(), 10, is_gone);
    assert!(!store.path().exists(), "none is made in its place");

    // Another one in its place is not taken for it.
    std::fs::write(store.path(), "").unwrap();
    let error = scene.attempt(&store, "decide", 10).unwrap_err();
    assert!(is_gone(&error), "{error}");
    assert_eq!(std::fs::read(store.path()).unwrap(), b"");

    drop(scene);
    std::fs::rename(&away, store.path()).unwrap();
    assert_eq!(content(store.path()), before);
    all_succeed(&store, 10);
}

#[test]
fn a_directory_that_is_gone_takes_nothing_more() {
    let (directory, store) = open();
    prepare(&store);
    let scene = Scene::enter(&store);
    directory.close().unwrap();
    let is_gone = |error: &Error| matches!(error, Error::Gone(_));
    let things = OWNERS.into_iter().chain(OTHERS);
    all_fail((&store, &scene), things, 10, is_gone);
    let error = store.take_over(&id("decide")).unwrap_err();
    assert!(error.to_string().starts_with("cannot open `"), "{error}");
}
