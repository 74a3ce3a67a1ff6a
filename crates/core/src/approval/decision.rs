//! The decisions of people, the outcomes of questions, and why a decision is refused.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use windlass_spec::{NonEmptyText, SecurityLevel, Timestamp};

use super::ApprovalStatus;
use super::digest::Digest;
use super::identity::Principal;
use super::proof::{DecisionMeans, DecisionProof};

/// A person's decision about a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum PersonDecision {
    /// The call may run as it is.
    Approve,
    /// The call may run with other arguments. The caller has checked them against the tool's schema.
    ApproveEdited {
        /// The arguments.
        arguments: Map<String, Value>,
    },
    /// The call may not run, the question is not answered, or the work is not done.
    Reject {
        /// The message for the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<NonEmptyText>,
    },
    /// The call does not run; the model gets this value instead of the tool's result.
    Respond {
        /// The value.
        value: Value,
    },
    /// The answer to a question.
    Answer {
        /// The answer.
        text: NonEmptyText,
    },
    /// The manual work is done.
    Done {
        /// A note about it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<NonEmptyText>,
    },
}

impl PersonDecision {
    /// The name in records and messages.
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

    /// Whether it allows a call to run, if enough approvers agree.
    #[must_use]
    pub const fn is_approval(&self) -> bool {
        matches!(self, Self::Approve | Self::ApproveEdited { .. })
    }
}

/// A recorded decision of one person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decided {
    /// The person.
    pub by: Principal,
    /// When.
    pub at: Timestamp,
    /// The digest of what was decided about: for an approval, that of the call that may run.
    pub digest: Digest,
    /// The decision.
    #[serde(flatten)]
    pub decision: PersonDecision,
    /// The proof that this person decided. `None` in decisions from before they were signed, and in stores without
    /// keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<DecisionProof>,
}

/// The outcome of a question.
#[derive(Debug, Clone, PartialEq)]
pub enum ApprovalOutcome {
    /// The call may run once, with exactly these arguments.
    Run {
        /// The arguments.
        arguments: Map<String, Value>,
        /// The digest of the tool and the arguments.
        digest: Digest,
        /// Whether they differ from the arguments that were asked about.
        is_edited: bool,
    },
    /// The call does not run; this is its result.
    Responded(Value),
    /// It was rejected.
    Rejected {
        /// The person.
        by: Principal,
        /// The message for the model.
        message: Option<NonEmptyText>,
    },
    /// A person answered.
    Answered(NonEmptyText),
    /// The manual work is done.
    Done(Option<NonEmptyText>),
    /// It expired.
    Expired,
    /// The question was withdrawn.
    Cancelled,
}

/// The effect of an accepted decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecisionEffect {
    /// The question is settled.
    Settled,
    /// Another approver has to agree first.
    NeedsAnotherApprover,
}

/// Why a decision is refused. Nothing changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecideError {
    /// It is already settled.
    #[error("it is already {0}")]
    NotPending(ApprovalStatus),
    /// It has expired.
    #[error("it expired at {0}")]
    Expired(Timestamp),
    /// The decision is about another digest than the current one.
    #[error("the decision is about {found}, but the question is about {asked}")]
    DigestDiffers {
        /// The digest of the question.
        asked: Digest,
        /// The digest of the decision.
        found: Digest,
    },
    /// The arguments were edited since they were asked about.
    #[error("{0} edited the arguments; state the digest that you approve")]
    DigestNeeded(Principal),
    /// The two approvers chose different arguments.
    #[error("{0} approved other arguments; approve the same ones, or reject the call")]
    OtherArguments(Principal),
    /// The same person has approved twice.
    #[error("{0} has already approved; another approver is required")]
    SamePrincipal(Principal),
    /// The principal is not an approver of this question.
    #[error("{0} may not decide about this")]
    NotEntitled(Principal),
    /// The run acts for this person, so their approval does not count where several are needed.
    #[error(
        "the run acts for {0}, who does not count as one of its approvers; other approvers are required"
    )]
    ActsFor(Principal),
    /// The means do not suffice for the call.
    #[error("{}", weak_means_message(*means, *level))]
    WeakMeans {
        /// How the approver decided.
        means: DecisionMeans,
        /// The security level of the call.
        level: SecurityLevel,
    },
    /// The decision does not fit the question.
    #[error("`{decision}` does not fit this question")]
    DoesNotFit {
        /// The name of the decision.
        decision: &'static str,
    },
}

fn weak_means_message(means: DecisionMeans, level: SecurityLevel) -> String {
    let what = match means {
        DecisionMeans::OwnCall => "the approval of one's own call",
        DecisionMeans::Digest => "an approval by `--digest` without a terminal",
        _ => "an approval without a confirmation",
    };
    format!("{what} does not count for a call of the security level {level}")
}
