//! Runs that live as long as the process: for tests, and for programs that keep nothing. People can
//! decide about them as they can about runs on disk.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use windlass_core::approval::{
    Approval, Changed, DecideError, Hold, HoldError, Identity, PersonDecision, Principal,
    StandingCall,
};
use windlass_core::run::{Event, RunEnd};
use windlass_spec::{CallId, NonEmptyText, RunId, Timestamp};
use windlass_store::{Durability, Mail, MailId, Message, RedactedEvent, Redactor};

use crate::durable::{Beside, Durable, DurableError, DurableFuture, Journal, TakenOver, now};

/// Runs in memory. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct InMemory {
    runs: Arc<Mutex<HashMap<RunId, Kept>>>,
}

#[derive(Debug, Default)]
struct Kept {
    events: Vec<Event>,
    is_over: bool,
    /// The latest question about each call.
    questions: BTreeMap<CallId, Approval>,
    holds: BTreeMap<CallId, Hold>,
    mail: Vec<Mail>,
    mail_count: i64,
}

impl InMemory {
    /// What happened to a run so far; nothing if there is none.
    #[must_use]
    pub fn events(&self, run: &RunId) -> Vec<Event> {
        self.with(run, |kept| kept.events.clone())
    }

    /// The runs there are.
    #[must_use]
    pub fn runs(&self) -> Vec<RunId> {
        let runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        let mut ids: Vec<RunId> = runs.keys().cloned().collect();
        ids.sort();
        ids
    }

    /// The latest question about each call of a run.
    #[must_use]
    pub fn questions(&self, run: &RunId) -> Vec<Approval> {
        self.with(run, |kept| kept.questions.values().cloned().collect())
    }

    /// Takes a person's decision about a call. `None` if nobody is asked about it.
    ///
    /// # Errors
    /// If the decision cannot be taken.
    pub fn decide(
        &self,
        call: &CallId,
        by: &Identity,
        decision: PersonDecision,
        now: Timestamp,
    ) -> Option<Result<Changed, DecideError>> {
        self.with(&call.run, |kept| {
            let question = kept.questions.get_mut(call)?;
            let changed = question.decide(by, decision, None, now);
            if changed == Ok(Changed::Settled) {
                let message = Message::Settled(Box::new(question.clone()));
                kept.post(Some(by.principal.clone()), message, now);
            }
            Some(changed)
        })
    }

    /// Undoes a held call. `None` if it is not held.
    ///
    /// # Errors
    /// If it is too late.
    pub fn undo(
        &self,
        call: &CallId,
        by: &Identity,
        now: Timestamp,
    ) -> Option<Result<(), HoldError>> {
        self.with(&call.run, |kept| {
            let undone = kept.holds.get_mut(call)?.undo(by, now);
            if undone.is_ok() {
                kept.post(Some(by.principal.clone()), Message::Undo(call.clone()), now);
            }
            Some(undone)
        })
    }

    /// Asks whoever drives a run to stop it.
    pub fn cancel(&self, run: &RunId, by: &Identity, now: Timestamp) {
        self.with(run, |kept| {
            kept.post(Some(by.principal.clone()), Message::Cancel, now);
        });
    }

    fn with<T>(&self, run: &RunId, take: impl FnOnce(&mut Kept) -> T) -> T {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        take(runs.entry(run.clone()).or_default())
    }

    fn journal(&self, run: &RunId) -> Result<Box<dyn Journal>, DurableError> {
        Ok(Box::new(MemoryJournal {
            runs: self.clone(),
            run: run.clone(),
            who: this_program()?,
        }))
    }
}

/// On whose behalf runs act that nobody else ever sees.
fn this_program() -> Result<Identity, DurableError> {
    let wrong = |error: &dyn ToString| DurableError(error.to_string());
    let tenant = NonEmptyText::new("local").map_err(|error| wrong(&error))?;
    let principal = Principal::new("this program").map_err(|error| wrong(&error))?;
    Ok(Identity::new(tenant, principal))
}

impl Kept {
    fn post(&mut self, by: Option<Principal>, message: Message, at: Timestamp) {
        self.mail_count += 1;
        let id = MailId::new(self.mail_count);
        self.mail.push(Mail {
            id,
            by,
            at,
            message,
        });
    }

    /// Does what goes with an event. Whether that is possible.
    fn put(&mut self, beside: Beside, at: Timestamp) -> bool {
        match beside {
            Beside::Ask(asked) => {
                self.questions.insert(asked.call().clone(), *asked);
                true
            }
            Beside::Hold(held) => self.holds.insert(held.call().clone(), *held).is_none(),
            Beside::Start(call) => {
                let hold = self.holds.get_mut(&call);
                hold.is_some_and(|hold| hold.start(at).is_ok())
            }
            Beside::Take(id) => {
                let before = self.mail.len();
                self.mail.retain(|mail| mail.id != id);
                self.mail.len() < before
            }
            Beside::Withdraw(call) => {
                if let Some(question) = self.questions.get_mut(&call) {
                    question.cancel(at);
                }
                if let Some(hold) = self.holds.get_mut(&call) {
                    hold.cancel(at);
                }
                true
            }
        }
    }
}

impl Durable for InMemory {
    fn start(
        &self,
        _: Option<String>,
        started: Event,
    ) -> DurableFuture<'_, (Event, Box<dyn Journal>)> {
        Box::pin(std::future::ready(match &started {
            Event::Started { run, .. } => {
                self.with(run, |kept| kept.events.push(started.clone()));
                self.journal(run).map(|journal| (started, journal))
            }
            _ => Err(DurableError("the event starts no run".to_owned())),
        }))
    }

    fn take_over<'d>(&'d self, run: &'d RunId) -> DurableFuture<'d, Option<TakenOver>> {
        let (events, is_over) = self.with(run, |kept| (kept.events.clone(), kept.is_over));
        Box::pin(async move {
            if events.is_empty() {
                return Ok(None);
            }
            let journal = match is_over {
                true => None,
                false => Some(self.journal(run)?),
            };
            Ok(Some(TakenOver { events, journal }))
        })
    }

    fn covering<'d>(&'d self, _: StandingCall<'d>) -> DurableFuture<'d, Option<i64>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    fn sweep(&self) -> DurableFuture<'_, ()> {
        let at = now();
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        for kept in runs.values_mut() {
            let mut expired = Vec::new();
            for question in kept.questions.values_mut() {
                if question.expire(at) {
                    expired.push(question.clone());
                }
            }
            for question in expired {
                kept.post(None, Message::Settled(Box::new(question)), at);
            }
        }
        Box::pin(std::future::ready(Ok(())))
    }
}

struct MemoryJournal {
    runs: InMemory,
    run: RunId,
    who: Identity,
}

impl Journal for MemoryJournal {
    fn who(&self) -> &Identity {
        &self.who
    }

    fn redacted(&self, event: Event) -> Result<RedactedEvent, DurableError> {
        Ok(Redactor::default().event(event)?)
    }

    fn append<'j>(&'j mut self, event: &'j RedactedEvent, _: Durability) -> DurableFuture<'j, ()> {
        self.runs
            .with(&self.run, |kept| kept.events.push(event.event().clone()));
        Box::pin(std::future::ready(Ok(())))
    }

    fn append_beside<'j>(
        &'j mut self,
        event: &'j RedactedEvent,
        beside: Beside,
    ) -> DurableFuture<'j, bool> {
        let is_kept = self.runs.with(&self.run, |kept| {
            let is_possible = kept.put(beside, event.event().at());
            if is_possible {
                kept.events.push(event.event().clone());
            }
            is_possible
        });
        Box::pin(std::future::ready(Ok(is_kept)))
    }

    fn mail(&self) -> DurableFuture<'_, Vec<Mail>> {
        let mail = self.runs.with(&self.run, |kept| kept.mail.clone());
        Box::pin(std::future::ready(Ok(mail)))
    }

    fn end<'j>(&'j mut self, end: &'j RunEnd) -> DurableFuture<'j, ()> {
        let is_over = *end != RunEnd::WaitingForPerson;
        self.runs.with(&self.run, |kept| kept.is_over = is_over);
        Box::pin(std::future::ready(Ok(())))
    }
}
