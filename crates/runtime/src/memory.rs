//! Runs that live as long as the process: for tests, and for programs that keep nothing.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use windlass_core::run::{Event, RunEnd};
use windlass_spec::RunId;
use windlass_store::{Durability, RedactedEvent, Redactor};

use crate::durable::{Durable, DurableError, DurableFuture, Journal, TakenOver};

/// Runs in memory. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct InMemory {
    runs: Arc<Mutex<HashMap<RunId, Kept>>>,
}

#[derive(Debug, Default)]
struct Kept {
    events: Vec<Event>,
    is_over: bool,
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

    fn with<T>(&self, run: &RunId, take: impl FnOnce(&mut Kept) -> T) -> T {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        take(runs.entry(run.clone()).or_default())
    }

    fn journal(&self, run: &RunId) -> Box<dyn Journal> {
        Box::new(MemoryJournal {
            runs: self.clone(),
            run: run.clone(),
        })
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
                let journal = self.journal(run);
                Ok((started, journal))
            }
            _ => Err(DurableError("the event starts no run".to_owned())),
        }))
    }

    fn take_over<'d>(&'d self, run: &'d RunId) -> DurableFuture<'d, Option<TakenOver>> {
        let (events, is_over) = self.with(run, |kept| (kept.events.clone(), kept.is_over));
        Box::pin(std::future::ready(Ok((!events.is_empty()).then(|| {
            TakenOver {
                events,
                journal: (!is_over).then(|| self.journal(run)),
            }
        }))))
    }
}

struct MemoryJournal {
    runs: InMemory,
    run: RunId,
}

impl Journal for MemoryJournal {
    fn redacted(&self, event: Event) -> Result<RedactedEvent, DurableError> {
        Ok(Redactor::default().event(event)?)
    }

    fn append<'j>(&'j mut self, event: &'j RedactedEvent, _: Durability) -> DurableFuture<'j, ()> {
        self.runs
            .with(&self.run, |kept| kept.events.push(event.event().clone()));
        Box::pin(std::future::ready(Ok(())))
    }

    fn end<'j>(&'j mut self, end: &'j RunEnd) -> DurableFuture<'j, ()> {
        let is_over = *end != RunEnd::WaitingForPerson;
        self.runs.with(&self.run, |kept| kept.is_over = is_over);
        Box::pin(std::future::ready(Ok(())))
    }
}
