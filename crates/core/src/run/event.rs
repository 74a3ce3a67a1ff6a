//! What happens to a run. Events are what a journal stores, in order; their form may grow but must
//! stay readable, because old journals are folded again.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use windlass_spec::plan::{Plan, PlanTaskId};
use windlass_spec::registry::Permission;
use windlass_spec::{
    Agent, CallId, Failure, RawUserIntent, RunId, StrategyId, StrategySection, Timestamp,
    ToolGapReport, ToolName, Turn,
};

use super::plan::{PlanTaskStatus, TaskEnd};
use super::settings::Settings;
use crate::approval::{Approval, Principal};
use crate::gate::Decision;
use crate::model::{ChatMessage, ModelAnswer, ModelErrorKind, RequestedCall, Usage};

/// What a run is asked to do.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// The task or question.
    pub description: String,
    /// What was said before, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conversation: Vec<ChatMessage>,
    /// What worked before for tasks like this.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub strategies: Vec<String>,
    /// The field of work, by which strategies are found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// The tools of the agent that may be used; all of them if it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_tools: Option<Vec<String>>,
    /// What else whoever set the task said about it, such as where it was asked.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// The one call that is all there is to do. No model is asked then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Box<RequestedCall>>,
    /// Whether strangers wrote part of what it goes on from: whoever set it had read from outside.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tainted: bool,
}

/// Something that happened to a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// It began.
    Started {
        /// Its id.
        run: RunId,
        /// Who does it, as declared at that time.
        agent: Box<Agent>,
        /// The agents it may hand work to, directly or through each other.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        agents: Vec<Agent>,
        /// How the agents were put to work, for whoever takes the run up again. The run itself does
        /// not look at it.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        assembly: Map<String, Value>,
        /// The call of another run that this one works for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<CallId>,
        /// What it may hold at most, because whoever handed it the work holds no more.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        holds: Option<BTreeSet<Permission>>,
        /// What is to be done.
        task: Task,
        /// Its limits.
        settings: Settings,
        /// When.
        at: Timestamp,
    },
    /// It was found out what the task wants and which tools the model is shown for it. Without such
    /// an event it is shown all. The latest one counts.
    Offered {
        /// What the task wants, as far as that could be told.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        intent: Option<Box<RawUserIntent>>,
        /// The tools that are shown.
        tools: Vec<ToolName>,
        /// The others, and why they are not.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        left_out: Vec<LeftOut>,
        /// The arguments of tools that the operator sets, and that calls may leave out.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        set: BTreeMap<ToolName, Vec<String>>,
        /// What no tool seems to do of what the task wants.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        gap: Option<Box<ToolGapReport>>,
        /// When.
        at: Timestamp,
    },
    /// Strategies of a playbook are put before the model, from what earlier runs taught. Once, before it
    /// is first asked.
    Recalled {
        /// Which, the best first.
        strategies: Vec<RecalledStrategy>,
        /// When.
        at: Timestamp,
    },
    /// The model answered.
    ModelAnswered {
        /// In which turn.
        turn: Turn,
        /// What.
        answer: ModelAnswer,
        /// When.
        at: Timestamp,
    },
    /// The model did not answer.
    ModelFailed {
        /// In which turn.
        turn: Turn,
        /// Why.
        kind: ModelErrorKind,
        /// For whoever runs this.
        message: String,
        /// When.
        at: Timestamp,
    },
    /// The gate decided about a call. It does so again before the call starts, and a second decision
    /// is kept only if it is stricter.
    Decided {
        /// Which.
        call: CallId,
        /// How.
        decision: Decision,
        /// When.
        at: Timestamp,
    },
    /// A question about a call was put to a person.
    Asked {
        /// The question, and which call it is about. The journal stores the request alone: a
        /// question that nobody has answered is no more than that.
        #[serde(rename = "request", with = "as_request")]
        approval: Box<Approval>,
        /// When.
        at: Timestamp,
    },
    /// A question was settled: a person decided, it was too late, or it was withdrawn.
    Settled {
        /// The question with what came of it.
        approval: Box<Approval>,
        /// When the run learned of it.
        at: Timestamp,
    },
    /// A call is held: it starts when its undo window is over.
    Held {
        /// Which.
        call: CallId,
        /// When its undo window is over.
        until: Timestamp,
        /// Whether the run goes on meanwhile.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        deferred: bool,
        /// Since when.
        at: Timestamp,
    },
    /// A person let a held call go before its time.
    Released {
        /// Which.
        call: CallId,
        /// Who.
        by: Principal,
        /// When the run learned of it.
        at: Timestamp,
    },
    /// A person undid a held call.
    Undone {
        /// Which.
        call: CallId,
        /// Who.
        by: Principal,
        /// When the run learned of it.
        at: Timestamp,
    },
    /// A call is about to run. Stored before it does, so that no crash hides that it may have run.
    CallStarted {
        /// Which.
        call: CallId,
        /// Which of several implementations was to run, if there are several.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        variant: Option<Variant>,
        /// When.
        at: Timestamp,
    },
    /// A call ended.
    CallEnded {
        /// Which.
        call: CallId,
        /// How.
        end: CallEnd,
        /// What models cost in it: a sub-agent asks its own.
        #[serde(default, skip_serializing_if = "Usage::is_zero")]
        usage: Usage,
        /// How many calls were made in it: a sub-agent makes its own.
        #[serde(default, skip_serializing_if = "is_none")]
        calls: u32,
        /// What ran, if something did: for those who count without folding.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ran: Option<Ran>,
        /// Whether what it brought comes from outside, though its tool does not reach there: a memory of
        /// what was once read there, say.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        tainted: bool,
        /// When.
        at: Timestamp,
    },
    /// A call made a plan, which is named after it.
    Planned {
        /// The call.
        call: CallId,
        /// The plan.
        plan: Box<Plan>,
        /// When.
        at: Timestamp,
    },
    /// Somebody put other tasks in the place of those of a plan that have not begun.
    Replanned {
        /// Which plan.
        plan: CallId,
        /// What it consists of now.
        tasks: Box<Plan>,
        /// Who.
        by: Principal,
        /// When the run learned of it.
        at: Timestamp,
    },
    /// A task of a plan is about to begin, in a run of its own.
    TaskStarted {
        /// Of which plan.
        plan: CallId,
        /// Which.
        task: PlanTaskId,
        /// For which time, from 1.
        attempt: u32,
        /// When.
        at: Timestamp,
    },
    /// An attempt at a task ended.
    TaskEnded {
        /// Of which plan.
        plan: CallId,
        /// Which.
        task: PlanTaskId,
        /// Which attempt.
        attempt: u32,
        /// How.
        end: TaskEnd,
        /// What models cost in it.
        #[serde(default, skip_serializing_if = "Usage::is_zero")]
        usage: Usage,
        /// How many calls were made in it.
        #[serde(default, skip_serializing_if = "is_none")]
        calls: u32,
        /// When.
        at: Timestamp,
    },
    /// Whoever made a plan, or a person, said where a task stands that is done by hand, or that one is
    /// not to be done.
    TaskMarked {
        /// Of which plan.
        plan: CallId,
        /// Which.
        task: PlanTaskId,
        /// Where it stands.
        status: PlanTaskStatus,
        /// What came of it, if something did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
        /// Whether strangers may have written part of it: a model that had read from outside said so.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        tainted: bool,
        /// Who, if it was not the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Principal>,
        /// When.
        at: Timestamp,
    },
    /// Somebody stopped the run.
    Cancelled {
        /// Who, if it was done from outside.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Principal>,
        /// When.
        at: Timestamp,
    },
    /// Somebody took the run up again. The time in which nobody was at it does not count.
    Resumed {
        /// When.
        at: Timestamp,
    },
    /// Nothing but time passed.
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
            | Self::Resumed { at }
            | Self::CallStarted { at, .. }
            | Self::CallEnded { at, .. }
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

/// Whether there were none; what serde asks before it leaves a number out.
#[allow(clippy::trivially_copy_pass_by_ref)]
const fn is_none(count: &u32) -> bool {
    *count == 0
}

/// A strategy that is put before a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecalledStrategy {
    /// Which.
    pub id: StrategyId,
    /// What it says.
    pub section: StrategySection,
    /// Its tools, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sequence: Vec<ToolName>,
    /// How the model is told.
    pub text: String,
    /// How similar it is to the task.
    pub similarity: f64,
    /// The share of success that can be relied on.
    pub lower_bound: f64,
}

/// A tool that a model is not shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Which.
    pub tool: ToolName,
    /// Why.
    pub because: LeftOutBecause,
}

/// Why a model is not shown a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeftOutBecause {
    /// The operator switched it off.
    SwitchedOff,
    /// It is no longer to be used.
    Deprecated,
    /// Others fit the task better, and there is no room for all. It can be found.
    Budget,
}

/// What ran, and since when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ran {
    /// The tool.
    pub tool: ToolName,
    /// When it began.
    pub started_at: Timestamp,
    /// Which of several implementations, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<Variant>,
}

/// One of several implementations between which principals are split.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Variant {
    /// The experiment that splits them.
    pub experiment: String,
    /// The implementation.
    pub name: String,
    /// How many of a million principals were to get it.
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
    /// Nobody can tell.
    Unknown(Failure),
}

/// A pending question as the request it was made from.
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
