//! What a run does next, how it ends, and why an event is refused.

use serde::{Deserialize, Serialize};
use windlass_spec::plan::PlanTaskId;
use windlass_spec::{CallChangeError, CallId, ErrorCategory, Timestamp, Turn};

use super::plan::ReplanError;
use super::settings::Budget;
use crate::model::ModelRequest;

/// How a run ended. The exit code, the trace and the messages for people all follow from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub enum RunEnd {
    /// The task is done.
    Completed,
    /// All turns are used up.
    IterationLimit,
    /// A budget is used up.
    Budget {
        /// Which budget.
        budget: Budget,
        /// Whose budget it is and how much of it is used, if it is not only that of this run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// It was cancelled.
    Cancelled,
    /// It waits for a person.
    WaitingForPerson,
    /// It waits for the program that makes its call.
    WaitingForCaller {
        /// Until when.
        until: Timestamp,
    },
    /// It failed.
    Failed {
        /// The category of the error.
        category: ErrorCategory,
        /// A message for the operator.
        message: String,
    },
}

impl RunEnd {
    /// Whether the run is over. Otherwise it only waits.
    #[must_use]
    pub fn is_final(&self) -> bool {
        !matches!(self, Self::WaitingForPerson | Self::WaitingForCaller { .. })
    }

    /// The exit code of a program that performs only this run.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Completed => 0,
            Self::IterationLimit => 1,
            Self::Budget {
                budget: Budget::Time,
                ..
            } => 5,
            Self::Budget { .. } => 1,
            Self::Cancelled => 130,
            Self::WaitingForPerson | Self::WaitingForCaller { .. } => 4,
            Self::Failed { category, .. } => match category {
                ErrorCategory::PermissionDenied | ErrorCategory::Rejected => 3,
                ErrorCategory::Timeout => 5,
                ErrorCategory::RateLimited => 6,
                ErrorCategory::Cancelled => 130,
                _ => 1,
            },
        }
    }
}

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// Ask the model.
    CallModel(Box<ModelRequest>),
    /// Advance these calls through the gate, as [`Run::at_gate`](super::Run::at_gate) returns.
    Gate(Vec<CallId>),
    /// Run these calls to their end; they may run at the same time.
    RunCalls(Vec<CallId>),
    /// Wait until a person decides or time has passed.
    Wait(Waiting),
    /// Nothing: the run has ended.
    Done(RunEnd),
}

/// What a run waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// When the wait ends at the latest: the end of the shortest undo window, or the earliest expiry of
    /// a question.
    pub until: Timestamp,
    /// Whether a person has to decide something. Otherwise only time has to pass.
    pub for_person: bool,
}

impl Waiting {
    /// Combines this wait with another one.
    pub(super) fn and(other: Option<Self>, until: Timestamp, for_person: bool) -> Self {
        let Some(other) = other else {
            return Self { until, for_person };
        };
        Self {
            until: other.until.min(until),
            for_person: other.for_person || for_person,
        }
    }
}

/// Why an event does not fit a run. The run is then unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FoldError {
    /// The first event must start the run.
    #[error("the first event of the run is not `started`")]
    NotStarted,
    /// A run starts once.
    #[error("the run has already started")]
    StartedTwice,
    /// Strategies are recalled once, before the model is first asked.
    #[error("strategies can be recalled only once, before the model is first asked")]
    RecalledLate,
    /// The run has ended, so the event does not apply.
    #[error("the run has ended")]
    Ended,
    /// The model was not asked, or not in that turn.
    #[error("the model was not asked in turn {0}")]
    NotAsked(Turn),
    /// There is no such call.
    #[error("there is no call {0}")]
    UnknownCall(CallId),
    /// The gate did not allow it.
    #[error("the call {0} was not allowed")]
    NotAllowed(CallId),
    /// The gate decides once.
    #[error("the call {0} was decided before")]
    DecidedTwice(CallId),
    /// The call needs no answer from a person.
    #[error("the call {0} needs no answer from a person")]
    NoQuestionDue(CallId),
    /// The answer belongs to another question, or to none.
    #[error("the answer about the call {0} does not match its open question")]
    AnswerMismatch(CallId),
    /// The call is not held, or must not be.
    #[error("the call {0} is not held")]
    NotHeld(CallId),
    /// The call cannot change like that.
    #[error("the call {0}: {1}")]
    Call(CallId, CallChangeError),
    /// There is no such plan, or there is one already.
    #[error("the call {0} makes no plan")]
    NoPlan(CallId),
    /// There is no such task, or its status does not allow the change.
    #[error("the plan {0} has no task `{1}` that can change like that")]
    NotOfPlan(CallId, PlanTaskId),
    /// The plan cannot be changed like that.
    #[error("the plan {0}: {1}")]
    Replan(CallId, ReplanError),
}
