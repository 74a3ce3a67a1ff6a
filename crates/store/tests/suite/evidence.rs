//! Tests that every change of a row outside Windlass is noticed, and that such a run is not resumed.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, types::Value};
use tempfile::TempDir;
use windlass_core::approval::{PersonDecision, Reach, StandingApproval, StandingScope};
use windlass_core::run::{Event, Run, RunEnd};
use windlass_keys::{JournalKey, KeyDirectory};
use windlass_store::{
    AdminChange, Authentication, Durability, Error, NewRun, Options, RunFilter, SignatureState,
    Store,
};

use super::holds::hold;
use super::questions::{approval, ask_question, call, event, identity, now, tool};
use super::support::{at, drive, id, new_run, start, started, success, time_passed};

/// The time after which everything that ended is purged.
const LATER: i64 = 365 * 24 * 60 * 60;

pub(crate) fn signed_with(path: &Path, key: JournalKey) -> Result<Store, Error> {
    let authentication = Authentication::Key(key);
    let options = Options {
        authentication,
        ..Options::default()
    };
    Store::open_with(path, options)
}

pub(crate) fn key() -> JournalKey {
    JournalKey::new(&[7; 32])
}

/// Opens a store that signs its rows.
pub(crate) fn signed(path: &Path) -> Store {
    signed_with(path, key()).unwrap()
}

fn change(kind: &str) -> AdminChange {
    AdminChange {
        kind: kind.to_owned(),
        by: Some("ada".to_owned()),
        at: at(5),
        subject: serde_json::json!({"path": "/project", "digest": "sha256:12"}),
    }
}

/// Two runs that wait, each with a question, its decision, a hold and commands; a run of another tenant, and one that
/// has ended; a standing approval and changes by administrators.
fn fill(store: &Store) {
    for run in ["r1", "r2"] {
        let (journal, _) = start(store, run);
        journal
            .append(&time_passed(1), Durability::Relaxed)
            .unwrap();
        // The clock was set back.
        journal
            .append(&time_passed(-500), Durability::Relaxed)
            .unwrap();
        ask_question(&journal, &approval(call(run, 0)));
        let approve = PersonDecision::Approve;
        let by = identity("bea");
        store
            .decide(&call(run, 0), None, &by, approve, now())
            .unwrap();
        let command = journal.inbox().unwrap().remove(0);
        journal
            .append_taking(&event(&journal, 2), command.id)
            .unwrap();
        let held = hold(run, 1);
        journal.append_holding(&event(&journal, 3), &held).unwrap();
        store.undo(&call(run, 1), &by, at(4)).unwrap();
        journal.append(&time_passed(6), Durability::Synced).unwrap();
        journal.end(&RunEnd::WaitingForPerson).unwrap();
    }
    let other = NewRun {
        tenant: "other".to_owned(),
        ..new_run()
    };
    let first = started("r3", "Find it.");
    let journal = store.start(other, &first, Durability::Synced).unwrap();
    journal.append(&time_passed(1), Durability::Synced).unwrap();
    journal.end(&RunEnd::WaitingForPerson).unwrap();
    let (journal, mut run) = start(store, "r4");
    drive(&journal, &mut run, 8, &success());
    journal.end(&RunEnd::Completed).unwrap();
    let standing = StandingApproval::new(
        identity("ada"),
        tool(),
        StandingScope::Tool,
        Reach::Until { until: at(100) },
        identity("bea").principal,
        at(0),
    );
    let standing = store.grant_standing(&standing.unwrap()).unwrap();
    let by = identity("bea");
    store.revoke_standing(standing, &by, at(9)).unwrap();
    for kind in ["project_trusted", "pin_accepted", "project_trusted"] {
        store.record_admin_change("acme", &change(kind)).unwrap();
    }
}

/// A closed database with everything in it.
struct Template {
    directory: TempDir,
}

impl Template {
    fn new() -> Self {
        let template = Self {
            directory: tempfile::tempdir().unwrap(),
        };
        let store = signed(&template.path());
        fill(&store);
        drop(store);
        template
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("windlass.db")
    }

    /// Copies the database and changes the copy by SQL, as a user could who can write the file.
    fn changed(&self, sql: impl FnOnce(&Connection)) -> (TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        for name in ["windlass.db", "windlass.db-position"] {
            std::fs::copy(
                self.directory.path().join(name),
                directory.path().join(name),
            )
            .unwrap();
        }
        let path = directory.path().join("windlass.db");
        let connection = Connection::open(&path).unwrap();
        without_rules(&connection);
        sql(&connection);
        (directory, path)
    }
}

/// Removes the triggers, and turns off the constraints.
fn without_rules(connection: &Connection) {
    connection
        .execute_batch("PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON")
        .unwrap();
    let mut select = connection
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'trigger'")
        .unwrap();
    let triggers = select.query_map([], |row| row.get::<_, String>(0)).unwrap();
    for trigger in triggers.map(Result::unwrap).collect::<Vec<_>>() {
        connection
            .execute_batch(&format!("DROP TRIGGER {trigger}"))
            .unwrap();
    }
    // Rows are copied under the same keys.
    connection
        .execute_batch("DROP INDEX approvals_one_pending")
        .unwrap();
}

/// What the check of the whole store finds.
fn alterations(path: &Path) -> Vec<String> {
    let store = match signed_with(path, key()) {
        Ok(store) => store,
        Err(error) => return vec![error.to_string()],
    };
    let mut found: Vec<String> = Vec::new();
    match store.runs(&RunFilter::default()) {
        Ok(runs) => {
            for run in runs {
                match store.verify_run(&run.run) {
                    Ok(verified) => found.extend(
                        verified
                            .alterations
                            .iter()
                            .map(|found| format!("{}: {}", found.place, found.reason)),
                    ),
                    Err(error) => found.push(error.to_string()),
                }
            }
        }
        Err(error) => found.push(error.to_string()),
    }
    match store.verify_rest() {
        Ok(rest) => found.extend(
            rest.iter()
                .map(|found| format!("{}: {}", found.place, found.reason)),
        ),
        Err(error) => found.push(error.to_string()),
    }
    found
}

fn take_over(path: &Path, run: &str) -> Result<(), Error> {
    let store = signed_with(path, key())?;
    store.take_over(&id(run)).map(drop)
}

/// Whether reading the run, or deciding about it, is refused.
fn is_refused(path: &Path, run: &str) -> bool {
    take_over(path, run).is_err()
}

/// The tables with rows that count, and the condition for one row that belongs to the run `r1`, if they do.
const TABLES: [(&str, &str); 8] = [
    ("runs", "run = 'r1'"),
    ("events", "run = 'r1' AND seq = 2"),
    ("approvals", "run = 'r1'"),
    ("holds", "run = 'r1'"),
    ("mailbox", "run = 'r1' AND kind = 'undo'"),
    ("standing_approvals", "id = 1"),
    ("admin_changes", "seq = 2"),
    ("admin_heads", "tenant = 'acme'"),
];

fn belongs_to_run(table: &str) -> bool {
    !["standing_approvals", "admin_changes", "admin_heads"].contains(&table)
}

fn columns(path: &Path, table: &str) -> Vec<String> {
    let connection = Connection::open(path).unwrap();
    let mut select = connection
        .prepare(&format!("SELECT name FROM pragma_table_info('{table}')"))
        .unwrap();
    let names = select.query_map([], |row| row.get(0)).unwrap();
    names.map(Result::unwrap).collect()
}

/// Another value of the same type.
fn other_value(value: Value, declared: &str) -> Value {
    match value {
        Value::Integer(number) => Value::Integer(number + 1000),
        Value::Text(text) => Value::Text(format!("{text} ")),
        Value::Blob(mut bytes) => {
            bytes[0] ^= 1;
            Value::Blob(bytes)
        }
        _ if declared == "INTEGER" => Value::Integer(7),
        _ if declared == "BLOB" => Value::Blob(vec![7; 32]),
        _ => Value::Text("{}".to_owned()),
    }
}

#[test]
fn what_was_not_changed_verifies() {
    let template = Template::new();
    let (_directory, path) = template.changed(|_| {});
    assert_eq!(alterations(&path), [""; 0]);
    let store = signed(&path);
    let verified = store.verify_run(&id("r1")).unwrap();
    assert_eq!(verified.signature, SignatureState::Signed);
    assert_eq!((verified.events, verified.purged_events), (7, 0));
    assert_eq!(store.admin_changes("acme").unwrap().len(), 3);
    assert_eq!(store.damage(&id("r1")).unwrap(), None);
    drop(store);
    for run in ["r1", "r2", "r3"] {
        take_over(&path, run).unwrap();
    }
}

#[test]
fn every_column_that_counts_is_covered() {
    let template = Template::new();
    for (table, row) in TABLES {
        for column in columns(&template.path(), table) {
            let (_directory, path) = template.changed(|connection| {
                let quoted = format!(r#""{column}""#);
                let (value, declared): (Value, String) = connection
                    .query_row(
                        &format!(
                            "SELECT {quoted}, (SELECT type FROM pragma_table_info('{table}')
                                 WHERE name = '{column}') FROM {table} WHERE {row}"
                        ),
                        [],
                        |row| Ok((row.get(0)?, row.get(1)?)),
                    )
                    .unwrap();
                let changed = connection
                    .execute(
                        &format!("UPDATE {table} SET {quoted} = ?1 WHERE {row}"),
                        [other_value(value, &declared)],
                    )
                    .unwrap();
                assert_eq!(changed, 1, "{table}.{column}");
            });
            let found = alterations(&path);
            assert!(!found.is_empty(), "{table}.{column} can be changed");
            if belongs_to_run(table) {
                assert!(is_refused(&path, "r1"), "{table}.{column}: {found:?}");
            }
        }
    }
}

#[test]
fn a_row_without_a_mac_is_forged() {
    let template = Template::new();
    for (table, row) in TABLES {
        let (_directory, path) = template.changed(|connection| {
            let forged = format!("UPDATE {table} SET mac = NULL WHERE {row}");
            assert_eq!(connection.execute(&forged, []).unwrap(), 1);
        });
        assert!(!alterations(&path).is_empty(), "{table}");
    }
}

#[test]
fn every_removed_row_is_noticed() {
    let template = Template::new();
    for (table, row) in TABLES {
        let (_directory, path) = template.changed(|connection| {
            let removed = format!("DELETE FROM {table} WHERE {row}");
            assert_eq!(connection.execute(&removed, []).unwrap(), 1);
        });
        let found = alterations(&path);
        if table == "standing_approvals" {
            // Without it more calls need approval.
            continue;
        }
        assert!(!found.is_empty(), "{table}");
        if belongs_to_run(table) {
            assert!(is_refused(&path, "r1"), "{table}: {found:?}");
        }
    }
}

#[test]
fn every_copied_row_is_noticed() {
    let template = Template::new();
    let copies = [
        ("runs", "run", "'r9'"),
        ("events", "seq", "seq + 100"),
        ("events", "seq", "8"),
        ("approvals", "number", "number + 1"),
        ("approvals", "call", "'r1:1:7'"),
        ("holds", "call", "'r1:1:7'"),
        ("mailbox", "id", "id + 100"),
        ("standing_approvals", "id", "id + 100"),
        ("admin_changes", "seq", "seq + 100"),
        ("admin_heads", "tenant", "'other'"),
    ];
    for (table, changed, value) in copies {
        let (_, row) = TABLES.iter().find(|(name, _)| *name == table).unwrap();
        let columns = columns(&template.path(), table);
        let (_directory, path) = template.changed(|connection| {
            let all: Vec<String> = columns.iter().map(|name| format!(r#""{name}""#)).collect();
            let values = columns.iter().map(|name| match name == changed {
                true => value.to_owned(),
                false => format!(r#""{name}""#),
            });
            let copy = format!(
                "INSERT INTO {table} ({}) SELECT {} FROM {table} WHERE {row}",
                all.join(", "),
                values.collect::<Vec<_>>().join(", ")
            );
            assert_eq!(connection.execute(&copy, []).unwrap(), 1, "{copy}");
        });
        let found = alterations(&path);
        assert!(!found.is_empty(), "{table}.{changed}");
        if belongs_to_run(table) && table != "runs" {
            assert!(is_refused(&path, "r1"), "{table}.{changed}: {found:?}");
        }
    }
}

#[test]
fn rows_that_changed_places_are_noticed() {
    let template = Template::new();
    let swap = |table: &str, column: &str, one: &str, other: &str| {
        format!(
            "UPDATE {table} SET {column} = 'between' WHERE {column} = '{one}';
             UPDATE {table} SET {column} = '{one}' WHERE {column} = '{other}';
             UPDATE {table} SET {column} = '{other}' WHERE {column} = 'between'"
        )
    };
    let mut swaps = Vec::new();
    for table in ["runs", "events", "approvals", "holds", "mailbox"] {
        // Between two runs, and between two tenants.
        swaps.push(swap(table, "run", "r1", "r2"));
    }
    for table in ["runs", "events"] {
        swaps.push(swap(table, "run", "r1", "r3"));
        swaps.push(swap(table, "tenant", "acme", "other"));
    }
    for table in ["approvals", "holds", "mailbox", "standing_approvals"] {
        swaps.push(swap(table, "tenant", "acme", "other"));
        swaps.push(swap(table, "principal", "ada", "bea"));
    }
    swaps.push(
        "UPDATE events SET seq = -1 WHERE run = 'r1' AND seq = 2;
         UPDATE events SET seq = 2 WHERE run = 'r1' AND seq = 3;
         UPDATE events SET seq = 3 WHERE run = 'r1' AND seq = -1"
            .to_owned(),
    );
    swaps.push(swap("admin_changes", "tenant", "acme", "other"));
    for sql in swaps {
        let (_directory, path) = template.changed(|connection| {
            connection.execute_batch(&sql).unwrap();
        });
        assert!(!alterations(&path).is_empty(), "{sql}");
        if sql.contains("events") || sql.contains("r2") || sql.contains("UPDATE runs") {
            assert!(is_refused(&path, "r1"), "{sql}");
        }
    }
}

#[test]
fn a_shortened_journal_is_noticed_whatever_else_is_changed_with_it() {
    let template = Template::new();
    for left in 0..7 {
        let (_directory, path) = template.changed(|connection| {
            connection
                .execute("DELETE FROM events WHERE run = 'r1' AND seq > ?1", [left])
                .unwrap();
            // As far as possible without the key.
            connection
                .execute(
                    "UPDATE runs SET last_event = ?1, event_count = ?1,
                         head = (SELECT mac FROM events WHERE run = 'r1' AND seq = ?1)
                     WHERE run = 'r1'",
                    [left],
                )
                .unwrap();
        });
        assert!(is_refused(&path, "r1"), "{left} events are left");
    }
}

#[test]
fn an_altered_event_is_refused_with_its_number() {
    let template = Template::new();
    let (_directory, path) = template.changed(|connection| {
        let forged = r#"UPDATE events SET payload = '{"event":"time_passed","at":"2030-01-01T00:00:00Z"}'
                        WHERE run = 'r1' AND seq = 3"#;
        connection.execute(forged, []).unwrap();
    });
    let store = signed(&path);
    for error in [
        store.events(&id("r1")).unwrap_err(),
        store.fold(&id("r1")).unwrap_err(),
        store.export(&id("r1"), Vec::new()).unwrap_err(),
        store.take_over(&id("r1")).unwrap_err(),
    ] {
        let message = error.to_string();
        assert!(message.contains("event 3 of the run `r1`"), "{message}");
    }
    let verified = store.verify_run(&id("r1")).unwrap();
    assert_eq!(verified.alterations.len(), 1);
    assert_eq!(verified.alterations[0].event, Some(3));
    // The other runs are not affected.
    store.take_over(&id("r2")).unwrap();
}

#[test]
fn a_forged_decision_permits_nothing() {
    let template = Template::new();
    let (_directory, path) = template.changed(|connection| {
        let forged =
            r#"UPDATE approvals SET body = replace(body, '"bea"', '"cem"') WHERE run = 'r1'"#;
        assert_eq!(connection.execute(forged, []).unwrap(), 1);
    });
    let store = signed(&path);
    let error = store.evidence(&call("r1", 0)).unwrap_err();
    assert!(matches!(error, Error::Altered { .. }), "{error}");
}

#[test]
fn rows_of_another_journal_do_not_fit() {
    let (one, other) = (Template::new(), Template::new());
    let (_directory, path) = one.changed(|connection| {
        let attach = format!("ATTACH '{}' AS other", other.path().display());
        connection.execute_batch(&attach).unwrap();
        for table in ["runs", "events", "approvals", "holds", "mailbox"] {
            connection
                .execute_batch(&format!(
                    "DELETE FROM main.{table} WHERE run = 'r1';
                     INSERT INTO main.{table} SELECT * FROM other.{table} WHERE run = 'r1'
                         AND '{table}' <> 'mailbox'"
                ))
                .unwrap();
        }
    });
    assert!(is_refused(&path, "r1"));
}

#[test]
fn an_owner_does_not_sign_a_row_that_was_changed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("windlass.db");
    let store = signed(&path);
    let (journal, _) = start(&store, "r1");
    let connection = Connection::open(&path).unwrap();
    connection
        .execute("UPDATE runs SET principal = 'eve'", [])
        .unwrap();
    let error = journal.append(&time_passed(1), Durability::Synced);
    assert!(matches!(error, Err(Error::Altered { .. })), "{error:?}");
    drop(journal);
    assert!(matches!(
        store.take_over(&id("r1")),
        Err(Error::Altered { .. })
    ));
}

#[test]
fn a_purged_journal_verifies_and_what_is_left_of_it_cannot_be_changed() {
    let template = Template::new();
    let store = signed(&template.path());
    let age = std::time::Duration::from_secs(60);
    let purged = store.purge(age, at(LATER)).unwrap();
    assert_eq!(purged.removed.len(), 1);
    let verified = store.verify_run(&id("r4")).unwrap();
    assert_eq!(verified.alterations, []);
    assert_eq!(verified.purged_events, purged.removed[0].events);
    assert_eq!(verified.events, 9);
    drop(store);
    assert_eq!(alterations(&template.path()), [""; 0]);
    for column in columns(&template.path(), "purged_events") {
        let (_directory, path) = template.changed(|connection| {
            let value: Value = connection
                .query_row(
                    &format!("SELECT {column} FROM purged_events WHERE seq = 1"),
                    [],
                    |row| row.get(0),
                )
                .unwrap();
            connection
                .execute(
                    &format!("UPDATE purged_events SET {column} = ?1 WHERE seq = 1"),
                    [other_value(value, "")],
                )
                .unwrap();
        });
        assert!(!alterations(&path).is_empty(), "{column}");
    }
    let (_directory, path) = template.changed(|connection| {
        connection
            .execute_batch("DELETE FROM purged_events WHERE seq = 1")
            .unwrap();
    });
    assert!(!alterations(&path).is_empty());
}

/// A database of before there were MACs: one run has ended, one waits, one is open.
fn old_database(path: &Path) {
    let store = Store::open(path).unwrap();
    for run in ["ended", "waiting", "open"] {
        let (journal, mut state) = start(&store, run);
        drive(&journal, &mut state, 4, &success());
        ask_question(&journal, &approval(call(run, 9)));
        match run {
            "ended" => journal.end(&RunEnd::Cancelled).unwrap(),
            "waiting" => journal.end(&RunEnd::WaitingForPerson).unwrap(),
            _ => journal.sync().unwrap(),
        }
    }
    store.record_admin_change("acme", &change("purge")).unwrap();
}

#[test]
fn an_old_journal_is_signed_when_it_is_opened_and_continues() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("windlass.db");
    old_database(&path);
    let store = signed(&path);
    let signature = |run: &str| store.verify_run(&id(run)).unwrap().signature;
    assert_eq!(signature("ended"), SignatureState::Unsigned);
    assert_eq!(signature("waiting"), SignatureState::SignedFrom(6));
    assert_eq!(signature("open"), SignatureState::SignedFrom(6));
    for run in ["waiting", "open"] {
        let journal = store.take_over(&id(run)).unwrap();
        let seq = journal.append(&time_passed(9), Durability::Synced).unwrap();
        assert_eq!(seq, 7);
    }
    assert_eq!(store.events(&id("ended")).unwrap().len(), 6);
    drop(store);
    assert_eq!(alterations(&path), [""; 0]);
}

#[test]
fn no_run_can_pass_as_one_of_before_there_were_macs() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("windlass.db");
    old_database(&path);
    drop(signed(&path));
    let template = Template { directory };
    for forged in [
        // One that was signed.
        "UPDATE events SET mac = NULL, digest = NULL WHERE run = 'waiting';
         UPDATE runs SET head = NULL WHERE run = 'waiting'",
        "UPDATE events SET mac = NULL, digest = NULL WHERE run = 'waiting';
         UPDATE runs SET head = NULL, mac = NULL WHERE run = 'waiting'",
        // One that had ended.
        "DELETE FROM events WHERE run = 'waiting'; DELETE FROM runs WHERE run = 'waiting';
         DELETE FROM approvals WHERE run = 'waiting'; DELETE FROM mailbox WHERE run = 'waiting';
         UPDATE events SET run = 'waiting' WHERE run = 'ended';
         UPDATE approvals SET run = 'waiting' WHERE run = 'ended';
         UPDATE mailbox SET run = 'waiting' WHERE run = 'ended';
         UPDATE runs SET run = 'waiting', state = 'waiting' WHERE run = 'ended'",
    ] {
        let (_directory, path) = template.changed(|connection| {
            connection.execute_batch(forged).unwrap();
        });
        assert!(is_refused(&path, "waiting"), "{forged}");
        assert!(!alterations(&path).is_empty(), "{forged}");
    }
}

#[test]
fn evidence_that_was_removed_does_not_begin_anew() {
    let directory = tempfile::tempdir().unwrap();
    let keys = KeyDirectory::new(directory.path().join("keys"));
    let key = JournalKey::of_installation(&keys).unwrap();
    let path = directory.path().join("windlass.db");
    fill(&signed_with(&path, key.clone()).unwrap());
    let connection = Connection::open(&path).unwrap();
    without_rules(&connection);
    connection
        .execute_batch("DELETE FROM evidence; UPDATE runs SET mac = NULL, head = NULL")
        .unwrap();
    drop(connection);
    let store = signed_with(&path, key).unwrap();
    let error = store.take_over(&id("r1")).unwrap_err();
    assert!(error.to_string().contains("the evidence of"), "{error}");
    let refused = store.start(new_run(), &started("new", "Go."), Durability::Synced);
    assert!(matches!(refused, Err(Error::Altered { .. })), "{refused:?}");
}

#[test]
fn without_the_right_key_lists_can_be_read_and_nothing_else() {
    let template = Template::new();
    let path = template.path();
    let foreign = JournalKey::new(&[8; 32]);
    let missing = Options {
        authentication: Authentication::Unusable("the key is missing".to_owned()),
        ..Options::default()
    };
    for store in [
        signed_with(&path, foreign).unwrap(),
        Store::open_with(&path, missing).unwrap(),
    ] {
        assert_eq!(store.runs(&RunFilter::default()).unwrap().len(), 4);
        store.summary(&id("r1")).unwrap();
        let is_key = |error: &Error| matches!(error, Error::KeyUnusable(_));
        assert!(is_key(&store.authentication_error().unwrap()));
        assert!(is_key(&store.events(&id("r1")).unwrap_err()));
        assert!(is_key(&store.take_over(&id("r1")).unwrap_err()));
        assert!(is_key(&store.verify_run(&id("r1")).unwrap_err()));
        let approve = PersonDecision::Approve;
        let decided = store.decide(&call("r1", 0), None, &identity("bea"), approve, now());
        assert!(is_key(&decided.unwrap_err()));
        let started = store.start(new_run(), &started("new", "Go."), Durability::Synced);
        assert!(is_key(&started.unwrap_err()));
    }
    // A caller without any key may read, and writes nothing.
    let store = Store::open(&path).unwrap();
    assert_eq!(store.events(&id("r1")).unwrap().len(), 7);
    assert!(store.take_over(&id("r1")).is_err());
    drop(store);
    assert_eq!(alterations(&path), [""; 0]);
}

#[test]
fn several_processes_share_a_journal_and_its_key() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("windlass.db");
    let (one, other) = (signed(&path), signed(&path));
    let (journal, _) = start(&one, "r1");
    let (second, _) = start(&other, "r2");
    for index in 0..20 {
        journal
            .append(&time_passed(index), Durability::Relaxed)
            .unwrap();
        second
            .append(&time_passed(index), Durability::Synced)
            .unwrap();
    }
    other
        .request_cancel(&id("r1"), &identity("bea"), now())
        .unwrap();
    drop((journal, second));
    let journal = other.take_over(&id("r1")).unwrap();
    assert_eq!(journal.inbox().unwrap().len(), 1);
    let events = other.events(&id("r1")).unwrap();
    assert_eq!(events.len(), 21);
    assert_eq!(other.events_from(&id("r1"), 15).unwrap().len(), 7);
    assert!(other.events_from(&id("r1"), 22).unwrap().is_empty());
    let whole: Vec<Event> = events.into_iter().map(|(_, event)| event).collect();
    Run::fold(&whole).unwrap();
    drop((journal, one, other));
    assert_eq!(alterations(&path), [""; 0]);
}
