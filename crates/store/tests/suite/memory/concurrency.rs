//! Tests of concurrent writers and readers of one database, through several stores.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use windlass_store::NewDocument;

use super::{at, found, opened, scope};

const WRITERS: usize = 4;
const EACH: usize = 40;

#[test]
fn concurrent_writers_and_readers_see_consistent_data() {
    let directory = tempfile::tempdir().unwrap();
    let own = [scope("principal")];
    // Each has what another process would have: a connection, a writer thread, an index.
    let memories: Vec<_> = (0..WRITERS).map(|_| opened(&directory)).collect();
    let is_over = AtomicBool::new(false);
    thread::scope(|threads| {
        let reader = threads.spawn(|| {
            let memory = opened(&directory);
            let mut seen = 0;
            while !is_over.load(Ordering::SeqCst) {
                let hits = memory.search(&own, "a lot is kept", 500).unwrap();
                assert!(hits.iter().all(|hit| hit.text.starts_with("Lot")));
                // Nothing is forgotten before everything is written, so no search finds less than before.
                assert!(hits.len() >= seen, "{} after {seen}", hits.len());
                seen = hits.len();
            }
            seen
        });
        let writers: Vec<_> = memories
            .iter()
            .enumerate()
            .map(|(writer, memory)| {
                let own = &own;
                threads.spawn(move || {
                    for number in 0..EACH {
                        let what = format!("Lot w{writer}n{number} is kept.");
                        memory
                            .remember(&own[0], NewDocument::new(&what, at(1)))
                            .unwrap();
                        // The writer finds it immediately.
                        assert_eq!(found(memory, own, &format!("w{writer}n{number}"))[0], what);
                        // All writers store the same text; it is stored once.
                        let same = NewDocument::new("Lot of all is kept.", at(2));
                        memory.remember(&own[0], same).unwrap();
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.join().unwrap();
        }
        is_over.store(true, Ordering::SeqCst);
        assert!(reader.join().unwrap() <= WRITERS * EACH + 1);
    });
    for memory in &memories {
        let all = memory.search(&own, "lot kept", 1_000).unwrap();
        assert_eq!(all.len(), WRITERS * EACH + 1);
    }
    thread::scope(|threads| {
        for (writer, memory) in memories.iter().enumerate() {
            let own = &own;
            threads.spawn(move || {
                for document in memory.documents(own, 0, 1_000).unwrap() {
                    let text = memory.text(own, &document.id).unwrap_or_default();
                    if text.starts_with(&format!("Lot w{writer}")) {
                        memory.forget(own, &document.id).unwrap();
                    }
                }
            });
        }
    });
    for memory in &memories {
        assert_eq!(found(memory, &own, "lot kept"), ["Lot of all is kept."]);
    }
}
