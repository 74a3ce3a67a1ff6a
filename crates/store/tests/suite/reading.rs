//! Tests of finding, listing and exporting runs.

use serde_json::Value;
use windlass_core::run::{Event, RunEnd};
use windlass_store::{Durability, Error, RunFilter, RunState};

use super::support::{at, drive, id, new_run, open, start, started, success};

#[test]
fn a_run_is_found_by_a_prefix_of_its_id() {
    let (_directory, store) = open();
    for run in ["abc", "abcd", "abz", "x:1"] {
        drop(start(&store, run));
    }
    assert_eq!(store.find("acme", "abz").unwrap(), id("abz"));
    assert_eq!(store.find("acme", "x").unwrap(), id("x:1"));
    assert_eq!(
        store.find("acme", "abc").unwrap(),
        id("abc"),
        "an exact match wins"
    );
    let of_others = store.find("other", "abz").unwrap_err();
    assert!(matches!(of_others, Error::NoMatch(_)), "{of_others}");
    let error = store.find("acme", "ab").unwrap_err();
    let Error::SeveralMatch { runs, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!(*runs, [id("abc"), id("abcd"), id("abz")]);
    for nothing in ["y", "%", "ABC", "abc~"] {
        assert!(
            matches!(store.find("acme", nothing), Err(Error::NoMatch(_))),
            "{nothing}"
        );
    }
}

#[test]
fn runs_are_listed_latest_first_and_filtered() {
    let (_directory, store) = open();
    for (number, name) in ["r1", "r2", "r3"].into_iter().enumerate() {
        let mut event = started(name, "Find it.");
        if let Event::Started { at: time, .. } = &mut event {
            *time = at(number as i64);
        }
        let journal = store.start(new_run(), &event, Durability::Synced).unwrap();
        if name == "r2" {
            journal.end(&RunEnd::IterationLimit).unwrap();
        }
    }
    let listed = |filter: RunFilter| -> Vec<String> {
        store
            .runs(&filter)
            .unwrap()
            .into_iter()
            .map(|run| run.run.to_string())
            .collect()
    };
    assert_eq!(listed(RunFilter::default()), ["r3", "r2", "r1"]);
    assert_eq!(
        listed(RunFilter {
            limit: Some(1),
            ..RunFilter::default()
        }),
        ["r3"]
    );
    let ended = RunFilter {
        state: Some(RunState::Ended),
        ..RunFilter::default()
    };
    assert_eq!(listed(ended), ["r2"]);
    let agent = |name: &str| RunFilter {
        agent: Some(name.to_owned()),
        ..RunFilter::default()
    };
    assert_eq!(listed(agent("helper")).len(), 3);
    assert!(listed(agent("nobody")).is_empty());
    let page = |after: &str| RunFilter {
        after: Some(id(after)),
        limit: Some(2),
        ..RunFilter::default()
    };
    assert_eq!(listed(page("r3")), ["r2", "r1"]);
    assert_eq!(listed(page("r2")), ["r1"]);
    assert_eq!(listed(page("r1")), [""; 0]);
    assert_eq!(listed(page("unknown")), [""; 0]);
    let since = RunFilter {
        since: Some(at(1)),
        ..RunFilter::default()
    };
    assert_eq!(listed(since), ["r3", "r2"]);
    let principal = |name: &str| RunFilter {
        principal: Some(name.to_owned()),
        ..RunFilter::default()
    };
    assert!(listed(principal("nobody")).is_empty());

    let summary = store.summary(&id("r1")).unwrap();
    assert_eq!(
        (summary.tenant.as_str(), summary.principal.as_str()),
        ("acme", "ada")
    );
    assert_eq!(
        (summary.task_id.as_deref(), summary.task.as_deref()),
        (Some("t-1"), Some("Find it."))
    );
    assert_eq!(
        (summary.started_at, summary.events, summary.purged),
        (at(0), 1, None)
    );
}

#[test]
fn an_export_has_one_object_per_line_in_order() {
    let (_directory, store) = open();
    let (journal, mut run) = start(&store, "r1");
    drive(&journal, &mut run, 8, &success());
    journal.sync().unwrap();
    let mut bytes = Vec::new();
    assert_eq!(store.export(&id("r1"), &mut bytes).unwrap(), 9);
    let text = String::from_utf8(bytes).unwrap();
    let events = store.events(&id("r1")).unwrap();
    assert_eq!(text.lines().count(), events.len());
    for (line, (seq, event)) in text.lines().zip(events) {
        let line: Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["seq"], seq);
        assert_eq!(line["run"], "r1");
        assert_eq!(line["event"], serde_json::to_value(event).unwrap());
    }
}

#[test]
fn a_run_that_does_not_exist_has_no_events() {
    let (_directory, store) = open();
    assert!(matches!(store.events(&id("r1")), Err(Error::NoSuchRun(_))));
    assert!(matches!(store.fold(&id("r1")), Err(Error::NoSuchRun(_))));
    assert!(matches!(
        store.export(&id("r1"), Vec::new()),
        Err(Error::NoSuchRun(_))
    ));
}

#[test]
fn a_long_task_is_shortened_only_in_lists() {
    let (_directory, store) = open();
    let task = "größer ".repeat(700_000);
    let event = started("r1", &task);
    let _journal = store.start(new_run(), &event, Durability::Synced).unwrap();
    assert_eq!(
        store
            .summary(&id("r1"))
            .unwrap()
            .task
            .unwrap()
            .chars()
            .count(),
        500
    );
    assert_eq!(store.events(&id("r1")).unwrap(), [(1, event)]);
}
