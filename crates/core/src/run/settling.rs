//! What a run makes of the answers of people: leave to run a call, the end of a call, or a word about
//! one whose end nobody knew.

use serde_json::{Value, json};
use windlass_spec::{
    CallChange, CallId, CallState, Effect, ErrorCategory, Failure, SecurityLevel, Timestamp,
};

use super::outcome::FoldError;
use super::people::NOTHING_HAPPENED;
use super::stand::{Reply, Stand, Step};
use super::state::{Entry, Run};
use crate::approval::{Approval, Digest, Outcome, canonical};

/// Leave that a person gave for a call that is yet to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Grant {
    /// The call of `request_authorization` that led to it.
    pub(super) call: CallId,
    pub(super) digest: Digest,
    pub(super) security_level: SecurityLevel,
}

impl Run {
    pub(super) fn take_question(&mut self, approval: &Approval) -> Result<(), FoldError> {
        let call = approval.call();
        let refused = || FoldError::NotToBeAsked(call.clone());
        let entry = self.entry(call)?;
        let may_ask = match self.step_of(entry) {
            // A tool may ask while it runs.
            Some(Step::Runs) => {
                matches!(entry, Entry::Call { record, .. } if record.state() == CallState::Running)
            }
            Some(Step::AtGate) => {
                matches!(entry, Entry::Call { decision, .. } if decision.is_some())
            }
            _ => false,
        };
        match self.entry_mut(call) {
            Some(Entry::Call { stand, .. }) if may_ask => {
                stand.question = Some(approval.clone());
                Ok(())
            }
            _ => Err(refused()),
        }
    }

    pub(super) fn take_settled(
        &mut self,
        approval: &Approval,
        at: Timestamp,
    ) -> Result<(), FoldError> {
        let call = approval.call();
        let refused = || FoldError::NotWhatWasAsked(call.clone());
        let Entry::Call { record, stand, .. } = self.entry(call)? else {
            return Err(refused());
        };
        let asked = stand.question.as_ref().ok_or_else(refused)?;
        // All of it, not only the call: whom it was put to, until when, and how many have to agree
        // is what the run goes by. An answer to an earlier question about the same call is none.
        if asked.request() != approval.request() {
            return Err(refused());
        }
        let outcome = approval.outcome().ok_or_else(refused)?;
        let wanted = approval.question().authorize();
        let is_about_itself = wanted.is_some_and(|wanted| wanted.tool_name == *record.tool_name());
        match record.state() {
            CallState::Unknown => self.take_word(call, &outcome),
            CallState::Running if approval.question().form().is_some() => {
                self.take_reply_of(call, outcome);
            }
            CallState::Running => self.end_asking_tool(call, approval, &outcome, at)?,
            CallState::Pending if is_about_itself => {
                self.take_leave(call, approval, outcome, at)?;
            }
            CallState::Pending => self.end_question(call, approval, outcome, at)?,
            _ => return Err(refused()),
        }
        if let Some(Entry::Call { stand, .. }) = self.entry_mut(call) {
            stand.question = None;
        }
        Ok(())
    }

    /// What a person said about a call whose end nobody knew.
    fn take_word(&mut self, call: &CallId, outcome: &Outcome) {
        let word = match outcome {
            Outcome::Answered(text) => format!("A person says: {text}"),
            _ => "No person could tell.".to_owned(),
        };
        if let Some(Entry::Call { stand, .. }) = self.entry_mut(call) {
            stand.word = Some(word);
        }
    }

    /// What came of a form. The call is still under way, and may be run once more to go on with it.
    fn take_reply_of(&mut self, call: &CallId, outcome: Outcome) {
        let reply = match outcome {
            Outcome::Responded(Value::Object(filled)) => Reply::Filled(filled),
            Outcome::Rejected { .. } => Reply::Declined,
            _ => Reply::Nobody,
        };
        self.permitted.remove(call);
        if let Some(Entry::Call { stand, .. }) = self.entry_mut(call) {
            stand.reply = Some(reply);
        }
    }

    /// Ends a call whose tool could not go on without a person. It had no effect: it said so itself.
    fn end_asking_tool(
        &mut self,
        call: &CallId,
        approval: &Approval,
        outcome: &Outcome,
        at: Timestamp,
    ) -> Result<(), FoldError> {
        let asked = approval.question().headline();
        let again = |what: String| {
            // The same call may be made again now, which is no repetition.
            let mut failure = Failure::new(ErrorCategory::Unavailable, Effect::None, what);
            failure.retryable = true;
            CallChange::Fail(failure)
        };
        let change = match outcome {
            Outcome::Answered(text) => {
                CallChange::Succeed(json!({"question": asked, "answer": text}))
            }
            Outcome::Responded(value) => CallChange::Succeed(value.clone()),
            Outcome::Done(note) => {
                let note = note.as_ref().map(|note| format!(" ({note})"));
                again(format!(
                    "The tool needed a person: {asked} A person has done it{}. Call the tool again.",
                    note.unwrap_or_default()
                ))
            }
            Outcome::Run { .. } => again(format!(
                "The tool asked a person for leave: {asked} It was given. Call the tool again."
            )),
            other => self.refusal(call, other),
        };
        self.advance(call, change, at)
    }

    /// Ends a call by which the model asked a person something.
    fn end_question(
        &mut self,
        call: &CallId,
        approval: &Approval,
        outcome: Outcome,
        at: Timestamp,
    ) -> Result<(), FoldError> {
        let (answer, grant) = match outcome {
            Outcome::Answered(text) => (Value::String(text.to_string()), None),
            Outcome::Responded(value) => (value, None),
            Outcome::Run {
                arguments, digest, ..
            } => {
                let Some(asked) = approval.question().authorize() else {
                    return Err(FoldError::NotWhatWasAsked(call.clone()));
                };
                let told = format!(
                    "Leave is given. Call `{}` now with exactly {}.",
                    asked.tool_name,
                    canonical(&Value::Object(arguments))
                );
                let grant = Grant {
                    call: call.clone(),
                    digest,
                    security_level: asked.security_level,
                };
                (Value::String(told), Some(grant))
            }
            other => {
                let change = self.refusal(call, &other);
                return self.advance(call, change, at);
            }
        };
        self.advance(call, CallChange::Start, at)?;
        self.advance(call, CallChange::Succeed(answer), at)?;
        self.grants.extend(grant);
        Ok(())
    }

    /// Takes what people decided about a call that may not run without their leave.
    fn take_leave(
        &mut self,
        call: &CallId,
        approval: &Approval,
        outcome: Outcome,
        at: Timestamp,
    ) -> Result<(), FoldError> {
        match outcome {
            Outcome::Run {
                arguments,
                is_edited,
                ..
            } => {
                let level = approval
                    .question()
                    .authorize()
                    .map(|asked| asked.security_level);
                if let Some(Entry::Call { record, stand, .. }) = self.entry_mut(call) {
                    stand.approved = level;
                    if is_edited {
                        let before = record.arguments().clone();
                        stand.before_edit.get_or_insert(before);
                        stand.is_edited = true;
                        **record = record.with_arguments(arguments);
                    }
                }
                Ok(())
            }
            Outcome::Responded(value) => {
                let told = format!(
                    "The call was not made. A person answered in the tool's stead: {}",
                    self.shown(&value)
                );
                let failure = Failure::new(ErrorCategory::Cancelled, Effect::None, told);
                self.advance(call, CallChange::Cancel(failure), at)
            }
            other => {
                let change = self.refusal(call, &other);
                self.advance(call, change, at)
            }
        }
    }

    /// How a call ends that people did not give leave for.
    fn refusal(&self, call: &CallId, outcome: &Outcome) -> CallChange {
        match outcome {
            Outcome::Rejected { by, message } => {
                let told = match message {
                    Some(message) => format!("{by} said no: {message}"),
                    None => format!("{by} said no. Do not try it again."),
                };
                CallChange::Fail(Failure::new(ErrorCategory::Rejected, Effect::None, told))
            }
            Outcome::Expired => {
                let is_second = self.expired_before(call);
                let told = match is_second {
                    true => "Nobody decided in time, again. Go on without it.",
                    false => "Nobody decided in time. You may ask once more, or go on without it.",
                };
                let mut failure = Failure::new(ErrorCategory::Expired, Effect::None, told);
                failure.retryable = !is_second;
                CallChange::Fail(failure)
            }
            _ => CallChange::Cancel(Failure::new(
                ErrorCategory::Cancelled,
                Effect::None,
                "the question was withdrawn before anybody answered it",
            )),
        }
    }

    /// Whether nobody decided in time about the same call before.
    fn expired_before(&self, call: &CallId) -> bool {
        let Ok((record, _)) = self.call(call) else {
            return false;
        };
        self.calls().any(|earlier| {
            earlier.id() != call
                && earlier.tool_name() == record.tool_name()
                && earlier.arguments() == record.arguments()
                && matches!(earlier.outcome(), Some(Err(failure)) if failure.category == ErrorCategory::Expired)
        })
    }
}

impl Stand {
    /// Whether a person said that a call whose end nobody knew did nothing.
    pub(super) fn did_nothing(&self) -> bool {
        let word = self.word.as_deref().unwrap_or_default();
        word.ends_with(NOTHING_HAPPENED)
    }
}
