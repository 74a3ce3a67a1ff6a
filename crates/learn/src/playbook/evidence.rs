//! The entries of a playbook's log: what runs showed, and what people changed. They are written once,
//! one a line, and never changed; a playbook is their fold.

use serde::{Deserialize, Serialize};
use windlass_spec::{
    AgentName, ErrorCategory, NonEmptyText, RunId, StrategyId, Timestamp, ToolCallingStrategy,
    ToolName,
};

/// One entry of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "evidence", rename_all = "snake_case")]
pub enum Evidence {
    /// A run showed something.
    Run(Box<RunEvidence>),
    /// A strategy was written by hand or brought from elsewhere. Its counts are what was known there.
    Added {
        /// The strategy, with its id.
        strategy: Box<ToolCallingStrategy>,
        /// When.
        at: Timestamp,
    },
    /// A person changed the words, the section, the tags or the tools of a strategy. Its counts are not
    /// theirs to change.
    Edited {
        /// The strategy as it reads now, with its id.
        strategy: Box<ToolCallingStrategy>,
        /// When.
        at: Timestamp,
    },
    /// A model put a strategy in other words, which were checked.
    Worded {
        /// Which strategy.
        strategy: StrategyId,
        /// How it reads now.
        content: NonEmptyText,
        /// When.
        at: Timestamp,
    },
    /// A person took a strategy out. It comes back if it is learned again.
    Removed {
        /// Which strategy.
        strategy: StrategyId,
        /// When.
        at: Timestamp,
    },
    /// A person said whether a strategy stays, whatever is learned.
    Pinned {
        /// Which strategy.
        strategy: StrategyId,
        /// Whether it does.
        pinned: bool,
        /// When.
        at: Timestamp,
    },
    /// A person switched a strategy off, or on again.
    Disabled {
        /// Which strategy.
        strategy: StrategyId,
        /// Whether it is off.
        disabled: bool,
        /// When.
        at: Timestamp,
    },
    /// Everything after the first entries does not count any more.
    Reverted {
        /// How many entries still count.
        to: usize,
        /// When.
        at: Timestamp,
    },
    /// A line that cannot be read. It says nothing and keeps its place: revisions are numbers of entries, and mean the
    /// same with it as they did before it was damaged. It is never written.
    #[serde(skip)]
    Unreadable,
}

impl Evidence {
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

/// What one run showed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunEvidence {
    /// Which run. It counts once, however often it is written.
    pub run: RunId,
    /// Whose run.
    pub agent: AgentName,
    /// When it was over.
    pub at: Timestamp,
    /// What was asked, if no stranger wrote part of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<NonEmptyText>,
    /// Whether the task was done.
    pub verdict: Verdict,
    /// Why that is thought so.
    pub because: String,
    /// How many turns it took.
    pub iterations: u32,
    /// The tools that succeeded, in order, as far as they may be learned from.
    pub sequence: Vec<ToolName>,
    /// What failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pitfalls: Vec<Pitfall>,
    /// What came of the strategies that were put before the model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recalled: Vec<Voted>,
    /// Tools that strategies of the playbook name and the agent does not have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lacks: Vec<ToolName>,
}

/// Whether a task was done, judged by what happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It was.
    Succeeded,
    /// It was not.
    Failed,
    /// That cannot be told, or has nothing to do with the tools: a person stopped it, say.
    Unclear,
}

/// Something that failed, with what came before.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Pitfall {
    /// The tools, in order; the last one failed, or all of them led nowhere.
    pub sequence: Vec<ToolName>,
    /// How the last call failed; none if the calls went well and the task was not done all the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<ErrorCategory>,
}

/// What came of a strategy that was put before the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Voted {
    /// Which strategy.
    pub strategy: StrategyId,
    /// Whether its tools succeeded in its order.
    pub followed: bool,
    /// What that says about it.
    pub vote: Vote,
}

/// What a run says about a strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Vote {
    /// It was followed and the task was done.
    Helpful,
    /// It was followed and the task was not done, or its tools were tried in vain.
    Harmful,
    /// Nothing.
    Neutral,
}
