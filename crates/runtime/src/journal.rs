//! Where a run's events go before anything is done because of them. The driver knows only this
//! port, so the same driver works on SQLite, in memory, or on something distributed.

use std::pin::Pin;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use windlass_core::run::{Event, RunEnd};
use windlass_spec::Timestamp;
use windlass_store::{Durability, RunJournal};

/// An event could not be kept. The run stops at once: what is not in the journal did not happen.
#[derive(Debug, thiserror::Error)]
#[error("the journal cannot be written: {0}")]
pub struct JournalError(pub String);

/// What a journal answers with, later.
pub type JournalFuture<'j, T> = Pin<Box<dyn Future<Output = Result<T, JournalError>> + Send + 'j>>;

/// A run's journal as its driver sees it: append in order, know the time.
pub trait Journal: Send {
    /// Keeps an event. A [`Durability::Synced`] one is safe from a crash when this is done.
    fn append<'j>(&'j mut self, event: &'j Event, durability: Durability) -> JournalFuture<'j, ()>;

    /// Notes that the run is over.
    fn end<'j>(&'j mut self, end: &'j RunEnd) -> JournalFuture<'j, ()>;

    /// The time now.
    fn now(&self) -> Timestamp {
        now()
    }
}

/// The time now, by the system's clock.
#[must_use]
pub fn now() -> Timestamp {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp::from_microseconds(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

/// A journal in the store. The store waits for the disk, so it is asked on a thread that may wait.
#[derive(Debug, Clone)]
pub struct StoredJournal(Arc<RunJournal>);

impl StoredJournal {
    /// The journal of a run that this process owns.
    #[must_use]
    pub fn new(journal: RunJournal) -> Self {
        Self(Arc::new(journal))
    }
}

impl Journal for StoredJournal {
    fn append<'j>(&'j mut self, event: &'j Event, durability: Durability) -> JournalFuture<'j, ()> {
        let (journal, event) = (Arc::clone(&self.0), event.clone());
        waiting(move || journal.append(&event, durability).map(drop))
    }

    fn end<'j>(&'j mut self, end: &'j RunEnd) -> JournalFuture<'j, ()> {
        let (journal, end) = (Arc::clone(&self.0), end.clone());
        waiting(move || journal.end(&end))
    }
}

fn waiting(
    work: impl FnOnce() -> Result<(), windlass_store::Error> + Send + 'static,
) -> JournalFuture<'static, ()> {
    Box::pin(async move {
        let done = tokio::task::spawn_blocking(work).await;
        done.map_err(|error| JournalError(error.to_string()))?
            .map_err(|error| JournalError(error.to_string()))
    })
}

/// A journal that lives as long as the process.
#[derive(Debug, Default)]
pub struct MemoryJournal {
    /// The events so far.
    pub events: Vec<Event>,
}

impl Journal for MemoryJournal {
    fn append<'j>(&'j mut self, event: &'j Event, _: Durability) -> JournalFuture<'j, ()> {
        self.events.push(event.clone());
        Box::pin(std::future::ready(Ok(())))
    }

    fn end<'j>(&'j mut self, _: &'j RunEnd) -> JournalFuture<'j, ()> {
        Box::pin(std::future::ready(Ok(())))
    }
}
