//! The outermost run: the one that is resumed, whichever of its sub-agents' runs waits.

use windlass_core::run::Event;
use windlass_spec::RunId;
use windlass_store::{Error, RunState, Store};

use crate::error::ServiceError;
use crate::identity::{Identity, Scope};
use crate::service::Service;

/// The run that a person began and for which, through others, this one works.
pub(crate) fn of(store: &Store, run: &RunId) -> Result<RunId, Error> {
    let mut outermost = run.clone();
    loop {
        match store.first_event(&outermost)? {
            Some(Event::Started {
                parent: Some(parent),
                ..
                // A child is named after its parent, so whatever a damaged journal says, this ends.
            }) if parent.run.as_str().len() < outermost.as_str().len() => outermost = parent.run,
            // The first event of a run that was purged is gone; nobody goes on with that.
            _ => return Ok(outermost),
        }
    }
}

/// Whether a run is another one or works for it: the runs of sub-agents are named after the calls they
/// work for.
#[must_use]
pub fn is_part_of(run: &RunId, outer: &RunId) -> bool {
    let rest = run.as_str().strip_prefix(outer.as_str());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The outermost run that a decision was about, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Onward {
    /// The outermost run.
    pub run: RunId,
    /// Where it stands.
    pub state: RunState,
    /// Whether a worker resumes it by itself.
    pub has_worker: bool,
}

impl Service {
    /// How the run continues that this one is part of.
    ///
    /// # Errors
    /// If the identity may not see it.
    pub fn onward(&self, identity: &Identity, run: &RunId) -> Result<Onward, ServiceError> {
        identity.require(Scope::Read)?;
        let (summary, store) = self.find_run(identity, run.as_str())?;
        let run = of(&store, &summary.run)?;
        let state = store.summary(&run)?.state;
        let has_worker = self.has_worker()?;
        Ok(Onward {
            run,
            state,
            has_worker,
        })
    }

    /// The run that a person or program started and for which, through sub-agents, this one works.
    ///
    /// # Errors
    /// If the identity may not see it.
    pub fn outermost_run(&self, identity: &Identity, run: &RunId) -> Result<RunId, ServiceError> {
        identity.require(Scope::Read)?;
        let (summary, store) = self.find_run(identity, run.as_str())?;
        Ok(of(&store, &summary.run)?)
    }
}
