//! Brings calls to their end: by a tool, by the run of a sub-agent, or by the tasks of a plan.

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
use windlass_core::model::Usage;
use windlass_core::run::{
    CallEnd, CallKind, Event, Ran, Reply, Run, RunEnd, TaskEnd, ToolQuestion, Variant,
};
use windlass_spec::plan::PlanTaskId;
use windlass_spec::{CallId, Effect, ErrorCategory, Failure, RiskLevel};
use windlass_store::{crash_point, says_of_tool, told_end};
use windlass_tools::{BoundTool, Caller, DispatchOptions, Dispatched, OnProgress, Taint, dispatch};

use super::plans::Plans;
use super::waiting::{Goes, LOOK};
use super::{Drive, DriveError, Driver, Stop, spans};
use crate::limiter::Admitted;
use crate::progress::Progress;

/// What came of running a call.
pub(super) type Outcome = Result<Came, DriveError>;

pub(super) enum Came {
    Ended(Box<Ended>),
    /// The tool asks a person.
    Asks(Box<ToolQuestion>),
    /// It is the work of a sub-agent that was stopped after a step, or waits for a person. It is
    /// still under way, and is gone on with when the run is taken up again.
    Stands {
        for_person: bool,
    },
    /// A task of a plan ended, and what was used up in it.
    Task(Box<TaskEnd>, Spent),
}

/// What the run that worked for a call or a task has used up.
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

/// What is under way.
pub(super) enum Of {
    Call(CallId),
    /// A task of a plan, and which attempt it is.
    Task(CallId, PlanTaskId, u32),
}

pub(super) type Running<'d> = FuturesUnordered<BoxFuture<'d, (Of, Outcome)>>;

/// How a call ended and what was used up in it.
pub(super) struct Ended {
    end: CallEnd,
    spent: Spent,
    /// Whether what it brought comes from outside.
    is_tainted: bool,
    /// Which of several implementations ran, if that is not the one it began with.
    variant: Option<Variant>,
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
        }
    }
}

impl<'d> Drive<'d> {
    /// Brings calls to their end, all at the same time. The run is left if one of them cannot be
    /// gone on with.
    pub(super) async fn run_calls(&mut self, calls: &[CallId]) -> Result<Goes, DriveError> {
        let cancel = self.driver.stop.at_once.child_token();
        let mut running = Running::new();
        let mut plans = Plans::default();
        for call in calls {
            let goes_on = self.parked.remove(call);
            let admitted = match goes_on {
                true => Some(Admitted::uncounted(&self.driver.limiter)),
                false => self.may_run(call).await?,
            };
            let Some(admitted) = admitted else {
                continue;
            };
            // What was filled in is for the process that keeps the call open, and for no other.
            let reply = self.run.take_reply(call).filter(|_| goes_on);
            let permit = self.run.permit(call)?;
            if let Some(CallKind::Plan(operation)) = self.run.kind(call) {
                self.begin_planning(call, operation, permit, &mut plans)
                    .await?;
                continue;
            }
            let span = spans::tool_call(&self.run, call);
            let work = self.running(call.clone(), permit, &cancel, reply);
            running.push(Box::pin(async move {
                let (call, came) = work.instrument(span.clone()).await;
                spans::record_outcome(&span, &came);
                drop(admitted);
                (Of::Call(call), came)
            }));
        }
        if self.run.end().is_some() {
            cancel.cancel();
        }
        let mut stands = None;
        loop {
            // Whoever changes a plan that is busy is heard before its next task begins.
            self.take_plan_commands().await?;
            let left = self
                .go_on_with_plans(&mut plans, &mut running, &cancel)
                .await?;
            if running.is_empty() {
                if let Some(for_person) = left {
                    *stands.get_or_insert(false) |= for_person;
                }
                break;
            }
            let now = self.driver.durable.now();
            let left = self.run.time_left(now).unwrap_or(Duration::MAX);
            match tokio::time::timeout(left.min(LOOK), running.next()).await {
                Ok(Some((Of::Task(plan, task, attempt), came))) => {
                    self.take_task((plan, task, attempt), came?, &mut plans)
                        .await?;
                    if self.stop_if_told().await? {
                        cancel.cancel();
                    }
                }
                Ok(Some((Of::Call(call), came))) => match came? {
                    Came::Ended(ended) => {
                        self.end_call(&call, *ended).await?;
                        // Who stopped the work of a sub-agent may want all of it stopped.
                        let is_sub_agent = self.run.kind(&call) == Some(CallKind::SubAgent);
                        if is_sub_agent && self.stop_if_told().await? {
                            cancel.cancel();
                        }
                    }
                    Came::Asks(question) => self.ask_for_tool(&call, *question).await?,
                    Came::Stands { for_person } => {
                        *stands.get_or_insert(false) |= for_person;
                    }
                    Came::Task(..) => {}
                },
                Ok(None) => break,
                Err(_) if left > LOOK => {
                    if !cancel.is_cancelled() && self.is_to_be_cancelled().await? {
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
        match stands {
            None => Ok(Goes::On),
            Some(true) if self.run.end().is_none() => self.leave_waiting().await,
            Some(_) => Ok(Goes::Away),
        }
    }

    /// What brings a permitted call to its end.
    fn running(
        &self,
        call: CallId,
        permit: Permit,
        cancel: &CancellationToken,
        reply: Option<Reply>,
    ) -> BoxFuture<'d, (CallId, Outcome)> {
        let cancel = cancel.clone();
        let kind = self.run.kind(&call);
        if kind == Some(CallKind::SubAgent) {
            let holds = self.run.held(self.journal.who(), &self.rules);
            let now = self.driver.durable.now();
            let child = self.run.child(&call, permit, holds, now);
            let stop = Stop {
                after_step: self.driver.stop.after_step.clone(),
                at_once: cancel,
            };
            let driver = self.driver.clone().stopped_by(stop);
            return Box::pin(async move { (call, work_as_child(driver, child).await) });
        }
        if kind == Some(CallKind::ToolSearch) {
            let came = Came::Ended(Box::new(self.find_tools(&permit).into()));
            return Box::pin(std::future::ready((call, Ok(came))));
        }
        let timeout = self.rules.timeout(permit.tool().as_str());
        let progress = self.tool_progress(&call);
        let risk = self.run.risk(&call);
        let alone = self.driver.alone.clone();
        let caller = self.caller(&call);
        let memory = self.driver.durable.memory();
        let began_with = self.run.variant(&call).cloned();
        match self.bound(&permit) {
            Ok(tool) => Box::pin(async move {
                // Of what cannot be undone, one runs at a time, also in runs beside each other.
                let alone = alone.filter(|_| risk == RiskLevel::Irreversible);
                let _alone = match &alone {
                    Some(alone) => Some(alone.lock().await),
                    None => None,
                };
                let variant =
                    tool.tool()
                        .assigned(&caller.tenant, &caller.principal, began_with.as_ref());
                let options = DispatchOptions {
                    variant: variant.as_ref().map(|variant| variant.name.clone()),
                    cancel,
                    timeout,
                    risk: Some(risk),
                    key: call.to_string(),
                    reply,
                    progress: Some(progress),
                    caller: Some(caller),
                    memory,
                    ..DispatchOptions::default()
                };
                let taint = options.caller.as_ref().map(|caller| caller.taint.clone());
                crash_point!("effect.before");
                let dispatched = dispatch(&tool, permit, options).await;
                crash_point!("effect.after");
                let came = match dispatched {
                    Dispatched::Ended(end) => Came::Ended(Box::new(Ended {
                        is_tainted: taint.is_some_and(|taint| taint.is_marked()),
                        variant,
                        ..end.into()
                    })),
                    Dispatched::Asks(question) => Came::Asks(question),
                };
                (call, Ok(came))
            }),
            Err(failure) => Box::pin(std::future::ready((
                call,
                Ok(Came::Ended(Box::new(CallEnd::Error(failure).into()))),
            ))),
        }
    }

    /// Which of several implementations a call is to run, if there are several.
    pub(super) fn assigned(&self, call: &CallId) -> Option<Variant> {
        let (record, _) = self.run.call(call).ok()?;
        let name = record.tool_name().as_str();
        let tool = self.driver.crew.tool(self.worker, name)?;
        let who = self.journal.who();
        tool.tool()
            .assigned(who.tenant.as_str(), who.principal.as_str(), None)
    }

    /// For whom a call is made.
    fn caller(&self, call: &CallId) -> Caller {
        let who = self.journal.who();
        // What cannot be told is taken for tainted.
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

    /// Where the tool of a call tells how far it has come.
    fn tool_progress(&self, call: &CallId) -> OnProgress {
        let (watch, run) = (Arc::clone(&self.driver.watch), self.run.id().clone());
        let call = call.clone();
        Arc::new(move |progress| watch(&run, Progress::Tool(&call, &progress)))
    }

    /// The implementation of the tool that the run's agent declares, if there is one.
    fn bound(&self, permit: &Permit) -> Result<BoundTool, Failure> {
        let name = permit.tool().as_str();
        let unknown = |what: &str| {
            let message = format!("the tool `{name}` {what}");
            Failure::new(ErrorCategory::UnknownTool, Effect::None, message)
        };
        let tool = self.driver.crew.tool(self.worker, name);
        let tool = tool.ok_or_else(|| unknown("is bound to no implementation"))?;
        let declared = self.run.specification(name);
        // A run keeps what was declared when it began, and must not call what was declared since.
        let is_same = declared.is_some_and(|declared| {
            Arc::ptr_eq(declared, tool.specification()) || declared == tool.specification()
        });
        if is_same {
            Ok(tool)
        } else {
            Err(unknown("is declared otherwise since this run began"))
        }
    }

    pub(super) async fn end_call(&mut self, call: &CallId, ended: Ended) -> Result<(), DriveError> {
        let at = self.driver.durable.now();
        let (record, _) = self.run.call(call)?;
        let ran = record.started_at().map(|started_at| Ran {
            tool: record.tool_name().clone(),
            started_at,
            // Nobody knows what ran but whoever ran it; else it is what was to run.
            variant: ended.variant.or_else(|| self.run.variant(call).cloned()),
        });
        let (state, category) = told_end(&ended.end);
        if let (Some(ran), Some(has_failed)) = (&ran, says_of_tool(state, category)) {
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

/// Drives the run that works for a call: the one an earlier process began, else a new one.
async fn work_as_child(driver: Driver, first: Option<Event>) -> Outcome {
    let Some(first) = first else {
        let failure = Failure::new(
            ErrorCategory::Internal,
            Effect::None,
            "the agents hand work to each other too often; do it without a sub-agent",
        );
        return Ok(Came::Ended(Box::new(CallEnd::Error(failure).into())));
    };
    let run = drive_child(driver, first).await?;
    Ok(match run.end() {
        Some(end) => Came::Ended(Box::new(Ended {
            end: end_of_child(&run, end),
            spent: Spent::by(&run),
            is_tainted: run.is_tainted(),
            variant: None,
        })),
        None => Came::Stands {
            for_person: run.standing().is_some(),
        },
    })
}

/// Drives a run that works for another: the one an earlier process began, else a new one.
pub(super) async fn drive_child(driver: Driver, first: Event) -> Result<Run, DriveError> {
    let taken = match &first {
        Event::Started { run, .. } => driver.durable.take_over(run).await?,
        _ => None,
    };
    match taken {
        Some(taken) => driver.go_on(taken).await,
        None => {
            let begun = driver.record_start(None, first).await?;
            driver.drive(begun).await
        }
    }
}

/// How a call ends whose work was a run of its own.
pub(super) fn end_of_child(run: &Run, end: &RunEnd) -> CallEnd {
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
        // To hand work over changes nothing, but whoever failed at it may have.
        let is_handed_over = run.kind(call.id()) == Some(CallKind::SubAgent);
        if run.risk(call.id()) == RiskLevel::Reversible && !is_handed_over {
            continue;
        }
        match call.outcome() {
            Some(Ok(_)) if !is_handed_over => effect = Effect::Applied,
            Some(Err(failure)) => match failure.effect {
                Effect::Unknown => return Effect::Unknown,
                Effect::Applied => effect = Effect::Applied,
                Effect::None => {}
            },
            Some(Ok(_)) | None => {}
        }
    }
    effect
}
