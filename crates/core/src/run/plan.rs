//! Plans: tasks that wait for each other, carried out within a run. Each task that is a call or the work
//! of an agent is a run of its own, named after the plan and the task, so whoever takes the run up again
//! finds it; its call passes the gate like any other. What is here is the fold of what happened to a plan,
//! and what can begin next.

mod state;
mod tools;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use windlass_spec::plan::{Plan, PlanTask, PlanTaskId, Work};
use windlass_spec::registry::Permission;
use windlass_spec::{
    AgentName, CallId, CallState, Confidence, Effect, ErrorCategory, Failure, RunId, Timestamp,
};

use super::event::{Event, Task};
use super::outcome::FoldError;
use super::settings::Settings;
use super::state::Run;
use crate::model::{RequestedArguments, RequestedCall};

pub use state::{PlanState, PlanTaskStatus, ReplanError, TaskState};
pub(crate) use tools::plan_tools;
pub use windlass_spec::plan::{CREATE_EXECUTION_PLAN, GET_EXECUTION_STATUS, UPDATE_TASK_STATUS};

/// What the names of tasks begin with in the names of their runs.
pub(super) const TASK_OF_PLAN: &str = "task-";

/// How an attempt at a task ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskEnd {
    /// It is done.
    Success {
        /// What came of it.
        result: Value,
        /// Whether what came of it was written by strangers, in part or whole.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        tainted: bool,
    },
    /// It failed.
    Error {
        /// Why.
        failure: Failure,
        /// Whether it may be tried again: nothing came of it that must not come twice, and another try
        /// may succeed.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        may_retry: bool,
    },
    /// It was stopped.
    Cancelled(Failure),
}

impl TaskEnd {
    /// The end of an attempt that came to nothing before it made a call.
    #[must_use]
    pub fn not_begun(failure: Failure) -> Self {
        Self::Error {
            may_retry: failure.effect == Effect::None && !is_final(&failure),
            failure,
        }
    }

    /// The end of an attempt that failed, and whose work was this run. It may be tried again if what it did
    /// may be done twice and what went wrong is not bound to go wrong again.
    #[must_use]
    pub fn failed(run: &Run, failure: Failure) -> Self {
        let mut made = run.calls().filter(|call| call.was_permitted());
        let may_be_repeated = made.all(|call| {
            // What a sub-agent did is in a run of its own, and not known here.
            !run.is_sub_agent(call.tool_name().as_str()) && run.may_be_repeated(call.id())
        });
        Self::Error {
            may_retry: may_be_repeated && failure.effect != Effect::Applied && !is_final(&failure),
            failure,
        }
    }
}

/// Whether what went wrong is bound to go wrong again.
fn is_final(failure: &Failure) -> bool {
    matches!(
        failure.category,
        ErrorCategory::UnknownTool
            | ErrorCategory::InvalidArguments
            | ErrorCategory::PermissionDenied
            | ErrorCategory::Rejected
            | ErrorCategory::Expired
            | ErrorCategory::Authentication
            | ErrorCategory::BudgetExceeded
            | ErrorCategory::Cancelled
    )
}

impl Run {
    /// The plans that were made in this run, in order. A plan is called after the call that made it.
    #[must_use]
    pub fn plans(&self) -> &[PlanState] {
        &self.plans
    }

    /// The plan of that name.
    #[must_use]
    pub fn plan(&self, id: &CallId) -> Option<&PlanState> {
        self.plans.iter().find(|plan| plan.id() == id)
    }

    /// The plan that a call of a plan tool is about: the one it names, else the latest.
    #[must_use]
    pub fn plan_named(&self, name: Option<&str>) -> Option<&PlanState> {
        match name {
            Some(name) => self.plans.iter().find(|plan| plan.id().to_string() == name),
            None => self.plans.last(),
        }
    }

    /// What is wrong with a plan that this run would carry out.
    #[must_use]
    pub fn check_plan(&self, plan: &Plan) -> Vec<windlass_spec::plan::PlanError> {
        let tools = self.allowed_tools().map(AsRef::as_ref);
        let tools = tools.filter(|tool| !self.is_sub_agent(tool.name().as_str()));
        let agents: Vec<&str> = self.plan_agents().map(AgentName::as_str).collect();
        plan.check_work(tools, &agents)
    }

    /// The agents that tasks of a plan can be handed to.
    fn plan_agents(&self) -> impl Iterator<Item = &AgentName> {
        [self.agent.name()].into_iter().chain(self.agent.agents())
    }

    pub(super) fn take_plan(
        &mut self,
        call: &CallId,
        plan: &Plan,
        at: Timestamp,
    ) -> Result<(), FoldError> {
        let (record, _) = self.call(call)?;
        let is_making = record.tool_name().as_str() == CREATE_EXECUTION_PLAN
            && self.is_planning(CREATE_EXECUTION_PLAN)
            && record.state() == CallState::Running;
        if !is_making || self.plan(call).is_some() {
            return Err(FoldError::NoPlan(call.clone()));
        }
        self.plans
            .push(PlanState::new(call.clone(), plan.clone(), at));
        Ok(())
    }

    pub(super) fn plan_mut(&mut self, id: &CallId) -> Result<&mut PlanState, FoldError> {
        let mut plans = self.plans.iter_mut();
        plans
            .find(|plan| plan.id() == id)
            .ok_or_else(|| FoldError::NoPlan(id.clone()))
    }

    /// The first event of the run that works for a task of a plan, which may hold at most `holds`.
    ///
    /// # Errors
    /// Why the task cannot begin: no call is left for it, what it takes from an earlier task is not
    /// there, or its run could have no name.
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
                "plans and agents hand work to each other too often".to_owned(),
            )
        })?;
        let calls = plan
            .task(task.id.as_str())
            .map_or(0, |(_, state)| state.calls);
        if calls == 0 {
            let message = format!(
                "the run has made all of its {} calls; none is left for this task",
                self.settings.max_calls
            );
            return Err(failed(ErrorCategory::BudgetExceeded, message));
        }
        let mut settings = Settings {
            // A plan within a plan would have no end that anybody can see.
            plans: false,
            ..self.rest_of_settings(calls, at)
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
                // Sub-agents are no tools here.
                settings.ask_people = false;
                work.call = Some(Box::new(RequestedCall {
                    tool: tool.to_string(),
                    arguments: RequestedArguments::Json(Value::Object(arguments)),
                    confidence: confidence.map(Confidence::get),
                }));
                &self.agent
            }
            Work::Agent(name) => {
                work.description.push_str(&plan.told_before(task));
                let mut agents = [&self.agent].into_iter().chain(&self.agents);
                let found = agents.find(|agent| agent.name() == name);
                found.ok_or_else(|| {
                    let message = format!("there is no agent `{name}`");
                    failed(ErrorCategory::NotFound, message)
                })?
            }
            Work::ByHand => {
                let message = format!("nobody does `{}` but who made the plan", task.id);
                return Err(failed(ErrorCategory::Internal, message));
            }
        };
        Ok(Event::Started {
            run,
            agent: Box::new(agent.clone()),
            agents: self.agents.clone(),
            assembly: self.assembly.clone(),
            parent: Some(plan.id().clone()),
            holds: Some(holds),
            task: work,
            settings,
            at,
        })
    }

    /// The runs of tasks that are under way.
    pub fn task_runs(&self) -> impl Iterator<Item = RunId> {
        self.plans.iter().flat_map(|plan| {
            let under_way = plan.under_way();
            under_way.filter_map(|(task, attempt)| task_run_id(plan.id(), task, attempt))
        })
    }

    /// The runs of all tasks that were begun, one for each attempt.
    pub fn all_task_runs(&self) -> impl Iterator<Item = RunId> {
        self.plans.iter().flat_map(|plan| {
            plan.tasks().flat_map(|(task, state)| {
                let attempts = 1..=state.attempts;
                attempts.filter_map(|attempt| task_run_id(plan.id(), &task.id, attempt))
            })
        })
    }

    /// Whether a plan call brought in what was written by strangers.
    pub(super) fn brought_in(&self, call: &CallId) -> bool {
        let about = self.call(call).ok().and_then(|(record, _)| {
            let arguments: &Map<String, Value> = record.arguments();
            let name = arguments.get("plan_id").and_then(Value::as_str);
            self.is_planning(record.tool_name().as_str())
                .then(|| self.plan(call).or_else(|| self.plan_named(name)))
        });
        about.flatten().is_some_and(PlanState::is_tainted)
    }
}

/// The name of the run that works for a task. No name of a call's run looks like it.
fn task_run_id(plan: &CallId, task: &PlanTaskId, attempt: u32) -> Option<RunId> {
    let CallId { run, turn, index } = plan;
    RunId::new(format!(
        "{run}.{turn}.{index}.{TASK_OF_PLAN}{task}.{attempt}"
    ))
    .ok()
}

#[cfg(test)]
mod tests;
