//! Where runs are kept. The driver knows only this port, so the same driver works on SQLite, in
//! memory, or on something distributed.

use std::fmt;
use std::pin::Pin;
use std::time::{SystemTime, UNIX_EPOCH};

use windlass_core::run::{Event, RunEnd};
use windlass_spec::{RunId, Timestamp};
use windlass_store::{Durability, RedactedEvent};

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

/// The journal of one run, in the hands of whoever drives it.
pub trait Journal: Send + Sync {
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
