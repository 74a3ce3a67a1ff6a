//! A refused event leaves the run unchanged, so that a driver can try an event on the run itself.

use std::path::Path;

use super::*;

/// The golden journals of earlier versions.
fn journals() -> Vec<Vec<Event>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut journals: Vec<Vec<Event>> = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let events = text.lines().map(|line| serde_json::from_str(line).unwrap());
        journals.push(events.collect());
    }
    journals
}

/// The events of a journal with the id of another run, as far as they still deserialize.
fn with_run_id(journal: &[Event], run: &RunId) -> Vec<Event> {
    let from = Run::fold(&journal[..1]).unwrap().id().to_string();
    let with_run_id = journal.iter().filter_map(|event| {
        let text = serde_json::to_string(event).unwrap();
        serde_json::from_str(&text.replace(&from, run.as_str())).ok()
    });
    with_run_id.collect()
}

#[test]
fn refused_event_leaves_the_run_unchanged() {
    let journals = journals();
    let (mut refused, mut taken) = (0, 0);
    for journal in &journals {
        let mut run = Run::fold(&journal[..1]).unwrap();
        let events: Vec<Event> = journals
            .iter()
            .flat_map(|journal| with_run_id(journal, run.id()))
            .collect();
        for next in journal[1..].iter().map(Some).chain([None]) {
            for event in &events {
                let mut tried = run.clone();
                match tried.apply(event) {
                    Ok(()) => taken += 1,
                    Err(error) => {
                        refused += 1;
                        assert_eq!(tried, run, "{event:?}: {error}");
                    }
                }
            }
            if let Some(next) = next {
                run.apply(next).unwrap();
            }
        }
    }
    assert!(refused > 1_000 && taken > 100, "{refused} {taken}");
}
