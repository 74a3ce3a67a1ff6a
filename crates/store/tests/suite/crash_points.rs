//! Tests that every write has two crash points: a kill at the first loses it, a kill at the second does not.
//!
//! The killed process is this test binary, started with a variable that selects the test `victim`.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use windlass_core::approval::PersonDecision;
use windlass_core::run::RunEnd;
use windlass_store::{Durability, Store};

use super::holds::hold;
use super::questions::{approval, ask_question, call, event, identity, now};
use super::support::{at, content, id, new_run, next_event, start, started, success};

const VICTIM: &str = "WINDLASS_STORE_TEST_CRASH_VICTIM";

/// Not a test by itself: writes everything a store can write about a run.
#[test]
fn victim() {
    let Some(path) = std::env::var_os(VICTIM) else {
        return;
    };
    let store = Store::open(path).unwrap();
    let (journal, mut run) = start(&store, "r1");
    for second in 1..=4 {
        let event = next_event(&run, second, &success());
        run.apply(&event).unwrap();
        journal.append(&event, Durability::Synced).unwrap();
    }
    ask_question(&journal, &approval(call("r1", 0)));
    for index in [1, 2] {
        let held = hold("r1", index);
        journal.append_holding(&event(&journal, 1), &held).unwrap();
    }
    let approve = PersonDecision::Approve;
    let by = identity("bea");
    store
        .decide(&call("r1", 0), None, &by, approve, now())
        .unwrap();
    store.undo(&call("r1", 1), &by, at(2)).unwrap();
    store.release(&call("r1", 2), &by, at(2)).unwrap();
    ask_question(&journal, &approval(call("r1", 3)));
    store.sweep(at(1_000_000)).unwrap();
    store.request_cancel(&id("r1"), &by, now()).unwrap();
    journal.end(&RunEnd::WaitingForPerson).unwrap();
    drop(journal);
    let journal = store.take_over(&id("r1")).unwrap();
    journal.end(&RunEnd::Cancelled).unwrap();
    let relaxed = started("r2", "Find it.");
    let journal = store
        .start(new_run(), &relaxed, Durability::Relaxed)
        .unwrap();
    journal.sync().unwrap();
}

/// Runs the victim on a database, with another variable.
fn run_victim(path: &Path, variable: &str, value: &str) -> ExitStatus {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "suite::crash_points::victim"])
        .env(VICTIM, path)
        .env(variable, value)
        .stdout(Stdio::null())
        .status()
        .unwrap()
}

fn reopened_content(path: &Path) -> String {
    drop(Store::open(path).unwrap());
    content(path)
}

#[test]
fn a_write_is_stored_after_its_second_crash_point_and_not_before_its_first() {
    let directory = tempfile::tempdir().unwrap();
    let list = directory.path().join("list");
    let whole = directory.path().join("whole/windlass.db");
    let status = run_victim(&whole, "WINDLASS_CRASH_LIST", list.to_str().unwrap());
    assert!(status.success(), "{status}");
    assert_eq!(
        list.exists(),
        cfg!(debug_assertions),
        "only debug builds have crash points"
    );
    let points = std::fs::read_to_string(&list).unwrap_or_default();
    let points: Vec<&str> = points.lines().collect();
    if points.is_empty() {
        return;
    }
    for wanted in [
        "start.before#1",
        "append.before.call_started#1",
        "append.after.call_started#1",
        "append.after.time_passed#3",
        "decide.after#1",
        "undo.before#1",
        "release.before#1",
        "expire.before#1",
        "cancel.before#1",
        "end.after#2",
        "take_over.before#1",
    ] {
        assert!(points.contains(&wanted), "{wanted} of {points:?}");
    }

    let mut last = reopened_content(&directory.path().join("nothing/windlass.db"));
    for pair in points.chunks(2) {
        let [before, after] = pair else {
            panic!("{pair:?} is not a pair");
        };
        assert_eq!(before.replace("before", "after"), *after);
        let [found_before, found_after] = [before, after].map(|point| {
            let path = directory.path().join(point).join("windlass.db");
            let status = run_victim(&path, "WINDLASS_CRASH_AT", point);
            assert_eq!(status.signal(), Some(9), "{point}: {status}");
            reopened_content(&path)
        });
        assert_eq!(found_before, last, "killed at {before}");
        assert_ne!(found_after, last, "killed at {after}");
        last = found_after;
    }
    assert_eq!(
        reopened_content(&whole),
        last,
        "every write has crash points"
    );
}

#[test]
fn a_crash_point_that_is_never_passed_kills_no_process() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("windlass.db");
    for never in ["start.before#3", "start.before", "append.before.nothing#1"] {
        let _ = std::fs::remove_dir_all(directory.path());
        let status = run_victim(&path, "WINDLASS_CRASH_AT", never);
        assert!(status.success(), "{never}: {status}");
    }
}
