//! Calls that another program makes: the run passes the gate here, and waits for that program to begin the call and to
//! report its outcome.

use serde_json::Value;
use windlass_core::durable::Durability;
use windlass_core::run::{CallEnd, Event, Run, RunEnd};
use windlass_spec::{
    CallId, CallState, Effect, ErrorCategory, Failure, RiskLevel, RunId, Timestamp,
};

use super::waiting::Flow;
use super::{Drive, DriveError, Driver};

/// What the program that makes the call of a run asks for.
#[derive(Debug, Default)]
pub(super) enum CallerRequest {
    /// Nothing: the run waits for it.
    #[default]
    None,
    /// To begin the call.
    Begin,
    /// To end the call that it began.
    End(Box<CallEnd>),
}

/// The result of a request of the program that makes the call of a run.
#[derive(Debug)]
pub struct CallerAnswer {
    /// The run as it is now.
    pub run: Run,
    /// The arguments to make the call with, if it has begun by this request. An approver may have edited them.
    pub begun: Option<Value>,
    /// Whether the call has ended by this request.
    pub is_ended: bool,
}

impl Driver {
    /// Begins the call of a run that another program makes, once. It is decided again, and counts against limits as any
    /// other call. When this returns, its start is on the disk.
    ///
    /// # Errors
    /// If there is no such run, another process has it now, or the journal cannot be used.
    pub async fn begin_outside(&self, run: &RunId) -> Result<CallerAnswer, DriveError> {
        self.serve_caller(run, CallerRequest::Begin).await
    }

    /// Ends the call of a run that another program began.
    ///
    /// # Errors
    /// As [`Driver::begin_outside`].
    pub async fn end_outside(&self, run: &RunId, end: CallEnd) -> Result<CallerAnswer, DriveError> {
        self.serve_caller(run, CallerRequest::End(Box::new(end)))
            .await
    }

    async fn serve_caller(
        &self,
        run: &RunId,
        request: CallerRequest,
    ) -> Result<CallerAnswer, DriveError> {
        let taken = self.durable.take_over(run).await?;
        let taken = taken.ok_or_else(|| DriveError::NoSuchRun(run.clone()))?;
        let mut drive = match self
            .take_up(taken, std::collections::BTreeMap::new())
            .await?
        {
            Ok(drive) => drive,
            Err(run) => {
                return Ok(CallerAnswer {
                    run: *run,
                    begun: None,
                    is_ended: false,
                });
            }
        };
        drive.caller.request = request;
        self.finish_drive(&mut drive).await?;
        let Drive { run, caller, .. } = drive;
        Ok(CallerAnswer {
            run,
            begun: caller.begun,
            is_ended: caller.is_ended,
        })
    }
}

/// The program that makes the call of a run.
#[derive(Debug, Default)]
pub(super) struct Caller {
    pub(super) request: CallerRequest,
    begun: Option<Value>,
    is_ended: bool,
}

impl Drive<'_> {
    /// Whether the program reports how its call ended. That is recorded although the run is stopped.
    pub(super) fn has_reported(&self) -> bool {
        matches!(self.caller.request, CallerRequest::End(_))
    }

    /// Does what the program asks for that makes the call, else suspends the run until it asks for something.
    pub(super) async fn serve_call(&mut self, calls: &[CallId]) -> Result<Flow, DriveError> {
        let Some(call) = calls.first() else {
            return Ok(Flow::Yield);
        };
        let (record, _) = self.run.call(call)?;
        let (is_begun, tool) = (
            record.state() == CallState::Running,
            record.tool_name().clone(),
        );
        let now = self.driver.durable.now();
        let until = self.run.outside_deadline().unwrap_or(now);
        match (is_begun, std::mem::take(&mut self.caller.request)) {
            (true, CallerRequest::End(end)) => {
                self.end_call(call, (*end).into()).await?;
                self.caller.is_ended = true;
                Ok(Flow::Continue)
            }
            (true, _) if until <= now => {
                let end = self.unreported_end(call);
                self.end_call(call, end.into()).await?;
                Ok(Flow::Continue)
            }
            (false, _) if until <= now => {
                let event = Event::Cancelled { by: None, at: now };
                self.record(event, Durability::Relaxed).await?;
                Ok(Flow::Continue)
            }
            (false, CallerRequest::Begin) => {
                if let Some(stop) = self.stop_covering(Some(&tool)).await? {
                    return self.halt(stop).await;
                }
                if self.start_call(call).await?.is_some() {
                    // A reversible call need not be on the disk before it runs here. That program is told that it begins.
                    self.journal.sync().await?;
                    let permit = self.run.permit(call)?;
                    self.caller.begun = Some(permit.into_arguments());
                }
                Ok(Flow::Continue)
            }
            _ => self.suspend_for_caller(until).await,
        }
    }

    /// How a call ends whose program did not report its outcome in time.
    fn unreported_end(&self, call: &CallId) -> CallEnd {
        let what = "the program that made the call did not report its outcome in time";
        match self.run.risk(call) {
            RiskLevel::Reversible => {
                CallEnd::Timeout(Failure::new(ErrorCategory::Timeout, Effect::None, what))
            }
            RiskLevel::ReversibleWithDelay | RiskLevel::Irreversible => {
                CallEnd::Unknown(Failure::new(ErrorCategory::Timeout, Effect::Unknown, what))
            }
        }
    }

    /// Suspends the run until the program asks for something, or until this time.
    pub(super) async fn suspend_for_caller(
        &mut self,
        until: Timestamp,
    ) -> Result<Flow, DriveError> {
        let waiting = RunEnd::WaitingForCaller { until };
        self.run.mark_waiting(waiting.clone());
        self.journal.end(&waiting).await?;
        Ok(Flow::Yield)
    }
}
