//! The entries of a playbook's log: results of runs and changes by people. They are written once,
//! one per line, and never changed. A playbook is their fold.

use serde::{Deserialize, Serialize};
use windlass_spec::{
    AgentName, ErrorCategory, NonEmptyText, RunId, StrategyId, Timestamp, ToolCallingStrategy,
    ToolName,
};

/// One entry of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "evidence", rename_all = "snake_case")]
pub enum PlaybookEntry {
    /// The evidence of one run.
    Run(Box<RunEvidence>),
    /// A strategy was written by hand or imported. Its counts are those of its origin.
    Added {
        /// The strategy, with its id.
        strategy: Box<ToolCallingStrategy>,
        /// When.
        at: Timestamp,
    },
    /// A person changed the text, the section, the tags or the tools of a strategy. The counts cannot be
    /// edited.
    Edited {
        /// The strategy after the edit, with its id.
        strategy: Box<ToolCallingStrategy>,
        /// When.
        at: Timestamp,
    },
    /// A model reworded a strategy, and the new text passed its check.
    Worded {
        /// The strategy.
        strategy: StrategyId,
        /// The new text.
        content: NonEmptyText,
        /// When.
        at: Timestamp,
    },
    /// A person removed a strategy. It returns if it is learned again.
    Removed {
        /// The strategy.
        strategy: StrategyId,
        /// When.
        at: Timestamp,
    },
    /// A person pinned or unpinned a strategy. A pinned strategy is never retired.
    Pinned {
        /// The strategy.
        strategy: StrategyId,
        /// Whether it is pinned.
        pinned: bool,
        /// When.
        at: Timestamp,
    },
    /// A person disabled or enabled a strategy.
    Disabled {
        /// The strategy.
        strategy: StrategyId,
        /// Whether it is disabled.
        disabled: bool,
        /// When.
        at: Timestamp,
    },
    /// Everything after the first `to` entries no longer counts.
    Reverted {
        /// How many entries still count.
        to: usize,
        /// When.
        at: Timestamp,
    },
    /// A line that cannot be read. It has no effect but keeps its position, because revisions are numbers of
    /// entries. It is never written.
    #[serde(skip)]
    Unreadable,
}

impl PlaybookEntry {
    /// When it was written, if it can be read.
    #[must_use]
    pub fn at(&self) -> Option<Timestamp> {
        match self {
            Self::Unreadable => None,
            Self::Run(run) => Some(run.at),
            Self::Added { at, .. }
            | Self::Edited { at, .. }
            | Self::Worded { at, .. }
            | Self::Removed { at, .. }
            | Self::Pinned { at, .. }
            | Self::Disabled { at, .. }
            | Self::Reverted { at, .. } => Some(*at),
        }
    }
}

/// The evidence of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunEvidence {
    /// The run. It counts once, however often it is written.
    pub run: RunId,
    /// The agent of the run.
    pub agent: AgentName,
    /// When the run ended.
    pub at: Timestamp,
    /// The task; `None` if it contains untrusted content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<NonEmptyText>,
    /// Whether the task was done.
    pub verdict: RunVerdict,
    /// The reason for the verdict.
    pub because: String,
    /// How many turns it took.
    pub iterations: u32,
    /// The tools that succeeded, in order, without calls that must not be learned from.
    pub sequence: Vec<ToolName>,
    /// What failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pitfalls: Vec<Pitfall>,
    /// The votes on the strategies that the model was shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recalled: Vec<StrategyVote>,
    /// Tools that strategies of the playbook name and the agent does not have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lacks: Vec<ToolName>,
}

/// Whether a task was done, judged by the events of its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunVerdict {
    /// It was done.
    Succeeded,
    /// It was not done.
    Failed,
    /// Unknown, or unrelated to the tools: for example, a person stopped the run.
    Unclear,
}

/// A call that failed, with the call before it, or a sequence that did not do its task.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Pitfall {
    /// The tools, in order. Either the last one failed, or all succeeded and the task was not done.
    pub sequence: Vec<ToolName>,
    /// How the last call failed; `None` if all calls succeeded and the task was not done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<ErrorCategory>,
}

/// The vote of one run on a strategy that its model was shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrategyVote {
    /// The strategy.
    pub strategy: StrategyId,
    /// Whether its tools succeeded in its order.
    pub followed: bool,
    /// The vote.
    pub vote: Vote,
}

/// Whether a strategy helped a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Vote {
    /// It was followed and the task was done.
    Helpful,
    /// It was followed and the task was not done, or its tools were tried without success.
    Harmful,
    /// Neither.
    Neutral,
}
