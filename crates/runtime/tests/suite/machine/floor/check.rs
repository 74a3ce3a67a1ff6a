//! What is checked after every transition: that the database says what the reference does, and what
//! must be true whatever the reference says.

use std::collections::HashSet;

use serde_json::Value;
use windlass_core::approval::{Approval, ApprovalStatus, HoldStatus, Outcome};
use windlass_core::gate::{Decision, Verdict};
use windlass_core::run::{Entry, Event, Run};
use windlass_spec::{CallId, CallState, RunId};
use windlass_store::{ApprovalFilter, Error, HoldFilter, InboxAction, RunState};

use super::super::desk::at;
use super::super::things::{
    Call, End, Ended, Hold, Kind, Mail, Row, RunModel, Stage, Status, Told,
};
use super::super::world::World;
use super::{Floor, amount, call_id, run_id, tool};

/// Before anything is asked, so that looking expires nothing.
const BEFORE: i64 = -1;

impl Floor {
    /// Holds everything against the reference.
    pub(in super::super) fn check(&self, world: &World) {
        let mut expected: Vec<String> = world
            .effects
            .iter()
            .map(|(which, arguments)| {
                let kind = world.runs[which.run].script[which.turn][which.index];
                let amount = match kind {
                    Kind::Note => Value::Null,
                    _ => amount(*arguments),
                };
                format!("{} {which} {amount}", tool(kind))
            })
            .collect();
        let mut effects = self.shop.effects.lock().unwrap().clone();
        let distinct: HashSet<&String> = effects.iter().collect();
        assert_eq!(distinct.len(), effects.len(), "an effect came twice");
        expected.sort_unstable();
        effects.sort_unstable();
        assert_eq!(effects, expected, "the effects");
        for (number, model) in world.runs.iter().enumerate() {
            let run = run_id(number);
            let events = self.observer.events(&run).unwrap();
            let events: Vec<Event> = events.into_iter().map(|(_, event)| event).collect();
            let seen = self.shop.seen.lock().unwrap();
            let seen = &seen[&run];
            assert!(seen.starts_with(&events), "{run}: the journal is another");
            let folded = Run::fold(&events).unwrap();
            check_told(&folded, &events, &model.kept, number);
            self.check_rows(&run, model);
            self.check_settled(&run, &events, model);
            if model.live.is_some() {
                let taken = self.observer.take_over(&run);
                let is_owned = matches!(taken, Err(Error::OwnedElsewhere(_)));
                assert!(is_owned, "{run} has two owners");
            }
            let own = format!(" {run}:");
            for effect in effects.iter().filter(|effect| effect.contains(&own)) {
                check_leave(effect, &events);
            }
        }
    }

    fn check_rows(&self, run: &RunId, model: &RunModel) {
        let state = self.observer.summary(run).unwrap().state;
        let expected = match model.row {
            Row::Open => RunState::Open,
            Row::Waiting => RunState::Waiting,
            Row::Ended => RunState::Ended,
        };
        assert_eq!(state, expected, "{run}");
        let filter = HoldFilter {
            run: Some(run.clone()),
            ..HoldFilter::default()
        };
        let holds = self.observer.holds(&filter).unwrap();
        assert_eq!(holds.len(), model.holds.len(), "{run}");
        for (which, expected) in &model.holds {
            let hold = self.observer.hold(&call_id(*which)).unwrap();
            let expected = match expected {
                Hold::Held => HoldStatus::Held,
                Hold::Released => HoldStatus::Released,
                Hold::Started => HoldStatus::Started,
                Hold::Undone => HoldStatus::Undone,
                Hold::Cancelled => HoldStatus::Cancelled,
            };
            assert_eq!(hold.status(), expected, "the hold of {which}");
        }
        let mail = self.observer.inbox(run).unwrap();
        let mail: Vec<String> = mail
            .iter()
            .map(|mail| match &mail.action {
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
            .mail
            .iter()
            .map(|mail| match mail {
                Mail::Settled(which, number) => {
                    let status = status(model.questions[which][*number].status);
                    format!("settled {which} {status}")
                }
                Mail::Undo(which) => format!("undo {which}"),
                Mail::Release(which) => format!("release {which}"),
                Mail::Cancel => "cancel".to_owned(),
            })
            .collect();
        assert_eq!(mail, expected, "the mail of {run}");
    }

    /// Questions stand as the reference says, what is settled stays as it is, and the run has been
    /// told or will be.
    fn check_settled(&self, run: &RunId, events: &[Event], model: &RunModel) {
        let filter = ApprovalFilter {
            run: Some(run.clone()),
            ..ApprovalFilter::default()
        };
        let mut found = self.observer.approvals(&filter, at(BEFORE)).unwrap();
        let mail = self.observer.inbox(run).unwrap();
        for (which, asked) in &model.questions {
            for (number, question) in asked.iter().enumerate() {
                let call = call_id(*which);
                let place = found.iter().position(|found| *found.call() == call);
                let approval = found.remove(place.expect("it was asked"));
                assert_eq!(approval.status(), status(question.status), "{which}");
                assert_eq!(approval.decisions().len(), question.decided.len());
                if approval.status() == ApprovalStatus::Pending {
                    continue;
                }
                let mut settled = self.settled.lock().unwrap();
                let first = settled.entry((call, number));
                let first = first.or_insert_with(|| approval.clone());
                assert_eq!(*first, approval, "what was settled has changed");
                let is_withdrawn = approval.status() == ApprovalStatus::Cancelled;
                assert!(
                    is_withdrawn || is_told(&approval, events, &mail),
                    "what was decided about {which} is lost"
                );
            }
        }
        assert!(found.is_empty(), "{found:?} was not to be asked");
    }
}

fn is_told(approval: &Approval, events: &[Event], mail: &[windlass_store::InboxCommand]) -> bool {
    let waits = mail.iter().any(|mail| match &mail.action {
        InboxAction::Settled(settled) => **settled == *approval,
        _ => false,
    });
    let mut told = events.iter().filter_map(|event| match event {
        Event::Settled { approval, .. } => Some(&**approval),
        _ => None,
    });
    waits || told.any(|told| told == approval)
}

/// The effect was allowed before it came: by people who agreed to exactly this, or by nobody undoing
/// it in time.
fn check_leave(effect: &str, events: &[Event]) {
    let mut words = effect.split(' ');
    let (tool, call) = (words.next().unwrap(), words.next().unwrap());
    let amount: Value = serde_json::from_str(words.next().unwrap()).unwrap();
    let call: CallId = call.parse().unwrap();
    let started = events
        .iter()
        .position(|event| matches!(event, Event::CallStarted { call: of, .. } if *of == call));
    let before = &events[..started.expect("what has an effect was written down before")];
    if tool == "note" {
        let at = events[started.unwrap()].at();
        let is_due = before.iter().any(|event| match event {
            Event::Held {
                call: of, until, ..
            } => *of == call && *until <= at,
            Event::Released { call: of, .. } => *of == call,
            _ => false,
        });
        assert!(is_due, "{effect} came too early");
        return;
    }
    let leave = before.iter().rev().find_map(|event| match event {
        Event::Settled { approval, .. } if *approval.call() == call => Some(approval),
        _ => None,
    });
    let leave = leave.expect("nobody gave leave");
    let Some(Outcome::Run { arguments, .. }) = leave.outcome() else {
        panic!("{effect} was not approved")
    };
    assert_eq!(arguments["amount"], amount, "other arguments were approved");
    let deciders: HashSet<String> = leave.deciders().map(ToString::to_string).collect();
    assert_eq!(deciders.len(), leave.question().needed());
    assert!(tool != "wire" || deciders.len() == 2, "one person for two");
}

/// A journal says of its run what the reference does.
fn check_told(run: &Run, events: &[Event], told: &Told, number: usize) {
    assert_eq!(events.len(), told.events, "{}: events", run.id());
    let ended = run.end().map(|end| format!("{end:?}"));
    let expected = told.end.map(|end| match end {
        Ended::Completed => "Completed".to_owned(),
        Ended::Cancelled => "Cancelled".to_owned(),
    });
    assert_eq!(ended, expected, "{}", run.id());
    let found: Vec<Vec<String>> = run
        .turns()
        .iter()
        .map(|turn| turn.entries.iter().filter_map(shape).collect())
        .filter(|turn: &Vec<String>| !turn.is_empty())
        .collect();
    let expected: Vec<Vec<String>> = told
        .turns
        .iter()
        .map(|turn| turn.iter().map(expected_shape).collect())
        .collect();
    assert_eq!(found, expected, "the calls of run {number}");
}

/// What a journal says of a call: its state, what was decided, whether it is asked about or held, and
/// what it is made with.
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
        Stage::Lost | Stage::LostAsked | Stage::Over(End::Unknown) => CallState::Unknown,
        Stage::Over(End::Done | End::Answered) => CallState::Success,
        Stage::Over(End::Rejected | End::Expired | End::Denied) => CallState::Error,
        Stage::Over(End::Undone | End::Responded) => CallState::Cancelled,
        _ => CallState::Pending,
    };
    let verdict = match (call.stage, call.kind) {
        (Stage::Undecided, _) => None,
        (Stage::Over(End::Denied), _) => Some(Verdict::Deny),
        (_, Kind::Pay | Kind::Wire) => Some(Verdict::Ask),
        (_, Kind::Note) => Some(Verdict::Hold),
        (_, Kind::Ask) => Some(Verdict::Allow),
    };
    let is_asked = matches!(call.stage, Stage::Asked | Stage::LostAsked);
    let is_held =
        call.kind == Kind::Note && !matches!(call.stage, Stage::Undecided | Stage::ToHold);
    let is_payment = matches!(call.kind, Kind::Pay | Kind::Wire);
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
