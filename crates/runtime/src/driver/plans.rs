//! Executes the plans of a run: starts the tasks that are ready, each as its own run, and ends the calls
//! that wait for a plan when no task of it can continue without help.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::{Map, Value};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use windlass_core::durable::{Durability, InboxAction};
use windlass_core::gate::Permit;
use windlass_core::run::{
    CREATE_EXECUTION_PLAN, CallEnd, Event, PlanOperation, PlanState, PlanTaskStatus, Run, RunEnd,
    TaskEnd,
};
use windlass_spec::plan::{Plan, PlanErrors, PlanTaskId, RawPlan};
use windlass_spec::{CallId, Effect, ErrorCategory, Failure};

use super::calls::{
    CallOutcome, Outcome, Running, Spent, WorkItem, drive_child, end_of_child, suspended,
};
use super::{Drive, DriveError, Driver, Stop};

/// The plans that calls of a turn execute.
#[derive(Default)]
pub(super) struct Plans {
    /// By plan, the calls that wait until no task of it can continue without help.
    calls: BTreeMap<CallId, Vec<CallId>>,
    /// Tasks whose runs are driven here.
    driven: HashSet<(CallId, PlanTaskId)>,
    /// Tasks whose runs were suspended, and whether that was because a person has to decide.
    suspended: HashMap<(CallId, PlanTaskId), bool>,
    /// Held by the one irreversible call that executes.
    irreversible_lock: Arc<Mutex<()>>,
}

impl<'d> Drive<'d> {
    /// Starts a call about plans. [`Drive::advance_plans`] does the rest.
    pub(super) async fn start_plan_call(
        &mut self,
        call: &CallId,
        operation: PlanOperation,
        permit: Permit,
        plans: &mut Plans,
    ) -> Result<(), DriveError> {
        let Value::Object(arguments) = permit.into_arguments() else {
            return self
                .refuse(call, "the arguments are not a JSON object")
                .await;
        };
        match operation {
            PlanOperation::Create => self.make_plan(call, arguments, plans).await,
            PlanOperation::UpdateTask => self.mark_task(call, &arguments, plans).await,
            PlanOperation::Status => {
                let name = arguments.get("plan_id").and_then(Value::as_str);
                match self.run.plan_named(name).map(PlanState::to_json) {
                    Some(status) => self.end_call(call, CallEnd::Success(status).into()).await,
                    None => self.refuse(call, &no_plan_message(name)).await,
                }
            }
        }
    }

    async fn make_plan(
        &mut self,
        call: &CallId,
        arguments: Map<String, Value>,
        plans: &mut Plans,
    ) -> Result<(), DriveError> {
        // An earlier process may have created it.
        if self.run.plan(call).is_none() {
            let raw = serde_json::from_value::<RawPlan>(Value::Object(arguments));
            let plan = match raw.map(Plan::try_from) {
                Ok(Ok(plan)) => plan,
                Ok(Err(errors)) => return self.refuse(call, &invalid_plan_message(&errors)).await,
                Err(error) => return self.refuse(call, &error.to_string()).await,
            };
            let errors = self.run.check_plan(&plan);
            if !errors.is_empty() {
                return self
                    .refuse(call, &invalid_plan_message(&PlanErrors(errors)))
                    .await;
            }
            let event = Event::Planned {
                call: call.clone(),
                plan: Box::new(plan),
                at: self.driver.durable.now(),
            };
            // If this is lost in a crash, the same call creates the same plan again and finds its runs.
            self.record(event, Durability::Relaxed).await?;
        }
        plans.wait(call, call);
        Ok(())
    }

    async fn mark_task(
        &mut self,
        call: &CallId,
        arguments: &Map<String, Value>,
        plans: &mut Plans,
    ) -> Result<(), DriveError> {
        let text = |name: &str| arguments.get(name).and_then(Value::as_str);
        let Some(plan) = self.run.plan_named(text("plan_id")) else {
            return self.refuse(call, &no_plan_message(text("plan_id"))).await;
        };
        let id = plan.id().clone();
        let task = text("task_id").unwrap_or_default();
        let Some(status) = text("status").and_then(PlanTaskStatus::from_word) else {
            return self
                .refuse(call, "`status` is not a valid task status")
                .await;
        };
        // An earlier process may have marked it.
        let is_marked = plan.task(task).is_some_and(|(_, state)| {
            state.status == status && state.result.as_ref() == arguments.get("result")
        });
        if !is_marked {
            if let Err(why) = plan.check_mark(task, status) {
                return self.refuse(call, &why).await;
            }
            let Ok(task) = PlanTaskId::new(task) else {
                return self.refuse(call, "`task_id` is not a valid task id").await;
            };
            let event = Event::TaskMarked {
                plan: id.clone(),
                task,
                status,
                result: arguments.get("result").cloned(),
                // Unknown counts as tainted.
                tainted: self.run.is_tainted_at(call).unwrap_or(true),
                by: None,
                at: self.driver.durable.now(),
            };
            self.record(event, Durability::Relaxed).await?;
        }
        plans.wait(&id, call);
        Ok(())
    }

    async fn refuse(&mut self, call: &CallId, why: &str) -> Result<(), DriveError> {
        let failure = Failure::new(ErrorCategory::InvalidArguments, Effect::None, why);
        self.end_call(call, CallEnd::Error(failure).into()).await
    }

    /// Starts the tasks that are ready, and ends the calls that wait for a plan of which no task can
    /// continue without help. Returns `Some` if calls stay running because the run is to be suspended, with
    /// whether that is because of a person.
    pub(super) async fn advance_plans(
        &mut self,
        plans: &mut Plans,
        running: &mut Running<'d>,
        cancel: &CancellationToken,
    ) -> Result<Option<bool>, DriveError> {
        let mut suspended: Option<bool> = None;
        if !plans.calls.is_empty()
            && let Some(stop) = self.stop_covering(None).await?
        {
            self.note_stop(stop);
        }
        let is_stopping =
            self.driver.stop.after_step.is_cancelled() || self.run.stopped().is_some();
        for plan in plans.calls.keys().cloned().collect::<Vec<_>>() {
            let is_over = self.run.end().is_some() || cancel.is_cancelled();
            if !is_stopping && !is_over {
                self.begin_tasks(&plan, plans, running, cancel).await?;
            }
            if plans.driven.iter().any(|(of, _)| *of == plan) {
                continue;
            }
            let waiting = plans.suspended.iter().filter(|((of, _), _)| *of == plan);
            let waiting: Vec<bool> = waiting.map(|(_, &for_person)| for_person).collect();
            let Some(state) = self.run.plan(&plan) else {
                continue;
            };
            let suspend = if is_over {
                None
            } else if !waiting.is_empty() {
                Some(waiting.contains(&true))
            } else if is_stopping && !state.is_over() {
                Some(false)
            } else if self.run.waits_for_calls(state) {
                // The run that holds these calls is suspended, too.
                Some(false)
            } else {
                // Without a model, only a person can do the manual tasks.
                let waits = state.manual_tasks().next().is_some() && self.run.task().call.is_some();
                waits.then_some(true)
            };
            if let Some(for_person) = suspend {
                *suspended.get_or_insert(false) |= for_person;
                continue;
            }
            let status = state.to_json();
            for call in plans.calls.remove(&plan).unwrap_or_default() {
                let end = match is_over {
                    false => CallEnd::Success(status.clone()),
                    true => CallEnd::Cancelled(Failure::new(
                        ErrorCategory::Cancelled,
                        Effect::Unknown,
                        "the plan was cancelled",
                    )),
                };
                self.end_call(&call, end.into()).await?;
            }
        }
        Ok(suspended)
    }

    async fn begin_tasks(
        &mut self,
        id: &CallId,
        plans: &mut Plans,
        running: &mut Running<'d>,
        cancel: &CancellationToken,
    ) -> Result<(), DriveError> {
        // Tasks that an earlier process started.
        let under_way = self.run.plan(id).into_iter();
        let under_way = under_way.flat_map(PlanState::in_progress);
        let under_way = under_way.map(|(task, attempt)| (task.clone(), attempt));
        for (task, attempt) in under_way.collect::<Vec<_>>() {
            let key = (id.clone(), task.clone());
            if !plans.driven.contains(&key) && !plans.suspended.contains_key(&key) {
                self.begin_task(id, &task, attempt, plans, running, cancel)
                    .await?;
            }
        }
        // If a task cannot start, others may become ready or replace it.
        while let Some(plan) = self.run.plan(id)
            && let Some(task) = self.run.next_task(plan)
        {
            let attempts = plan
                .task(task.as_str())
                .map_or(0, |(_, state)| state.attempts);
            let event = Event::TaskStarted {
                plan: id.clone(),
                task: task.clone(),
                attempt: attempts + 1,
                at: self.driver.durable.now(),
            };
            // If this is lost in a crash, the task is started again and finds its run.
            self.record(event, Durability::Relaxed).await?;
            self.begin_task(id, &task, attempts + 1, plans, running, cancel)
                .await?;
        }
        Ok(())
    }

    async fn begin_task(
        &mut self,
        id: &CallId,
        task: &PlanTaskId,
        attempt: u32,
        plans: &mut Plans,
        running: &mut Running<'d>,
        cancel: &CancellationToken,
    ) -> Result<(), DriveError> {
        let holds = self.run.permissions(self.journal.who(), &self.rules);
        let now = self.driver.durable.now();
        let Some(plan) = self.run.plan(id) else {
            return Ok(());
        };
        let Some((declared, _)) = plan.task(task.as_str()) else {
            return Ok(());
        };
        let first = match self.run.task_run(plan, declared, attempt, holds, now) {
            Ok(first) => first,
            Err(failure) => {
                let end = TaskEnd::not_begun(failure);
                return self
                    .end_task(id, task, attempt, end, Spent::default())
                    .await;
            }
        };
        let stop = Stop {
            after_step: self.driver.stop.after_step.clone(),
            at_once: cancel.clone(),
        };
        let driver = self.driver.clone().stopped_by(stop);
        let mut driver = driver.working_for(&self.run);
        driver.irreversible_lock = Some(Arc::clone(&plans.irreversible_lock));
        plans.driven.insert((id.clone(), task.clone()));
        let item = WorkItem::Task(id.clone(), task.clone(), attempt);
        running.push(drive_task(item, driver, first));
        Ok(())
    }

    /// Takes the outcome of a task that was driven here.
    pub(super) async fn take_task(
        &mut self,
        (plan, task, attempt): (CallId, PlanTaskId, u32),
        outcome: CallOutcome,
        plans: &mut Plans,
    ) -> Result<(), DriveError> {
        plans.driven.remove(&(plan.clone(), task.clone()));
        match outcome {
            CallOutcome::TaskEnded(end, spent) => {
                self.end_task(&plan, &task, attempt, *end, spent).await?;
            }
            CallOutcome::Suspended { for_person, stop } => {
                plans.suspended.insert((plan, task), for_person);
                if let Some(stop) = stop {
                    self.note_stop(*stop);
                }
            }
            CallOutcome::Ended(_) | CallOutcome::NeedsAnswer(..) => {}
        }
        Ok(())
    }

    async fn end_task(
        &mut self,
        plan: &CallId,
        task: &PlanTaskId,
        attempt: u32,
        end: TaskEnd,
        spent: Spent,
    ) -> Result<(), DriveError> {
        let event = Event::TaskEnded {
            plan: plan.clone(),
            task: task.clone(),
            attempt,
            end,
            usage: spent.usage,
            calls: spent.calls,
            at: self.driver.durable.now(),
        };
        self.record(event, Durability::Relaxed).await
    }

    /// Takes the commands that change plans of this run.
    pub(super) async fn take_plan_commands(&mut self) -> Result<(), DriveError> {
        if self.run.plans().is_empty() || self.run.end().is_some() {
            return Ok(());
        }
        for command in self.journal.inbox().await? {
            let action = &command.action;
            if matches!(
                action,
                InboxAction::Mark { .. } | InboxAction::Replan { .. }
            ) {
                self.take(command).await?;
            }
        }
        Ok(())
    }
}

impl Plans {
    fn wait(&mut self, plan: &CallId, call: &CallId) {
        self.calls
            .entry(plan.clone())
            .or_default()
            .push(call.clone());
    }
}

/// Drives the run of a task.
fn drive_task(
    item: WorkItem,
    driver: Driver,
    first: Event,
) -> BoxFuture<'static, (WorkItem, Outcome)> {
    Box::pin(async move {
        let run = drive_child(driver, first).await;
        (item, run.map(|run| task_outcome(&run)))
    })
}

/// The outcome of a task, from the run that worked on it.
fn task_outcome(run: &Run) -> CallOutcome {
    let Some(end) = run.end() else {
        return suspended(run);
    };
    let tainted = run.is_tainted();
    let single = run.task().call.as_ref().and_then(|_| run.single_outcome());
    let end = match (end, single) {
        // The result of the single call, unchanged.
        (RunEnd::Completed, Some(Ok(result))) => TaskEnd::Success {
            result: result.clone(),
            tainted,
        },
        (RunEnd::Completed | RunEnd::Failed { .. }, Some(Err(failure))) => {
            TaskEnd::failed(run, failure)
        }
        (RunEnd::Completed, None) if run.task().call.is_some() => TaskEnd::not_begun(Failure::new(
            ErrorCategory::Internal,
            Effect::None,
            "the call was not made",
        )),
        _ => match end_of_child(run, end) {
            CallEnd::Success(result) => TaskEnd::Success { result, tainted },
            CallEnd::Cancelled(failure) => TaskEnd::Cancelled(failure),
            CallEnd::Error(failure) | CallEnd::Timeout(failure) | CallEnd::Unknown(failure) => {
                TaskEnd::failed(run, failure)
            }
        },
    };
    CallOutcome::TaskEnded(Box::new(end), Spent::by(run))
}

fn invalid_plan_message(errors: &PlanErrors) -> String {
    format!("the plan is not valid:\n{errors}")
}

fn no_plan_message(name: Option<&str>) -> String {
    match name {
        Some(name) => format!("there is no plan `{name}` in this run"),
        None => format!("there is no plan yet; create one with `{CREATE_EXECUTION_PLAN}`"),
    }
}
