//! The things of the reference: people and processes, calls and how far they are, runs with their
//! questions, holds and mail.

use std::collections::BTreeMap;
use std::fmt;

/// How long a note is held, in seconds; the agent's declaration says the same.
pub(super) const WINDOW: i64 = 10;

/// How long people have to decide.
pub(super) const DAY: i64 = 24 * 60 * 60;

/// One of two programs on the same database. The first leaves a run that waits for a person, the
/// second stays with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Process {
    Hasty,
    Patient,
}

/// What a call is: leave of one person, leave of two, held for a while, a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Pay,
    Wire,
    Note,
    Ask,
}

/// What the operator lays down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Policy {
    Usual,
    /// A payment needs the leave of two people.
    TwoForPay,
    NoPay,
}

/// Ann and Bob are of the tenant, the stranger is of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Person {
    Ann,
    Bob,
    Stranger,
}

/// What somebody decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    Approve,
    Edit,
    /// With arguments that do not fit.
    EditBadly,
    Reject,
    Respond,
    Answer,
}

/// What they say they were shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    Unsaid,
    /// What was asked at first.
    Asked,
    /// What is to be decided about now.
    Now,
    /// Something else.
    Other,
}

/// Which call: of which run, in which turn, at which place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Which {
    pub(super) run: usize,
    pub(super) turn: usize,
    pub(super) index: usize,
}

impl fmt::Display for Which {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", name(self.run), self.turn + 1, self.index)
    }
}

/// The id of a run.
pub(super) fn name(run: usize) -> String {
    format!("r{}", run + 1)
}

/// What a call is made with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arguments {
    AsAsked,
    Edited,
    Bad,
}

/// How far a call is, as its run knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Undecided,
    /// A person has to be asked for leave: one, or two.
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
    /// It had started when a process died. Nobody was asked yet what became of it.
    Lost,
    LostAsked,
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
    pub(super) kind: Kind,
    pub(super) stage: Stage,
    pub(super) arguments: Arguments,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    Completed,
    Cancelled,
}

/// What a run is after some of its events.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Told {
    pub(super) turns: Vec<Vec<Call>>,
    pub(super) end: Option<Ended>,
    pub(super) now: i64,
    pub(super) events: usize,
}

impl Told {
    pub(super) fn call(&mut self, which: Which) -> &mut Call {
        &mut self.turns[which.turn][which.index]
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Row {
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

/// A question to a person, as the table has it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Question {
    /// Whether it asks for leave, and not for words.
    pub(super) for_leave: bool,
    pub(super) two: bool,
    pub(super) expires: i64,
    pub(super) status: Status,
    pub(super) asked: Arguments,
    pub(super) decided: Vec<(Person, Word, Arguments)>,
}

impl Question {
    /// What is to be decided about now.
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
pub(super) enum Mail {
    /// Which question about the call was settled.
    Settled(Which, usize),
    Undo(Which),
    Release(Which),
    Cancel,
}

/// A run in the hands of a process.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Live {
    pub(super) process: Process,
    pub(super) policy: Policy,
    /// What has happened, also what is not safe from a crash yet.
    pub(super) told: Told,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct RunModel {
    pub(super) script: Vec<Vec<Kind>>,
    pub(super) row: Row,
    /// What is safe from a crash.
    pub(super) kept: Told,
    pub(super) live: Option<Live>,
    pub(super) questions: BTreeMap<Which, Vec<Question>>,
    pub(super) holds: BTreeMap<Which, Hold>,
    /// What was not taken yet.
    pub(super) mail: Vec<Mail>,
}

impl RunModel {
    pub(super) fn new(script: Vec<Vec<Kind>>, now: i64) -> Self {
        let kept = Told {
            now,
            events: 1,
            ..Told::default()
        };
        Self {
            script,
            row: Row::Open,
            kept,
            live: None,
            questions: BTreeMap::new(),
            holds: BTreeMap::new(),
            mail: Vec::new(),
        }
    }

    /// Withdraws what is open, of one call or of all.
    pub(super) fn withdraw(&mut self, only: Option<Which>) {
        let is_meant = |which: &Which| only.is_none_or(|only| only == *which);
        let questions = self.questions.iter_mut();
        for (_, asked) in questions.filter(|(which, _)| is_meant(which)) {
            for question in asked {
                if question.status == Status::Pending {
                    question.status = Status::Cancelled;
                }
            }
        }
        for (_, hold) in self.holds.iter_mut().filter(|(which, _)| is_meant(which)) {
            if matches!(hold, Hold::Held | Hold::Released) {
                *hold = Hold::Cancelled;
            }
        }
    }
}
