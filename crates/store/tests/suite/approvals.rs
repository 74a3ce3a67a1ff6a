//! Tests of questions to people, from asking to settling.

use rusqlite::Connection;
use windlass_core::approval::{
    Approval, ApprovalOutcome, ApprovalStatus, Ask, PersonDecision, Question,
};
use windlass_core::run::{Event, RunEnd};
use windlass_spec::SecurityLevel;
use windlass_store::{
    ApprovalFilter, AtomicWrite, Durability, Error, InboxAction, Options, Redactor, Store,
};

use super::holds::hold;
use super::questions::{
    DAY, approval, approve, arguments, ask_question, authorize, call, digest, edited, event,
    identity, now, reject, request, text,
};
use super::support::{at, contains, file_bytes, id, open, start, time_passed};

#[test]
fn a_question_is_stored_with_its_event_and_seen_by_every_process() {
    let (_directory, store) = open();
    let (journal, _) = start(&store, "r1");
    let asked = approval(call("r1", 0));
    let seq = journal.append_asking(&event(&journal, 1), &asked).unwrap();
    assert_eq!(seq, 2);
    let other_store = Store::open(store.path()).unwrap();
    assert_eq!(other_store.events(&id("r1")).unwrap().len(), 2);
    let listed = other_store
        .approvals(&ApprovalFilter::pending(), now())
        .unwrap();
    assert_eq!(listed, std::slice::from_ref(&asked));
    assert_eq!(other_store.approval(&call("r1", 0), now()).unwrap(), asked);
}

#[test]
fn a_refused_question_does_not_store_its_event() {
    let (_directory, store) = open();
    let (journal, _) = start(&store, "r1");
    ask_question(&journal, &approval(call("r1", 0)));
    let again = journal.append_asking(&event(&journal, 2), &approval(call("r1", 0)));
    assert!(matches!(again, Err(Error::AlreadyAsked(_))), "{again:?}");
    let theirs = journal.append_asking(&event(&journal, 2), &approval(call("r2", 0)));
    assert!(
        matches!(theirs, Err(Error::NotOfThisRun { .. })),
        "{theirs:?}"
    );
    let mut other = request(call("r1", 1));
    other.principal = identity("eve");
    let other = Approval::ask(other).unwrap();
    let others = journal.append_asking(&event(&journal, 2), &other);
    assert!(
        matches!(others, Err(Error::NotOfThisRun { .. })),
        "{others:?}"
    );

    let both = vec![
        AtomicWrite::Hold(Box::new(hold("r1", 1))),
        AtomicWrite::Question(Box::new(approval(call("r1", 0)))),
    ];
    let neither = journal.append_with(&event(&journal, 2), both);
    assert!(
        matches!(neither, Err(Error::AlreadyAsked(_))),
        "{neither:?}"
    );
    assert_eq!(store.events(&id("r1")).unwrap().len(), 2);
    let all = store.approvals(&ApprovalFilter::default(), now()).unwrap();
    assert_eq!(all.len(), 1, "all or nothing is stored");
    let held = store.hold(&call("r1", 1));
    assert!(matches!(held, Err(Error::NoSuchHold(_))), "{held:?}");

    let seq = journal.append(&time_passed(3), Durability::Synced).unwrap();
    assert_eq!(seq, 3, "no gap");
    store.fold(&id("r1")).unwrap();
}

#[test]
fn a_decision_changes_the_question_and_notifies_the_owner() {
    let (_directory, store) = open();
    let (journal, _) = start(&store, "r1");
    ask_question(&journal, &approval(call("r1", 0)));
    let other_store = Store::open(store.path()).unwrap();
    let decided = other_store
        .decide(
            &call("r1", 0),
            Some(&digest(10)),
            &identity("bea"),
            edited(7),
            now(),
        )
        .unwrap();
    assert_eq!(decided.status(), ApprovalStatus::Approved);
    let Some(ApprovalOutcome::Run {
        arguments: approved,
        is_edited,
        ..
    }) = decided.outcome()
    else {
        panic!("{decided:?}")
    };
    assert_eq!((approved, is_edited), (arguments(7), true));
    assert_eq!(store.approval(&call("r1", 0), now()).unwrap(), decided);
    let commands = journal.inbox().unwrap();
    assert_eq!(commands.len(), 1);
    assert_eq!(commands[0].by, Some(identity("bea").principal));
    assert_eq!(commands[0].at, now());
    assert_eq!(commands[0].action, InboxAction::Settled(Box::new(decided)));
}

#[test]
fn a_critical_call_is_settled_by_the_second_person() {
    let (_directory, store) = open();
    let (journal, _) = start(&store, "r1");
    let mut critical = request(call("r1", 0));
    critical.question = authorize(SecurityLevel::Critical);
    ask_question(&journal, &Approval::ask(critical).unwrap());
    let decide = |by: &str| {
        let other_store = Store::open(store.path()).unwrap();
        other_store.decide(
            &call("r1", 0),
            None,
            &identity(by),
            PersonDecision::Approve,
            now(),
        )
    };
    let first = decide("bea").unwrap();
    assert_eq!(
        (first.status(), first.still_needed()),
        (ApprovalStatus::Pending, 1)
    );
    assert!(journal.inbox().unwrap().is_empty());
    let same = decide("bea").unwrap_err();
    assert!(matches!(same, Error::Undecided { .. }), "{same}");
    assert!(
        same.to_string().contains("another approver is required"),
        "{same}"
    );
    assert_eq!(decide("cem").unwrap().status(), ApprovalStatus::Approved);
    assert_eq!(journal.inbox().unwrap().len(), 1);
}

#[test]
fn an_overdue_question_expires_on_any_access() {
    let expiring = || {
        let (directory, store) = open();
        let (journal, _) = start(&store, "r1");
        ask_question(&journal, &approval(call("r1", 0)));
        (directory, store, journal)
    };
    let late = at(DAY);
    let accesses: [fn(&Store); 4] = [
        |store| assert_eq!(store.sweep(at(DAY)).unwrap(), [call("r1", 0)]),
        |store| {
            let filter = ApprovalFilter::pending();
            assert!(store.approvals(&filter, at(DAY)).unwrap().is_empty());
        },
        |store| {
            let found = store.approval(&call("r1", 0), at(DAY)).unwrap();
            assert_eq!(found.status(), ApprovalStatus::Expired);
        },
        |store| {
            let options = Options {
                now: Some(at(DAY)),
                ..Options::default()
            };
            drop(Store::open_with(store.path(), options).unwrap());
        },
    ];
    for access in accesses {
        let (_directory, store, journal) = expiring();
        assert!(store.sweep(at(DAY - 1)).unwrap().is_empty());
        access(&store);
        let commands = journal.inbox().unwrap();
        assert_eq!(commands.len(), 1, "its owner is notified once");
        assert_eq!((commands[0].by.clone(), commands[0].at), (None, late));
        let InboxAction::Settled(expired) = &commands[0].action else {
            panic!("{commands:?}")
        };
        assert_eq!(expired.outcome(), Some(ApprovalOutcome::Expired));
        assert!(store.sweep(at(2 * DAY)).unwrap().is_empty());
    }
}

#[test]
fn a_call_can_have_a_second_question_after_the_first_is_settled() {
    let (_directory, store) = open();
    let (journal, _) = start(&store, "r1");
    ask_question(&journal, &approval(call("r1", 0)));
    approve(&store, None, now()).unwrap();
    let mut second = request(call("r1", 0));
    second.question = Question::Ask(Ask {
        question: text("Which account?"),
        context: None,
        options: Vec::new(),
        free_text: true,
        form: None,
    });
    ask_question(&journal, &Approval::ask(second).unwrap());
    let answer = PersonDecision::Answer {
        text: text("Savings."),
    };
    let stale = store.decide(
        &call("r1", 0),
        Some(&digest(10)),
        &identity("bea"),
        answer.clone(),
        now(),
    );
    assert!(
        matches!(stale, Err(Error::DigestDiffers { .. })),
        "{stale:?}"
    );
    let answered = store
        .decide(&call("r1", 0), None, &identity("bea"), answer, now())
        .unwrap();
    assert_eq!(
        answered.outcome(),
        Some(ApprovalOutcome::Answered(text("Savings.")))
    );
    let commands = journal.inbox().unwrap();
    let settled: Vec<_> = commands
        .iter()
        .map(|command| match &command.action {
            InboxAction::Settled(settled) => settled.question().kind(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        settled,
        ["authorize", "ask"],
        "each command has its question"
    );
}

#[test]
fn ending_a_run_withdraws_its_questions_and_waiting_does_not() {
    let (_directory, store) = open();
    for (run, end, status) in [
        ("over", RunEnd::Completed, ApprovalStatus::Cancelled),
        ("waits", RunEnd::WaitingForPerson, ApprovalStatus::Pending),
    ] {
        let (journal, _) = start(&store, run);
        ask_question(&journal, &approval(call(run, 0)));
        journal.end(&end).unwrap();
        let found = store.approval(&call(run, 0), now()).unwrap();
        assert_eq!(found.status(), status, "{run}");
    }
}

#[test]
fn the_owner_withdraws_a_question_with_an_event() {
    let (_directory, store) = open();
    let (journal, _) = start(&store, "r1");
    ask_question(&journal, &approval(call("r1", 0)));
    ask_question(&journal, &approval(call("r1", 1)));
    let withdraw = vec![AtomicWrite::Withdraw(call("r1", 0))];
    journal.append_with(&event(&journal, 5), withdraw).unwrap();
    let withdrawn = store.approval(&call("r1", 0), now()).unwrap();
    assert_eq!(withdrawn.outcome(), Some(ApprovalOutcome::Cancelled));
    assert_eq!(withdrawn.settled_at(), Some(at(5)));
    let other = store.approval(&call("r1", 1), now()).unwrap();
    assert_eq!(other.status(), ApprovalStatus::Pending);
}

#[test]
fn questions_are_listed_by_run_tenant_status_and_kind() {
    let (_directory, store) = open();
    for run in ["r1", "r2"] {
        let (journal, _) = start(&store, run);
        ask_question(&journal, &approval(call(run, 0)));
        ask_question(&journal, &approval(call(run, 1)));
    }
    store
        .decide(&call("r2", 1), None, &identity("bea"), reject(), now())
        .unwrap();
    let calls = |filter: ApprovalFilter| -> Vec<String> {
        let found = store.approvals(&filter, now()).unwrap();
        found.iter().map(|found| found.call().to_string()).collect()
    };
    let all = ApprovalFilter::default;
    assert_eq!(calls(all()), ["r1:1:0", "r1:1:1", "r2:1:0", "r2:1:1"]);
    assert_eq!(
        calls(ApprovalFilter {
            run: Some(id("r2")),
            ..ApprovalFilter::pending()
        }),
        ["r2:1:0"]
    );
    assert_eq!(
        calls(ApprovalFilter {
            status: Some(ApprovalStatus::Rejected),
            ..all()
        }),
        ["r2:1:1"]
    );
    let none = ApprovalFilter {
        tenant: Some("other".to_owned()),
        ..all()
    };
    assert!(calls(none).is_empty());
    let none = ApprovalFilter {
        kind: Some("ask".to_owned()),
        ..all()
    };
    assert!(calls(none).is_empty());
    assert_eq!(
        calls(ApprovalFilter {
            limit: Some(1),
            ..all()
        }),
        ["r1:1:0"]
    );
}

#[test]
fn a_purge_keeps_questions_and_decisions() {
    let (_directory, store) = open();
    let (journal, _) = start(&store, "over");
    ask_question(&journal, &approval(call("over", 0)));
    store
        .decide(&call("over", 0), None, &identity("bea"), reject(), now())
        .unwrap();
    journal.end(&RunEnd::Completed).unwrap();
    let (journal, _) = start(&store, "waits");
    ask_question(&journal, &approval(call("waits", 0)));
    journal.end(&RunEnd::WaitingForPerson).unwrap();

    let purged = store.purge(std::time::Duration::ZERO, at(60)).unwrap();
    let removed: Vec<_> = purged.removed.iter().map(|run| run.run.as_str()).collect();
    assert_eq!(removed, ["over"]);
    let kept = store.approval(&call("over", 0), now()).unwrap();
    assert_eq!(kept.status(), ApprovalStatus::Rejected);
    assert_eq!(kept.decisions()[0].by, identity("bea").principal);
    assert!(store.fold(&id("waits")).is_ok());
    assert_eq!(
        store
            .approvals(&ApprovalFilter::default(), now())
            .unwrap()
            .len(),
        2
    );

    let connection = Connection::open(store.path()).unwrap();
    for forbidden in [
        "DELETE FROM approvals",
        "UPDATE approvals SET status = 'approved' WHERE run = 'over'",
    ] {
        assert!(connection.execute(forbidden, []).is_err(), "{forbidden}");
    }
}

#[test]
fn migrating_the_first_version_keeps_its_runs() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("windlass.db");
    let old = Connection::open(&path).unwrap();
    old.execute_batch(include_str!("../../src/migrations/0001_journal.sql"))
        .unwrap();
    old.pragma_update(None, "application_id", 0x576e_646c)
        .unwrap();
    old.pragma_update(None, "user_version", 1).unwrap();
    let started = serde_json::to_string(&super::support::started("old", "Find it.")).unwrap();
    old.execute_batch(
        "INSERT INTO runs (run, tenant, principal, agent, started_at)
         VALUES ('old', 'acme', 'ada', 'helper', 1)",
    )
    .unwrap();
    old.execute(
        "INSERT INTO events (run, seq, kind, at, payload, tenant, principal)
         VALUES ('old', 1, 'started', 1, ?1, 'acme', 'ada')",
        [started],
    )
    .unwrap();
    drop(old);

    let store = Store::open(&path).unwrap();
    let connection = Connection::open(&path).unwrap();
    let version: i64 = connection
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .unwrap();
    assert_eq!(version, 26);
    let task: String = connection
        .query_row("SELECT task FROM agent_executions", [], |row| row.get(0))
        .unwrap();
    assert_eq!(task, "Find it.");
    store.fold(&id("old")).unwrap();
    let journal = store.take_over(&id("old")).unwrap();
    ask_question(&journal, &approval(call("old", 0)));
    store
        .decide(&call("old", 0), None, &identity("bea"), reject(), now())
        .unwrap();
    assert_eq!(journal.inbox().unwrap().len(), 1);
}

#[test]
fn no_secret_is_stored_with_a_question_or_a_decision() {
    const SECRET: &str = "hunter2-hunter2";
    let directory = tempfile::tempdir().unwrap();
    let options = Options {
        redactor: Redactor::new([SECRET]),
        ..Options::default()
    };
    let store = Store::open_with(directory.path().join("windlass.db"), options).unwrap();
    let (journal, _) = start(&store, "r1");
    let mut asked = request(call("r1", 0));
    asked.instruction = Some(format!("Log in with {SECRET}."));
    let asked = Approval::ask(asked).unwrap();
    let refused = journal.append_asking(&event(&journal, 1), &asked);
    assert!(
        matches!(refused, Err(Error::SecretInStructure)),
        "{refused:?}"
    );
    ask_question(&journal, &asked);
    let stored = store.approval(&call("r1", 0), now()).unwrap();
    assert_eq!(
        stored.request().instruction.as_deref(),
        Some("Log in with [redacted].")
    );

    let mut with_secret = arguments(7);
    with_secret.insert("to".to_owned(), SECRET.into());
    let decision = PersonDecision::ApproveEdited {
        arguments: with_secret.clone(),
    };
    let refused = store.decide(&call("r1", 0), None, &identity("bea"), decision, now());
    assert!(
        matches!(refused, Err(Error::SecretInStructure)),
        "the approved arguments would not be the ones that run: {refused:?}"
    );
    let message = Some(text(&format!("Not with {SECRET}!")));
    let decided = store
        .decide(
            &call("r1", 0),
            None,
            &identity("bea"),
            PersonDecision::Reject { message },
            now(),
        )
        .unwrap();
    let outcome = ApprovalOutcome::Rejected {
        by: identity("bea").principal,
        message: Some(text("Not with [redacted]!")),
    };
    assert_eq!(decided.outcome(), Some(outcome));

    let mut asked = request(call("r1", 1));
    if let Question::Authorize(call) = &mut asked.question {
        call.tool_args = with_secret;
    }
    let approval = Box::new(Approval::ask(asked).unwrap());
    let refused = journal.redacted(Event::Asked {
        approval,
        at: at(2),
    });
    assert!(
        matches!(refused, Err(Error::SecretInStructure)),
        "the approved arguments would not be the ones that run: {refused:?}"
    );
    assert!(!contains(&file_bytes(&store), SECRET));
}
