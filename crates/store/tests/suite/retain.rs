//! Tests of the retention: rounds of a bounded size, kills in between, records that are removed, and legal holds.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rusqlite::Connection;
use windlass_core::run::RunEnd;
use windlass_store::{
    Durability, Error, KeepReason, LegalHoldDecision, Retained, RetentionPlace, RetentionRound,
    Store,
};

use super::evidence::signed;
use super::support::{at, drive, id, start, success, time_passed, unknown};

const VICTIM: &str = "WINDLASS_STORE_TEST_RETAIN_VICTIM";

/// Far later than the end of every run.
const LATER: i64 = 1_000_000;

/// More events than one transaction removes.
const MANY: usize = 450;

fn ended(store: &Store, run: &str, more: usize) {
    let (journal, mut state) = start(store, run);
    drive(&journal, &mut state, 8, &success());
    for _ in 0..more {
        journal
            .append(&time_passed(9), Durability::Relaxed)
            .unwrap();
    }
    journal.end(&RunEnd::Completed).unwrap();
}

fn round(place: RetentionPlace, max_runs: u32) -> RetentionRound {
    RetentionRound {
        tenant: None,
        payloads_before: Some(at(LATER - 10)),
        records_before: None,
        place,
        max_runs,
        now: at(LATER),
    }
}

fn retain(store: &Store, round: &RetentionRound) -> Retained {
    store.retain(round, &|_, _, _| Ok(())).unwrap()
}

fn hold(reason: &str) -> LegalHoldDecision<'_> {
    LegalHoldDecision {
        tenant: "acme",
        by: "ada",
        reason,
        at: at(20),
    }
}

/// All that is wrong with a store and its runs.
fn alterations(store: &Store, runs: &[&str]) -> Vec<String> {
    let mut found = store.verify_rest().unwrap();
    for run in runs {
        found.extend(store.verify_run(&id(run)).unwrap().alterations);
    }
    found
        .into_iter()
        .map(|found| format!("{}: {}", found.place, found.reason))
        .collect()
}

fn count(path: &Path, query: &str) -> i64 {
    let connection = Connection::open(path).unwrap();
    connection.query_row(query, [], |row| row.get(0)).unwrap()
}

/// Not a test by itself: removes the payloads of a long run.
#[test]
fn victim() {
    if let Some(path) = std::env::var_os(VICTIM) {
        retain(
            &signed(Path::new(&path)),
            &round(RetentionPlace::default(), 10),
        );
    }
}

#[test]
fn a_kill_in_the_middle_of_a_purge_leaves_a_journal_that_verifies_and_the_next_round_completes_it()
{
    for point in [
        "purge.before#2",
        "purge.after#1",
        "purge.after#2",
        "purge.after#3",
    ] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("windlass.db");
        let store = signed(&path);
        ended(&store, "r1", MANY);
        ended(&store, "r2", 1);
        drop(store);
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "suite::retain::victim"])
            .env(VICTIM, &path)
            .env("WINDLASS_CRASH_AT", point)
            .stdout(Stdio::null())
            .status()
            .unwrap();
        assert!(!status.success(), "{point}");

        let store = signed(&path);
        assert_eq!(alterations(&store, &["r1", "r2"]), [""; 0], "{point}");
        assert_eq!(store.damage(&id("r1")).unwrap(), None);
        if point != "purge.after#3" {
            assert_eq!(count(&path, "SELECT count(*) FROM purging"), 1, "{point}");
            assert!(matches!(store.fold(&id("r1")), Err(Error::Purged(_))));
        }
        retain(&store, &round(RetentionPlace::default(), 10));
        assert_eq!(alterations(&store, &["r1", "r2"]), [""; 0], "{point}");
        assert_eq!(count(&path, "SELECT count(*) FROM purging"), 0);
        let left = "SELECT count(*) FROM events WHERE kind NOT IN ('decided', 'call_started')";
        assert_eq!(count(&path, left), 0, "{point}");
        let tombstone = store.summary(&id("r1")).unwrap().purged.unwrap();
        assert_eq!(tombstone.events, 5 + MANY as u64, "{point}");
        assert!(tombstone.bytes > 0);
    }
}

#[test]
fn a_round_looks_at_few_runs_and_those_that_are_kept_do_not_stop_the_others() {
    let directory = tempfile::tempdir().unwrap();
    let store = signed(&directory.path().join("windlass.db"));
    for number in 0..5 {
        let (journal, mut state) = start(&store, &format!("kept{number}"));
        drive(&journal, &mut state, 4, &unknown());
        journal.end(&RunEnd::Cancelled).unwrap();
    }
    for number in 0..7 {
        ended(&store, &format!("r{number}"), 0);
    }
    let (mut removed, mut kept, mut rounds) = (0, 0, 0);
    let mut place = Some(RetentionPlace::default());
    while let Some(next) = place {
        let retained = retain(&store, &round(next, 3));
        let looked_at = retained.purged.removed.len() + retained.purged.kept.len();
        assert!(looked_at <= 3);
        removed += retained.purged.removed.len();
        kept += retained.purged.kept.len();
        rounds += 1;
        place = retained.next;
    }
    assert_eq!((removed, kept), (7, 5));
    assert!((4..=5).contains(&rounds), "{rounds}");
    assert!(
        store.fold(&id("kept0")).is_ok(),
        "an unknown outcome is never purged"
    );
}

#[test]
fn records_of_whole_runs_are_removed_and_what_is_left_verifies() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("windlass.db");
    let store = signed(&path);
    for run in ["r1", "r2", "r3"] {
        ended(&store, run, 0);
    }
    let (open, _) = start(&store, "open");
    let both = RetentionRound {
        records_before: Some(at(LATER - 10)),
        ..round(RetentionPlace::default(), 10)
    };
    let first = retain(&store, &both);
    assert_eq!(first.purged.removed.len(), 3);
    // What was purged in this round may be removed in it as well: both periods are over.
    let second = retain(&store, &both);
    assert_eq!(first.removed.len() + second.removed.len(), 3);
    assert_eq!(alterations(&store, &["open"]), [""; 0]);
    for table in [
        "events",
        "purged_events",
        "approvals",
        "holds",
        "mailbox",
        "executions",
        "tool_gaps",
        "usage",
        "run_ends",
        "runs",
    ] {
        let left = format!("SELECT count(*) FROM {table} WHERE run <> 'open'");
        assert_eq!(count(&path, &left), 0, "{table}");
    }
    let changes = store.admin_changes("acme").unwrap();
    let named: String = changes
        .iter()
        .filter(|change| change.change.kind == "run_records_removed")
        .map(|change| change.change.subject.to_string())
        .collect();
    for run in ["r1", "r2", "r3"] {
        assert!(named.contains(run), "{named}");
    }
    drop(open);
    drop(store);
    let reopened = signed(&path);
    assert_eq!(alterations(&reopened, &["open"]), [""; 0]);
    assert_eq!(
        reopened.damage(&id("open")).unwrap(),
        None,
        "no transaction is missing"
    );
    // Nothing but the retention removes what is kept.
    let connection = Connection::open(&path).unwrap();
    ended(&reopened, "r4", 0);
    let deleted = connection.execute("DELETE FROM events WHERE kind = 'decided'", []);
    assert!(deleted.is_err());
}

#[test]
fn nothing_is_removed_of_a_run_under_a_legal_hold_or_of_the_runs_that_work_for_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("windlass.db");
    let store = signed(&path);
    for run in ["r1", "r1.1.0", "r2"] {
        ended(&store, run, 0);
    }
    assert!(
        store
            .place_legal_hold(&id("r1.1.0"), &hold("Case 7."))
            .unwrap()
    );
    assert!(!store.place_legal_hold(&id("r1"), &hold("Again.")).unwrap());
    let holds = store.legal_holds("acme").unwrap();
    assert_eq!(holds.len(), 1);
    assert_eq!(
        (holds[0].run.as_str(), holds[0].reason.as_str()),
        ("r1", "Case 7.")
    );
    assert!(store.place_legal_hold(&id("nothing"), &hold("x")).is_err());
    let other = LegalHoldDecision {
        tenant: "other",
        ..hold("x")
    };
    assert!(
        store.place_legal_hold(&id("r2"), &other).is_err(),
        "of another tenant"
    );

    let preview = store.preview_purge(Duration::ZERO, at(LATER)).unwrap();
    assert_eq!(preview.removed.len(), 1);
    let purged = store.purge(Duration::ZERO, at(LATER)).unwrap();
    assert_eq!(purged.removed.len(), 1, "{purged:?}");
    assert_eq!(purged.kept.len(), 2);
    assert!(
        purged
            .kept
            .iter()
            .all(|kept| kept.reason == KeepReason::LegalHold)
    );
    assert!(store.fold(&id("r1")).is_ok() && store.fold(&id("r1.1.0")).is_ok());

    // A hold that was placed after the payloads were removed keeps the record.
    assert!(store.place_legal_hold(&id("r2"), &hold("Case 8.")).unwrap());
    let both = RetentionRound {
        records_before: Some(at(LATER - 10)),
        ..round(RetentionPlace::default(), 10)
    };
    assert!(retain(&store, &both).removed.is_empty());
    let reasons: Vec<String> = store
        .admin_changes("acme")
        .unwrap()
        .into_iter()
        .filter(|change| change.change.kind == "legal_hold_added")
        .map(|change| change.change.subject["reason"].to_string())
        .collect();
    assert_eq!(reasons, ["\"Case 7.\"", "\"Case 8.\""]);

    assert!(store.lift_legal_hold(&id("r1"), &hold("Closed.")).unwrap());
    assert!(!store.lift_legal_hold(&id("r1"), &hold("Closed.")).unwrap());
    assert_eq!(
        store
            .purge(Duration::ZERO, at(LATER))
            .unwrap()
            .removed
            .len(),
        2
    );
    assert_eq!(alterations(&store, &["r1", "r2"]), [""; 0]);
}

#[test]
fn a_legal_hold_that_was_changed_outside_windlass_still_keeps_its_run_and_is_reported() {
    for change in [
        "UPDATE legal_holds SET lifted_by = 'eve', lifted_at = 1",
        "DROP TRIGGER legal_holds_stay; DELETE FROM legal_holds",
    ] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("windlass.db");
        let store = signed(&path);
        ended(&store, "r1", 0);
        store.place_legal_hold(&id("r1"), &hold("Case 7.")).unwrap();
        Connection::open(&path)
            .unwrap()
            .execute_batch(change)
            .unwrap();
        assert!(!alterations(&store, &["r1"]).is_empty(), "{change}");
        let purged = store.purge(Duration::ZERO, at(LATER)).unwrap();
        assert!(purged.removed.is_empty(), "{purged:?}");
    }
}
