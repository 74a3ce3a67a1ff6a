//! A look at what is on the disk while no process is at it, and what must be true of it at any time.
//! It is taken from a copy, so that the next process finds everything as the last one left it.

use std::collections::BTreeMap;

use windlass_core::approval::{Approval, ApprovalStatus, Hold, Outcome};
use windlass_core::gate::Verdict;
use windlass_core::run::{Event, Run};
use windlass_spec::{CallId, CallRecord, CallState};
use windlass_store::{
    ApprovalFilter, HoldFilter, InboxAction, InboxCommand, RunFilter, RunState, Store,
};

use super::super::program::Place;
use super::super::seeded::at;
use super::office::EDITED;

/// One run as its journal has it.
pub(super) struct Seen {
    pub(super) state: RunState,
    pub(super) events: Vec<Event>,
    pub(super) run: Run,
    mail: Vec<InboxCommand>,
}

/// What is there.
pub(super) struct Look {
    /// The lines that tools wrote, and how often each.
    pub(super) effects: BTreeMap<String, usize>,
    /// The runs, the outermost first.
    pub(super) runs: Vec<Seen>,
    pub(super) approvals: Vec<Approval>,
    pub(super) holds: Vec<Hold>,
}

impl Look {
    pub(super) fn at(place: &Place) -> Self {
        // Before the journal: what is done by then must be in it.
        let mut effects = BTreeMap::new();
        for line in place.read("effects").lines() {
            *effects.entry(line.to_owned()).or_default() += 1;
        }
        let mut look = Self {
            effects,
            runs: Vec::new(),
            approvals: Vec::new(),
            holds: Vec::new(),
        };
        let copy = tempfile::tempdir().unwrap();
        for name in ["windlass.db", "windlass.db-wal"] {
            let from = place.path("data").join(name);
            if from.exists() {
                std::fs::copy(from, copy.path().join(name)).unwrap();
            }
        }
        if !copy.path().join("windlass.db").exists() {
            return look;
        }
        let store = Store::open(copy.path().join("windlass.db")).unwrap();
        for summary in store.runs(&RunFilter::default()).unwrap() {
            let numbered = store.events(&summary.run).unwrap();
            for ((number, _), expected) in numbered.iter().zip(1..) {
                assert_eq!(*number, expected, "an event is missing in {}", summary.run);
            }
            let events: Vec<Event> = numbered.into_iter().map(|(_, event)| event).collect();
            let run = Run::fold(&events).unwrap_or_else(|error| panic!("{error}: {events:#?}"));
            look.runs.push(Seen {
                state: summary.state,
                mail: store.inbox(&summary.run).unwrap(),
                events,
                run,
            });
        }
        look.runs.sort_by_key(|seen| seen.run.id().to_string());
        let all = ApprovalFilter::default();
        look.approvals = store.approvals(&all, at(0)).unwrap();
        look.holds = store.holds(&HoldFilter::default()).unwrap();
        look
    }

    /// The outermost run. There is only one: nobody begins anew what can be gone on with.
    pub(super) fn outermost(&self) -> Option<&Seen> {
        let mut outermost = self.runs.iter().filter(|seen| seen.run.parent().is_none());
        let found = outermost.next();
        assert!(outermost.next().is_none(), "the work was begun twice");
        found
    }

    /// The one call of a tool, with the run it is part of.
    pub(super) fn call(&self, tool: &str) -> Option<(&Seen, &CallRecord)> {
        let calls = self.runs.iter().flat_map(|seen| {
            let calls = seen.run.calls();
            calls.map(move |call| (seen, call))
        });
        let mut calls = calls.filter(|(_, call)| call.tool_name().as_str() == tool);
        let found = calls.next();
        assert!(calls.next().is_none(), "`{tool}` was asked for twice");
        found
    }

    /// The tools whose calls have started and not ended, as far as the journal tells.
    pub(super) fn in_flight(&self) -> Vec<String> {
        let calls = self.runs.iter().flat_map(|seen| seen.run.calls());
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

    /// Holds what is there against what must be true at any time.
    pub(super) fn check(&self) {
        self.check_effects();
        self.check_decisions();
    }

    /// Nothing is done that was not decided, approved where that is needed, and written down as
    /// started before; and nothing twice that must not be.
    fn check_effects(&self) {
        for line in self.effects.keys() {
            let (tool, arguments) = line.split_once(' ').unwrap();
            let (seen, call) = self
                .call(tool)
                .unwrap_or_else(|| panic!("`{line}` was done and nobody asked for it"));
            let decided = position(&seen.events, |event| match event {
                Event::Decided { call: of, .. } => of == call.id(),
                _ => false,
            });
            let decided = decided.unwrap_or_else(|| panic!("`{line}` was done undecided"));
            let started = position(&seen.events, |event| match event {
                Event::CallStarted { call: of, .. } => of == call.id(),
                _ => false,
            });
            let started = started.unwrap_or_else(|| {
                panic!("`{line}` was done before it was written down that it starts")
            });
            assert!(decided < started, "`{line}` started undecided");
            let Event::Decided { decision, .. } = &seen.events[decided] else {
                unreachable!()
            };
            match decision.verdict() {
                Verdict::Allow => assert!(matches!(tool, "note" | "stamp"), "{line}"),
                Verdict::Hold => assert!(matches!(tool, "post" | "later"), "{line}"),
                Verdict::Ask => {
                    let approved = position(&seen.events[..started], |event| match event {
                        Event::Settled { approval, .. } => {
                            approval.call() == call.id()
                                && matches!(approval.outcome(), Some(Outcome::Run { .. }))
                        }
                        _ => false,
                    });
                    assert!(approved.is_some(), "`{line}` was done without leave");
                }
                Verdict::Deny => panic!("`{line}` was done in spite of a no"),
            }
            let expected = if tool == "pay" { EDITED } else { "{}" };
            assert_eq!(arguments, expected, "`{tool}` ran with other arguments");
        }
        for tool in ["post", "later", "pay", "wire"] {
            assert!(self.count(tool) <= 1, "`{tool}` was done twice");
        }
    }

    /// What was decided is in the journal, once, or on its way there.
    fn check_decisions(&self) {
        for approval in &self.approvals {
            let call = approval.call();
            let seen = self.of(call);
            let taken = seen.events.iter().filter(
                |event| matches!(event, Event::Settled { approval: told, .. } if **told == *approval),
            );
            let under_way = seen.mail.iter().filter(
                |mail| matches!(&mail.action, InboxAction::Settled(told) if **told == *approval),
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
        for seen in &self.runs {
            for event in &seen.events {
                if let Event::Asked { approval, .. } = event {
                    let rows = self.approvals.iter();
                    let rows = rows.filter(|row| row.request() == approval.request());
                    assert_eq!(rows.count(), 1, "a question is not where people look");
                }
            }
            for call in seen.run.calls() {
                let decisions = seen.events.iter().filter(
                    |event| matches!(event, Event::Decided { call: of, .. } if of == call.id()),
                );
                assert!(decisions.count() <= 1, "{} was decided twice", call.id());
            }
        }
        for hold in &self.holds {
            let seen = self.of(hold.call());
            let undone = seen
                .events
                .iter()
                .filter(|event| matches!(event, Event::Undone { call, .. } if call == hold.call()));
            let under_way = seen.mail.iter().filter(
                |mail| matches!(&mail.action, InboxAction::Undo(call) if call == hold.call()),
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

    /// How much of what people want was not taken yet.
    pub(super) fn open_mail(&self) -> usize {
        self.runs.iter().map(|seen| seen.mail.len()).sum()
    }

    /// The run a call is part of.
    pub(super) fn of(&self, call: &CallId) -> &Seen {
        let mut runs = self.runs.iter();
        runs.find(|seen| *seen.run.id() == call.run)
            .unwrap_or_else(|| panic!("{call} is of no run"))
    }
}

fn position(events: &[Event], is_it: impl Fn(&Event) -> bool) -> Option<usize> {
    events.iter().position(is_it)
}
