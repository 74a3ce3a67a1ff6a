//! Tests of known servers and the pins of their tools: storing, concurrent changes, unreadable rows.

use std::sync::{Arc, Barrier};
use std::thread;

use rusqlite::Connection;
use serde_json::{Value, json};
use windlass_core::approval::Digest;
use windlass_store::{
    Error, Options, PinsRevision, Redactor, Store, StoredDefinition, StoredPin, StoredServer,
};

use super::support::{at, open};

fn server(name: &str) -> StoredServer {
    StoredServer {
        name: name.to_owned(),
        era: Some("legacy".to_owned()),
        settings_digest: "sha256:abc".to_owned(),
        program: Some(json!({"files": [["/bin/x", "00"]]})),
        greeting: Some(json!({"server_name": "time"})),
        first_seen: at(0),
    }
}

fn definition(name: &str, description: &str) -> StoredDefinition {
    StoredDefinition::new(json!({"name": name, "description": description, "n": 1.50}))
}

/// A pin of an offered tool, with an accepted definition if `accepted` is set.
fn pin(tool: &str, accepted: Option<&str>, offered: &str) -> StoredPin {
    StoredPin {
        tool: tool.to_owned(),
        accepted: accepted.map(|text| definition(tool, text)),
        accepted_by: None,
        accepted_at: accepted.map(|_| at(1)),
        offered: Some(definition(tool, offered)),
        findings: Vec::new(),
        seen_at: at(2),
    }
}

fn first_connection(store: &Store) -> PinsRevision {
    store.note_server("acme", &server("time")).unwrap();
    store.pins("acme", "time").unwrap().revision
}

#[test]
fn servers_and_pins_are_read_back_as_they_were_written() {
    let (_directory, store) = open();
    assert_eq!(store.known_server("acme", "time").unwrap(), None);
    let first = first_connection(&store);
    assert!(first.is_first());
    let pins = vec![
        pin("add", Some("Adds."), "Adds."),
        StoredPin {
            findings: vec!["/description: hidden".to_owned()],
            ..pin("evil", None, "\u{200B}")
        },
        StoredPin {
            offered: None,
            accepted_by: Some("ada".to_owned()),
            ..pin("gone", Some("Was."), "")
        },
    ];
    let revision = store.write_pins("acme", "time", first, &pins).unwrap();
    assert!(!revision.is_first());
    let path = store.path().to_owned();
    drop(store);
    let store = Store::open(path).unwrap();
    let read = store.pins("acme", "time").unwrap();
    assert_eq!((read.revision, read.pins), (revision, pins));
    assert_eq!(
        store.known_server("acme", "time").unwrap(),
        Some(server("time"))
    );
}

#[test]
fn a_later_connection_keeps_the_pins_program_and_first_time() {
    let (_directory, store) = open();
    let revision = first_connection(&store);
    let pins = [pin("add", Some("Adds."), "Adds.")];
    store.write_pins("acme", "time", revision, &pins).unwrap();
    let later = StoredServer {
        era: Some("modern".to_owned()),
        program: None,
        settings_digest: "another".to_owned(),
        first_seen: at(9),
        ..server("time")
    };
    store.note_server("acme", &later).unwrap();
    let known = store.known_server("acme", "time").unwrap().unwrap();
    assert_eq!(
        (known.era.as_deref(), known.first_seen),
        (Some("modern"), at(0))
    );
    let first = server("time");
    assert!(first.program.is_some());
    assert_eq!(
        (known.program, known.settings_digest),
        (first.program, first.settings_digest)
    );
    assert_eq!(store.pins("acme", "time").unwrap().pins, pins);
    store.note_server("acme", &server("files")).unwrap();
    let files = store.known_server("acme", "files").unwrap();
    assert_eq!(files, Some(server("files")));
}

#[test]
fn the_program_changes_only_when_it_is_accepted() {
    let (_directory, store) = open();
    first_connection(&store);
    let program = json!({"executable": "/bin/clock"});
    let accept = |tenant, name| store.accept_program(tenant, name, "new", Some(&program));
    assert!(accept("acme", "time").unwrap());
    let known = store.known_server("acme", "time").unwrap().unwrap();
    assert_eq!(known.program, Some(program.clone()));
    assert_eq!(known.settings_digest, "new");
    assert!(!accept("acme", "files").unwrap() && !accept("other", "time").unwrap());
    assert_eq!(store.known_server("other", "time").unwrap(), None);
}

#[test]
fn tenants_do_not_see_each_others_servers() {
    let (_directory, store) = open();
    first_connection(&store);
    assert_eq!(store.known_server("other", "time").unwrap(), None);
    assert!(matches!(
        store.pins("other", "time"),
        Err(Error::NoSuchServer(_))
    ));
    assert!(!store.forget_server("other", "time").unwrap());
}

#[test]
fn only_the_offered_definition_is_accepted() {
    let (_directory, store) = open();
    let revision = first_connection(&store);
    let pins = [pin("add", Some("Adds."), "Adds two.")];
    let revision = store.write_pins("acme", "time", revision, &pins).unwrap();
    let shown = definition("add", "Adds two.").digest;
    let stale = definition("add", "Adds.").digest;
    let accept =
        |tool: &str, digest: Digest| store.accept_pin("acme", "time", tool, digest, "ada", at(5));
    assert!(matches!(
        accept("add", stale),
        Err(Error::OfferDiffers { .. })
    ));
    assert!(matches!(
        accept("none", shown),
        Err(Error::NoSuchPin { .. })
    ));
    let accepted = accept("add", shown).unwrap();
    assert_eq!(accepted.accepted, accepted.offered);
    assert_eq!(accepted.accepted_by.as_deref(), Some("ada"));
    assert_eq!(accepted.accepted_at, Some(at(5)));
    let read = store.pins("acme", "time").unwrap();
    assert_eq!(read.pins, [accepted]);
    assert_ne!(read.revision, revision);
}

#[test]
fn a_concurrent_acceptance_is_not_overwritten() {
    let (_directory, store) = open();
    let revision = first_connection(&store);
    let first = [pin("add", Some("Adds."), "Adds two.")];
    let revision = store.write_pins("acme", "time", revision, &first).unwrap();
    let other_store = Store::open(store.path()).unwrap();
    let digest = definition("add", "Adds two.").digest;
    other_store
        .accept_pin("acme", "time", "add", digest, "ada", at(5))
        .unwrap();
    let error = store
        .write_pins("acme", "time", revision, &first)
        .unwrap_err();
    assert!(matches!(error, Error::PinsChanged(_)), "{error}");
    assert!(error.is_refusal());
    let read = store.pins("acme", "time").unwrap();
    assert_eq!(read.pins[0].accepted, Some(definition("add", "Adds two.")));
}

#[test]
fn writing_pins_never_changes_acceptance() {
    let (_directory, store) = open();
    let revision = first_connection(&store);
    let first = [pin("add", Some("Adds."), "Adds."), pin("new", None, "New.")];
    let revision = store.write_pins("acme", "time", revision, &first).unwrap();
    for wrong in [
        // One more, another one, one less, none at all.
        vec![
            pin("add", Some("Adds."), "Adds."),
            pin("new", Some("New."), "New."),
        ],
        vec![pin("add", Some("Adds two."), "Adds two.")],
        vec![pin("new", None, "New.")],
        vec![pin("add", None, "Adds.")],
    ] {
        let error = store
            .write_pins("acme", "time", revision, &wrong)
            .unwrap_err();
        assert!(matches!(error, Error::PinsChanged(_)), "{error}");
        assert_eq!(store.pins("acme", "time").unwrap().pins, first);
    }
    let fewer = [pin("add", Some("Adds."), "Changed.")];
    store.write_pins("acme", "time", revision, &fewer).unwrap();
    assert_eq!(store.pins("acme", "time").unwrap().pins, fewer);
}

#[test]
fn of_concurrent_first_writes_only_one_succeeds() {
    let (_directory, store) = open();
    let revision = first_connection(&store);
    let path = store.path().to_owned();
    let barrier = Arc::new(Barrier::new(8));
    let threads: Vec<_> = (0..8)
        .map(|number| {
            let (path, barrier) = (path.clone(), Arc::clone(&barrier));
            thread::spawn(move || {
                let store = Store::open(path).unwrap();
                let text = format!("Offered to {number}.");
                let pins = [pin("add", Some(&text), &text)];
                barrier.wait();
                store
                    .write_pins("acme", "time", revision, &pins)
                    .map(|_| pins)
            })
        })
        .collect();
    let ended: Vec<_> = threads
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .collect();
    let (won, lost): (Vec<_>, Vec<_>) = ended.into_iter().partition(Result::is_ok);
    assert_eq!((won.len(), lost.len()), (1, 7));
    let refused = |result: &Result<_, Error>| matches!(result, Err(Error::PinsChanged(_)));
    assert!(lost.iter().all(refused));
    assert_eq!(
        store.pins("acme", "time").unwrap().pins,
        *won[0].as_ref().unwrap()
    );
}

#[test]
fn forgetting_a_server_makes_the_next_connection_the_first() {
    let (_directory, store) = open();
    let revision = first_connection(&store);
    let pins = [pin("add", Some("Adds."), "Adds.")];
    store.write_pins("acme", "time", revision, &pins).unwrap();
    assert!(store.forget_server("acme", "time").unwrap());
    assert!(!store.forget_server("acme", "time").unwrap());
    assert!(matches!(
        store.pins("acme", "time"),
        Err(Error::NoSuchServer(_))
    ));
    let again = first_connection(&store);
    assert!(again.is_first());
    assert_eq!(store.pins("acme", "time").unwrap().pins, []);
    // A writer with the old revision is refused.
    let error = store
        .write_pins("acme", "time", revision, &pins)
        .unwrap_err();
    assert!(matches!(error, Error::PinsChanged(_)), "{error}");
}

#[test]
fn an_unreadable_pin_is_an_error() {
    let forged = serde_json::to_string(&json!({"name": "add", "description": "Forged."})).unwrap();
    for damage in [
        format!("UPDATE pins SET accepted = '{forged}' WHERE tool = 'add'"),
        "UPDATE pins SET offered = '[]' WHERE tool = 'add'".to_owned(),
        "UPDATE pins SET offered_digest = 'sha256:0' WHERE tool = 'add'".to_owned(),
        "UPDATE pins SET findings = '[1]' WHERE tool = 'add'".to_owned(),
    ] {
        let (_directory, store) = open();
        let revision = first_connection(&store);
        let pins = [
            pin("add", Some("Adds."), "Adds."),
            pin("sub", Some("Subs."), "Subs."),
        ];
        store.write_pins("acme", "time", revision, &pins).unwrap();
        Connection::open(store.path())
            .unwrap()
            .execute_batch(&damage)
            .unwrap();
        let error = store.pins("acme", "time").unwrap_err();
        assert!(
            matches!(error, Error::Unreadable { .. }),
            "{damage}: {error}"
        );
        let digest = definition("add", "Adds.").digest;
        let accepted = store.accept_pin("acme", "time", "add", digest, "ada", at(5));
        assert!(
            matches!(accepted, Err(Error::Unreadable { .. })),
            "{damage}"
        );
    }
}

#[test]
fn inconsistent_rows_violate_constraints() {
    let (_directory, store) = open();
    let revision = first_connection(&store);
    let pins = [pin("add", Some("Adds."), "Adds.")];
    store.write_pins("acme", "time", revision, &pins).unwrap();
    let other_store = Connection::open(store.path()).unwrap();
    for forbidden in [
        "UPDATE pins SET accepted = NULL",
        "UPDATE pins SET accepted_at = NULL",
        "UPDATE pins SET offered = 'no json'",
        "UPDATE pins SET offered_digest = NULL",
        "UPDATE pins SET findings = '{}'",
        "UPDATE servers SET era = 'future'",
        "UPDATE servers SET revision = 0",
        "UPDATE servers SET first_seen = 0",
        "INSERT INTO pins (server, tool, findings, seen_at) VALUES (1, 'x', '[]', 0)",
    ] {
        assert!(other_store.execute(forbidden, []).is_err(), "{forbidden}");
    }
}

#[test]
fn a_definition_with_a_secret_in_it_is_not_stored() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options {
        redactor: Redactor::new(["hunter2-is-my-token"]),
        ..Options::default()
    };
    let store = Store::open_with(directory.path().join("windlass.db"), options).unwrap();
    let with_secret = StoredServer {
        greeting: Some(json!({"instructions": "Use hunter2-is-my-token."})),
        ..server("time")
    };
    store.note_server("acme", &with_secret).unwrap();
    let known = store.known_server("acme", "time").unwrap().unwrap();
    let greeting = known.greeting.as_ref().map(Value::to_string).unwrap();
    assert!(!greeting.contains("hunter2"), "{greeting}");
    let revision = store.pins("acme", "time").unwrap().revision;
    let pins = [pin("add", None, "Use hunter2-is-my-token.")];
    let error = store
        .write_pins("acme", "time", revision, &pins)
        .unwrap_err();
    assert!(matches!(error, Error::SecretInStructure), "{error}");
    assert_eq!(store.pins("acme", "time").unwrap().pins, []);
}
