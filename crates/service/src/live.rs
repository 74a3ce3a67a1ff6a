//! What is new in runs, read in pieces: for front ends with many listeners, which share what was read.

use std::collections::HashMap;

use windlass_core::run::Event;
use windlass_spec::{AgentResponse, RunId};
use windlass_store::{ChangeWatch, Error, RunState};

use crate::error::ServiceError;
use crate::identity::{Identity, Scope};
use crate::service::Service;

/// How many events of all runs are read at once.
const PIECE: u32 = 256;

/// The events of a run that are stored now.
#[derive(Debug, Clone)]
pub struct StoredEvents {
    /// The run.
    pub run: RunId,
    /// The events with their positions.
    pub events: Vec<(u64, Event)>,
    /// The answer, if the run has ended and these are its last events.
    pub end: Option<AgentResponse>,
}

/// An event of any run of a tenant.
#[derive(Debug, Clone)]
pub struct TenantEvent {
    /// Its position among all events.
    pub position: u64,
    /// Its run.
    pub run: RunId,
    /// The event.
    pub event: Event,
}

/// The end of any run of a tenant.
#[derive(Debug, Clone)]
pub struct TenantRunEnd {
    /// Its number among all ends.
    pub number: u64,
    /// The run.
    pub run: RunId,
    /// Its answer, unless its events were purged.
    pub response: Option<AgentResponse>,
}

/// What is new in all runs of a tenant.
#[derive(Debug, Clone, Default)]
pub struct TenantNews {
    /// Events, in order.
    pub events: Vec<TenantEvent>,
    /// Ends, in order.
    pub ends: Vec<TenantRunEnd>,
}

/// The newest event and the newest end of any run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewestEvent {
    /// The position of the event.
    pub event: u64,
    /// The number of the end.
    pub end: u64,
}

/// Detects that any process wrote to the store.
#[derive(Debug)]
pub struct StoreChanges(ChangeWatch);

impl StoreChanges {
    /// Whether something was stored since the last call. Cheap enough to be called every few milliseconds.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn has_changed(&mut self) -> Result<bool, ServiceError> {
        Ok(self.0.has_changed()?)
    }
}

impl Service {
    /// A detector of changes of the store, by this and other processes. It shows no content.
    ///
    /// # Errors
    /// If the store cannot be opened.
    pub fn store_changes(&self) -> Result<StoreChanges, ServiceError> {
        Ok(StoreChanges(self.store()?.watch_changes()?))
    }

    /// The events of a run from a position on that are stored now.
    ///
    /// # Errors
    /// If the identity may not read, or the id matches no run or several.
    pub fn stored_events(
        &self,
        identity: &Identity,
        id: &str,
        from: u64,
    ) -> Result<StoredEvents, ServiceError> {
        identity.require(Scope::Read)?;
        // The state is read before the events, so that the last events are read after the end is known.
        let (summary, store) = self.find_run(identity, id)?;
        let events = store.events_from(&summary.run, from)?;
        let end = match summary.state {
            RunState::Ended => Some(store.fold(&summary.run)?.response()),
            RunState::Open | RunState::Waiting => None,
        };
        Ok(StoredEvents {
            run: summary.run,
            events,
            end,
        })
    }

    /// What is new in all runs of the identity's tenant: events from a position on, and ends after a number. There may
    /// be more.
    ///
    /// # Errors
    /// If the identity may not read, or the store cannot be read.
    pub fn tenant_news(
        &self,
        identity: &Identity,
        from_event: u64,
        after_end: u64,
    ) -> Result<TenantNews, ServiceError> {
        identity.require(Scope::Read)?;
        let (store, tenant) = (self.store()?, identity.tenant().as_str());
        // The ends are read first: the events of a run that has ended are not read after its end.
        let endings = store.run_endings(tenant, after_end, PIECE)?;
        let places = store.event_places(tenant, from_event, PIECE)?;
        let is_all = places.len() < PIECE as usize;
        let mut first: HashMap<RunId, u64> = HashMap::new();
        for place in &places {
            first.entry(place.run.clone()).or_insert(place.seq);
        }
        // Read by run, because their order in it is what is authenticated.
        let mut read: HashMap<(RunId, u64), Event> = HashMap::new();
        for (run, seq) in first {
            let events = match store.events_from(&run, seq) {
                Ok(events) => events,
                // They are not shown, and the others do not wait for them.
                Err(Error::Altered { .. } | Error::Purged(_) | Error::NoSuchRun(_)) => continue,
                Err(error) => return Err(error.into()),
            };
            for (seq, event) in events {
                read.insert((run.clone(), seq), event);
            }
        }
        let events = places.into_iter().filter_map(|place| {
            let event = read.remove(&(place.run.clone(), place.seq))?;
            Some(TenantEvent {
                position: place.position,
                run: place.run,
                event,
            })
        });
        let events = events.collect();
        let ends = endings.into_iter().map(|ending| TenantRunEnd {
            number: ending.number,
            response: store.fold(&ending.run).ok().map(|run| run.response()),
            run: ending.run,
        });
        Ok(TenantNews {
            events,
            // With more events to read, the last ones of these runs may be among them.
            ends: match is_all {
                true => ends.collect(),
                false => Vec::new(),
            },
        })
    }

    /// The newest event and end of any run: new ones come after it.
    ///
    /// # Errors
    /// If the identity may not read, or the store cannot be read.
    pub fn newest_event(&self, identity: &Identity) -> Result<NewestEvent, ServiceError> {
        identity.require(Scope::Read)?;
        let newest = self.store()?.newest_place()?;
        Ok(NewestEvent {
            event: newest.event,
            end: newest.end,
        })
    }
}
