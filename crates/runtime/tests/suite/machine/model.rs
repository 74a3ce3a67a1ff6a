//! The types of the reference: people and processes, calls with their stages, runs with their questions, holds
//! and inboxes.

use std::collections::BTreeMap;
use std::fmt;

/// How long a note is held, in seconds, as in the agent's declaration.
pub(super) const WINDOW: i64 = 10;

/// How long people have to decide.
pub(super) const DAY: i64 = 24 * 60 * 60;

/// One of two processes on the same database. The first suspends a run that waits for a person, the second waits
/// with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Process {
    Suspending,
    Waiting,
}

/// The type of a call: approval of one person, approval of two, held for a while, a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallType {
    Pay,
    Wire,
    Note,
    Ask,
}

/// The operator's policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Policy {
    Standard,
    /// A payment needs the approval of two people.
    TwoForPay,
    NoPay,
}

/// Ann and Bob belong to the tenant, the third person to another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Person {
    Ann,
    Bob,
    OtherTenant,
}

/// A person's decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DecisionKind {
    Approve,
    Edit,
    /// With arguments that do not fit.
    EditInvalid,
    Reject,
    Respond,
    Answer,
}

/// The digest that the person gives for what they were shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    NotGiven,
    /// That of the original question.
    Asked,
    /// That of the current question.
    Current,
    /// Another one.
    Other,
}

/// A reference to a call: the run, the turn, and the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CallRef {
    pub(super) run: usize,
    pub(super) turn: usize,
    pub(super) index: usize,
}

impl fmt::Display for CallRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", name(self.run), self.turn + 1, self.index)
    }
}

/// The id of a run.
pub(super) fn name(run: usize) -> String {
    format!("r{}", run + 1)
}

/// The arguments of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arguments {
    AsAsked,
    Edited,
    Invalid,
}

/// The stage of a call, as its run knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Undecided,
    /// It needs approval: of one person, or of two.
    ToAsk {
        two: bool,
    },
    ToHold,
    /// It is a question itself.
    ToQuestion,
    Asked,
    Approved {
        two: bool,
    },
    Held {
        until: i64,
        released: bool,
    },
    Started,
    /// It had started when its process crashed. No person was asked yet for its outcome.
    Interrupted,
    InterruptedAsked,
    Over(End),
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Done,
    Answered,
    Rejected,
    Expired,
    Denied,
    Undone,
    Responded,
    Unknown,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Call {
    pub(super) kind: CallType,
    pub(super) stage: Stage,
    pub(super) arguments: Arguments,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    Completed,
    /// An approver rejected a call, and no later call succeeded.
    Rejected,
    Cancelled,
}

/// The state of a run after some of its events.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct RunProgress {
    pub(super) turns: Vec<Vec<Call>>,
    pub(super) end: Option<Ended>,
    pub(super) now: i64,
    pub(super) events: usize,
}

impl RunProgress {
    pub(super) fn call(&mut self, call_ref: CallRef) -> &mut Call {
        &mut self.turns[call_ref.turn][call_ref.index]
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StoredState {
    Open,
    Waiting,
    Ended,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Pending,
    Approved,
    Rejected,
    Expired,
    Cancelled,
}

/// A question to a person, as stored.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Question {
    /// Whether it asks for approval, and not for an answer.
    pub(super) for_approval: bool,
    pub(super) two: bool,
    pub(super) expires: i64,
    pub(super) status: Status,
    pub(super) asked: Arguments,
    pub(super) decided: Vec<(Person, DecisionKind, Arguments)>,
}

impl Question {
    /// The arguments of the current question.
    pub(super) fn arguments(&self) -> Arguments {
        self.decided.first().map_or(self.asked, |first| first.2)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hold {
    Held,
    Released,
    Started,
    Undone,
    Cancelled,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InboxEntry {
    /// Which question about the call was settled.
    Settled(CallRef, usize),
    Undo(CallRef),
    Release(CallRef),
    Cancel,
}

/// A run that a process drives.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Live {
    pub(super) process: Process,
    pub(super) policy: Policy,
    /// Its progress, including events that are not durable yet.
    pub(super) progress: RunProgress,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct RunModel {
    pub(super) script: Vec<Vec<CallType>>,
    pub(super) stored_state: StoredState,
    /// Its durable progress.
    pub(super) durable: RunProgress,
    pub(super) live: Option<Live>,
    pub(super) questions: BTreeMap<CallRef, Vec<Question>>,
    pub(super) holds: BTreeMap<CallRef, Hold>,
    /// The entries that were not taken yet.
    pub(super) inbox: Vec<InboxEntry>,
}

impl RunModel {
    pub(super) fn new(script: Vec<Vec<CallType>>, now: i64) -> Self {
        let durable = RunProgress {
            now,
            events: 1,
            ..RunProgress::default()
        };
        Self {
            script,
            stored_state: StoredState::Open,
            durable,
            live: None,
            questions: BTreeMap::new(),
            holds: BTreeMap::new(),
            inbox: Vec::new(),
        }
    }

    /// Withdraws the open questions and holds, of one call or of all.
    pub(super) fn withdraw(&mut self, only: Option<CallRef>) {
        let is_meant = |call_ref: &CallRef| only.is_none_or(|only| only == *call_ref);
        let questions = self.questions.iter_mut();
        for (_, asked) in questions.filter(|(call_ref, _)| is_meant(call_ref)) {
            for question in asked {
                if question.status == Status::Pending {
                    question.status = Status::Cancelled;
                }
            }
        }
        for (_, hold) in self
            .holds
            .iter_mut()
            .filter(|(call_ref, _)| is_meant(call_ref))
        {
            if matches!(hold, Hold::Held | Hold::Released) {
                *hold = Hold::Cancelled;
            }
        }
    }
}
