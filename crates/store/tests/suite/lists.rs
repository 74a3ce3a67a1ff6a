//! Tests of lists and counts of waiting runs and pending questions.

use std::time::Duration;

use windlass_core::approval::ApprovalStatus;
use windlass_core::run::RunEnd;
use windlass_store::{ApprovalFilter, Durability, RunFilter, RunState, Store};

use super::questions::{DAY, approval, ask_question, call, identity, now, reject};
use super::support::{at, id, open, start, time_passed};

/// Three waiting runs with two questions each, of which one is decided in the first; one ended run; one
/// open run.
fn stored_runs() -> (tempfile::TempDir, Store) {
    let (directory, store) = open();
    for name in ["a", "b", "c"] {
        let (journal, _) = start(&store, name);
        ask_question(&journal, &approval(call(name, 0)));
        ask_question(&journal, &approval(call(name, 1)));
        journal.end(&RunEnd::WaitingForPerson).unwrap();
    }
    let (ended, _) = start(&store, "ended");
    ended.end(&RunEnd::Completed).unwrap();
    drop(start(&store, "open"));
    let decided = call("a", 0);
    store
        .decide(&decided, None, &identity("bea"), reject(), now())
        .unwrap();
    (directory, store)
}

#[test]
fn counts_match_lists() {
    let (_directory, store) = stored_runs();
    let states = [RunState::Open, RunState::Waiting, RunState::Ended];
    let filters = states.map(|state| RunFilter {
        state: Some(state),
        ..RunFilter::default()
    });
    let counts = filters.map(|filter| {
        let count = store.count_runs(&filter).unwrap();
        assert_eq!(count, store.runs(&filter).unwrap().len() as u64);
        count
    });
    assert_eq!(counts, [1, 3, 1]);
    let agents = RunFilter {
        agent: Some("nobody".to_owned()),
        ..RunFilter::waiting()
    };
    assert_eq!(store.count_runs(&agents).unwrap(), 0);
    let limited = RunFilter {
        limit: Some(2),
        ..RunFilter::waiting()
    };
    assert_eq!(store.runs(&limited).unwrap().len(), 2);
    assert_eq!(store.count_runs(&limited).unwrap(), 3, "without the limit");
}

#[test]
fn a_summary_matches_its_question() {
    let (_directory, store) = stored_runs();
    let of_a = ApprovalFilter {
        run: Some(id("a")),
        ..ApprovalFilter::default()
    };
    for filter in [ApprovalFilter::default(), ApprovalFilter::pending(), of_a] {
        let approvals = store.approvals(&filter, now()).unwrap();
        let summaries = store.approval_summaries(&filter, now()).unwrap();
        assert_eq!(summaries.len(), approvals.len());
        assert_eq!(
            store.count_approvals(&filter, now()).unwrap(),
            approvals.len() as u64
        );
        for (summary, approval) in summaries.iter().zip(&approvals) {
            let request = approval.request();
            assert_eq!(&summary.call, approval.call());
            assert_eq!(summary.status, approval.status());
            assert_eq!(summary.kind, approval.question().kind());
            assert_eq!(summary.tool.as_deref(), Some("pay"));
            assert_eq!(summary.tenant, request.principal.tenant.as_str());
            assert_eq!(summary.principal, request.principal.principal.as_str());
            assert_eq!(summary.asked_at, request.asked_at);
            assert_eq!(summary.expires_at, request.expires_at);
        }
    }
}

#[test]
fn overdue_questions_are_not_counted_as_pending() {
    let (_directory, store) = stored_runs();
    let pending = ApprovalFilter::pending();
    assert_eq!(store.count_approvals(&pending, now()).unwrap(), 5);
    let late = at(2 * DAY);
    assert_eq!(store.count_approvals(&pending, late).unwrap(), 0);
    let expired = ApprovalFilter {
        status: Some(ApprovalStatus::Expired),
        ..ApprovalFilter::default()
    };
    assert_eq!(store.approval_summaries(&expired, late).unwrap().len(), 5);
}

#[test]
fn a_list_has_the_event_count_of_each_run() {
    let (_directory, store) = stored_runs();
    let check = || {
        for run in store.runs(&RunFilter::default()).unwrap() {
            let events = store.events(&run.run).unwrap().len() as u64;
            assert_eq!(run.events, events, "{}: {:?}", run.run, run.state);
        }
    };
    check();
    let journal = store.take_over(&id("a")).unwrap();
    journal.append(&time_passed(1), Durability::Synced).unwrap();
    check();
    journal.end(&RunEnd::Completed).unwrap();
    check();
    let purged = store.purge(Duration::ZERO, at(100 * DAY)).unwrap();
    assert_eq!(purged.removed.len(), 2);
    check();
}
