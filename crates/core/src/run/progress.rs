//! The progress of one call between the gate, people and time: the question that waits for an answer, the
//! approval that was given, the undo window, and what people said about it since.

use serde_json::{Map, Value};
use windlass_spec::{CallState, SecurityLevel, Timestamp};

use super::event::Variant;
use crate::approval::Approval;
use crate::catalog::CallKind;
use crate::gate::{Decision, Verdict};

/// What a person answers if a call whose end nobody knew has done nothing.
pub(super) const NOTHING_HAPPENED: &str = "It did not happen";

/// The progress of a call between the gate, people and time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CallProgress {
    /// The question that waits for a person.
    question: Option<Approval>,
    /// The approval that people gave, and with how much care.
    approved: Option<SecurityLevel>,
    /// What the model asked for, if a person changed it or the operator added to it.
    before_edit: Option<Map<String, Value>>,
    /// Whether a person changed it.
    is_edited: bool,
    /// The undo window.
    held: Option<Held>,
    /// What a person said about a call whose end nobody knew, or that nobody did.
    word: Option<String>,
    /// The outcome of a form that the tool wanted filled in. The call is resumed with it.
    reply: Option<Reply>,
    /// Whether its result comes from outside, though its tool does not reach there.
    is_from_outside: bool,
    /// Which of several implementations runs, if there are several.
    variant: Option<Variant>,
}

/// The outcome of a form that a tool wanted filled in while it ran.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// A person filled it in.
    Filled(Map<String, Value>),
    /// A person said no.
    Declined,
    /// Nobody answered.
    Nobody,
}

/// The undo window of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Held {
    until: Timestamp,
    /// Whether a person let it go before its time.
    is_released: bool,
    /// Whether the run goes on meanwhile.
    is_deferred: bool,
}

/// How far a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// The gate has to do something: decide, ask, or hold.
    AtGate,
    /// A person has to answer, until then.
    Asks(Timestamp),
    /// It is held until then.
    Held(Timestamp),
    /// It may start, or has started and not ended.
    Runs,
    /// It has ended.
    Over,
}

impl CallProgress {
    /// How far a call of that kind and state is.
    pub(super) fn step(
        &self,
        kind: CallKind,
        state: CallState,
        decision: Option<&Decision>,
        now: Timestamp,
    ) -> Step {
        if let Some(question) = &self.question {
            return Step::Asks(question.request().expires_at);
        }
        match state {
            CallState::Pending => self.step_before_start(kind, decision, now),
            CallState::Running => Step::Runs,
            // A person has to say what became of it, as far as anybody can. Journals from before
            // there were such questions record no risk, and go on without.
            CallState::Unknown if self.word.is_none() => {
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

    /// Until when the call is held, unless it is released.
    #[must_use]
    pub fn held_until(&self) -> Option<Timestamp> {
        self.held.map(|held| held.until)
    }

    /// Which of several implementations ran, if there are several.
    #[must_use]
    pub fn variant(&self) -> Option<&Variant> {
        self.variant.as_ref()
    }

    /// What the model asked for, if a person changed it or the operator added to it.
    #[must_use]
    pub fn before_edit(&self) -> Option<&Map<String, Value>> {
        self.before_edit.as_ref()
    }

    /// Whether people approved the call.
    pub(super) fn is_approved(&self) -> bool {
        self.approved.is_some()
    }

    /// Whether a person changed what the model asked for.
    pub(super) fn is_edited(&self) -> bool {
        self.is_edited
    }

    /// Whether the run goes on while the call is held.
    pub(super) fn is_deferred(&self) -> bool {
        self.held.is_some_and(|held| held.is_deferred)
    }

    /// What a person said about a call whose end nobody knew.
    pub(super) fn word(&self) -> Option<&str> {
        self.word.as_deref()
    }

    /// Whether a person said that a call whose end nobody knew did nothing.
    pub(super) fn did_nothing(&self) -> bool {
        let word = self.word.as_deref().unwrap_or_default();
        word.ends_with(NOTHING_HAPPENED)
    }

    /// Whether its result comes from outside, though its tool does not reach there.
    pub(super) fn is_from_outside(&self) -> bool {
        self.is_from_outside
    }

    /// Whether a decision asks for more than an earlier one, given what people have approved since.
    pub(super) fn is_stricter(&self, earlier: &Decision, decision: &Decision) -> bool {
        match self.approved {
            _ if decision.verdict() == Verdict::Deny => earlier.verdict() != Verdict::Deny,
            Some(level) => decision.verdict() == Verdict::Ask && decision.security_level() > level,
            None => decision.verdict() > earlier.verdict(),
        }
    }

    /// Takes a decision. What people and time had come to was about another one.
    pub(super) fn decide(&mut self) {
        self.approved = None;
        self.held = None;
    }

    /// Keeps what the model asked for, before something else takes its place.
    pub(super) fn keep_requested(&mut self, arguments: &Map<String, Value>) {
        self.before_edit.get_or_insert_with(|| arguments.clone());
    }

    /// Takes the question that waits for a person.
    pub(super) fn ask(&mut self, question: Approval) {
        self.question = Some(question);
    }

    /// The question is settled.
    pub(super) fn settle(&mut self) {
        self.question = None;
    }

    /// People approved the call, perhaps with other arguments than these.
    pub(super) fn approve(
        &mut self,
        level: Option<SecurityLevel>,
        edited: Option<&Map<String, Value>>,
    ) {
        self.approved = level;
        if let Some(requested) = edited {
            self.keep_requested(requested);
            self.is_edited = true;
        }
    }

    /// A person said what became of a call whose end nobody knew.
    pub(super) fn take_word(&mut self, word: String) {
        self.word = Some(word);
    }

    /// A form was answered.
    pub(super) fn reply(&mut self, reply: Reply) {
        self.reply = Some(reply);
    }

    /// The outcome of a form, for the process that resumes the call.
    pub(super) fn take_reply(&mut self) -> Option<Reply> {
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

    /// Lets the call go before its time. Returns whether it was held.
    pub(super) fn release(&mut self) -> bool {
        let held = self.held.as_mut();
        held.map(|held| held.is_released = true).is_some()
    }

    /// The call begins, with one of several implementations if there are several.
    pub(super) fn start(&mut self, variant: Option<&Variant>) {
        self.variant = variant.cloned();
    }

    /// The call ended. Another process may have gone on with another implementation.
    pub(super) fn end(&mut self, variant: Option<&Variant>, is_from_outside: bool) {
        self.is_from_outside |= is_from_outside;
        if variant.is_some() {
            self.variant = variant.cloned();
        }
    }
}

#[cfg(test)]
mod tests;
