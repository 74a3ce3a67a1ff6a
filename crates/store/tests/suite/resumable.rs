//! Which runs a worker may resume, and how a subscriber follows a run.

use windlass_core::durable::{ResumableRun, ResumeReason};
use windlass_core::run::{Event, RunEnd};
use windlass_spec::RunId;
use windlass_store::{Durability, Error, RunJournal, Store};

use super::asking::{DAY, approval, asks, call, event, who};
use super::holds::hold;
use super::support::{at, id, new_run, open, passed, start, started};

fn reasons(store: &Store, second: i64) -> Vec<(String, ResumeReason)> {
    let found = store.resumable(at(second)).unwrap();
    let pair = |run: ResumableRun| {
        assert_eq!(run.tenant, "acme");
        (run.run.to_string(), run.reason)
    };
    found.into_iter().map(pair).collect()
}

fn only(run: &str, reason: ResumeReason) -> Vec<(String, ResumeReason)> {
    vec![(run.to_owned(), reason)]
}

fn leave(journal: RunJournal) {
    journal.end(&RunEnd::WaitingForPerson).unwrap();
}

/// The run of a sub-agent that works for a call.
fn child(store: &Store, name: &str, parent: &str) -> RunJournal {
    let Event::Started {
        run,
        agent,
        agents,
        assembly,
        holds,
        task,
        settings,
        at,
        ..
    } = started(name, "Find it.")
    else {
        unreachable!()
    };
    let event = Event::Started {
        parent: Some(parent.parse().unwrap()),
        run,
        agent,
        agents,
        assembly,
        holds,
        task,
        settings,
        at,
    };
    store.start(new_run(), &event, Durability::Synced).unwrap()
}

#[test]
fn a_run_that_waits_is_resumable_when_a_command_arrives() {
    let (_directory, store) = open();
    let (journal, _) = start(&store, "r1");
    asks(&journal, &approval(call("r1", 0)));
    store.request_cancel(&id("r1"), &who("bea"), at(2)).unwrap();
    assert!(reasons(&store, 3).is_empty(), "its owner is alive");
    leave(journal);
    assert_eq!(reasons(&store, 3), only("r1", ResumeReason::Command));

    let journal = store.take_over(&id("r1")).unwrap();
    assert!(reasons(&store, 3).is_empty(), "it has an owner again");
    let command = journal.inbox().unwrap()[0].id;
    journal.append_taking(&event(&journal, 4), command).unwrap();
    leave(journal);
    assert!(reasons(&store, 5).is_empty(), "there is nothing to do");
}

#[test]
fn a_run_is_resumable_when_time_brings_something_to_do() {
    let (_directory, store) = open();
    let (journal, _) = start(&store, "asks");
    asks(&journal, &approval(call("asks", 0)));
    leave(journal);
    let (journal, _) = start(&store, "holds");
    let held = hold("holds", 0);
    journal.append_holding(&event(&journal, 1), &held).unwrap();
    leave(journal);
    assert!(reasons(&store, 5).is_empty());
    let due = at(0).as_microseconds();
    let due = (held.due_at().as_microseconds() - due) / 1_000_000;
    assert_eq!(reasons(&store, due), only("holds", ResumeReason::HoldDue));
    let late = reasons(&store, 8 * DAY);
    assert!(late.contains(&("asks".to_owned(), ResumeReason::QuestionExpired)));
    assert_eq!(late.len(), 2);
}

#[test]
fn a_run_whose_process_died_is_resumable_and_one_that_ended_is_not() {
    let (directory, store) = open();
    let (journal, _) = start(&store, "r1");
    assert!(reasons(&store, 1).is_empty());
    // What a killed process leaves behind: an open run, and a lock file that nobody holds.
    drop(journal);
    let lock = directory.path().join("locks/run-r1.lock");
    std::fs::write(&lock, "").unwrap();
    assert_eq!(reasons(&store, 1), only("r1", ResumeReason::OwnerGone));
    assert!(lock.exists(), "to ask changes nothing");
    let elsewhere = Store::open(store.path()).unwrap();
    let journal = elsewhere.take_over(&id("r1")).unwrap();
    assert!(reasons(&store, 1).is_empty());
    journal.end(&RunEnd::Completed).unwrap();
    assert!(reasons(&store, 1).is_empty());
    drop(journal);
    assert!(reasons(&store, 1).is_empty());
}

#[test]
fn work_of_a_sub_agent_makes_the_outermost_run_resumable() {
    let (_directory, store) = open();
    let (outer, _) = start(&store, "r1");
    let inner = child(&store, "r1.1.0", "r1:1:0");
    let innermost = child(&store, "r1.1.0.1.0", "r1.1.0:1:0");
    // An id with dots that works for nobody is a run of its own.
    let (other, _) = start(&store, "r1.1.7");
    asks(&innermost, &approval(call("r1.1.0.1.0", 0)));
    for journal in [innermost, inner, outer, other] {
        leave(journal);
    }
    assert!(reasons(&store, 2).is_empty());
    store
        .request_cancel(&id("r1.1.0.1.0"), &who("bea"), at(2))
        .unwrap();
    assert_eq!(reasons(&store, 3), only("r1", ResumeReason::Command));
    store
        .request_cancel(&id("r1.1.7"), &who("bea"), at(2))
        .unwrap();
    let both = reasons(&store, 3);
    assert!(both.contains(&("r1.1.7".to_owned(), ResumeReason::Command)));
    assert_eq!(both.len(), 2);

    let owner = store.take_over(&id("r1")).unwrap();
    assert_eq!(
        reasons(&store, 3).len(),
        1,
        "who has the outermost run has all of it"
    );
    drop(owner);
}

/// To ask whether a run is owned takes its lock for a moment, in which nobody may be turned away.
#[test]
fn asking_for_resumable_runs_keeps_nobody_from_taking_one() {
    let (directory, store) = open();
    let (journal, _) = start(&store, "r1");
    drop(journal);
    let lock = directory.path().join("locks/run-r1.lock");
    let asker = Store::open(store.path()).unwrap();
    let is_done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(std::sync::atomic::Ordering::Relaxed) {
                asker.resumable(at(1)).unwrap();
            }
        });
        for _ in 0..100 {
            std::fs::write(&lock, "").unwrap();
            let taken = store.take_over(&id("r1"));
            if taken.is_err() {
                is_done.store(true, std::sync::atomic::Ordering::Relaxed);
            }
            drop(taken.unwrap());
        }
        is_done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn a_subscriber_reads_on_from_where_it_was() {
    let (_directory, store) = open();
    let (journal, _) = start(&store, "r1");
    let elsewhere = Store::open(store.path()).unwrap();
    let mut changes = elsewhere.watch_changes().unwrap();
    assert!(!changes.has_changed().unwrap());
    assert_eq!(elsewhere.last_position(&id("r1")).unwrap(), 1);
    for second in 1..=3 {
        journal.append(&passed(second), Durability::Synced).unwrap();
    }
    assert!(changes.has_changed().unwrap());
    assert!(
        !changes.has_changed().unwrap(),
        "until something else is written"
    );
    assert_eq!(elsewhere.last_position(&id("r1")).unwrap(), 4);
    let all = elsewhere.events(&id("r1")).unwrap();
    assert_eq!(elsewhere.events_from(&id("r1"), 1).unwrap(), all);
    assert_eq!(elsewhere.events_from(&id("r1"), 3).unwrap(), all[2..]);
    assert!(elsewhere.events_from(&id("r1"), 5).unwrap().is_empty());
    let unknown: RunId = id("none");
    let unknown = elsewhere.events_from(&unknown, 1);
    assert!(matches!(unknown, Err(Error::NoSuchRun(_))), "{unknown:?}");
    assert_eq!(elsewhere.last_position(&id("none")).unwrap(), 0);
}
