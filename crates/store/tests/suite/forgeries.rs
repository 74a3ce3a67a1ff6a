//! Tests of decisions that must be refused. Each is tried from a second store on the same file, as another
//! process would.

use std::process::{Command, Stdio};
use std::sync::Barrier;

use rusqlite::Connection;
use windlass_core::approval::{Approval, ApprovalStatus, PersonDecision, TenantPrincipal};
use windlass_store::{ApprovalFilter, Error, RunJournal, Store};

use super::questions::{
    DAY, approval, approve, arguments, ask_question, call, digest, event, identity, now,
    other_tenant, reject, request,
};
use super::support::{at, id, open, start};

fn pending_question() -> (tempfile::TempDir, RunJournal, Store) {
    let (directory, store) = open();
    let (journal, _) = start(&store, "r1");
    ask_question(&journal, &approval(call("r1", 0)));
    let other_store = Store::open(store.path()).unwrap();
    (directory, journal, other_store)
}

fn assert_still_pending(store: &Store, journal: &RunJournal) {
    let found = store.approval(&call("r1", 0), now()).unwrap();
    assert_eq!(found.status(), ApprovalStatus::Pending);
    assert!(found.decisions().is_empty());
    assert!(journal.inbox().unwrap().is_empty());
}

#[test]
fn a_decision_for_other_arguments_is_refused() {
    let (_directory, journal, store) = pending_question();
    let error = approve(&store, Some(&digest(10_000)), now()).unwrap_err();
    assert!(matches!(error, Error::DigestDiffers { .. }), "{error}");
    assert_still_pending(&store, &journal);
}

#[test]
fn arguments_changed_in_the_database_are_detected() {
    let (_directory, journal, store) = pending_question();
    let connection = Connection::open(store.path()).unwrap();
    let changed = connection
        .execute(
            r#"UPDATE approvals SET body = replace(body, '"amount":10', '"amount":10000')"#,
            [],
        )
        .unwrap();
    assert_eq!(changed, 1);
    let error = approve(&store, None, now()).unwrap_err();
    assert!(matches!(error, Error::Unreadable { .. }), "{error}");
    assert!(journal.inbox().unwrap().is_empty());
}

#[test]
fn a_status_changed_in_the_database_is_detected() {
    let body = "replace(body, '\"status\":\"pending\"', '\"status\":\"approved\"')";
    for forged in [
        "status = 'approved', settled_at = 1".to_owned(),
        format!("body = {body}"),
        format!("status = 'approved', settled_at = 1, body = {body}"),
    ] {
        let (_directory, _journal, store) = pending_question();
        Connection::open(store.path())
            .unwrap()
            .execute(&format!("UPDATE approvals SET {forged}"), [])
            .unwrap();
        let read = store.approval(&call("r1", 0), now());
        assert!(matches!(read, Err(Error::Unreadable { .. })), "{read:?}");
    }
}

#[test]
fn a_decision_by_an_unentitled_principal_is_refused() {
    let (_directory, store) = open();
    let (journal, _) = start(&store, "r1");
    let mut only_cem = request(call("r1", 0));
    only_cem.approvers = vec![identity("cem").principal];
    ask_question(&journal, &Approval::ask(only_cem).unwrap());
    let other_store = Store::open(store.path()).unwrap();
    let decide = |by: &TenantPrincipal| {
        other_store.decide(&call("r1", 0), None, by, PersonDecision::Approve, now())
    };
    let error = decide(&identity("bea")).unwrap_err();
    assert!(matches!(error, Error::NotEntitled { .. }), "{error}");
    let error = decide(&other_tenant()).unwrap_err();
    assert!(
        matches!(error, Error::NoSuchApproval(_)),
        "questions of another tenant are not visible: {error}"
    );
    assert_still_pending(&other_store, &journal);
    decide(&identity("cem")).unwrap();
}

#[test]
fn a_decision_after_the_deadline_is_refused() {
    let (_directory, journal, store) = pending_question();
    let error = approve(&store, None, at(DAY)).unwrap_err();
    assert!(matches!(error, Error::Expired { .. }), "{error}");
    let found = store.approval(&call("r1", 0), now()).unwrap();
    assert_eq!(found.status(), ApprovalStatus::Expired);
    assert_eq!(journal.inbox().unwrap().len(), 1, "only the expiry");
}

#[test]
fn a_decision_cannot_be_replayed() {
    let (_directory, journal, store) = pending_question();
    let approve = || {
        let digest = digest(10);
        let decision = PersonDecision::Approve;
        store.decide(
            &call("r1", 0),
            Some(&digest),
            &identity("bea"),
            decision,
            now(),
        )
    };
    let first = approve().unwrap();
    let command = journal.inbox().unwrap()[0].id;
    journal.append_taking(&event(&journal, 2), command).unwrap();
    for _ in 0..2 {
        let error = approve().unwrap_err();
        let Error::AlreadyDecided { status, .. } = error else {
            panic!("{error}")
        };
        assert_eq!(status, ApprovalStatus::Approved);
    }
    assert_eq!(store.approval(&call("r1", 0), now()).unwrap(), first);
    assert!(journal.inbox().unwrap().is_empty(), "nothing new to act on");
    let again = journal.append_taking(&event(&journal, 3), command);
    assert!(matches!(again, Err(Error::NoSuchCommand(_))), "{again:?}");
}

#[test]
fn of_concurrent_decisions_only_one_is_accepted() {
    const PEOPLE: usize = 4;
    let (_directory, store) = open();
    let (journal, _) = start(&store, "r1");
    for index in 0..20 {
        ask_question(&journal, &approval(call("r1", index)));
        let barrier = Barrier::new(PEOPLE);
        let results: Vec<Result<Approval, Error>> = std::thread::scope(|scope| {
            let decide = |person: usize| {
                let other_store = Store::open(store.path()).unwrap();
                let decision = if person.is_multiple_of(2) {
                    PersonDecision::Approve
                } else {
                    reject()
                };
                let by = identity(&format!("p{person}"));
                barrier.wait();
                other_store.decide(&call("r1", index), Some(&digest(10)), &by, decision, now())
            };
            let threads: Vec<_> = (0..PEOPLE)
                .map(|person| scope.spawn(move || decide(person)))
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        let (won, lost): (Vec<_>, Vec<_>) = results.into_iter().partition(Result::is_ok);
        assert_eq!(won.len(), 1);
        for error in lost {
            let error = error.unwrap_err();
            assert!(matches!(error, Error::AlreadyDecided { .. }), "{error}");
        }
        let stored = store.approval(&call("r1", index), now()).unwrap();
        assert_eq!(Some(stored), won.into_iter().next().and_then(Result::ok));
        assert_eq!(journal.inbox().unwrap().len(), index as usize + 1);
    }
}

const DECIDER: &str = "WINDLASS_STORE_TEST_DECIDER";
const CALLS: u32 = 40;

/// Not a test by itself: decides about every call when started by the test below.
#[test]
fn decider() {
    let Some(path) = std::env::var_os(DECIDER) else {
        return;
    };
    let store = Store::open(path).unwrap();
    let by = identity(&format!("p{}", std::process::id()));
    let mut won = 0;
    for index in 0..CALLS {
        let decision = PersonDecision::Approve;
        match store.decide(&call("r1", index), None, &by, decision, now()) {
            Ok(_) => won += 1,
            Err(Error::AlreadyDecided { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    println!("won {won}");
}

#[test]
fn of_decisions_by_several_processes_only_one_is_accepted() {
    let (_directory, store) = open();
    let (journal, _) = start(&store, "r1");
    for index in 0..CALLS {
        ask_question(&journal, &approval(call("r1", index)));
    }
    let processes: Vec<_> = (0..3)
        .map(|_| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "suite::forgeries::decider", "--nocapture"])
                .env(DECIDER, store.path())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    let mut won = 0;
    for process in processes {
        let output = process.wait_with_output().unwrap();
        assert!(output.status.success());
        let output = String::from_utf8(output.stdout).unwrap();
        let (_, count) = output.split_once("won ").unwrap();
        won += count.lines().next().unwrap().parse::<u32>().unwrap();
    }
    assert_eq!(won, CALLS);
    let decided = store.approvals(&ApprovalFilter::default(), now()).unwrap();
    assert!(decided.iter().all(|decided| decided.decisions().len() == 1));
    assert_eq!(journal.inbox().unwrap().len(), CALLS as usize);
}

#[test]
fn a_decision_after_a_cancel_request_is_refused() {
    let (_directory, journal, store) = pending_question();
    store
        .request_cancel(&id("r1"), &identity("bea"), now())
        .unwrap();
    let error = store
        .decide(
            &call("r1", 0),
            Some(&digest(10)),
            &identity("cem"),
            PersonDecision::ApproveEdited {
                arguments: arguments(1),
            },
            now(),
        )
        .unwrap_err();
    let Error::AlreadyDecided { status, .. } = error else {
        panic!("{error}")
    };
    assert_eq!(status, ApprovalStatus::Cancelled);
    assert_eq!(journal.inbox().unwrap().len(), 1, "only the cancel command");
}

#[test]
fn a_decision_about_an_unknown_call_is_refused() {
    let (_directory, _journal, store) = pending_question();
    for unknown in [call("r1", 1), call("r2", 0)] {
        let decision = PersonDecision::Approve;
        let error = store.decide(&unknown, None, &identity("bea"), decision, now());
        assert!(matches!(error, Err(Error::NoSuchApproval(_))), "{error:?}");
    }
}
