//! The stored state while no process runs, and its invariants. It is read from a copy, so that the next process
//! finds the data unchanged.

use std::collections::BTreeMap;

use windlass_core::approval::{Approval, ApprovalOutcome, ApprovalStatus, Hold};
use windlass_core::gate::Verdict;
use windlass_core::run::{Event, Run};
use windlass_spec::{CallId, CallRecord, CallState};
use windlass_store::{
    ApprovalFilter, HoldFilter, InboxAction, InboxCommand, RunFilter, RunState, Store,
};

use super::super::program::TestProject;
use super::super::seeded::at;
use super::office::EDITED;

/// One run, from its journal.
pub(super) struct RecordedRun {
    pub(super) state: RunState,
    pub(super) events: Vec<Event>,
    pub(super) run: Run,
    inbox: Vec<InboxCommand>,
}

/// Everything that is stored.
pub(super) struct StoredState {
    /// The lines that tools wrote, with their counts.
    pub(super) effects: BTreeMap<String, usize>,
    /// The runs, the outermost first.
    pub(super) runs: Vec<RecordedRun>,
    pub(super) approvals: Vec<Approval>,
    pub(super) holds: Vec<Hold>,
}

impl StoredState {
    pub(super) fn at(project: &TestProject) -> Self {
        // Read before the journal, because every effect must already be in the journal.
        let mut effects = BTreeMap::new();
        for line in project.read("effects").lines() {
            *effects.entry(line.to_owned()).or_default() += 1;
        }
        let mut state = Self {
            effects,
            runs: Vec::new(),
            approvals: Vec::new(),
            holds: Vec::new(),
        };
        let copy = tempfile::tempdir().unwrap();
        for name in ["windlass.db", "windlass.db-wal"] {
            let from = project.path("data").join(name);
            if from.exists() {
                std::fs::copy(from, copy.path().join(name)).unwrap();
            }
        }
        if !copy.path().join("windlass.db").exists() {
            return state;
        }
        let store = Store::open(copy.path().join("windlass.db")).unwrap();
        for summary in store.runs(&RunFilter::default()).unwrap() {
            let numbered = store.events(&summary.run).unwrap();
            for ((number, _), expected) in numbered.iter().zip(1..) {
                assert_eq!(*number, expected, "an event is missing in {}", summary.run);
            }
            let events: Vec<Event> = numbered.into_iter().map(|(_, event)| event).collect();
            let run = Run::fold(&events).unwrap_or_else(|error| panic!("{error}: {events:#?}"));
            state.runs.push(RecordedRun {
                state: summary.state,
                inbox: store.inbox(&summary.run).unwrap(),
                events,
                run,
            });
        }
        state
            .runs
            .sort_by_key(|recorded| recorded.run.id().to_string());
        let all = ApprovalFilter::default();
        state.approvals = store.approvals(&all, at(0)).unwrap();
        state.holds = store.holds(&HoldFilter::default()).unwrap();
        state
    }

    /// The outermost run. There is only one, because the run is resumed and not started again.
    pub(super) fn outermost(&self) -> Option<&RecordedRun> {
        let mut outermost = self
            .runs
            .iter()
            .filter(|recorded| recorded.run.parent().is_none());
        let found = outermost.next();
        assert!(outermost.next().is_none(), "the work was begun twice");
        found
    }

    /// The only call of a tool, with its run.
    pub(super) fn call(&self, tool: &str) -> Option<(&RecordedRun, &CallRecord)> {
        let calls = self.runs.iter().flat_map(|recorded| {
            let calls = recorded.run.calls();
            calls.map(move |call| (recorded, call))
        });
        let mut calls = calls.filter(|(_, call)| call.tool_name().as_str() == tool);
        let found = calls.next();
        assert!(calls.next().is_none(), "`{tool}` was asked for twice");
        found
    }

    /// The tools whose calls have started and not ended, by the journal.
    pub(super) fn in_flight(&self) -> Vec<String> {
        let calls = self.runs.iter().flat_map(|recorded| recorded.run.calls());
        calls
            .filter(|call| call.state() == CallState::Running)
            .map(|call| call.tool_name().to_string())
            .collect()
    }

    pub(super) fn count(&self, tool: &str) -> usize {
        let lines = self.effects.iter();
        lines
            .filter(|(line, _)| line.split(' ').next() == Some(tool))
            .map(|(_, count)| count)
            .sum()
    }

    /// Checks the invariants.
    pub(super) fn check(&self) {
        self.check_effects();
        self.check_decisions();
    }

    /// Every effect was decided, approved where needed, and recorded as started before. No effect that must
    /// not be repeated occurs twice.
    fn check_effects(&self) {
        for line in self.effects.keys() {
            let (tool, arguments) = line.split_once(' ').unwrap();
            let (recorded, call) = self
                .call(tool)
                .unwrap_or_else(|| panic!("`{line}` was done without a call"));
            let decided = position(&recorded.events, |event| match event {
                Event::Decided { call: of, .. } => of == call.id(),
                _ => false,
            });
            let decided = decided.unwrap_or_else(|| panic!("`{line}` was done undecided"));
            let started = position(&recorded.events, |event| match event {
                Event::CallStarted { call: of, .. } => of == call.id(),
                _ => false,
            });
            let started = started.unwrap_or_else(|| {
                panic!("`{line}` was done before it was written down that it starts")
            });
            assert!(decided < started, "`{line}` started undecided");
            let Event::Decided { decision, .. } = &recorded.events[decided] else {
                unreachable!()
            };
            match decision.verdict() {
                Verdict::Allow => assert!(matches!(tool, "note" | "stamp"), "{line}"),
                Verdict::Hold => assert!(matches!(tool, "post" | "later"), "{line}"),
                Verdict::Ask => {
                    let approved = position(&recorded.events[..started], |event| match event {
                        Event::Settled { approval, .. } => {
                            approval.call() == call.id()
                                && matches!(approval.outcome(), Some(ApprovalOutcome::Run { .. }))
                        }
                        _ => false,
                    });
                    assert!(approved.is_some(), "`{line}` was done without approval");
                }
                Verdict::Deny => panic!("`{line}` was done despite a denial"),
            }
            let expected = if tool == "pay" { EDITED } else { "{}" };
            assert_eq!(arguments, expected, "`{tool}` ran with other arguments");
        }
        for tool in ["post", "later", "pay", "wire"] {
            assert!(self.count(tool) <= 1, "`{tool}` was done twice");
        }
    }

    /// Every decision is once in the journal or in the inbox.
    fn check_decisions(&self) {
        for approval in &self.approvals {
            let call = approval.call();
            let recorded = self.of(call);
            let taken = recorded.events.iter().filter(
                |event| matches!(event, Event::Settled { approval: settled, .. } if **settled == *approval),
            );
            let under_way = recorded.inbox.iter().filter(
                |inbox| matches!(&inbox.action, InboxAction::Settled(settled) if **settled == *approval),
            );
            let is_withdrawn = approval.status() == ApprovalStatus::Cancelled;
            let is_decided = approval.status() != ApprovalStatus::Pending && !is_withdrawn;
            let expected = usize::from(is_decided);
            assert_eq!(
                taken.count() + under_way.count(),
                expected,
                "the decision about {call} was lost, or counts twice"
            );
        }
        for recorded in &self.runs {
            for event in &recorded.events {
                if let Event::Asked { approval, .. } = event {
                    let rows = self.approvals.iter();
                    let rows = rows.filter(|row| row.request() == approval.request());
                    assert_eq!(
                        rows.count(),
                        1,
                        "a question is missing in the list of approvals"
                    );
                }
            }
            for call in recorded.run.calls() {
                let decisions = recorded.events.iter().filter(
                    |event| matches!(event, Event::Decided { call: of, .. } if of == call.id()),
                );
                assert!(decisions.count() <= 1, "{} was decided twice", call.id());
            }
        }
        for hold in &self.holds {
            let recorded = self.of(hold.call());
            let undone = recorded
                .events
                .iter()
                .filter(|event| matches!(event, Event::Undone { call, .. } if call == hold.call()));
            let under_way = recorded.inbox.iter().filter(
                |inbox| matches!(&inbox.action, InboxAction::Undo(call) if call == hold.call()),
            );
            let is_undone = hold.status() == windlass_core::approval::HoldStatus::Undone;
            assert_eq!(
                undone.count() + under_way.count(),
                usize::from(is_undone),
                "the undo of {} was lost, or counts twice",
                hold.call()
            );
        }
    }

    /// The number of inbox commands that were not taken.
    pub(super) fn open_inbox_commands(&self) -> usize {
        self.runs.iter().map(|recorded| recorded.inbox.len()).sum()
    }

    /// The run of a call.
    pub(super) fn of(&self, call: &CallId) -> &RecordedRun {
        let mut runs = self.runs.iter();
        runs.find(|recorded| *recorded.run.id() == call.run)
            .unwrap_or_else(|| panic!("{call} is of no run"))
    }
}

fn position(events: &[Event], matches: impl Fn(&Event) -> bool) -> Option<usize> {
    events.iter().position(matches)
}
