//! Tests of which runs a worker can resume, and of how a subscriber follows a run.

use windlass_core::durable::{ResumableRun, ResumeReason};
use windlass_core::run::{Event, RunEnd};
use windlass_spec::RunId;
use windlass_store::{Durability, Error, RunJournal, Store};

use super::holds::hold;
use super::questions::{DAY, approval, ask_question, call, event, identity};
use super::support::{at, id, new_run, open, start, started, time_passed};

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

fn suspend(journal: RunJournal) {
    journal.end(&RunEnd::WaitingForPerson).unwrap();
}

/// The run of a sub-agent that works for a call.
fn child(store: &Store, name: &str, parent: &str) -> RunJournal {
    let mut event = started(name, "Find it.");
    if let Event::Started { parent: of, .. } = &mut event {
        *of = Some(parent.parse().unwrap());
    }
    store.start(new_run(), &event, Durability::Synced).unwrap()
}

#[test]
fn a_run_that_waits_is_resumable_when_a_command_arrives() {
    let (_directory, store) = open();
    let (journal, _) = start(&store, "r1");
    ask_question(&journal, &approval(call("r1", 0)));
    store
        .request_cancel(&id("r1"), &identity("bea"), at(2))
        .unwrap();
    assert!(reasons(&store, 3).is_empty(), "its owner is alive");
    suspend(journal);
    assert_eq!(reasons(&store, 3), only("r1", ResumeReason::Command));

    let journal = store.take_over(&id("r1")).unwrap();
    assert!(reasons(&store, 3).is_empty(), "it has an owner again");
    let command = journal.inbox().unwrap()[0].id;
    journal.append_taking(&event(&journal, 4), command).unwrap();
    suspend(journal);
    assert!(reasons(&store, 5).is_empty(), "there is nothing to do");
}

#[test]
fn a_run_is_resumable_when_a_hold_is_due_or_a_question_expires() {
    let (_directory, store) = open();
    let (journal, _) = start(&store, "asks");
    ask_question(&journal, &approval(call("asks", 0)));
    suspend(journal);
    let (journal, _) = start(&store, "holds");
    let held = hold("holds", 0);
    journal.append_holding(&event(&journal, 1), &held).unwrap();
    suspend(journal);
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
    // A killed process leaves an open run, and a lock file that no process holds.
    drop(journal);
    let lock = directory.path().join("locks/run-r1.lock");
    std::fs::write(&lock, "").unwrap();
    assert_eq!(reasons(&store, 1), only("r1", ResumeReason::OwnerGone));
    assert!(lock.exists(), "the query changes nothing");
    let other_store = Store::open(store.path()).unwrap();
    let journal = other_store.take_over(&id("r1")).unwrap();
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
    // A run with dots in its id but without a parent is a top-level run.
    let (other, _) = start(&store, "r1.1.7");
    ask_question(&innermost, &approval(call("r1.1.0.1.0", 0)));
    for journal in [innermost, inner, outer, other] {
        suspend(journal);
    }
    assert!(reasons(&store, 2).is_empty());
    store
        .request_cancel(&id("r1.1.0.1.0"), &identity("bea"), at(2))
        .unwrap();
    assert_eq!(reasons(&store, 3), only("r1", ResumeReason::Command));
    store
        .request_cancel(&id("r1.1.7"), &identity("bea"), at(2))
        .unwrap();
    let both = reasons(&store, 3);
    assert!(both.contains(&("r1.1.7".to_owned(), ResumeReason::Command)));
    assert_eq!(both.len(), 2);

    let owner = store.take_over(&id("r1")).unwrap();
    assert_eq!(
        reasons(&store, 3).len(),
        1,
        "the owner of the outermost run owns its sub-agents' runs"
    );
    drop(owner);
}

/// The check for an owner holds the lock for a moment. A concurrent take-over must not fail because of it.
#[test]
fn listing_resumable_runs_does_not_block_take_overs() {
    let (directory, store) = open();
    let (journal, _) = start(&store, "r1");
    drop(journal);
    let lock = directory.path().join("locks/run-r1.lock");
    let lister = Store::open(store.path()).unwrap();
    let is_done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(std::sync::atomic::Ordering::Relaxed) {
                lister.resumable(at(1)).unwrap();
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
fn a_subscriber_reads_from_its_last_position() {
    let (_directory, store) = open();
    let (journal, _) = start(&store, "r1");
    let other_store = Store::open(store.path()).unwrap();
    assert_eq!(other_store.last_position(&id("r1")).unwrap(), 1);
    for second in 1..=3 {
        journal
            .append(&time_passed(second), Durability::Synced)
            .unwrap();
    }
    assert_eq!(other_store.last_position(&id("r1")).unwrap(), 4);
    let all = other_store.events(&id("r1")).unwrap();
    assert_eq!(other_store.events_from(&id("r1"), 1).unwrap(), all);
    assert_eq!(other_store.events_from(&id("r1"), 3).unwrap(), all[2..]);
    assert!(other_store.events_from(&id("r1"), 5).unwrap().is_empty());
    let unknown: RunId = id("none");
    let unknown = other_store.events_from(&unknown, 1);
    assert!(matches!(unknown, Err(Error::NoSuchRun(_))), "{unknown:?}");
    assert_eq!(other_store.last_position(&id("none")).unwrap(), 0);
}
