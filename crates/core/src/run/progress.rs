//! The progress of one call through gate, approval and undo window: the open question, the approval, the
//! hold, and what people reported since.

use serde_json::{Map, Value};
use windlass_spec::{CallId, CallState, Deprecation, SecurityLevel, Timestamp};

use super::event::{CallEnd, ExecutedTool, Variant};
use crate::approval::{Approval, Digest, GroupQuorum, Principal};
use crate::catalog::CallKind;
use crate::gate::{Decision, Verdict};

/// The answer that states that a call with an unknown outcome took effect. It is stored in journals.
pub(super) const IT_HAPPENED: &str = "It happened";

/// The answer that states that a call with an unknown outcome did nothing. It is stored in journals.
pub(super) const NOTHING_HAPPENED: &str = "It did not happen";

/// The progress of a call through gate, approval and undo window.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CallProgress {
    /// The question that waits for a person.
    question: Option<Approval>,
    /// The approval, once the call is approved.
    approved: Option<Approved>,
    /// The arguments that the model gave, if an approver edited them or the operator added to them.
    before_edit: Option<Map<String, Value>>,
    /// Whether an approver edited the arguments.
    is_edited: bool,
    /// The undo window.
    held: Option<Held>,
    /// What a person reported about a call with an unknown outcome, or that none did.
    report: Option<String>,
    /// The reply to a form of the tool. The call is resumed with it.
    reply: Option<FormReply>,
    /// The approval that the tool itself asked for, once it is given. The call is made again with its proof.
    proof: Option<ApprovalProof>,
    /// How the call ends now that a person answered its tool.
    answered_end: Option<CallEnd>,
    /// What its tool should write differently in its answers.
    notices: Vec<Deprecation>,
    /// Whether its result is untrusted although its tool does not reach outside.
    is_from_outside: bool,
    /// The implementation that runs, if there are several.
    variant: Option<Variant>,
    /// The questions about it that were settled, in order.
    settled: Vec<Approval>,
    /// Who undid it or released it early, and when.
    window_ended: Option<(Principal, Timestamp)>,
    /// How often it was tried again.
    retries: u32,
    /// The earlier call whose result it was answered with.
    reused: Option<CallId>,
    /// How many changes were known when it started. Its result is out of date after another one.
    changes_known: Option<u32>,
}

/// The reply to a form that a tool asked for while it ran.
#[derive(Debug, Clone, PartialEq)]
pub enum FormReply {
    /// A person filled it in.
    Filled(Map<String, Value>),
    /// A person declined.
    Declined,
    /// The form expired or was withdrawn.
    Unanswered,
}

/// The approval that a tool asked for, as it is proved to the tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalProof {
    /// The call that was approved. It is the id of the approval.
    pub call: CallId,
    /// The digest of the approved call.
    pub digest: Digest,
    /// The request of the tool, by the time it was asked: a call can ask more than once.
    pub asked_at: Timestamp,
    /// When it was approved.
    pub approved_at: Timestamp,
    /// The principals who approved it.
    pub approvers: Vec<Principal>,
}

/// The approval of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Approved {
    pub(super) security_level: SecurityLevel,
    /// The digest of the call that was approved, with the approver's edits.
    pub(super) digest: Digest,
    /// The groups that agreed.
    pub(super) groups: Vec<GroupQuorum>,
}

/// The undo window of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Held {
    until: Timestamp,
    /// Whether a person released it early.
    is_released: bool,
    /// Whether the run continues meanwhile.
    is_deferred: bool,
}

/// The step that a call is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// The gate has to do something: decide, ask, or hold.
    AtGate,
    /// A person has to answer; the question expires at this time.
    Asked(Timestamp),
    /// It is held until this time.
    Held(Timestamp),
    /// It may start, or has started and not ended.
    Runs,
    /// It has ended.
    Over,
}

impl CallProgress {
    /// The step of a call of that kind and state.
    pub(super) fn step(
        &self,
        kind: CallKind,
        state: CallState,
        decision: Option<&Decision>,
        now: Timestamp,
    ) -> Step {
        if let Some(question) = &self.question {
            return Step::Asked(question.request().expires_at);
        }
        match state {
            CallState::Pending => self.step_before_start(kind, decision, now),
            CallState::Running => Step::Runs,
            // A person has to report the outcome, if known. Journals from before such questions existed
            // record no risk and skip this step.
            CallState::Unknown if self.report.is_none() => {
                let has_risk = decision.and_then(Decision::risk_level).is_some();
                if has_risk { Step::AtGate } else { Step::Over }
            }
            _ => Step::Over,
        }
    }

    fn step_before_start(
        &self,
        kind: CallKind,
        decision: Option<&Decision>,
        now: Timestamp,
    ) -> Step {
        match decision.map(Decision::verdict) {
            None | Some(Verdict::Deny) => Step::AtGate,
            Some(Verdict::Ask) if self.approved.is_none() => Step::AtGate,
            Some(_) if kind.is_answered_by_person() => Step::AtGate,
            Some(Verdict::Ask | Verdict::Allow) => Step::Runs,
            Some(Verdict::Hold) => match self.held {
                None => Step::AtGate,
                Some(held) if held.is_released || now >= held.until => Step::Runs,
                Some(held) => Step::Held(held.until),
            },
        }
    }

    /// The question that waits for a person.
    #[must_use]
    pub fn question(&self) -> Option<&Approval> {
        self.question.as_ref()
    }

    /// When the undo window ends, if the call is held.
    #[must_use]
    pub fn held_until(&self) -> Option<Timestamp> {
        self.held.map(|held| held.until)
    }

    /// The implementation that ran, if there are several.
    #[must_use]
    pub fn variant(&self) -> Option<&Variant> {
        self.variant.as_ref()
    }

    /// What its tool should write differently in its answers.
    #[must_use]
    pub fn notices(&self) -> &[Deprecation] {
        &self.notices
    }

    /// The arguments that the model gave, if an approver edited them or the operator added to them.
    #[must_use]
    pub fn before_edit(&self) -> Option<&Map<String, Value>> {
        self.before_edit.as_ref()
    }

    /// The questions about the call that were settled, in order, with the decisions about them.
    #[must_use]
    pub fn settled(&self) -> &[Approval] {
        &self.settled
    }

    /// Who undid the call or released it early, and when.
    #[must_use]
    pub fn window_ended(&self) -> Option<(&Principal, Timestamp)> {
        self.window_ended.as_ref().map(|(by, at)| (by, *at))
    }

    /// How often the call was tried again.
    #[must_use]
    pub fn retries(&self) -> u32 {
        self.retries
    }

    /// The earlier call whose result the call was answered with.
    #[must_use]
    pub fn reused(&self) -> Option<&CallId> {
        self.reused.as_ref()
    }

    /// How many changes were known when the call started.
    pub(super) fn changes_known(&self) -> Option<u32> {
        self.changes_known
    }

    /// Whether the call is approved.
    pub(super) fn is_approved(&self) -> bool {
        self.approved.is_some()
    }

    /// The digest of the call that was approved.
    pub(super) fn approved_digest(&self) -> Option<Digest> {
        self.approved.as_ref().map(|approved| approved.digest)
    }

    /// Whether an approver edited the arguments.
    pub(super) fn is_edited(&self) -> bool {
        self.is_edited
    }

    /// Whether the run continues while the call is held.
    pub(super) fn is_deferred(&self) -> bool {
        self.held.is_some_and(|held| held.is_deferred)
    }

    /// What a person reported about a call with an unknown outcome.
    pub(super) fn report(&self) -> Option<&str> {
        self.report.as_deref()
    }

    /// Whether a person reported that a call with an unknown outcome did nothing.
    pub(super) fn did_nothing(&self) -> bool {
        let report = self.report.as_deref().unwrap_or_default();
        report.ends_with(NOTHING_HAPPENED)
    }

    /// Whether a person reported that a call with an unknown outcome took effect.
    pub(super) fn did_happen(&self) -> bool {
        let report = self.report.as_deref().unwrap_or_default();
        report.ends_with(IT_HAPPENED)
    }

    /// Whether its result is untrusted although its tool does not reach outside.
    pub(super) fn is_from_outside(&self) -> bool {
        self.is_from_outside
    }

    /// Whether a decision is stricter than an earlier one, given the approvals since.
    pub(super) fn is_stricter(&self, earlier: &Decision, decision: &Decision) -> bool {
        match &self.approved {
            _ if decision.verdict() == Verdict::Deny => earlier.verdict() != Verdict::Deny,
            Some(approved) => {
                let is_covered = decision.terms().is_covered_by(&approved.groups);
                decision.verdict() == Verdict::Ask
                    && (decision.security_level() > approved.security_level || !is_covered)
            }
            None => decision.verdict() > earlier.verdict(),
        }
    }

    /// Resets approval and hold for a new decision.
    pub(super) fn decide(&mut self) {
        self.approved = None;
        self.held = None;
        self.proof = None;
    }

    /// Keeps the arguments that the model gave before they are replaced.
    pub(super) fn keep_requested(&mut self, arguments: &Map<String, Value>) {
        self.before_edit.get_or_insert_with(|| arguments.clone());
    }

    /// Records the question that waits for a person.
    pub(super) fn ask(&mut self, question: Approval) {
        self.notices
            .extend(question.request().notices.iter().cloned());
        self.question = Some(question);
    }

    /// Takes the settled question in the place of the open one.
    pub(super) fn settle_question(&mut self, settled: &Approval) {
        self.question = None;
        self.settled.push(settled.clone());
    }

    /// Records an approval. `edited` has the model's arguments if the approver edited them.
    pub(super) fn approve(&mut self, approved: Approved, edited: Option<&Map<String, Value>>) {
        self.approved = Some(approved);
        if let Some(requested) = edited {
            self.keep_requested(requested);
            self.is_edited = true;
        }
    }

    /// Records the report about a call with an unknown outcome.
    pub(super) fn record_report(&mut self, report: String) {
        self.report = Some(report);
    }

    /// Records that the tool's own request was approved.
    pub(super) fn prove(&mut self, proof: ApprovalProof) {
        self.proof = Some(proof);
    }

    /// The approval to prove to the tool when the call is made again.
    pub(super) fn proof(&self) -> Option<&ApprovalProof> {
        self.proof.as_ref()
    }

    /// Records how the call ends now that a person answered its tool.
    pub(super) fn end_with(&mut self, end: CallEnd) {
        self.answered_end = Some(end);
    }

    /// How the call ends now that a person answered its tool.
    pub(super) fn answered_end(&self) -> Option<&CallEnd> {
        self.answered_end.as_ref()
    }

    /// Records the reply to a form.
    pub(super) fn reply(&mut self, reply: FormReply) {
        self.reply = Some(reply);
    }

    /// Takes the reply to a form, for the process that resumes the call.
    pub(super) fn take_reply(&mut self) -> Option<FormReply> {
        self.reply.take()
    }

    /// Holds the call.
    pub(super) fn hold(&mut self, until: Timestamp, is_deferred: bool) {
        self.held = Some(Held {
            until,
            is_released: false,
            is_deferred,
        });
    }

    /// Releases the call early, if it is held.
    pub(super) fn release(&mut self, by: &Principal, at: Timestamp) {
        if let Some(held) = self.held.as_mut() {
            held.is_released = true;
            self.window_ended = Some((by.clone(), at));
        }
    }

    /// Records who undid the call.
    pub(super) fn undo(&mut self, by: &Principal, at: Timestamp) {
        self.window_ended = Some((by.clone(), at));
    }

    /// Records the start of the call, the implementation if there are several, and how many changes are
    /// known.
    pub(super) fn start(&mut self, variant: Option<&Variant>, changes: u32) {
        self.variant = variant.cloned();
        self.changes_known = Some(changes);
    }

    /// Records that the call is tried again.
    pub(super) fn retry(&mut self) {
        self.retries += 1;
    }

    /// Records that the call was answered with the result of an earlier one.
    pub(super) fn reuse(&mut self, of: &CallId, changes: u32) {
        self.reused = Some(of.clone());
        self.changes_known = Some(changes);
    }

    /// Records the end of the call. Another process may have resumed it with another implementation.
    pub(super) fn end(&mut self, ran: Option<&ExecutedTool>, is_from_outside: bool) {
        let variant = ran.and_then(|ran| ran.variant.as_ref());
        self.notices
            .extend(ran.iter().flat_map(|ran| ran.notices.iter().cloned()));
        self.is_from_outside |= is_from_outside;
        if variant.is_some() {
            self.variant = variant.cloned();
        }
    }
}

#[cfg(test)]
mod tests;
