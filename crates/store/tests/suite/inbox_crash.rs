//! Tests that a decision is neither lost nor acted on twice when a process is killed.
//!
//! The processes are this test binary, started with a variable that selects the test `person` or `owner`.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use rusqlite::Connection;
use windlass_core::approval::{ApprovalStatus, PersonDecision};
use windlass_store::{ApprovalFilter, Error, Store};

use super::questions::{approval, ask_question, call, event, identity, now};
use super::support::{id, open, start};

const PERSON: &str = "WINDLASS_STORE_TEST_PERSON";
const OWNER: &str = "WINDLASS_STORE_TEST_OWNER";
const CALLS: u32 = 60;

fn print_line(word: &str, number: impl std::fmt::Display) {
    let line = format!("{word} {number}\n");
    std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
}

/// Not a test by itself: decides about one call after the other until it is killed.
#[test]
fn person() {
    let Some(path) = std::env::var_os(PERSON) else {
        return;
    };
    let store = Store::open(path).unwrap();
    for index in 0..CALLS {
        let decision = PersonDecision::Approve;
        match store.decide(&call("r1", index), None, &identity("bea"), decision, now()) {
            Ok(_) => print_line("done", index),
            Err(Error::AlreadyDecided { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    print_line("over", 0);
}

/// Not a test by itself: takes one command after the other until it is killed.
#[test]
fn owner() {
    let Some(path) = std::env::var_os(OWNER) else {
        return;
    };
    let store = Store::open(path).unwrap();
    let journal = store.take_over(&id("r1")).unwrap();
    while let Some(command) = journal.inbox().unwrap().first() {
        journal
            .append_taking(&event(&journal, 2), command.id)
            .unwrap();
        print_line("done", command.id);
    }
    print_line("over", 0);
}

/// Lets a process work until it has printed `count` lines, kills it, and returns what it did and whether it was
/// finished.
fn kill_after(role: &str, variable: &str, path: &Path, count: u64) -> (Vec<u32>, bool) {
    let name = format!("suite::inbox_crash::{role}");
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &name, "--nocapture"])
        .env(variable, path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut done, mut is_over) = (Vec::new(), false);
    let lines = BufReader::new(process.stdout.take().unwrap()).lines();
    // Lines that are still in the pipe after the kill were acknowledged too.
    for line in lines {
        let line = line.unwrap();
        is_over |= line.contains("over 0");
        if let Some((_, number)) = line.split_once("done ") {
            done.push(number.parse().unwrap());
            if done.len() as u64 == count {
                process.kill().unwrap();
            }
        }
    }
    process.wait().unwrap();
    (done, is_over)
}

#[test]
fn an_acknowledged_decision_survives_a_kill_and_is_acted_on_once() {
    let (_directory, store) = open();
    let (journal, _) = start(&store, "r1");
    for index in 0..CALLS {
        ask_question(&journal, &approval(call("r1", index)));
    }
    drop(journal);
    let random = RandomState::new();

    let mut decided = HashSet::new();
    for kill in 0_u64.. {
        let count = 1 + random.hash_one(kill) % 12;
        let (acknowledged, is_over) = kill_after("person", PERSON, store.path(), count);
        decided.extend(acknowledged);
        let approvals = store.approvals(&ApprovalFilter::default(), now()).unwrap();
        let approved: HashSet<u32> = approvals
            .iter()
            .filter(|approval| approval.status() == ApprovalStatus::Approved)
            .map(|approval| approval.call().index)
            .collect();
        assert!(decided.is_subset(&approved), "after kill {kill}");
        let command = store.inbox(&id("r1")).unwrap().len();
        assert_eq!(
            command,
            approved.len(),
            "a decision and its command, or neither"
        );
        if is_over {
            break;
        }
    }
    assert_eq!(store.inbox(&id("r1")).unwrap().len(), CALLS as usize);

    let before = store.events(&id("r1")).unwrap().len();
    let mut taken = HashSet::new();
    for kill in 1000_u64.. {
        let count = 1 + random.hash_one(kill) % 12;
        let (acknowledged, is_over) = kill_after("owner", OWNER, store.path(), count);
        for command in acknowledged {
            assert!(
                taken.insert(command),
                "command {command} was acted on twice"
            );
        }
        let left = store.inbox(&id("r1")).unwrap().len();
        let events = store.events(&id("r1")).unwrap().len() - before;
        assert_eq!(
            left + events,
            CALLS as usize,
            "an event for each command taken"
        );
        assert!(events >= taken.len());
        if is_over {
            break;
        }
    }
    let connection = Connection::open(store.path()).unwrap();
    let distinct_events: u32 = connection
        .query_row(
            "SELECT count(DISTINCT taken_seq) FROM mailbox JOIN events
                 ON events.run = mailbox.run AND events.seq = mailbox.taken_seq",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(distinct_events, CALLS);
    store.fold(&id("r1")).unwrap();
}
