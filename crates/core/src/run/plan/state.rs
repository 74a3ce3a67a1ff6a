//! How far a plan is: the fold of what happened to its tasks.

mod change;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass_spec::envelope::ExecutionMode;
use windlass_spec::plan::{OnFailure, Plan, PlanTask, PlanTaskId, Work};
use windlass_spec::{CallId, Failure, Timestamp};

use super::TaskEnd;
use crate::run::outcome::FoldError;

pub use change::ReplanError;

/// How much of what came of a task an agent is told that goes on from there.
const LONGEST_TOLD: usize = 8_000;

/// Where a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanTaskStatus {
    /// It has not begun, or is to be tried again.
    Pending,
    /// It is under way.
    InProgress,
    /// It is done.
    Success,
    /// It failed for good.
    Error,
    /// It will not be done, because something before it was not.
    Skipped,
    /// It was stopped.
    Cancelled,
}

impl PlanTaskStatus {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Pending,
        Self::InProgress,
        Self::Success,
        Self::Error,
        Self::Skipped,
        Self::Cancelled,
    ];

    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Success => "success",
            Self::Error => "error",
            Self::Skipped => "skipped",
            Self::Cancelled => "cancelled",
        }
    }

    /// The status of that word, in any case; what others say for it is understood.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        match word.trim().to_ascii_lowercase().as_str() {
            "completed" | "complete" | "done" => Some(Self::Success),
            "failed" | "failure" => Some(Self::Error),
            word => Self::ALL.into_iter().find(|status| status.as_str() == word),
        }
    }

    /// Whether nothing more becomes of the task.
    #[must_use]
    pub const fn is_settled(self) -> bool {
        matches!(
            self,
            Self::Success | Self::Error | Self::Skipped | Self::Cancelled
        )
    }
}

/// What happened to a task so far.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskState {
    /// Where it stands.
    pub status: PlanTaskStatus,
    /// How often it was begun.
    pub attempts: u32,
    /// How many calls its run may make, while it is under way.
    pub calls: u32,
    /// When it was first begun.
    pub started_at: Option<Timestamp>,
    /// When it was settled.
    pub ended_at: Option<Timestamp>,
    /// What came of it.
    pub result: Option<Value>,
    /// Whether strangers wrote what came of it, in part or whole.
    pub tainted: bool,
    /// Why it failed, last.
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

/// A plan and how far it is.
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

    /// What it is called: the call that made it.
    #[must_use]
    pub fn id(&self) -> &CallId {
        &self.id
    }

    /// What it consists of.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// When it was made.
    #[must_use]
    pub fn made_at(&self) -> Timestamp {
        self.made_at
    }

    /// The tasks with how far they are, in the order in which they were written.
    pub fn tasks(&self) -> impl Iterator<Item = (&PlanTask, &TaskState)> {
        let tasks = self.plan.tasks().iter();
        tasks.filter_map(|task| Some((task, self.tasks.get(&task.id)?)))
    }

    /// A task and how far it is.
    #[must_use]
    pub fn task(&self, id: &str) -> Option<(&PlanTask, &TaskState)> {
        let task = self.plan.task(id)?;
        Some((task, self.tasks.get(&task.id)?))
    }

    /// What came of a task, if something did.
    #[must_use]
    pub fn result(&self, id: &str) -> Option<&Value> {
        self.task(id)?.1.result.as_ref()
    }

    /// Whether every task is settled.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.tasks.values().all(|task| task.status.is_settled())
    }

    /// How the plan stands as a whole.
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

    /// The tasks that are under way in runs of their own, and which attempt it is.
    pub fn under_way(&self) -> impl Iterator<Item = (&PlanTaskId, u32)> {
        self.tasks()
            .filter(|(task, state)| {
                state.status == PlanTaskStatus::InProgress && task.work != Work::ByHand
            })
            .map(|(task, state)| (&task.id, state.attempts))
    }

    /// How many tasks that have not begun may run at the same time as soon as they can.
    pub(in crate::run) fn beside(&self) -> usize {
        let pending = self.tasks().filter(|(task, state)| {
            state.status == PlanTaskStatus::Pending && task.work != Work::ByHand
        });
        let room = match self.plan.execution_mode() {
            ExecutionMode::Sequential => 1,
            ExecutionMode::Parallel => self.plan.max_parallel(),
        };
        let room = room.saturating_sub(self.under_way().count());
        pending.count().min(room)
    }

    /// Whether a task is under way whose run may make calls.
    pub(in crate::run) fn has_lent(&self) -> bool {
        self.tasks.values().any(|task| task.calls > 0)
    }

    /// The tasks that can begin now, as many as may run at the same time.
    #[must_use]
    pub fn can_begin(&self) -> Vec<&PlanTask> {
        let by_itself = |task: &&PlanTask| task.work != Work::ByHand;
        match self.plan.execution_mode() {
            ExecutionMode::Sequential => {
                let is_at_it = |state: &TaskState| state.status == PlanTaskStatus::InProgress;
                match self.tasks.values().any(is_at_it) {
                    true => Vec::new(),
                    false => self.ready().take(1).filter(by_itself).collect(),
                }
            }
            // What is done by hand takes no room of what runs by itself.
            ExecutionMode::Parallel => {
                let room = self.plan.max_parallel();
                let room = room.saturating_sub(self.under_way().count());
                self.ready().filter(by_itself).take(room).collect()
            }
        }
    }

    /// The tasks that whoever made the plan can do now, or is at.
    pub fn by_hand(&self) -> impl Iterator<Item = &PlanTask> {
        let at_work = self.tasks().filter(|(task, state)| {
            task.work == Work::ByHand && state.status == PlanTaskStatus::InProgress
        });
        let at_work = at_work.map(|(task, _)| task);
        let at_once = match self.plan.execution_mode() {
            ExecutionMode::Sequential => 1,
            ExecutionMode::Parallel => usize::MAX,
        };
        let ready = self.ready().take(at_once);
        at_work.chain(ready.filter(|task| task.work == Work::ByHand))
    }

    /// The tasks that wait for nothing any more and have not begun.
    fn ready(&self) -> impl Iterator<Item = &PlanTask> {
        self.tasks()
            .filter(|(task, state)| state.status == PlanTaskStatus::Pending && self.may_begin(task))
            .map(|(task, _)| task)
    }

    fn may_begin(&self, task: &PlanTask) -> bool {
        task.depends_on.iter().all(|id| {
            let before = self.tasks.get(id);
            before.is_some_and(|before| before.status == PlanTaskStatus::Success)
        })
    }

    /// Whether strangers wrote part of what came of any task.
    #[must_use]
    pub fn is_tainted(&self) -> bool {
        self.tasks.values().any(|task| task.tainted)
    }

    /// Whether strangers wrote part of what a task goes on from.
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

    /// What an agent is told of the tasks before its own.
    pub(super) fn told_before(&self, task: &PlanTask) -> String {
        let mut told = String::new();
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
            if told.is_empty() {
                told.push_str("\n\nWhat came of the tasks before this one:");
            }
            let result = match result {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            let cut = result.chars().count() > LONGEST_TOLD;
            let shown: String = result.chars().take(LONGEST_TOLD).collect();
            let rest = if cut { " ... (cut)" } else { "" };
            let _ = write!(told, "\n- {id} ({}): {shown}{rest}", before.description);
        }
        told
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
            && declared.work != Work::ByHand
            && self.may_begin(declared);
        let state = self.tasks.get_mut(task).filter(|_| fits);
        let state = state.ok_or_else(|| FoldError::NotOfPlan(self.id.clone(), task.clone()))?;
        state.status = PlanTaskStatus::InProgress;
        state.attempts = attempt;
        state.calls = calls;
        state.started_at.get_or_insert(at);
        Ok(())
    }

    /// Ends an attempt. How many calls its run might have made.
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

    /// Draws the consequences of where a task stands now.
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
        self.skip_what_cannot_be_done(Some(at));
    }

    /// Skips what waits, directly or not, for what was not done, and everything if the plan was stopped.
    fn skip_what_cannot_be_done(&mut self, at: Option<Timestamp>) {
        loop {
            let lost = self.tasks().find_map(|(task, state)| {
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
                    (Some(before), _) => format!("it waits for `{before}`, which was not done"),
                    (None, Some(stopped)) => format!("the plan stopped at `{stopped}`"),
                    (None, None) => return None,
                };
                Some((task.id.clone(), because))
            });
            let Some((task, because)) = lost else {
                return;
            };
            if let Some(state) = self.tasks.get_mut(&task) {
                state.status = PlanTaskStatus::Skipped;
                state.because = Some(because);
                state.ended_at = at;
            }
        }
    }

    /// The plan as it is told to whoever made it: what it consists of and how far it is.
    #[must_use]
    pub fn told(&self) -> Value {
        let tasks: Vec<Value> = self
            .tasks()
            .map(|(task, state)| {
                let mut told = json!({
                    "id": task.id,
                    "description": task.description,
                    "status": state.status,
                });
                match &task.work {
                    Work::Call { tool, .. } => told["tool"] = json!(tool),
                    Work::Agent(agent) => told["agent"] = json!(agent),
                    Work::ByHand => told["by_hand"] = json!(true),
                }
                if state.attempts > 1 {
                    told["attempts"] = json!(state.attempts);
                }
                if let Some(result) = &state.result {
                    told["result"] = result.clone();
                }
                if let Some(failure) = &state.failure {
                    told["error"] = json!(failure.model_message);
                }
                if let Some(because) = &state.because {
                    told["because"] = json!(because);
                }
                told
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
