//! What people and time have to do with a call: whether it waits to be decided about, for a person,
//! or for its undo window, and what of a run can go on meanwhile.

use serde_json::{Map, Value};
use windlass_spec::{CallId, CallRecord, CallState, RiskLevel, SecurityLevel, Timestamp};

use super::event::Variant;
use super::outcome::{Next, RunEnd, Waiting};
use super::state::{Entry, Run};
use crate::approval::Approval;
use crate::gate::{Decision, Verdict};

/// What people and time have to do with a call.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Stand {
    /// The question that waits for a person.
    pub(super) question: Option<Approval>,
    /// Leave that people gave, and with how much care.
    pub(super) approved: Option<SecurityLevel>,
    /// What the model asked for, if a person changed it or the operator added to it.
    pub(super) before_edit: Option<Map<String, Value>>,
    /// Whether a person changed it.
    pub(super) is_edited: bool,
    /// The undo window.
    pub(super) held: Option<Held>,
    /// What a person said about a call whose end nobody knew, or that nobody did.
    pub(super) word: Option<String>,
    /// What came of a form that the tool wanted filled in. The call goes on with it.
    pub(super) reply: Option<Reply>,
    /// Whether what it brought comes from outside, though its tool does not reach there.
    pub(super) is_from_outside: bool,
    /// Which of several implementations runs, if there are several.
    pub(super) variant: Option<Variant>,
    /// How many calls the run of its sub-agent made, or may make as long as it is not over.
    pub(super) calls: u32,
}

/// What came of a form that a tool wanted filled in while it ran.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// A person filled it in.
    Filled(Map<String, Value>),
    /// A person said no.
    Declined,
    /// Nobody answered.
    Nobody,
}

/// The undo window of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) until: Timestamp,
    /// Whether a person let it go before its time.
    pub(super) is_released: bool,
    /// Whether the run goes on meanwhile.
    pub(super) is_deferred: bool,
}

impl Stand {
    /// The question that waits for a person.
    #[must_use]
    pub fn question(&self) -> Option<&Approval> {
        self.question.as_ref()
    }

    /// Until when the call is held, unless it is let go.
    #[must_use]
    pub fn held_until(&self) -> Option<Timestamp> {
        self.held.map(|held| held.until)
    }

    /// Which of several implementations ran, if there are several.
    #[must_use]
    pub fn variant(&self) -> Option<&Variant> {
        self.variant.as_ref()
    }

    /// Whether a person changed what the model asked for.
    pub(super) fn is_edited(&self) -> bool {
        self.is_edited
    }

    /// What the model asked for, if a person changed it or the operator added to it.
    #[must_use]
    pub fn before_edit(&self) -> Option<&Map<String, Value>> {
        self.before_edit.as_ref()
    }
}

/// How far a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// The gate has to do something: decide, ask, or hold.
    AtGate,
    /// A person has to answer.
    Asks(Timestamp),
    /// It is held until then.
    Held(Timestamp),
    /// It may start, or has started and not ended.
    Runs,
    /// It has ended.
    Over,
}

/// A call that has not come to its end, with what its place in the order goes by.
struct Open<'r> {
    record: &'r CallRecord,
    step: Step,
    risk: RiskLevel,
    is_deferred: bool,
    is_of_last_turn: bool,
}

impl Run {
    /// How far a call is. `None` if it is none.
    pub(super) fn step_of(&self, entry: &Entry) -> Option<Step> {
        let Entry::Call {
            record,
            decision,
            stand,
        } = entry
        else {
            return None;
        };
        if let Some(question) = &stand.question {
            return Some(Step::Asks(question.request().expires_at));
        }
        let risk = decision.as_deref().and_then(Decision::risk_level);
        Some(match record.state() {
            CallState::Pending => self.step_at_gate(record, decision.as_deref(), stand),
            CallState::Running => Step::Runs,
            // A person has to say what became of it, as far as anybody can. Journals from before
            // there were such questions tell no risk, and go on without.
            CallState::Unknown if stand.word.is_none() && risk.is_some() => Step::AtGate,
            _ => Step::Over,
        })
    }

    fn step_at_gate(
        &self,
        record: &CallRecord,
        decision: Option<&Decision>,
        stand: &Stand,
    ) -> Step {
        let is_question = self.is_for_people(record.tool_name().as_str());
        match decision.map(Decision::verdict) {
            None | Some(Verdict::Deny) => Step::AtGate,
            Some(Verdict::Ask) if stand.approved.is_none() => Step::AtGate,
            Some(_) if is_question => Step::AtGate,
            Some(Verdict::Ask | Verdict::Allow) => Step::Runs,
            Some(Verdict::Hold) => match stand.held {
                None => Step::AtGate,
                Some(held) if held.is_released || self.now >= held.until => Step::Runs,
                Some(held) => Step::Held(held.until),
            },
        }
    }

    /// The calls that have not come to their end, in order.
    fn open_calls(&self) -> impl Iterator<Item = Open<'_>> {
        let last = self.turns.len().saturating_sub(1);
        // Only what is deferred can be left over from earlier turns.
        let first = if self.has_deferred { 0 } else { last };
        self.turns
            .iter()
            .enumerate()
            .skip(first)
            .flat_map(move |(turn, state)| {
                state.entries.iter().filter_map(move |entry| {
                    let step = self.step_of(entry)?;
                    let Entry::Call { record, stand, .. } = entry else {
                        return None;
                    };
                    (step != Step::Over).then(|| Open {
                        record,
                        step,
                        risk: self.risk_of(entry),
                        is_deferred: stand.held.is_some_and(|held| held.is_deferred),
                        is_of_last_turn: turn == last,
                    })
                })
            })
    }

    /// Whether the turn is not over: calls the run does not go on without have not ended.
    pub(super) fn has_open_calls(&self) -> bool {
        self.open_calls()
            .any(|call| call.is_of_last_turn && !call.is_deferred)
    }

    /// Whether calls that run later are yet to run.
    pub(super) fn has_deferred_calls(&self) -> bool {
        self.has_deferred && self.open_calls().any(|call| call.is_deferred)
    }

    /// What is to be done about the calls now, if anything is: first what the gate has to do, then
    /// what can run, then waiting. Calls run all at once, but what cannot be undone alone, and not
    /// before the calls that were asked for before it.
    pub(super) fn next_of_calls(&self) -> Option<Next> {
        let mut at_gate = Vec::new();
        let mut runnable = Vec::new();
        let mut waiting: Option<Waiting> = None;
        let mut is_behind = false;
        let mut is_barred = false;
        for call in self.open_calls() {
            let id = || call.record.id().clone();
            match call.step {
                Step::AtGate => at_gate.push(id()),
                Step::Asks(until) => {
                    waiting = Some(Waiting::and(waiting, until, true));
                }
                Step::Held(until) => {
                    waiting = Some(Waiting::and(waiting, until, false));
                }
                Step::Runs if is_barred => {}
                Step::Runs if call.risk == RiskLevel::Irreversible => {
                    if !is_behind {
                        runnable.push(id());
                    }
                }
                Step::Runs => runnable.push(id()),
                Step::Over => continue,
            }
            if !call.is_deferred {
                is_behind = true;
                is_barred |= call.risk == RiskLevel::Irreversible;
            }
        }
        if !at_gate.is_empty() {
            return Some(Next::Gate(at_gate));
        }
        if !runnable.is_empty() {
            return Some(Next::RunCalls(runnable));
        }
        waiting.map(Next::Wait)
    }

    /// How reversible a call is: as it was found when it was decided about, else as is declared of
    /// its tool. What is not known is irreversible.
    pub(super) fn risk_of(&self, entry: &Entry) -> RiskLevel {
        let Entry::Call {
            record, decision, ..
        } = entry
        else {
            return RiskLevel::Irreversible;
        };
        decision
            .as_deref()
            .and_then(Decision::risk_level)
            .or_else(|| {
                let tool = self.specification(record.tool_name().as_str())?;
                tool.attributes().risk
            })
            .unwrap_or(RiskLevel::Irreversible)
    }

    /// Which of several implementations a call runs, if it has begun and there are several.
    #[must_use]
    pub fn variant(&self, call: &CallId) -> Option<&Variant> {
        match self.entry(call).ok()? {
            Entry::Call { stand, .. } => stand.variant(),
            Entry::Mistake { .. } | Entry::Finish => None,
        }
    }

    /// How reversible a call is, as [`Run::call`] finds it.
    #[must_use]
    pub fn risk(&self, call: &CallId) -> RiskLevel {
        self.entry(call)
            .map_or(RiskLevel::Irreversible, |entry| self.risk_of(entry))
    }

    /// Whether a call that has begun may be made once more, whatever became of it: if it changes nothing
    /// that cannot be changed back at any time, or if twice is the same as once. What cannot be undone is
    /// never made twice.
    #[must_use]
    pub fn may_be_repeated(&self, call: &CallId) -> bool {
        let is_idempotent = || {
            let (record, _) = self.call(call).ok()?;
            let tool = self.specification(record.tool_name().as_str())?;
            tool.attributes().idempotent
        };
        match self.risk(call) {
            RiskLevel::Reversible => true,
            RiskLevel::ReversibleWithDelay => is_idempotent() == Some(true),
            RiskLevel::Irreversible => false,
        }
    }

    /// Whether nothing can be done but wait: for a person, or for an undo window to pass.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        matches!(self.next_without_model(), Some(Next::Wait(_)))
    }

    /// Notes that whoever drives the run leaves it to wait for a person, perhaps one that a
    /// sub-agent asks.
    pub fn leave_waiting(&mut self) {
        self.is_left_waiting = true;
    }

    /// How the run stands for whoever asked for it: how it ended, or that it waits for a person.
    /// `None` if it can be gone on with at once.
    #[must_use]
    pub fn standing(&self) -> Option<RunEnd> {
        let waits = || self.is_left_waiting.then_some(RunEnd::WaitingForPerson);
        self.end.clone().or_else(waits)
    }

    /// The questions that wait for a person, and the calls they are about.
    pub fn questions(&self) -> impl Iterator<Item = &Approval> {
        self.stands().filter_map(|(_, stand)| stand.question())
    }

    /// The calls that are held, and until when.
    pub fn held_calls(&self) -> impl Iterator<Item = (&CallRecord, Timestamp)> {
        let entries = self.turns.iter().flat_map(|turn| &turn.entries);
        entries.filter_map(|entry| match (entry, self.step_of(entry)) {
            (Entry::Call { record, .. }, Some(Step::Held(until))) => Some((&**record, until)),
            _ => None,
        })
    }

    fn stands(&self) -> impl Iterator<Item = (&CallRecord, &Stand)> {
        let entries = self.turns.iter().flat_map(|turn| &turn.entries);
        entries.filter_map(|entry| match entry {
            Entry::Call { record, stand, .. } => Some((&**record, &**stand)),
            Entry::Mistake { .. } | Entry::Finish => None,
        })
    }
}
