//! Tests of gaps: one per run and moment, stored with the event that reports them, and without the content of
//! the task after a purge.

use std::collections::BTreeMap;
use std::time::Duration;

use rusqlite::Connection;
use serde_json::json;
use windlass_core::run::{Event, RunEnd};
use windlass_spec::{AgentName, GapMoment, ToolGapReport};
use windlass_store::{Durability, GapFilter, NewGap, Options, Redactor, Store};

use super::questions::identity;
use super::support::{
    answered, asked, at, contains, file_bytes, id, new_run, open, start, started,
};

const TASK: &str = "Tell grandmother by SMS where the cutlery is";

fn report(task: &str, capability: &str, tool: &str) -> ToolGapReport {
    let report = json!({
        "missing_tools": [capability],
        "attempted_task": task,
        "existing_tools_checked": ["search"],
        "confidence": 0.97,
        "capabilities": [{"capability": capability, "wanted_tool": tool}],
    });
    serde_json::from_value(report).unwrap()
}

fn agent() -> AgentName {
    AgentName::new("helper").unwrap()
}

fn offered(report: &ToolGapReport, second: i64) -> Event {
    Event::Offered {
        intent: None,
        tools: vec!["search".parse().unwrap()],
        left_out: Vec::new(),
        set: BTreeMap::new(),
        gap: Some(Box::new(report.clone().at_moment(GapMoment::BeforeRun))),
        disabled: Vec::new(),
        advice: None,
        environment: None,
        at: at(second),
    }
}

fn moments(store: &Store) -> Vec<(Option<String>, GapMoment)> {
    let gaps = store.gaps(&GapFilter::default()).unwrap();
    gaps.into_iter()
        .map(|gap| (gap.run.map(|run| run.to_string()), gap.moment))
        .collect()
}

#[test]
fn a_run_has_one_gap_per_moment() {
    let (_directory, store) = open();
    let (journal, _) = start(&store, "r1");
    let before = report(TASK, TASK, "tell_by_sms");
    for second in [1, 2] {
        journal
            .append(&offered(&before, second), Durability::Synced)
            .unwrap();
    }
    let (run, ada, agent) = (id("r1"), identity("ada"), agent());
    let during = report(TASK, "send_sms", "send_sms").at_moment(GapMoment::DuringRun);
    let new = |second| NewGap {
        run: Some(&run),
        who: &ada,
        agent: &agent,
        moment: GapMoment::DuringRun,
        at: at(second),
        report: &during,
    };
    assert!(store.record_gap(&new(3)).unwrap());
    assert!(!store.record_gap(&new(4)).unwrap(), "a resumed run");
    let r1 = || Some("r1".to_owned());
    assert_eq!(
        moments(&store),
        [(r1(), GapMoment::DuringRun), (r1(), GapMoment::BeforeRun)]
    );
    let gaps = store
        .gaps(&GapFilter {
            moment: Some(GapMoment::BeforeRun),
            ..GapFilter::default()
        })
        .unwrap();
    assert_eq!(gaps[0].wanted, ["tell_by_sms"]);
    assert_eq!(
        (gaps[0].noticed_at, gaps[0].agent.as_str()),
        (at(1), "helper")
    );
    assert_eq!(gaps[0].report.as_ref().unwrap().attempted_task(), TASK);
}

#[test]
fn every_load_without_a_tool_is_recorded() {
    let (_directory, store) = open();
    let (ada, agent) = (identity("ada"), agent());
    let gap_report = report("load the agent `helper`", "search", "search");
    for second in [1, 2] {
        let new = NewGap {
            run: None,
            who: &ada,
            agent: &agent,
            moment: GapMoment::AtLoad,
            at: at(second),
            report: &gap_report,
        };
        assert!(store.record_gap(&new).unwrap());
    }
    assert_eq!(
        moments(&store),
        [(None, GapMoment::AtLoad), (None, GapMoment::AtLoad)]
    );
    let later = GapFilter {
        since: Some(at(2)),
        ..GapFilter::default()
    };
    assert_eq!(store.gaps(&later).unwrap().len(), 1);
    let other = GapFilter {
        tenant: Some("other".to_owned()),
        ..GapFilter::default()
    };
    assert!(store.gaps(&other).unwrap().is_empty());
}

#[test]
fn gaps_in_journals_are_listed_until_they_are_recorded() {
    let (_directory, store) = open();
    let (journal, run) = start(&store, "r1");
    let answer = answered(&run, vec![asked("fly", json!({}))], 1);
    journal.append(&answer, Durability::Synced).unwrap();
    let gaps = store.gaps(&GapFilter::default()).unwrap();
    assert_eq!(
        (gaps.len(), gaps[0].gap, gaps[0].moment),
        (1, None, GapMoment::DuringRun)
    );
    assert_eq!(gaps[0].wanted, ["fly"]);
    let listed = gaps[0].report.as_ref().unwrap();
    assert_eq!(listed.existing_tools_checked()[0].as_str(), "search");
    let (run, ada, agent) = (id("r1"), identity("ada"), agent());
    let during = report(TASK, "fly", "fly");
    let new = NewGap {
        run: Some(&run),
        who: &ada,
        agent: &agent,
        moment: GapMoment::DuringRun,
        at: at(2),
        report: &during,
    };
    assert!(store.record_gap(&new).unwrap());
    let gaps = store.gaps(&GapFilter::default()).unwrap();
    assert_eq!(gaps.len(), 1, "not twice");
    assert!(gaps[0].gap.is_some());
}

#[test]
fn a_purge_keeps_the_wanted_tools_and_removes_the_report() {
    let (_directory, store) = open();
    let event = started("r1", TASK);
    let journal = store.start(new_run(), &event, Durability::Synced).unwrap();
    journal
        .append(
            &offered(&report(TASK, TASK, "send_sms"), 1),
            Durability::Synced,
        )
        .unwrap();
    journal
        .append(
            &Event::Cancelled {
                by: None,
                at: at(2),
            },
            Durability::Synced,
        )
        .unwrap();
    journal.end(&RunEnd::Cancelled).unwrap();
    assert!(contains(&file_bytes(&store), "cutlery"));
    let purged = store.purge(Duration::ZERO, at(1000)).unwrap();
    assert_eq!(purged.removed.len(), 1);
    let gaps = store.gaps(&GapFilter::default()).unwrap();
    assert_eq!((gaps.len(), &gaps[0].report), (1, &None));
    assert_eq!(gaps[0].wanted, ["send_sms"]);
    assert!(!contains(&file_bytes(&store), "cutlery"));
}

#[test]
fn gaps_are_never_deleted() {
    let (_directory, store) = open();
    let (journal, _) = start(&store, "r1");
    journal
        .append(
            &offered(&report(TASK, TASK, "send_sms"), 1),
            Durability::Synced,
        )
        .unwrap();
    let connection = Connection::open(store.path()).unwrap();
    let error = connection.execute("DELETE FROM tool_gaps", []).unwrap_err();
    assert!(error.to_string().contains("gaps are kept"), "{error}");
}

#[test]
fn no_secret_reaches_the_gaps() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options {
        redactor: Redactor::new(["cutlery-4711"]),
        ..Options::default()
    };
    let store = Store::open_with(directory.path().join("windlass.db"), options).unwrap();
    let (ada, agent) = (identity("ada"), agent());
    let task = "send cutlery-4711 home";
    let gap_report = report(task, task, "send_home");
    let new = NewGap {
        run: None,
        who: &ada,
        agent: &agent,
        moment: GapMoment::AtLoad,
        at: at(1),
        report: &gap_report,
    };
    store.record_gap(&new).unwrap();
    assert!(!contains(&file_bytes(&store), "4711"));
    let gaps = store.gaps(&GapFilter::default()).unwrap();
    assert_eq!(
        gaps[0].report.as_ref().unwrap().attempted_task(),
        "send [redacted] home"
    );
}
