//! Tests of search by words alone. The embedder does not know the words, so meaning finds none of the texts.

use rusqlite::Connection;
use tempfile::TempDir;
use windlass_embed::{Bm25Index, StaticEmbedder, search_words};
use windlass_store::{Memory, NewDocument};

use super::{at, found, opened, scope, text};

/// A word in Tifinagh letters, which is in no vocabulary.
fn word(number: usize) -> String {
    let letter = |digit: usize| char::from_u32(0x2d30 + digit as u32).unwrap();
    [number / 400 % 20, number / 20 % 20, number % 20]
        .map(letter)
        .iter()
        .collect()
}

/// A paragraph so long that no two fit into one chunk.
fn paragraph(words: &[String]) -> String {
    let filler = (0..130).map(|number| word(7_000 + number % 10));
    let words = words.iter().cloned().chain(filler);
    words.collect::<Vec<_>>().join(" ")
}

fn remember(memory: &Memory, paragraphs: &[String]) {
    let whole = NewDocument::new(paragraphs.join("\n\n"), at(1));
    let stored = memory.remember(&scope("principal"), whole).unwrap();
    assert_eq!(stored.chunks, paragraphs.len());
}

/// The word score and the text of the best hit.
fn best(memory: &Memory, query: &str) -> (f32, String) {
    let hits = memory.search(&[scope("principal")], query, 1).unwrap();
    let best = hits.into_iter().next().unwrap();
    assert!(best.cosine.abs() < f32::EPSILON, "meaning finds nothing");
    (best.words, best.text)
}

#[test]
fn the_best_word_match_is_found_among_hundreds() {
    let directory = tempfile::tempdir().unwrap();
    let memory = opened(&directory);
    assert!(StaticEmbedder::new().embed(&word(1)).is_zero());
    // The first text is short and repeats the word. All later texts also have the words.
    let mut texts = vec![[word(1), word(1), word(1), word(2)].join(" ")];
    for number in 0..400 {
        let words = [word(1), word(2), word(3), word(100 + number)];
        texts.push(words.join(" ") + &format!(" {}", word(4)).repeat(number % 30));
    }
    for what in &texts {
        memory.remember(&scope("principal"), text(what)).unwrap();
    }
    for query in [
        word(1),
        format!("{} {}", word(1), word(2)),
        format!("{} {} {}", word(3), word(4), word(1)),
    ] {
        let scores = Bm25Index::build(&texts).scores(&query);
        let (score, _) = best(&memory, &query);
        let expected = scores.iter().copied().fold(0.0, f32::max);
        assert!((score - expected).abs() < 1e-4, "{score} {expected}");
    }
    assert_eq!(best(&memory, &word(1)).1, texts[0]);
}

#[test]
fn a_very_frequent_word_finds_no_chunks_next_to_rarer_words() {
    let directory = tempfile::tempdir().unwrap();
    let memory = opened(&directory);
    let (common, rare) = (word(1), word(2));
    let mut paragraphs = vec![paragraph(std::slice::from_ref(&common)); 1_999];
    paragraphs.push(paragraph(&[common.clone(), rare.clone()]));
    remember(&memory, &paragraphs);
    let (in_all, _) = best(&memory, &common);
    assert!(in_all < 0.01, "2,000 are counted: {in_all}");

    let more = paragraph(&[common.clone(), common.clone()]);
    memory.remember(&scope("principal"), text(&more)).unwrap();
    let (score, newest) = best(&memory, &common);
    assert!(score > 0.5, "2,001 are not counted: {score}");
    assert_eq!(newest, more, "a frequent word finds the newest chunk");

    let hits = memory.search(&[scope("principal")], &format!("{common} {rare}"), 10);
    let hits = hits.unwrap();
    assert_eq!(hits.len(), 1, "only the rare word finds chunks");
    assert!(hits[0].text.contains(&rare));
    assert!(hits[0].why.contains(&common), "both words are scored");
    let (alone, _) = best(&memory, &rare);
    assert!(hits[0].words > alone + 0.5);
}

#[test]
fn frequent_words_find_the_chunks_that_have_all_of_them() {
    let directory = tempfile::tempdir().unwrap();
    let memory = opened(&directory);
    let (left, right) = (word(1), word(2));
    let mut paragraphs = vec![paragraph(&[left.clone(), right.clone()])];
    for each in [&left, &right] {
        paragraphs.extend(vec![paragraph(std::slice::from_ref(each)); 2_001]);
    }
    remember(&memory, &paragraphs);
    let query = format!("{left} {right}");
    // Also together with a word that is in no chunk.
    for query in [query.clone(), format!("{query} {}", word(9))] {
        let hits = found(&memory, &[scope("principal")], &query);
        let hits: Vec<&str> = hits.iter().map(|hit| hit.trim_end()).collect();
        assert_eq!(hits, [paragraphs[0].as_str()], "{query}");
    }
    assert!(found(&memory, &[scope("principal")], &word(9)).is_empty());
}

/// Restores the earlier schema, in which scope and words were separate columns.
fn restore_old_schema(directory: &TempDir) {
    let connection = Connection::open(directory.path().join("windlass.db")).unwrap();
    connection
        .execute_batch(crate::suite::support::WITHOUT_EVIDENCE)
        .unwrap();
    connection
        .execute_batch(
            "DROP TABLE memory_sources;
             CREATE INDEX memory_documents_by_source ON memory_documents (scope, source);
             DROP TABLE memory_term_uses; DROP TABLE memory_terms; DROP INDEX memory_chunks_by_length;
             CREATE VIRTUAL TABLE memory_words USING fts5(scope, words,
                 tokenize = 'unicode61 remove_diacritics 0');
             PRAGMA user_version = 9;",
        )
        .unwrap();
    let mut select = connection
        .prepare("SELECT c.id, d.scope, c.text FROM memory_chunks c JOIN memory_documents d ON d.number = c.document")
        .unwrap();
    let mut rows = select.query([]).unwrap();
    while let Some(row) = rows.next().unwrap() {
        let (id, scope, text): (i64, i64, String) = (
            row.get(0).unwrap(),
            row.get(1).unwrap(),
            row.get(2).unwrap(),
        );
        let words = search_words(&text).join(" ");
        let insert = "INSERT INTO memory_words (rowid, scope, words) VALUES (?1, ?2, ?3)";
        connection
            .execute(insert, (id, format!("s{scope}"), words))
            .unwrap();
    }
}

#[test]
fn the_words_of_a_migrated_database_are_found() {
    let directory = tempfile::tempdir().unwrap();
    let memory = opened(&directory);
    let texts = [
        "Crème brûlée costs 10€ for two.",
        "東京の天気",
        "The mill stands by the river.",
        "…!?",
    ];
    let scopes = [scope("principal"), scope("agent:clerk")];
    for own in &scopes {
        for what in texts {
            memory.remember(own, text(what)).unwrap();
        }
    }
    let queries = ["creme 10€", "天気", "mill river", "s1 s2 scope"];
    let search_all =
        |memory: &Memory| queries.map(|query| memory.search(&scopes[1..], query, 10).unwrap());
    let expected = search_all(&memory);
    assert!(expected[..3].iter().all(|hits| hits[0].words > 0.0));
    drop(memory);
    restore_old_schema(&directory);
    assert_eq!(search_all(&opened(&directory)), expected);
}
