//! The work of plans: the checks before a plan is executed, which task starts next, and the runs of
//! tasks.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_spec::plan::{Plan, PlanTask, PlanTaskId, Work};
use windlass_spec::registry::Permission;
use windlass_spec::{
    AgentName, CallId, Confidence, Effect, ErrorCategory, Failure, RunId, Timestamp,
};

use super::{PlanState, task_run_id};
use crate::catalog::CallKind;
use crate::model::{RequestedArguments, RequestedCall};
use crate::run::Run;
use crate::run::allowance::share;
use crate::run::event::{Event, Task};
use crate::run::settings::Settings;

impl Run {
    /// The plans that were made in this run, in order. A plan is named after the call that made it.
    #[must_use]
    pub fn plans(&self) -> &[PlanState] {
        self.plans.all()
    }

    /// The plan of that name.
    #[must_use]
    pub fn plan(&self, id: &CallId) -> Option<&PlanState> {
        self.plans.get(id)
    }

    /// The plan that a call of a plan tool refers to: the named one, or the latest.
    #[must_use]
    pub fn plan_named(&self, name: Option<&str>) -> Option<&PlanState> {
        self.plans.named(name)
    }

    /// The errors in a plan that this run would execute.
    #[must_use]
    pub fn check_plan(&self, plan: &Plan) -> Vec<windlass_spec::plan::PlanError> {
        let allowed = self.toolbox.allowed();
        let tools = allowed.filter(|(kind, _)| *kind == CallKind::Tool);
        let agent = self.toolbox.agent();
        let agents = [agent.name()].into_iter().chain(agent.agents());
        let agents: Vec<&str> = agents.map(AgentName::as_str).collect();
        plan.check_work(tools.map(|(_, tool)| tool.as_ref()), &agents)
    }

    /// The number of calls to lend to the run of a task that is about to start: one if the task is a
    /// single call, otherwise an equal share among the tasks that may run at the same time.
    pub(in crate::run) fn share_of_task(&self, plan: &CallId, task: &PlanTaskId) -> u32 {
        let Some(plan) = self.plan(plan) else {
            return 0;
        };
        let left = self.calls_left();
        match plan.task(task.as_str()).map(|(task, _)| &task.work) {
            Some(Work::Call { .. }) => left.min(1),
            Some(Work::Agent(_)) => share(left, plan.startable_count()),
            Some(Work::Manual) | None => 0,
        }
    }

    /// The task of a plan to start next. While no calls are left, it waits for lent calls to be
    /// returned. If none can be returned, it starts and fails.
    #[must_use]
    pub fn next_task(&self, plan: &PlanState) -> Option<PlanTaskId> {
        let next = plan.startable_tasks().first().map(|task| task.id.clone());
        let has_lent = || self.allowance.has_lent() || self.plans.has_lent();
        next.filter(|_| self.calls_left() > 0 || !has_lent())
    }

    /// Whether tasks of a plan wait for lent calls to be returned.
    #[must_use]
    pub fn waits_for_calls(&self, plan: &PlanState) -> bool {
        !plan.startable_tasks().is_empty() && self.next_task(plan).is_none()
    }

    /// The first event of the run of a task, which may hold at most the permissions `holds`.
    ///
    /// # Errors
    /// Why the task cannot start: no call is left for it, the result it uses is missing, or its run
    /// cannot have an id.
    pub fn task_run(
        &self,
        plan: &PlanState,
        task: &PlanTask,
        attempt: u32,
        holds: BTreeSet<Permission>,
        at: Timestamp,
    ) -> Result<Event, Failure> {
        let failed = |category, message: String| Failure::new(category, Effect::None, message);
        let run = task_run_id(plan.id(), &task.id, attempt).ok_or_else(|| {
            failed(
                ErrorCategory::Internal,
                "plans and agents are nested too deeply".to_owned(),
            )
        })?;
        let calls = plan
            .task(task.id.as_str())
            .map_or(0, |(_, state)| state.calls);
        if calls == 0 {
            let message = format!(
                "the run has used all of its {} calls; none is left for this task",
                self.settings().max_calls
            );
            return Err(failed(ErrorCategory::BudgetExceeded, message));
        }
        let mut settings = Settings {
            // Plans do not nest, so that their size is bounded.
            plans: false,
            ..self.allowance.remaining_limits(calls, at)
        };
        let mut work = Task {
            description: task.description.to_string(),
            available_tools: self.task.available_tools.clone(),
            tainted: self.is_tainted_at(plan.id()).unwrap_or(true) || plan.is_tainted_before(task),
            ..Task::default()
        };
        let agent = match &task.work {
            Work::Call {
                tool, confidence, ..
            } => {
                let arguments = task
                    .arguments_with(|name| plan.result(name))
                    .map_err(|why| failed(ErrorCategory::InvalidArguments, why))?;
                // Such a run offers no tools for questions.
                settings.ask_people = false;
                work.call = Some(Box::new(RequestedCall {
                    tool: tool.to_string(),
                    arguments: RequestedArguments::Json(Value::Object(arguments)),
                    confidence: confidence.map(Confidence::get),
                }));
                self.toolbox.agent()
            }
            Work::Agent(name) => {
                work.description.push_str(&plan.describe_dependencies(task));
                let found = self.toolbox.agent_named(name.as_str());
                found.ok_or_else(|| {
                    let message = format!("there is no agent `{name}`");
                    failed(ErrorCategory::NotFound, message)
                })?
            }
            Work::Manual => {
                let message = format!("`{}` is a manual task and has no run", task.id);
                return Err(failed(ErrorCategory::Internal, message));
            }
        };
        Ok(Event::Started {
            run,
            agent: Box::new(agent.clone()),
            agents: self.agents().to_vec(),
            assembly: self.assembly.clone(),
            parent: Some(plan.id().clone()),
            holds: Some(holds),
            task: work,
            settings,
            at,
        })
    }

    /// The runs of tasks that are in progress.
    pub fn task_runs(&self) -> impl Iterator<Item = RunId> {
        self.plans.task_runs()
    }

    /// The runs of all tasks that have started, one for each attempt.
    pub fn all_task_runs(&self) -> impl Iterator<Item = RunId> {
        self.plans.all_task_runs()
    }
}
