//! Tests of memory: documents are found again, only in their scopes, and gone when they are forgotten.

mod concurrency;
mod embedders;
mod sources;
mod words;

use std::ops::Range;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;
use tempfile::TempDir;
use windlass_embed::{Bm25Index, HybridParameters, StaticEmbedder};
use windlass_spec::Timestamp;
use windlass_store::{
    Memory, MemoryError, MemoryScope, NewDocument, Options, Redactor, RememberOutcome, ScopeReach,
    Store, document_text,
};

fn at(second: i64) -> Timestamp {
    Timestamp::from_microseconds(second * 1_000_000)
}

fn opened(directory: &TempDir) -> Memory {
    let store = Store::open(directory.path().join("windlass.db")).unwrap();
    Memory::new(Arc::new(store))
}

fn scope(reach: &str) -> MemoryScope {
    MemoryScope::new("acme", "ada", reach.parse().unwrap())
}

fn text(text: &str) -> NewDocument {
    NewDocument::new(text, at(1))
}

fn found(memory: &Memory, scopes: &[MemoryScope], query: &str) -> Vec<String> {
    let hits = memory.search(scopes, query, 10).unwrap();
    hits.into_iter().map(|hit| hit.text).collect()
}

#[test]
fn a_stored_document_is_found_with_its_source_time_and_reason() {
    let directory = tempfile::tempdir().unwrap();
    let memory = opened(&directory);
    let own = scope("agent:clerk");
    memory
        .remember(&own, text("The office cat is called Mill."))
        .unwrap();
    let new = NewDocument {
        title: Some("Invoices".to_owned()),
        source: Some("notes/invoices.md".to_owned()),
        is_tainted: true,
        metadata: json!({"year": 2026}).as_object().cloned().unwrap(),
        ..NewDocument::new("The March invoice of the printer was paid twice.", at(7))
    };
    let stored = memory.remember(&own, new).unwrap();
    let hits = memory
        .search(std::slice::from_ref(&own), "invoice for march", 5)
        .unwrap();
    let best = &hits[0];
    assert_eq!(best.document, stored.id);
    assert_eq!(best.title.as_deref(), Some("Invoices"));
    assert_eq!(best.source.as_deref(), Some("notes/invoices.md"));
    assert_eq!(best.stored_at, at(7));
    assert!(best.tainted && best.cosine > 0.3 && best.words > 0.0);
    let lexical = HybridParameters::default().lexical_weight * best.words;
    assert!((best.score - best.cosine - lexical).abs() < 1e-6);
    assert!(
        best.why.ends_with("; words: invoice, march"),
        "{}",
        best.why
    );
    assert!(hits.iter().skip(1).all(|hit| !hit.tainted));
    let document = memory.document(&[own], &stored.id).unwrap();
    assert_eq!(document.metadata["year"], 2026);
}

#[test]
fn the_same_text_is_stored_once_with_a_new_time() {
    let directory = tempfile::tempdir().unwrap();
    let memory = opened(&directory);
    let own = scope("principal");
    let first = memory.remember(&own, text("Tea is at four.")).unwrap();
    let again = NewDocument {
        is_tainted: true,
        ..NewDocument::new("  Tea is at four.\n", at(9))
    };
    let second = memory.remember(&own, again).unwrap();
    assert_eq!(first.outcome, RememberOutcome::Added);
    assert_eq!(second.outcome, RememberOutcome::Known);
    assert_eq!((first.id.clone(), 1), (second.id, second.chunks));
    let documents = memory.documents(std::slice::from_ref(&own), 0, 10).unwrap();
    assert_eq!(documents.len(), 1);
    assert_eq!(documents[0].created_at, at(1));
    assert_eq!(documents[0].updated_at, at(9));
    assert!(documents[0].tainted, "a tainted document stays tainted");
    assert_eq!(found(&memory, std::slice::from_ref(&own), "tea").len(), 1);
    let elsewhere = memory.remember(&scope("run:r1"), text("Tea is at four."));
    assert_ne!(elsewhere.unwrap().id, first.id);
}

#[test]
fn documents_are_visible_only_in_their_scope() {
    let directory = tempfile::tempdir().unwrap();
    let memory = opened(&directory);
    let mut scopes = Vec::new();
    for tenant in ["acme", "other"] {
        for principal in ["ada", "bob"] {
            for reach in [
                "agent:clerk",
                "agent:run",
                "principal",
                "run:clerk",
                "run:r2",
            ] {
                let reach: ScopeReach = reach.parse().unwrap();
                scopes.push(MemoryScope::new(tenant, principal, reach));
            }
        }
    }
    let secret = |number: usize| format!("The password of the vault number{number} is willow.");
    let ids: Vec<String> = scopes
        .iter()
        .enumerate()
        .map(|(number, scope)| memory.remember(scope, text(&secret(number))).unwrap().id)
        .collect();
    for (number, own) in scopes.iter().enumerate() {
        let own = std::slice::from_ref(own);
        assert_eq!(
            found(&memory, own, "password of the vault"),
            [secret(number)]
        );
        let listed = memory.documents(own, 0, 100).unwrap();
        assert_eq!(listed.len(), 1);
        for (other, id) in ids.iter().enumerate() {
            let may = other == number;
            assert_eq!(memory.document(own, id).is_ok(), may);
            assert_eq!(memory.text(own, id).is_ok(), may);
            if !may {
                assert_eq!(
                    found(&memory, own, &format!("number{other}")),
                    [secret(number)]
                );
                let refused = memory.forget(own, id).unwrap_err();
                assert!(matches!(refused, MemoryError::NoSuchDocument(_)));
            }
        }
    }
    let pair = [scopes[0].clone(), scopes[7].clone()];
    let mut both = found(&memory, &pair, "password");
    both.sort();
    assert_eq!(both, [secret(0), secret(7)]);
    let known = memory.scopes("other", "bob").unwrap();
    assert_eq!(known.len(), 5);
}

/// Documents of other scopes must not change the weight of a word.
#[test]
fn scores_do_not_depend_on_other_scopes() {
    let directory = tempfile::tempdir().unwrap();
    let memory = opened(&directory);
    let own = [scope("agent:clerk")];
    for what in [
        "Ships carry grain.",
        "Mules carry salt.",
        "Trains carry coal.",
    ] {
        memory.remember(&own[0], text(what)).unwrap();
    }
    let before = memory.search(&own, "who carries salt", 10).unwrap();
    for number in 0..50 {
        let what = format!("Salt and grain and coal, lot {number}.");
        memory.remember(&scope("agent:other"), text(&what)).unwrap();
    }
    assert_eq!(memory.search(&own, "who carries salt", 10).unwrap(), before);
}

#[test]
fn invalid_documents_and_queries_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let memory = opened(&directory).with_max_document_bytes(1_000);
    let own = scope("principal");
    let refused = |what: &str| memory.remember(&own, text(what)).unwrap_err().to_string();
    assert_eq!(
        refused(" \n\t"),
        "there is nothing to remember: the text is empty"
    );
    assert!(
        refused("a\0b").starts_with("the document is not text in UTF-8: NUL character at byte 1")
    );
    assert!(
        refused(&"x".repeat(1_001)).starts_with("the document has 1001 bytes; the limit is 1000")
    );
    let binary = document_text(vec![b'a', 0xff, b'b']).unwrap_err();
    assert!(matches!(binary, MemoryError::Binary { at: 1, .. }));
    for query in ["", " \n "] {
        let refused = memory
            .search(std::slice::from_ref(&own), query, 5)
            .unwrap_err();
        assert!(matches!(refused, MemoryError::EmptyQuery));
    }
    let unnamed = MemoryScope::new("acme", "ada", ScopeReach::Agent(String::new()));
    assert!(memory.remember(&unnamed, text("x")).is_err());
    assert!("agent".parse::<ScopeReach>().is_err() && "principal:x".parse::<ScopeReach>().is_err());
    assert!(memory.documents(&[own], 0, 10).unwrap().is_empty());
}

#[test]
fn a_very_long_line_is_stored_whole() {
    let directory = tempfile::tempdir().unwrap();
    let memory = opened(&directory);
    let own = [scope("principal")];
    let line = "abcdefgh漢".repeat(120_000);
    let stored = memory.remember(&own[0], text(&line)).unwrap();
    assert!(stored.chunks > 1_000);
    assert_eq!(memory.text(&own, &stored.id).unwrap(), line);
}

#[test]
fn words_of_a_query_are_never_operators() {
    let directory = tempfile::tempdir().unwrap();
    let memory = opened(&directory);
    let own = [scope("agent:clerk")];
    memory
        .remember(&own[0], text("NEAR the mill, AND not far."))
        .unwrap();
    memory
        .remember(&scope("agent:other"), text("The mill of others."))
        .unwrap();
    let queries = [
        "\"mill\" OR scope:s2",
        "scope : s2",
        "mill*",
        "^mill",
        "NEAR(mill s2)",
        "mill\"",
        "{scope}: s2",
        "s2",
        "NOT mill",
        "(",
        "a AND",
        "-mill",
        "mill'; DROP TABLE memory_words; --",
    ];
    for query in queries {
        let found = found(&memory, &own, query);
        assert!(found.iter().all(|text| text.starts_with("NEAR")), "{query}");
    }
    assert_eq!(found(&memory, &own, "mill").len(), 1);
}

#[test]
fn words_in_any_script_are_found() {
    let directory = tempfile::tempdir().unwrap();
    let memory = opened(&directory);
    let own = [scope("principal")];
    for what in ["Crème brûlée für sechs", "東京の天気", "Привет мир"] {
        memory.remember(&own[0], text(what)).unwrap();
    }
    for (query, expected) in [
        ("creme BRULEE", "Crème"),
        ("天気", "東京"),
        ("МИР", "Привет"),
    ] {
        let hits = memory.search(&own, query, 1).unwrap();
        assert!(
            hits[0].text.starts_with(expected) && hits[0].words > 0.0,
            "{query}"
        );
    }
}

#[test]
fn a_document_replaces_its_source_if_requested() {
    let directory = tempfile::tempdir().unwrap();
    let memory = opened(&directory);
    let own = [scope("principal")];
    let version = |what: &str, replaces_source| NewDocument {
        source: Some("notes.md".to_owned()),
        replaces_source,
        ..text(what)
    };
    memory
        .remember(&own[0], version("The gate opens at eight.", true))
        .unwrap();
    let changed = memory
        .remember(&own[0], version("The gate opens at nine.", true))
        .unwrap();
    assert_eq!(changed.outcome, RememberOutcome::Replaced);
    assert_eq!(found(&memory, &own, "gate"), ["The gate opens at nine."]);
    let beside = memory
        .remember(&own[0], version("The gate is green.", false))
        .unwrap();
    assert_eq!(beside.outcome, RememberOutcome::Added);
    assert_eq!(found(&memory, &own, "gate").len(), 2);
}

#[test]
fn secrets_are_not_remembered() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options {
        redactor: Redactor::new(["hunter2hunter2"]),
        ..Options::default()
    };
    let store = Store::open_with(directory.path().join("windlass.db"), options).unwrap();
    let memory = Memory::new(Arc::new(store));
    let own = [scope("principal")];
    memory
        .remember(&own[0], text("The key is hunter2hunter2, keep it."))
        .unwrap();
    assert_eq!(
        found(&memory, &own, "key"),
        ["The key is [redacted], keep it."]
    );
}

fn bytes_of(directory: &TempDir) -> Vec<u8> {
    let mut bytes = Vec::new();
    for name in ["windlass.db", "windlass.db-wal", "windlass.db-shm"] {
        bytes.extend(std::fs::read(directory.path().join(name)).unwrap_or_default());
    }
    bytes
}

fn holds(bytes: &[u8], needle: &[u8]) -> bool {
    bytes.windows(needle.len()).any(|window| window == needle)
}

#[test]
fn a_forgotten_document_is_not_found_and_compacting_removes_it_from_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let memory = opened(&directory);
    let own = [scope("agent:clerk")];
    for number in 0..200 {
        memory
            .remember(&own[0], text(&format!("Lot {number} is kept in the barn.")))
            .unwrap();
    }
    let what = "The zanzibarquux treasure lies under the xylophone.";
    let new = NewDocument {
        title: Some("Hidden plughtitle".to_owned()),
        source: Some("plughsource.md".to_owned()),
        ..text(what)
    };
    let id = memory.remember(&own[0], new).unwrap().id;
    let vector = StaticEmbedder::new().embed(what);
    let components: Vec<u8> = vector.as_slice()[..16]
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    let compact = windlass_embed::CompactVector::of(&vector).to_bytes();
    let needles = [
        b"zanzibarquux".as_slice(),
        b"plughtitle",
        b"plughsource",
        id.as_bytes(),
        &components,
        &compact[8..],
    ];
    let before = bytes_of(&directory);
    assert!(needles.iter().all(|needle| holds(&before, needle)));
    assert_eq!(found(&memory, &own, "zanzibarquux")[0], what);

    memory.forget(&own, &id).unwrap();
    assert!(!found(&memory, &own, "zanzibarquux").contains(&what.to_owned()));
    memory.compact().unwrap();
    let after = bytes_of(&directory);
    for needle in needles {
        assert!(
            !holds(&after, needle),
            "{}",
            String::from_utf8_lossy(needle)
        );
    }
    assert!(!found(&memory, &own, "zanzibarquux").contains(&what.to_owned()));
    assert_eq!(memory.documents(&own, 0, 1_000).unwrap().len(), 200);
    let gone = memory.forget(&own, &id).unwrap_err().to_string();
    assert_eq!(gone, format!("there is no document `{id}` in this scope"));
}

#[test]
fn a_short_id_prefix_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let memory = opened(&directory);
    let own = [scope("principal")];
    let id = memory
        .remember(&own[0], text("Tea is at four."))
        .unwrap()
        .id;
    for short in ["", "d", "doc-", &id[..9]] {
        let refused = memory.forget(&own, short).unwrap_err();
        assert!(matches!(refused, MemoryError::ShortId(_)), "{refused}");
        assert!(!refused.is_failure());
    }
    assert_eq!(memory.document(&own, &id[..10]).unwrap().id, id);
    memory.forget(&own, &id[..10]).unwrap();
}

#[test]
fn compacting_reports_a_concurrent_reader() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options {
        lock_timeout: Some(std::time::Duration::from_millis(10)),
        ..Options::default()
    };
    let path = directory.path().join("windlass.db");
    let store = Store::open_with(&path, options).unwrap();
    let memory = Memory::new(Arc::new(store));
    let own = [scope("principal")];
    let id = memory
        .remember(&own[0], text("Tea is at four."))
        .unwrap()
        .id;
    let reader = rusqlite::Connection::open(&path).unwrap();
    let seen = "BEGIN; SELECT count(*) FROM memory_documents";
    reader.execute_batch(seen).unwrap();
    memory.forget(&own, &id).unwrap();
    let refused = memory.compact().unwrap_err();
    assert!(matches!(refused, MemoryError::InUse), "{refused}");
    assert!(refused.is_failure());
    assert!(memory.documents(&own, 0, 10).unwrap().is_empty());
    reader.execute_batch("COMMIT").unwrap();
    memory.compact().unwrap();
}

#[test]
fn an_index_that_missed_a_compaction_is_reloaded() {
    let directory = tempfile::tempdir().unwrap();
    let (memory, other) = (opened(&directory), opened(&directory));
    let own = [scope("principal")];
    let id = memory
        .remember(&own[0], text("The bell rings at noon."))
        .unwrap()
        .id;
    memory
        .remember(&own[0], text("The bell is made of bronze."))
        .unwrap();
    assert_eq!(found(&other, &own, "bell").len(), 2);
    memory.forget(&own, &id).unwrap();
    memory.compact().unwrap();
    assert_eq!(found(&other, &own, "bell"), ["The bell is made of bronze."]);
    memory.remember(&own[0], text("The bell is loud.")).unwrap();
    assert_eq!(found(&other, &own, "bell").len(), 2);
}

#[test]
fn statistics_count_stored_documents() {
    let directory = tempfile::tempdir().unwrap();
    let memory = opened(&directory);
    assert_eq!(memory.statistics("acme", "ada").unwrap().embedder, None);
    memory.remember(&scope("principal"), text("One.")).unwrap();
    let tainted = NewDocument {
        is_tainted: true,
        ..text("Three more words.")
    };
    memory.remember(&scope("agent:clerk"), tainted).unwrap();
    let statistics = memory.statistics("acme", "ada").unwrap();
    let embedder = statistics.embedder.unwrap();
    assert_eq!(embedder, "`static-256` (256 components)");
    let counts: Vec<_> = statistics
        .scopes
        .iter()
        .map(|scope| {
            (
                scope.scope.to_string(),
                scope.documents,
                scope.tainted,
                scope.bytes,
            )
        })
        .collect();
    let expected = [
        ("agent:clerk".to_owned(), 1, 1, 17),
        ("principal".to_owned(), 1, 0, 4),
    ];
    assert_eq!(counts, expected);
    assert!(memory.statistics("acme", "bob").unwrap().scopes.is_empty());
}

/// The results of scoring every chunk with the cosine and BM25.
fn brute_force(texts: &[String], query: &str, count: usize) -> Vec<(String, f32)> {
    let embedder = StaticEmbedder::new();
    let words = Bm25Index::build(texts).scores(query);
    let query = embedder.embed(query);
    let weight = HybridParameters::default().lexical_weight;
    let mut all: Vec<(String, f32)> = texts
        .iter()
        .zip(words)
        .map(|(text, words)| (text.clone(), embedder.embed(text).cosine(&query), words))
        .filter(|(_, cosine, words)| *cosine > 0.0 || *words > 0.0)
        .map(|(text, cosine, words)| (text, cosine + weight * words))
        .collect();
    all.sort_by(|left, right| right.1.total_cmp(&left.1));
    all.truncate(count);
    all
}

#[derive(Debug, Clone)]
enum Step {
    Remember(String),
    Forget(usize),
    Search(String),
}

fn sentence(length: Range<usize>) -> impl Strategy<Value = String> {
    let words = [
        "invoice", "march", "paid", "printer", "weather", "rain", "tomorrow", "train", "ticket",
        "Berlin", "the", "is", "not", "dog", "walks", "river", "bridge", "xqzt", "7", "AND",
    ];
    sentence_of(words.to_vec(), length)
}

/// A sentence of words that the embedder does not know, so that only the word score counts.
fn unknown_sentence(length: Range<usize>) -> impl Strategy<Value = String> {
    let words = ["ⴰⴱ", "ⴱⴳ", "ⴳⴷ", "ⴷⴹ", "ⴹⴻ", "ⴻⴼ", "ⴼⴽ", "ⴽⵀ"];
    sentence_of(words.to_vec(), length)
}

fn sentence_of(words: Vec<&'static str>, length: Range<usize>) -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(words), length).prop_map(|words| words.join(" "))
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => sentence(1..9).prop_map(Step::Remember),
        1 => (0usize..40).prop_map(Step::Forget),
        3 => sentence(1..9).prop_map(Step::Search),
    ]
}

fn check_against_brute_force(
    memory: &Memory,
    scopes: &[MemoryScope],
    texts: &[String],
    query: &str,
) -> Result<(), TestCaseError> {
    let expected = brute_force(texts, query, 10);
    let hits = memory.search(scopes, query, 10).unwrap();
    prop_assert_eq!(hits.len(), expected.len());
    for (hit, (text, score)) in hits.iter().zip(&expected) {
        prop_assert!((hit.score - score).abs() < 1e-4, "{} {}", hit.score, score);
        let nearly = expected
            .iter()
            .filter(|(_, other)| (other - score).abs() < 1e-4);
        prop_assert!(nearly.count() > 1 || &hit.text == text);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn a_search_finds_the_same_as_brute_force(steps in prop::collection::vec(step(), 1..40)) {
        let directory = tempfile::tempdir().unwrap();
        let (memory, reader) = (opened(&directory), opened(&directory));
        let own = [scope("agent:clerk")];
        let mut kept: Vec<(String, String)> = Vec::new();
        for step in steps {
            match step {
                Step::Remember(what) => {
                    let stored = memory.remember(&own[0], text(&what)).unwrap();
                    let is_known = kept.iter().any(|(id, _)| *id == stored.id);
                    prop_assert_eq!(stored.outcome == RememberOutcome::Known, is_known);
                    if !is_known {
                        kept.push((stored.id, what));
                    }
                }
                Step::Forget(place) if place < kept.len() => {
                    let (id, _) = kept.remove(place);
                    memory.forget(&own, &id).unwrap();
                }
                Step::Forget(_) => {}
                Step::Search(query) => {
                    let texts: Vec<String> = kept.iter().map(|(_, text)| text.clone()).collect();
                    // Another process immediately gets the same results.
                    for memory in [&memory, &reader] {
                        check_against_brute_force(memory, &own, &texts, &query)?;
                    }
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4))]
    /// So many documents that neither search alone scores all of them.
    #[test]
    fn a_search_among_hundreds_of_similar_texts_finds_the_same_as_brute_force(
        texts in prop::collection::hash_set(
            prop_oneof![sentence(1..40), unknown_sentence(1..40)], 150..250
        ),
        queries in prop::collection::vec(prop_oneof![sentence(1..5), unknown_sentence(1..5)], 8),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let memory = opened(&directory);
        let own = [scope("agent:clerk")];
        let texts: Vec<String> = texts.into_iter().collect();
        for what in &texts {
            memory.remember(&own[0], text(what)).unwrap();
        }
        for query in queries {
            check_against_brute_force(&memory, &own, &texts, &query)?;
        }
    }
}
