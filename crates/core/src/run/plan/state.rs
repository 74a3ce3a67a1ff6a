//! The state of a plan, folded from the events of its tasks.

mod change;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::{Value, json};
use windlass_spec::envelope::ExecutionMode;
use windlass_spec::plan::{OnFailure, Plan, PlanTask, PlanTaskId, Work};
use windlass_spec::{CallId, Failure, Timestamp};

use super::TaskEnd;
use crate::run::outcome::FoldError;

pub use change::ReplanError;

/// How many characters of an earlier result the agent of a dependent task is shown.
const MAX_RESULT_CHARS: usize = 8_000;

windlass_spec::word_set! {
    /// The status of a task.
    PlanTaskStatus, "status" {
        /// It has not started, or is to be tried again.
        Pending = "pending",
        /// It is in progress.
        InProgress = "in_progress",
        /// It succeeded.
        Success = "success",
        /// It failed permanently.
        Error = "error",
        /// It will not be done, because a task it depends on was not done.
        Skipped = "skipped",
        /// It was stopped.
        Cancelled = "cancelled",
    }
}

impl PlanTaskStatus {
    /// Parses a status, ignoring case; common synonyms are accepted.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        match word.trim().to_ascii_lowercase().as_str() {
            "completed" | "complete" | "done" => Some(Self::Success),
            "failed" | "failure" => Some(Self::Error),
            word => word.parse().ok(),
        }
    }

    /// Whether the status is final.
    #[must_use]
    pub const fn is_settled(self) -> bool {
        matches!(
            self,
            Self::Success | Self::Error | Self::Skipped | Self::Cancelled
        )
    }
}

/// The state of a task.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskState {
    /// Its status.
    pub status: PlanTaskStatus,
    /// How many attempts have started.
    pub attempts: u32,
    /// How many calls are lent to its run while it is in progress.
    pub calls: u32,
    /// When the first attempt started.
    pub started_at: Option<Timestamp>,
    /// When it was settled.
    pub ended_at: Option<Timestamp>,
    /// The result.
    pub result: Option<Value>,
    /// Whether the result contains untrusted content.
    pub tainted: bool,
    /// The last error.
    pub failure: Option<Failure>,
    /// Why it was skipped.
    pub because: Option<String>,
}

impl TaskState {
    const fn new() -> Self {
        Self {
            status: PlanTaskStatus::Pending,
            attempts: 0,
            calls: 0,
            started_at: None,
            ended_at: None,
            result: None,
            tainted: false,
            failure: None,
            because: None,
        }
    }
}

/// A plan and its progress.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanState {
    id: CallId,
    plan: Plan,
    tasks: BTreeMap<PlanTaskId, TaskState>,
    /// The task whose failure stopped the rest.
    stopped_by: Option<PlanTaskId>,
    made_at: Timestamp,
}

impl PlanState {
    pub(super) fn new(id: CallId, plan: Plan, made_at: Timestamp) -> Self {
        let tasks = plan.tasks().iter();
        Self {
            tasks: tasks
                .map(|task| (task.id.clone(), TaskState::new()))
                .collect(),
            id,
            plan,
            stopped_by: None,
            made_at,
        }
    }

    /// The id of the plan: the call that made it.
    #[must_use]
    pub fn id(&self) -> &CallId {
        &self.id
    }

    /// The plan itself.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// When it was made.
    #[must_use]
    pub fn made_at(&self) -> Timestamp {
        self.made_at
    }

    /// The tasks with their states, in the order in which they were written.
    pub fn tasks(&self) -> impl Iterator<Item = (&PlanTask, &TaskState)> {
        let tasks = self.plan.tasks().iter();
        tasks.filter_map(|task| Some((task, self.tasks.get(&task.id)?)))
    }

    /// A task and its state.
    #[must_use]
    pub fn task(&self, id: &str) -> Option<(&PlanTask, &TaskState)> {
        let task = self.plan.task(id)?;
        Some((task, self.tasks.get(&task.id)?))
    }

    /// The result of a task, if there is one.
    #[must_use]
    pub fn result(&self, id: &str) -> Option<&Value> {
        self.task(id)?.1.result.as_ref()
    }

    /// Whether every task has a final status.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.tasks.values().all(|task| task.status.is_settled())
    }

    /// The status of the plan as a whole.
    #[must_use]
    pub fn status(&self) -> PlanTaskStatus {
        let has = |status| self.tasks.values().any(|task| task.status == status);
        if !self.is_over() {
            let has_begun = self.tasks.values().any(|task| task.attempts > 0);
            return match has_begun {
                true => PlanTaskStatus::InProgress,
                false => PlanTaskStatus::Pending,
            };
        }
        if has(PlanTaskStatus::Cancelled) {
            PlanTaskStatus::Cancelled
        } else if has(PlanTaskStatus::Error) || has(PlanTaskStatus::Skipped) {
            PlanTaskStatus::Error
        } else {
            PlanTaskStatus::Success
        }
    }

    /// The tasks that are in progress in their own runs, each with its attempt.
    pub fn in_progress(&self) -> impl Iterator<Item = (&PlanTaskId, u32)> {
        self.tasks()
            .filter(|(task, state)| {
                state.status == PlanTaskStatus::InProgress && task.work != Work::Manual
            })
            .map(|(task, state)| (&task.id, state.attempts))
    }

    /// How many pending tasks may run at the same time as soon as they can start.
    pub(in crate::run) fn startable_count(&self) -> usize {
        let pending = self.tasks().filter(|(task, state)| {
            state.status == PlanTaskStatus::Pending && task.work != Work::Manual
        });
        let room = match self.plan.execution_mode() {
            ExecutionMode::Sequential => 1,
            ExecutionMode::Parallel => self.plan.max_parallel(),
        };
        let room = room.saturating_sub(self.in_progress().count());
        pending.count().min(room)
    }

    /// Whether calls are lent to the run of a task in progress.
    pub(in crate::run) fn has_lent(&self) -> bool {
        self.tasks.values().any(|task| task.calls > 0)
    }

    /// The tasks that can start now, at most as many as may run at the same time.
    #[must_use]
    pub fn startable_tasks(&self) -> Vec<&PlanTask> {
        let is_automatic = |task: &&PlanTask| task.work != Work::Manual;
        match self.plan.execution_mode() {
            ExecutionMode::Sequential => {
                let is_in_progress = |state: &TaskState| state.status == PlanTaskStatus::InProgress;
                match self.tasks.values().any(is_in_progress) {
                    true => Vec::new(),
                    false => self.ready().take(1).filter(is_automatic).collect(),
                }
            }
            // Manual tasks do not count toward the limit of parallel tasks.
            ExecutionMode::Parallel => {
                let room = self.plan.max_parallel();
                let room = room.saturating_sub(self.in_progress().count());
                self.ready().filter(is_automatic).take(room).collect()
            }
        }
    }

    /// The manual tasks that are in progress or can start now.
    pub fn manual_tasks(&self) -> impl Iterator<Item = &PlanTask> {
        let in_work = self.tasks().filter(|(task, state)| {
            task.work == Work::Manual && state.status == PlanTaskStatus::InProgress
        });
        let in_work = in_work.map(|(task, _)| task);
        let at_once = match self.plan.execution_mode() {
            ExecutionMode::Sequential => 1,
            ExecutionMode::Parallel => usize::MAX,
        };
        let ready = self.ready().take(at_once);
        in_work.chain(ready.filter(|task| task.work == Work::Manual))
    }

    /// The pending tasks whose dependencies have succeeded.
    fn ready(&self) -> impl Iterator<Item = &PlanTask> {
        self.tasks()
            .filter(|(task, state)| state.status == PlanTaskStatus::Pending && self.can_start(task))
            .map(|(task, _)| task)
    }

    fn can_start(&self, task: &PlanTask) -> bool {
        task.depends_on.iter().all(|id| {
            let before = self.tasks.get(id);
            before.is_some_and(|before| before.status == PlanTaskStatus::Success)
        })
    }

    /// Whether any result contains untrusted content.
    #[must_use]
    pub fn is_tainted(&self) -> bool {
        self.tasks.values().any(|task| task.tainted)
    }

    /// Whether a task depends on untrusted content, directly or not.
    pub(super) fn is_tainted_before(&self, task: &PlanTask) -> bool {
        let mut seen = BTreeSet::new();
        let mut open: Vec<&PlanTaskId> = task.depends_on.iter().collect();
        while let Some(id) = open.pop() {
            if !seen.insert(id) {
                continue;
            }
            if self.tasks.get(id).is_some_and(|task| task.tainted) {
                return true;
            }
            let before = self.plan.task(id.as_str());
            open.extend(before.into_iter().flat_map(|task| &task.depends_on));
        }
        false
    }

    /// Describes the results of the tasks that a task depends on, for its agent.
    pub(super) fn describe_dependencies(&self, task: &PlanTask) -> String {
        let mut text = String::new();
        for id in &task.depends_on {
            let Some((
                before,
                TaskState {
                    result: Some(result),
                    ..
                },
            )) = self.task(id.as_str())
            else {
                continue;
            };
            if text.is_empty() {
                text.push_str("\n\nResults of the tasks before this one:");
            }
            let result = match result {
                Value::String(content) => content.clone(),
                other => other.to_string(),
            };
            let cut = result.chars().count() > MAX_RESULT_CHARS;
            let shown: String = result.chars().take(MAX_RESULT_CHARS).collect();
            let rest = if cut { " ... (cut)" } else { "" };
            let _ = write!(text, "\n- {id} ({}): {shown}{rest}", before.description);
        }
        text
    }

    pub(in crate::run) fn start(
        &mut self,
        task: &PlanTaskId,
        attempt: u32,
        calls: u32,
        at: Timestamp,
    ) -> Result<(), FoldError> {
        let refused = || FoldError::NotOfPlan(self.id.clone(), task.clone());
        let (declared, state) = self.task(task.as_str()).ok_or_else(refused)?;
        let fits = state.status == PlanTaskStatus::Pending
            && state.attempts + 1 == attempt
            && declared.work != Work::Manual
            && self.can_start(declared);
        let state = self.tasks.get_mut(task).filter(|_| fits);
        let state = state.ok_or_else(|| FoldError::NotOfPlan(self.id.clone(), task.clone()))?;
        state.status = PlanTaskStatus::InProgress;
        state.attempts = attempt;
        state.calls = calls;
        state.started_at.get_or_insert(at);
        Ok(())
    }

    /// Ends an attempt. Returns how many calls were lent to its run.
    pub(in crate::run) fn end(
        &mut self,
        task: &PlanTaskId,
        attempt: u32,
        end: &TaskEnd,
        at: Timestamp,
    ) -> Result<u32, FoldError> {
        let retries = self.plan.task(task.as_str()).map_or(0, |task| task.retries);
        let state = self.tasks.get_mut(task).filter(|state| {
            state.status == PlanTaskStatus::InProgress && state.attempts == attempt
        });
        let state = state.ok_or_else(|| FoldError::NotOfPlan(self.id.clone(), task.clone()))?;
        let calls = std::mem::take(&mut state.calls);
        match end {
            TaskEnd::Success { result, tainted } => {
                state.status = PlanTaskStatus::Success;
                state.result = Some(result.clone());
                state.tainted = *tainted;
                state.failure = None;
            }
            TaskEnd::Error { failure, may_retry } => {
                state.failure = Some(failure.clone());
                state.status = match *may_retry && attempt <= retries {
                    true => PlanTaskStatus::Pending,
                    false => PlanTaskStatus::Error,
                };
            }
            TaskEnd::Cancelled(failure) => {
                state.failure = Some(failure.clone());
                state.status = PlanTaskStatus::Cancelled;
            }
        }
        self.settle(task, at);
        Ok(calls)
    }

    /// Applies the consequences of the new status of a task.
    fn settle(&mut self, task: &PlanTaskId, at: Timestamp) {
        let Some(state) = self.tasks.get_mut(task) else {
            return;
        };
        if !state.status.is_settled() {
            return;
        }
        state.ended_at = Some(at);
        let stops = match state.status {
            PlanTaskStatus::Error => {
                let declared = self.plan.task(task.as_str());
                declared.is_none_or(|task| task.on_failure == OnFailure::Stop)
            }
            PlanTaskStatus::Cancelled => true,
            _ => false,
        };
        if stops && self.stopped_by.is_none() {
            self.stopped_by = Some(task.clone());
        }
        self.skip_unreachable(Some(at));
    }

    /// Skips the pending tasks that depend, directly or not, on a task that was not done, or all of them
    /// if the plan stopped.
    fn skip_unreachable(&mut self, at: Option<Timestamp>) {
        loop {
            let unreachable = self.tasks().find_map(|(task, state)| {
                if state.status != PlanTaskStatus::Pending {
                    return None;
                }
                let before = task.depends_on.iter().find(|id| {
                    let before = self.tasks.get(*id).map(|before| before.status);
                    before.is_some_and(|before| {
                        before.is_settled() && before != PlanTaskStatus::Success
                    })
                });
                let because = match (before, &self.stopped_by) {
                    (Some(before), _) => format!("it depends on `{before}`, which was not done"),
                    (None, Some(stopped)) => format!("the plan stopped at `{stopped}`"),
                    (None, None) => return None,
                };
                Some((task.id.clone(), because))
            });
            let Some((task, because)) = unreachable else {
                return;
            };
            if let Some(state) = self.tasks.get_mut(&task) {
                state.status = PlanTaskStatus::Skipped;
                state.because = Some(because);
                state.ended_at = at;
            }
        }
    }

    /// The plan and the progress of its tasks as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let tasks: Vec<Value> = self
            .tasks()
            .map(|(task, state)| {
                let mut entry = json!({
                    "id": task.id,
                    "description": task.description,
                    "status": state.status,
                });
                match &task.work {
                    Work::Call { tool, .. } => entry["tool"] = json!(tool),
                    Work::Agent(agent) => entry["agent"] = json!(agent),
                    Work::Manual => entry["by_hand"] = json!(true),
                }
                if state.attempts > 1 {
                    entry["attempts"] = json!(state.attempts);
                }
                if let Some(result) = &state.result {
                    entry["result"] = result.clone();
                }
                if let Some(failure) = &state.failure {
                    entry["error"] = json!(failure.model_message);
                }
                if let Some(because) = &state.because {
                    entry["because"] = json!(because);
                }
                entry
            })
            .collect();
        json!({
            "plan_id": self.id.to_string(),
            "status": self.status(),
            "execution_mode": self.plan.execution_mode().as_str(),
            "tasks": tasks,
            "dependencies": self.plan.dependencies(),
        })
    }
}
