//! Tests of inbox commands: the owner of a run takes each command once.

use windlass_core::approval::PersonDecision;
use windlass_core::run::RunEnd;
use windlass_store::{Durability, Error, InboxAction, Store};

use super::questions::{approval, ask_question, call, event, identity, now, other_tenant, reject};
use super::support::{at, id, open, start, time_passed};

#[test]
fn a_command_is_taken_once_with_the_event_it_leads_to() {
    let (_directory, store) = open();
    let (journal, _) = start(&store, "r1");
    ask_question(&journal, &approval(call("r1", 0)));
    let other_store = Store::open(store.path()).unwrap();
    other_store
        .decide(&call("r1", 0), None, &identity("bea"), reject(), now())
        .unwrap();
    let command = journal.inbox().unwrap();
    assert_eq!(store.inbox(&id("r1")).unwrap(), command);
    let seq = journal
        .append_taking(&event(&journal, 2), command[0].id)
        .unwrap();
    assert_eq!(seq, 3);
    assert!(journal.inbox().unwrap().is_empty());
    for _ in 0..2 {
        let again = journal.append_taking(&event(&journal, 3), command[0].id);
        assert!(matches!(again, Err(Error::NoSuchCommand(_))), "{again:?}");
    }
    assert_eq!(store.events(&id("r1")).unwrap().len(), 3);
    assert_eq!(
        journal.append(&time_passed(4), Durability::Synced).unwrap(),
        4
    );
}

#[test]
fn commands_are_listed_in_the_order_they_were_sent() {
    let (_directory, store) = open();
    let (journal, _) = start(&store, "r1");
    for index in 0..3 {
        ask_question(&journal, &approval(call("r1", index)));
    }
    for index in [2, 0] {
        let decision = PersonDecision::Approve;
        store
            .decide(&call("r1", index), None, &identity("bea"), decision, now())
            .unwrap();
    }
    store
        .request_cancel(&id("r1"), &identity("cem"), now())
        .unwrap();
    let messages: Vec<String> = journal
        .inbox()
        .unwrap()
        .into_iter()
        .map(|command| match command.action {
            InboxAction::Settled(settled) => settled.call().to_string(),
            other => format!("{other:?}"),
        })
        .collect();
    assert_eq!(messages, ["r1:1:2", "r1:1:0", "Cancel"]);
}

#[test]
fn a_command_for_another_run_is_not_taken() {
    let (_directory, store) = open();
    let (ours, _) = start(&store, "r1");
    let (theirs, _) = start(&store, "r2");
    store
        .request_cancel(&id("r2"), &identity("bea"), now())
        .unwrap();
    let command = theirs.inbox().unwrap()[0].id;
    assert!(ours.inbox().unwrap().is_empty());
    let taken = ours.append_taking(&event(&ours, 1), command);
    assert!(matches!(taken, Err(Error::NoSuchCommand(_))), "{taken:?}");
    theirs.append_taking(&event(&theirs, 1), command).unwrap();
}

#[test]
fn an_owner_that_lost_its_run_takes_no_command() {
    let (_directory, store) = open();
    let (journal, _) = start(&store, "r1");
    store
        .request_cancel(&id("r1"), &identity("bea"), now())
        .unwrap();
    let command = journal.inbox().unwrap()[0].id;
    rusqlite::Connection::open(store.path())
        .unwrap()
        .execute("UPDATE runs SET epoch = epoch + 1", [])
        .unwrap();
    let error = journal
        .append_taking(&event(&journal, 1), command)
        .unwrap_err();
    assert!(matches!(error, Error::TakenOver(_)), "{error}");
    assert_eq!(
        store.inbox(&id("r1")).unwrap().len(),
        1,
        "it waits for the new owner"
    );
}

#[test]
fn a_decision_without_an_owner_waits_for_the_next_owner() {
    let (_directory, store) = open();
    let (journal, _) = start(&store, "r1");
    ask_question(&journal, &approval(call("r1", 0)));
    journal.end(&RunEnd::WaitingForPerson).unwrap();
    drop(journal);
    assert!(store.inbox(&id("r1")).unwrap().is_empty());
    let other_store = Store::open(store.path()).unwrap();
    let decision = PersonDecision::Approve;
    other_store
        .decide(&call("r1", 0), None, &identity("bea"), decision, now())
        .unwrap();
    assert_eq!(store.inbox(&id("r1")).unwrap().len(), 1);
    let journal = store.take_over(&id("r1")).unwrap();
    let command = journal.inbox().unwrap();
    assert_eq!(command.len(), 1);
    journal
        .append_taking(&event(&journal, 2), command[0].id)
        .unwrap();
    assert!(store.inbox(&id("r1")).unwrap().is_empty());
}

#[test]
fn repeated_cancel_requests_send_one_command() {
    let (_directory, store) = open();
    let (journal, _) = start(&store, "r1");
    for by in ["bea", "cem"] {
        store
            .request_cancel(&id("r1"), &identity(by), now())
            .unwrap();
    }
    let command = journal.inbox().unwrap();
    assert_eq!(command.len(), 1);
    assert_eq!(command[0].action, InboxAction::Cancel);
    assert_eq!(command[0].by, Some(identity("bea").principal));
}

#[test]
fn only_an_existing_open_run_can_be_cancelled() {
    let (_directory, store) = open();
    let (journal, _) = start(&store, "r1");
    for (run, by) in [("r2", identity("bea")), ("r1", other_tenant())] {
        let error = store.request_cancel(&id(run), &by, now());
        assert!(matches!(error, Err(Error::NoSuchRun(_))), "{error:?}");
    }
    store
        .request_cancel(&id("r1"), &identity("bea"), now())
        .unwrap();
    journal.end(&RunEnd::Cancelled).unwrap();
    let error = store.request_cancel(&id("r1"), &identity("bea"), at(61));
    assert!(matches!(error, Err(Error::Ended(_))), "{error:?}");
}
