//! Drives the run machine: does what it says is next and tells it what came of it. Everything that
//! happens goes through the journal first, so another process can take the run up where this one
//! stopped.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use tokio_util::sync::CancellationToken;
use windlass_core::gate::Verdict;
use windlass_core::model::{ModelErrorKind, ModelRequest};
use windlass_core::run::{CallEnd, Event, FoldError, Next, PermitError, Run};
use windlass_model::{ModelClient, ModelEvent};
use windlass_spec::{CallId, CallState, Effect, ErrorCategory, Failure, RiskLevel};
use windlass_store::Durability;
use windlass_tools::{BoundTools, DispatchOptions, dispatch};

use crate::journal::{Journal, JournalError};

/// Why a run could not be driven on. Its journal is as it was.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// The journal cannot be written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The machine refused an event, which is a defect.
    #[error("the run refused an event: {0}")]
    Fold(#[from] FoldError),
    /// A permit was refused, which is a defect.
    #[error(transparent)]
    Permit(#[from] PermitError),
}

/// How a run is stopped by hand.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    /// After what is under way now.
    pub after_step: CancellationToken,
    /// At once.
    pub at_once: CancellationToken,
}

/// What a watcher is told while a run goes on.
#[derive(Debug)]
pub enum Progress<'a> {
    /// An event was kept.
    Event(&'a Event),
    /// The model is saying something.
    Model(&'a ModelEvent),
}

/// What a driver works with.
pub struct Driver<'a> {
    /// The model.
    pub model: Arc<dyn ModelClient>,
    /// The implementations.
    pub tools: &'a BoundTools,
    /// The journal.
    pub journal: &'a mut dyn Journal,
    /// How to stop it.
    pub stop: Stop,
    /// Told of everything as it happens.
    pub watch: &'a mut (dyn FnMut(Progress<'_>) + Send),
}

impl Driver<'_> {
    /// Drives a run to its end. All events up to here are in the journal, the first among them.
    ///
    /// # Errors
    /// If the journal cannot be written. The run can be taken up again later.
    pub async fn drive(&mut self, run: &mut Run) -> Result<(), DriveError> {
        loop {
            let next = run.next();
            if !matches!(next, Next::Done(_)) && self.is_stopped() {
                let at = self.journal.now();
                self.happen(run, Event::Cancelled { at }, Durability::Synced)
                    .await?;
                continue;
            }
            match next {
                Next::CallModel(request) => self.ask_model(run, &request).await?,
                Next::RunCalls(calls) => self.run_calls(run, &calls).await?,
                Next::Done(end) => {
                    self.journal.end(&end).await?;
                    return Ok(());
                }
            }
        }
    }

    fn is_stopped(&self) -> bool {
        self.stop.after_step.is_cancelled() || self.stop.at_once.is_cancelled()
    }

    /// Lets an event happen and keeps it. An event that does not fit never reaches the journal; if
    /// the journal fails, the run in memory is ahead of it and must not be used any more, which is
    /// why every caller gives up on an error.
    async fn happen(
        &mut self,
        run: &mut Run,
        event: Event,
        durability: Durability,
    ) -> Result<(), DriveError> {
        run.apply(&event)?;
        self.journal.append(&event, durability).await?;
        (self.watch)(Progress::Event(&event));
        Ok(())
    }

    async fn ask_model(&mut self, run: &mut Run, request: &ModelRequest) -> Result<(), DriveError> {
        let turn = run.current_turn();
        let cancel = self.stop.at_once.child_token();
        let answer = {
            let watch = &mut *self.watch;
            let mut events = |event: ModelEvent| watch(Progress::Model(&event));
            let answer = self.model.answer(request, &cancel, &mut events);
            match run.time_left(self.journal.now()) {
                None => Some(answer.await),
                Some(left) => tokio::time::timeout(left, answer).await.ok(),
            }
        };
        let at = self.journal.now();
        let event = match answer {
            None => Event::TimePassed { at },
            Some(Ok(answer)) => Event::ModelAnswered { turn, answer, at },
            Some(Err(error)) if error.kind == ModelErrorKind::Cancelled => Event::Cancelled { at },
            Some(Err(error)) => Event::ModelFailed {
                turn,
                kind: error.kind,
                message: error.message,
                at,
            },
        };
        self.happen(run, event, Durability::Synced).await
    }

    /// Brings calls to their end, all at the same time.
    async fn run_calls(&mut self, run: &mut Run, calls: &[CallId]) -> Result<(), DriveError> {
        let cancel = self.stop.at_once.child_token();
        let mut running = FuturesUnordered::new();
        for call in calls {
            if !self.may_run(run, call).await? {
                continue;
            }
            let permit = run.permit(call)?;
            let Some(tool) = self.tools.get(permit.tool().as_str()).cloned() else {
                let failure = Failure::new(
                    ErrorCategory::UnknownTool,
                    Effect::None,
                    format!("the tool `{}` is bound to no implementation", permit.tool()),
                );
                self.end_call(run, call, CallEnd::Error(failure)).await?;
                continue;
            };
            let options = DispatchOptions {
                cancel: cancel.clone(),
                ..DispatchOptions::default()
            };
            let call = call.clone();
            running.push(async move { (call, dispatch(&tool, permit, options).await) });
        }
        while !running.is_empty() {
            let left = run.time_left(self.journal.now()).unwrap_or(Duration::MAX);
            match tokio::time::timeout(left, running.next()).await {
                Ok(Some((call, end))) => self.end_call(run, &call, end).await?,
                Ok(None) => break,
                Err(_) => {
                    let at = self.journal.now();
                    cancel.cancel();
                    if run.end().is_none() {
                        self.happen(run, Event::TimePassed { at }, Durability::Relaxed)
                            .await?;
                    }
                }
            }
        }
        Ok(())
    }

    async fn end_call(
        &mut self,
        run: &mut Run,
        call: &CallId,
        end: CallEnd,
    ) -> Result<(), DriveError> {
        let event = Event::CallEnded {
            call: call.clone(),
            end,
            at: self.journal.now(),
        };
        self.happen(run, event, Durability::Relaxed).await
    }

    /// Takes a call through the gate and writes down that it starts. Whether it may run now.
    async fn may_run(&mut self, run: &mut Run, call: &CallId) -> Result<bool, DriveError> {
        let (record, decision) = run.call(call)?;
        let state = record.state();
        let risk = run.risk(record.tool_name().as_str());
        let is_idempotent = run
            .agent()
            .tool(record.tool_name().as_str())
            .and_then(|tool| tool.attributes().idempotent)
            .unwrap_or(false);
        if state == CallState::Running {
            // An earlier process wrote that the call starts and died before it wrote how it ended.
            if risk == RiskLevel::Reversible || (is_idempotent && risk != RiskLevel::Irreversible) {
                return Ok(true);
            }
            let failure = Failure::new(
                ErrorCategory::Internal,
                Effect::Unknown,
                "the process died while the call was under way; nobody knows whether it had an effect",
            );
            self.end_call(run, call, CallEnd::Unknown(failure)).await?;
            return Ok(false);
        }
        if decision.is_none() {
            let decision = run.decide(call, &|_| true)?;
            let event = Event::Decided {
                call: call.clone(),
                decision,
                at: self.journal.now(),
            };
            self.happen(run, event, Durability::Relaxed).await?;
        }
        let (_, decision) = run.call(call)?;
        if decision.is_none_or(|decision| decision.verdict() != Verdict::Allow) {
            return Ok(false);
        }
        // Only what may have an effect must be known to have started, whatever happens.
        let durability = match risk {
            RiskLevel::Reversible => Durability::Relaxed,
            RiskLevel::ReversibleWithDelay | RiskLevel::Irreversible => Durability::Synced,
        };
        let event = Event::CallStarted {
            call: call.clone(),
            at: self.journal.now(),
        };
        self.happen(run, event, durability).await?;
        Ok(true)
    }
}
