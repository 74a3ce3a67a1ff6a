//! The outermost run: the one that is gone on with, whichever of its sub-agents' runs waits.

use windlass_core::run::Event;
use windlass_spec::RunId;
use windlass_store::{Error, RunState, Store};

/// The run that a person began and for which, through others, this one works.
pub(super) fn of(store: &Store, run: &RunId) -> Result<RunId, Error> {
    let mut outermost = run.clone();
    loop {
        let events = store.events(&outermost)?;
        match events.into_iter().next() {
            Some((
                _,
                Event::Started {
                    parent: Some(parent),
                    ..
                },
                // A child is named after its parent, so whatever a damaged journal says, this ends.
            )) if parent.run.as_str().len() < outermost.as_str().len() => outermost = parent.run,
            // The first event of a run that was purged is gone; nobody goes on with that.
            _ => return Ok(outermost),
        }
    }
}

/// Whether a run is another one or works for it: the runs of sub-agents are named after the calls they
/// work for.
pub(super) fn is_part_of(run: &RunId, outer: &RunId) -> bool {
    let rest = run.as_str().strip_prefix(outer.as_str());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Where a run stands that a decision was about, and how it goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Onward {
    /// The outermost run.
    pub(super) run: RunId,
    /// Where it stands.
    pub(super) state: RunState,
}

impl Onward {
    /// How the run goes on that this one is part of.
    pub(super) fn of(store: &Store, run: &RunId) -> Result<Self, Error> {
        let run = of(store, run)?;
        let state = store.summary(&run)?.state;
        Ok(Self { run, state })
    }

    /// The command that goes on with it.
    pub(super) fn command(&self) -> String {
        format!("windlass runs resume {}", self.run)
    }

    /// What there is to do, if anything.
    pub(super) fn next(&self) -> Option<String> {
        (self.state != RunState::Ended).then(|| self.command())
    }

    /// What a person is told.
    pub(super) fn told(&self) -> String {
        match self.state {
            RunState::Waiting => format!("continue it with: {}", self.command()),
            RunState::Open => format!(
                "the process that drives the run takes it up; if there is none any more: {}",
                self.command()
            ),
            RunState::Ended => format!("the run {} has ended", self.run),
        }
    }
}
