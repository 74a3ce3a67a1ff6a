//! What a person decides, what comes of it, and why a decision is refused.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use windlass_spec::{NonEmptyText, Timestamp};

use super::ApprovalStatus;
use super::digest::Digest;
use super::identity::Principal;

/// What a person decides about a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum PersonDecision {
    /// The call may run as it is.
    Approve,
    /// The call may run with other arguments. Whoever takes the decision has checked them against the
    /// tool's schema.
    ApproveEdited {
        /// The arguments.
        arguments: Map<String, Value>,
    },
    /// The call may not run; the question is not answered; the work will not be done.
    Reject {
        /// What the model is told.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<NonEmptyText>,
    },
    /// The call does not run; the model gets this instead of what the tool would have said.
    Respond {
        /// What the model gets.
        value: Value,
    },
    /// The answer to a question in words.
    Answer {
        /// The answer.
        text: NonEmptyText,
    },
    /// What had to be done by hand is done.
    Done {
        /// What there is to say about it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<NonEmptyText>,
    },
}

impl PersonDecision {
    /// The word for it.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::ApproveEdited { .. } => "approve_edited",
            Self::Reject { .. } => "reject",
            Self::Respond { .. } => "respond",
            Self::Answer { .. } => "answer",
            Self::Done { .. } => "done",
        }
    }

    /// Whether it lets a call run, if enough others agree.
    #[must_use]
    pub const fn lets_run(&self) -> bool {
        matches!(self, Self::Approve | Self::ApproveEdited { .. })
    }
}

/// One person's decision, as it is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decided {
    /// Who.
    pub by: Principal,
    /// When.
    pub at: Timestamp,
    /// About what exactly: of a call that may run, the digest of what may run.
    pub digest: Digest,
    /// What.
    #[serde(flatten)]
    pub decision: PersonDecision,
}

/// What came of a question.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The call may run, once, with exactly these arguments.
    Run {
        /// The arguments.
        arguments: Map<String, Value>,
        /// Their digest, with the tool's name.
        digest: Digest,
        /// Whether they are other arguments than those asked about.
        is_edited: bool,
    },
    /// The call does not run; this is its result.
    Responded(Value),
    /// A person said no.
    Rejected {
        /// Who.
        by: Principal,
        /// What the model is told.
        message: Option<NonEmptyText>,
    },
    /// A person answered.
    Answered(NonEmptyText),
    /// A person did it.
    Done(Option<NonEmptyText>),
    /// Nobody decided in time.
    Expired,
    /// The question was withdrawn.
    Cancelled,
}

/// What a decision that was taken changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changed {
    /// The question is settled.
    Settled,
    /// Somebody else has to agree before it is.
    AwaitsAnother,
}

/// Why a decision was not taken. Nothing changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecideError {
    /// It is settled already.
    #[error("it is already {0}")]
    NotPending(ApprovalStatus),
    /// It is too late.
    #[error("it expired at {0}")]
    Expired(Timestamp),
    /// The decision is about something else than what is asked now.
    #[error("the decision is about {found}, but what is asked is {asked}")]
    DigestDiffers {
        /// What is asked.
        asked: Digest,
        /// What the decision is about.
        found: Digest,
    },
    /// Somebody changed the arguments since they were asked about.
    #[error("{0} changed the arguments; say which ones you approve by their digest")]
    DigestNeeded(Principal),
    /// Two people want different arguments.
    #[error("{0} approved other arguments; approve the same ones, or reject the call")]
    OtherArguments(Principal),
    /// One person cannot be two.
    #[error("{0} has approved already; a second person has to")]
    SamePrincipal(Principal),
    /// This person is not among those who may decide.
    #[error("{0} may not decide about this")]
    NotEntitled(Principal),
    /// The question cannot be answered like this.
    #[error("`{decision}` is no answer to this question")]
    DoesNotFit {
        /// The word for the decision.
        decision: &'static str,
    },
}
