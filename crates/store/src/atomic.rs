//! Writes in the same transaction as an event of a run: a question, a hold, the start of a held call,
//! an inbox command that is taken, and the check that nothing stopped it. Either all of them are stored, or none.

use windlass_core::approval::{Approval, Hold};
use windlass_core::durable::{AtomicWrite, InboxCommandId};
use windlass_core::redact::RedactedEvent;
use windlass_spec::CallId;

use crate::error::Error;
use crate::inbox::take;
use crate::journal::RunJournal;
use crate::{approval, hold, stop};

impl RunJournal {
    /// Stores an event and the writes that belong to it in one transaction, and waits for the disk. Returns
    /// the number of the event.
    ///
    /// # Errors
    /// If a write is refused, in which case nothing is stored and the journal is as before; or if it
    /// could not be stored. See [`Error::is_refusal`].
    pub fn append_with(
        &self,
        event: &RedactedEvent,
        writes: Vec<AtomicWrite>,
    ) -> Result<u64, Error> {
        let writes: Vec<AtomicWrite> = writes
            .into_iter()
            .map(|write| self.checked(write))
            .collect::<Result<_, _>>()?;
        let run = self.lease().run().clone();
        let at = event.event().at();
        self.append_atomic(event, move |connection, seq| {
            writes.iter().try_for_each(|write| match write {
                AtomicWrite::Question(asked) => approval::insert(connection, asked),
                AtomicWrite::Hold(held) => hold::insert(connection, held),
                AtomicWrite::Start(call) => hold::start(connection, call, at),
                AtomicWrite::Take(command) => take(connection, &run, *command, seq, at),
                AtomicWrite::Unstopped(work) => stop::check(connection, work),
                AtomicWrite::Withdraw(call) => {
                    approval::withdraw(connection, &run, Some(call), at)?;
                    hold::withdraw(connection, &run, Some(call), at)
                }
            })
        })
    }

    /// Stores an event and the question it asks, from which secrets were removed with the event.
    ///
    /// # Errors
    /// If the call has a pending question ([`Error::AlreadyAsked`]), the question is not of this run
    /// ([`Error::NotOfThisRun`]) or has a secret in it ([`Error::SecretInStructure`]), or it could not be
    /// stored.
    pub fn append_asking(&self, event: &RedactedEvent, asked: &Approval) -> Result<u64, Error> {
        let question = AtomicWrite::Question(Box::new(asked.clone()));
        self.append_with(event, vec![question])
    }

    /// Stores an event and the hold it begins.
    ///
    /// # Errors
    /// If the call was held before ([`Error::AlreadyHeld`]), is not of this run
    /// ([`Error::NotOfThisRun`]), or it could not be stored.
    pub fn append_holding(&self, event: &RedactedEvent, held: &Hold) -> Result<u64, Error> {
        self.append_with(event, vec![AtomicWrite::Hold(Box::new(held.clone()))])
    }

    /// Stores the event that a held call is about to run, if it may.
    ///
    /// # Errors
    /// If it is not held ([`Error::NoSuchHold`]), was undone, cancelled or started before
    /// ([`Error::TooLate`]), must still be held ([`Error::NotDue`]), or it could not be stored.
    pub fn append_starting(&self, event: &RedactedEvent, call: &CallId) -> Result<u64, Error> {
        self.append_with(event, vec![AtomicWrite::Start(call.clone())])
    }

    /// Takes an inbox command and stores the event it leads to.
    ///
    /// # Errors
    /// If the command was taken before ([`Error::NoSuchCommand`]), or it could not be stored.
    pub fn append_taking(
        &self,
        event: &RedactedEvent,
        command: InboxCommandId,
    ) -> Result<u64, Error> {
        self.append_with(event, vec![AtomicWrite::Take(command)])
    }

    /// The write without secrets, if it is about this run.
    fn checked(&self, write: AtomicWrite) -> Result<AtomicWrite, Error> {
        let run = self.lease().run();
        let call = match &write {
            AtomicWrite::Question(asked) => asked.call(),
            AtomicWrite::Hold(held) => held.call(),
            AtomicWrite::Start(call) | AtomicWrite::Withdraw(call) => call,
            AtomicWrite::Take(_) => return Ok(write),
            AtomicWrite::Unstopped(work) if work.run == *run => return Ok(write),
            AtomicWrite::Unstopped(_) => {
                return Err(Error::NoSuchRun(run.clone()));
            }
        };
        if call.run != *run {
            return Err(Error::NotOfThisRun {
                run: run.clone(),
                call: call.clone(),
            });
        }
        Ok(match write {
            AtomicWrite::Question(asked) => {
                approval::check_redacted(&self.redactor, &asked)?;
                AtomicWrite::Question(asked)
            }
            AtomicWrite::Hold(held) => {
                AtomicWrite::Hold(Box::new(hold::redacted(&self.redactor, &held)?))
            }
            other => other,
        })
    }
}
