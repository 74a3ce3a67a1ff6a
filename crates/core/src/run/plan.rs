//! Plans: tasks with dependencies, executed within a run. Each task that is a call or the work of an
//! agent is its own run, named after the plan and the task, so the process that resumes the parent finds
//! it. Its calls pass the gate like any other. This module folds the events of plans; `work.rs` starts
//! the runs of their tasks.

mod state;
mod work;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_spec::plan::PlanTaskId;
use windlass_spec::{CallId, Effect, ErrorCategory, Failure, RunId};

use super::Run;
use super::event::Event;
use super::outcome::FoldError;
use crate::catalog::CallKind;

pub use state::{PlanState, PlanTaskStatus, ReplanError, TaskState};
pub use windlass_spec::plan::{CREATE_EXECUTION_PLAN, GET_EXECUTION_STATUS, UPDATE_TASK_STATUS};

/// The prefix of task names in the ids of their runs.
pub(super) const TASK_OF_PLAN: &str = "task-";

/// How an attempt at a task ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskEnd {
    /// It succeeded.
    Success {
        /// The result.
        result: Value,
        /// Whether the result contains untrusted content.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        tainted: bool,
    },
    /// It failed.
    Error {
        /// Why.
        failure: Failure,
        /// Whether it may be tried again: it had no effect that must not happen twice, and another
        /// attempt may succeed.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        may_retry: bool,
    },
    /// It was stopped.
    Cancelled(Failure),
}

impl TaskEnd {
    /// The end of an attempt that failed before it made a call.
    #[must_use]
    pub fn not_begun(failure: Failure) -> Self {
        Self::Error {
            may_retry: failure.effect == Effect::None && !is_permanent(&failure),
            failure,
        }
    }

    /// The end of a failed attempt that this run worked for. It may be tried again if its calls may be
    /// repeated and the error is not permanent.
    #[must_use]
    pub fn failed(run: &Run, failure: Failure) -> Self {
        let mut made = run.calls().filter(|call| call.was_permitted());
        let may_be_repeated = made.all(|call| {
            // The calls of a sub-agent are in another run and not known here.
            run.kind(call.id()) != Some(CallKind::SubAgent) && run.may_be_repeated(call.id())
        });
        Self::Error {
            // Another attempt is another run, whose calls have other keys.
            may_retry: may_be_repeated
                && run.calls.interrupted().is_empty()
                && failure.effect != Effect::Applied
                && !is_permanent(&failure),
            failure,
        }
    }
}

/// Whether the error is permanent, so that another attempt cannot succeed.
fn is_permanent(failure: &Failure) -> bool {
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

/// The plans of a run, in the order in which they were made. A plan is named after the call that made
/// it.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Plans {
    plans: Vec<PlanState>,
}

impl Plans {
    pub(super) fn all(&self) -> &[PlanState] {
        &self.plans
    }

    pub(super) fn get(&self, id: &CallId) -> Option<&PlanState> {
        self.plans.iter().find(|plan| plan.id() == id)
    }

    /// The plan of that name; without a name, the latest.
    pub(super) fn named(&self, name: Option<&str>) -> Option<&PlanState> {
        match name {
            Some(name) => self.plans.iter().find(|plan| plan.id().to_string() == name),
            None => self.plans.last(),
        }
    }

    /// Whether calls are lent to the running run of a task.
    pub(super) fn has_lent(&self) -> bool {
        self.plans.iter().any(PlanState::has_lent)
    }

    /// The runs of tasks that are in progress.
    pub(super) fn task_runs(&self) -> impl Iterator<Item = RunId> {
        self.plans.iter().flat_map(|plan| {
            let in_progress = plan.in_progress();
            in_progress.filter_map(|(task, attempt)| task_run_id(plan.id(), task, attempt))
        })
    }

    /// The runs of all tasks that have started, one for each attempt.
    pub(super) fn all_task_runs(&self) -> impl Iterator<Item = RunId> {
        self.plans.iter().flat_map(|plan| {
            plan.tasks().flat_map(|(task, state)| {
                let attempts = 1..=state.attempts;
                attempts.filter_map(|attempt| task_run_id(plan.id(), &task.id, attempt))
            })
        })
    }

    /// Applies an event of a plan. `share` is the number of calls lent to the run of a task that starts.
    /// Returns how many calls were lent to the run of a task that ends.
    pub(super) fn apply(
        &mut self,
        event: &Event,
        share: Option<u32>,
    ) -> Result<Option<u32>, FoldError> {
        match event {
            Event::Planned { call, plan, at } => {
                if self.get(call).is_some() {
                    return Err(FoldError::NoPlan(call.clone()));
                }
                let plan = PlanState::new(call.clone(), (**plan).clone(), *at);
                self.plans.push(plan);
            }
            Event::Replanned { plan, tasks, .. } => {
                let known = self.plan_mut(plan)?;
                let replanned = known.replanned((**tasks).clone());
                *known = replanned.map_err(|error| FoldError::Replan(plan.clone(), error))?;
            }
            Event::TaskStarted {
                plan,
                task,
                attempt,
                at,
            } => {
                let calls = share.unwrap_or(0);
                self.plan_mut(plan)?.start(task, *attempt, calls, *at)?;
            }
            Event::TaskEnded {
                plan,
                task,
                attempt,
                end,
                at,
                ..
            } => return self.plan_mut(plan)?.end(task, *attempt, end, *at).map(Some),
            Event::TaskMarked {
                plan,
                task,
                status,
                result,
                tainted,
                at,
                ..
            } => {
                let plan = self.plan_mut(plan)?;
                plan.mark(task, *status, result.as_ref(), *tainted, *at)?;
            }
            _ => {}
        }
        Ok(None)
    }

    fn plan_mut(&mut self, id: &CallId) -> Result<&mut PlanState, FoldError> {
        let mut plans = self.plans.iter_mut();
        plans
            .find(|plan| plan.id() == id)
            .ok_or_else(|| FoldError::NoPlan(id.clone()))
    }
}

/// The id of the run of a task. It cannot equal the id of the run of a sub-agent.
fn task_run_id(plan: &CallId, task: &PlanTaskId, attempt: u32) -> Option<RunId> {
    let CallId { run, turn, index } = plan;
    RunId::new(format!(
        "{run}.{turn}.{index}.{TASK_OF_PLAN}{task}.{attempt}"
    ))
    .ok()
}

#[cfg(test)]
mod tests;
