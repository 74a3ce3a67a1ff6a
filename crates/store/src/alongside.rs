//! What is stored together with an event of a run, in one transaction: a question, a hold, the start of a held call, a mail
//! that is taken. Either all of it is there afterwards, or nothing.

use rusqlite::Connection;
use windlass_core::approval::{Approval, Hold};
use windlass_spec::{CallId, RunId, Timestamp};

use crate::error::Error;
use crate::journal::RunJournal;
use crate::mailbox::{MailId, take};
use crate::redact::RedactedEvent;
use crate::{approval, hold};

/// What is stored together with an event, all of it or nothing.
#[derive(Debug, Clone, Copy)]
pub enum Alongside<'a> {
    /// A question is put to a person.
    Ask(&'a Approval),
    /// A call is held.
    Hold(&'a Hold),
    /// A held call is about to run. Refused if it was undone, or is still to be held at the time of
    /// the event.
    Start(&'a CallId),
    /// A mail is taken. Refused if it was taken before.
    Take(MailId),
    /// The pending question and the hold of a call are withdrawn, if there are any.
    Withdraw(&'a CallId),
}

impl RunJournal {
    /// Stores an event and what goes with it in one transaction, and waits for the disk. Says which
    /// number the event has.
    ///
    /// # Errors
    /// If part of it is refused, in which case nothing is stored and the journal is as before; or if
    /// it could not be stored.
    pub fn append_alongside(
        &self,
        event: &RedactedEvent,
        alongside: &[Alongside<'_>],
    ) -> Result<u64, Error> {
        let parts: Result<Vec<Part>, Error> = alongside
            .iter()
            .map(|alongside| self.part(alongside))
            .collect();
        let parts = parts?;
        let run = self.lease().run().clone();
        let at = event.event().at();
        let beside = move |connection: &Connection, seq| {
            parts
                .iter()
                .try_for_each(|part| part.store(connection, &run, seq, at))
        };
        self.append_beside(event, Box::new(beside))
    }

    /// Stores an event and the question it asks.
    ///
    /// # Errors
    /// If the call has a pending question ([`Error::AlreadyAsked`]), the question is not of this run
    /// ([`Error::NotOfThisRun`]), or it could not be stored.
    pub fn append_asking(&self, event: &RedactedEvent, asked: &Approval) -> Result<u64, Error> {
        self.append_alongside(event, &[Alongside::Ask(asked)])
    }

    /// Stores an event and the hold it begins.
    ///
    /// # Errors
    /// If the call was held before ([`Error::AlreadyHeld`]), is not of this run
    /// ([`Error::NotOfThisRun`]), or it could not be stored.
    pub fn append_holding(&self, event: &RedactedEvent, held: &Hold) -> Result<u64, Error> {
        self.append_alongside(event, &[Alongside::Hold(held)])
    }

    /// Stores the event that a held call is about to run, if it may.
    ///
    /// # Errors
    /// If it is not held ([`Error::NoSuchHold`]), was undone, given up or started before
    /// ([`Error::TooLate`]), is still to be held ([`Error::NotDue`]), or it could not be stored.
    pub fn append_starting(&self, event: &RedactedEvent, call: &CallId) -> Result<u64, Error> {
        self.append_alongside(event, &[Alongside::Start(call)])
    }

    /// Takes a mail and stores the event it leads to.
    ///
    /// # Errors
    /// If the mail was taken before ([`Error::NoSuchMail`]), or it could not be stored.
    pub fn append_taking(&self, event: &RedactedEvent, mail: MailId) -> Result<u64, Error> {
        self.append_alongside(event, &[Alongside::Take(mail)])
    }

    fn part(&self, alongside: &Alongside<'_>) -> Result<Part, Error> {
        let check = |call: &CallId| {
            let run = self.lease().run();
            let is_ours = call.run == *run;
            is_ours.then_some(()).ok_or_else(|| Error::NotOfThisRun {
                run: run.clone(),
                call: call.clone(),
            })
        };
        Ok(match *alongside {
            Alongside::Ask(asked) => {
                check(asked.call())?;
                let (asked, body) = approval::redacted(&self.redactor, asked)?;
                Part::Ask(Box::new(asked), body)
            }
            Alongside::Hold(held) => {
                check(held.call())?;
                let (held, body) = hold::redacted(&self.redactor, held)?;
                Part::Hold(Box::new(held), body)
            }
            Alongside::Start(call) => {
                check(call)?;
                Part::Start(call.clone())
            }
            Alongside::Take(mail) => Part::Take(mail),
            Alongside::Withdraw(call) => {
                check(call)?;
                Part::Withdraw(call.clone())
            }
        })
    }
}

/// What is stored together with an event, without secrets and ready to be sent to another thread.
enum Part {
    Ask(Box<Approval>, String),
    Hold(Box<Hold>, String),
    Start(CallId),
    Take(MailId),
    Withdraw(CallId),
}

impl Part {
    fn store(
        &self,
        connection: &Connection,
        run: &RunId,
        seq: i64,
        at: Timestamp,
    ) -> Result<(), Error> {
        match self {
            Self::Ask(asked, body) => approval::insert(connection, asked, body),
            Self::Hold(held, body) => hold::insert(connection, held, body),
            Self::Start(call) => hold::start(connection, call, at),
            Self::Take(mail) => take(connection, run, *mail, seq, at),
            Self::Withdraw(call) => {
                approval::withdraw(connection, run, Some(call), at)?;
                hold::withdraw(connection, run, Some(call), at)
            }
        }
    }
}
