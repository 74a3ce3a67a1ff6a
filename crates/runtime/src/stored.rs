//! Runs in the store. Events are handed to the thread that writes; only what must be safe from a crash
//! is waited for, and no thread of the runtime waits with it unless the disk cannot keep up.

use std::env;
use std::path::Path;
use std::sync::Arc;

use tokio::sync::oneshot;
use windlass_core::run::{Event, RunEnd};
use windlass_spec::RunId;
use windlass_store::{
    Durability, Error, NewRun, Options, RedactedEvent, Redactor, RunJournal, Store,
};

use crate::durable::{Durable, DurableError, DurableFuture, Journal, TakenOver};

/// The database in a data directory.
const FILE: &str = "windlass.db";

/// On whose behalf runs act.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Who {
    /// The organisation.
    pub tenant: String,
    /// The person or program.
    pub principal: String,
}

/// Runs in a database file.
#[derive(Debug, Clone)]
pub struct Stored {
    store: Arc<Store>,
    who: Who,
}

impl Who {
    /// The user of the operating system that this program runs as, of the tenant `local`.
    #[must_use]
    pub fn local() -> Self {
        let principal = env::var("USER")
            .or_else(|_| env::var("LOGNAME"))
            .unwrap_or_else(|_| "unknown".to_owned());
        Self {
            tenant: "local".to_owned(),
            principal,
        }
    }
}

impl Stored {
    /// Keeps runs in the database of a directory, on behalf of the local user, without the values of
    /// environment variables that hold keys and the like.
    ///
    /// # Errors
    /// If the database cannot be opened.
    pub fn open(directory: &Path) -> Result<Self, Error> {
        let options = Options {
            redactor: Redactor::new(secrets()),
            ..Options::default()
        };
        let store = Store::open_with(directory.join(FILE), options)?;
        Ok(Self::new(Arc::new(store), Who::local()))
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Keeps runs in `store`.
    #[must_use]
    pub fn new(store: Arc<Store>, who: Who) -> Self {
        Self { store, who }
    }
}

/// The values of environment variables that must never be written down.
fn secrets() -> impl Iterator<Item = String> {
    const ENDINGS: [&str; 4] = ["_KEY", "_TOKEN", "_SECRET", "_PASSWORD"];
    env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| ENDINGS.iter().any(|ending| name.ends_with(ending)))
        .map(|(_, value)| value)
}

impl Durable for Stored {
    fn start(
        &self,
        task_id: Option<String>,
        started: Event,
    ) -> DurableFuture<'_, (Event, Box<dyn Journal>)> {
        let new = NewRun {
            tenant: self.who.tenant.clone(),
            principal: self.who.principal.clone(),
            task_id,
        };
        Box::pin(async move {
            let started = self.store.redacted(started)?.into_event();
            // Nobody needs to wait: nothing that may have an effect starts before it is stored.
            let journal = self.store.start(new, &started, Durability::Relaxed)?;
            let journal: Box<dyn Journal> = Box::new(StoredJournal(Arc::new(journal)));
            Ok((started, journal))
        })
    }

    fn take_over<'d>(&'d self, run: &'d RunId) -> DurableFuture<'d, Option<TakenOver>> {
        let (store, run) = (Arc::clone(&self.store), run.clone());
        waiting(move || {
            let journal: Option<Box<dyn Journal>> = match store.take_over(&run) {
                Ok(journal) => Some(Box::new(StoredJournal(Arc::new(journal)))),
                Err(Error::NoSuchRun(_)) => return Ok(None),
                Err(Error::Ended(_)) => None,
                Err(error) => return Err(error),
            };
            let events = store.events(&run)?;
            let events = events.into_iter().map(|(_, event)| event).collect();
            Ok(Some(TakenOver { events, journal }))
        })
    }
}

struct StoredJournal(Arc<RunJournal>);

impl Journal for StoredJournal {
    fn redacted(&self, event: Event) -> Result<RedactedEvent, DurableError> {
        Ok(self.0.redacted(event)?)
    }

    fn append<'j>(
        &'j mut self,
        event: &'j RedactedEvent,
        durability: Durability,
    ) -> DurableFuture<'j, ()> {
        if self.0.is_crowded() {
            let (journal, event) = (Arc::clone(&self.0), event.clone());
            return waiting(move || journal.append_redacted(&event, durability).map(drop));
        }
        match durability {
            Durability::Relaxed => {
                let sent = self.0.append_redacted(event, durability);
                Box::pin(std::future::ready(
                    sent.map(drop).map_err(DurableError::from),
                ))
            }
            Durability::Synced => {
                let (tell, told) = oneshot::channel();
                let sent = self.0.append_then(event, |done| drop(tell.send(done)));
                stored(sent, told)
            }
        }
    }

    fn end<'j>(&'j mut self, end: &'j RunEnd) -> DurableFuture<'j, ()> {
        if self.0.is_crowded() {
            let (journal, end) = (Arc::clone(&self.0), end.clone());
            return waiting(move || journal.end(&end));
        }
        let (tell, told) = oneshot::channel();
        let sent = self.0.end_then(end, |done| drop(tell.send(done)));
        stored(sent, told)
    }
}

/// Waits for what was sent to be stored.
fn stored(
    sent: Result<(), Error>,
    told: oneshot::Receiver<Result<(), Error>>,
) -> DurableFuture<'static, ()> {
    Box::pin(async move {
        sent?;
        Ok(told.await.unwrap_or(Err(Error::Closed))?)
    })
}

/// Does something that waits for the disk on a thread that may.
fn waiting<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> DurableFuture<'static, T> {
    Box::pin(async move {
        let done = tokio::task::spawn_blocking(work).await;
        Ok(done.map_err(|error| DurableError(error.to_string()))??)
    })
}
