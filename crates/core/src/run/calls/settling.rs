//! What the answers of people change about a call: it may run, it ends, or it is known what became of it.

use serde_json::{Value, json};
use windlass_spec::{CallChange, CallId, CallState, Effect, ErrorCategory, Failure, Timestamp};

use super::{Calls, advance};
use crate::approval::{Approval, Outcome, canonical};
use crate::run::grants::Grant;
use crate::run::outcome::FoldError;
use crate::run::progress::Reply;

impl Calls {
    /// Takes the answer to a question about a call. `show` cuts a value to what a model is shown. Returns
    /// the authorization that it gives for another call, if it does.
    pub(in crate::run) fn settle(
        &mut self,
        approval: &Approval,
        at: Timestamp,
        show: impl Fn(&Value) -> String,
    ) -> Result<Option<Grant>, FoldError> {
        let call = approval.call();
        let refused = || FoldError::NotWhatWasAsked(call.clone());
        self.entry(call)?;
        let of_call = self.call_mut(call).map_err(|_| refused())?;
        let asked = of_call.progress.question().ok_or_else(refused)?;
        // All of it, not only the call: whom it was put to, until when, and how many have to agree
        // is what the run goes by. An answer to an earlier question about the same call is none.
        if asked.request() != approval.request() {
            return Err(refused());
        }
        let outcome = approval.outcome().ok_or_else(refused)?;
        let wanted = approval.question().authorize();
        let is_about_itself =
            wanted.is_some_and(|wanted| wanted.tool_name == *of_call.record.tool_name());
        let mut grant = None;
        match of_call.record.state() {
            CallState::Unknown => of_call.progress.take_word(word(&outcome)),
            CallState::Running if approval.question().form().is_some() => {
                of_call.progress.reply(reply(outcome));
                // The call is still under way, and runs once more to go on with it.
                self.permitted.remove(call);
            }
            CallState::Running => self.end_asking_tool(approval, &outcome, at)?,
            CallState::Pending if is_about_itself => {
                self.take_approval(approval, outcome, at, show)?;
            }
            CallState::Pending => grant = self.end_question(approval, outcome, at)?,
            _ => return Err(refused()),
        }
        self.call_mut(call)?.progress.settle();
        Ok(grant)
    }

    /// Ends a call whose tool could not go on without a person. It had no effect: it said so itself.
    fn end_asking_tool(
        &mut self,
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
            other => self.refusal(approval.call(), other),
        };
        advance(self.call_mut(approval.call())?.record, change, at)
    }

    /// Ends a call by which the model asked a person something.
    fn end_question(
        &mut self,
        approval: &Approval,
        outcome: Outcome,
        at: Timestamp,
    ) -> Result<Option<Grant>, FoldError> {
        let call = approval.call();
        let (answer, grant) = match outcome {
            Outcome::Answered(text) => (Value::String(text.to_string()), None),
            Outcome::Responded(value) => (value, None),
            Outcome::Run {
                arguments, digest, ..
            } => {
                let Some(asked) = approval.question().authorize() else {
                    return Err(FoldError::NotWhatWasAsked(call.clone()));
                };
                let message = format!(
                    "Leave is given. Call `{}` now with exactly {}.",
                    asked.tool_name,
                    canonical(&Value::Object(arguments))
                );
                let grant = Grant::new(call.clone(), digest, asked.security_level);
                (Value::String(message), Some(grant))
            }
            other => {
                let change = self.refusal(call, &other);
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

    /// Takes what people decided about a call that needs their approval to run.
    fn take_approval(
        &mut self,
        approval: &Approval,
        outcome: Outcome,
        at: Timestamp,
        show: impl Fn(&Value) -> String,
    ) -> Result<(), FoldError> {
        let call = approval.call();
        let change = match outcome {
            Outcome::Run {
                arguments,
                is_edited,
                ..
            } => {
                let asked = approval.question().authorize();
                let of_call = self.call_mut(call)?;
                let requested = is_edited.then(|| of_call.record.arguments());
                let level = asked.map(|asked| asked.security_level);
                of_call.progress.approve(level, requested);
                if is_edited {
                    *of_call.record = of_call.record.with_arguments(arguments);
                }
                return Ok(());
            }
            Outcome::Responded(value) => {
                let message = format!(
                    "The call was not made. A person answered in the tool's stead: {}",
                    show(&value)
                );
                let failure = Failure::new(ErrorCategory::Cancelled, Effect::None, message);
                CallChange::Cancel(failure)
            }
            other => self.refusal(call, &other),
        };
        advance(self.call_mut(call)?.record, change, at)
    }

    /// How a call ends that people did not approve.
    fn refusal(&self, call: &CallId, outcome: &Outcome) -> CallChange {
        match outcome {
            Outcome::Rejected { by, message } => {
                let message = match message {
                    Some(message) => format!("{by} said no: {message}"),
                    None => format!("{by} said no. Do not try it again."),
                };
                CallChange::Fail(Failure::new(ErrorCategory::Rejected, Effect::None, message))
            }
            Outcome::Expired => {
                let is_second = self.expired_before(call);
                let message = match is_second {
                    true => "Nobody decided in time, again. Go on without it.",
                    false => "Nobody decided in time. You may ask once more, or go on without it.",
                };
                let mut failure = Failure::new(ErrorCategory::Expired, Effect::None, message);
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
        let mut calls = self.entries().filter_map(super::Entry::call);
        calls.any(|earlier| {
            earlier.id() != call
                && earlier.tool_name() == record.tool_name()
                && earlier.arguments() == record.arguments()
                && matches!(earlier.outcome(), Some(Err(failure)) if failure.category == ErrorCategory::Expired)
        })
    }
}

/// What a person said about a call whose end nobody knew.
fn word(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Answered(text) => format!("A person says: {text}"),
        _ => "No person could tell.".to_owned(),
    }
}

/// The outcome of a form.
fn reply(outcome: Outcome) -> Reply {
    match outcome {
        Outcome::Responded(Value::Object(filled)) => Reply::Filled(filled),
        Outcome::Rejected { .. } => Reply::Declined,
        _ => Reply::Nobody,
    }
}
