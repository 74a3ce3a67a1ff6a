//! The port through which runs are stored. The driver knows only this, so the same driver works on SQLite
//! ([`crate::Stored`]), in memory ([`crate::InMemory`]), or on another database.
//!
//! [`Durable`] starts runs and takes them over, [`Journal`] is one run in the hands of its owner,
//! [`RateLimitPort`] counts calls across processes, and [`RunMonitor`] is what a service asks about runs that
//! it does not own. None of their signatures has a type of a particular store in it, and no method has a
//! default that leaves something out: an implementation without memory returns `None`.
//!
//! # What every implementation promises
//!
//! - **One owner.** At most one [`Journal`] of a run can append at a time, in all processes. An owner that
//!   dies loses the run at once, without a timeout. An owner that was replaced fails with
//!   [`DurableError::OwnershipLost`] and stores nothing more.
//! - **Order.** The events of a run are stored in the order in which they were given to its journal, without
//!   gaps: after a crash, the stored events are a prefix of the appended ones.
//! - **No event after a failure.** A journal that failed to store an event stores none after it.
//! - **No secrets.** What is stored was redacted first ([`Journal::redact`]).

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::future::BoxFuture;
use serde_json::Value;
use windlass_core::approval::{Approval, Principal, StandingCall, TenantPrincipal};
use windlass_core::durable::{AtomicWrite, CallEvidence, Durability, InboxCommand, ResumableRun};
use windlass_core::limits::{ExhaustedLimit, Limit};
use windlass_core::model::Usage;
use windlass_core::redact::{RedactError, RedactedEvent};
use windlass_core::run::{Event, KeptTurns, Run, RunEnd};
use windlass_core::stop::StopOrders;
use windlass_spec::{CallId, RunId, Timestamp, ToolGapReport, ToolName};
use windlass_store::NewUsage;
use windlass_tools::MemoryPort;

use crate::playbook::PlaybookPort;

/// Why something could not be stored or read. A driver that gets one stops driving its run at once: an event
/// that is not in the journal has not happened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DurableError {
    /// There is no such run, or not for this tenant.
    #[error("there is no run `{0}`")]
    RunNotFound(RunId),
    /// A run of that id exists.
    #[error("there is a run `{0}` already")]
    RunExists(RunId),
    /// Another owner, in this process or another, has the run. It can be tried again later.
    #[error("another process drives the run `{0}`\nhint: wait until it ends, or stop it there")]
    OwnedElsewhere(RunId),
    /// Another owner has taken over the run. This one can store nothing more.
    #[error("another process has taken over the run `{0}`; this one stores nothing more")]
    OwnershipLost(RunId),
    /// The run is over.
    #[error("the run `{0}` has ended")]
    RunEnded(RunId),
    /// The events of the run were removed.
    #[error("the events of the run `{0}` have been purged")]
    RunPurged(RunId),
    /// The change is no longer possible, for instance because another process was faster. Nothing was
    /// stored, and the journal is as before.
    #[error("{0}")]
    Conflict(String),
    /// The value cannot be stored, such as an event that is invalid without its secrets.
    #[error("{0}")]
    Invalid(String),
    /// The stored data cannot be read.
    #[error("{0}")]
    Corrupt(String),
    /// The store cannot be reached or written now: the disk is full, the file locked or removed, the
    /// connection lost. What was stored before is kept, and the run can be resumed when the cause is gone.
    #[error("{0}")]
    Unavailable(String),
    /// The store was closed in this process.
    #[error("the journal is closed")]
    Closed,
}

impl From<RedactError> for DurableError {
    fn from(error: RedactError) -> Self {
        Self::Invalid(error.to_string())
    }
}

/// The result of an operation of the port, as a future.
pub type DurableFuture<'j, T> = BoxFuture<'j, Result<T, DurableError>>;

/// A future whose result is known.
pub(crate) fn ready<'j, T: Send + 'j>(
    result: Result<T, impl Into<DurableError>>,
) -> DurableFuture<'j, T> {
    Box::pin(std::future::ready(result.map_err(Into::into)))
}

/// How old what [`Durable::stops`] returns can be. A call that may have an effect is checked again when its start is stored.
pub const STOPS_AGE: Duration = Duration::from_millis(200);

/// Stores runs, on behalf of one identity: the runs it starts act for that, and only the runs of its tenant are
/// taken over. A process makes one for each identity it acts for.
pub trait Durable: RateLimitPort {
    /// Starts the journal of a run with its first event, which must be [`Event::Started`]. Returns the
    /// event without secrets, which is the one to fold.
    ///
    /// The run and its first event are stored in one transaction, soon and before any later event; this
    /// does not wait for the disk. The caller owns the run from now on.
    ///
    /// # Errors
    /// [`DurableError::RunExists`] if there is one of that id, [`DurableError::Invalid`] if the event
    /// starts no run.
    fn start(
        &self,
        task_id: Option<String>,
        started: Event,
    ) -> DurableFuture<'_, (Event, Box<dyn Journal>)>;

    /// Takes over a run whose owner is gone, or that waits for a person; `None` if there is none of that
    /// id. A run that has ended is only read.
    ///
    /// When this returns a journal, the ownership is on the disk: an earlier owner that is still alive can
    /// append no more, and the events are all that it ever stored.
    ///
    /// # Errors
    /// [`DurableError::OwnedElsewhere`] if the run has a living owner. Nothing has changed then.
    fn take_over<'d>(&'d self, run: &'d RunId) -> DurableFuture<'d, Option<TakenOver>>;

    /// The number of the standing approval that covers a call now, if one does, whichever process
    /// granted it. One that was revoked before this was asked does not.
    ///
    /// # Errors
    /// If they cannot be read; the call then needs an approval of its own.
    fn covering<'d>(&'d self, call: StandingCall<'d>) -> DurableFuture<'d, Option<i64>>;

    /// Stores which tools a run lacked, once per run: the same report again changes nothing. On the disk
    /// when this returns, and not part of the journal: it is called before the run ends, so that a crash in
    /// between leads to the same report once more.
    ///
    /// # Errors
    /// If it cannot be stored.
    fn note_gap<'d>(
        &'d self,
        run: &'d Run,
        who: &'d TenantPrincipal,
        report: ToolGapReport,
    ) -> DurableFuture<'d, ()>;

    /// The sum of what models and tools used up. Events that were appended without waiting may be missing.
    ///
    /// # Errors
    /// If it cannot be read.
    fn usage<'d>(&'d self, of: UsageOf<'d>) -> DurableFuture<'d, Usage>;

    /// Stores usage that belongs to no event of a run. On the disk when this returns.
    ///
    /// # Errors
    /// If it cannot be stored.
    fn note_usage<'d>(&'d self, new: NewUsage<'d>) -> DurableFuture<'d, ()>;

    /// The identity that new runs act for.
    ///
    /// # Errors
    /// If there is none.
    fn identity(&self) -> Result<TenantPrincipal, DurableError>;

    /// Ends the questions that were not answered in time, of all runs. Each of them and the command in the
    /// inbox of its run are stored in one transaction, on the disk when this returns.
    ///
    /// # Errors
    /// If the store cannot be written. What was not ended is ended by the next sweep.
    fn sweep(&self) -> DurableFuture<'_, ()>;

    /// What operators stopped and did not start again, at most [`STOPS_AGE`] old.
    ///
    /// # Errors
    /// If it cannot be read. Nothing may begin then.
    fn stops(&self) -> DurableFuture<'_, Arc<StopOrders>>;

    /// Where the agents' memory is stored; `None` if this stores no memory, and the memory tools are
    /// refused.
    fn memory(&self) -> Option<Arc<dyn MemoryPort>>;

    /// The directory of everything that is stored, which no program may reach; `None` if nothing is.
    fn data(&self) -> Option<&Path>;

    /// Where playbooks are stored; `None` if this stores none, and nothing is learned.
    fn playbooks(&self) -> Option<Arc<dyn PlaybookPort>>;

    /// An id for a new run, unique in all processes.
    ///
    /// # Errors
    /// If no id can be made.
    fn new_id(&self) -> Result<RunId, DurableError> {
        RunId::new(uuid::Uuid::now_v7().simple().to_string())
            .map_err(|error| DurableError::Invalid(error.to_string()))
    }

    /// The time now, by which events are dated and deadlines are kept.
    fn now(&self) -> Timestamp {
        now()
    }
}

/// Which usage to sum up.
#[derive(Debug, Clone, Copy)]
pub struct UsageOf<'d> {
    /// The tenant.
    pub tenant: &'d str,
    /// Only that of this agent.
    pub agent: Option<&'d str>,
    /// Only that of this principal.
    pub principal: Option<&'d str>,
    /// Only that of this time or later.
    pub since: Timestamp,
}

/// A call that counts against rate limits.
#[derive(Debug, Clone, Copy)]
pub struct LimitedCall<'d> {
    /// The tenant whose limits they are.
    pub tenant: &'d str,
    /// All limits of the call.
    pub limits: &'d [Limit],
    /// The time of the call.
    pub now: Timestamp,
}

/// A request for the turn of a key, such as the trial call after a circuit breaker opened.
#[derive(Debug, Clone, Copy)]
pub struct TurnRequest<'d> {
    /// The tenant whose key it is.
    pub tenant: &'d str,
    /// The key.
    pub key: &'d str,
    /// The time of the request.
    pub now: Timestamp,
    /// When the turn ends.
    pub until: Timestamp,
}

/// Rate limits and the ends of calls, across all processes that use the same store.
pub trait RateLimitPort: Send + Sync {
    /// Whether a call could be taken from these limits now; the one that refuses it longest if not.
    /// Nothing is used up, so another process may take the last call before [`RateLimitPort::take`].
    fn used_up<'d>(&'d self, call: LimitedCall<'d>) -> DurableFuture<'d, Option<ExhaustedLimit>>;

    /// Takes a call from all of these limits, or from none of them if one is used up, which is then
    /// returned. Atomic: of two processes that take the last call at once, one gets it. On the disk when
    /// this returns, so a crash does not give calls back.
    fn take<'d>(&'d self, call: LimitedCall<'d>) -> DurableFuture<'d, Option<ExhaustedLimit>>;

    /// Takes the turn of a key. If it is taken, returns when it is free again. Atomic and on
    /// the disk, like [`RateLimitPort::take`].
    fn take_turn<'d>(&'d self, turn: TurnRequest<'d>) -> DurableFuture<'d, Option<Timestamp>>;

    /// The latest ends of a tool's calls that count for its health, the last first, in all runs of the
    /// tenant: which call, whether it failed, and when. Events that were appended without waiting may be
    /// missing.
    fn latest_ends<'d>(
        &'d self,
        tenant: &'d str,
        tool: &'d ToolName,
        limit: u32,
    ) -> DurableFuture<'d, Vec<(CallId, bool, Timestamp)>>;
}

/// Queries of a service about runs that it does not own.
pub trait RunMonitor: Send + Sync {
    /// The runs that could be resumed now: not over, owned by no living process, and with something to
    /// do. Cheap enough to ask several times a second. Another process may be faster, so resuming one can
    /// fail with [`DurableError::OwnedElsewhere`].
    fn resumable(&self) -> DurableFuture<'_, Vec<ResumableRun>>;

    /// The events of a run from a number on, in order; the first event has the number 1. Only what is
    /// on the disk, so a subscriber never sees an event that a crash takes back.
    ///
    /// # Errors
    /// [`DurableError::RunNotFound`] if there is no such run.
    fn events_from<'d>(
        &'d self,
        run: &'d RunId,
        position: u64,
    ) -> DurableFuture<'d, Vec<(u64, Event)>>;

    /// The number of the last event of a run; 0 if there is none.
    fn last_position<'d>(&'d self, run: &'d RunId) -> DurableFuture<'d, u64>;
}

/// A run that was started before.
pub struct TakenOver {
    /// The run as its events give it. One that can be continued has only the turns that are needed for that
    /// ([`KeptTurns::Shown`]); one that has ended has all.
    pub run: Run,
    /// Where further events go; `None` if it has ended.
    pub journal: Option<Box<dyn Journal>>,
    /// What the journal lost, if it lost its last events.
    pub damage: Option<String>,
}

impl fmt::Debug for TakenOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TakenOver")
            .field("run", self.run.id())
            .field("is_over", &self.journal.is_none())
            .finish()
    }
}

/// Whether an event was stored together with its [`AtomicWrite`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum AppendOutcome {
    /// Both are on the disk.
    Stored,
    /// The write is not possible any more, for instance because a held call was undone. Neither is
    /// stored, and the journal is as before.
    Refused,
}

/// The journal of one run, for its owner. Dropping it releases the run, after the events that were appended
/// without waiting are stored; a driver that must know whether they are calls [`Journal::sync`] before. A journal
/// that failed, or whose owner panicked, leaves the run as if its process had died: a worker can resume it.
pub trait Journal: Send + Sync {
    /// The identity the run acts for, whichever process resumes it.
    fn who(&self) -> &TenantPrincipal;

    /// The event without secrets: the one to apply and to append.
    ///
    /// # Errors
    /// If it would not be a valid event without the secret.
    fn redact(&self, event: Event) -> Result<RedactedEvent, DurableError>;

    /// A text that may be stored in place of a secret one, which is shown only to the person who decides.
    fn seal(&self, secret: &str) -> String;

    /// A question with the sealed texts in it in clear, to be shown to the person who decides.
    fn opened(&self, question: &Approval) -> Approval;

    /// A statement of a kind with these claims, signed by this installation as a JWS; `None` if it has no key.
    fn statement(&self, kind: &str, claims: &Value) -> Option<String>;

    /// Stores an event, after all that were appended before. With [`Durability::Synced`] it is safe
    /// from a crash when this returns; with [`Durability::Relaxed`] a crash may lose it, with all that
    /// were appended after it. Others see it when it is on the disk.
    ///
    /// # Errors
    /// If it, or an event before it, could not be stored. Nothing can be appended then.
    fn append<'j>(
        &'j mut self,
        event: &'j RedactedEvent,
        durability: Durability,
    ) -> DurableFuture<'j, ()>;

    /// Stores an event and changes of what others see of the run in one transaction: after any crash
    /// all are there or none. Safe from a crash when this returns, with all events before it. Of this
    /// and a change that another process makes at the same time, one comes first, and the other one is
    /// refused if it no longer fits.
    ///
    /// # Errors
    /// If it, or an event before it, could not be stored. That the write is refused is no error.
    fn append_with<'j>(
        &'j mut self,
        event: &'j RedactedEvent,
        writes: Vec<AtomicWrite>,
    ) -> DurableFuture<'j, AppendOutcome>;

    /// The commands for this run that were not taken yet, in the order in which they were sent, by
    /// whichever process. A command stays until it is taken with an event ([`AtomicWrite::Take`]).
    ///
    /// # Errors
    /// If they cannot be read. The journal can still be appended to.
    fn inbox(&self) -> DurableFuture<'_, Vec<InboxCommand>>;

    /// What is stored about a call separately from the events of the run: what was approved or held, and
    /// whether an execution of it has ended.
    ///
    /// # Errors
    /// If it cannot be read. The journal can still be appended to.
    fn evidence<'j>(&'j self, call: &'j CallId) -> DurableFuture<'j, CallEvidence>;

    /// Who is enrolled as an approver; `None` if every principal may decide. A question that none of them may decide is
    /// not asked.
    ///
    /// # Errors
    /// If the list of approvers cannot be used.
    fn approvers(&self) -> DurableFuture<'_, Option<Vec<Principal>>>;

    /// The run as its events on the disk give it, with these turns of it. After [`AppendOutcome::Refused`] and
    /// after [`Journal::sync`] these are all events that were appended.
    ///
    /// # Errors
    /// If they cannot be read. The journal can still be appended to.
    fn fold(&self, kept: KeptTurns) -> DurableFuture<'_, Run>;

    /// Waits until everything appended so far is safe from a crash.
    ///
    /// # Errors
    /// If an event could not be stored. Nothing can be appended then.
    fn sync(&mut self) -> DurableFuture<'_, ()>;

    /// Leaves the run, when this is dropped, as if its process had died: a worker can resume it.
    fn leave_to_worker(&mut self);

    /// Stores that the run is over, or waits for a person, and waits until all of it is safe from a
    /// crash. The pending questions and holds of a run that is over are withdrawn in the same
    /// transaction.
    ///
    /// # Errors
    /// If it, or an event before it, could not be stored. The run is then as after a crash at this point.
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
