//! Applies the answers of people to a call: it may run, it ends, or its unknown outcome is reported.

use serde_json::{Value, json};
use windlass_spec::{
    CallChange, CallId, CallRecord, CallState, Effect, ErrorCategory, Failure, Timestamp,
};

use super::UNDONE;
use super::{Calls, advance};
use crate::approval::{Approval, ApprovalOutcome, sorted_json};
use crate::run::event::CallEnd;
use crate::run::grants::Grant;
use crate::run::history::{History, has_expired};
use crate::run::outcome::FoldError;
use crate::run::progress::{ApprovalProof, Approved, FormReply};
use crate::run::transcript::{EDITED, NOT_MADE};

const REJECTED: &str = "rejected the call";
const EXPIRED: &str = "The approval expired";
const WITHDRAWN: &str = "the question was withdrawn before it was answered";

/// Whether an observation says that a person kept a call from being made, so that its tool returned nothing.
#[must_use]
pub fn is_refused_by_person(observation: &str) -> bool {
    let text = observation.trim();
    let is_edited = text.starts_with(EDITED) && text.contains(NOT_MADE);
    let first_line = text.lines().next().unwrap_or_default();
    let by_name = [REJECTED, UNDONE].into_iter().any(|what| {
        // The name of a person stands before it.
        let name = first_line.split_once(what).map(|(name, _)| name);
        name.is_some_and(|name| name.ends_with(' ') && name.trim().split(' ').count() <= 3)
    });
    is_edited || by_name || text.starts_with(EXPIRED) || text.starts_with(WITHDRAWN)
}

impl Calls {
    /// Applies the answer to a question about a call. `show` shortens a value to what a model is shown.
    /// Returns the authorization for another call that it gives, if any.
    pub(super) fn settle(
        &mut self,
        approval: &Approval,
        at: Timestamp,
        history: &History,
        show: impl Fn(&Value) -> String,
    ) -> Result<Option<Grant>, FoldError> {
        let call = approval.call();
        let refused = || FoldError::AnswerMismatch(call.clone());
        self.entry(call)?;
        let target = self.call_mut(call).map_err(|_| refused())?;
        let asked = target.progress.question().ok_or_else(refused)?;
        // The whole request is compared, not only the call: the run depends on its approvers, its expiry
        // and its security level. An answer to an earlier question about the same call is refused.
        if asked.request() != approval.request() {
            return Err(refused());
        }
        let outcome = approval.outcome().ok_or_else(refused)?;
        let wanted = approval.question().authorize();
        let is_about_itself =
            wanted.is_some_and(|wanted| wanted.tool_name == *target.record.tool_name());
        let mut grant = None;
        match target.record.state() {
            CallState::Unknown => target.progress.record_report(outcome_report(&outcome)),
            CallState::Running if approval.question().form().is_some() => {
                target.progress.reply(form_reply(outcome));
                // The call is still running, and runs once more to continue with the reply.
                self.permitted.remove(call);
            }
            CallState::Running if approval.request().resumes_call => {
                self.resume_asking_tool(approval, &outcome, at, history)?;
            }
            CallState::Running => {
                let end = self.end_of_asking_tool(approval, &outcome, history);
                advance(self.call_mut(call)?.record, end, at)?;
            }
            CallState::Pending if is_about_itself => {
                self.take_approval(approval, outcome, at, history, show)?;
            }
            CallState::Pending => grant = self.end_question(approval, outcome, at, history)?,
            _ => return Err(refused()),
        }
        if matches!(approval.outcome(), Some(ApprovalOutcome::Done(_))) {
            // A person changed something by hand.
            self.note_change();
        }
        self.call_mut(call)?.progress.settle_question(approval);
        Ok(grant)
    }

    /// Resumes a call whose tool could not continue without a person: it is made again with the proof of the
    /// approval, or ends with the answer. The driver ends it by an event, as it ends every call.
    fn resume_asking_tool(
        &mut self,
        approval: &Approval,
        outcome: &ApprovalOutcome,
        at: Timestamp,
        history: &History,
    ) -> Result<(), FoldError> {
        let call = approval.call();
        let ApprovalOutcome::Run {
            arguments,
            digest,
            is_edited,
        } = outcome
        else {
            let end = match self.end_of_asking_tool(approval, outcome, history) {
                CallChange::Succeed(value) => CallEnd::Success(value),
                CallChange::Cancel(failure) => CallEnd::Cancelled(failure),
                CallChange::Fail(failure) => CallEnd::Error(failure),
                _ => return Err(FoldError::AnswerMismatch(call.clone())),
            };
            self.call_mut(call)?.progress.end_with(end);
            return Ok(());
        };
        let asked = approval.question().authorize();
        let asked = asked.ok_or_else(|| FoldError::AnswerMismatch(call.clone()))?;
        let approved = Approved {
            security_level: asked.security_level,
            digest: *digest,
            groups: approval.groups().to_vec(),
        };
        let proof = ApprovalProof {
            call: call.clone(),
            digest: *digest,
            asked_at: approval.request().asked_at,
            approved_at: approval.settled_at().unwrap_or(at),
            approvers: approval.deciders().cloned().collect(),
        };
        let target = self.call_mut(call)?;
        let requested = is_edited.then(|| target.record.arguments());
        target.progress.approve(approved, requested);
        target.progress.prove(proof);
        *target.record = target.record.before_start(arguments.clone());
        // Its tool did nothing but ask, so the call may start once more.
        self.permitted.remove(call);
        Ok(())
    }

    /// How a call ends whose tool could not continue without a person. It had no effect, as the tool itself
    /// reported.
    fn end_of_asking_tool(
        &self,
        approval: &Approval,
        outcome: &ApprovalOutcome,
        history: &History,
    ) -> CallChange {
        let asked = approval.question().headline();
        // That a tool asked does not show that it keeps failing.
        let category = match approval.request().resumes_call {
            true => ErrorCategory::Cancelled,
            false => ErrorCategory::Unavailable,
        };
        let again = |what: String| {
            // The same call may be made again now; that does not count as a repetition.
            let mut failure = Failure::new(category, Effect::None, what);
            failure.retryable = true;
            CallChange::Fail(failure)
        };
        match outcome {
            ApprovalOutcome::Answered(text) => {
                CallChange::Succeed(json!({"question": asked, "answer": text}))
            }
            ApprovalOutcome::Responded(value) => CallChange::Succeed(value.clone()),
            ApprovalOutcome::Done(note) => {
                let note = note.as_ref().map(|note| format!(" ({note})"));
                again(format!(
                    "The tool needed a person: {asked} A person has done it{}. Call the tool again.",
                    note.unwrap_or_default()
                ))
            }
            ApprovalOutcome::Run { .. } => again(format!(
                "The tool asked for authorization: {asked} It was given. Call the tool again."
            )),
            other => self.refusal(approval.call(), other, history),
        }
    }

    /// Ends a call by which the model asked a person something.
    fn end_question(
        &mut self,
        approval: &Approval,
        outcome: ApprovalOutcome,
        at: Timestamp,
        history: &History,
    ) -> Result<Option<Grant>, FoldError> {
        let call = approval.call();
        let (answer, grant) = match outcome {
            ApprovalOutcome::Answered(text) => (Value::String(text.to_string()), None),
            ApprovalOutcome::Responded(value) => (value, None),
            ApprovalOutcome::Run {
                arguments, digest, ..
            } => {
                let Some(asked) = approval.question().authorize() else {
                    return Err(FoldError::AnswerMismatch(call.clone()));
                };
                let message = format!(
                    "Authorization is given. Call `{}` now with exactly {}.",
                    asked.tool_name,
                    sorted_json(&Value::Object(arguments))
                );
                let grant = Grant::new(
                    call.clone(),
                    digest,
                    asked.security_level,
                    approval.groups().to_vec(),
                );
                (Value::String(message), Some(grant))
            }
            other => {
                let change = self.refusal(call, &other, history);
                advance(self.call_mut(call)?.record, change, at)?;
                return Ok(None);
            }
        };
        let record = self.call_mut(call)?.record;
        let mut answered = record.clone();
        advance(&mut answered, CallChange::Start, at)?;
        advance(&mut answered, CallChange::Succeed(answer), at)?;
        *record = answered;
        Ok(grant)
    }

    /// Applies the decision about a call that needs approval to run.
    fn take_approval(
        &mut self,
        approval: &Approval,
        outcome: ApprovalOutcome,
        at: Timestamp,
        history: &History,
        show: impl Fn(&Value) -> String,
    ) -> Result<(), FoldError> {
        let call = approval.call();
        let change = match outcome {
            ApprovalOutcome::Run {
                arguments,
                digest,
                is_edited,
            } => {
                let asked = approval.question().authorize();
                let asked = asked.ok_or_else(|| FoldError::AnswerMismatch(call.clone()))?;
                let target = self.call_mut(call)?;
                let requested = is_edited.then(|| target.record.arguments());
                let approved = Approved {
                    security_level: asked.security_level,
                    digest,
                    groups: approval.groups().to_vec(),
                };
                target.progress.approve(approved, requested);
                if is_edited {
                    *target.record = target.record.with_arguments(arguments);
                }
                return Ok(());
            }
            ApprovalOutcome::Responded(value) => {
                let message = format!(
                    "The call was not made. A person answered instead of the tool: {}",
                    show(&value)
                );
                let failure = Failure::new(ErrorCategory::Cancelled, Effect::None, message);
                CallChange::Cancel(failure)
            }
            other => self.refusal(call, &other, history),
        };
        advance(self.call_mut(call)?.record, change, at)
    }

    /// How a call ends that was not approved.
    fn refusal(&self, call: &CallId, outcome: &ApprovalOutcome, history: &History) -> CallChange {
        match outcome {
            ApprovalOutcome::Rejected { by, message } => {
                let message = match message {
                    Some(message) => format!("{by} {REJECTED}: {message}"),
                    None => format!("{by} {REJECTED}. Do not try it again."),
                };
                CallChange::Fail(Failure::new(ErrorCategory::Rejected, Effect::None, message))
            }
            ApprovalOutcome::Expired => {
                let is_second = self.expired_before(call, history);
                let message = match is_second {
                    true => format!("{EXPIRED} again. Continue without it."),
                    false => {
                        format!("{EXPIRED}. You may ask once more, or continue without it.")
                    }
                };
                let mut failure = Failure::new(ErrorCategory::Expired, Effect::None, message);
                failure.retryable = !is_second;
                CallChange::Fail(failure)
            }
            _ => CallChange::Cancel(Failure::new(
                ErrorCategory::Cancelled,
                Effect::None,
                WITHDRAWN,
            )),
        }
    }

    /// Whether an approval of the same call has expired before.
    fn expired_before(&self, call: &CallId, history: &History) -> bool {
        let Ok((record, _)) = self.call(call) else {
            return false;
        };
        let mut open = self.open_entries().filter_map(super::Entry::call);
        let is_same = |earlier: &CallRecord| {
            earlier.id() != call
                && earlier.tool_name() == record.tool_name()
                && earlier.arguments() == record.arguments()
        };
        open.any(|earlier| has_expired(earlier) && is_same(earlier)) || history.has_expired(record)
    }
}

/// The report of a person about a call with an unknown outcome.
fn outcome_report(outcome: &ApprovalOutcome) -> String {
    match outcome {
        ApprovalOutcome::Answered(text) => format!("A person reports: {text}"),
        _ => "No person reported the outcome.".to_owned(),
    }
}

/// The reply that the outcome of a form question stands for.
fn form_reply(outcome: ApprovalOutcome) -> FormReply {
    match outcome {
        ApprovalOutcome::Responded(Value::Object(filled)) => FormReply::Filled(filled),
        ApprovalOutcome::Rejected { .. } => FormReply::Declined,
        _ => FormReply::Unanswered,
    }
}
