//! The outermost run: the one to resume when the run of a sub-agent waits.

use std::path::PathBuf;

use windlass_core::run::Event;
use windlass_spec::RunId;
use windlass_store::{Error, RunState, Store};

use crate::error::ServiceError;
use crate::identity::{Identity, Scope};
use crate::runs::{ProgramWait, waits_for_program};
use crate::service::Service;

/// The outermost run of a run: follows the parents up to the run that a person started.
pub(crate) fn of(store: &Store, run: &RunId) -> Result<RunId, Error> {
    let mut outermost = run.clone();
    loop {
        match store.first_event(&outermost)? {
            Some(Event::Started {
                parent: Some(parent),
                ..
                // A child's id is longer than its parent's, so this ends even if the journal is damaged.
            }) if parent.run.as_str().len() < outermost.as_str().len() => outermost = parent.run,
            // A purged run has no first event and cannot be resumed.
            _ => return Ok(outermost),
        }
    }
}

/// Whether a run is another one or one of its child runs: the id of a child run starts with that of its
/// parent.
#[must_use]
pub fn is_part_of(run: &RunId, outer: &RunId) -> bool {
    let rest = run.as_str().strip_prefix(outer.as_str());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The outermost run that a decision affects, and its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutermostRun {
    /// The outermost run.
    pub run: RunId,
    /// Its state.
    pub state: RunState,
    /// What resumes it when it can continue. Without meaning after its end.
    pub resumed_by: ResumedBy,
    /// The data directory that the service was opened with, which a command needs to find the run.
    pub data: Option<PathBuf>,
}

/// What resumes a run that can continue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResumedBy {
    /// A worker is running on this store, and what the run was bound to has not changed.
    Worker,
    /// Only its program or a command: a worker is running, but cannot bind the run identically for this
    /// reason.
    Program(ProgramWait),
    /// A command: no worker is running on this store.
    Command,
}

impl Service {
    /// The outermost run of a run, and what resumes it.
    ///
    /// # Errors
    /// If the identity may not see it.
    pub fn outermost_run_state(
        &self,
        identity: &Identity,
        run: &RunId,
    ) -> Result<OutermostRun, ServiceError> {
        identity.require(Scope::Read)?;
        let (summary, store) = self.find_run(identity, run.as_str())?;
        let run = of(&store, &summary.run)?;
        let summary = store.summary(&run)?;
        let state = summary.state;
        let resumed_by = match self.is_worked()? {
            true => match waits_for_program(&store, &summary)? {
                Some(reason) => ResumedBy::Program(reason),
                None => ResumedBy::Worker,
            },
            false => ResumedBy::Command,
        };
        Ok(OutermostRun {
            run,
            state,
            resumed_by,
            data: self.given_data_directory(),
        })
    }

    /// The id of the outermost run of a run.
    ///
    /// # Errors
    /// If the identity may not see it.
    pub fn outermost_run(&self, identity: &Identity, run: &RunId) -> Result<RunId, ServiceError> {
        identity.require(Scope::Read)?;
        let (summary, store) = self.find_run(identity, run.as_str())?;
        Ok(of(&store, &summary.run)?)
    }
}
