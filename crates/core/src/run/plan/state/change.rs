//! What people, and whoever made a plan, may change about it: where tasks stand that are done by hand,
//! that a task is not to be done, and what the plan consists of as far as it has not begun.

use serde_json::Value;
use windlass_spec::Timestamp;
use windlass_spec::plan::{Plan, PlanTaskId, Work};

use super::{PlanState, PlanTaskStatus, TaskState};
use crate::run::outcome::FoldError;

/// Why a plan cannot be changed like that.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplanError {
    /// Nothing is left to change.
    #[error("the plan is over")]
    Over,
    /// What has begun stays as it is.
    #[error("the task `{0}` has begun; it has to stay as it is")]
    Begun(PlanTaskId),
}

impl PlanState {
    /// Whoever made the plan says where a task stands that they do themselves, or that a task is not to
    /// be done. What they say of it may come from what strangers wrote.
    pub(in crate::run) fn mark(
        &mut self,
        task: &PlanTaskId,
        status: PlanTaskStatus,
        result: Option<&Value>,
        is_tainted: bool,
        at: Timestamp,
    ) -> Result<(), FoldError> {
        self.may_mark(task.as_str(), status)
            .map_err(|_| FoldError::NotOfPlan(self.id.clone(), task.clone()))?;
        let Some(state) = self.tasks.get_mut(task) else {
            return Ok(());
        };
        state.status = status;
        state.tainted |= is_tainted;
        if status != PlanTaskStatus::Skipped {
            state.attempts = 1;
            state.started_at.get_or_insert(at);
        }
        if let Some(result) = result {
            state.result = Some(result.clone());
        }
        if status == PlanTaskStatus::Skipped {
            state.because = Some("it is not to be done".to_owned());
        }
        self.settle(task, at);
        Ok(())
    }

    /// Whether a task can be marked like that; what is in the way if not.
    ///
    /// # Errors
    /// What is in the way, for whoever wants to mark it.
    pub fn may_mark(&self, task: &str, status: PlanTaskStatus) -> Result<(), String> {
        let Some((declared, state)) = self.task(task) else {
            let known = self.plan.tasks().iter().map(|task| task.id.as_str());
            let meant = windlass_spec::nearest(task, known);
            let meant = meant.map_or(String::new(), |name| format!("; did you mean `{name}`?"));
            return Err(format!("the plan has no task `{task}`{meant}"));
        };
        if state.status.is_settled() {
            let status = state.status.as_str();
            return Err(format!("the task `{task}` is over: {status}"));
        }
        if status == PlanTaskStatus::Skipped && state.status == PlanTaskStatus::Pending {
            return Ok(());
        }
        if declared.work != Work::ByHand {
            return Err(format!(
                "the task `{task}` is carried out by itself; it can only be skipped, before it begins"
            ));
        }
        if !self.may_begin(declared) {
            let waits_for: Vec<&str> = declared
                .depends_on
                .iter()
                .map(PlanTaskId::as_str)
                .filter(|id| {
                    let before = self.task(id).map(|(_, state)| state.status);
                    before != Some(PlanTaskStatus::Success)
                })
                .collect();
            let waits_for = waits_for.join("`, `");
            return Err(format!("the task `{task}` still waits for `{waits_for}`"));
        }
        match status {
            PlanTaskStatus::InProgress | PlanTaskStatus::Success | PlanTaskStatus::Error => Ok(()),
            PlanTaskStatus::Skipped | PlanTaskStatus::Pending | PlanTaskStatus::Cancelled => {
                let status = status.as_str();
                Err(format!(
                    "a task that is done by hand cannot become {status}"
                ))
            }
        }
    }

    /// The plan with other tasks in the place of those that have not begun.
    ///
    /// # Errors
    /// If the plan is over, or a task that has begun would change.
    pub fn replanned(&self, plan: Plan) -> Result<Self, ReplanError> {
        if self.is_over() {
            return Err(ReplanError::Over);
        }
        for (task, state) in self.tasks() {
            let has_begun = state.attempts > 0 || state.status != PlanTaskStatus::Pending;
            if has_begun && plan.task(task.id.as_str()) != Some(task) {
                return Err(ReplanError::Begun(task.id.clone()));
            }
        }
        let tasks = plan.tasks().iter().map(|task| {
            let known = self.tasks.get(&task.id).cloned();
            (task.id.clone(), known.unwrap_or(TaskState::new()))
        });
        let mut replanned = Self {
            id: self.id.clone(),
            tasks: tasks.collect(),
            plan,
            stopped_by: self.stopped_by.clone(),
            made_at: self.made_at,
        };
        replanned.skip_what_cannot_be_done(None);
        Ok(replanned)
    }
}
