//! Changes to a plan by people or by the model: the status of manual tasks, skipped tasks, and the tasks
//! that have not started.

use serde_json::Value;
use windlass_spec::Timestamp;
use windlass_spec::plan::{Plan, PlanTaskId, Work};

use super::{PlanState, PlanTaskStatus, TaskState};
use crate::run::outcome::FoldError;

/// Why a plan cannot be changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplanError {
    /// The plan has ended.
    #[error("the plan has ended")]
    Over,
    /// A task that has started cannot change.
    #[error("the task `{0}` has started and cannot be changed")]
    Begun(PlanTaskId),
}

impl PlanState {
    /// Sets the status of a manual task, or skips a task. The reported result may contain untrusted
    /// content.
    pub(in crate::run) fn mark(
        &mut self,
        task: &PlanTaskId,
        status: PlanTaskStatus,
        result: Option<&Value>,
        is_tainted: bool,
        at: Timestamp,
    ) -> Result<(), FoldError> {
        self.check_mark(task.as_str(), status)
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
            state.because = Some("it was skipped on request".to_owned());
        }
        self.settle(task, at);
        Ok(())
    }

    /// Checks that a task can get that status.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn check_mark(&self, task: &str, status: PlanTaskStatus) -> Result<(), String> {
        let Some((declared, state)) = self.task(task) else {
            let known = self.plan.tasks().iter().map(|task| task.id.as_str());
            let nearest = windlass_spec::nearest(task, known);
            let suggestion =
                nearest.map_or(String::new(), |name| format!("; did you mean `{name}`?"));
            return Err(format!("the plan has no task `{task}`{suggestion}"));
        };
        if state.status.is_settled() {
            let status = state.status.as_str();
            return Err(format!("the task `{task}` has ended with status {status}"));
        }
        if status == PlanTaskStatus::Skipped && state.status == PlanTaskStatus::Pending {
            return Ok(());
        }
        if declared.work != Work::Manual {
            return Err(format!(
                "the task `{task}` runs automatically; it can only be skipped, before it starts"
            ));
        }
        if !self.can_start(declared) {
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
                Err(format!("a manual task cannot become {status}"))
            }
        }
    }

    /// The plan with other tasks in place of those that have not started.
    ///
    /// # Errors
    /// If the plan has ended, or a task that has started would change.
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
        replanned.skip_unreachable(None);
        Ok(replanned)
    }
}
