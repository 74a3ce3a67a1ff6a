//! Tests of documents with several sources: a document stays as long as one of its sources has it.

use windlass_store::{Memory, NewDocument, RememberOutcome, StoredDocument};

use super::{found, opened, scope, text};

const OLD: &str = "The gate opens at eight.";
const NEW: &str = "The gate opens at nine.";

/// A file as an import reads it.
fn file(name: &str, what: &str) -> NewDocument {
    NewDocument {
        source: Some(format!("/notes/{name}")),
        title: Some(name.to_owned()),
        replaces_source: true,
        ..text(what)
    }
}

fn import(memory: &Memory, name: &str, what: &str) -> RememberOutcome {
    let own = scope("principal");
    let file = file(name, what);
    let is_unchanged = memory.unchanged(&own, &file).unwrap().is_some();
    let outcome = memory.remember(&own, file.clone()).unwrap().outcome;
    assert!(!is_unchanged || outcome == RememberOutcome::Known);
    assert!(memory.unchanged(&own, &file).unwrap().is_some());
    outcome
}

fn documents(memory: &Memory) -> Vec<StoredDocument> {
    memory.documents(&[scope("principal")], 0, 10).unwrap()
}

fn all(memory: &Memory) -> Vec<String> {
    let mut all = found(memory, &[scope("principal")], "when does the gate open");
    all.sort();
    all
}

#[test]
fn a_file_that_becomes_equal_to_another_leaves_no_old_document() {
    let directory = tempfile::tempdir().unwrap();
    let memory = opened(&directory);
    import(&memory, "a.txt", NEW);
    import(&memory, "z.txt", OLD);
    assert_eq!(
        memory
            .unchanged(&scope("principal"), &file("z.txt", NEW))
            .unwrap(),
        None,
        "although the text is stored"
    );
    assert_eq!(import(&memory, "z.txt", NEW), RememberOutcome::Replaced);
    assert_eq!(all(&memory), [NEW]);
    assert_eq!(import(&memory, "z.txt", NEW), RememberOutcome::Known);
}

#[test]
fn a_document_stays_while_another_file_has_it() {
    let directory = tempfile::tempdir().unwrap();
    let memory = opened(&directory);
    import(&memory, "z.txt", OLD);
    assert_eq!(import(&memory, "a.txt", OLD), RememberOutcome::Known);
    assert_eq!(documents(&memory)[0].title.as_deref(), Some("z.txt"));

    assert_eq!(import(&memory, "z.txt", NEW), RememberOutcome::Replaced);
    assert_eq!(all(&memory), [OLD, NEW]);
    let old = documents(&memory)
        .into_iter()
        .find(|document| document.source.as_deref() == Some("/notes/a.txt"));
    assert_eq!(old.unwrap().title.as_deref(), Some("a.txt"));

    assert_eq!(import(&memory, "a.txt", NEW), RememberOutcome::Replaced);
    assert_eq!(all(&memory), [NEW], "no source has it any more");
}

#[test]
fn a_document_stored_without_a_source_stays_when_a_file_changes() {
    let directory = tempfile::tempdir().unwrap();
    let memory = opened(&directory);
    let own = scope("principal");
    let id = memory.remember(&own, text(OLD)).unwrap().id;
    import(&memory, "a.txt", OLD);
    import(&memory, "a.txt", NEW);
    assert_eq!(all(&memory), [OLD, NEW]);
    memory.forget(std::slice::from_ref(&own), &id).unwrap();
    assert_eq!(all(&memory), [NEW]);
    // The forgotten entry without a source does not keep a document that comes only from a file.
    import(&memory, "a.txt", OLD);
    import(&memory, "a.txt", NEW);
    assert_eq!(all(&memory), [NEW]);
}

#[test]
fn a_newly_tainted_text_is_not_unchanged() {
    let directory = tempfile::tempdir().unwrap();
    let memory = opened(&directory);
    let own = scope("principal");
    import(&memory, "a.txt", OLD);
    let tainted = NewDocument {
        is_tainted: true,
        ..file("a.txt", OLD)
    };
    assert_eq!(memory.unchanged(&own, &tainted).unwrap(), None);
    memory.remember(&own, tainted.clone()).unwrap();
    assert!(documents(&memory)[0].tainted);
    assert!(memory.unchanged(&own, &tainted).unwrap().is_some());
}
