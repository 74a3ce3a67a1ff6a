//! The events of a run. A journal stores them in order. Their form may grow but must stay readable,
//! because old journals are folded again.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use windlass_policy::Session;
use windlass_spec::plan::{Plan, PlanTaskId};
use windlass_spec::registry::Permission;
use windlass_spec::{
    Agent, CallId, CallState, Deprecation, ErrorCategory, Failure, Money, NonEmptyText,
    RawUserIntent, RunId, StrategyId, StrategySection, Timestamp, ToolGapReport, ToolName, Turn,
};

use super::plan::{PlanTaskStatus, TaskEnd};
use super::settings::{Budget, Settings};
use crate::approval::{Approval, Principal};
use crate::gate::Decision;
use crate::model::{ChatMessage, ModelAnswer, ModelErrorKind, RequestedCall, Usage};

/// The task of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// The task or question.
    pub description: String,
    /// The conversation before the task, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conversation: Vec<ChatMessage>,
    /// Strategies that worked for similar tasks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub strategies: Vec<String>,
    /// The domain, by which strategies are found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// The tools of the agent that may be used; all of them if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_tools: Option<Vec<String>>,
    /// Other data about the task, such as the channel it came from.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// The one call that the whole task consists of. No model is asked then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Box<RequestedCall>>,
    /// Whether the task is based on untrusted content: the run that set it had read from outside.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tainted: bool,
    /// The program that makes the call, if it is not Windlass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outside: Option<Box<OutsideCall>>,
}

/// A call that another program makes, after it was decided here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutsideCall {
    /// The program, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// Its session, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// How many seconds a call that may begin can wait for its beginning.
    pub begin_seconds: u32,
    /// How many seconds after its beginning the outcome of the call counts as unknown.
    pub outcome_seconds: u32,
    /// What the session did before the call.
    #[serde(default)]
    pub before: Session,
}

/// An event of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The run started.
    Started {
        /// Its id.
        run: RunId,
        /// The agent, as declared at that time.
        agent: Box<Agent>,
        /// The agents it may delegate to, directly or through each other.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        agents: Vec<Agent>,
        /// How the agents were assembled, for the process that resumes the run. The run itself does not
        /// read it.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        assembly: Map<String, Value>,
        /// The call of the parent run that this run works for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<CallId>,
        /// The permissions it may hold at most: those of the run that delegated the work.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        holds: Option<BTreeSet<Permission>>,
        /// The task.
        task: Task,
        /// Its limits.
        settings: Settings,
        /// When.
        at: Timestamp,
    },
    /// The intent of the task was found, and the tools to show for it were chosen. Without such an event
    /// the model is shown all tools. The latest one counts.
    Offered {
        /// The intent of the task, as far as it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        intent: Option<Box<RawUserIntent>>,
        /// The tools that are shown.
        tools: Vec<ToolName>,
        /// The tools that are left out, and why.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        left_out: Vec<LeftOut>,
        /// The arguments of tools that the operator sets. Calls may omit them.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        set: BTreeMap<ToolName, Vec<String>>,
        /// What the task needs and no tool provides.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        gap: Option<Box<ToolGapReport>>,
        /// The tools that the task needs and that are switched off.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        disabled: Vec<DisabledTool>,
        /// What the model reads about the intent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        advice: Option<Box<IntentAdvice>>,
        /// The environment in which the tools were chosen.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        environment: Option<String>,
        /// When.
        at: Timestamp,
    },
    /// Strategies of a playbook are shown to the model. Happens once, before the model is first asked.
    Recalled {
        /// The strategies, best first.
        strategies: Vec<RecalledStrategy>,
        /// When.
        at: Timestamp,
    },
    /// The model answered.
    ModelAnswered {
        /// In which turn.
        turn: Turn,
        /// The answer.
        answer: ModelAnswer,
        /// When.
        at: Timestamp,
    },
    /// The model did not answer.
    ModelFailed {
        /// In which turn.
        turn: Turn,
        /// The kind of error.
        kind: ModelErrorKind,
        /// A message for the operator.
        message: String,
        /// When.
        at: Timestamp,
    },
    /// The gate decided about a call. It decides again before the call starts, and a second decision is
    /// kept only if it is stricter.
    Decided {
        /// The call.
        call: CallId,
        /// The decision.
        decision: Decision,
        /// When.
        at: Timestamp,
    },
    /// A person was asked a question about a call.
    Asked {
        /// The question and its call. The journal stores only the request: an unanswered question
        /// consists of nothing else.
        #[serde(rename = "request", with = "as_request")]
        approval: Box<Approval>,
        /// When.
        at: Timestamp,
    },
    /// A question was settled: it was decided, it expired, or it was withdrawn.
    Settled {
        /// The question with its outcome.
        approval: Box<Approval>,
        /// When the run learned of it.
        at: Timestamp,
    },
    /// A call is held: it starts when its undo window is over.
    Held {
        /// The call.
        call: CallId,
        /// When its undo window ends.
        until: Timestamp,
        /// Whether the run continues meanwhile.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        deferred: bool,
        /// Since when.
        at: Timestamp,
    },
    /// A person released a held call early.
    Released {
        /// The call.
        call: CallId,
        /// The person.
        by: Principal,
        /// When the run learned of it.
        at: Timestamp,
    },
    /// A person undid a held call.
    Undone {
        /// The call.
        call: CallId,
        /// The person.
        by: Principal,
        /// When the run learned of it.
        at: Timestamp,
    },
    /// A call is about to run. The event is stored first, so that a crash cannot hide that the call may
    /// have run.
    CallStarted {
        /// The call.
        call: CallId,
        /// The implementation chosen to run, if there are several.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        variant: Option<Variant>,
        /// When.
        at: Timestamp,
    },
    /// A call ended.
    CallEnded {
        /// The call.
        call: CallId,
        /// How it ended.
        end: CallEnd,
        /// The model usage of the call: a sub-agent asks its own model.
        #[serde(default, skip_serializing_if = "Usage::is_zero")]
        usage: Usage,
        /// How many calls were made in it: a sub-agent makes its own.
        #[serde(default, skip_serializing_if = "is_zero")]
        calls: u32,
        /// The tool that ran, if one did: for readers that count without folding.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ran: Option<ExecutedTool>,
        /// Whether the result is untrusted although the tool does not reach outside: for example a
        /// memory of something read there.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        tainted: bool,
        /// When.
        at: Timestamp,
    },
    /// A call failed and is tried again.
    CallRetried {
        /// The call.
        call: CallId,
        /// How the last attempt failed.
        failure: Failure,
        /// When the next attempt starts.
        until: Timestamp,
        /// When.
        at: Timestamp,
    },
    /// A call was answered with the result of the same call before. No tool ran.
    Reused {
        /// The call.
        call: CallId,
        /// The earlier call.
        of: CallId,
        /// When.
        at: Timestamp,
    },
    /// A call made a plan. The plan is named after the call.
    Planned {
        /// The call.
        call: CallId,
        /// The plan.
        plan: Box<Plan>,
        /// When.
        at: Timestamp,
    },
    /// A person replaced the tasks of a plan that have not started.
    Replanned {
        /// The plan.
        plan: CallId,
        /// The new tasks.
        tasks: Box<Plan>,
        /// The person.
        by: Principal,
        /// When the run learned of it.
        at: Timestamp,
    },
    /// A task of a plan is about to start, in its own run.
    TaskStarted {
        /// The plan.
        plan: CallId,
        /// The task.
        task: PlanTaskId,
        /// The number of the attempt, from 1.
        attempt: u32,
        /// When.
        at: Timestamp,
    },
    /// An attempt at a task ended.
    TaskEnded {
        /// The plan.
        plan: CallId,
        /// The task.
        task: PlanTaskId,
        /// The number of the attempt.
        attempt: u32,
        /// How it ended.
        end: TaskEnd,
        /// The model usage of the attempt.
        #[serde(default, skip_serializing_if = "Usage::is_zero")]
        usage: Usage,
        /// How many calls were made in it.
        #[serde(default, skip_serializing_if = "is_zero")]
        calls: u32,
        /// When.
        at: Timestamp,
    },
    /// The model or a person set the status of a manual task, or skipped a task.
    TaskMarked {
        /// The plan.
        plan: CallId,
        /// The task.
        task: PlanTaskId,
        /// The new status.
        status: PlanTaskStatus,
        /// The result, if there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
        /// Whether the result may contain untrusted content: the model that reported it had read from
        /// outside.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        tainted: bool,
        /// The person, if it was not the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Principal>,
        /// When.
        at: Timestamp,
    },
    /// The run was cancelled.
    Cancelled {
        /// Who cancelled it, if it was done from outside.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Principal>,
        /// When.
        at: Timestamp,
    },
    /// A process resumed the run. The time without a process does not count.
    Resumed {
        /// The files that had changed since the run was bound and that the user accepted, each with the digest
        /// of its content.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        accepted: BTreeMap<String, String>,
        /// When.
        at: Timestamp,
    },
    /// The tool of a call reported what the call cost.
    CostReported {
        /// The call.
        call: CallId,
        /// The cost in millionths of a dollar.
        cost: Money,
        /// When.
        at: Timestamp,
    },
    /// The model was not asked, because a budget does not allow the request.
    BudgetReached {
        /// What is used up.
        budget: Budget,
        /// Whose budget it is and how much of it is used.
        message: String,
        /// When.
        at: Timestamp,
    },
    /// The journal lost its last events, so calls may have been made that it does not know.
    JournalDamaged {
        /// What was lost.
        reason: String,
        /// When it was noticed.
        at: Timestamp,
    },
    /// Only time passed.
    TimePassed {
        /// Until when.
        at: Timestamp,
    },
}

impl Event {
    /// When it happened.
    #[must_use]
    pub fn at(&self) -> Timestamp {
        match self {
            Self::Started { at, .. }
            | Self::Offered { at, .. }
            | Self::Recalled { at, .. }
            | Self::ModelAnswered { at, .. }
            | Self::ModelFailed { at, .. }
            | Self::Decided { at, .. }
            | Self::Asked { at, .. }
            | Self::Settled { at, .. }
            | Self::Held { at, .. }
            | Self::Released { at, .. }
            | Self::Undone { at, .. }
            | Self::Resumed { at, .. }
            | Self::JournalDamaged { at, .. }
            | Self::CallStarted { at, .. }
            | Self::CallEnded { at, .. }
            | Self::CallRetried { at, .. }
            | Self::CostReported { at, .. }
            | Self::BudgetReached { at, .. }
            | Self::Reused { at, .. }
            | Self::Planned { at, .. }
            | Self::Replanned { at, .. }
            | Self::TaskStarted { at, .. }
            | Self::TaskEnded { at, .. }
            | Self::TaskMarked { at, .. }
            | Self::Cancelled { at, .. }
            | Self::TimePassed { at } => *at,
        }
    }
}

/// Whether the count is zero, for `skip_serializing_if`.
#[allow(clippy::trivially_copy_pass_by_ref)]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// A strategy that is shown to a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecalledStrategy {
    /// The strategy.
    pub id: StrategyId,
    /// Its section of the playbook.
    pub section: StrategySection,
    /// Its tools, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sequence: Vec<ToolName>,
    /// The text the model is shown.
    pub text: String,
    /// How similar it is to the task.
    pub similarity: f64,
    /// A lower bound of its success rate.
    pub lower_bound: f64,
}

/// What a model reads about the intent of its task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntentAdvice {
    /// The tools that suit the task, best first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolName>,
    /// What has to be known for the task, as far as the task does not state it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<NonEmptyText>,
    /// What to try if one of the tools fails.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallbacks: Vec<NonEmptyText>,
}

/// A tool that a task needs and that is switched off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DisabledTool {
    /// The tool.
    pub tool: ToolName,
    /// Why it is switched off.
    pub because: String,
    /// The words of the task that it would do.
    pub request: NonEmptyText,
}

/// A tool that a model is not shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The tool.
    pub tool: ToolName,
    /// Why.
    pub because: LeftOutReason,
}

/// Why a model is not shown a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeftOutReason {
    /// The operator switched it off.
    SwitchedOff,
    /// It is deprecated.
    Deprecated,
    /// Other tools fit the task better and the budget is used up. The tool can be found by a search.
    Budget,
}

/// A tool that ran, and when it started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecutedTool {
    /// The tool.
    pub tool: ToolName,
    /// When it started.
    pub started_at: Timestamp,
    /// The implementation, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<Variant>,
    /// What it should write differently in its answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Deprecation>,
}

/// One of several implementations in an experiment that splits principals between them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Variant {
    /// The experiment that splits them.
    pub experiment: String,
    /// The implementation.
    pub name: String,
    /// How many of a million principals get it.
    pub share_millionths: u32,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallEnd {
    /// With a result.
    Success(Value),
    /// With an error.
    Error(Failure),
    /// It took too long.
    Timeout(Failure),
    /// It was stopped.
    Cancelled(Failure),
    /// The outcome is unknown.
    Unknown(Failure),
}

impl CallEnd {
    /// The state of a call that ended so.
    #[must_use]
    pub fn state(&self) -> CallState {
        match self {
            Self::Success(_) => CallState::Success,
            Self::Error(_) => CallState::Error,
            Self::Timeout(_) => CallState::Timeout,
            Self::Cancelled(_) => CallState::Cancelled,
            Self::Unknown(_) => CallState::Unknown,
        }
    }

    /// Why it failed, if it did.
    #[must_use]
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Success(_) => None,
            Self::Error(failure)
            | Self::Timeout(failure)
            | Self::Cancelled(failure)
            | Self::Unknown(failure) => Some(failure),
        }
    }

    /// The category of its error, if it is a failure.
    #[must_use]
    pub fn category(&self) -> Option<ErrorCategory> {
        self.failure().map(|failure| failure.category)
    }
}

/// Stores a pending question as the request it was made from.
mod as_request {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::approval::{Approval, Request};

    pub(super) fn serialize<S: Serializer>(
        approval: &Approval,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        approval.request().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Box<Approval>, D::Error> {
        let request = Request::deserialize(deserializer)?;
        Approval::ask(request).map(Box::new).map_err(Error::custom)
    }
}
