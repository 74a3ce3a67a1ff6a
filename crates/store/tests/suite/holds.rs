//! Tests of held calls, which can be undone.

use std::sync::Barrier;

use windlass_core::approval::{DEFAULT_UNDO_WINDOW, Hold, HoldStatus};
use windlass_core::run::RunEnd;
use windlass_store::{
    AtomicWrite, Durability, Error, HoldFilter, InboxAction, Options, Redactor, RunJournal, Store,
};

use super::questions::{arguments, call, event, identity, other_tenant, tool};
use super::support::{at, id, open, start, time_passed};

pub(crate) fn hold(run: &str, index: u32) -> Hold {
    Hold::new(
        call(run, index),
        identity("ada"),
        tool(),
        arguments(10),
        at(0),
        DEFAULT_UNDO_WINDOW,
    )
}

fn held() -> (tempfile::TempDir, RunJournal, Store) {
    let (directory, store) = open();
    let (journal, _) = start(&store, "r1");
    let seq = journal
        .append_holding(&event(&journal, 0), &hold("r1", 0))
        .unwrap();
    assert_eq!(seq, 2);
    let other_store = Store::open(store.path()).unwrap();
    (directory, journal, other_store)
}

#[test]
fn a_held_call_is_seen_by_every_process() {
    let (_directory, _journal, store) = held();
    assert_eq!(store.hold(&call("r1", 0)).unwrap(), hold("r1", 0));
    let list = |status, tenant: &str| {
        let filter = HoldFilter {
            status: Some(status),
            tenant: Some(tenant.to_owned()),
            run: Some(id("r1")),
            limit: Some(5),
        };
        store.holds(&filter).unwrap().len()
    };
    assert_eq!(list(HoldStatus::Held, "acme"), 1);
    assert_eq!(list(HoldStatus::Held, "other"), 0);
    assert_eq!(list(HoldStatus::Undone, "acme"), 0);
}

#[test]
fn an_undone_call_never_starts_and_the_owner_is_notified() {
    let (_directory, journal, store) = held();
    let undone = store.undo(&call("r1", 0), &identity("bea"), at(5)).unwrap();
    assert_eq!(undone.status(), HoldStatus::Undone);
    let error = journal
        .append_starting(&event(&journal, 11), &call("r1", 0))
        .unwrap_err();
    assert!(
        matches!(
            error,
            Error::TooLate {
                status: HoldStatus::Undone,
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(store.events(&id("r1")).unwrap().len(), 2, "no start either");
    let commands = journal.inbox().unwrap();
    assert_eq!(commands[0].action, InboxAction::Undo(call("r1", 0)));
    assert_eq!(commands[0].by, Some(identity("bea").principal));
    let seq = journal
        .append_taking(&event(&journal, 11), commands[0].id)
        .unwrap();
    assert_eq!(seq, 3, "the refusal left no gap");
}

#[test]
fn a_held_call_starts_only_when_it_is_due() {
    let (_directory, journal, store) = held();
    let early = journal.append_starting(&event(&journal, 9), &call("r1", 0));
    assert!(matches!(early, Err(Error::NotDue { .. })), "{early:?}");
    journal
        .append_starting(&event(&journal, 10), &call("r1", 0))
        .unwrap();
    let again = journal.append_starting(&event(&journal, 11), &call("r1", 0));
    assert!(matches!(again, Err(Error::TooLate { .. })), "{again:?}");
    for late in [
        store.undo(&call("r1", 0), &identity("bea"), at(11)),
        store.release(&call("r1", 0), &identity("bea"), at(11)),
    ] {
        let error = late.unwrap_err();
        assert_eq!(
            error.to_string(),
            "it is too late: the call `r1:1:0` is already started"
        );
    }
    assert!(journal.inbox().unwrap().is_empty());
}

#[test]
fn a_released_call_starts_at_once_with_its_command() {
    let (_directory, journal, store) = held();
    store
        .release(&call("r1", 0), &identity("bea"), at(2))
        .unwrap();
    let late = store.undo(&call("r1", 0), &identity("bea"), at(2));
    assert!(matches!(late, Err(Error::TooLate { .. })), "{late:?}");
    let commands = journal.inbox().unwrap();
    assert_eq!(commands[0].action, InboxAction::Release(call("r1", 0)));
    let started = call("r1", 0);
    let start = AtomicWrite::Start(started.clone());
    let both = vec![AtomicWrite::Take(commands[0].id), start];
    journal.append_with(&event(&journal, 2), both).unwrap();
    assert_eq!(store.hold(&started).unwrap().status(), HoldStatus::Started);
    assert!(journal.inbox().unwrap().is_empty());
}

#[test]
fn a_call_is_never_both_undone_and_started() {
    let (_directory, store) = open();
    let (journal, _) = start(&store, "r1");
    let (mut undone, mut started) = (0, 0);
    for index in 0..30 {
        journal
            .append_holding(&event(&journal, 0), &hold("r1", index))
            .unwrap();
        let other_store = Store::open(store.path()).unwrap();
        let barrier = Barrier::new(2);
        let (undo, start) = std::thread::scope(|scope| {
            let undo = scope.spawn(|| {
                barrier.wait();
                other_store.undo(&call("r1", index), &identity("bea"), at(10))
            });
            barrier.wait();
            let start = journal.append_starting(&event(&journal, 10), &call("r1", index));
            (undo.join().unwrap(), start)
        });
        let status = store.hold(&call("r1", index)).unwrap().status();
        match (undo, start) {
            (Ok(_), Err(Error::TooLate { .. })) => {
                undone += 1;
                assert_eq!(status, HoldStatus::Undone);
            }
            (Err(Error::TooLate { .. }), Ok(_)) => {
                started += 1;
                assert_eq!(status, HoldStatus::Started);
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(undone + started, 30);
    assert_eq!(journal.inbox().unwrap().len(), undone);
    let events = store.events(&id("r1")).unwrap().len();
    assert_eq!(events, 1 + 30 + started, "an event for each start");
}

#[test]
fn a_call_that_is_not_held_cannot_be_undone_released_or_started() {
    let (_directory, journal, store) = held();
    for (unknown, by) in [
        (call("r1", 1), identity("bea")),
        (call("r1", 0), other_tenant()),
    ] {
        let undo = store.undo(&unknown, &by, at(1));
        assert!(matches!(undo, Err(Error::NoSuchHold(_))), "{undo:?}");
        let release = store.release(&unknown, &by, at(1));
        assert!(matches!(release, Err(Error::NoSuchHold(_))), "{release:?}");
    }
    let start = journal.append_starting(&event(&journal, 10), &call("r1", 1));
    assert!(matches!(start, Err(Error::NoSuchHold(_))), "{start:?}");
    let theirs = journal.append_starting(&event(&journal, 10), &call("r2", 0));
    assert!(matches!(theirs, Err(Error::NotOfThisRun { .. })));
    assert_eq!(
        store.hold(&call("r1", 0)).unwrap().status(),
        HoldStatus::Held
    );
}

#[test]
fn a_call_is_held_once() {
    let (_directory, journal, store) = held();
    store.undo(&call("r1", 0), &identity("bea"), at(1)).unwrap();
    let again = journal.append_holding(&event(&journal, 2), &hold("r1", 0));
    assert!(matches!(again, Err(Error::AlreadyHeld(_))), "{again:?}");
    let theirs = journal.append_holding(&event(&journal, 2), &hold("r2", 0));
    assert!(matches!(theirs, Err(Error::NotOfThisRun { .. })));
    assert_eq!(
        journal.append(&time_passed(3), Durability::Synced).unwrap(),
        3
    );
}

#[test]
fn a_cancelled_or_ended_run_cancels_its_held_calls() {
    let (_directory, journal, store) = held();
    store
        .request_cancel(&id("r1"), &identity("bea"), at(1))
        .unwrap();
    let status = store.hold(&call("r1", 0)).unwrap().status();
    assert_eq!(status, HoldStatus::Cancelled);
    let start = journal.append_starting(&event(&journal, 10), &call("r1", 0));
    assert!(matches!(start, Err(Error::TooLate { .. })), "{start:?}");

    let (journal, _) = super::support::start(&store, "r2");
    journal
        .append_holding(&event(&journal, 0), &hold("r2", 0))
        .unwrap();
    journal.end(&RunEnd::Cancelled).unwrap();
    let status = store.hold(&call("r2", 0)).unwrap().status();
    assert_eq!(status, HoldStatus::Cancelled);
}

#[test]
fn a_held_call_with_a_secret_in_its_arguments_is_not_stored() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options {
        redactor: Redactor::new(["bob-the-builder"]),
        ..Options::default()
    };
    let store = Store::open_with(directory.path().join("windlass.db"), options).unwrap();
    let (journal, _) = start(&store, "r1");
    let mut with_secret = arguments(1);
    with_secret.insert("to".to_owned(), "bob-the-builder".into());
    let hold = Hold::new(
        call("r1", 0),
        identity("ada"),
        tool(),
        with_secret,
        at(0),
        DEFAULT_UNDO_WINDOW,
    );
    let refused = journal.append_holding(&event(&journal, 0), &hold);
    assert!(
        matches!(refused, Err(Error::SecretInStructure)),
        "{refused:?}"
    );
}
