//! Brings calls to their end: through the gate, then to a tool or to a run of a sub-agent.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use windlass_core::gate::{Permit, Verdict};
use windlass_core::model::Usage;
use windlass_core::run::{CallEnd, Event, Run, RunEnd};
use windlass_spec::{CallId, CallState, Effect, ErrorCategory, Failure, RiskLevel};
use windlass_store::Durability;
use windlass_tools::{BoundTool, DispatchOptions, dispatch};

use super::{Drive, DriveError, Driver, Stop};

/// What came of a call; nothing if it is the work of a sub-agent that was stopped after a step. It is
/// then still under way, and is gone on with when the run is taken up again.
type Outcome = Result<Option<Ended>, DriveError>;

type Running<'d> = FuturesUnordered<BoxFuture<'d, (CallId, Outcome)>>;

/// How a call ended and what models cost in it.
struct Ended {
    end: CallEnd,
    usage: Usage,
}

impl From<CallEnd> for Ended {
    fn from(end: CallEnd) -> Self {
        let usage = Usage::default();
        Self { end, usage }
    }
}

impl<'d> Drive<'d> {
    /// Brings calls to their end, all at the same time.
    pub(super) async fn run_calls(&mut self, calls: &[CallId]) -> Result<(), DriveError> {
        let cancel = self.driver.stop.at_once.child_token();
        let mut running = Running::new();
        for call in calls {
            if !self.may_run(call).await? {
                continue;
            }
            let permit = self.run.permit(call)?;
            running.push(self.running(call.clone(), permit, &cancel));
        }
        while !running.is_empty() {
            let now = self.driver.durable.now();
            let left = self.run.time_left(now).unwrap_or(Duration::MAX);
            match tokio::time::timeout(left, running.next()).await {
                Ok(Some((call, ended))) => {
                    if let Some(ended) = ended? {
                        self.end_call(&call, ended).await?;
                    }
                }
                Ok(None) => break,
                Err(_) => {
                    cancel.cancel();
                    if self.run.end().is_none() {
                        let at = self.driver.durable.now();
                        self.happen(Event::TimePassed { at }, Durability::Relaxed)
                            .await?;
                    }
                }
            }
        }
        Ok(())
    }

    /// What brings a permitted call to its end.
    fn running(
        &self,
        call: CallId,
        permit: Permit,
        cancel: &CancellationToken,
    ) -> BoxFuture<'d, (CallId, Outcome)> {
        let cancel = cancel.clone();
        if self.run.is_sub_agent(permit.tool().as_str()) {
            let child = self.run.child(&call, permit, self.driver.durable.now());
            let stop = Stop {
                after_step: self.driver.stop.after_step.clone(),
                at_once: cancel,
            };
            let driver = self.driver.clone().stopped_by(stop);
            return Box::pin(async move { (call, work_as_child(driver, child).await) });
        }
        match self.bound(&permit) {
            Ok(tool) => Box::pin(async move {
                let options = DispatchOptions {
                    cancel,
                    ..DispatchOptions::default()
                };
                let end = dispatch(&tool, permit, options).await;
                (call, Ok(Some(end.into())))
            }),
            Err(failure) => Box::pin(std::future::ready((
                call,
                Ok(Some(CallEnd::Error(failure).into())),
            ))),
        }
    }

    /// The implementation of the tool that the run's agent declares, if there is one.
    fn bound(&self, permit: &Permit) -> Result<BoundTool, Failure> {
        let name = permit.tool().as_str();
        let unknown = |what: &str| {
            let message = format!("the tool `{name}` {what}");
            Failure::new(ErrorCategory::UnknownTool, Effect::None, message)
        };
        let tool = self.worker.tools.get(name);
        let tool = tool.ok_or_else(|| unknown("is bound to no implementation"))?;
        let declared = self.run.specification(name);
        // A run keeps what was declared when it began, and must not call what was declared since.
        let is_same = declared.is_some_and(|declared| {
            Arc::ptr_eq(declared, tool.specification()) || declared == tool.specification()
        });
        if is_same {
            Ok(tool.clone())
        } else {
            Err(unknown("is declared otherwise since this run began"))
        }
    }

    async fn end_call(&mut self, call: &CallId, ended: Ended) -> Result<(), DriveError> {
        let event = Event::CallEnded {
            call: call.clone(),
            end: ended.end,
            usage: ended.usage,
            at: self.driver.durable.now(),
        };
        self.happen(event, Durability::Relaxed).await
    }

    /// Takes a call through the gate and writes down that it starts. Whether it may run now.
    async fn may_run(&mut self, call: &CallId) -> Result<bool, DriveError> {
        let (record, decision) = self.run.call(call)?;
        let state = record.state();
        let name = record.tool_name().as_str();
        let risk = self.run.risk(name);
        if state == CallState::Running {
            // An earlier process wrote that the call starts and died before it wrote how it ended.
            let is_idempotent = self
                .run
                .specification(name)
                .and_then(|tool| tool.attributes().idempotent)
                .unwrap_or(false);
            if risk == RiskLevel::Reversible || (is_idempotent && risk != RiskLevel::Irreversible) {
                return Ok(true);
            }
            let failure = Failure::new(
                ErrorCategory::Internal,
                Effect::Unknown,
                "the process died while the call was under way; nobody knows whether it had an effect",
            );
            self.end_call(call, CallEnd::Unknown(failure).into())
                .await?;
            return Ok(false);
        }
        if decision.is_none() {
            let decision = self.run.decide(call, &|_| true)?;
            let event = Event::Decided {
                call: call.clone(),
                decision,
                at: self.driver.durable.now(),
            };
            self.happen(event, Durability::Relaxed).await?;
        }
        let (_, decision) = self.run.call(call)?;
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
            at: self.driver.durable.now(),
        };
        self.happen(event, durability).await?;
        Ok(true)
    }
}

/// Drives the run that works for a call: the one an earlier process began, else a new one.
async fn work_as_child(driver: Driver, first: Option<Event>) -> Outcome {
    let Some(first) = first else {
        let failure = Failure::new(
            ErrorCategory::Internal,
            Effect::None,
            "the agents hand work to each other too often; do it without a sub-agent",
        );
        return Ok(Some(CallEnd::Error(failure).into()));
    };
    let taken = match &first {
        Event::Started { run, .. } => driver.durable.take_over(run).await?,
        _ => None,
    };
    let run = match taken {
        Some(taken) => driver.go_on(taken).await?,
        None => driver.begin(None, first).await?,
    };
    Ok(run.end().map(|end| Ended {
        end: end_of_child(&run, end),
        usage: run.usage(),
    }))
}

/// How a call ends whose work was a run of its own.
fn end_of_child(run: &Run, end: &RunEnd) -> CallEnd {
    let response = run.response();
    let failed = |category, why: &str| {
        let message = format!("{why}; what it has: {}", response.answer);
        CallEnd::Error(Failure::new(category, effect(run), message))
    };
    match end {
        RunEnd::Completed => CallEnd::Success(Value::String(response.answer.to_string())),
        RunEnd::IterationLimit => failed(
            ErrorCategory::BudgetExceeded,
            "the sub-agent ran out of turns",
        ),
        RunEnd::Budget { budget } => {
            let why = format!("the sub-agent ran out of {}", budget.as_str());
            failed(ErrorCategory::BudgetExceeded, &why)
        }
        RunEnd::Failed { category, message } => {
            failed(*category, &format!("the sub-agent failed: {message}"))
        }
        RunEnd::Cancelled => CallEnd::Cancelled(Failure::new(
            ErrorCategory::Cancelled,
            effect(run),
            "the sub-agent was stopped",
        )),
        RunEnd::WaitingForPerson => failed(
            ErrorCategory::PermissionDenied,
            "the sub-agent waits for a person",
        ),
    }
}

/// What a run that came to nothing may have done all the same.
fn effect(run: &Run) -> Effect {
    let mut effect = Effect::None;
    for call in run.calls() {
        if run.risk(call.tool_name().as_str()) == RiskLevel::Reversible {
            continue;
        }
        match call.outcome() {
            Some(Ok(_)) => effect = Effect::Applied,
            Some(Err(failure)) if failure.effect == Effect::Unknown => return Effect::Unknown,
            Some(Err(_)) | None => {}
        }
    }
    effect
}
