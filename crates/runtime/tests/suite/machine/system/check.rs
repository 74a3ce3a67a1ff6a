//! The checks after every transition: that the database matches the reference, and invariants that do not depend
//! on the reference.

use std::collections::HashSet;

use serde_json::Value;
use windlass_core::approval::{Approval, ApprovalOutcome, ApprovalStatus, HoldStatus};
use windlass_core::gate::{Decision, Verdict};
use windlass_core::run::{Entry, Event, Run, RunEnd};
use windlass_spec::{CallId, CallState, ErrorCategory, RunId};
use windlass_store::{ApprovalFilter, Error, HoldFilter, InboxAction, RunState};

use super::super::model::{
    Call, CallType, End, Ended, Hold, InboxEntry, RunModel, RunProgress, Stage, Status, StoredState,
};
use super::super::reference::ReferenceState;
use super::super::simulated_process::at;
use super::{TestSystem, amount, call_id, run_id, tool};

/// An early time, so that reading expires nothing.
const BEFORE: i64 = -1;

impl TestSystem {
    /// Compares everything with the reference.
    pub(in super::super) fn check(&self, reference: &ReferenceState) {
        let mut expected: Vec<String> = reference
            .effects
            .iter()
            .map(|(call_ref, arguments)| {
                let kind = reference.runs[call_ref.run].script[call_ref.turn][call_ref.index];
                let amount = match kind {
                    CallType::Note => Value::Null,
                    _ => amount(*arguments),
                };
                format!("{} {call_ref} {amount}", tool(kind))
            })
            .collect();
        let mut effects = self.shared.effects.lock().unwrap().clone();
        let distinct: HashSet<&String> = effects.iter().collect();
        assert_eq!(distinct.len(), effects.len(), "an effect happened twice");
        expected.sort_unstable();
        effects.sort_unstable();
        assert_eq!(effects, expected, "the effects");
        for (number, model) in reference.runs.iter().enumerate() {
            let run = run_id(number);
            let events = self.observer.events(&run).unwrap();
            let events: Vec<Event> = events.into_iter().map(|(_, event)| event).collect();
            let seen = self.shared.seen.lock().unwrap();
            let seen = &seen[&run];
            assert!(
                seen.starts_with(&events),
                "{run}: the journal has other events"
            );
            let folded = Run::fold(&events).unwrap();
            check_progress(&folded, &events, &model.durable, number);
            self.check_rows(&run, model);
            self.check_settled(&run, &events, model);
            if model.live.is_some() {
                let taken = self.observer.take_over(&run);
                let is_owned = matches!(taken, Err(Error::OwnedElsewhere(_)));
                assert!(is_owned, "{run} has two owners");
            }
            let own = format!(" {run}:");
            for effect in effects.iter().filter(|effect| effect.contains(&own)) {
                check_approval(effect, &events);
            }
        }
    }

    fn check_rows(&self, run: &RunId, model: &RunModel) {
        let state = self.observer.summary(run).unwrap().state;
        let expected = match model.stored_state {
            StoredState::Open => RunState::Open,
            StoredState::Waiting => RunState::Waiting,
            StoredState::Ended => RunState::Ended,
        };
        assert_eq!(state, expected, "{run}");
        let filter = HoldFilter {
            run: Some(run.clone()),
            ..HoldFilter::default()
        };
        let holds = self.observer.holds(&filter).unwrap();
        assert_eq!(holds.len(), model.holds.len(), "{run}");
        for (call_ref, expected) in &model.holds {
            let hold = self.observer.hold(&call_id(*call_ref)).unwrap();
            let expected = match expected {
                Hold::Held => HoldStatus::Held,
                Hold::Released => HoldStatus::Released,
                Hold::Started => HoldStatus::Started,
                Hold::Undone => HoldStatus::Undone,
                Hold::Cancelled => HoldStatus::Cancelled,
            };
            assert_eq!(hold.status(), expected, "the hold of {call_ref}");
        }
        let inbox = self.observer.inbox(run).unwrap();
        let inbox: Vec<String> = inbox
            .iter()
            .map(|command| match &command.action {
                InboxAction::Settled(asked) => {
                    format!("settled {} {}", asked.call(), asked.status())
                }
                InboxAction::Undo(call) => format!("undo {call}"),
                InboxAction::Release(call) => format!("release {call}"),
                InboxAction::Cancel => "cancel".to_owned(),
                InboxAction::Mark { .. } | InboxAction::Replan { .. } => {
                    panic!("there are no plans")
                }
            })
            .collect();
        let expected: Vec<String> = model
            .inbox
            .iter()
            .map(|entry| match entry {
                InboxEntry::Settled(call_ref, number) => {
                    let status = status(model.questions[call_ref][*number].status);
                    format!("settled {call_ref} {status}")
                }
                InboxEntry::Undo(call_ref) => format!("undo {call_ref}"),
                InboxEntry::Release(call_ref) => format!("release {call_ref}"),
                InboxEntry::Cancel => "cancel".to_owned(),
            })
            .collect();
        assert_eq!(inbox, expected, "the inbox of {run}");
    }

    /// Checks that questions match the reference, that settled ones do not change, and that the run has received
    /// each result or will.
    fn check_settled(&self, run: &RunId, events: &[Event], model: &RunModel) {
        let filter = ApprovalFilter {
            run: Some(run.clone()),
            ..ApprovalFilter::default()
        };
        let mut found = self.observer.approvals(&filter, at(BEFORE)).unwrap();
        let inbox = self.observer.inbox(run).unwrap();
        for (call_ref, asked) in &model.questions {
            for (number, question) in asked.iter().enumerate() {
                let call = call_id(*call_ref);
                let place = found.iter().position(|found| *found.call() == call);
                let approval = found.remove(place.expect("it was asked"));
                assert_eq!(approval.status(), status(question.status), "{call_ref}");
                assert_eq!(approval.decisions().len(), question.decided.len());
                if approval.status() == ApprovalStatus::Pending {
                    continue;
                }
                let mut settled = self.settled.lock().unwrap();
                let first = settled.entry((call, number));
                let first = first.or_insert_with(|| approval.clone());
                assert_eq!(*first, approval, "a settled question has changed");
                let is_withdrawn = approval.status() == ApprovalStatus::Cancelled;
                assert!(
                    is_withdrawn || is_delivered(&approval, events, &inbox),
                    "the decision about {call_ref} is lost"
                );
            }
        }
        assert!(found.is_empty(), "{found:?} was not to be asked");
    }
}

/// Whether the result of a question is in the journal or in the inbox of its run.
fn is_delivered(
    approval: &Approval,
    events: &[Event],
    inbox: &[windlass_store::InboxCommand],
) -> bool {
    let is_waiting = inbox.iter().any(|command| match &command.action {
        InboxAction::Settled(settled) => **settled == *approval,
        _ => false,
    });
    let mut taken = events.iter().filter_map(|event| match event {
        Event::Settled { approval, .. } => Some(&**approval),
        _ => None,
    });
    is_waiting || taken.any(|taken| taken == approval)
}

/// Checks that an effect was allowed before it happened: approved with exactly these arguments, or held and not
/// undone in time.
fn check_approval(effect: &str, events: &[Event]) {
    let mut words = effect.split(' ');
    let (tool, call) = (words.next().unwrap(), words.next().unwrap());
    let amount: Value = serde_json::from_str(words.next().unwrap()).unwrap();
    let call: CallId = call.parse().unwrap();
    let started = events
        .iter()
        .position(|event| matches!(event, Event::CallStarted { call: of, .. } if *of == call));
    let before = &events[..started.expect("the start of a call with an effect is recorded")];
    if tool == "note" {
        let at = events[started.unwrap()].at();
        let is_due = before.iter().any(|event| match event {
            Event::Held {
                call: of, until, ..
            } => *of == call && *until <= at,
            Event::Released { call: of, .. } => *of == call,
            _ => false,
        });
        assert!(is_due, "{effect} happened too early");
        return;
    }
    let approval = before.iter().rev().find_map(|event| match event {
        Event::Settled { approval, .. } if *approval.call() == call => Some(approval),
        _ => None,
    });
    let approval = approval.expect("there is no approval");
    let Some(ApprovalOutcome::Run { arguments, .. }) = approval.outcome() else {
        panic!("{effect} was not approved")
    };
    assert_eq!(arguments["amount"], amount, "other arguments were approved");
    let deciders: HashSet<String> = approval.deciders().map(ToString::to_string).collect();
    assert_eq!(deciders.len(), approval.question().needed());
    assert!(
        tool != "wire" || deciders.len() == 2,
        "one approver instead of two"
    );
}

/// Checks that the journal of a run matches the reference.
fn check_progress(run: &Run, events: &[Event], progress: &RunProgress, number: usize) {
    assert_eq!(events.len(), progress.events, "{}: events", run.id());
    let is_expected = match (run.end(), progress.end) {
        (None, None)
        | (Some(RunEnd::Completed), Some(Ended::Completed))
        | (Some(RunEnd::Cancelled), Some(Ended::Cancelled)) => true,
        (Some(RunEnd::Failed { category, .. }), Some(Ended::Rejected)) => {
            *category == ErrorCategory::Rejected
        }
        _ => false,
    };
    assert!(
        is_expected,
        "{}: {:?} instead of {:?}",
        run.id(),
        run.end(),
        progress.end
    );
    let found: Vec<Vec<String>> = run
        .turns()
        .iter()
        .map(|turn| turn.entries.iter().filter_map(shape).collect())
        .filter(|turn: &Vec<String>| !turn.is_empty())
        .collect();
    let expected: Vec<Vec<String>> = progress
        .turns
        .iter()
        .map(|turn| turn.iter().map(expected_shape).collect())
        .collect();
    assert_eq!(found, expected, "the calls of run {number}");
}

/// Describes a call in a journal: its state, its decision, whether it is asked about or held, and its
/// arguments.
fn shape(entry: &Entry) -> Option<String> {
    let Entry::Call {
        record,
        decision,
        progress,
        ..
    } = entry
    else {
        return None;
    };
    let verdict = decision.as_deref().map(Decision::verdict);
    let amount = record.arguments().get("amount");
    Some(format!(
        "{} {:?} {verdict:?} asked: {} held: {} {amount:?}",
        record.tool_name(),
        record.state(),
        progress.question().is_some(),
        progress.held_until().is_some(),
    ))
}

fn expected_shape(call: &Call) -> String {
    let state = match call.stage {
        Stage::Started => CallState::Running,
        Stage::Interrupted | Stage::InterruptedAsked | Stage::Over(End::Unknown) => {
            CallState::Unknown
        }
        Stage::Over(End::Done | End::Answered) => CallState::Success,
        Stage::Over(End::Rejected | End::Expired | End::Denied) => CallState::Error,
        Stage::Over(End::Undone | End::Responded) => CallState::Cancelled,
        _ => CallState::Pending,
    };
    let verdict = match (call.stage, call.kind) {
        (Stage::Undecided, _) => None,
        (Stage::Over(End::Denied), _) => Some(Verdict::Deny),
        (_, CallType::Pay | CallType::Wire) => Some(Verdict::Ask),
        (_, CallType::Note) => Some(Verdict::Hold),
        (_, CallType::Ask) => Some(Verdict::Allow),
    };
    let is_asked = matches!(call.stage, Stage::Asked | Stage::InterruptedAsked);
    let is_held =
        call.kind == CallType::Note && !matches!(call.stage, Stage::Undecided | Stage::ToHold);
    let is_payment = matches!(call.kind, CallType::Pay | CallType::Wire);
    let amount = is_payment.then(|| amount(call.arguments));
    let amount = amount.as_ref();
    format!(
        "{} {state:?} {verdict:?} asked: {is_asked} held: {is_held} {amount:?}",
        tool(call.kind)
    )
}

fn status(status: Status) -> ApprovalStatus {
    match status {
        Status::Pending => ApprovalStatus::Pending,
        Status::Approved => ApprovalStatus::Approved,
        Status::Rejected => ApprovalStatus::Rejected,
        Status::Expired => ApprovalStatus::Expired,
        Status::Cancelled => ApprovalStatus::Cancelled,
    }
}
