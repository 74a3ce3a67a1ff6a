//! Approvals, holds and standing approvals, as pure values. An [`Approval`] asks a person to authorize
//! one exact call, to answer a question, or to do manual work. A [`Hold`] is the undo window of a call.
//! A [`StandingApproval`] authorizes calls in advance.
//!
//! Each is a value with transitions. Once settled, it never changes. A stored value is read back by
//! replaying its transitions, so an approval that could not have been given is refused. Storage and
//! notification happen elsewhere.

mod decision;
mod digest;
mod envelope;
mod form;
mod hold;
mod identity;
mod proof;
mod question;
mod quorum;
mod secret;
mod standing;

#[cfg(test)]
mod tests;

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use windlass_spec::{
    AgentName, CallId, Deprecation, NonEmptyText, RiskLevel, RunId, SecurityLevel, Timestamp,
    ToolName,
};

pub use decision::{ApprovalOutcome, DecideError, Decided, DecisionEffect, PersonDecision};
pub use digest::{Digest, NotADigest, canonical, sorted_json};
pub use hold::{DEFAULT_UNDO_WINDOW, Hold, HoldDecision, HoldError, HoldStatus, InvalidHold};
pub use identity::{NotAPrincipal, Principal, TenantPrincipal};
pub use proof::{Attestation, DecisionMeans, DecisionProof, Signer};
pub use question::{
    Ask, Authorize, CredentialUse, FormRequest, Intervene, NamedCall, Question,
    least_security_level,
};
pub use quorum::{Escalation, GroupQuorum, Quorum, TooFewCandidates};
pub use secret::SECRET_FIELDS;
pub(crate) use secret::seal_fields;
pub use standing::{
    InvalidStanding, Reach, Revoked, StandingApproval, StandingCall, StandingScope,
};

/// How long an approver has to decide, unless the request sets another expiry.
pub const DEFAULT_EXPIRY: Duration = Duration::from_secs(24 * 60 * 60);

windlass_spec::word_set! {
    /// The status of a question.
    ApprovalStatus, "status" {
        /// It waits for a person.
        Pending = "pending",
        /// It was approved, answered, done, or responded to instead of the tool. [`Approval::outcome`] has
        /// the details.
        Approved = "approved",
        /// It was rejected.
        Rejected = "rejected",
        /// It expired before a decision.
        Expired = "expired",
        /// It was withdrawn, for instance because its run was cancelled.
        Cancelled = "cancelled",
    }
}

/// The content of a question, before it is checked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// The call it is about. It is also the id of the request.
    pub call: CallId,
    /// The calls that led to it through sub-agents, the outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parents: Vec<CallId>,
    /// The principal that the run acts for.
    #[serde(flatten)]
    pub principal: TenantPrincipal,
    /// The question.
    pub question: Question,
    /// Who wrote the text of the question. `None` if that was not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_by: Option<QuestionAuthor>,
    /// The user who is asked, as shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// How to answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instruction: Option<String>,
    /// The headline for the person, if it is not the reason or the question itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<NonEmptyText>,
    /// The call that a tool names in its own request. The decision is about the call that was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub named_call: Option<NamedCall>,
    /// What the request of a tool has besides, by name.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub further: Map<String, Value>,
    /// Whether the run resumes the call that asked: it is made again with the proof of the approval, or ended
    /// by an event of its own. In older journals the answer itself ends it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resumes_call: bool,
    /// What the tool that asks should write differently in its answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Deprecation>,
    /// Who may decide; every principal of the tenant if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvers: Vec<Principal>,
    /// Who has to agree, if not just one approver. `None` in questions from before there were groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quorum: Option<Quorum>,
    /// When it was asked.
    pub asked_at: Timestamp,
    /// When it expires.
    pub expires_at: Timestamp,
}

/// Who wrote the text of a question. People must not take it for a text of Windlass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionAuthor {
    /// Windlass itself.
    Windlass,
    /// An agent: its model wrote the text.
    Agent(AgentName),
    /// A tool.
    Tool(ToolName),
}

impl fmt::Display for QuestionAuthor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Windlass => f.write_str("Windlass"),
            Self::Agent(name) => write!(f, "the agent `{name}`"),
            Self::Tool(name) => write!(f, "the tool `{name}`"),
        }
    }
}

impl Request {
    /// A question about a call that expires after [`DEFAULT_EXPIRY`].
    #[must_use]
    pub fn new(
        call: CallId,
        principal: TenantPrincipal,
        question: Question,
        asked_at: Timestamp,
    ) -> Self {
        Self {
            call,
            parents: Vec::new(),
            principal,
            question,
            asked_by: None,
            user_id: None,
            instruction: None,
            message: None,
            named_call: None,
            further: Map::new(),
            resumes_call: false,
            notices: Vec::new(),
            approvers: Vec::new(),
            quorum: None,
            asked_at,
            expires_at: later(asked_at, DEFAULT_EXPIRY),
        }
    }
}

/// The time `duration` after `at`.
fn later(at: Timestamp, duration: Duration) -> Timestamp {
    let duration = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
    Timestamp::from_microseconds(at.as_microseconds().saturating_add(duration))
}

/// Why a request or a stored value is not a valid approval.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApprovalError {
    /// It could never be decided.
    #[error("it expires before it is asked")]
    ExpiresTooEarly,
    /// Policy may only raise the level.
    #[error("a call that is {risk} needs at least the security level {least}")]
    SecurityLevelTooLow {
        /// How reversible the call is.
        risk: RiskLevel,
        /// The least level.
        least: SecurityLevel,
    },
    /// There are no options and free text is not allowed.
    #[error("the question has no options and takes no free text, so it cannot be answered")]
    NoAnswerPossible,
    /// Two options have the same text.
    #[error("an option occurs twice")]
    OptionTwice,
    /// Two approvers are required, and only one is named.
    #[error("two approvers are required, but only `{0}` may decide")]
    TooFewApprovers(Principal),
    /// Too few people may decide.
    #[error(transparent)]
    TooFewCandidates(#[from] TooFewCandidates),
    /// The call does not belong to the run.
    #[error("the call `{call}` does not belong to the run `{run}`")]
    OtherRun {
        /// The run.
        run: RunId,
        /// The call.
        call: CallId,
    },
    /// The stored digest is not that of the question.
    #[error("the digest does not match the question")]
    OtherDigest,
    /// The stored decisions could not have been made.
    #[error("the recorded decisions are not possible: {0}")]
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
    /// Makes a pending approval from a request.
    ///
    /// # Errors
    /// If the request is invalid.
    pub fn ask(request: Request) -> Result<Self, ApprovalError> {
        request.question.check()?;
        if request.expires_at <= request.asked_at {
            return Err(ApprovalError::ExpiresTooEarly);
        }
        if let Some(first) = request.approvers.first()
            && request.question.needed() > 1
            && request
                .approvers
                .iter()
                .all(|other| other.is_same_person(first))
        {
            return Err(ApprovalError::TooFewApprovers(first.clone()));
        }
        let asked = Self {
            digest: request.question.digest(),
            request,
            status: ApprovalStatus::Pending,
            decisions: Vec::new(),
            settled_at: None,
        };
        if !asked.groups().is_empty() {
            let members = asked.groups().iter().flat_map(GroupQuorum::everybody);
            asked.check_candidates(&members.cloned().collect::<Vec<_>>())?;
        }
        Ok(asked)
    }

    /// The request it was made from.
    #[must_use]
    pub const fn request(&self) -> &Request {
        &self.request
    }

    /// The question.
    #[must_use]
    pub const fn question(&self) -> &Question {
        &self.request.question
    }

    /// Who wrote the text of the question, if not Windlass: the MCP server of a form, or else the recorded
    /// author. Without a record, Windlass wrote only about calls.
    #[must_use]
    pub fn asker(&self) -> Option<String> {
        match (self.question(), &self.request.asked_by) {
            (
                Question::Ask(Ask {
                    form: Some(form), ..
                }),
                _,
            ) => Some(format!("the MCP server `{}`", form.server)),
            (_, Some(QuestionAuthor::Windlass)) => None,
            (_, Some(author)) => Some(author.to_string()),
            (Question::Authorize(_), None) => None,
            (Question::Ask(_) | Question::Intervene(_), None) => {
                Some("a tool or an agent".to_owned())
            }
        }
    }

    /// The call it is about.
    #[must_use]
    pub const fn call(&self) -> &CallId {
        &self.request.call
    }

    /// The run of the call.
    #[must_use]
    pub const fn run(&self) -> &RunId {
        &self.request.call.run
    }

    /// The digest of the question as it was asked.
    #[must_use]
    pub const fn asked_digest(&self) -> Digest {
        self.digest
    }

    /// The digest to decide about now: that of the question, or of the edited call if the first of two
    /// approvers edited the arguments. A decision that states another digest is refused.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.decisions
            .iter()
            .rfind(|decided| decided.decision.is_approval())
            .map_or(self.digest, |decided| decided.digest)
    }

    /// Its status.
    #[must_use]
    pub const fn status(&self) -> ApprovalStatus {
        self.status
    }

    /// The decisions, in order. While it is pending, that is the first of two approvals.
    #[must_use]
    pub fn decisions(&self) -> &[Decided] {
        &self.decisions
    }

    /// The principals who decided, in order.
    pub fn deciders(&self) -> impl Iterator<Item = &Principal> {
        self.decisions.iter().map(|decided| &decided.by)
    }

    /// When it was settled.
    #[must_use]
    pub const fn settled_at(&self) -> Option<Timestamp> {
        self.settled_at
    }

    /// Whether it is pending and has expired.
    #[must_use]
    pub fn is_overdue(&self, at: Timestamp) -> bool {
        self.status == ApprovalStatus::Pending && at >= self.request.expires_at
    }

    /// How many more approvers are needed at least.
    #[must_use]
    pub fn still_needed(&self) -> usize {
        match self.status {
            ApprovalStatus::Pending => self.missing_after(self.decisions.iter()),
            _ => 0,
        }
    }

    /// Applies a decision. `digest` is the digest of what the approver was shown; without it, the
    /// current one is meant. One rejection is enough; an approval counts when enough different approvers
    /// have given it.
    ///
    /// # Errors
    /// If it is settled or expired, the principal may not decide, was shown something else, or has
    /// approved before, or the decision does not fit the question.
    pub fn decide(
        &mut self,
        by: &TenantPrincipal,
        decision: PersonDecision,
        digest: Option<&Digest>,
        at: Timestamp,
    ) -> Result<DecisionEffect, DecideError> {
        self.decide_attested(by, None, decision, digest, at)
    }

    /// Applies a decision as [`Approval::decide`] does, of an approver who is authenticated. The decision is signed
    /// afterwards ([`Approval::sign`]).
    ///
    /// # Errors
    /// As [`Approval::decide`], and if the means do not suffice for the call.
    pub fn decide_attested(
        &mut self,
        by: &TenantPrincipal,
        attestation: Option<Attestation>,
        decision: PersonDecision,
        digest: Option<&Digest>,
        at: Timestamp,
    ) -> Result<DecisionEffect, DecideError> {
        if self.status == ApprovalStatus::Expired || self.is_overdue(at) {
            return Err(DecideError::Expired(self.request.expires_at));
        }
        if self.status != ApprovalStatus::Pending {
            return Err(DecideError::NotPending(self.status));
        }
        let seat = attestation.as_ref();
        let seat = seat.and_then(|attestation| attestation.on_behalf_of.as_ref());
        let seat = seat.unwrap_or(&by.principal);
        if by.tenant != self.request.principal.tenant || !self.admits(seat, at) {
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
            digest: self.edited_digest(&decision).unwrap_or(asked),
            decision,
            proof: attestation.map(|attestation| DecisionProof {
                attestation,
                signature: String::new(),
            }),
        };
        if decided.decision.is_approval() {
            self.check_agreement(&decided, digest.is_some())?;
        }
        let status = match decided.decision {
            PersonDecision::Reject { .. } => ApprovalStatus::Rejected,
            // A response instead of the tool has no effect, so one approver is enough.
            PersonDecision::Respond { .. }
            | PersonDecision::Answer { .. }
            | PersonDecision::Done { .. } => ApprovalStatus::Approved,
            PersonDecision::Approve | PersonDecision::ApproveEdited { .. } => {
                let given = self.decisions.iter().chain([&decided]);
                match self.missing_after(given) {
                    0 => ApprovalStatus::Approved,
                    _ => ApprovalStatus::Pending,
                }
            }
        };
        self.decisions.push(decided);
        if status == ApprovalStatus::Pending {
            return Ok(DecisionEffect::NeedsAnotherApprover);
        }
        self.settle(status, at);
        Ok(DecisionEffect::Settled)
    }

    /// Expires it if it is pending and overdue. Returns whether it did.
    pub fn expire(&mut self, at: Timestamp) -> bool {
        let is_overdue = self.is_overdue(at);
        if is_overdue {
            self.settle(ApprovalStatus::Expired, at);
        }
        is_overdue
    }

    /// Withdraws it if it is pending. Returns whether it did.
    pub fn cancel(&mut self, at: Timestamp) -> bool {
        let is_pending = self.status == ApprovalStatus::Pending;
        if is_pending {
            self.settle(ApprovalStatus::Cancelled, at);
        }
        is_pending
    }

    /// The outcome; `None` while it is pending.
    #[must_use]
    pub fn outcome(&self) -> Option<ApprovalOutcome> {
        let last = match self.status {
            ApprovalStatus::Pending => return None,
            ApprovalStatus::Expired => return Some(ApprovalOutcome::Expired),
            ApprovalStatus::Cancelled => return Some(ApprovalOutcome::Cancelled),
            ApprovalStatus::Approved | ApprovalStatus::Rejected => self.decisions.last()?,
        };
        Some(match &last.decision {
            PersonDecision::Approve | PersonDecision::ApproveEdited { .. } => {
                ApprovalOutcome::Run {
                    arguments: self.arguments()?.clone(),
                    digest: last.digest,
                    is_edited: last.digest != self.digest,
                }
            }
            PersonDecision::Reject { message } => ApprovalOutcome::Rejected {
                by: last.by.clone(),
                message: message.clone(),
            },
            PersonDecision::Respond { value } => ApprovalOutcome::Responded(value.clone()),
            PersonDecision::Answer { text } => ApprovalOutcome::Answered(text.clone()),
            PersonDecision::Done { note } => ApprovalOutcome::Done(note.clone()),
        })
    }

    /// The arguments to decide about now, or those that were approved: as asked, unless an approver
    /// edited them.
    #[must_use]
    pub fn arguments(&self) -> Option<&Map<String, Value>> {
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

    /// The digest of the call that would run after this decision.
    fn edited_digest(&self, decision: &PersonDecision) -> Option<Digest> {
        match decision {
            PersonDecision::ApproveEdited { arguments } => {
                let tool = &self.question().authorize()?.tool_name;
                Some(Digest::of_call(tool, arguments))
            }
            _ => None,
        }
    }

    fn check_agreement(&self, decided: &Decided, is_stated: bool) -> Result<(), DecideError> {
        let people = [&decided.by, decided.seat()];
        if let Some(requester) = people.iter().find(|person| self.is_left_out(person)) {
            return Err(DecideError::ActsFor((*requester).clone()));
        }
        if let (Some(proof), Some(call)) = (&decided.proof, self.question().authorize()) {
            let (means, level) = (proof.attestation.means, call.security_level);
            let is_own = means == DecisionMeans::OwnCall && self.needs_several();
            if is_own || !means.suffices_for(level) {
                return Err(DecideError::WeakMeans { means, level });
            }
        }
        let Some(first) = self.decisions.first() else {
            return Ok(());
        };
        let is_same = |other: &&Decided| {
            let others = [&other.by, other.seat()];
            others
                .iter()
                .any(|other| people.iter().any(|person| other.is_same_person(person)))
        };
        if let Some(same) = self.decisions.iter().find(is_same) {
            return Err(DecideError::SamePrincipal(same.by.clone()));
        }
        if decided.digest != first.digest {
            return Err(DecideError::OtherArguments(first.by.clone()));
        }
        // The second approver may have looked at the call before the first one edited it.
        if decided.decision == PersonDecision::Approve && !is_stated && first.digest != self.digest
        {
            return Err(DecideError::DigestNeeded(first.by.clone()));
        }
        Ok(())
    }

    fn set_signature(&mut self, signature: String) {
        let last = self.decisions.last_mut();
        if let Some(proof) = last.and_then(|decided| decided.proof.as_mut()) {
            proof.signature = signature;
        }
    }

    fn settle(&mut self, status: ApprovalStatus, at: Timestamp) {
        self.status = status;
        self.settled_at = Some(at);
    }
}
