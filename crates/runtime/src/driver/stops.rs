//! What operators stopped: no call that a stop covers starts, and no model is asked in a run that it covers. The run is
//! suspended as it is, and a worker resumes it when that was started again.

use std::sync::Arc;

use windlass_core::stop::{StopOrder, StoppableWork};
use windlass_spec::ToolName;

use super::waiting::{Flow, INBOX_POLL_IDLE};
use super::{Drive, DriveError};
use crate::durable::{Durable, DurableError};

/// Finds the stop that covers some work.
#[derive(Clone)]
pub(super) struct StopGuard {
    durable: Arc<dyn Durable>,
    work: StoppableWork,
}

impl StopGuard {
    /// The stop that covers the work, as of a moment ago.
    ///
    /// # Errors
    /// If what was stopped cannot be read. Nothing may begin then.
    pub(super) async fn stop(&self) -> Result<Option<StopOrder>, DurableError> {
        let stops = self.durable.stops().await?;
        Ok(stops.covering(&self.work).cloned())
    }
}

impl Drive<'_> {
    /// The run, or a call of that tool, as a stop may cover it.
    pub(super) fn stoppable(&self, tool: Option<&ToolName>) -> StoppableWork {
        let own = self.run.agent().name();
        let outer = self.driver.outer_agents.iter();
        StoppableWork {
            who: self.journal.who().clone(),
            run: self.run.id().clone(),
            agents: std::iter::once(own).chain(outer).cloned().collect(),
            tool: tool.cloned(),
        }
    }

    pub(super) fn stop_guard(&self, tool: &ToolName) -> StopGuard {
        StopGuard {
            durable: Arc::clone(&self.driver.durable),
            work: self.stoppable(Some(tool)),
        }
    }

    /// The stop that covers the run, or a call of that tool, as of a moment ago.
    pub(super) async fn stop_covering(
        &self,
        tool: Option<&ToolName>,
    ) -> Result<Option<StopOrder>, DriveError> {
        let stops = self.driver.durable.stops().await?;
        if stops.orders.is_empty() {
            return Ok(None);
        }
        Ok(stops.covering(&self.stoppable(tool)).cloned())
    }

    /// Suspends the run because of a stop. A run that was cancelled ends all the same.
    pub(super) async fn halt(&mut self, stop: StopOrder) -> Result<Flow, DriveError> {
        if self.cancel_if_requested().await? {
            return Ok(Flow::Continue);
        }
        // A call whose server waits for an answer would be lost.
        if !self.parked.is_empty() {
            let driver_stop = &self.driver.stop;
            tokio::select! {
                () = tokio::time::sleep(INBOX_POLL_IDLE) => {}
                () = driver_stop.after_step.cancelled() => {}
                () = driver_stop.at_once.cancelled() => {}
            }
            return Ok(Flow::Continue);
        }
        self.note_stop(stop);
        Ok(Flow::Yield)
    }

    /// Notes that the run is suspended because of a stop, so that a worker resumes it.
    pub(super) fn note_stop(&mut self, stop: StopOrder) {
        self.run.mark_stopped(stop);
        self.journal.leave_to_worker();
    }
}
