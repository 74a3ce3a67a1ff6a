//! Tests that a process that is killed while it writes loses no acknowledged event.
//!
//! The process is this test binary, started with a variable that selects the test `victim`.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use windlass_core::run::{Event, Run};
use windlass_store::{Durability, Error, Store};

use super::support::{id, new_run, next_event, started, success};

const VICTIM: &str = "WINDLASS_STORE_TEST_VICTIM";
const RUNS: [&str; 3] = ["r0", "r1", "r2"];
const KILLS: u64 = 25;

/// Not a test by itself: does nothing unless started by the test below.
#[test]
fn victim() {
    let Some(path) = std::env::var_os(VICTIM) else {
        return;
    };
    let store = Store::open(path).unwrap();
    std::thread::scope(|scope| {
        for name in RUNS {
            let store = &store;
            scope.spawn(move || append_forever(store, name));
        }
    });
}

fn append_forever(store: &Store, name: &str) {
    let first = started(name, "Find it.");
    let (journal, mut run) = match store.take_over(&id(name)) {
        Ok(journal) => (journal, store.fold(&id(name)).unwrap()),
        Err(Error::NoSuchRun(_)) => {
            let journal = store.start(new_run(), &first, Durability::Synced).unwrap();
            (journal, Run::fold([&first]).unwrap())
        }
        Err(error) => panic!("{error}"),
    };
    loop {
        let event = next_event(&run, 1, &success());
        run.apply(&event).unwrap();
        // Like the runtime: an event before an effect waits for the disk.
        let is_intent = matches!(event, Event::CallStarted { .. });
        let durability = if is_intent {
            Durability::Synced
        } else {
            Durability::Relaxed
        };
        let seq = journal.append(&event, durability).unwrap();
        if is_intent {
            let line = format!("stored {name} {seq}\n");
            std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
        }
    }
}

/// Lets a victim append until it has printed `count` lines, kills it, and returns the last acknowledged event of
/// each run.
fn kill_after(path: &Path, count: u64) -> HashMap<String, u64> {
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "suite::crash::victim", "--nocapture"])
        .env(VICTIM, path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut acknowledged = HashMap::new();
    let mut seen = 0;
    let lines = BufReader::new(victim.stdout.take().unwrap()).lines();
    // Lines that are still in the pipe after the kill were acknowledged too.
    for line in lines {
        let line = line.unwrap();
        // The first line may follow output of the test harness.
        let Some((_, line)) = line.split_once("stored ") else {
            continue;
        };
        let (run, seq) = line.split_once(' ').unwrap();
        acknowledged.insert(run.to_owned(), seq.parse().unwrap());
        seen += 1;
        if seen == count {
            victim.kill().unwrap();
        }
    }
    let status = victim.wait().unwrap();
    assert_eq!(status.code(), None, "it must have been killed: {status}");
    acknowledged
}

#[test]
fn acknowledged_events_survive_a_kill_at_any_point() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("windlass.db");
    let random = RandomState::new();
    for kill in 0..KILLS {
        let count = 1 + random.hash_one(kill) % 60;
        let acknowledged = kill_after(&path, count);
        assert!(!acknowledged.is_empty());
        let store = Store::open(&path).unwrap();
        for (name, last) in acknowledged {
            let events = store.events(&id(&name)).unwrap();
            let numbers: Vec<u64> = events.iter().map(|(seq, _)| *seq).collect();
            let whole: Vec<u64> = (1..=numbers.len() as u64).collect();
            assert_eq!(numbers, whole, "no gap after kill {kill}");
            assert!(
                numbers.len() as u64 >= last,
                "{name}: {last} of {}",
                numbers.len()
            );
            let (_, event) = &events[last as usize - 1];
            assert!(matches!(event, Event::CallStarted { .. }), "{event:?}");
            store.fold(&id(&name)).unwrap();
            let journal = store.take_over(&id(&name)).unwrap();
            let event = next_event(&store.fold(&id(&name)).unwrap(), 1, &success());
            let seq = journal.append(&event, Durability::Synced).unwrap();
            assert_eq!(seq, numbers.len() as u64 + 1);
        }
    }
    let connection = rusqlite::Connection::open(&path).unwrap();
    let verdict: String = connection
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(verdict, "ok");
}
