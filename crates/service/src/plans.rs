//! Execution plans: list and show them, mark manual tasks, and change the remaining tasks. A plan is
//! executed by a run, so resuming and cancelling are operations on runs.

use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use windlass_core::model::{RequestedArguments, RequestedCall};
use windlass_core::run::{
    CREATE_EXECUTION_PLAN, Event, PlanState, PlanTaskStatus, Run, Settings, Task,
};
use windlass_spec::plan::{Plan, PlanError, PlanErrors, PlanTaskId, RawPlan, RawPlanTask, Work};
use windlass_spec::{AgentName, CallId, RunId};
use windlass_store::{InboxCommandId, RunState, Store, StoredPlan};

use crate::assembly::{BoundAgent, NewRun};
use crate::error::ServiceError;
use crate::identity::{Identity, Scope};
use crate::options::Attachment;
use crate::service::Service;

/// How long to wait until the process that executes a plan takes a change.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(2);

/// A plan and the run that executes it.
#[derive(Debug, Clone)]
pub struct PlanDetails {
    /// The run.
    pub run: Run,
    /// The plan's id: that of the call that created it.
    pub plan: CallId,
}

impl PlanDetails {
    /// The state of the plan.
    #[must_use]
    pub fn state(&self) -> Option<&PlanState> {
        self.run.plan(&self.plan)
    }
}

/// Whether a change of a plan took effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanChange {
    /// It took effect: it was taken, or no process executes the plan.
    Made,
    /// No process has taken it yet.
    Pending,
}

impl NewRun {
    /// The run that executes a plan. Without a call limit in `settings`, it may make as many calls as the
    /// plan needs.
    ///
    /// # Errors
    /// If the plan cannot be serialized.
    pub fn of_plan(
        plan: &Plan,
        mut settings: Settings,
        has_call_limit: bool,
    ) -> Result<Self, ServiceError> {
        settings.plans = true;
        if !has_call_limit {
            settings.max_calls = settings.max_calls.max(calls_for(plan));
        }
        Ok(Self {
            run: None,
            conversation: None,
            task_id: None,
            task: Task {
                description: plan.goal().unwrap_or("Carry out a plan.").to_owned(),
                call: Some(Box::new(RequestedCall {
                    tool: CREATE_EXECUTION_PLAN.to_owned(),
                    arguments: RequestedArguments::Json(serde_json::to_value(plan)?),
                    confidence: None,
                })),
                ..Task::default()
            },
            settings,
        })
    }
}

/// Reads a plan from JSON. `place` is what the text is called in messages.
///
/// # Errors
/// Everything that is wrong with it.
pub fn read_plan(text: &str, place: &str) -> Result<Plan, ServiceError> {
    let written = WrittenPlan::read(text, place)?;
    if !written.mistakes.is_empty() {
        return Err(not_valid(place, written.mistakes, Vec::new()));
    }
    Plan::try_from(written.raw).map_err(|PlanErrors(errors)| not_valid(place, Vec::new(), errors))
}

/// A plan as far as its JSON can be read.
struct WrittenPlan {
    raw: RawPlan,
    /// What cannot be read.
    mistakes: Vec<String>,
}

impl WrittenPlan {
    fn read(text: &str, place: &str) -> Result<Self, ServiceError> {
        let error = match serde_json::from_str::<RawPlan>(text) {
            Ok(raw) => {
                return Ok(Self {
                    raw,
                    mistakes: Vec::new(),
                });
            }
            Err(error) => error,
        };
        let Ok(Value::Object(mut fields)) = serde_json::from_str::<Value>(text) else {
            let message = format!("{place} is not a plan: {error}");
            return Err(ServiceError::invalid("invalid_plan", message));
        };
        let mut written = Self {
            raw: RawPlan::default(),
            mistakes: Vec::new(),
        };
        if let Some(Value::Array(tasks)) = fields.get_mut("tasks").map(Value::take) {
            fields.remove("tasks");
            for (index, task) in tasks.into_iter().enumerate() {
                written.read_task(index, task);
            }
        }
        for (key, value) in fields {
            let alone = Value::Object(Map::from_iter([(key.clone(), value)]));
            match serde_json::from_value::<RawPlan>(alone) {
                Ok(read) => {
                    let raw = &mut written.raw;
                    raw.goal = raw.goal.take().or(read.goal);
                    raw.execution_mode = raw.execution_mode.take().or(read.execution_mode);
                    raw.max_parallel = raw.max_parallel.or(read.max_parallel);
                    raw.dependencies.extend(read.dependencies);
                }
                Err(error) => written.mistakes.push(format!("`{key}`: {error}")),
            }
        }
        if let [only] = written.mistakes.as_mut_slice() {
            // With its line and column.
            *only = error.to_string();
        }
        Ok(written)
    }

    /// Reads a task. One that cannot be read stays known by its id.
    fn read_task(&mut self, index: usize, task: Value) {
        let id = task.get("id").and_then(Value::as_str).map(str::to_owned);
        match serde_json::from_value(task) {
            Ok(task) => self.raw.tasks.push(task),
            Err(error) => {
                let name = id.as_ref().map(|id| format!(" (`{id}`)"));
                let name = name.unwrap_or_default();
                self.mistakes
                    .push(format!("task {}{name}: {error}", index + 1));
                self.raw.tasks.extend(id.map(|id| RawPlanTask {
                    id,
                    description: Some("-".to_owned()),
                    ..RawPlanTask::default()
                }));
            }
        }
    }
}

fn not_valid(place: &str, mut lines: Vec<String>, errors: Vec<PlanError>) -> ServiceError {
    lines.extend(errors.iter().map(ToString::to_string));
    let message = format!("{place} is not a valid plan\n{}", lines.join("\n"));
    ServiceError::invalid("invalid_plan", message)
}

impl BoundAgent {
    /// Reads a plan from JSON, and checks that the agent can execute it. `place` is what the text is called in
    /// messages.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn read_plan(&self, text: &str, place: &str) -> Result<Plan, ServiceError> {
        let written = WrittenPlan::read(text, place)?;
        let agent = self.agent();
        let tools = agent.tools().iter().map(AsRef::as_ref);
        let agents = [agent.name()].into_iter().chain(agent.agents());
        let agents: Vec<&str> = agents.map(AgentName::as_str).collect();
        let mut errors = written.raw.errors_with(tools, &agents);
        if written.raw.tasks.is_empty() && !written.mistakes.is_empty() {
            errors.clear();
        }
        match errors.is_empty() && written.mistakes.is_empty() {
            true => Plan::try_from(written.raw)
                .map_err(|PlanErrors(errors)| not_valid(place, Vec::new(), errors)),
            false => Err(not_valid(place, written.mistakes, errors)),
        }
    }

    /// Checks that the agent can execute a plan.
    ///
    /// # Errors
    /// Everything of it that the agent cannot do.
    pub fn check_plan(&self, plan: &Plan) -> Result<(), ServiceError> {
        let agent = self.agent();
        let tools = agent.tools().iter().map(AsRef::as_ref);
        let agents = [agent.name()].into_iter().chain(agent.agents());
        let agents: Vec<&str> = agents.map(AgentName::as_str).collect();
        match plan.check_work(tools, &agents) {
            errors if errors.is_empty() => Ok(()),
            errors => Err(not_executable(errors)),
        }
    }

    /// Checks a plan and executes it until it ends, waits for a person, or is stopped. Without a call limit,
    /// it may make as many calls as it needs.
    ///
    /// # Errors
    /// If the identity may not run agents, the agent cannot execute the plan, or the journal cannot be
    /// written.
    pub async fn start_plan(
        &self,
        identity: &Identity,
        plan: &Plan,
        settings: Settings,
        has_call_limit: bool,
        attachment: Attachment,
    ) -> Result<Run, ServiceError> {
        self.check_plan(plan)?;
        let new = NewRun::of_plan(plan, settings, has_call_limit)?;
        self.start(identity, new, attachment).await
    }
}

fn not_executable(errors: Vec<PlanError>) -> ServiceError {
    let message = format!("the plan is not valid\n{}", PlanErrors(errors));
    ServiceError::invalid("invalid_plan", message)
}

/// The number of calls that a plan may take, with every attempt and the call that creates it. A task of an
/// agent counts as the default limit of a run.
fn calls_for(plan: &Plan) -> u32 {
    let of_tasks = plan.tasks().iter().map(|task| {
        let calls = match &task.work {
            Work::Call { .. } => 1,
            Work::Agent(_) => Settings::default().max_calls,
            Work::Manual => 0,
        };
        calls.saturating_mul(task.retries.saturating_add(1))
    });
    of_tasks.fold(1, u32::saturating_add)
}

impl Service {
    /// The plans of the identity's tenant, the latest first. For the next page, `after` is the id of the last
    /// plan of the page.
    ///
    /// # Errors
    /// If the identity may not read.
    pub fn list_plans(
        &self,
        identity: &Identity,
        limit: u32,
        after: Option<&CallId>,
    ) -> Result<Vec<StoredPlan>, ServiceError> {
        identity.require(Scope::Read)?;
        let tenant = identity.tenant().as_str();
        Ok(self.store()?.plans(tenant, limit, after)?)
    }

    /// The plan with an id: of the plan, or of its run.
    ///
    /// # Errors
    /// If the identity may not read, or there is no such plan.
    pub fn show_plan(&self, identity: &Identity, id: &str) -> Result<PlanDetails, ServiceError> {
        let (run, call) = match id.parse::<CallId>() {
            Ok(call) => (call.run.to_string(), Some(call)),
            Err(_) => (id.to_owned(), None),
        };
        let run = self.run(identity, &run)?;
        let plan = match &call {
            Some(call) => run
                .plans()
                .iter()
                .find(|plan| (plan.id().turn, plan.id().index) == (call.turn, call.index)),
            None => run.plans().last(),
        };
        match plan.map(|plan| plan.id().clone()) {
            Some(plan) => Ok(PlanDetails { run, plan }),
            None => {
                let message = format!("there is no plan `{id}`");
                Err(ServiceError::not_found("no_such_plan", message)
                    .with_hint("`windlass plan list` lists the plans"))
            }
        }
    }

    /// Marks a task of a plan. Waits a moment until the process that executes the plan takes the change.
    ///
    /// # Errors
    /// If the identity may not operate, there is no such task, it cannot be marked so, or it is too late.
    pub fn mark_plan_task(
        &self,
        identity: &Identity,
        details: &PlanDetails,
        task: &str,
        status: PlanTaskStatus,
        result: Option<Value>,
    ) -> Result<PlanChange, ServiceError> {
        identity.require(Scope::Operate)?;
        let plan = details.state().ok_or_else(|| {
            ServiceError::not_found("no_such_plan", "the run no longer has this plan")
        })?;
        if plan.task(task).is_none() {
            let known = plan.plan().tasks().iter().map(|task| task.id.as_str());
            let known: Vec<&str> = known.collect();
            let message = format!("the plan has no task `{task}`");
            return Err(ServiceError::not_found("no_such_task", message)
                .with_hint(format!("its tasks: {}", known.join(", "))));
        }
        plan.check_mark(task, status)
            .map_err(|why| ServiceError::conflict("cannot_be_marked", why))?;
        let id = PlanTaskId::new(task)
            .map_err(|error| ServiceError::invalid("no_such_task", error.to_string()))?;
        let (store, person) = (self.store()?, identity.person());
        let command = store.mark_task(&details.plan, (&id, status), result, person, self.now())?;
        wait_until_taken(&store, details.run.id(), command)?.ok_or_else(|| {
            let status = status.as_str();
            let why = format!("`{task}` was not marked {status}: the plan had already advanced");
            ServiceError::conflict("too_late", why)
        })
    }

    /// Changes the remaining tasks of a plan. Waits a moment until the process that executes it takes the
    /// change.
    ///
    /// # Errors
    /// If the identity may not operate, the new plan is not valid, or it is too late.
    pub fn edit_plan(
        &self,
        identity: &Identity,
        details: &PlanDetails,
        new: &Plan,
    ) -> Result<PlanChange, ServiceError> {
        identity.require(Scope::Operate)?;
        let run = &details.run;
        let wrong = run.check_plan(new);
        if !wrong.is_empty() {
            return Err(not_executable(wrong));
        }
        let event = Event::Replanned {
            plan: details.plan.clone(),
            tasks: Box::new(new.clone()),
            by: identity.principal().clone(),
            at: self.now(),
        };
        let fits = run.clone().apply(&event);
        fits.map_err(|error| ServiceError::conflict("cannot_be_changed", error.to_string()))?;
        let store = self.store()?;
        let command = store.replan(&details.plan, new, identity.person(), self.now())?;
        wait_until_taken(&store, run.id(), command)?.ok_or_else(|| {
            let why = "the plan was not changed: it had already advanced";
            ServiceError::conflict("too_late", why)
        })
    }
}

/// Waits a moment until the process that drives the run takes a command; it reads its inbox at least four
/// times a second. `None` if the command no longer fitted, or the run was over before.
fn wait_until_taken(
    store: &Store,
    run: &RunId,
    command: InboxCommandId,
) -> Result<Option<PlanChange>, ServiceError> {
    let deadline = Instant::now() + CHANGE_TIMEOUT;
    loop {
        let state = store.summary(run)?.state;
        if let Some(seq) = store.taken(command)? {
            let events = store.events(run)?;
            let fitted = events.iter().any(|(number, event)| {
                *number == seq && !matches!(event, Event::TimePassed { .. })
            });
            return Ok(fitted.then_some(PlanChange::Made));
        }
        match state {
            RunState::Waiting => return Ok(Some(PlanChange::Made)),
            RunState::Ended => return Ok(None),
            RunState::Open if Instant::now() >= deadline => return Ok(Some(PlanChange::Pending)),
            RunState::Open => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}
