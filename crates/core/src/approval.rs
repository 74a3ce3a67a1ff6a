//! Approvals: durable questions to people, and everything that decides about them without doing
//! anything. An [`Approval`] asks a person for leave for one exact call, for an answer, or for work
//! by hand; a [`Hold`] is the time in which a call can be undone; a [`Standing`] approval is leave
//! given beforehand.
//!
//! Each is a value with transitions: once settled it never changes, and what is read back is replayed
//! through the same transitions, so that a stored approval that nobody could have given is refused.
//! Where they are kept and who is told is decided elsewhere.

mod decision;
mod digest;
mod envelope;
mod form;
mod hold;
mod identity;
mod question;
mod standing;

#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use windlass_spec::{
    CallId, NonEmptyText, RiskLevel, RunId, SecurityLevel, Timestamp, UnknownWord,
};

pub use decision::{Changed, DecideError, Decided, Outcome, PersonDecision};
pub use digest::{Digest, NotADigest, canonical};
pub use hold::{DEFAULT_UNDO_WINDOW, Hold, HoldDecided, HoldError, HoldStatus, NotAHold};
pub use identity::{Identity, NotAPrincipal, Principal};
pub use question::{
    Ask, Authorize, CredentialUse, FormRequest, Intervene, Question, least_security_level,
};
pub use standing::{NotAStanding, Reach, Revoked, Scope, Standing, StandingCall};

/// How long a person has to decide, unless something else is said.
pub const DEFAULT_EXPIRY: Duration = Duration::from_secs(24 * 60 * 60);

/// Where a question stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalStatus {
    /// It waits for a person.
    Pending,
    /// A person said yes, answered, did what was asked, or responded in the tool's stead.
    /// [`Approval::outcome`] says which.
    Approved,
    /// A person said no.
    Rejected,
    /// Nobody decided in time.
    Expired,
    /// It was withdrawn, for instance because its run was stopped.
    Cancelled,
}

impl ApprovalStatus {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Pending,
        Self::Approved,
        Self::Rejected,
        Self::Expired,
        Self::Cancelled,
    ];

    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for ApprovalStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for ApprovalStatus {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        let mut all = Self::ALL.into_iter();
        all.find(|status| status.as_str().eq_ignore_ascii_case(word))
            .ok_or(UnknownWord)
    }
}

/// What is put to a person, before it is checked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// The call it is about. It is also the id of the request.
    pub call: CallId,
    /// The calls that led to it through sub-agents, the outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parents: Vec<CallId>,
    /// On whose behalf the run acts.
    #[serde(flatten)]
    pub principal: Identity,
    /// The question.
    pub question: Question,
    /// Who is asked, as it is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// How to answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instruction: Option<String>,
    /// What the person reads first, if it is not the reason or the question itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<NonEmptyText>,
    /// Who may decide; anybody of the tenant if nobody is named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvers: Vec<Principal>,
    /// When it was asked.
    pub asked_at: Timestamp,
    /// From when on it is too late.
    pub expires_at: Timestamp,
}

impl Request {
    /// A question about a call that expires after [`DEFAULT_EXPIRY`].
    #[must_use]
    pub fn new(call: CallId, principal: Identity, question: Question, asked_at: Timestamp) -> Self {
        Self {
            call,
            parents: Vec::new(),
            principal,
            question,
            user_id: None,
            instruction: None,
            message: None,
            approvers: Vec::new(),
            asked_at,
            expires_at: later(asked_at, DEFAULT_EXPIRY),
        }
    }
}

/// The point in time that much later.
fn later(at: Timestamp, duration: Duration) -> Timestamp {
    let duration = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
    Timestamp::from_microseconds(at.as_microseconds().saturating_add(duration))
}

/// Why something is no approval.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApprovalError {
    /// It could never be decided.
    #[error("it expires before it is asked")]
    ExpiresTooEarly,
    /// Policy may only raise the level.
    #[error("a call that is {risk} needs at least the security level {least}")]
    TooLittleCare {
        /// How reversible the call is.
        risk: RiskLevel,
        /// The least level.
        least: SecurityLevel,
    },
    /// There is nothing to choose from and nothing may be written.
    #[error("the question has no options and takes no free text, so nobody can answer it")]
    NoAnswerPossible,
    /// Two options that read the same.
    #[error("an option is offered twice")]
    OptionTwice,
    /// Two people have to agree, and there is one.
    #[error("two people have to agree, but only `{0}` may decide")]
    TooFewApprovers(Principal),
    /// The run and the call do not belong together.
    #[error("the call `{call}` is not one of the run `{run}`")]
    OtherRun {
        /// The run.
        run: RunId,
        /// The call.
        call: CallId,
    },
    /// What is stored is not what was asked.
    #[error("the digest is not the one of what is asked")]
    OtherDigest,
    /// What is stored cannot have come about.
    #[error("what is recorded as decided could not have been: {0}")]
    Impossible(String),
}

/// A durable question to a person about one exact call.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "form::RawApproval")]
pub struct Approval {
    request: Request,
    digest: Digest,
    status: ApprovalStatus,
    decisions: Vec<Decided>,
    settled_at: Option<Timestamp>,
}

impl Approval {
    /// Asks.
    ///
    /// # Errors
    /// If nobody could rightly decide about it.
    pub fn ask(request: Request) -> Result<Self, ApprovalError> {
        request.question.check()?;
        if request.expires_at <= request.asked_at {
            return Err(ApprovalError::ExpiresTooEarly);
        }
        if let Some(first) = request.approvers.first()
            && request.question.needed() > 1
            && request.approvers.iter().all(|other| other.may_be(first))
        {
            return Err(ApprovalError::TooFewApprovers(first.clone()));
        }
        Ok(Self {
            digest: request.question.digest(),
            request,
            status: ApprovalStatus::Pending,
            decisions: Vec::new(),
            settled_at: None,
        })
    }

    /// What was put to the person.
    #[must_use]
    pub const fn request(&self) -> &Request {
        &self.request
    }

    /// The same, in exchange for the approval.
    #[must_use]
    pub fn into_request(self) -> Request {
        self.request
    }

    /// The question.
    #[must_use]
    pub const fn question(&self) -> &Question {
        &self.request.question
    }

    /// The call it is about.
    #[must_use]
    pub const fn call(&self) -> &CallId {
        &self.request.call
    }

    /// The run the call is of.
    #[must_use]
    pub const fn run(&self) -> &RunId {
        &self.request.call.run
    }

    /// What was asked, exactly.
    #[must_use]
    pub const fn asked_digest(&self) -> Digest {
        self.digest
    }

    /// What is to be decided about now: what was asked, or, when the first of two people changed the
    /// arguments, the call with the changed ones. A decision that states another one is refused.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.decisions
            .iter()
            .rfind(|decided| decided.decision.lets_run())
            .map_or(self.digest, |decided| decided.digest)
    }

    /// Where it stands.
    #[must_use]
    pub const fn status(&self) -> ApprovalStatus {
        self.status
    }

    /// What people decided, in order. While it is pending, that is the first of two.
    #[must_use]
    pub fn decisions(&self) -> &[Decided] {
        &self.decisions
    }

    /// Who decided, in order.
    pub fn deciders(&self) -> impl Iterator<Item = &Principal> {
        self.decisions.iter().map(|decided| &decided.by)
    }

    /// When it was settled.
    #[must_use]
    pub const fn settled_at(&self) -> Option<Timestamp> {
        self.settled_at
    }

    /// Whether it waits for a person, and it is too late.
    #[must_use]
    pub fn is_overdue(&self, at: Timestamp) -> bool {
        self.status == ApprovalStatus::Pending && at >= self.request.expires_at
    }

    /// How many more people have to say yes.
    #[must_use]
    pub fn still_needed(&self) -> usize {
        match self.status {
            ApprovalStatus::Pending => self.question().needed() - self.decisions.len(),
            _ => 0,
        }
    }

    /// Takes a person's decision. `digest` says what they were shown; without it, what is asked is
    /// meant. A no counts at once, whoever says it; a yes counts when enough different people say it.
    ///
    /// # Errors
    /// If it is settled or too late, they may not decide, were shown something else, have said yes
    /// before, or the decision does not fit the question.
    pub fn decide(
        &mut self,
        by: &Identity,
        decision: PersonDecision,
        digest: Option<&Digest>,
        at: Timestamp,
    ) -> Result<Changed, DecideError> {
        if self.status == ApprovalStatus::Expired || self.is_overdue(at) {
            return Err(DecideError::Expired(self.request.expires_at));
        }
        if self.status != ApprovalStatus::Pending {
            return Err(DecideError::NotPending(self.status));
        }
        if !self.entitles(by) {
            return Err(DecideError::NotEntitled(by.principal.clone()));
        }
        let asked = self.digest();
        if let Some(&found) = digest
            && found != asked
        {
            return Err(DecideError::DigestDiffers { asked, found });
        }
        if !self.question().fits(&decision) {
            let decision = decision.as_str();
            return Err(DecideError::DoesNotFit { decision });
        }
        let decided = Decided {
            by: by.principal.clone(),
            at,
            digest: self.effect(&decision).unwrap_or(asked),
            decision,
        };
        if decided.decision.lets_run() {
            self.check_agreement(&decided, digest.is_some())?;
        }
        let status = match decided.decision {
            PersonDecision::Reject { .. } => ApprovalStatus::Rejected,
            // Saying something in the tool's stead has no effect that two people must answer for.
            PersonDecision::Respond { .. }
            | PersonDecision::Answer { .. }
            | PersonDecision::Done { .. } => ApprovalStatus::Approved,
            PersonDecision::Approve | PersonDecision::ApproveEdited { .. } => {
                if self.decisions.len() + 1 < self.question().needed() {
                    ApprovalStatus::Pending
                } else {
                    ApprovalStatus::Approved
                }
            }
        };
        self.decisions.push(decided);
        if status == ApprovalStatus::Pending {
            return Ok(Changed::AwaitsAnother);
        }
        self.settle(status, at);
        Ok(Changed::Settled)
    }

    /// Ends it if it is pending and too late. Says whether it did.
    pub fn expire(&mut self, at: Timestamp) -> bool {
        let is_overdue = self.is_overdue(at);
        if is_overdue {
            self.settle(ApprovalStatus::Expired, at);
        }
        is_overdue
    }

    /// Withdraws it if it is pending. Says whether it did.
    pub fn cancel(&mut self, at: Timestamp) -> bool {
        let is_pending = self.status == ApprovalStatus::Pending;
        if is_pending {
            self.settle(ApprovalStatus::Cancelled, at);
        }
        is_pending
    }

    /// What came of it; nothing while it is pending.
    #[must_use]
    pub fn outcome(&self) -> Option<Outcome> {
        let last = match self.status {
            ApprovalStatus::Pending => return None,
            ApprovalStatus::Expired => return Some(Outcome::Expired),
            ApprovalStatus::Cancelled => return Some(Outcome::Cancelled),
            ApprovalStatus::Approved | ApprovalStatus::Rejected => self.decisions.last()?,
        };
        Some(match &last.decision {
            PersonDecision::Approve | PersonDecision::ApproveEdited { .. } => Outcome::Run {
                arguments: self.arguments()?.clone(),
                digest: last.digest,
                is_edited: last.digest != self.digest,
            },
            PersonDecision::Reject { message } => Outcome::Rejected {
                by: last.by.clone(),
                message: message.clone(),
            },
            PersonDecision::Respond { value } => Outcome::Responded(value.clone()),
            PersonDecision::Answer { text } => Outcome::Answered(text.clone()),
            PersonDecision::Done { note } => Outcome::Done(note.clone()),
        })
    }

    /// The arguments that are to be decided about now, or were approved: those asked about unless
    /// somebody changed them.
    #[must_use]
    pub fn arguments(&self) -> Option<&serde_json::Map<String, serde_json::Value>> {
        let asked = &self.question().authorize()?.tool_args;
        let edited = self
            .decisions
            .iter()
            .find_map(|decided| match &decided.decision {
                PersonDecision::ApproveEdited { arguments } => Some(arguments),
                _ => None,
            });
        Some(edited.unwrap_or(asked))
    }

    fn entitles(&self, by: &Identity) -> bool {
        let approvers = &self.request.approvers;
        by.tenant == self.request.principal.tenant
            && (approvers.is_empty() || approvers.contains(&by.principal))
    }

    /// What would run if this were decided.
    fn effect(&self, decision: &PersonDecision) -> Option<Digest> {
        match decision {
            PersonDecision::ApproveEdited { arguments } => {
                let tool = &self.question().authorize()?.tool_name;
                Some(Digest::of_call(tool, arguments))
            }
            _ => None,
        }
    }

    fn check_agreement(&self, decided: &Decided, is_stated: bool) -> Result<(), DecideError> {
        let Some(first) = self.decisions.first() else {
            return Ok(());
        };
        if let Some(same) = self.deciders().find(|other| other.may_be(&decided.by)) {
            return Err(DecideError::SamePrincipal(same.clone()));
        }
        if decided.digest != first.digest {
            return Err(DecideError::OtherArguments(first.by.clone()));
        }
        // They may have looked at it before the first one changed it.
        if decided.decision == PersonDecision::Approve && !is_stated && first.digest != self.digest
        {
            return Err(DecideError::DigestNeeded(first.by.clone()));
        }
        Ok(())
    }

    fn settle(&mut self, status: ApprovalStatus, at: Timestamp) {
        self.status = status;
        self.settled_at = Some(at);
    }
}
