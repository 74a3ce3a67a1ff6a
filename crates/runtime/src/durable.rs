//! Where runs are kept. The driver knows only this port, so the same driver works on SQLite, in
//! memory, or on something distributed. What others want of a run comes to its driver as mail; what
//! a run wants of others is kept beside the event that says so.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use windlass_core::approval::{Approval, Hold, Identity, StandingCall};
use windlass_core::limits::Limit;
use windlass_core::run::{Event, Run, RunEnd};
use windlass_spec::{CallId, RunId, Timestamp, ToolGapReport, ToolName};
use windlass_store::{Alongside, Durability, Mail, MailId, RedactedEvent, UsedUp};
use windlass_tools::MemoryPort;

use crate::playbook::Playbooks;

/// Something could not be kept or read back. The run stops at once: what is not in the journal did
/// not happen.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct DurableError(pub String);

impl From<windlass_store::Error> for DurableError {
    fn from(error: windlass_store::Error) -> Self {
        Self(error.to_string())
    }
}

/// What a journal answers with, later.
pub type DurableFuture<'j, T> = Pin<Box<dyn Future<Output = Result<T, DurableError>> + Send + 'j>>;

/// Keeps runs.
pub trait Durable: Send + Sync {
    /// Begins the journal of a run with its first event and says what the event is without secrets.
    fn start(
        &self,
        task_id: Option<String>,
        started: Event,
    ) -> DurableFuture<'_, (Event, Box<dyn Journal>)>;

    /// Takes over a run to go on with it; `None` if there is none of that id.
    fn take_over<'d>(&'d self, run: &'d RunId) -> DurableFuture<'d, Option<TakenOver>>;

    /// The number of the standing approval that covers a call, if one does.
    fn covering<'d>(&'d self, call: StandingCall<'d>) -> DurableFuture<'d, Option<i64>>;

    /// Whether a call could be taken from these limits now, as far as that is kept for others to see;
    /// the one that stands in its way if not. Nothing is used up.
    fn used_up<'d>(
        &'d self,
        _tenant: &'d str,
        _limits: &'d [Limit],
        _now: Timestamp,
    ) -> DurableFuture<'d, Option<UsedUp>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Takes a call from all of these limits, or from none of them if one is used up, where others
    /// see it.
    fn take<'d>(
        &'d self,
        _tenant: &'d str,
        _limits: &'d [Limit],
        _now: Timestamp,
    ) -> DurableFuture<'d, Option<UsedUp>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Takes the one turn there is under a key until `until`, where others see it. When there is one
    /// again, if it is taken.
    fn take_turn<'d>(
        &'d self,
        _tenant: &'d str,
        _key: &'d str,
        _now: Timestamp,
        _until: Timestamp,
    ) -> DurableFuture<'d, Option<Timestamp>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// How the latest calls of a tool ended that say something about it, also those of others: which
    /// call, whether it failed, and when.
    fn latest_ends<'d>(
        &'d self,
        _tenant: &'d str,
        _tool: &'d ToolName,
        _limit: u32,
    ) -> DurableFuture<'d, Vec<(CallId, bool, Timestamp)>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// Notes what a run lacked while it went on, once: who notes it again changes nothing. Where only
    /// journals are kept, the journal tells.
    fn note_gap<'d>(
        &'d self,
        _run: &'d Run,
        _who: &'d Identity,
        _report: ToolGapReport,
    ) -> DurableFuture<'d, ()> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Where what agents remember is kept; nowhere, if nothing is said.
    fn memory(&self) -> Option<Arc<dyn MemoryPort>> {
        None
    }

    /// Where what runs teach is kept; nowhere, if nothing is said.
    fn playbooks(&self) -> Option<Arc<Playbooks>> {
        None
    }

    /// Ends the questions that nobody decided in time. The runs that ask them get mail.
    fn sweep(&self) -> DurableFuture<'_, ()>;

    /// An id for a new run.
    ///
    /// # Errors
    /// If there is none to be had.
    fn new_id(&self) -> Result<RunId, DurableError> {
        RunId::new(uuid::Uuid::now_v7().simple().to_string())
            .map_err(|error| DurableError(error.to_string()))
    }

    /// The time now.
    fn now(&self) -> Timestamp {
        now()
    }
}

/// A run that was begun before.
pub struct TakenOver {
    /// What happened to it so far.
    pub events: Vec<Event>,
    /// Where further events go; `None` if it has ended.
    pub journal: Option<Box<dyn Journal>>,
}

impl fmt::Debug for TakenOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TakenOver")
            .field("events", &self.events.len())
            .field("is_over", &self.journal.is_none())
            .finish()
    }
}

/// What goes with an event.
#[derive(Debug, Clone)]
pub enum Beside {
    /// A question is put to a person.
    Ask(Box<Approval>),
    /// A call is held.
    Hold(Box<Hold>),
    /// A held call is about to run, unless it was undone.
    Start(CallId),
    /// A mail is taken.
    Take(MailId),
    /// The pending question and the hold of a call are withdrawn.
    Withdraw(CallId),
}

impl Beside {
    pub(crate) fn as_alongside(&self) -> Alongside<'_> {
        match self {
            Self::Ask(asked) => Alongside::Ask(asked),
            Self::Hold(held) => Alongside::Hold(held),
            Self::Start(call) => Alongside::Start(call),
            Self::Take(mail) => Alongside::Take(*mail),
            Self::Withdraw(call) => Alongside::Withdraw(call),
        }
    }
}

/// The journal of one run, in the hands of whoever drives it.
pub trait Journal: Send + Sync {
    /// On whose behalf the run acts.
    fn who(&self) -> &Identity;

    /// The event without secrets: what is kept, and what the run must take.
    ///
    /// # Errors
    /// If it would not be an event without the secret.
    fn redacted(&self, event: Event) -> Result<RedactedEvent, DurableError>;

    /// Keeps an event. A [`Durability::Synced`] one is safe from a crash when this is done.
    fn append<'j>(
        &'j mut self,
        event: &'j RedactedEvent,
        durability: Durability,
    ) -> DurableFuture<'j, ()>;

    /// Keeps an event with what goes with it, both or neither, safe from a crash when this is done.
    /// Whether it was kept: somebody else may have been quicker, such as one who undid a call that
    /// was about to start.
    fn append_beside<'j>(
        &'j mut self,
        event: &'j RedactedEvent,
        beside: Beside,
    ) -> DurableFuture<'j, bool>;

    /// What others want of the run, in the order in which they said so.
    fn mail(&self) -> DurableFuture<'_, Vec<Mail>>;

    /// Waits until everything so far is safe from a crash.
    fn sync(&mut self) -> DurableFuture<'_, ()> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Notes that the run is over, and waits until all of it is safe from a crash.
    fn end<'j>(&'j mut self, end: &'j RunEnd) -> DurableFuture<'j, ()>;
}

/// The time now, by the system's clock.
#[must_use]
pub fn now() -> Timestamp {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp::from_microseconds(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}
