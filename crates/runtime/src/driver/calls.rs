//! Executes calls: by a tool, by the run of a sub-agent, or by the tasks of a plan.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use windlass_core::durable::Durability;
use windlass_core::gate::Permit;
use windlass_core::limits::indicates_tool_failure;
use windlass_core::model::Usage;
use windlass_core::run::{
    CallEnd, CallKind, Event, ExecutedTool, FormReply, Run, RunEnd, TaskEnd, ToolQuestion, Variant,
};
use windlass_core::stop::StopOrder;
use windlass_spec::plan::PlanTaskId;
use windlass_spec::{CallId, Deprecation, Effect, ErrorCategory, Failure, Money, RiskLevel};
use windlass_store::crash_point;
use windlass_tools::{
    ApprovalStatement, BoundTool, CallContext, Caller, DispatchOptions, DispatchOutcome,
    EnvelopeNotices, OnProgress, Taint, dispatch,
};

use super::plans::Plans;
use super::proof::approval_statement;
use super::waiting::{Flow, INBOX_POLL};
use super::{Drive, DriveError, Driver, Stop, spans};
use crate::limiter::Admitted;
use crate::progress::Progress;

/// The result of executing a call.
pub(super) type Outcome = Result<CallOutcome, DriveError>;

pub(super) enum CallOutcome {
    Ended(Box<Ended>),
    /// The tool asks a person, what it should write differently, and what it states that this cost.
    NeedsAnswer(Box<ToolQuestion>, Vec<Deprecation>, Option<Money>),
    /// The child run of a sub-agent was stopped after a step, or waits for an approval or answer. The call is
    /// still running and continues when the run is resumed.
    Suspended {
        for_person: bool,
        /// The stop that it was suspended for.
        stop: Option<Box<StopOrder>>,
    },
    /// A task of a plan ended, and what it used up.
    TaskEnded(Box<TaskEnd>, Spent),
}

/// What the child run of a call or a task has used up.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Spent {
    pub(super) usage: Usage,
    pub(super) calls: u32,
}

impl Spent {
    pub(super) fn by(run: &Run) -> Self {
        Self {
            usage: run.usage(),
            calls: run.calls_used(),
        }
    }
}

/// What a running future works on.
pub(super) enum WorkItem {
    Call(CallId),
    /// A task of a plan, and which attempt it is.
    Task(CallId, PlanTaskId, u32),
}

pub(super) type Running<'d> = FuturesUnordered<BoxFuture<'d, (WorkItem, Outcome)>>;

/// How a call ended and what it used up.
pub(super) struct Ended {
    end: CallEnd,
    spent: Spent,
    /// Whether its result is untrusted content.
    is_tainted: bool,
    /// The variant that ran, if it is not the one the call started with.
    variant: Option<Variant>,
    /// What the tool should write differently in its answer.
    notices: Vec<Deprecation>,
    /// What the tool states that the call cost.
    cost: Option<Money>,
}

impl Ended {
    pub(super) fn end(&self) -> &CallEnd {
        &self.end
    }
}

impl From<CallEnd> for Ended {
    fn from(end: CallEnd) -> Self {
        Self {
            end,
            spent: Spent::default(),
            is_tainted: false,
            variant: None,
            notices: Vec::new(),
            cost: None,
        }
    }
}

impl CallOutcome {
    /// What the tool states that the call cost.
    fn cost(&self) -> Option<Money> {
        match self {
            Self::Ended(ended) => ended.cost,
            Self::NeedsAnswer(_, _, cost) => *cost,
            Self::Suspended { .. } | Self::TaskEnded(..) => None,
        }
    }
}

impl<'d> Drive<'d> {
    /// Executes calls concurrently. Yields if one of them is suspended.
    pub(super) async fn run_calls(&mut self, calls: &[CallId]) -> Result<Flow, DriveError> {
        let cancel = self.driver.stop.at_once.child_token();
        let mut running = Running::new();
        let mut plans = Plans::default();
        let mut stopped = None;
        for call in calls {
            let (record, _) = self.run.call(call)?;
            if let Some(stop) = self.stop_covering(Some(record.tool_name())).await? {
                stopped.get_or_insert(stop);
                continue;
            }
            let is_continued = self.parked.remove(call);
            let admitted = match is_continued {
                true => Some(Admitted::uncounted(&self.driver.limiter)),
                false => self.start_call(call).await?,
            };
            let Some(admitted) = admitted else {
                continue;
            };
            // Only the process that keeps the call open can use the reply.
            let reply = self.run.take_reply(call).filter(|_| is_continued);
            let permit = self.run.permit(call)?;
            if let Some(CallKind::Plan(operation)) = self.run.kind(call) {
                self.start_plan_call(call, operation, permit, &mut plans)
                    .await?;
                continue;
            }
            let span = spans::tool_call(&self.run, call);
            let now = self.driver.durable.now();
            let approval = approval_statement(&self.run, call, &*self.journal, now);
            let work = self.execute(call.clone(), permit, &cancel, (reply, approval));
            running.push(Box::pin(async move {
                let (call, outcome) = work.instrument(span.clone()).await;
                spans::record_outcome(&span, &outcome);
                drop(admitted);
                (WorkItem::Call(call), outcome)
            }));
        }
        if self.run.end().is_some() {
            cancel.cancel();
        }
        let mut suspended = None;
        loop {
            // Changes of a running plan are applied before its next task starts.
            self.take_plan_commands().await?;
            let left = self
                .advance_plans(&mut plans, &mut running, &cancel)
                .await?;
            if running.is_empty() {
                if let Some(for_person) = left {
                    *suspended.get_or_insert(false) |= for_person;
                }
                break;
            }
            let now = self.driver.durable.now();
            let left = self.run.time_left(now).unwrap_or(Duration::MAX);
            match tokio::time::timeout(left.min(INBOX_POLL), running.next()).await {
                Ok(Some((WorkItem::Task(plan, task, attempt), outcome))) => {
                    self.take_task((plan, task, attempt), outcome?, &mut plans)
                        .await?;
                    if self.cancel_if_requested().await? {
                        cancel.cancel();
                    }
                }
                Ok(Some((WorkItem::Call(call), outcome))) => {
                    match self.take_cost(&call, outcome?).await? {
                        CallOutcome::Ended(ended) => {
                            if let Some(again) = self.try_again(&call, &ended, &cancel).await? {
                                running.push(again);
                                continue;
                            }
                            self.end_call(&call, *ended).await?;
                            // If the child run was cancelled, this run may be cancelled too.
                            let is_sub_agent = self.run.kind(&call) == Some(CallKind::SubAgent);
                            if is_sub_agent && self.cancel_if_requested().await? {
                                cancel.cancel();
                            }
                        }
                        CallOutcome::NeedsAnswer(question, notices, _) => {
                            self.ask_for_tool(&call, *question, notices).await?;
                        }
                        CallOutcome::Suspended { for_person, stop } => {
                            *suspended.get_or_insert(false) |= for_person;
                            if let Some(stop) = stop {
                                self.note_stop(*stop);
                            }
                        }
                        CallOutcome::TaskEnded(..) => {}
                    }
                }
                Ok(None) => break,
                Err(_) if left > INBOX_POLL => {
                    if !cancel.is_cancelled() && self.is_cancel_requested().await? {
                        cancel.cancel();
                        self.take_commands().await?;
                    }
                }
                Err(_) => {
                    cancel.cancel();
                    if self.run.end().is_none() {
                        let at = self.driver.durable.now();
                        self.record(Event::TimePassed { at }, Durability::Relaxed)
                            .await?;
                    }
                }
            }
        }
        if let Some(stop) = stopped {
            return self.halt(stop).await;
        }
        match suspended {
            None => Ok(Flow::Continue),
            // A worker resumes the run, which then waits for the person.
            Some(_) if self.run.stopped().is_some() => Ok(Flow::Yield),
            Some(true) if self.run.end().is_none() => self.suspend().await,
            Some(_) => Ok(Flow::Yield),
        }
    }

    /// Records what a tool states that its call cost, whatever came of the call.
    async fn take_cost(
        &mut self,
        call: &CallId,
        outcome: CallOutcome,
    ) -> Result<CallOutcome, DriveError> {
        if let Some(cost) = outcome.cost().filter(|cost| *cost > Money::ZERO) {
            let event = Event::CostReported {
                call: call.clone(),
                cost,
                at: self.driver.durable.now(),
            };
            self.record(event, Durability::Relaxed).await?;
        }
        Ok(outcome)
    }

    /// The future that makes a failed call again after a pause, if it is tried again.
    async fn try_again(
        &mut self,
        call: &CallId,
        ended: &Ended,
        cancel: &CancellationToken,
    ) -> Result<Option<BoxFuture<'d, (WorkItem, Outcome)>>, DriveError> {
        let (CallEnd::Error(failure) | CallEnd::Timeout(failure)) = ended.end() else {
            return Ok(None);
        };
        if cancel.is_cancelled() {
            return Ok(None);
        }
        let Some((admitted, delay)) = self.retry_call(call, failure).await? else {
            return Ok(None);
        };
        let permit = self.run.permit(call)?;
        let span = spans::tool_call(&self.run, call);
        let now = self.driver.durable.now();
        let approval = approval_statement(&self.run, call, &*self.journal, now);
        let work = self.execute(call.clone(), permit, cancel, (None, approval));
        let (record, _) = self.run.call(call)?;
        let guard = self.stop_guard(record.tool_name());
        let (call, stop, failed) = (call.clone(), cancel.clone(), ended.end().clone());
        Ok(Some(Box::pin(async move {
            tokio::select! {
                biased;
                () = stop.cancelled() => {
                    let outcome = CallOutcome::Ended(Box::new(failed.into()));
                    return (WorkItem::Call(call), Ok(outcome));
                }
                () = tokio::time::sleep(delay) => {}
            }
            // It is made again when the run is resumed.
            match guard.stop().await {
                Ok(None) => {}
                Ok(Some(stop)) => {
                    let suspended = CallOutcome::Suspended {
                        for_person: false,
                        stop: Some(Box::new(stop)),
                    };
                    return (WorkItem::Call(call), Ok(suspended));
                }
                Err(error) => return (WorkItem::Call(call), Err(error.into())),
            }
            let (call, outcome) = work.instrument(span.clone()).await;
            spans::record_outcome(&span, &outcome);
            drop(admitted);
            (WorkItem::Call(call), outcome)
        })))
    }

    /// The future that executes a permitted call.
    fn execute(
        &self,
        call: CallId,
        permit: Permit,
        cancel: &CancellationToken,
        (reply, approval): (Option<FormReply>, Option<ApprovalStatement>),
    ) -> BoxFuture<'d, (CallId, Outcome)> {
        let cancel = cancel.clone();
        let kind = self.run.kind(&call);
        if kind == Some(CallKind::SubAgent) {
            let holds = self.run.permissions(self.journal.who(), &self.rules);
            let now = self.driver.durable.now();
            let child = self.run.child(&call, permit, holds, now);
            let stop = Stop {
                after_step: self.driver.stop.after_step.clone(),
                at_once: cancel,
            };
            let driver = self.driver.clone().stopped_by(stop);
            let driver = driver.working_for(&self.run);
            return Box::pin(async move { (call, work_as_child(driver, child).await) });
        }
        if kind == Some(CallKind::ToolSearch) {
            let outcome = CallOutcome::Ended(Box::new(self.find_tools(&permit).into()));
            return Box::pin(std::future::ready((call, Ok(outcome))));
        }
        let timeout = self.rules.timeout(permit.tool().as_str());
        let progress = self.tool_progress(&call);
        let risk = self.run.risk(&call);
        let irreversible_lock = self.driver.irreversible_lock.clone();
        let caller = self.caller(&call);
        let memory = self.driver.durable.memory();
        let isolation = self.driver.isolation();
        let watch = self.driver.watched();
        let began_with = self.run.variant(&call).cloned();
        let mut key = self.run.idempotency_key(&call).to_string();
        if approval.is_some() {
            // Another key than that of the attempt that asked: a server that repeats its answer would ask again.
            key += ":approved";
        }
        let guard = self.stop_guard(permit.tool());
        match self.bound_tool(&permit) {
            Ok(tool) => Box::pin(async move {
                // Only one irreversible call executes at a time, across the runs of a plan.
                let lock = irreversible_lock.filter(|_| risk == RiskLevel::Irreversible);
                let _guard = match &lock {
                    Some(lock) => Some(lock.lock().await),
                    None => None,
                };
                // It may have been stopped while the call waited.
                if lock.is_some() {
                    match guard.stop().await {
                        Ok(None) => {}
                        Ok(Some(stop)) => {
                            let message = format!("{stop}; the call did nothing");
                            let failure =
                                Failure::new(ErrorCategory::Cancelled, Effect::None, message);
                            let end = CallEnd::Cancelled(failure);
                            return (call, Ok(CallOutcome::Ended(Box::new(end.into()))));
                        }
                        Err(error) => return (call, Err(error.into())),
                    }
                }
                let variant =
                    tool.tool()
                        .assigned(&caller.tenant, &caller.principal, began_with.as_ref());
                let taint = caller.taint.clone();
                let context = CallContext {
                    stop: cancel,
                    key,
                    reply,
                    approval,
                    progress: Some(progress),
                    caller: Some(caller),
                    memory,
                    isolation,
                    watch,
                    variant: variant.as_ref().map(|variant| variant.name.clone()),
                    ..CallContext::default()
                };
                let notices = EnvelopeNotices::default();
                let options = DispatchOptions {
                    context,
                    timeout,
                    risk: Some(risk),
                    notices: notices.clone(),
                };
                crash_point!("effect.before");
                let dispatched = dispatch(&tool, permit, options).await;
                crash_point!("effect.after");
                let outcome = match dispatched {
                    DispatchOutcome::Ended(end) => CallOutcome::Ended(Box::new(Ended {
                        is_tainted: taint.is_tainted(),
                        variant,
                        notices: notices.take(),
                        cost: notices.cost(),
                        ..end.into()
                    })),
                    DispatchOutcome::Question(question) => {
                        CallOutcome::NeedsAnswer(question, notices.take(), notices.cost())
                    }
                };
                (call, Ok(outcome))
            }),
            Err(failure) => Box::pin(std::future::ready((
                call,
                Ok(CallOutcome::Ended(Box::new(CallEnd::Error(failure).into()))),
            ))),
        }
    }

    /// The variant assigned to a call, if its tool has several implementations.
    pub(super) fn assigned(&self, call: &CallId) -> Option<Variant> {
        let (record, _) = self.run.call(call).ok()?;
        let name = record.tool_name().as_str();
        let tool = self.driver.crew.tool(self.member, name)?;
        let who = self.journal.who();
        tool.tool()
            .assigned(who.tenant.as_str(), who.principal.as_str(), None)
    }

    /// The caller of a call's tool.
    fn caller(&self, call: &CallId) -> Caller {
        let who = self.journal.who();
        // Unknown counts as tainted.
        let is_tainted = self.run.is_tainted_at(call).unwrap_or(true);
        Caller {
            tenant: who.tenant.to_string(),
            principal: who.principal.to_string(),
            agent: self.run.agent().name().clone(),
            run: self.run.id().clone(),
            parent: self.run.parent().cloned(),
            is_tainted,
            taint: Taint::default(),
        }
    }

    /// The callback for progress reports of a call's tool.
    fn tool_progress(&self, call: &CallId) -> OnProgress {
        let (watch, run) = (Arc::clone(&self.driver.watch), self.run.id().clone());
        let call = call.clone();
        Arc::new(move |progress| watch(&run, Progress::Tool(&call, &progress)))
    }

    /// The implementation of the tool that the run's agent declares.
    fn bound_tool(&self, permit: &Permit) -> Result<BoundTool, Failure> {
        let name = permit.tool().as_str();
        let unknown = |what: &str| {
            let message = format!("the tool `{name}` {what}");
            Failure::new(ErrorCategory::UnknownTool, Effect::None, message)
        };
        let tool = self.driver.crew.tool(self.member, name);
        let tool = tool.ok_or_else(|| unknown("has no implementation"))?;
        let declared = self.run.specification(name);
        // A run keeps the declarations it started with, and must not call a tool that was declared later.
        let is_same = declared.is_some_and(|declared| {
            Arc::ptr_eq(declared, tool.specification()) || declared == tool.specification()
        });
        if is_same {
            Ok(tool)
        } else {
            Err(unknown("was redeclared after this run started"))
        }
    }

    pub(super) async fn end_call(&mut self, call: &CallId, ended: Ended) -> Result<(), DriveError> {
        let at = self.driver.durable.now();
        let (record, _) = self.run.call(call)?;
        let ran = record.started_at().map(|started_at| ExecutedTool {
            tool: record.tool_name().clone(),
            started_at,
            // If the executor does not report a variant, the assigned one ran.
            variant: ended.variant.or_else(|| self.run.variant(call).cloned()),
            notices: ended.notices,
        });
        let has_failed = indicates_tool_failure(ended.end.state(), ended.end.category());
        if let (Some(ran), Some(has_failed)) = (&ran, has_failed) {
            let tenant = self.journal.who().tenant.as_str();
            let end = (call.clone(), has_failed, at);
            self.driver.limiter.ended(tenant, &ran.tool, end);
        }
        let event = Event::CallEnded {
            call: call.clone(),
            end: ended.end,
            usage: ended.spent.usage,
            calls: ended.spent.calls,
            ran,
            tainted: ended.is_tainted,
            at,
        };
        self.record(event, Durability::Relaxed).await
    }
}

/// Drives the child run of a call: the one an earlier process began, else a new one.
async fn work_as_child(driver: Driver, first: Option<Event>) -> Outcome {
    let Some(first) = first else {
        let failure = Failure::new(
            ErrorCategory::Internal,
            Effect::None,
            "sub-agents are nested too deeply; do this work without a sub-agent",
        );
        return Ok(CallOutcome::Ended(Box::new(CallEnd::Error(failure).into())));
    };
    let run = drive_child(driver, first).await?;
    Ok(match run.end() {
        Some(end) => CallOutcome::Ended(Box::new(Ended {
            end: end_of_child(&run, end),
            spent: Spent::by(&run),
            is_tainted: run.is_tainted(),
            variant: None,
            notices: Vec::new(),
            cost: None,
        })),
        None => suspended(&run),
    })
}

/// The outcome of a child run that was suspended.
pub(super) fn suspended(run: &Run) -> CallOutcome {
    CallOutcome::Suspended {
        for_person: run.end_or_waiting().is_some(),
        stop: run.stopped().cloned().map(Box::new),
    }
}

/// Drives a child run: the one an earlier process began, else a new one.
pub(super) async fn drive_child(driver: Driver, first: Event) -> Result<Run, DriveError> {
    // How its call ends depends on all it did.
    let driver = driver.reading_back();
    let taken = match &first {
        Event::Started { run, .. } => driver.durable.take_over(run).await?,
        _ => None,
    };
    match taken {
        Some(taken) => driver.resume_taken(taken, BTreeMap::new()).await,
        None => {
            let begun = driver.record_start(None, first).await?;
            driver.drive(begun).await
        }
    }
}

/// How a call ends that a child run worked on.
pub(super) fn end_of_child(run: &Run, end: &RunEnd) -> CallEnd {
    let response = run.response();
    // No question was asked in the child run, so the approver is asked in this one.
    let is_unknown = run.has_unreported_outcome();
    let possible_effect = match is_unknown {
        true => Effect::Unknown,
        false => effect(run),
    };
    let failed = |category, why: &str| {
        let message = format!("{why}; its answer so far: {}", response.answer());
        let failure = Failure::new(category, possible_effect, message);
        match is_unknown {
            true => CallEnd::Unknown(failure),
            false => CallEnd::Error(failure),
        }
    };
    match end {
        RunEnd::Completed => CallEnd::Success(Value::String(response.answer().to_string())),
        RunEnd::IterationLimit => failed(
            ErrorCategory::BudgetExceeded,
            "the sub-agent ran out of turns",
        ),
        RunEnd::Budget { budget, .. } => {
            let why = format!("the sub-agent ran out of {}", budget.as_str());
            failed(ErrorCategory::BudgetExceeded, &why)
        }
        RunEnd::Failed { category, message } => {
            failed(*category, &format!("the sub-agent failed: {message}"))
        }
        RunEnd::Cancelled => {
            let message = "the sub-agent was cancelled";
            let failure = Failure::new(ErrorCategory::Cancelled, possible_effect, message);
            match is_unknown {
                true => CallEnd::Unknown(failure),
                false => CallEnd::Cancelled(failure),
            }
        }
        RunEnd::WaitingForPerson | RunEnd::WaitingForCaller { .. } => failed(
            ErrorCategory::PermissionDenied,
            "the sub-agent waits for an approval or answer",
        ),
    }
}

/// The effect that an unsuccessful run may have had.
fn effect(run: &Run) -> Effect {
    let mut effect = Effect::None;
    for call in run.calls() {
        // Calling a sub-agent has no effect itself, but its failed run may have had one.
        let is_sub_agent = run.kind(call.id()) == Some(CallKind::SubAgent);
        if run.risk(call.id()) == RiskLevel::Reversible && !is_sub_agent {
            continue;
        }
        match call.outcome() {
            Some(Ok(_)) if !is_sub_agent => effect = Effect::Applied,
            Some(Err(failure)) => {
                match run.effect_of_failure(call.id()).unwrap_or(failure.effect) {
                    Effect::Unknown => return Effect::Unknown,
                    Effect::Applied => effect = Effect::Applied,
                    Effect::None => {}
                }
            }
            Some(Ok(_)) | None => {}
        }
    }
    effect
}
