//! Tests of appending: order, numbers, ends.

use windlass_core::run::RunEnd;
use windlass_store::{Durability, Error, RunState};

use super::support::{at, drive, id, new_run, open, start, started, success, time_passed};

#[test]
fn events_are_numbered_from_one_and_read_back_unchanged() {
    let (_directory, store) = open();
    let (journal, mut run) = start(&store, "r1");
    let mut expected = vec![started("r1", "Find it.")];
    expected.extend(drive(&journal, &mut run, 12, &success()));
    journal.sync().unwrap();
    let (numbers, events): (Vec<u64>, Vec<_>) =
        store.events(&id("r1")).unwrap().into_iter().unzip();
    assert_eq!(numbers, (1..=13).collect::<Vec<u64>>());
    assert_eq!(events, expected);
    assert_eq!(store.fold(&id("r1")).unwrap().next(), run.next());
}

#[test]
fn a_synced_append_also_syncs_earlier_relaxed_appends() {
    let (_directory, store) = open();
    let (journal, _) = start(&store, "r1");
    for second in 1..100 {
        journal
            .append(&time_passed(second), Durability::Relaxed)
            .unwrap();
    }
    assert_eq!(
        journal
            .append(&time_passed(100), Durability::Synced)
            .unwrap(),
        101
    );
    assert_eq!(store.events(&id("r1")).unwrap().len(), 101);
}

#[test]
fn dropping_a_journal_keeps_acknowledged_events() {
    let (_directory, store) = open();
    let journal = store
        .start(new_run(), &started("r1", "x"), Durability::Relaxed)
        .unwrap();
    for second in 1..=50 {
        journal
            .append(&time_passed(second), Durability::Relaxed)
            .unwrap();
    }
    drop(journal);
    assert_eq!(store.events(&id("r1")).unwrap().len(), 51);
}

#[test]
fn concurrent_runs_keep_their_event_order() {
    let (_directory, store) = open();
    std::thread::scope(|scope| {
        for number in 0..16 {
            let store = &store;
            scope.spawn(move || {
                let name = format!("r{number}");
                let (journal, _) = start(store, &name);
                for second in 1..=40 {
                    let durability = if second % 4 == 0 {
                        Durability::Synced
                    } else {
                        Durability::Relaxed
                    };
                    let seq = journal.append(&time_passed(second), durability).unwrap();
                    assert_eq!(seq, second as u64 + 1);
                }
            });
        }
    });
    for number in 0..16 {
        let events = store.events(&id(&format!("r{number}"))).unwrap();
        let times: Vec<_> = events.iter().map(|(_, event)| event.at()).collect();
        assert_eq!(times, (0..=40).map(at).collect::<Vec<_>>());
    }
}

#[test]
fn several_threads_may_append_to_one_journal() {
    let (_directory, store) = open();
    let (journal, _) = start(&store, "r1");
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for second in 1..=20 {
                    journal
                        .append(&time_passed(second), Durability::Synced)
                        .unwrap();
                }
            });
        }
    });
    let numbers: Vec<u64> = store
        .events(&id("r1"))
        .unwrap()
        .into_iter()
        .map(|(seq, _)| seq)
        .collect();
    assert_eq!(numbers, (1..=161).collect::<Vec<u64>>());
}

#[test]
fn a_run_ends_once_with_the_time_of_its_last_event() {
    let (_directory, store) = open();
    let (journal, _) = start(&store, "r1");
    journal
        .append(&time_passed(7), Durability::Relaxed)
        .unwrap();
    journal.end(&RunEnd::Completed).unwrap();
    let summary = store.summary(&id("r1")).unwrap();
    assert_eq!(summary.end, Some(RunEnd::Completed));
    assert_eq!(summary.ended_at, Some(at(7)));
    assert_eq!(summary.state, RunState::Ended);

    let error = journal
        .append(&time_passed(8), Durability::Synced)
        .unwrap_err();
    assert!(matches!(error, Error::Ended(_)), "{error}");
    drop(journal);
    let error = store.take_over(&id("r1")).unwrap_err();
    assert!(matches!(error, Error::Ended(_)), "{error}");
}

#[test]
fn a_run_that_waits_for_a_person_can_be_taken_over() {
    let (_directory, store) = open();
    let (journal, _) = start(&store, "r1");
    journal.end(&RunEnd::WaitingForPerson).unwrap();
    drop(journal);
    assert_eq!(store.summary(&id("r1")).unwrap().state, RunState::Waiting);
    let journal = store.take_over(&id("r1")).unwrap();
    let summary = store.summary(&id("r1")).unwrap();
    assert_eq!((summary.state, summary.end), (RunState::Open, None));
    assert_eq!(
        journal.append(&time_passed(1), Durability::Synced).unwrap(),
        2
    );
}

#[test]
fn a_run_starts_once_and_with_its_first_event() {
    let (_directory, store) = open();
    drop(start(&store, "r1"));
    let error = store
        .start(new_run(), &started("r1", "x"), Durability::Synced)
        .unwrap_err();
    assert!(matches!(error, Error::RunExists(_)), "{error}");
    let error = store
        .start(new_run(), &time_passed(1), Durability::Synced)
        .unwrap_err();
    assert!(matches!(error, Error::NotStarted), "{error}");
}

#[test]
fn callbacks_are_called_when_writes_are_stored() {
    let (_directory, store) = open();
    let (sender, results) = std::sync::mpsc::channel();
    let callback = || {
        let sender = sender.clone();
        move |result| sender.send(result).unwrap()
    };
    let (journal, _) = start(&store, "r1");
    assert_eq!(
        journal
            .append(&time_passed(1), Durability::Relaxed)
            .unwrap(),
        2
    );
    journal
        .append_then(&journal.redacted(time_passed(2)).unwrap(), callback())
        .unwrap();
    results.recv().unwrap().unwrap();
    assert_eq!(store.events(&id("r1")).unwrap().len(), 3);
    journal.end_then(&RunEnd::Completed, callback()).unwrap();
    results.recv().unwrap().unwrap();
    assert_eq!(store.summary(&id("r1")).unwrap().state, RunState::Ended);

    journal
        .append_then(&journal.redacted(time_passed(3)).unwrap(), callback())
        .unwrap();
    let error = results.recv().unwrap().unwrap_err();
    assert!(matches!(error, Error::Ended(_)), "{error}");
}
